# SPDX-License-Identifier: Apache-2.0
"""Crops, colours and boxes of images."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, integer, integers, moved_to, to_numpy
from voxgrad.kernels.arraywise.random import generator, singles

Values = Any


# Crops


def _places(run: Run, boxes: Values, places: Values, sizes: tuple[int, ...]) -> None:
    bad = (places < 0) | (places >= sizes[0])
    if bad.any():
        run.fail("box_ind", wanted=f"be in [0, {sizes[0]})", got=int(places[bad][0]))
    if not np.isfinite(boxes).all():
        run.fail("boxes", wanted="be finite", got="a number that is not")


def _sampled(low: Values, high: Values, old: int, new: int) -> tuple[Values, Values]:
    """Where the cells of each crop lie along one axis, and which lie inside: [boxes, new]."""
    last = np.float32(old - 1)
    if new > 1:
        step = (high - low) * last / np.float32(new - 1)
        at = (low * last)[:, None] + np.arange(new, dtype=np.float32) * step[:, None]
    else:
        at = (0.5 * (low + high) * np.float64(old - 1)).astype(np.float32)[:, None]
    inside = (at >= 0) & (at <= last)
    return np.where(inside, at, np.float32(0)), inside


class _Crops:
    """The four cells around every cell of every crop, with their weights."""

    def __init__(self, boxes: Values, sizes: tuple[int, ...], crop: tuple[int, ...]):
        self.y, rows = _sampled(boxes[:, 0], boxes[:, 2], sizes[0], crop[0])
        self.x, columns = _sampled(boxes[:, 1], boxes[:, 3], sizes[1], crop[1])
        self.inside = rows[:, :, None] & columns[:, None, :]

    def rows(self, nearest: bool) -> list[tuple[Values, Values]]:
        """Cells and weights along the height: [boxes, height, 1]."""
        return [(cell[:, :, None], weight[:, :, None, None]) for cell, weight in _around(self.y, nearest)]

    def columns(self, nearest: bool) -> list[tuple[Values, Values]]:
        """Cells and weights along the width: [boxes, 1, width]."""
        return [(cell[:, None, :], weight[:, None, :, None]) for cell, weight in _around(self.x, nearest)]


def _around(at: Values, nearest: bool) -> list[tuple[Values, Values]]:
    if nearest:
        return [(np.floor(at + np.float32(0.5)).astype(np.int64), np.ones_like(at))]
    low, part = np.floor(at), at - np.floor(at)
    return [(low.astype(np.int64), np.float32(1) - part), (np.ceil(at).astype(np.int64), part)]


@kernel()
def crop(run: Run, image: Array, boxes: Array, places: Array, size: Array) -> Array:
    """Boxes cut out of images, all in one size."""
    data, corners, which = to_numpy(image), to_numpy(boxes), to_numpy(places)
    _places(run, corners, which, data.shape)
    crops, near = _Crops(corners, data.shape[1:3], tuple(integers(size))), run.attrs["method"] == "nearest"
    chosen = which[:, None, None]
    lines = []
    for rows, _ in crops.rows(near):
        ends = [data[chosen, rows, columns].astype(np.float32) for columns, _ in crops.columns(near)]
        lines.append(ends[0] if near else ends[0] + (ends[1] - ends[0]) * crops.columns(near)[1][1])
    made = lines[0] if near else lines[0] + (lines[1] - lines[0]) * crops.rows(near)[1][1]
    outside = np.float32(run.attrs["extrapolation_value"])
    return moved_to(np.where(crops.inside[..., None], made, outside), image)


@kernel()
def crop_image_grad(run: Run, grads: Array, boxes: Array, places: Array, size: Array) -> Array:
    """Gradients of crops at the cells that they were taken from."""
    slopes, corners, which, shape = to_numpy(grads), to_numpy(boxes), to_numpy(places), tuple(integers(size))
    _places(run, corners, which, shape)
    crops, near = _Crops(corners, shape[1:3], slopes.shape[1:3]), run.attrs["method"] == "nearest"
    made = np.zeros(shape, np.float64)
    kept = np.where(crops.inside[..., None], slopes, np.float32(0))
    for rows, down in crops.rows(near):
        for columns, across in crops.columns(near):
            np.add.at(made, (which[:, None, None], rows, columns), kept * down * across)
    return run.make(made, run.attrs["T"])


@kernel()
def crop_boxes_grad(run: Run, grads: Array, image: Array, boxes: Array, places: Array) -> Array:
    """What a small shift of each corner changes."""
    slopes, data, corners, which = (to_numpy(one) for one in (grads, image, boxes, places))
    _places(run, corners, which, data.shape)
    crops, sizes = _Crops(corners, data.shape[1:3], slopes.shape[1:3]), slopes.shape[1:3]
    cells = [[data[which[:, None, None], rows, columns].astype(np.float64) for columns, _ in crops.columns(False)]
             for rows, _ in crops.rows(False)]  # fmt: skip
    (up, down), (left, right) = ([weight for _, weight in axis] for axis in (crops.rows(False), crops.columns(False)))
    along_y = left * (cells[1][0] - cells[0][0]) + right * (cells[1][1] - cells[0][1])
    along_x = up * (cells[0][1] - cells[0][0]) + down * (cells[1][1] - cells[1][0])
    kept = np.where(crops.inside[..., None], slopes, np.float32(0)).astype(np.float64)
    made = []
    for slope, axis in ((along_y, 0), (along_x, 1)):
        total = (kept * slope).sum(axis=(3, 2 - axis))
        last, new = data.shape[1 + axis] - 1, sizes[axis]
        second = np.arange(new) * (last / (new - 1)) if new > 1 else np.full(1, last / 2)
        made.append((total @ (last - second), total @ second))
    return moved_to(np.stack([made[0][0], made[1][0], made[0][1], made[1][1]], 1).astype(np.float32), grads)


@kernel()
def glimpse(run: Run, images: Array, size: Array, offsets: Array) -> Array:
    """A window of each image, on noise."""
    data, (height, width), places = to_numpy(images), integers(size), to_numpy(offsets)
    made = np.empty((len(data), height, width, data.shape[3]), np.float32)
    for image, at, out in zip(data, places, made, strict=True):
        first = [_first(run, float(one), old, new) for one, old, new in zip(at, data.shape[1:3], (height, width),
                                                                            strict=True)]  # fmt: skip
        begin = [max(0, -one) for one in first]
        end = [max(0, min(new, old - one)) for one, old, new in zip(first, data.shape[1:3], (height, width),
                                                                   strict=True)]  # fmt: skip
        whole = all(low == 0 and high == new for low, high, new in zip(begin, end, (height, width), strict=True))
        out[...] = 0 if whole else _noise(run, image, out.shape)
        if all(low < high for low, high in zip(begin, end, strict=True)):
            rows, columns = (slice(low, high) for low, high in zip(begin, end, strict=True))
            from_rows, from_columns = (slice(low + one, high + one)
                                       for low, high, one in zip(begin, end, first, strict=True))  # fmt: skip
            out[rows, columns] = image[from_rows, from_columns]
    return moved_to(made, images)


def _first(run: Run, at: float, old: int, new: int) -> int:
    """The first cell of a window along an axis; fractions are cut off."""
    place, half = np.float32(at), np.float32(2)
    if run.attrs["normalized"]:
        place = place * np.float32(old)
    if run.attrs["centered"]:
        place = place / half + np.float32(old) / half
    place = place - np.float32(new) / half
    if not abs(place) < 2**31:
        run.fail("offsets", wanted="lie near the image", got=at)
    return int(place)


def _noise(run: Run, image: Values, shape: tuple[int, ...]) -> Values | float:
    kind, rng = run.attrs["noise"], np.random.default_rng(0)
    if kind == "zero":
        return 0.0
    if not image.size:
        return np.nan  # there is no number between those of nothing
    if kind == "uniform":
        return image.min() + rng.random(shape, np.float32) * (image.max() - image.min())
    over = (0, 1)
    made = image.mean(over) + rng.standard_normal(shape, np.float32) * image.std(over)
    return np.clip(made, image.min(over), image.max(over))


# Boxes


def _uniform(words: list[int], below: int) -> int:
    return words.pop(0) % below


def _random_crop(words: list[int], height: int, width: int, aspect: Any, areas: tuple[Any, Any]) -> Any:
    """A part of this width over height whose area is in a range, or None."""
    single = np.float32
    least, most = (single(single(one * single(width)) * single(height)) for one in areas)
    if width <= 0 or height <= 0 or areas[0] > areas[1]:
        return None
    low, high = (int(np.rint(np.sqrt(area / aspect))) for area in (least, most))
    if np.rint(single(high) * aspect) > width:
        high = int((width + 0.5 - float(single(0.0000001))) / float(aspect))
        high -= int(np.rint(single(high) * aspect) > width)
    high = min(high, height)
    rows = min(low, high)
    if rows < high:
        rows += _uniform(words, high - rows + 1)
    columns = int(np.rint(single(rows) * aspect))
    for step in (1, -1):
        area = single(columns * rows)
        if area < least if step > 0 else area > most:
            rows += step
            columns = int(np.rint(single(rows) * aspect))
    fits = 0 < rows <= height and 0 < columns <= width
    if not fits or single(columns * rows) < least or single(columns * rows) > most:
        return None
    y = _uniform(words, height - rows) if rows < height else 0
    x = _uniform(words, width - columns) if columns < width else 0
    return y, x, y + rows, x + columns


def _area(box: Any) -> Any:
    return np.float32((box[2] - box[0]) * (box[3] - box[1]))


def _covers(part: Any, least: Any, boxes: Values) -> bool:
    if _area(part) < 1:
        return False
    for box in boxes.tolist():
        common = (max(part[0], box[0]), max(part[1], box[1]), min(part[2], box[2]), min(part[3], box[3]))
        shared = np.float32(0) if common[0] > common[2] or common[1] > common[3] else _area(common)
        if _area(box) >= 1 and shared / _area(box) >= least:
            return True
    return False


@kernel()
def sample_box(run: Run, image_size: Array, boxes: Array, covered: Array | None = None) -> tuple[Array, ...]:
    """A random part of an image that covers enough of a box; TensorFlow's own for its seeds."""
    (height, width), corners = integers(image_size)[:2], to_numpy(boxes).reshape(-1, 4)
    least = np.float32(run.attrs["min_object_covered"] if covered is None else to_numpy(covered).item())
    if not least >= 0:
        run.fail("min_object_covered", wanted="be 0 or more", got=float(least))
    if not all(0 <= size < 2**31 - 1 for size in (height, width)):
        run.fail("image_size", wanted="be 0 or more, below 2**31 - 1", got=[height, width])
    if not ((corners >= 0) & (corners <= 1)).all():
        run.fail("bounding_boxes", wanted="be in [0, 1]", got="other numbers")
    if not len(corners) and not run.attrs["use_image_if_no_bounding_boxes"]:
        remedy = "Set use_image_if_no_bounding_boxes, or give a box."
        run.fail("bounding_boxes", wanted="hold a box", got="none", remedy=remedy)
    objects = (corners * np.array([height, width] * 2, np.float32)).astype(np.int32)
    objects = objects if len(objects) else np.array([[0, 0, height, width]])
    attempts = run.attrs["max_attempts"]
    source = generator(run)
    part, group = None, 0
    low, high = (np.float32(one) for one in run.attrs["aspect_ratio_range"])
    areas = np.float32(run.attrs["area_range"][0]), np.float32(run.attrs["area_range"][1])
    words: list[int] = []
    start = source.at
    source.at += attempts
    for _ in range(attempts):
        if len(words) < 4:
            words += source.peek(start + group, 64).reshape(-1).tolist()
            group += 64
        aspect = singles(np.array([words.pop(0)], np.uint32))[0] * (high - low) + low
        made = _random_crop(words, height, width, aspect, areas)
        if made is not None and _covers(made, least, objects):
            part = made
            break
    top, left, bottom, right = part or (0, 0, height, width)
    kind = to_numpy(image_size).dtype
    begin, size = np.array([top, left, 0]).astype(kind), np.array([bottom - top, right - left, -1]).astype(kind)
    box = np.array([top, left, bottom, right], np.float32) / np.array([height, width] * 2, np.float32)
    return moved_to(begin, image_size), moved_to(size, image_size), moved_to(box.reshape(1, 1, 4), boxes)


_TABLE = ((1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1), (0.5, 0.5, 0, 1), (0.5, 0, 0, 1),
          (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1))  # fmt: skip
"""Red, green, blue and opacity of the first box, the second and so on."""


@kernel()
def draw_boxes(run: Run, images: Array, boxes: Array) -> Array:
    """Outlines of boxes on a copy of the images."""
    made, corners = to_numpy(images).copy(), to_numpy(boxes)
    _, height, width, depth = made.shape
    table = np.ones((1, 1)) if depth == 1 else np.array(_TABLE)[:, :depth]
    if not np.isfinite(corners).all():
        run.fail("boxes", wanted="be finite", got="a number that is not")
    last = np.array([height - 1, width - 1] * 2, np.float32)
    for image, all_corners in zip(
        made, np.clip(np.trunc(corners * last), -(2**62), 2**62).astype(np.int64), strict=True
    ):
        for number, (top, left, bottom, right) in enumerate(all_corners.tolist()):
            if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
                continue
            colour = table[number % len(table)].astype(made.dtype)
            rows, columns = (
                slice(max(top, 0), min(bottom, height - 1) + 1),
                slice(max(left, 0), min(right, width - 1) + 1),
            )
            for row in (top, bottom):
                if 0 <= row < height:
                    image[row, columns] = colour
            for column in (left, right):
                if 0 <= column < width:
                    image[rows, column] = colour
    return moved_to(made, images)


def _overlaps(box: Values, others: Values, limit: Any) -> bool:
    """Whether a box shares more than this part of the joint area with one of others."""

    def area(one: Values) -> Values:
        return (one[:, 2] - one[:, 0]) * (one[:, 3] - one[:, 1])

    mine, theirs = area(box[None]), area(others)
    common = np.concatenate([np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])], 1)
    shared = np.maximum(common[:, 2] - common[:, 0], 0) * np.maximum(common[:, 3] - common[:, 1], 0)
    ratio = np.where((mine > 0) & (theirs > 0), shared / (mine + theirs - shared), np.float32(0))
    return bool((ratio > limit).any())


@kernel()
def suppress(run: Run, boxes: Array, scores: Array, count: Array) -> Array:
    """The best boxes, without those that overlap a better one too much."""
    corners, worth, most = to_numpy(boxes), to_numpy(scores), integer(count)
    if most < 0:
        run.fail("max_output_size", wanted="be 0 or more", got=most)
    ordered = np.concatenate(
        [np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1
    )
    waiting = [(-float(score), place) for place, score in enumerate(worth) if score > np.finfo(np.float32).min]
    heapq.heapify(waiting)
    kept: list[int] = []
    limit = np.float32(run.attrs["iou_threshold"])
    while waiting and len(kept) < most:
        place = heapq.heappop(waiting)[1]
        if not kept or not _overlaps(ordered[place], ordered[kept], limit):
            kept.append(place)
    return moved_to(np.array(kept, np.int32), boxes)


# Colours


def _stacked(*channels: Values) -> Values:
    return np.stack(channels, axis=-1)


def _hsv(data: Values) -> tuple[Values, Values, Values]:
    red, green, blue = (data[..., channel] for channel in range(3))
    high, low = data.max(-1), data.min(-1)
    span, kind = high - low, data.dtype.type
    saturation = np.where(high > 0, span / high, kind(0))
    norm = kind(1) / span * kind(1 / 6)

    def sixth(one: Values, other: Values) -> Values:
        """Of a span below the smallest normal number there is no reciprocal."""
        return np.where(np.isinf(norm), (one - other) / span * kind(1 / 6), norm * (one - other))

    hue = np.where(red == high, sixth(green, blue), np.where(
        green == high, sixth(blue, red) + kind(2 / 6), sixth(red, green) + kind(4 / 6)))  # fmt: skip
    hue = np.where(span > 0, hue, kind(0))
    return np.where(hue < 0, hue + kind(1), hue), saturation, high


@kernel(widen=True)
def rgb_to_hsv(run: Run, images: Array) -> Array:
    """Hue, saturation and value."""
    return moved_to(_stacked(*_hsv(to_numpy(images))), images)


@kernel(widen=True)
def hsv_to_rgb(run: Run, images: Array) -> Array:
    """Red, green and blue."""
    data = to_numpy(images)
    hue, saturation, value = (data[..., channel] for channel in range(3))
    turn = hue * data.dtype.type(6)
    shares = (np.abs(turn - 3) - 1, 2 - np.abs(turn - 2), 2 - np.abs(turn - 4))
    made = _stacked(*((1 - saturation + saturation * np.clip(share, 0, 1)) * value for share in shares))
    return moved_to(made.astype(data.dtype), images)


_ORDER = ((0, 1, 2), (1, 0, 2), (2, 0, 1), (2, 1, 0), (1, 2, 0), (0, 2, 1))
"""By sixth of the circle: which of largest, middle and smallest red, green and blue are."""


@kernel(widen=True)
def adjust_hue(run: Run, images: Array, delta: Array) -> Array:
    """Colours turned around the circle of hues."""
    data, turn = to_numpy(images), np.float32(to_numpy(delta).item()) * np.float32(6)
    ordered = np.sort(data, axis=-1)
    low, middle, high = (ordered[..., place] for place in range(3))
    red, green, blue = (data[..., channel] for channel in range(3))
    sixth = np.where(red < green, np.where(blue < red, 1, np.where(blue > green, 3, 2)),
                     np.where(blue < green, 0, np.where(blue > red, 4, 5)))  # fmt: skip
    ratio = (middle - low) / (high - low)
    hue = np.where(high == low, np.float32(0), sixth.astype(np.float32) + np.where(sixth % 2 == 0, ratio, 1 - ratio))
    hue = hue + turn
    hue = np.where((hue < 0) | (hue >= 6), hue - np.float32(6) * np.floor(hue / np.float32(6)), hue).astype(np.float32)
    category = np.clip(np.nan_to_num(np.floor(hue)), 0, 5).astype(np.int64)
    part = hue - category.astype(np.float32)
    middle = low + np.where(category % 2 == 0, part, 1 - part) * (high - low)
    parts = _stacked(high, middle, low)
    return moved_to(np.take_along_axis(parts, np.array(_ORDER)[category], -1).astype(data.dtype), images)


@kernel(widen=True)
def adjust_saturation(run: Run, images: Array, scale: Array) -> Array:
    """Colours with their saturation multiplied."""
    data, kind = to_numpy(images), np.float32
    hue, saturation, value = _hsv(data)
    strong = np.minimum(kind(1), np.maximum(kind(0), saturation * kind(to_numpy(scale).item())))
    chroma = strong * value
    rest, turn = value - chroma, hue * kind(6)
    second = chroma * (1 - np.abs(np.fmod(turn, 2) - 1))
    category = np.clip(np.nan_to_num(np.floor(turn)), 0, 5).astype(np.int64)
    parts = _stacked(chroma, second, np.zeros_like(chroma))
    return moved_to((np.take_along_axis(parts, np.array(_ORDER)[category], -1) + rest[..., None]).astype(data.dtype),
                    images)  # fmt: skip


@kernel(widen=True)
def adjust_contrast(
    run: Run, images: Array, factor: Array, low: Array | None = None, high: Array | None = None
) -> Array:
    """Each channel spread around its mean."""
    data, times = to_numpy(images).astype(np.float32), np.float32(to_numpy(factor).item())
    if not data.size:
        return moved_to(data, images)
    mean = data.mean(axis=(-3, -2), keepdims=True, dtype=np.float64).astype(np.float32)
    made = (data - mean) * times + mean
    if low is not None:
        made = np.maximum(np.minimum(made, to_numpy(high)), to_numpy(low))
    return moved_to(made, images)
