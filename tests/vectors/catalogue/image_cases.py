# SPDX-License-Identifier: Apache-2.0
"""The calls of ops on images that are recorded from TensorFlow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .cases import DTYPES, Array, Case, _at, _scalar, ramp


def resizes() -> Iterator[Case]:
    """Images in other sizes, with every rule for the places of cells."""
    rules: tuple[dict[str, Any], ...] = ({}, {"align_corners": True}, {"half_pixel_centers": True})
    for name in ("Bilinear", "Bicubic", "NearestNeighbor"):
        for attrs in rules:
            for size in (_at(2, 3), _at(7, 5), _at(1, 1)):
                yield Case(f"Resize{name}", {"images": ramp("float32", 2, 4, 5, 2), "size": size}, attrs, ("images",))
            yield Case(f"Resize{name}", {"images": ramp("uint8", 1, 3, 2, 3), "size": _at(5, 3)}, attrs)
        grads = ramp("float32", 1, 3, 4, 2, scale=0.25)
        given = {"size": _at(5, 2)} if name == "NearestNeighbor" else {"original_image": ramp("float32", 1, 5, 2, 2)}
        for attrs in rules:
            yield Case(f"Resize{name}Grad", {"grads": grads, **given}, attrs)
    for attrs in rules[:2]:
        for size in (_at(2, 3), _at(7, 5)):
            yield Case("ResizeArea", {"images": ramp("float32", 2, 4, 5, 2), "size": size}, attrs)


def crops() -> Iterator[Case]:
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [0.9, 0.8, -0.2, 0.1]], np.float32)
    image, of, size = ramp("float32", 2, 4, 5, 2), _at(0, 1, 1), _at(3, 2)
    for method in ("bilinear", "nearest"):
        attrs = {"method": method, "extrapolation_value": -1.0}
        given = {"image": image, "boxes": boxes, "box_ind": of, "crop_size": size}
        yield Case("CropAndResize", given, attrs, ("image",))
        grads = ramp("float32", 3, 3, 2, 2, scale=0.25)
        given = {"grads": grads, "boxes": boxes, "box_ind": of, "image_size": _at(2, 4, 5, 2)}
        yield Case("CropAndResizeGradImage", given, {"method": method, "T": "float32"})
    inner = {"boxes": np.array([[0.12, 0.1, 0.72, 0.88]], np.float32), "box_ind": of[1:2]}
    yield Case("CropAndResize", {"image": image, **inner, "crop_size": size}, {}, ("image", "boxes"))
    yield Case("CropAndResizeGradBoxes", {"grads": grads, "image": image, "boxes": boxes, "box_ind": of})
    yield Case("CropAndResize", {"image": ramp("uint8", 1, 3, 3, 1), "boxes": boxes[:1], "box_ind": of[:1],
                                 "crop_size": _at(1, 1)})  # fmt: skip
    for centered in (True, False):
        for normalized in (True, False):
            attrs = {"centered": centered, "normalized": normalized, "uniform_noise": False, "noise": "zero"}
            places = np.array([[0.4, -0.3], [1.0, 0.6]], np.float32)
            yield Case("ExtractGlimpse", {"input": image, "size": size, "offsets": places}, attrs)
    scores = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)
    corners = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1],
                        [0, 100, 1, 101]], np.float32)  # fmt: skip
    yield Case("NonMaxSuppression", {"boxes": corners, "scores": scores, "max_output_size": _scalar(3)})
    yield Case("DrawBoundingBoxes", {"images": ramp("float32", 1, 6, 7, 3), "boxes": boxes[None]})
    yield Case("DrawBoundingBoxes", {"images": ramp("half", 1, 6, 7, 1), "boxes": boxes[None]})


def colours() -> Iterator[Case]:
    cube = np.stack(np.meshgrid(*[np.array([0, 0.25, 0.7, 1])] * 3), axis=-1)
    for dtype in ("float32", "float64", "half", "bfloat16"):
        for op in ("RGBToHSV", "HSVToRGB"):
            yield Case(op, {"images": cube.astype(DTYPES[dtype])})
    apart = np.array([[0.2, 0.5, 0.8], [0.9, 0.1, 0.4], [0.3, 0.7, 0.1]])
    yield Case("RGBToHSV", {"images": apart}, gradient=("images",))
    one = cube.astype(np.float32)
    yield Case("AdjustHue", {"images": one, "delta": np.float32(0.3).reshape(())})
    yield Case("AdjustSaturation", {"images": one, "scale": np.float32(1.5).reshape(())})
    factor, low, high = (np.float32(value).reshape(()) for value in (1.5, -0.5, 3))
    yield Case("AdjustContrastv2", {"images": one, "contrast_factor": factor})
    for dtype in ("uint8", "float64"):
        yield Case("AdjustContrast", {"images": ramp(dtype, 2, 3, 2), "contrast_factor": factor, "min_value": low,
                                      "max_value": high})  # fmt: skip


def pictures() -> Iterator[Case]:
    """Files of pictures, as Pillow writes them."""
    import io

    from PIL import Image

    def file(pixels: Array, kind: str, mode: str = "", **how: Any) -> Array:
        out = io.BytesIO()
        image = Image.fromarray(pixels)
        image.convert(mode or image.mode).save(out, kind, **how)
        made = np.empty((), object)
        made[()] = out.getvalue()
        return made

    smooth = np.add.outer(np.arange(9) * 20, np.arange(7) * 9)[..., None] * np.array([1, 2, 3]) // 3
    colour = smooth.astype(np.uint8)
    for mode in ("RGB", "RGBA", "L", "LA", "P", "1"):
        for channels in (0, 1, 3):
            yield Case("DecodePng", {"contents": file(colour, "PNG", mode)}, {"channels": channels})
    for dtype in ("uint8", "uint16"):
        deep = file((smooth[..., 0] * 200).astype(np.uint16), "PNG")
        yield Case("DecodePng", {"contents": deep}, {"dtype": dtype, "channels": 3})
    for mode in ("RGB", "RGBA"):
        yield Case("DecodeBmp", {"contents": file(colour, "BMP", mode)})
    exact = {"dct_method": "INTEGER_ACCURATE"}
    for sampled in (0, 2):
        yield Case("DecodeJpeg", {"contents": file(colour, "JPEG", subsampling=sampled)}, exact)
    yield Case("DecodeJpeg", {"contents": file(colour, "JPEG")}, {**exact, "ratio": 2, "channels": 1})
    several = [Image.fromarray(colour[::-1].copy())]
    yield Case("DecodeGif", {"contents": file(colour, "GIF", save_all=True, append_images=several)})


def patches() -> Iterator[Case]:
    image = ramp("float64", 2, 5, 4, 2, scale=0.3)
    for padding in ("SAME", "VALID"):
        attrs: dict[str, Any] = {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": padding}
        yield Case("ExtractImagePatches", {"images": image}, {**attrs, "ksizes": [1, 3, 2, 1]}, ("images",))
        taps = ramp("float64", 3, 2, 2, scale=0.17)
        yield Case("Dilation2D", {"input": image, "filter": taps}, attrs, ("input", "filter"))
        whole = {"input": ramp("int32", 1, 4, 4, 1), "filter": ramp("int32", 2, 2, 1)}
        yield Case("Dilation2D", whole, attrs)
        dy = ramp("int32", 1, 2, 4, 1) if padding == "SAME" else ramp("int32", 1, 2, 2, 1)
        for of in ("Input", "Filter"):
            yield Case(f"Dilation2DBackprop{of}", {**whole, "out_backprop": dy}, attrs)
        pool = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": padding}
        for batch in (True, False):
            more = {**pool, "include_batch_in_index": batch}
            yield Case("MaxPoolWithArgmax", {"input": image}, more, ("input",))
            yield Case("MaxPoolWithArgmax", {"input": ramp("uint8", 2, 4, 3, 1)}, {**more, "Targmax": "int32"})
        places = np.array([0, 3, 3, 5]).reshape(1, 2, 2, 1)
        yield Case("MaxPoolGradWithArgmax", {"input": ramp("float32", 1, 4, 2, 1), "grad": ramp("float32", 1, 2, 2, 1),
                                             "argmax": places}, {"ksize": [1, 2, 1, 1], "strides": [1, 2, 1, 1],
                                                                 "padding": padding})  # fmt: skip
    ratio = [1.0, 1.44, 1.3, 1.0]
    for pseudo in (True, False):
        for overlap in (True, False):
            attrs = {"pooling_ratio": ratio, "pseudo_random": pseudo, "overlapping": overlap, "deterministic": True,
                     "seed": 7, "seed2": 3}  # fmt: skip
            for op in ("FractionalAvgPool", "FractionalMaxPool"):
                yield Case(op, {"value": image}, attrs, ("value",))
    rows, columns = np.array([0, 2, 3, 5]), np.array([0, 1, 2, 4])
    best = np.array([[image[:, a:b, c:d].max((1, 2)) for c, d in itertools.pairwise(columns)]
                     for a, b in itertools.pairwise(rows)]).transpose(2, 0, 1, 3)  # fmt: skip
    bounds = {"out_backprop": ramp("float64", 2, 3, 3, 2), "row_pooling_sequence": rows,
              "col_pooling_sequence": columns}  # fmt: skip
    yield Case("FractionalMaxPoolGrad", {"orig_input": image, "orig_output": best, **bounds})
    yield Case("FractionalAvgPoolGrad", {"orig_input_tensor_shape": np.array(image.shape), **bounds})


def roundings() -> Iterator[Case]:
    x = np.array([[-7, -6.01, -0.51, -0.02, 0], [0.01, 0.024, 0.5, 5.99, 6.5]], np.float32)
    low, high, dy = np.float32([-1, -6, 0, -0.3, 0.2]), np.float32([1, 6, 5, 0.9, 1]), ramp("float32", 2, 5)
    for attrs in ({}, {"num_bits": 4, "narrow_range": True}):
        yield Case("FakeQuantWithMinMaxArgs", {"inputs": x}, attrs)
        yield Case("FakeQuantWithMinMaxArgsGradient", {"gradients": dy, "inputs": x}, attrs)
        for name, bounds in (("Vars", {"min": low[3], "max": high[3]}), ("VarsPerChannel", {"min": low, "max": high})):
            given = {key: np.asarray(value) for key, value in bounds.items()}
            yield Case(f"FakeQuantWithMinMax{name}", {"inputs": x, **given}, attrs)
            yield Case(f"FakeQuantWithMinMax{name}Gradient", {"gradients": dy, "inputs": x, **given}, attrs)
    for dtype in ("float32", "float64"):
        ends = {"input_min": np.array(-1.5).astype(dtype), "input_max": np.array(2.5).astype(dtype)}
        for signed in (True, False):
            for given in (True, False):
                for mode in ("HALF_TO_EVEN", "HALF_UP"):
                    attrs = {"signed_input": signed, "range_given": given, "round_mode": mode, "num_bits": 4}
                    yield Case("QuantizeAndDequantizeV2", {"input": x.astype(dtype), **ends}, attrs)


def summaries() -> Iterator[Case]:
    names = np.array([b"loss", b"scope/rate"], object)
    tag = names[0:1].reshape(()).copy()
    for dtype in ("float32", "int64", "bfloat16"):
        yield Case("ScalarSummary", {"tags": names, "values": ramp(dtype, 2)})
        yield Case("HistogramSummary", {"tag": tag, "values": ramp(dtype, 3, 4)})
        yield Case("TensorSummary", {"tensor": ramp(dtype, 2, 3)})
    yield Case("TensorSummary", {"tensor": names})
    one, two = np.empty((), object), np.empty(1, object)
    one[()], two[0] = b"\n\x08\n\x01a\x15\x00\x00\x80?", b"\n\x08\n\x01b\x15\x00\x00\x80?"
    yield Case("MergeSummary", {"inputs": [one, two]})
    said, true = np.array([[0, 0], [0, 1], [1, 0]]), np.array([[0, 0], [0, 1], [0, 2], [2, 0]])
    given = {"hypothesis_indices": said, "hypothesis_values": np.array([b"a", b"b", b"c"], object),
             "hypothesis_shape": np.array([2, 2]), "truth_indices": true,
             "truth_values": np.array([b"a", b"x", b"b", b"d"], object), "truth_shape": np.array([3, 3])}  # fmt: skip
    for normalize in (True, False):
        yield Case("EditDistance", given, {"normalize": normalize})


GROUPS = (resizes, crops, colours, pictures, patches, roundings, summaries)
