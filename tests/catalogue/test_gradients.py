# SPDX-License-Identifier: Apache-2.0
"""Every declared gradient agrees with numeric differentiation in float64, and no op is forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.catalogue.eager import Builder, call, gradients, node, weights
from tests.grouped import grouped
from tests.vectors.catalogue.cases import Case, ramp
from tests.vectors.catalogue.load import recorded
from voxgrad.catalog.registry import OPS, ORDINARY

WITHOUT_NUMBERS = {
    "AssignAdd", "Print", "PreventGradient", "PlaceholderWithDefault", "StopGradient", "CheckNumerics", "NextIteration",
    "LoopCond", "Switch", "Merge", "Round", "Rint", "Ceil", "Floor", "FloorDiv", "TruncateDiv", "Sign", "Conj", "Real",
    "Imag", "Complex", "ComplexAbs", "Angle", "SparseReorder", "SparseAdd", "SparseSlice", "SparseFillEmptyRows",
    "ConjugateTranspose", "IdentityN", "Cast", "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3",
    "TensorArrayWriteV3", "TensorArrayReadV3", "TensorArrayGatherV3", "TensorArrayScatterV3", "TensorArrayConcatV3",
    "TensorArraySplitV3", "HSVToRGB", "DrawBoundingBoxes", "ExtractGlimpse", "NonMaxSuppression",
    "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "QuantizeAndDequantizeV2", "EditDistance",
    "ScalarSummary", "HistogramSummary", "MergeSummary", "TensorSummary",
    *(f"FakeQuantWithMinMax{name}{grad}" for name in ("Args", "Vars", "VarsPerChannel") for grad in ("", "Gradient")),
}  # fmt: skip
"""Gradients that pass a value on, stop it, are flat, are of complex numbers, or need a session: tested elsewhere."""

SMALL = ramp("float64", 2, 3, start=0.25)
_IMAGE = ramp("float64", 1, 4, 5, 2, scale=0.3, start=-3)
_POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
_CONV = {"strides": [1, 1, 2, 1], "padding": "SAME"}
_TAPS, _DEEP = ramp("float64", 2, 3, 2, 3, scale=0.2), ramp("float64", 2, 3, 2, 2, scale=0.2)
_SIZES = np.array([1, 4, 5, 2], np.int32)
_POOLED = ramp("float64", 1, 2, 4, 2, scale=0.2)
_MAXIMA = np.lib.stride_tricks.sliding_window_view(_IMAGE, (2, 2), axis=(1, 2))[:, ::2].max(axis=(-1, -2))
_GRADS = ramp("float32", 1, 3, 2, 2, scale=0.25)
_CELLS = np.array([[0, 1], [1, 2], [2, 0]])
_ZEROS, _THREE = ramp("float64", 5, 2), np.array(3, np.int32)
_ZEROS[1, 0] = _ZEROS[0, 1] = _ZEROS[2, 1] = 0

EDGES = (
    *(Case(op, {"input": np.array(1.5), "axis": np.zeros(0, np.int32)}, gradient=("input",))
      for op in ("Sum", "Mean", "Prod", "Max", "Min")),
    *(Case(op, {"data": _ZEROS, "segment_ids": np.array([0, 0, 0, 1, 2], np.int32)}, gradient=("data",))
      for op in ("SegmentProd", "SegmentMax", "SegmentMin")),
    *(Case(op, {"data": _ZEROS, "segment_ids": np.array([2, -1, 2, 0, 1], np.int64), "num_segments": _THREE},
           gradient=("data",))
      for op in ("UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentSum")),
    *(Case(op, {"grad": _ZEROS[:3], "indices": np.array([2, 0, 2, 1], np.int32),
                "segment_ids": np.array([0, 0, 0, 2], np.int64), "output_dim0": _THREE}, gradient=("grad",))
      for op in ("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")),
    Case("SparseToDense", {"sparse_indices": np.array([[0, 1], [2, 0]]), "output_shape": np.array([3, 2]),
                           "sparse_values": np.array(1.5), "default_value": np.array(-0.5)},
         gradient=("sparse_values", "default_value")),
    # Colours of pictures: the channels are the last dimension of four.
    Case("RGBToHSV", {"images": np.random.default_rng(3).permutation(24).reshape(1, 2, 4, 3) / 24 + 0.01},
         gradient=("images",)),
    Case("TopKV2", {"input": _ZEROS, "k": np.array(0, np.int32)}, gradient=("input",)),
    Case("StridedSlice", {"input": SMALL, **{name: np.array([value], np.int16) for name, value in
                                             (("begin", 1), ("end", -3), ("strides", -1))}}, gradient=("input",)),
    *(Case("LinSpace", {"start": np.array(1.5), "stop": np.array(-2.0), "num": np.array(number, np.int32)},
           gradient=("start", "stop")) for number in (1, 2, 5)),
)  # fmt: skip
"""Scalars, zeros in products, rows that are dropped, a single point."""

EXTRA = (
    *EDGES,
    Case("SoftsignGrad", {"gradients": SMALL, "features": SMALL - 1.1}, gradient=("gradients", "features")),
    Case("SqrtGrad", {"y": SMALL + 1, "dy": SMALL}, gradient=("y", "dy")),
    Case("RsqrtGrad", {"y": SMALL + 1, "dy": SMALL}, gradient=("y", "dy")),
    Case("InvGrad", {"y": SMALL + 1, "dy": SMALL}, gradient=("y", "dy")),
    Case("TruncateMod", {"x": SMALL + 3.1, "y": SMALL + 0.9}, gradient=("x", "y")),
    Case("StridedSliceGrad", {"shape": np.array([3, 3], np.int32), "begin": np.array([0], np.int32),
                              "end": np.array([2], np.int32),
                              "strides": np.array([1], np.int32), "dy": SMALL}, gradient=("dy",)),
    Case("SegmentMin", {"data": SMALL, "segment_ids": np.array([0, 1], np.int32)}, gradient=("data",)),
    Case("UnsortedSegmentMin", {"data": SMALL, "segment_ids": np.array([0, 0], np.int32),
                                "num_segments": np.array(1, np.int32)},
         gradient=("data",)),
    Case("ScatterNdNonAliasingAdd", {"input": SMALL, "indices": np.array([[1]], np.int32), "updates": SMALL[:1]},
         gradient=("input", "updates")),
    Case("LRN", {"input": ramp("float32", 1, 1, 2, 4, start=0.5)}, {"depth_radius": 1, "alpha": 0.5}, ("input",)),
    Case("TopK", {"input": SMALL}, {"k": 2}, ("input",)),
    Case("BiasAddV1", {"value": SMALL, "bias": SMALL[0]}, gradient=("value", "bias")),
    Case("SpaceToBatch", {"input": ramp("float64", 1, 2, 2, 1), "paddings": np.zeros((2, 2), np.int32)},
         {"block_size": 2}, ("input",)),
    Case("BatchToSpace", {"input": ramp("float64", 4, 1, 1, 1), "crops": np.zeros((2, 2), np.int32)}, {"block_size": 2},
         ("input",)),
    Case("AvgPoolGrad", {"orig_input_shape": _SIZES, "grad": _POOLED}, _POOL, ("grad",)),
    Case("MaxPoolGrad", {"orig_input": _IMAGE, "orig_output": _MAXIMA, "grad": _POOLED}, _POOL, ("grad",)),
    Case("MaxPoolGradGrad", {"orig_input": _IMAGE, "orig_output": _MAXIMA, "grad": _IMAGE[:, ::-1].copy()}, _POOL,
         ("grad",)),
    Case("Conv2DBackpropInput", {"input_sizes": _SIZES, "filter": _TAPS, "out_backprop": ramp("float64", 1, 4, 3, 3)},
         _CONV,
         ("filter", "out_backprop")),
    Case("Conv2DBackpropFilter", {"input": _IMAGE, "filter_sizes": np.array(_TAPS.shape, np.int32),
                                  "out_backprop": ramp("float64", 1, 4, 3, 3)}, _CONV, ("input", "out_backprop")),
    Case("DepthwiseConv2dNativeBackpropInput", {"input_sizes": _SIZES, "filter": _DEEP,
                                                "out_backprop": ramp("float64", 1, 4, 3, 4)},
         _CONV, ("filter", "out_backprop")),
    Case("DepthwiseConv2dNativeBackpropFilter", {"input": _IMAGE, "filter_sizes": np.array(_DEEP.shape, np.int32),
                                                 "out_backprop": ramp("float64", 1, 4, 3, 4)}, _CONV,
                                                 ("input", "out_backprop")),
    Case("PadV2", {"input": SMALL, "paddings": np.array([[1, 0], [0, 2]], np.int32), "constant_values": np.array(1.5)},
         gradient=("input", "constant_values")),
    *(Case(f"Resize{name}Grad", {"grads": _GRADS, "original_image": ramp("float32", 1, 5, 4, 2)}, {}, ("grads",))
      for name in ("Bilinear", "Bicubic")),
    Case("ResizeNearestNeighborGrad", {"grads": _GRADS, "size": np.array([5, 4], np.int32)}, {}, ("grads",)),
    Case("CropAndResizeGradImage", {"grads": _GRADS, "boxes": np.array([[0.1, 0.2, 0.8, 0.7]], np.float32), "box_ind":
         np.zeros(1, np.int32), "image_size": np.array([1, 5, 4, 2], np.int32)}, {"T": "float32"}, ("grads",)),
    *(Case(op, {"input": _IMAGE, "grad": _IMAGE[:, ::-1].copy() if "GradGrad" in op else _POOLED, "argmax":
                np.argmax(np.lib.stride_tricks.sliding_window_view(_IMAGE, (2, 2), axis=(1, 2))[:, ::2].reshape(
                    1, 2, 4, 2, 4), axis=-1)}, _POOL, ("grad",))
      for op in ("MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax")),
    Case("SparseAddGrad", {"backprop_val_grad": SMALL[0], "a_indices": _CELLS[[0, 2]], "b_indices": _CELLS[:2],
                           "sum_indices": _CELLS}, gradient=("backprop_val_grad",)),
    Case("SparseSliceGrad", {"backprop_val_grad": SMALL[0, :2], "input_indices": _CELLS,
                             "input_start": np.array([1, 0]), "output_indices": _CELLS[1:] - [1, 0]},
         gradient=("backprop_val_grad",)),
    Case("SparseFillEmptyRowsGrad", {"reverse_index_map": np.array([0, 2]), "grad_values": SMALL[0]},
         gradient=("grad_values",)),
    Case("SparseDenseCwiseAdd", {"sp_indices": _CELLS, "sp_values": SMALL[0], "sp_shape": np.array([3, 3]),
                                 "dense": SMALL[:1]}, gradient=("sp_values", "dense")),
    Case("TensorScatterUpdate", {"tensor": SMALL, "indices": np.array([[1]], np.int32), "updates": SMALL[:1]},
         gradient=("tensor", "updates")),
)  # fmt: skip
"""Gradients that TensorFlow does not have or that need special points."""


def _is_complex(case: Case) -> bool:
    return any(getattr(value, "dtype", np.dtype(bool)).kind == "c" for value in case.inputs.values())


def _cases() -> dict[str, list[Case]]:
    made: dict[str, list[Case]] = {}
    for case in (
        *(
            one.case
            for one in recorded()
            if one.gradients and one.case.op not in WITHOUT_NUMBERS and not _is_complex(one.case)
        ),
        *EXTRA,
    ):
        made.setdefault(case.op, []).append(case)
    return made


def _total(case: Case, inputs: dict[str, Any]) -> float:
    """The weighted sum of the first output."""
    first = call(OPS[case.op], [inputs[item.name] for item in OPS[case.op].inputs], case.attrs)[0]
    parts = first if isinstance(first, list) else [first]
    return float(
        sum(
            np.nansum(part.astype(np.float64) * weights(part.shape, np.float64))
            for part in parts
            if part.dtype.kind == "f"
        )
    )


def _numeric(case: Case, name: str, entry: int | None, step: float) -> tuple[Any, Any]:
    """Central differences of fourth order, one element at a time; and how far left and right slopes are apart."""
    whole = case.inputs[name] if entry is None else case.inputs[name][entry]
    found, kinks = np.zeros(whole.shape), np.zeros(whole.shape)
    for index in np.ndindex(whole.shape):
        sums = {}
        for times in (-2, -1, 0, 1, 2):
            moved = whole.astype(np.float64).copy()
            moved[index] += times * step
            value = moved.astype(whole.dtype)
            given = (
                value if entry is None else [value if i == entry else one for i, one in enumerate(case.inputs[name])]
            )
            sums[times] = _total(case, {**case.inputs, name: given})
        found[index] = (8 * (sums[1] - sums[-1]) - (sums[2] - sums[-2])) / (12 * step)
        kinks[index] = abs(sums[1] - 2 * sums[0] + sums[-1]) / step
    return found, kinks


def test_every_gradient_has_a_case() -> None:
    declared = {op.name for op in ORDINARY if op.gradient is not None} - WITHOUT_NUMBERS
    integers = {"Shape", "ShapeN", "Size", "Rank", "BroadcastArgs", "BroadcastGradientArgs", "ZerosLike", "OnesLike",
                "InvertPermutation", "ConcatOffset", "OneHot", "Where", "Range", "ArgMax", "ArgMin"}  # fmt: skip
    assert declared - integers - set(_cases()) == set()


def test_gradients_can_be_differentiated_again() -> None:
    """What gradients are made of has a gradient itself, or none to have: second order is only graph."""
    build = Builder()
    for cases in _cases().values():
        gradients(cases[0], build)
    flat = {
        "Equal",
        "NotEqual",
        "Less",
        "LessEqual",
        "Greater",
        "GreaterEqual",
        "LogicalAnd",
        "LogicalOr",
        "ListDiff",
    }
    without = {name for name in build.used if OPS[name].gradient is None} - flat
    assert without == {
        "LRNGrad",
        "IgammaGradA",
        "RandomGammaGrad",
        "CropAndResizeGradBoxes",
        "Dilation2DBackpropInput",
        "Dilation2DBackpropFilter",
        "FractionalAvgPoolGrad",
        "FractionalMaxPoolGrad",
    }


@grouped("op", [op for op in _cases() if not OPS[op].stateful], by=lambda op: OPS[op].group)
def test_against_differences(op: str) -> None:
    # A random number moves with a parameter so that its distribution does, not as it happened to be drawn.
    # FusedBatchNorm, LRN, SparseMatMul and images know float32 only: a wide step against its roundings.
    kernels = ("resampling", "image.crop", "matrix.sparse_matmul")
    single = op.startswith("FusedBatchNorm") or op == "LRN" or OPS[op].kernel.startswith(kernels)
    step, limit = (0.02, 1e-2) if single else (1e-4, 2e-7)
    smooth = points = 0
    for case in _cases()[op]:
        analytic = gradients(case)
        for name in case.gradient:
            many = isinstance(case.inputs[name], list)
            for entry in range(len(case.inputs[name])) if many else [None]:
                found = analytic[name] if entry is None else analytic[name][entry]
                numeric, kinks = _numeric(case, name, entry, step)
                scale = max(1.0, float(np.max(np.abs(numeric), initial=0, where=np.isfinite(numeric))))
                # At a jump, a tie or an edge of the domain differences mean nothing: left and right slopes differ.
                kept = np.isfinite(numeric) & np.isfinite(found) & (kinks <= 200 * step * scale)
                smooth, points = smooth + int(kept.sum()), points + kept.size
                gap = np.max(np.abs(np.asarray(found)[kept] - numeric[kept]), initial=0)
                assert gap <= limit * scale, f"{op} {name} {case.attrs}: {gap}\n{found}\n{numeric}"
    assert smooth * 2 >= points, f"{op}: too few smooth points"


def _slopes(function: Any, x: Any, step: float = 1e-6) -> Any:
    """Central differences of a sum with respect to x, of complex numbers along both of their parts."""
    found = np.zeros(x.shape, x.dtype)
    for index in np.ndindex(x.shape):
        for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
            moved = np.zeros(x.shape, x.dtype)
            moved[index] = unit * step
            found[index] += unit * (function(x + moved) - function(x - moved)) / (2 * step)
    return found


def test_the_gradient_of_an_angle() -> None:
    x = np.array([0.5 + 0.25j, -0.75 + 2j, 1 - 0.5j, -2j])
    case = Case("Angle", {"input": x}, {"Tout": "float64"}, ("input",))
    numeric = _slopes(lambda z: float(np.sum(np.angle(z) * weights(z.shape, np.float64))), x)
    np.testing.assert_allclose(gradients(case)["input"], numeric, atol=1e-8)


_ROWS = np.array([[0, 1], [2, 0]])
_SPARSE: dict[str, list[Any]] = {
    "SparseAdd": [_CELLS, SMALL[0], np.array([3, 4]), _ROWS, SMALL[1, :2], np.array([3, 4]), np.array(0.0)],
    "SparseSlice": [_CELLS, SMALL[0], np.array([3, 4]), np.array([1, 0]), np.array([2, 3])],
    "SparseFillEmptyRows": [_ROWS, SMALL[0, :2], np.array([4, 2]), np.array(0.5)],
}


@grouped("name", _SPARSE)
def test_gradients_of_sparse_values(name: str) -> None:
    """The values that come out are sums of those that go in: with weights both sides are the same number."""
    op, inputs = OPS[name], _SPARSE[name]
    made = node(op, inputs, {})
    dy = weights(made.outputs[1].shape, np.float64)
    assert op.gradient is not None
    found = op.gradient(Builder(), made, [None, dy, *[None] * (len(made.outputs) - 2)])
    back = sum(np.sum(dx * x) for dx, x in zip(found, inputs, strict=True) if dx is not None)
    np.testing.assert_allclose(back, np.sum(dy * made.outputs[1]), rtol=1e-14)
    assert sum(np.size(dx) for dx in found if dx is not None) == {"SparseAdd": 5}.get(name, 3)


def test_the_gradient_of_reordered_values() -> None:
    op, dy = OPS["SparseReorder"], np.array([1.0, 10, 100])
    inputs = [np.array([[2, 0], [0, 1], [1, 3]]), np.array([5.0, 6, 7]), np.array([3, 4])]
    assert op.gradient is not None
    _, found, _ = op.gradient(Builder(), node(op, inputs, {}), [None, dy])
    assert found.tolist() == [100, 1, 10]
