# SPDX-License-Identifier: Apache-2.0
"""Files of pictures that are written here, as Pillow reads them; and files that lie."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import voxgrad as vg
from voxgrad.kernels.arraywise import png


def _picture(channels: int) -> np.ndarray:
    return (np.arange(9 * 7 * channels).reshape(9, 7, channels) * 5 % 256).astype(np.uint8)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_files_hold_the_picture(channels: int) -> None:
    picture = _picture(channels)
    contents = vg.raw_ops.EncodePng(image=picture)
    assert (np.asarray(Image.open(io.BytesIO(contents.item()))).reshape(picture.shape) == picture).all()
    assert (vg.raw_ops.DecodePng(contents=contents) == picture).all()
    wide = picture.astype(np.uint16) * 250
    assert (vg.raw_ops.DecodePng(contents=vg.raw_ops.EncodePng(image=wide), dtype="uint16") == wide).all()


def test_jpeg_files_hold_the_picture() -> None:
    smooth = np.add.outer(np.arange(16), np.arange(16))[..., None].repeat(3, -1).astype(np.uint8) * 4
    contents = vg.raw_ops.EncodeJpeg(image=smooth, density_unit="cm", x_density=7, progressive=True)
    image = Image.open(io.BytesIO(contents.item()))
    assert image.info["jfif_unit"] == 2 and image.info["jfif_density"] == (7, 300) and image.info["progressive"]
    assert np.abs(np.asarray(image).astype(int) - smooth).max() <= 4


def test_a_gif_file_that_ends_early_has_the_pictures_before() -> None:
    """As TensorFlow has them, which reads a picture to the empty block behind it."""
    first = Image.fromarray(_picture(3))
    out, one = io.BytesIO(), io.BytesIO()
    first.save(one, "GIF")
    first.save(out, "GIF", save_all=True, append_images=[Image.fromarray(_picture(3)[::-1])])
    data, whole = out.getvalue(), vg.raw_ops.DecodeGif(contents=out.getvalue())
    second = data.index(b"!\xf9", len(one.getvalue()) - 1)
    for end, count in ((len(data), 2), (-1, 2), (-2, 1), (-9, 1), (second, 1)):
        assert (vg.raw_ops.DecodeGif(contents=data[:end]) == whole[:count]).all(), end
    with pytest.raises(vg.InvalidArgumentError, match=r"channels must be one of \(0, 3\) for a GIF file; got 1"):
        vg.raw_ops.DecodePng(contents=data, channels=1)
    with pytest.raises(vg.InvalidArgumentError, match="a file that ends early"):
        vg.raw_ops.DecodeGif(contents=one.getvalue()[:-2])


def test_a_size_that_a_file_claims_is_not_believed() -> None:
    """A few bytes that say they are a picture of a terabyte."""
    head = struct.pack(">IIBBBBB", 10**6, 10**6, 8, 6, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    data = png.SIGNATURE + b"".join(struct.pack(">I", len(body)) + name + body + struct.pack(
        ">I", zlib.crc32(name + body)) for name, body in parts)  # fmt: skip
    with pytest.raises(vg.ResourceExhaustedError, match="VG020 DecodePng: contents"):
        vg.raw_ops.DecodePng(contents=data)
    small = png.SIGNATURE + data[8:].replace(head, struct.pack(">IIBBBBB", 4, 4, 8, 6, 0, 0, 0))
    with pytest.raises(vg.InvalidArgumentError, match="contents must be the bytes of a picture"):
        vg.raw_ops.DecodePng(contents=small)
