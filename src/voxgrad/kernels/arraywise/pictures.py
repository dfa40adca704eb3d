# SPDX-License-Identifier: Apache-2.0
"""Pictures in files: PNG and BMP are read here, JPEG and GIF by Pillow."""

from __future__ import annotations

import io
import struct
from typing import Any, NoReturn

import numpy as np

from voxgrad.errors import VoxgradError
from voxgrad.kernels.arraywise import png
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, moved_to, to_numpy
from voxgrad.loading import LOADING

Values = Any
_BEGINS = {"PNG": png.SIGNATURE, "JPEG": b"\xff\xd8\xff", "GIF": b"GIF8", "BMP": b"BM"}


def _bad(run: Run, why: object) -> NoReturn:
    run.fail("contents", wanted="be the bytes of a picture that can be read", got=str(why))


def _pillow(run: Run) -> Any:
    try:
        with LOADING:
            from PIL import Image
    except ImportError:
        remedy = "Install it: pip install 'voxgrad[images]'."
        run.fail("op", wanted="have Pillow for this format", got="no Pillow", code="VG032", remedy=remedy)
    return Image


def _opened(run: Run, data: bytes, kind: str) -> Any:
    try:
        return _pillow(run).open(io.BytesIO(data), formats=[kind])
    except (OSError, SyntaxError, ValueError, struct.error) as error:
        _bad(run, error)


def _format(run: Run, data: bytes) -> str:
    for name, begin in _BEGINS.items():
        if data.startswith(begin):
            return name
    _bad(run, "bytes that are none of PNG, JPEG, GIF or BMP")


def _room(run: Run, *shape: int) -> None:
    run.room("contents", shape, np.empty(0, np.uint16))


def _picture(run: Run, contents: Array, channels: int) -> Values:
    """A picture of whatever format: all but DecodeBmp read three of them."""
    data = to_numpy(contents).item()
    kind = _format(run, data)
    if kind == "BMP":
        _bad(run, "a BMP file: use DecodeBmp")
    if kind == "PNG":
        return _png(run, data, channels)
    if channels not in (taken := (0, 3) if kind == "GIF" else (0, 1, 3)):
        run.fail("channels", wanted=f"be one of {taken} for a {kind} file", got=channels, code="VG003")
    made = _jpeg(run, data, channels) if kind == "JPEG" else _gif(run, data)
    if made.ndim == 4 and len(made) > 1 and run.op.name != "DecodeGif":
        _bad(run, f"{len(made)} pictures: use DecodeGif")
    if run.attrs.get("dtype") is not None and run.attrs["dtype"].name == "uint16":
        made = made.astype(np.uint16) * 256
    return made if run.op.name == "DecodeGif" or made.ndim == 3 else made[0]


def _png(run: Run, data: bytes, channels: int) -> Values:
    wide = run.attrs.get("dtype") is not None and run.attrs["dtype"].name == "uint16"
    try:
        head = png.read_header(data)
    except ValueError as error:
        _bad(run, error)
    _room(run, head.height, head.width, 16)  # while lines are worked out, several copies exist
    try:
        return png.read_pixels(head, channels or head.channels, wide)
    except ValueError as error:
        _bad(run, error)


def _jpeg(run: Run, data: bytes, channels: int) -> Values:
    image, attrs = _opened(run, data, "JPEG"), run.attrs
    ratio = attrs.get("ratio", 1)
    _room(run, image.height, image.width, 4)
    cut = ValueError("a file that ends early")
    try:
        grey = (channels or len(image.getbands())) == 1
        if grey and image.mode != "L":
            image.draft("L", None)
        image.decoderconfig = (ratio, 0 if attrs.get("fancy_upscaling", True) else 1)
        if ratio > 1:
            _shrunk(image, ratio)
        _load(image, attrs.get("try_recover_truncated", False), attrs.get("acceptable_fraction", 1.0))
    except (OSError, SyntaxError, ValueError, struct.error):
        _bad(run, cut)
    pixels = np.asarray(image)
    if image.mode == "CMYK":
        bright = 255 - pixels.astype(np.int64)
        pixels = (bright[..., :3] * bright[..., 3:] // 255).astype(np.uint8)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if channels == 3 and pixels.shape[-1] == 1:
        pixels = np.repeat(pixels, 3, axis=-1)
    return pixels.copy()


def _shrunk(image: Any, ratio: int) -> None:
    """Have Pillow decode in a part of the size, as its draft mode does."""
    size = tuple(-(-one // ratio) for one in image.size)
    name, _, offset, arguments = image.tile[0]
    image.tile = [type(image.tile[0])(name, (0, 0, *size), offset, arguments)]
    image._size = size


def _load(image: Any, recover: bool, part: float) -> None:
    from PIL import ImageFile

    before = ImageFile.LOAD_TRUNCATED_IMAGES
    with LOADING:
        ImageFile.LOAD_TRUNCATED_IMAGES = recover and part < 1
        try:
            image.load()
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = before


def _gif(run: Run, data: bytes) -> Values:
    """The pictures in front of where a file ends early or can no longer be read; one at least."""
    image, whole = _opened(run, data, "GIF"), _whole_pictures(data)
    frames: list[Values] = []
    error: Exception = ValueError("a file that ends early")
    try:
        while len(frames) < whole:
            image.seek(len(frames))
            _room(run, len(frames) + 1, image.height, image.width, 3)
            frames.append(np.asarray(image.convert("RGB")))
    except VoxgradError:
        raise
    except (EOFError, IndexError, OSError, SyntaxError, ValueError, struct.error) as failure:
        error = failure
    if not frames:
        _bad(run, error)
    return np.stack(frames)


def _whole_pictures(data: bytes) -> int:
    """How many pictures of a GIF file are there to their last block."""

    def table(flags: int) -> int:
        return 3 << (flags % 8 + 1) if flags >= 128 else 0

    found = 0
    try:
        at = 13 + table(data[10])
        while data[at] in _BLOCKS:
            picture = data[at] == _BLOCKS[0]
            at += 11 + table(data[at + 9]) if picture else 2
            while data[at]:
                at += data[at] + 1
            at, found = at + 1, found + picture
    except IndexError:
        pass
    return found


_BLOCKS = b",!"
"""How a picture of a GIF file begins, and what else stands between pictures."""


@kernel()
def decode_png(run: Run, contents: Array) -> Array:
    """The picture of a file."""
    return moved_to(_picture(run, contents, run.attrs["channels"]), contents)


@kernel()
def decode_jpeg(run: Run, contents: Array) -> Array:
    """The picture of a file."""
    return moved_to(_picture(run, contents, run.attrs["channels"]), contents)


@kernel()
def decode_gif(run: Run, contents: Array) -> Array:
    """All pictures of a file."""
    made = _picture(run, contents, 3)
    return moved_to(made if made.ndim == 4 else made[None], contents)


@kernel()
def decode_bmp(run: Run, contents: Array) -> Array:
    """The picture of a file: lines of blue, green, red, padded to whole words, the lowest first."""
    data, channels = to_numpy(contents).item(), run.attrs["channels"]
    if _format(run, data) != "BMP" or len(data) < 32:
        _bad(run, "bytes that are no BMP file")
    begin, width, height, bits = (*struct.unpack("<i4xii", data[10:26]), struct.unpack("<h", data[28:30])[0])
    inside = bits // 8
    if width <= 0 or height == 0 or begin < 0 or inside not in (1, 3, 4) or channels == 1:
        _bad(run, f"{width} x {height} cells of {bits} bits, {channels or inside} channels wanted")
    line = -(-inside * width // 4) * 4
    if len(data) != begin + line * abs(height):
        _bad(run, f"{len(data)} bytes for {begin + line * abs(height)}")
    cells: Values = np.frombuffer(data, np.uint8, line * abs(height), begin).reshape(abs(height), line)
    cells = cells[:, : width * inside].reshape(abs(height), width, inside)
    cells = cells if height < 0 else cells[::-1]
    wanted = channels or inside
    _room(run, abs(height), width, wanted)
    made = np.full((abs(height), width, wanted), 255, np.uint8)
    if inside == 1:
        made[..., : min(3, wanted)] = cells
    else:
        made[..., :3] = cells[..., 2::-1]
        if inside == wanted == 4:
            made[..., 3] = cells[..., 3]
    return moved_to(made, contents)


@kernel()
def encode_png(run: Run, image: Array) -> Array:
    """The bytes of a file per picture."""
    pictures = to_numpy(image)
    outer = pictures.shape[:-3]
    made = np.empty(outer, object)
    for place in np.ndindex(outer):
        made[place] = png.write(pictures[place], run.attrs["compression"])
    return made


@kernel()
def encode_jpeg(run: Run, image: Array) -> bytes:
    """The bytes of a file."""
    pixels, attrs = to_numpy(image), run.attrs
    wanted = {"": pixels.shape[2], "grayscale": 1, "rgb": 3}[attrs["format"]]
    if wanted != pixels.shape[2]:
        run.fail("image", wanted=f"have {wanted} channels for format {attrs['format']!r}", got=pixels.shape[2],
                 code="VG013")  # fmt: skip
    more = {"xmp": attrs["xmp_metadata"].encode()} if attrs["xmp_metadata"] else {}
    out = io.BytesIO()
    _pillow(run).fromarray(pixels[..., 0] if wanted == 1 else pixels).save(
        out, "JPEG", quality=attrs["quality"], progressive=attrs["progressive"], optimize=attrs["optimize_size"],
        subsampling=2 if attrs["chroma_downsampling"] else 0, **more)  # fmt: skip
    made = out.getvalue()
    # Where the header keeps the density, which Pillow counts in inches only.
    unit = 1 if attrs["density_unit"] == "in" else 2
    density = struct.pack(">BHH", unit, *(attrs[name] & 0xFFFF for name in ("x_density", "y_density")))
    return made[:13] + density + made[18:]
