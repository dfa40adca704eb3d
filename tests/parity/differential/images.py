# SPDX-License-Identifier: Apache-2.0
"""Images, boxes and files of pictures."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.kernels.arraywise import png

from .draw import Draw
from .values import text_array

Hint = Callable[[Draw], Any]


def _cells(d: Draw, channels: int = 0) -> tuple[int, ...]:
    return d.integer(0 if d.chance(0.1) else 1, 2), d.integer(1, 5), d.integer(1, 5), channels or d.integer(1, 3)


def _kind(d: Draw) -> Any:
    """The type of the images. What is computed in float32 has derivatives of float32, whatever they say."""
    return dtypes.FLOAT32 if d.smooth else d.type("T")


def _new(d: Draw) -> Any:
    return d.vector([d.integer(1, 7), d.integer(1, 7)])


def _resize(d: Draw) -> dict[str, Any]:
    corners = d.chance(0.4)
    made = {"images": d.array(_kind(d), _cells(d)), "size": _new(d), "align_corners": corners}
    return made | ({"half_pixel_centers": not corners and d.chance(0.6)} if d.op.name != "ResizeArea" else {})


def _resize_grad(d: Draw) -> dict[str, Any]:
    shape, corners = _cells(d), d.chance(0.4)
    made: dict[str, Any] = {"align_corners": corners, "half_pixel_centers": not corners and d.chance(0.6)}
    new = (shape[0], d.integer(1, 6), d.integer(1, 6), shape[3])
    if d.op.name == "ResizeNearestNeighborGrad":
        return made | {"grads": d.array(d.type("T"), shape), "size": d.vector(new[1:3])}
    return made | {"grads": d.array(dtypes.FLOAT32, new), "original_image": d.array(_kind(d), shape)}


def _boxes(d: Draw, *outer: int) -> Any:
    far = 0.3 if d.chance(0.4) else 0.0
    return d.rng.uniform(-far, 1 + far, (*outer, 4)).astype(np.float32)


def _crops(d: Draw) -> dict[str, Any]:
    shape, count, size = _cells(d), d.integer(0 if d.chance(0.1) else 1, 3), (d.integer(1, 4), d.integer(1, 4))
    given: dict[str, Any] = {
        "boxes": _boxes(d, count), "box_ind": d.ints(0, max(0, shape[0] - 1), (count,)), "crop_size": d.vector(size),
        "image_size": d.vector(shape), "grads": d.array(dtypes.FLOAT32, (count, *size, shape[3])),
    }  # fmt: skip
    if d.op.name != "CropAndResizeGradImage":
        given["image"] = d.array(_kind(d), shape)
    return {item.name: given[item.name] for item in d.op.inputs}


def _glimpse(d: Draw) -> dict[str, Any]:
    shape = _cells(d)
    far = 1.5 if d["normalized"] else 6
    quiet = d.chance(0.8)
    return {"input": d.array(dtypes.FLOAT32, shape), "size": _new(d), "uniform_noise": not quiet, "noise": "zero" if
            quiet else "uniform", "offsets": d.rng.uniform(-far, far, (shape[0], 2)).astype(np.float32)}  # fmt: skip


def _suppression(d: Draw) -> dict[str, Any]:
    count = d.integer(0, 8)
    corners = d.rng.uniform(0, 1, (count, 4)) if d.chance(0.6) else d.rng.integers(0, 4, (count, 4)) / 3
    return {"boxes": corners.astype(np.float32), "scores": d.array(dtypes.FLOAT32, (count,)),
            "max_output_size": d.number(d.integer(0, 5)), "iou_threshold": d.pick(0.5, 0.0, 0.3, 1.0)}  # fmt: skip


def _colours(d: Draw) -> dict[str, Any]:
    outer = [d.size() for _ in range(d.integer(2, 3) if d.op.name.startswith("Adjust") else d.integer(0, 3))]
    made = {"images": d.array(d.type("T"), (*outer, 3), "unit" if d.smooth or d.chance(0.5) else "")}
    for name in ("delta", "scale"):
        if any(item.name == name for item in d.op.inputs):
            made[name] = d.number(d.pick(0.0, 0.3, -0.4, 1.0, 2.5, 0.9), dtypes.FLOAT32)
    return made


def _contrast(d: Draw) -> dict[str, Any]:
    made = {"images": d.array(d.type("T"), (*d.shape(0, 1), d.integer(1, 4), d.integer(1, 4), d.integer(1, 3))),
            "contrast_factor": d.number(d.pick(0.0, 0.5, 2.0, -1.0), dtypes.FLOAT32)}  # fmt: skip
    if d.op.name == "AdjustContrast":
        low = d.pick(-100.0, 0.0, -1.0)
        made |= {"min_value": d.number(low, dtypes.FLOAT32), "max_value": d.number(low + 7.5, dtypes.FLOAT32)}
    return made


def _drawn(d: Draw) -> dict[str, Any]:
    shape = _cells(d, d.pick(1, 3, 4))
    return {"images": d.array(d.type("T"), shape), "boxes": _boxes(d, shape[0], d.integer(0, 12))}


def _pixels(d: Draw, channels: int, dtype: Any = np.uint8) -> Any:
    shape = (d.integer(1, 12), d.integer(1, 12), channels)
    if d.chance(0.5):
        return d.rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
    ramp = np.add.outer(np.arange(shape[0]) * 11, np.arange(shape[1]) * 7)[..., None] * np.arange(1, channels + 1)
    return ramp.astype(dtype)


def _file(d: Draw, kind: str) -> bytes:
    """A file as Pillow writes it, or as it is written here."""
    from PIL import Image

    out = io.BytesIO()
    if kind == "PNG" and d.chance(0.3):
        return png.write(_pixels(d, d.integer(1, 4), d.pick(np.uint8, np.uint16)), -1)
    channels = d.pick(1, 3)
    image = Image.fromarray(np.squeeze(_pixels(d, channels), -1) if channels == 1 else _pixels(d, 3))
    if kind == "PNG":
        mode = d.pick(image.mode, "P", "1", "RGBA", "LA")
        image.convert(mode).save(out, "PNG", **({"transparency": 0} if mode == "P" and d.chance(0.5) else {}))
    elif kind == "GIF":
        others = [Image.fromarray(np.asarray(image) // 2)] if d.chance(0.5) else []
        image.save(out, "GIF", save_all=True, append_images=others)
    elif kind == "JPEG":
        image.save(out, "JPEG", quality=d.pick(50, 90), subsampling=d.pick(0, 1, 2), progressive=d.chance(0.3))
    else:
        mode = d.pick(image.mode, "RGB", "RGBA")
        image.convert(mode).save(out, "BMP")
    made = out.getvalue()
    return made if d.chance(0.9) else made[: d.integer(0, len(made))]


def pixels(contents: Any) -> Any:
    """What a file holds: two writers pack the same picture in different bytes."""
    from PIL import Image

    if contents.size != 1:
        return np.concatenate(
            [np.zeros(0, np.uint8), *(pixels(np.array(one, object)).ravel() for one in contents.ravel())]
        )
    data = contents.item()
    if data.startswith(png.SIGNATURE):
        head = png.read_header(data)
        return png.read_pixels(head, head.channels, head.depth == 16)
    image = Image.open(io.BytesIO(data))
    facts = [
        *image.info["jfif_density"],
        image.info["jfif_unit"],
        image.info.get("progressive", 0),
        len(image.info.get("xmp", b"")),
    ]
    return np.concatenate([np.asarray(image).ravel(), np.array(facts).round()])


def _contents(kind: str) -> Hint:
    def draw(d: Draw) -> Any:
        own = kind if d.chance(0.85) else d.pick("PNG", "GIF", "JPEG", "BMP")
        return text_array([_file(d, own)], ())

    return draw


def _jpeg_attrs(d: Draw) -> dict[str, Any]:
    fancy = d.chance(0.7)
    return {"contents": _contents("JPEG")(d), "fancy_upscaling": fancy, "channels": d.pick(0, 0, 1, 3), "ratio":
            d.pick(1, 1, 2, 4, 8), "dct_method": d.pick("INTEGER_ACCURATE", "INTEGER_ACCURATE", "") if fancy
            else "INTEGER_FAST", "try_recover_truncated": False, "acceptable_fraction": 1.0}  # fmt: skip


def distorted(d: Draw) -> dict[str, Any]:
    """A size and boxes in it."""
    low, high = np.sort(d.rng.uniform(0, 1, (2, 1, d.integer(0, 3), 2)).astype(np.float32), axis=0)
    made = {"image_size": d.vector([d.integer(1, 90), d.integer(1, 90), 3], "T"),
            "bounding_boxes": np.concatenate([low, high], axis=-1)}  # fmt: skip
    if d.op.name.endswith("V2"):
        made["min_object_covered"] = d.number(d.pick(0.1, 0.5, 1.0), dtypes.FLOAT32)
    return made


IMAGES: dict[str, dict[str, Hint]] = {
    **{f"Resize{name}": {"": _resize} for name in ("Bilinear", "Bicubic", "NearestNeighbor", "Area")},
    **{f"Resize{name}Grad": {"": _resize_grad} for name in ("Bilinear", "Bicubic", "NearestNeighbor")},
    **{f"CropAndResize{name}": {"": _crops} for name in ("", "GradImage", "GradBoxes")},
    **{name: {"": _colours} for name in ("RGBToHSV", "HSVToRGB", "AdjustHue", "AdjustSaturation")},
    "AdjustContrast": {"": _contrast}, "AdjustContrastv2": {"": _contrast}, "DrawBoundingBoxes": {"": _drawn},
    "ExtractGlimpse": {"": _glimpse}, "NonMaxSuppression": {"": _suppression},
    "DecodePng": {"contents": _contents("PNG"), "channels": lambda d: d.pick(0, 0, 1, 3, 4)},
    "DecodeBmp": {"contents": _contents("BMP"), "channels": lambda d: d.pick(0, 0, 3, 4)},
    "DecodeGif": {"contents": _contents("GIF")}, "DecodeJpeg": {"": _jpeg_attrs},
    "EncodePng": {"image": lambda d: _pixels(d, d.integer(1, 4), np.dtype(d.type("T").name)),
                  "compression": lambda d: d.integer(-1, 9)},
    "EncodeJpeg": {"image": lambda d: _pixels(d, d.pick(1, 3)), "quality": lambda d: d.pick(95, 50, 0, 100),
                   "xmp_metadata": lambda d: d.pick("", "<x/>"), "x_density": lambda d: d.integer(1, 300),
                   "y_density": lambda d: d.integer(1, 300)},
}  # fmt: skip
"""By op, by argument."""
