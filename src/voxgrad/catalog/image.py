# SPDX-License-Identifier: Apache-2.0
"""Images: sizes, crops, colours, boxes, and the files that they are kept in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ, known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.gradients import nothing
from voxgrad.catalog.locality import images
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import (
    Infer,
    check_same,
    counted,
    has_rank,
    scalar,
    shaped,
    specs,
    stated_shape,
    text,
    unknown,
)  # fmt: skip
from voxgrad.errors import Faults

_IMAGES = "[N, H, W, C]"
_PIXELS = (
    dtypes.INT8, dtypes.UINT8, dtypes.INT16, dtypes.UINT16, dtypes.INT32, dtypes.INT64, dtypes.BFLOAT16, dtypes.HALF,
    dtypes.FLOAT32, dtypes.FLOAT64,
)  # fmt: skip
_CROPPED = tuple(one for one in _PIXELS if one is not dtypes.BFLOAT16)
_DIFFERENTIABLE = (dtypes.FLOAT32, dtypes.HALF, dtypes.FLOAT64)
SIZE = Input("size", dtypes.INT32, "The new height and width.", "[2]", host=True)
CORNERS = Attr("align_corners", "bool", "Corner cells of both images have the same centres.", False)
CENTERS = Attr("half_pixel_centers", "bool", "Cells have their centres at halves; not with align_corners.", False)
_ORIGIN = Law("origin", "Without align_corners and half_pixel_centers, cell 0 of both images has the same centre.")
_PILLOW = Law("library", "Needs Pillow: pip install 'voxgrad[images]'.")
_BOXES = Input("boxes", dtypes.FLOAT32, "Corners y1, x1, y2, x2; 0 and 1 are the centres of the outermost cells.",
               "[boxes, 4]")  # fmt: skip
_BOX_OF = Input("box_ind", dtypes.INT32, "The image of each box.", "[boxes]")


def two_sizes(call: Call, name: str, faults: Faults, least: int = 1) -> Shape | None:
    """Height and width that a vector states, so much or more each."""
    sizes = stated_shape(call, name, faults)
    if sizes is not None and len(sizes) != 2:
        faults.add("VG014", name, wanted="hold a height and a width", got=text(sizes))
    elif sizes is not None and any(known(size) and size < least for size in sizes):
        faults.add("VG014", name, wanted=f"hold sizes of {least} or more", got=text(sizes))
    return None if faults else sizes


def check_centers(call: Call, faults: Faults) -> None:
    """Note both rules for centres at once."""
    if call.attrs.get("align_corners") and call.attrs.get("half_pixel_centers"):
        faults.add("VG003", "half_pixel_centers", wanted="be False beside align_corners", got=True)


def _cells(call: Call, name: str, faults: Faults, channels: int = 0) -> Shape | None:
    """The shape of images; each has a cell at least, and so many channels."""
    if not has_rank(call, name, 4, faults):
        return None
    shape: Shape = call.inputs[name].shape
    if any(known(size) and size < least for size, least in zip(shape[1:], (1, 1, channels), strict=True)):
        wanted = "have a cell and a channel at least" if channels else "have a cell at least"
        faults.add("VG017", name, wanted=wanted, got=text(shape))
    return shape


def resized(call: Call, name: str, faults: Faults) -> Shape | None:
    """The shape of images in another size."""
    return _in_size(call, _cells(call, name, faults, channels=1), faults)


def _in_size(call: Call, images: Shape | None, faults: Faults) -> Shape | None:
    check_centers(call, faults)
    sizes = two_sizes(call, "size", faults)
    if faults or images is None:
        return None
    return images[0], *(sizes or (unknown(call, "height"), unknown(call, "width"))), images[3]


def _nearest_grad(call: Call, faults: Faults) -> Shape | None:
    """Of a gradient without cells nothing flows: the result is zeros."""
    return _in_size(call, call.inputs["grads"].shape if has_rank(call, "grads", 4, faults) else None, faults)


def _resize_grad(call: Call, faults: Faults) -> Shape | None:
    check_centers(call, faults)
    grads, images = _cells(call, "grads", faults), _cells(call, "original_image", faults)
    if grads is not None and images is not None:
        for axis, what in ((0, "batch"), (3, "channels")):
            if differ(grads[axis], images[axis]):
                faults.add("VG012", "grads", wanted=f"have the {what} of original_image, {images[axis]}",
                           got=text(grads))  # fmt: skip
    return images


def _resize_gradient(name: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        return getattr(build, name)(dys[0], node.inputs[0], **node.attrs), None

    return gradient


def _resize_again(name: str) -> Gradient:
    """The gradient of a gradient: a resize is linear."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        sizes = build.StridedSlice(build.Shape(node.inputs[0]), [1], [3], [1])
        return getattr(build, name)(dys[0], sizes, **node.attrs), None

    return gradient


def _nearest_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    sizes = build.StridedSlice(build.Shape(node.inputs[0]), [1], [3], [1])
    return build.ResizeNearestNeighborGrad(dys[0], sizes, **node.attrs), None


def _resize(name: str, how: str, kernel: str, attrs: tuple[Attr, ...], gradient: Gradient | None, **more: Any) -> Op:
    same = more.pop("same", False)
    return Op(
        name, "image", f"Images in another size, {how}.",
        (Input("images", "T", "The images.", _IMAGES), SIZE), attrs,
        (Output("resized_images", "T" if same else dtypes.FLOAT32, "The images in the new size.", _IMAGES),),
        {"T": _PIXELS}, infer=shaped(lambda call, faults: resized(call, "images", faults)),
        kernel=f"resampling.{kernel}", gradient=gradient, laws=(_ORIGIN,), follows=images, **more,
    )  # fmt: skip


def _resize_grad_op(of: str, kernel: str, types: tuple[DType, ...]) -> Op:
    return Op(
        f"{of}Grad", "image", f"Gradient of {of} with respect to its input.",
        (Input("grads", dtypes.FLOAT32, "The gradient with respect to the output.", _IMAGES),
         Input("original_image", "T", "The images that were resized.", _IMAGES)), (CORNERS, CENTERS),
        (Output("output", "T", "The gradient.", "shape of original_image"),), {"T": types}, infer=shaped(_resize_grad),
        kernel=f"resampling.{kernel}_grad", gradient=_resize_again(of), linear_in=("grads",), follows=images,
    )  # fmt: skip


def _boxed(call: Call, faults: Faults) -> Any:
    """How many boxes there are; their images are as many."""
    boxes, places = call.inputs["boxes"].shape, call.inputs["box_ind"].shape
    for name, rank in (("boxes", 2), ("box_ind", 1)):
        has_rank(call, name, rank, faults)
    if not faults and boxes is not None and differ(boxes[1], 4):
        faults.add("VG012", "boxes", wanted="have 4 numbers per box", got=text(boxes))
    if not faults and boxes is not None and places is not None and differ(boxes[0], places[0]):
        faults.add("VG012", "box_ind", wanted=f"have one entry per box, {boxes[0]}", got=text(places))
    known_shape = boxes or places
    return unknown(call, "boxes") if faults or known_shape is None else known_shape[0]


def _crop_rule(call: Call, faults: Faults) -> Shape | None:
    count, sizes, image = _boxed(call, faults), two_sizes(call, "crop_size", faults), _cells(call, "image", faults)
    channels = unknown(call, "channels") if image is None else image[3]
    return count, *(sizes or (unknown(call, "height"), unknown(call, "width"))), channels


def _crop_grads(call: Call, count: Any, channels: Any, faults: Faults) -> None:
    grads = _cells(call, "grads", faults)
    if grads is not None:
        wanted = (count, grads[1], grads[2], channels)
        check_same("grads", grads, wanted, "one crop per box, with the channels of the image", faults)


def _crop_image_rule(call: Call, faults: Faults) -> Shape | None:
    count, sizes = _boxed(call, faults), stated_shape(call, "image_size", faults)
    if sizes is not None and len(sizes) != 4:
        faults.add("VG014", "image_size", wanted="hold 4 sizes", got=text(sizes))
    elif sizes is not None:
        if any(known(size) and size < 1 for size in sizes[1:3]):
            faults.add("VG014", "image_size", wanted="have a height and a width of 1 or more", got=text(sizes))
        _crop_grads(call, count, sizes[3], faults)
    return sizes


def _crop_boxes_rule(call: Call, faults: Faults) -> Shape | None:
    count, image = _boxed(call, faults), _cells(call, "image", faults)
    if image is not None:
        _crop_grads(call, count, image[3], faults)
    return count, 4


def _crop_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    image, boxes, places, _ = node.inputs
    method = node.attrs["method"]
    kind, pixels = dtypes.named(str(image.dtype)), None
    if kind in _DIFFERENTIABLE:
        pixels = build.CropAndResizeGradImage(dys[0], boxes, places, build.Shape(image), T=kind, method=method)
    corners = build.CropAndResizeGradBoxes(dys[0], image, boxes, places) if method == "bilinear" else None
    return pixels, corners, None, None


def _crop_again(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    grads, boxes, places, _ = node.inputs
    method, sizes = node.attrs["method"], build.StridedSlice(build.Shape(grads), [1], [3], [1])
    corners = build.CropAndResizeGradBoxes(grads, dys[0], boxes, places) if method == "bilinear" else None
    return build.CropAndResize(dys[0], boxes, places, sizes, method=method), corners, None, None


def _colours(name: str, least: int = 1) -> Infer:
    """Images of three channels, and the result like them."""

    def rule(call: Call, faults: Faults) -> Shape | None:
        shape: Shape | None = call.inputs[name].shape
        if has_rank(call, name, least, faults, at_least=True) and shape is not None and differ(shape[-1], 3):
            faults.add("VG013", name, wanted="have 3 channels", got=text(shape))
        return shape

    return shaped(rule)


def _one_hots(build: Any, x: Any) -> tuple[Any, Any]:
    """Where the largest and the smallest of three channels stand; of equal ones red wins over green over blue."""
    red, green, blue = build.Unpack(x, num=3, axis=-1)
    kind = build.ZerosLike(red)

    def hot(*pairs: tuple[str, Any, Any]) -> Any:
        (one, a, b), (two, c, d) = pairs
        return build.SelectV2(build.LogicalAnd(getattr(build, one)(a, b), getattr(build, two)(c, d)),
                              build.OnesLike(kind), kind)  # fmt: skip

    most = (hot(("GreaterEqual", red, blue), ("GreaterEqual", red, green)),
            hot(("Greater", green, red), ("GreaterEqual", green, blue)),
            hot(("Greater", blue, red), ("Greater", blue, green)))  # fmt: skip
    least = (hot(("Less", red, blue), ("Less", red, green)), hot(("LessEqual", green, red), ("Less", green, blue)),
             hot(("LessEqual", blue, red), ("LessEqual", blue, green)))  # fmt: skip
    return most, least


def _hsv_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    """Of value v = max, saturation s = (v - min) / v and hue h = place + (next - last) / (6 (v - min))."""
    x = node.inputs[0]
    hue, saturation, value = (build.ExpandDims(one, -1) for one in build.Unpack(dys[0], num=3, axis=-1))
    most, least = _one_hots(build, x)
    top, bottom = build.Pack(list(most), axis=-1), build.Pack(list(least), axis=-1)
    turn = build.Sub(build.Pack([most[2], most[0], most[1]], axis=-1), build.Pack([most[1], most[2], most[0]], axis=-1))

    def chosen(hot: Any) -> Any:
        return build.Sum(build.Mul(x, hot), [-1], keep_dims=True)

    high, low, span = chosen(top), chosen(bottom), chosen(build.Sub(top, bottom))
    of_saturation = build.Sub(build.Mul(build.DivNoNan(low, build.Square(high)), top), build.DivNoNan(bottom, high))
    of_hue = build.Sub(build.DivNoNan(turn, span),
                       build.Mul(build.DivNoNan(chosen(turn), build.Square(span)), build.Sub(top, bottom)))  # fmt: skip
    lit = build.SelectV2(build.Greater(high, build.ZerosLike(high)), saturation, build.ZerosLike(saturation))
    parts = build.Mul(value, top), build.Mul(lit, of_saturation), build.RealDiv(build.Mul(hue, of_hue), 6)
    return (build.AddV2(build.AddV2(parts[0], parts[1]), parts[2]),)


def _contrast_rule(call: Call, faults: Faults) -> Shape | None:
    for item in call.op.inputs[1:]:
        scalar(call, item.name, faults)
    has_rank(call, "images", 3, faults, at_least=True)
    shape: Shape | None = call.inputs["images"].shape
    return shape


def _draw_rule(call: Call, faults: Faults) -> Shape | None:
    images, boxes = call.inputs["images"].shape, call.inputs["boxes"].shape
    fine = has_rank(call, "images", 4, faults), has_rank(call, "boxes", 3, faults)
    if fine[0] and known(images[3]) and images[3] not in (1, 3, 4):
        faults.add("VG013", "images", wanted="have 1, 3 or 4 channels", got=text(images))
    if fine[1]:
        check_same("boxes", boxes, (images[0] if fine[0] else boxes[0], boxes[1], 4), "4 numbers per box of each image",
                   faults)  # fmt: skip
    shape: Shape | None = images
    return shape


def _glimpse_rule(call: Call, faults: Faults) -> Shape | None:
    images, sizes, offsets = (call.inputs["input"].shape, two_sizes(call, "size", faults, least=0),
                              call.inputs["offsets"].shape)  # fmt: skip
    fine = has_rank(call, "input", 4, faults), has_rank(call, "offsets", 2, faults)
    noise = call.attrs.get("noise")
    if noise not in ("uniform", "gaussian", "zero"):
        faults.add("VG003", "noise", wanted="be 'uniform', 'gaussian' or 'zero'", got=repr(noise))
    elif call.attrs.get("uniform_noise") and noise != "uniform":
        faults.add("VG003", "uniform_noise", wanted=f"be False beside noise {noise!r}", got=True)
    if all(fine):
        check_same("offsets", offsets, (images[0], 2), "two numbers per image", faults)
    if faults or not fine[0]:
        return None
    return images[0], *(sizes or (unknown(call, "height"), unknown(call, "width"))), images[3]


def _suppression_rule(call: Call, faults: Faults) -> Shape | None:
    boxes, scores = call.inputs["boxes"].shape, call.inputs["scores"].shape
    counted(call, "max_output_size", faults)
    if not 0 <= call.attrs.get("iou_threshold", 0) <= 1:
        faults.add("VG003", "iou_threshold", wanted="be in [0, 1]", got=call.attrs["iou_threshold"])
    if has_rank(call, "boxes", 2, faults):
        check_same("boxes", boxes, (boxes[0], 4), "4 numbers per box", faults)
        check_same("scores", scores, (boxes[0],), "one entry per box", faults)
    return (unknown(call, "boxes"),)


def _distort_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    size, boxes = call.inputs["image_size"].shape, call.inputs["bounding_boxes"].shape
    check_same("image_size", size, (3,), "three sizes", faults)
    if has_rank(call, "bounding_boxes", 3, faults) and differ(boxes[2], 4):
        faults.add("VG012", "bounding_boxes", wanted="have 4 numbers per box", got=text(boxes))
    for name, least, most in (("aspect_ratio_range", 0, None), ("area_range", 0, 1)):
        pair = call.attrs.get(name, ())
        fine = len(pair) == 2 and all(one > least and (most is None or one <= most) for one in pair)
        if not fine:
            faults.add("VG003", name, wanted=f"hold two numbers above 0{', at most 1' if most else ''}", got=list(pair))
    attempts = call.attrs.get("max_attempts", 1)
    if attempts < 1:
        faults.add("VG003", "max_attempts", wanted="be 1 or more", got=attempts)
    covered = call.attrs.get("min_object_covered")
    if covered is not None and not covered >= 0:
        faults.add("VG003", "min_object_covered", wanted="be 0 or more", got=covered)
    return None if faults else specs(call, (3,), (3,), (1, 1, 4))


def _decoded(*allowed: int) -> Infer:
    """A picture, whose size only its bytes tell."""

    def rule(call: Call, faults: Faults) -> Shape | None:
        channels = call.attrs.get("channels", 0)
        if channels not in allowed:
            faults.add("VG003", "channels", wanted=f"be one of {list(allowed)}", got=channels)
        ratio = call.attrs.get("ratio", 1)
        if ratio not in (1, 2, 4, 8):
            faults.add("VG003", "ratio", wanted="be 1, 2, 4 or 8", got=ratio)
        if call.attrs.get("dct_method", "") not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
            wanted = "be empty, 'INTEGER_FAST' or 'INTEGER_ACCURATE'"
            faults.add("VG003", "dct_method", wanted=wanted, got=repr(call.attrs["dct_method"]))
        return unknown(call, "height"), unknown(call, "width"), channels or unknown(call, "channels")

    return shaped(rule)


def _frames(call: Call, faults: Faults) -> Shape | None:
    return (*(unknown(call, what) for what in ("frames", "height", "width")), 3)


def _encoded(call: Call, channels: tuple[int, ...], faults: Faults) -> Shape | None:
    """The shape of pictures before their last three dimensions."""
    shape: Shape | None = call.inputs["image"].shape
    compression, quality = call.attrs.get("compression", -1), call.attrs.get("quality", 95)
    if not -1 <= compression <= 9:
        faults.add("VG003", "compression", wanted="be -1, or from 0 to 9", got=compression)
    if not 0 <= quality <= 100:
        faults.add("VG003", "quality", wanted="be from 0 to 100", got=quality)
    if not has_rank(call, "image", 3, faults, at_least=call.op.name == "EncodePng") or shape is None:
        return None
    if known(shape[-1]) and shape[-1] not in channels:
        faults.add("VG013", "image", wanted=f"have {' or '.join(map(str, channels))} channels", got=text(shape))
    if any(known(size) and size < 1 for size in shape[-3:]):
        faults.add("VG017", "image", wanted="have a cell at least", got=text(shape))
    return shape[:-3]


_RESIZE = (
    _resize("ResizeBilinear", "each cell from its four neighbours by distance", "bilinear", (CORNERS, CENTERS),
            _resize_gradient("ResizeBilinearGrad")),
    _resize_grad_op("ResizeBilinear", "bilinear",
                    (dtypes.FLOAT32, dtypes.BFLOAT16, dtypes.HALF, dtypes.FLOAT64)),
    _resize("ResizeBicubic", "each cell from sixteen neighbours by cubic curves", "bicubic", (CORNERS, CENTERS),
            _resize_gradient("ResizeBicubicGrad")),
    _resize_grad_op("ResizeBicubic", "bicubic", (dtypes.FLOAT32, dtypes.FLOAT64)),
    _resize("ResizeNearestNeighbor", "each cell from its nearest neighbour", "nearest", (CORNERS, CENTERS),
            _nearest_gradient, same=True),
    Op("ResizeNearestNeighborGrad", "image", "Gradient of ResizeNearestNeighbor with respect to its input.",
       (Input("grads", "T", "The gradient with respect to the output.", _IMAGES),
        Input("size", dtypes.INT32, "Height and width of the images that were resized.", "[2]", host=True)),
       (CORNERS, CENTERS), (Output("output", "T", "The gradient.", _IMAGES),),
       {"T": (dtypes.UINT8, dtypes.INT8, dtypes.INT32, dtypes.HALF, dtypes.FLOAT32, dtypes.FLOAT64, dtypes.BFLOAT16)},
       infer=shaped(_nearest_grad), kernel="resampling.nearest_grad",
       gradient=_resize_again("ResizeNearestNeighbor"), linear_in=("grads",), follows=images),
    _resize("ResizeArea", "each cell the mean of what it covers", "area", (CORNERS,), None),
)  # fmt: skip

_COVERED = Attr("min_object_covered", "float", "Of one box, the part that must be covered.", 0.1)


def _distort(name: str, inputs: tuple[Input, ...], attrs: tuple[Attr, ...]) -> Op:
    return Op(
        name, "image", "A random part of an image that covers enough of a box.",
        (Input("image_size", "T", "Height, width and channels.", "[3]"),
         Input("bounding_boxes", dtypes.FLOAT32, "Corners y1, x1, y2, x2, from 0 to 1.", "[N, boxes, 4]"), *inputs),
        (Attr("seed", "int", "With seed2: the start of the sequence; both 0 for one that differs every time.", 0),
         Attr("seed2", "int", "The second half of the seed.", 0), *attrs,
         Attr("aspect_ratio_range", "floats", "Least and greatest width / height.", (0.75, 1.33)),
         Attr("area_range", "floats", "Least and greatest part of the image's area.", (0.05, 1.0)),
         Attr("max_attempts", "int", "After so many the whole image is taken.", 100),
         Attr("use_image_if_no_bounding_boxes", "bool", "Without boxes the whole image is one.", False)),
        (Output("begin", "T", "Where the part begins, and 0.", "[3]"),
         Output("size", "T", "Its height and width, and -1.", "[3]"),
         Output("bboxes", dtypes.FLOAT32, "The part as a box.", "[1, 1, 4]")),
        {"T": (dtypes.UINT8, dtypes.INT8, dtypes.INT16, dtypes.INT32, dtypes.INT64)}, infer=_distort_infer,
        kernel="image.sample_box", gradient=nothing, stateful=True,
        laws=(Law("seeds", "The same seeds give the same parts in every session, those of TensorFlow on the CPU."),),
    )  # fmt: skip


_CROPS = (
    Op("CropAndResize", "image", "Boxes cut out of images, all in one size.",
       (Input("image", "T", "The images.", _IMAGES), _BOXES, _BOX_OF,
        Input("crop_size", dtypes.INT32, "Height and width of every crop.", "[2]", host=True)),
       (Attr("method", "string", "How to sample.", "bilinear", choices=("bilinear", "nearest")),
        Attr("extrapolation_value", "float", "For what lies outside of the image.", 0.0)),
       (Output("crops", dtypes.FLOAT32, "The crops.", "[boxes, height, width, C]"),), {"T": _CROPPED},
       infer=shaped(_crop_rule), kernel="image.crop", gradient=_crop_gradient,
       laws=(Law("flipped", "A box whose second corner comes first gives a crop that is turned over."),)),
    Op("CropAndResizeGradImage", "image", "Gradient of CropAndResize with respect to the images.",
       (Input("grads", dtypes.FLOAT32, "The gradient with respect to the crops.", "[boxes, height, width, C]"), _BOXES,
        _BOX_OF, Input("image_size", dtypes.INT32, "The shape of the images, 4 integers.", "[4]", host=True)),
       (Attr("T", "type", "The type of the result.", choices=_DIFFERENTIABLE),
        Attr("method", "string", "How the crops were sampled.", "bilinear", choices=("bilinear", "nearest"))),
       (Output("output", "T", "The gradient.", "image_size"),), {"T": _DIFFERENTIABLE},
       infer=shaped(_crop_image_rule), kernel="image.crop_image_grad", gradient=_crop_again, linear_in=("grads",)),
    Op("CropAndResizeGradBoxes", "image", "Gradient of CropAndResize with respect to the corners of the boxes.",
       (Input("grads", dtypes.FLOAT32, "The gradient with respect to the crops.", "[boxes, height, width, C]"),
        Input("image", "T", "The images.", _IMAGES), _BOXES, _BOX_OF),
       (Attr("method", "string", "How the crops were sampled.", "bilinear", choices=("bilinear",)),),
       (Output("output", dtypes.FLOAT32, "The gradient.", "[boxes, 4]"),), {"T": _CROPPED},
       infer=shaped(_crop_boxes_rule), kernel="image.crop_boxes_grad", linear_in=("grads",)),
    Op("ExtractGlimpse", "image", "A window of each image; what lies outside of the image is noise.",
       (Input("input", dtypes.FLOAT32, "The images.", _IMAGES),
        Input("size", dtypes.INT32, "Height and width of the windows.", "[2]", host=True),
        Input("offsets", dtypes.FLOAT32, "Centre y, x of each window.", "[N, 2]")),
       (Attr("centered", "bool", "Offsets count from the centre of the image, and not from its corner.", True),
        Attr("normalized", "bool", "Offsets count in sizes of the image, and not in cells.", True),
        Attr("uniform_noise", "bool", "Uniform noise; False for what noise says.", True),
        Attr("noise", "string", "uniform, gaussian or zero.", "uniform")),
       (Output("glimpse", dtypes.FLOAT32, "The windows.", "[N, height, width, C]"),), infer=shaped(_glimpse_rule),
       kernel="image.glimpse", gradient=nothing,
       laws=(Law("noise", "Between the least and the greatest number of the image, or normal with its mean and "
                 "deviation; the same for the same call."),)),
    _distort("SampleDistortedBoundingBox", (), (_COVERED,)),
    _distort("SampleDistortedBoundingBoxV2", (
        Input("min_object_covered", dtypes.FLOAT32, "Of one box, the part that must be covered.", "[]"),), ()),
)  # fmt: skip

_COLOUR = Input("images", "T", "The images.", "[..., 3]")
_FLOATS = {"T": (dtypes.HALF, dtypes.FLOAT32)}

_COLOURS = (
    Op("RGBToHSV", "image", "Red, green and blue as hue, saturation and value, each from 0 to 1.", (_COLOUR,),
       outputs=(Output("output", "T", "The same colours.", "shape of images"),), types={"T": dtypes.FLOATING},
       type_defaults={"T": dtypes.FLOAT32}, infer=_colours("images"), kernel="image.rgb_to_hsv",
       gradient=_hsv_gradient),
    Op("HSVToRGB", "image", "Hue, saturation and value as red, green and blue.", (_COLOUR,),
       outputs=(Output("output", "T", "The same colours.", "shape of images"),), types={"T": dtypes.FLOATING},
       type_defaults={"T": dtypes.FLOAT32}, infer=_colours("images"), kernel="image.hsv_to_rgb", gradient=nothing),
    Op("AdjustHue", "image", "Colours turned around the circle of hues.",
       (_COLOUR, Input("delta", dtypes.FLOAT32, "How far; 1 is once around.", "[]")),
       outputs=(Output("output", "T", "The turned colours.", "shape of images"),), types=_FLOATS,
       type_defaults={"T": dtypes.FLOAT32}, infer=_colours("images", 3), kernel="image.adjust_hue"),
    Op("AdjustSaturation", "image", "Colours with their saturation multiplied, kept in [0, 1].",
       (_COLOUR, Input("scale", dtypes.FLOAT32, "The factor.", "[]")),
       outputs=(Output("output", "T", "The changed colours.", "shape of images"),), types=_FLOATS,
       type_defaults={"T": dtypes.FLOAT32}, infer=_colours("images", 3), kernel="image.adjust_saturation"),
    Op("AdjustContrast", "image", "Each channel spread around its mean; the older form of AdjustContrastv2.",
       (Input("images", "T", "The images.", "[..., H, W, C]"),
        Input("contrast_factor", dtypes.FLOAT32, "The factor.", "[]"),
        Input("min_value", dtypes.FLOAT32, "No result is below it.", "[]"),
        Input("max_value", dtypes.FLOAT32, "No result is above it.", "[]")),
       outputs=(Output("output", dtypes.FLOAT32, "The changed images.", "shape of images"),),
       types={"T": (dtypes.UINT8, dtypes.INT8, dtypes.INT16, dtypes.INT32, dtypes.INT64, dtypes.FLOAT32,
                    dtypes.FLOAT64)}, infer=shaped(_contrast_rule), kernel="image.adjust_contrast",
       deprecated="Use AdjustContrastv2 instead"),
    Op("AdjustContrastv2", "image", "Each channel of an image spread around its mean.",
       (Input("images", "T", "The images.", "[..., H, W, C]"),
        Input("contrast_factor", dtypes.FLOAT32, "The factor.", "[]")),
       outputs=(Output("output", "T", "The changed images.", "shape of images"),), types=_FLOATS,
       type_defaults={"T": dtypes.FLOAT32}, infer=shaped(_contrast_rule), kernel="image.adjust_contrast"),
    Op("DrawBoundingBoxes", "image", "Images with the outlines of boxes, in ten colours one after the other.",
       (Input("images", "T", "The images, of 1, 3 or 4 channels.", _IMAGES),
        Input("boxes", dtypes.FLOAT32, "Corners y1, x1, y2, x2, from 0 to 1.", "[N, boxes, 4]")),
       outputs=(Output("output", "T", "The images with the boxes.", "shape of images"),), types=_FLOATS,
       type_defaults={"T": dtypes.FLOAT32}, infer=shaped(_draw_rule), kernel="image.draw_boxes", gradient=nothing),
    Op("NonMaxSuppression", "image", "The best boxes, without those that overlap a better one too much.",
       (Input("boxes", dtypes.FLOAT32, "Two opposite corners of each, in any order.", "[boxes, 4]"),
        Input("scores", dtypes.FLOAT32, "How good each is.", "[boxes]"),
        Input("max_output_size", dtypes.INT32, "How many at most.", "[]")),
       (Attr("iou_threshold", "float", "Common area over joint area from which on two overlap too much.", 0.5),),
       (Output("selected_indices", dtypes.INT32, "The kept ones, best first.", "[kept]"),),
       infer=shaped(_suppression_rule), kernel="image.suppress", gradient=nothing,
       laws=(Law("ties", "Of equal scores the first goes first."),)),
)  # fmt: skip

_CONTENTS = Input("contents", dtypes.STRING, "The bytes of the file.", "[]")
_CHANNELS = Attr("channels", "int", "1 for grey, 3 for colours, 4 with transparency, 0 for what the file has.", 0)
_PICTURE = Output("image", dtypes.UINT8, "The picture.", "[H, W, C]")
_BOUND = Law("size", "What a file says of its size is held against the limit before it is decoded.")

_FILES = (
    Op("DecodePng", "image", "A picture from the bytes of a PNG file.", (_CONTENTS,),
       (_CHANNELS, Attr("dtype", "type", "The type of the result.", dtypes.UINT8,
                        choices=(dtypes.UINT8, dtypes.UINT16))),
       (Output("image", "dtype", "The picture.", "[H, W, C]"),), {"dtype": (dtypes.UINT8, dtypes.UINT16)},
       infer=_decoded(0, 1, 3, 4), kernel="pictures.decode_png", laws=(_BOUND,)),
    Op("DecodeBmp", "image", "A picture from the bytes of a BMP file without compression.", (_CONTENTS,), (_CHANNELS,),
       (_PICTURE,), infer=_decoded(0, 1, 3, 4), kernel="pictures.decode_bmp", laws=(_BOUND,)),
    Op("DecodeJpeg", "image", "A picture from the bytes of a JPEG file.", (_CONTENTS,),
       (Attr("channels", "int", "1 for grey, 3 for colours, 0 for what the file has.", 0),
        Attr("ratio", "int", "Decode in 1, 1/2, 1/4 or 1/8 of the size.", 1),
        Attr("fancy_upscaling", "bool", "Colours of coarser grids are interpolated.", True),
        Attr("try_recover_truncated", "bool", "Fill what is missing of a file that was cut off.", False),
        Attr("acceptable_fraction", "float", "Of the lines, how many must be there.", 1.0),
        Attr("dct_method", "string", "A hint, without effect here.", "")),
       (_PICTURE,), infer=_decoded(0, 1, 3), kernel="pictures.decode_jpeg", laws=(_PILLOW, _BOUND)),
    Op("DecodeGif", "image", "The pictures of a GIF file.", (_CONTENTS,), (),
       (Output("image", dtypes.UINT8, "The pictures, in red, green and blue.", "[frames, H, W, 3]"),),
       infer=shaped(_frames), kernel="pictures.decode_gif", laws=(_PILLOW, _BOUND)),
    Op("EncodePng", "image", "A picture as the bytes of a PNG file.",
       (Input("image", "T", "A picture, of 1 to 4 channels, or several.", "[..., H, W, C]"),),
       (Attr("compression", "int", "From 0 to 9; -1 for the usual.", -1),),
       (Output("contents", dtypes.STRING, "The bytes of a file each.", "[...]"),), {"T": (dtypes.UINT8, dtypes.UINT16)},
       {"T": dtypes.UINT8}, infer=shaped(lambda call, faults: _encoded(call, (1, 2, 3, 4), faults)),
       kernel="pictures.encode_png"),
    Op("EncodeJpeg", "image", "A picture as the bytes of a JPEG file.",
       (Input("image", dtypes.UINT8, "The picture, of 1 or 3 channels.", "[H, W, C]"),),
       (Attr("format", "string", "grayscale, rgb, or empty for what the channels say.", "",
             choices=("", "grayscale", "rgb")),
        Attr("quality", "int", "From 0 to 100.", 95),
        Attr("progressive", "bool", "From coarse to fine.", False),
        Attr("optimize_size", "bool", "Smaller and slower; the pixels are the same.", False),
        Attr("chroma_downsampling", "bool", "Colours on a grid of half the size.", True),
        Attr("density_unit", "string", "Cells per inch or per centimetre.", "in", choices=("in", "cm")),
        Attr("x_density", "int", "Cells per unit along the width.", 300),
        Attr("y_density", "int", "Cells per unit along the height.", 300),
        Attr("xmp_metadata", "string", "A text to put into the file.", "")),
       (Output("contents", dtypes.STRING, "The bytes of the file.", "[]"),),
       infer=shaped(lambda call, faults: _encoded(call, (1, 3), faults)),
       kernel="pictures.encode_jpeg", laws=(_PILLOW,)),
)  # fmt: skip

OPS = (*_RESIZE, *_CROPS, *_COLOURS, *_FILES)
