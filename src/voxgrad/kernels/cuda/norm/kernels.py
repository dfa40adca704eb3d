# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 - Triton: capitals are numbers that do not change in a launch
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""The passes of a norm in Triton.

Data are [images, cells, channels] in either order of the last two, told by steps. A program of a pass over the data
owns a chunk of the cells of an image and a block of channels; what it found goes to `parts` [images, chunks, fields,
channels], and the small kernels called `finish_...` put the chunks together, always in the same order. What a pass must
know of a channel stands in `table` [lines, 7, channels]: a line for each image, or one for all.
"""

from __future__ import annotations

import triton
import triton.language as tl

CENTRE, RATE, WEIGHT, BIAS, SLOPE, MEAN, VARIANCE = (tl.constexpr(field) for field in range(7))
"""The fields of a table. The normalised number is (x - centre) * rate; `mean` is that of x with what is added to it."""
FIELDS = tl.constexpr(7)

_SMALL = ["CHUNKS", "LINES", "IMAGES", "WIDTH", "TABLE_STEP", "SLOPE_STEP"]
"""Numbers for whose special values Triton need not compile once more: 1, and multiples of 16."""


@triton.jit
def _activated(z, slope, ACTIVATION: tl.constexpr):
    """The activation. NaN stays NaN."""
    if ACTIVATION == "relu":
        z = tl.where(z <= 0, 0.0, z)
    elif ACTIVATION == "leaky":
        z = tl.where(z > 0, z, z * slope)
    elif ACTIVATION == "gelu":
        z = z * 0.5 * (1.0 + tl.erf(z * 0.7071067811865476))
    elif ACTIVATION == "gelu tanh":
        z = z * tl.sigmoid(1.5957691216057308 * (z + 0.044715 * z * z * z))
    elif ACTIVATION == "silu":
        z = z * tl.sigmoid(z)
    return z


@triton.jit
def _through(z, dy, slope, ACTIVATION: tl.constexpr):
    """The gradient before the activation, from that behind it."""
    if ACTIVATION == "relu":
        dy = tl.where(z <= 0, 0.0, dy)
    elif ACTIVATION == "leaky":
        dy = tl.where(z > 0, dy, dy * slope)
    elif ACTIVATION == "gelu":
        bell = tl.exp(-0.5 * z * z) * 0.3989422804014327
        dy = dy * (0.5 * (1.0 + tl.erf(z * 0.7071067811865476)) + z * bell)
    elif ACTIVATION == "gelu tanh":
        share = tl.sigmoid(1.5957691216057308 * (z + 0.044715 * z * z * z))
        inner = 1.5957691216057308 * (1.0 + 0.134145 * z * z)
        dy = dy * (share + z * share * (1.0 - share) * inner)
    elif ACTIVATION == "silu":
        share = tl.sigmoid(z)
        dy = dy * share * (1.0 + z * (1.0 - share))
    return dy


@triton.jit
def _own(PER_CHUNK, CHUNKS, CHANNELS, COLUMNS: tl.constexpr):
    """What belongs to this program: its image, the number of its chunk, the first cell of that, its channels."""
    blocks = tl.cdiv(CHANNELS, COLUMNS)
    number = tl.program_id(0)
    block = number % blocks
    chunk = number // blocks % CHUNKS
    image = (number // blocks // CHUNKS).to(tl.int64)
    return image, chunk, chunk.to(tl.int64) * PER_CHUNK, block * COLUMNS + tl.arange(0, COLUMNS)


@triton.jit
def _field(table, line, number, channel, CHANNELS):
    """A field of a table for some channels, as a row."""
    return tl.load(table + (line * FIELDS + number) * CHANNELS + channel, channel < CHANNELS, 0.0)[None, :]


@triton.jit(do_not_specialize=_SMALL)
def statistics(x, parts, CELLS, PER_CHUNK, CHUNKS, CHANNELS, CELL_STEP, CHANNEL_STEP,
               ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    """Mean, and sum of squared distances from it, of the cells of a chunk, for each channel.

    Each place of a tile follows the numbers that it sees (Welford); then the places are put together.
    """
    image, chunk, begin, channel = _own(PER_CHUNK, CHUNKS, CHANNELS, COLUMNS)
    kind = parts.dtype.element_ty
    inside = (channel < CHANNELS)[None, :]
    first = x + image * CELLS * CHANNELS + channel[None, :].to(tl.int64) * CHANNEL_STEP
    count = tl.zeros((ROWS, 1), kind)
    mean = tl.zeros((ROWS, COLUMNS), kind)
    spread = tl.zeros((ROWS, COLUMNS), kind)
    for start in range(begin, tl.minimum(begin + PER_CHUNK, CELLS), ROWS):
        cell = start + tl.arange(0, ROWS)[:, None]
        here = cell < CELLS
        value = tl.load(first + cell * CELL_STEP, here & inside, 0.0).to(kind)
        count += tl.where(here, 1.0, 0.0).to(kind)
        away = tl.where(here, value - mean, 0.0)
        mean += away * (1.0 / tl.maximum(count, 1.0))
        spread += tl.where(here, away * (value - mean), 0.0)
    total = tl.sum(count, 0)
    middle = tl.sum(count * mean, 0) / total
    spread = tl.sum(spread + count * (mean - middle[None, :]) * (mean - middle[None, :]), 0)
    place = parts + (image * CHUNKS + chunk) * 2 * CHANNELS + channel
    tl.store(place, middle, channel < CHANNELS)
    tl.store(place + CHANNELS, spread, channel < CHANNELS)


@triton.jit
def _counted(row, CELLS, PER_CHUNK, CHUNKS):
    """How many cells the chunk of a line of parts has."""
    return tl.minimum(CELLS - (row % CHUNKS).to(tl.int64) * PER_CHUNK, PER_CHUNK)


@triton.jit
def _columns(CHANNELS, WIDTH, COLUMNS: tl.constexpr):
    """The image of this program, its channels, and which of them there are."""
    blocks = tl.cdiv(CHANNELS, WIDTH)
    channel = tl.program_id(0) % blocks * WIDTH + tl.arange(0, COLUMNS)
    inside = (tl.arange(0, COLUMNS) < WIDTH) & (channel < CHANNELS)
    return (tl.program_id(0) // blocks).to(tl.int64), channel, inside


@triton.jit(do_not_specialize=_SMALL)
def finish_statistics(parts, weight, bias, shift, slope, table, CELLS, PER_CHUNK, CHUNKS, LINES, CHANNELS, WIDTH,
                      SLOPE_STEP, EPSILON: tl.constexpr, GROUPED: tl.constexpr, ROWS: tl.constexpr,
                      COLUMNS: tl.constexpr):  # fmt: skip
    """The table of the channels of a block, from so many lines of parts; of a group all channels share mean and rate.

    `shift` was to be added to x before: that moves the mean and nothing else.
    """
    image, channel, inside = _columns(CHANNELS, WIDTH, COLUMNS)
    kind = table.dtype.element_ty
    parts += image * LINES * 2 * CHANNELS + channel[None, :]
    total, count = tl.zeros((ROWS, COLUMNS), kind), tl.zeros((ROWS, COLUMNS), kind)
    for start in range(0, LINES, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        here = (row < LINES) & inside[None, :]
        cells = tl.where(here, _counted(row, CELLS, PER_CHUNK, CHUNKS), 0).to(kind)
        count += cells
        total += cells * tl.load(parts + row.to(tl.int64) * 2 * CHANNELS, here, 0.0)
    total, count = tl.sum(total, 0), tl.sum(count, 0)
    if GROUPED:
        total, count = tl.sum(total, 0) + tl.zeros_like(total), tl.sum(count, 0) + tl.zeros_like(count)
    mean = total / tl.maximum(count, 1.0)
    spread = tl.zeros((ROWS, COLUMNS), kind)
    for start in range(0, LINES, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        here = (row < LINES) & inside[None, :]
        cells = tl.where(here, _counted(row, CELLS, PER_CHUNK, CHUNKS), 0).to(kind)
        place = parts + row.to(tl.int64) * 2 * CHANNELS
        away = tl.where(here, tl.load(place, here, 0.0) - mean[None, :], 0.0)
        spread += tl.load(place + CHANNELS, here, 0.0) + cells * away * away
    spread = tl.sum(spread, 0)
    if GROUPED:
        spread = tl.sum(spread, 0) + tl.zeros_like(spread)
    variance = spread / tl.maximum(count, 1.0)
    added = tl.load(shift + channel, inside, 0.0).to(kind)
    table += image * FIELDS * CHANNELS + channel
    tl.store(table + CENTRE * CHANNELS, mean + 0.0 * added, inside)
    tl.store(table + RATE * CHANNELS, 1.0 / tl.sqrt(variance + EPSILON), inside)
    tl.store(table + WEIGHT * CHANNELS, tl.load(weight + channel, inside, 0.0).to(kind), inside)
    tl.store(table + BIAS * CHANNELS, tl.load(bias + channel, inside, 0.0).to(kind), inside)
    tl.store(table + SLOPE * CHANNELS, tl.load(slope + channel * SLOPE_STEP, inside, 0.0).to(kind), inside)
    tl.store(table + MEAN * CHANNELS, mean + added, inside)
    tl.store(table + VARIANCE * CHANNELS, variance, inside)


@triton.jit(do_not_specialize=_SMALL)
def stated_statistics(mean, variance, weight, bias, shift, slope, table, CHANNELS, SLOPE_STEP,
                      EPSILON: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    """The table of a block of channels whose mean and variance are given."""
    channel = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = channel < CHANNELS
    kind = table.dtype.element_ty
    middle, spread = tl.load(mean + channel, inside, 0.0).to(kind), tl.load(variance + channel, inside, 0.0).to(kind)
    table += channel
    tl.store(table + CENTRE * CHANNELS, middle - tl.load(shift + channel, inside, 0.0).to(kind), inside)
    tl.store(table + RATE * CHANNELS, 1.0 / tl.sqrt(spread + EPSILON), inside)
    tl.store(table + WEIGHT * CHANNELS, tl.load(weight + channel, inside, 0.0).to(kind), inside)
    tl.store(table + BIAS * CHANNELS, tl.load(bias + channel, inside, 0.0).to(kind), inside)
    tl.store(table + SLOPE * CHANNELS, tl.load(slope + channel * SLOPE_STEP, inside, 0.0).to(kind), inside)
    tl.store(table + MEAN * CHANNELS, middle, inside)
    tl.store(table + VARIANCE * CHANNELS, spread, inside)


@triton.jit(do_not_specialize=_SMALL)
def apply(x, table, y, CELLS, PER_CHUNK, CHUNKS, CHANNELS, CELL_STEP, CHANNEL_STEP, TABLE_STEP,
          ACTIVATION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    """The normalised and activated numbers of a tile."""
    image, _, begin, channel = _own(PER_CHUNK, CHUNKS, CHANNELS, COLUMNS)
    line = image * TABLE_STEP
    kind = table.dtype.element_ty
    cell = begin + tl.arange(0, ROWS)[:, None]
    here = (cell < CELLS) & (channel < CHANNELS)[None, :]
    place = image * CELLS * CHANNELS + channel[None, :].to(tl.int64) * CHANNEL_STEP + cell * CELL_STEP
    value = tl.load(x + place, here, 0.0).to(kind)
    centre, rate = _field(table, line, CENTRE, channel, CHANNELS), _field(table, line, RATE, channel, CHANNELS)
    weight, bias = _field(table, line, WEIGHT, channel, CHANNELS), _field(table, line, BIAS, channel, CHANNELS)
    z = (value - centre) * rate * weight + bias
    z = _activated(z, _field(table, line, SLOPE, channel, CHANNELS), ACTIVATION)
    tl.store(y + place, z.to(y.dtype.element_ty), here)


@triton.jit(do_not_specialize=_SMALL)
def sums(x, dy, table, parts, CELLS, PER_CHUNK, CHUNKS, CHANNELS, CELL_STEP, CHANNEL_STEP, TABLE_STEP,
         ACTIVATION: tl.constexpr, SLOPED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    """Per chunk and channel: sums of the gradient g before the activation, of g * normalised, and what a slope gets."""
    image, chunk, begin, channel = _own(PER_CHUNK, CHUNKS, CHANNELS, COLUMNS)
    line = image * TABLE_STEP
    kind = table.dtype.element_ty
    inside = (channel < CHANNELS)[None, :]
    centre, rate = _field(table, line, CENTRE, channel, CHANNELS), _field(table, line, RATE, channel, CHANNELS)
    weight, bias = _field(table, line, WEIGHT, channel, CHANNELS), _field(table, line, BIAS, channel, CHANNELS)
    slope = _field(table, line, SLOPE, channel, CHANNELS)
    first = image * CELLS * CHANNELS + channel[None, :].to(tl.int64) * CHANNEL_STEP
    plain, along = tl.zeros((ROWS, COLUMNS), kind), tl.zeros((ROWS, COLUMNS), kind)
    below = tl.zeros((ROWS, COLUMNS), kind)
    for start in range(begin, tl.minimum(begin + PER_CHUNK, CELLS), ROWS):
        cell = start + tl.arange(0, ROWS)[:, None]
        here = (cell < CELLS) & inside
        place = first + cell * CELL_STEP
        normal = (tl.load(x + place, here, 0.0).to(kind) - centre) * rate
        z, came = normal * weight + bias, tl.load(dy + place, here, 0.0).to(kind)
        grad = _through(z, came, slope, ACTIVATION)
        plain += tl.where(here, grad, 0.0)
        along += tl.where(here, grad * normal, 0.0)
        if SLOPED:
            below += tl.where(here & (z <= 0), came * z, 0.0)
    place = parts + (image * CHUNKS + chunk) * 3 * CHANNELS + channel
    tl.store(place, tl.sum(plain, 0), channel < CHANNELS)
    tl.store(place + CHANNELS, tl.sum(along, 0), channel < CHANNELS)
    if SLOPED:
        tl.store(place + 2 * CHANNELS, tl.sum(below, 0), channel < CHANNELS)


@triton.jit(do_not_specialize=_SMALL)
def finish_sums(parts, table, levels, gradients, CELLS, LINES, IMAGES, CHANNELS, WIDTH, TABLE_STEP,
                GROUPED: tl.constexpr, SLOPED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    """The gradients of bias, weight and slope, and per image what mean and variance take from the gradient of x.

    CELLS are those that the statistics of a channel were made of.
    """
    _, channel, inside = _columns(CHANNELS, WIDTH, COLUMNS)
    kind = table.dtype.element_ty
    bias, weight, slope = tl.zeros((COLUMNS,), kind), tl.zeros((COLUMNS,), kind), tl.zeros((COLUMNS,), kind)
    for image in range(IMAGES):
        plain, along = tl.zeros((ROWS, COLUMNS), kind), tl.zeros((ROWS, COLUMNS), kind)
        below = tl.zeros((ROWS, COLUMNS), kind)
        for start in range(0, LINES, ROWS):
            row = start + tl.arange(0, ROWS)[:, None]
            here = (row < LINES) & inside[None, :]
            place = parts + (image * LINES + row).to(tl.int64) * 3 * CHANNELS + channel[None, :]
            plain += tl.load(place, here, 0.0)
            along += tl.load(place + CHANNELS, here, 0.0)
            if SLOPED:
                below += tl.load(place + 2 * CHANNELS, here, 0.0)
        level, tilt = tl.sum(plain, 0), tl.sum(along, 0)
        bias += level
        weight += tilt
        slope += tl.sum(below, 0)
        factor = tl.load(table + (image * TABLE_STEP * FIELDS + WEIGHT) * CHANNELS + channel, inside, 0.0)
        level, tilt = factor * level / CELLS, factor * tilt / CELLS
        if GROUPED:
            level = tl.sum(level, 0) / WIDTH + tl.zeros_like(level)
            tilt = tl.sum(tilt, 0) / WIDTH + tl.zeros_like(tilt)
        tl.store(levels + image * 2 * CHANNELS + channel, level, inside)
        tl.store(levels + (image * 2 + 1) * CHANNELS + channel, tilt, inside)
    tl.store(gradients + channel, bias, inside)
    tl.store(gradients + CHANNELS + channel, weight, inside)
    tl.store(gradients + 2 * CHANNELS + channel, slope, inside)


@triton.jit(do_not_specialize=_SMALL)
def apply_back(x, dy, table, levels, dx, CELLS, PER_CHUNK, CHUNKS, CHANNELS, CELL_STEP, CHANNEL_STEP, TABLE_STEP,
               ACTIVATION: tl.constexpr, STATED: tl.constexpr, ROWS: tl.constexpr,
               COLUMNS: tl.constexpr):  # fmt: skip
    """The gradient of x in a tile."""
    image, _, begin, channel = _own(PER_CHUNK, CHUNKS, CHANNELS, COLUMNS)
    line = image * TABLE_STEP
    kind = table.dtype.element_ty
    cell = begin + tl.arange(0, ROWS)[:, None]
    here = (cell < CELLS) & (channel < CHANNELS)[None, :]
    place = image * CELLS * CHANNELS + channel[None, :].to(tl.int64) * CHANNEL_STEP + cell * CELL_STEP
    centre, rate = _field(table, line, CENTRE, channel, CHANNELS), _field(table, line, RATE, channel, CHANNELS)
    weight, bias = _field(table, line, WEIGHT, channel, CHANNELS), _field(table, line, BIAS, channel, CHANNELS)
    normal = (tl.load(x + place, here, 0.0).to(kind) - centre) * rate
    came = tl.load(dy + place, here, 0.0).to(kind)
    grad = _through(normal * weight + bias, came, _field(table, line, SLOPE, channel, CHANNELS), ACTIVATION)
    made = weight * grad
    if not STATED:
        at = levels + line * 2 * CHANNELS + channel
        level = tl.load(at, channel < CHANNELS, 0.0)[None, :]
        tilt = tl.load(at + CHANNELS, channel < CHANNELS, 0.0)[None, :]
        made = made - level - normal * tilt
    tl.store(dx + place, (made * rate).to(dx.dtype.element_ty), here)
