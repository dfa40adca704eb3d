# SPDX-License-Identifier: Apache-2.0
"""PNG files: read into channels of 8 or 16 bits, and written."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Any
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOUR, _PALETTE, _GREY_ALPHA, _COLOUR_ALPHA = 0, 2, 3, 4, 6
_CHANNELS = {_GREY: 1, _COLOUR: 3, _PALETTE: 1, _GREY_ALPHA: 2, _COLOUR_ALPHA: 4}
_DEPTHS = {_GREY: (1, 2, 4, 8, 16), _PALETTE: (1, 2, 4, 8)}
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
"""First row and column, and steps, of the seven passes of an interlaced picture."""


@dataclass(slots=True)
class Png:
    """What a file says of its picture."""

    width: int
    height: int
    depth: int
    kind: int
    interlaced: bool
    palette: Values | None = None
    clear: bytes | None = None
    packed: bytes = b""

    @property
    def channels(self) -> int:
        """The channels of the result where nobody asks for others."""
        return (3 if self.clear is None else 4) if self.kind == _PALETTE else _CHANNELS[self.kind]


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        (size,), name = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body, check = data[at + 8 : at + 8 + size], data[at + 8 + size : at + 12 + size]
        critical = name[:1].isupper()
        if len(check) < 4 or (critical and zlib.crc32(name + body) != struct.unpack(">I", check)[0]):
            raise ValueError("a part of the file is missing or damaged")
        yield name, body
        at += 12 + size
        if name == b"IEND":
            return
    raise ValueError("the file ends early")


def read_header(data: bytes) -> Png:
    """Sizes, kind and packed pixels. Raises ValueError for what is no PNG file."""
    found: Png | None = None
    packed = []
    for name, body in _chunks(data):
        if found is None:
            if name != b"IHDR" or len(body) != 13:
                raise ValueError("the file has no header")
            width, height, depth, kind, method, filters, interlace = struct.unpack(">IIBBBBB", body)
            fine = kind in _CHANNELS and depth in _DEPTHS.get(kind, (8, 16)) and interlace in (0, 1)
            if not fine or not 0 < width < 2**27 or not 0 < height < 2**27 or method or filters:
                raise ValueError("the header is not one of a PNG file")
            found = Png(width, height, depth, kind, interlace == 1)
        elif name == b"PLTE" and len(body) % 3 == 0:
            found.palette = np.frombuffer(body, np.uint8).reshape(-1, 3)
        elif name == b"tRNS" and found.kind in (_GREY, _COLOUR, _PALETTE):
            found.clear = body
        elif name == b"IDAT":
            packed.append(body)
    if found is None or not packed or (found.kind == _PALETTE and found.palette is None):
        raise ValueError("the file has no picture")
    found.packed = b"".join(packed)
    return found


def read_pixels(png: Png, channels: int, wide: bool) -> Values:
    """The picture in so many channels, as uint16 where `wide`, else as uint8."""
    samples = _samples(png)
    alpha = None
    if png.kind == _PALETTE:
        assert png.palette is not None
        places = samples[..., 0]
        if int(places.max()) >= len(png.palette):
            raise ValueError("a colour is not in the palette")
        if png.clear is not None:
            table = np.full(256, 255, np.uint16)
            table[: len(png.clear)] = np.frombuffer(png.clear[:256], np.uint8)
            alpha = table[places][..., None]
        samples = png.palette[places].astype(np.uint16)
    elif png.kind in (_GREY_ALPHA, _COLOUR_ALPHA):
        samples, alpha = samples[..., :-1], samples[..., -1:]
    elif png.clear is not None and len(png.clear) >= 2 * samples.shape[-1]:
        key = np.frombuffer(png.clear[: 2 * samples.shape[-1]], ">u2")
        alpha = np.where((samples == key).all(-1, keepdims=True), 0, 2**png.depth - 1)
    bits = 8 if png.kind == _PALETTE else png.depth
    if channels < 3 and samples.shape[-1] == 3:
        samples = _grey(samples, bits)
    colours, clear = (None if one is None else _in_bytes(one, bits, wide) for one in (samples, alpha))
    made = _as_channels(colours, clear, channels)
    return made.astype(np.uint16) * 257 if wide and bits <= 8 else made


def _in_bytes(samples: Values, bits: int, wide: bool) -> Values:
    """Samples of 8 bits, or of all 16 that they have."""
    if bits == 16:
        return samples if wide else (samples >> 8).astype(np.uint8)
    return (samples * (255 // (2**bits - 1))).astype(np.uint8)


def _as_channels(colours: Any, alpha: Any, channels: int) -> Values:
    if channels >= 3 and colours.shape[-1] == 1:
        colours = np.repeat(colours, 3, axis=-1)
    if channels % 2:
        return np.ascontiguousarray(colours)
    if alpha is None:
        alpha = np.full((*colours.shape[:2], 1), np.iinfo(colours.dtype).max, colours.dtype)
    return np.concatenate([colours, alpha.astype(colours.dtype)], axis=-1)


def _grey(samples: Values, bits: int) -> Values:
    """Weights of ITU 601 in units of 1/32768, as libpng rounds them; of 16 bits the sum is rounded, of 8 it is cut."""
    parts = samples.astype(np.int64) @ np.array([9797, 19234, 3737])
    return ((parts + (16384 if bits == 16 else 0)) >> 15)[..., None].astype(samples.dtype)


def _samples(png: Png) -> Values:
    """All samples as numbers: [H, W, channels of the file]."""
    count = _CHANNELS[png.kind]
    parts = list(_parts(png))
    total = sum(rows * (1 + -(-columns * count * png.depth // 8)) for *_, rows, columns in parts)
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(png.packed, total)
    except zlib.error as error:
        raise ValueError(f"its pixels cannot be unpacked: {error}") from None
    if len(raw) < total:
        raise ValueError("it has fewer pixels than it says")
    made = np.zeros((png.height, png.width, count), np.uint16)
    at = 0
    for place, rows, columns in parts:
        line = -(-columns * count * png.depth // 8)
        block = np.frombuffer(raw, np.uint8, rows * (line + 1), at).reshape(rows, line + 1)
        at += block.size
        made[place] = _numbers(_unfiltered(block, max(1, count * png.depth // 8)), png.depth, columns, count)
    return made


def _parts(png: Png) -> Iterator[tuple[Any, int, int]]:
    """Which cells each pass holds, and how many rows and columns those are."""
    for top, left, down, across in _PASSES if png.interlaced else ((0, 0, 1, 1),):
        rows, columns = -(-(png.height - top) // down), -(-(png.width - left) // across)
        if rows > 0 and columns > 0:
            yield (slice(top, None, down), slice(left, None, across)), rows, columns


def _numbers(lines: Values, depth: int, columns: int, count: int) -> Values:
    if depth == 16:
        return lines.view(">u2").reshape(len(lines), columns, count)
    if depth < 8:
        shifts = np.arange(8 - depth, -1, -depth)
        lines = (lines[..., None] >> shifts & (2**depth - 1)).reshape(len(lines), -1)[:, : columns * count]
    return lines.reshape(len(lines), columns, count)


def _paeth(left: Values, up: Values, corner: Values) -> Values:
    guess = left + up - corner
    by_left, by_up, by_corner = (np.abs(guess - one) for one in (left, up, corner))
    return np.where((by_left <= by_up) & (by_left <= by_corner), left, np.where(by_up <= by_corner, up, corner))


_FILTERS: dict[int, Callable[[Values, Values, Values], Values]] = {
    1: lambda left, up, corner: left, 2: lambda left, up, corner: up, 3: lambda left, up, corner: (left + up) >> 1,
    4: _paeth,
}  # fmt: skip


def _unfiltered(block: Values, step: int) -> Values:
    """The bytes of lines that hold differences, each line in one of five ways.

    A byte needs those on its left and above: all bytes on a diagonal are worked out at once.
    """
    ways, rows = block[:, 0], len(block)
    if ways.max() > 4:
        raise ValueError("a line is filtered in no known way")
    if not ways.any():
        return block[:, 1:]
    cells = -(-(block.shape[1] - 1) // step)
    given = np.zeros((rows, cells * step), np.int16)
    given[:, : block.shape[1] - 1] = block[:, 1:]
    made = np.zeros((rows + 1, cells + 1, step), np.int16)
    given = given.reshape(rows, cells, step)
    for diagonal in range(rows + cells - 1):
        row = np.arange(max(0, diagonal - cells + 1), min(rows, diagonal + 1))
        cell = diagonal - row
        left, up, corner = made[row + 1, cell], made[row, cell + 1], made[row, cell]
        value = given[row, cell]
        for way, guess in _FILTERS.items():
            value = np.where((ways[row] == way)[:, None], value + guess(left, up, corner), value)
        made[row + 1, cell + 1] = value & 0xFF
    return made[1:, 1:].reshape(rows, -1)[:, : block.shape[1] - 1].astype(np.uint8)


def write(image: Values, compression: int) -> bytes:
    """A picture as a file."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    height, width, channels = image.shape
    kind = {1: _GREY, 2: _GREY_ALPHA, 3: _COLOUR, 4: _COLOUR_ALPHA}[channels]
    head = struct.pack(">IIBBBBB", width, height, 8 * image.itemsize, kind, 0, 0, 0)
    lines = np.ascontiguousarray(image.astype(image.dtype.newbyteorder(">"))).view(np.uint8).reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), lines], axis=1).tobytes()
    return SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, compression)) + chunk(b"IEND", b"")
