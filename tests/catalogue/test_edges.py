# SPDX-License-Identifier: Apache-2.0
"""Small calls at the edges of what ops take, with what TensorFlow 2.21 said to each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.kernels.arraywise import png

NAN, INF = float("nan"), float("inf")
_EMPTY = np.zeros((0, 1), np.int32)


def _floats(*values: float) -> Any:
    return np.array(values, np.float32)


def _images(*shape: int) -> Any:
    return np.zeros((1, *shape), np.float32)


VALUES: tuple[tuple[str, dict[str, Any], Any], ...] = (
    ("ApproximateEqual", {"x": _floats(1, 1, INF), "y": _floats(1, 1.5, INF), "tolerance": 0.5}, [True, True, False]),
    ("ClipByValue", {"t": _floats(-1, 0, 1), "clip_value_min": _floats(0.5, 0.5, 0.5),
                     "clip_value_max": _floats(-0.5, -0.5, -0.5)}, [0.5, 0.5, 0.5]),
    ("FloorMod", {"x": np.zeros(0, np.int32), "y": np.int32(0)}, []),
    ("BiasAdd", {"value": _floats(1, 2).reshape(1, 2), "bias": _floats(3, 4), "data_format": "NCHW"}, [[4, 6]]),
    ("BiasAddGrad", {"out_backprop": np.ones((3, 2), np.float32), "data_format": "NCHW"}, [3, 3]),
    ("InTopK", {"predictions": np.zeros((2, 0), np.float32), "targets": np.zeros(2, np.int32), "k": 1}, [False, False]),
    ("QuantizeAndDequantizeV2", {"input": _floats(-1, -0.25, 0.5), "input_min": np.float32(-0.5), "input_max":
                                 np.float32(2), "num_bits": 1, "range_given": True}, [-0.5, 0, 0]),
    ("AsString", {"input": np.array([5, -5], np.int32), "fill": " "}, [b" 5", b"-5"]),
    ("AsString", {"input": np.array([5], np.int32), "fill": "#", "width": 6}, [b"     5"]),
    ("AsString", {"input": _floats(1.5, NAN, -INF), "fill": "0", "width": 8}, [b"1.500000", b"     nan", b"    -inf"]),
    ("AsString", {"input": np.array([b"ab"], object), "fill": "-", "width": 4}, [b"ab  "]),
    ("Substr", {"input": np.array([b"a\xe9b", b"\xf0\x9f"], object), "pos": np.array([1, 0]), "len": np.array([1, 1]),
                "unit": "UTF8_CHAR"}, [b"\xe9", b"\xf0\x9f"]),
    ("ShardedFilename", {"basename": np.array(b"\xff", object), "shard": 1, "num_shards": 3}, b"\xff-00001-of-00003"),
)  # fmt: skip

_TWICE = np.array([[1.0, 2], [3, 4]])
_BOX = {"boxes": _floats(0, 0, 1, 1)[None], "box_ind": np.int32([0])}
_DEEP = np.array([[[47926, 59012, 37122], [5067, 51694, 3873], [24900, 37596, 51570]]], np.uint16)
_SAME_JUMP = {"ksize": [1, 1, 1, 1], "strides": [1, 1, 3, 1], "padding": "SAME"}
VALUES += (
    ("Mean", {"input": np.zeros((0, 2), np.complex64), "axis": [0]}, [0, 0]),
    ("ClipByValue", {"t": _floats(1, -5, 5), "clip_value_min": NAN, "clip_value_max": np.float32(2)}, [1, -5, 2]),
    ("ClipByValue", {"t": np.array([1 - 5j, 3 + 1j]), "clip_value_min": np.array(2 - 1j),
                     "clip_value_max": np.array([4 + 4j, 2 - 2j])}, [2 - 1j, 2 - 1j]),
    *(("DecodePng", {"contents": np.array(png.write(_DEEP, -1), object), "channels": 1, "dtype": kind}, [grey])
      for kind, grey in (("uint8", [[207], [126], [138]]), ("uint16", [[53201], [32300], [35394]]))),
    ("ExtractGlimpse", {"input": _images(2, 2, 1), "size": np.int32([1, 0]), "offsets": _floats(0, 0)[None]}, [[[]]]),
    ("ResizeNearestNeighborGrad", {"grads": _images(2, 0, 1), "size": np.int32([1, 2])}, [[[[0], [0]]]]),
    *((f"Resize{name}Grad", {"grads": _images(2, 1, 0), "original_image": _images(1, 1, 0)}, [[[[]]]])
      for name in ("Bilinear", "Bicubic")),
    ("CropAndResize", {"image": _images(2, 2, 0), **_BOX, "crop_size": np.int32([1, 1])}, [[[[]]]]),
    ("CropAndResizeGradImage", {"grads": _images(1, 1, 0), **_BOX, "image_size": np.int32([1, 1, 1, 0]), "T": "half"},
     [[[[]]]]),
    ("CropAndResizeGradBoxes", {"grads": _images(1, 1, 0), "image": _images(2, 2, 0), **_BOX}, [[0, 0, 0, 0]]),
    ("Zeta", {"x": _floats(2, 3.4e38), "q": _floats(0, 2.15)}, [INF, 0]),
    ("Igamma", {"a": _floats(-1), "x": _floats(0)}, [0]),
    ("IgammaGradA", {"a": _floats(-0.5), "x": _floats(0)}, [0]),
    ("Betainc", {"a": _floats(2.125), "b": _floats(0.0224), "x": _floats(0)}, [0]),
    ("Sigmoid", {"x": np.array([-2265.5 - 1j], np.complex64)}, [0]),
    ("Pow", {"x": np.zeros(0, np.int8), "y": np.int8(-1)}, []),
    ("StringJoin", {"inputs": []}, b""),
    ("AsString", {"input": np.array([6], np.uint32), "fill": " "}, [b"6"]),
    ("AsString", {"input": np.array([b"abc"], object), "precision": 2, "width": 4}, [b"  ab"]),
    ("Bincount", {"arr": np.array(1, np.int32), "size": 3, "weights": _floats(2)}, [0, 2, 0]),
    ("StridedSliceGrad", {"shape": _EMPTY[:, 0], "begin": _EMPTY[:, 0], "end": _EMPTY[:, 0], "strides": _EMPTY[:, 0],
                          "dy": np.array(b"ab", object)}, b"ab"),
    ("MaxPool", {"input": _floats(1, 2, 3).reshape(1, 1, 3, 1), **_SAME_JUMP}, [[[[1]]]]),
    ("MaxPoolGrad", {"orig_input": _floats(-INF).reshape(1, 1, 1, 1), "orig_output": _floats(-INF).reshape(1, 1, 1, 1),
                     "grad": _floats(5).reshape(1, 1, 1, 1), "ksize": [1, 2, 1, 1], "strides": [1, 1, 1, 1],
                     "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 0, 0, 0]}, [[[[5]]]]),
    ("AsString", {"input": np.array([b"abc"], object), "precision": 2}, [b"abc"]),
    ("Substr", {"input": np.array([b"abc"], object), "pos": np.array(-2), "len": np.array(-1)}, [b"bc"]),
    ("Substr", {"input": np.array([b"abc"], object), "pos": np.array(-2), "len": np.array(2**63 - 1)}, [b"bc"]),
    ("Substr", {"input": np.array([b"abc"], object), "pos": np.array(1), "len": np.array(-1),
                "unit": "UTF8_CHAR"}, [b""]),
    ("LinSpace", {"start": np.float64(INF), "stop": np.float64(1), "num": np.int32(1)}, [INF]),
    ("Polygamma", {"a": _floats(1, 3), "x": _floats(-2, 0)}, [INF, INF]),
    ("SparseToDense", {"sparse_indices": np.zeros((1, 0), np.int64), "output_shape": np.zeros(0, np.int64),
                       "sparse_values": np.array(b"12", object), "default_value": np.array(b"a", object)}, b"12"),
)  # fmt: skip

REFUSED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SplitV", {"value": _TWICE, "size_splits": np.array([-1]), "axis": 0, "num_split": 1}),
    ("SplitV", {"value": np.ones(4), "size_splits": np.array([-2, 1, 2, -1]), "axis": 0, "num_split": 4}),
    ("StringToNumber", {"string_tensor": np.array([b"-0"], object), "out_type": "uint32"}),
    ("SparseToDense", {"sparse_indices": np.zeros((0, 1), np.int64), "output_shape": np.array(4), "sparse_values":
                       np.zeros(0), "default_value": np.array(7.0)}),
    ("SparseToDense", {"sparse_indices": np.array([[0], [2]]), "output_shape": np.array([4]), "sparse_values":
                       np.ones((1, 2)), "default_value": np.array(7.0)}),
    ("SparseToDense", {"sparse_indices": np.array(0), "output_shape": np.array([4]), "sparse_values": np.ones(2),
                       "default_value": np.array(7.0)}),
    ("Conv3DBackpropInputV2", {"input_sizes": np.ones(5, np.uint64), "filter": np.ones((1,) * 5), "out_backprop":
                               np.ones((1,) * 5), "strides": [1] * 5, "padding": "VALID"}),
    *(("DecodeCSV", {"records": np.array([line], object), "record_defaults": [np.array([b""], object)] * 2})
      for line in (b'a"b,2', b'"a"b,2', b'1,"2', b' "a",2', b"1,2\n", b"1,2,")),
    *(("DecodeCSV", {"records": np.array([b"1,2,3"], object), "record_defaults": [np.array([b""], object)] * 2,
                     "select_cols": columns}) for columns in ([-1, 0], [1, 0], [1, 1], [1, 3])),
    ("SparseSoftmaxCrossEntropyWithLogits", {"features": np.ones((0, 0)), "labels": np.zeros(0, np.int64)}),
    ("MirrorPadGrad", {"input": np.ones((0, 4)), "paddings": np.zeros((2, 2), np.int32), "mode": "SYMMETRIC"}),
    ("GatherNd", {"params": np.ones((2, 0)), "indices": np.array([[1]])}),
    ("ScatterNd", {"indices": np.zeros((1, 0), np.int32), "updates": np.ones((1, 3)), "shape": np.int32([3])}),
    ("TensorScatterAdd", {"tensor": np.ones((3, 0)), "indices": np.array([[1]]), "updates": np.ones((1, 0))}),
    ("Betainc", {"a": np.ones((2, 1)), "b": np.ones(3), "x": np.full((2, 3), 0.5)}),
    ("LRN", {"input": np.ones((1, 1, 1, 2), np.float32), "depth_radius": -1}),
    ("BatchMatMul", {"x": np.ones((2, 1, 2)), "y": np.ones((1, 2, 1))}),
    ("Transpose", {"x": np.ones((), np.float32), "perm": _EMPTY}),
    ("Transpose", {"x": np.ones(2, np.float32), "perm": np.array(0, np.int32)}),
    ("BroadcastArgs", {"s0": np.array([1, 1]), "s1": np.array([[1, 1]])}),
    ("BroadcastGradientArgs", {"s0": np.array([4]), "s1": np.array([[4]])}),
    ("Tile", {"input": np.ones((1, 2), np.float32), "multiples": np.array([[1, 2]])}),
    ("ReverseV2", {"tensor": np.ones(2, np.float32), "axis": _EMPTY}),
    ("SplitV", {"value": np.ones(1), "size_splits": np.array([[1]]), "axis": 0, "num_split": 1}),
    ("SpaceToBatchND", {"input": np.ones((2, 4)), "block_shape": np.array(2), "paddings": np.zeros((1, 2), np.int32)}),
    ("StridedSlice", {"input": np.ones(2), "begin": _EMPTY[:, 0], "end": _EMPTY, "strides": _EMPTY[:, 0]}),
    *(("SparseReshape", {"input_indices": np.zeros((0, 2), np.int64), "input_shape": np.array(old), "new_shape":
                         np.array(new)}) for old, new in (([2, 3], [-1, -2]), ([2, 3], [-1, -1, -1]), (
                             [2, 3], [-2, -3]), ([-2, -3], [6]), ([0, 3], [-1, 0]))),
    *(("QuantizeAndDequantizeV2", {"input": _floats(1), "input_min": _floats(0)[0], "input_max": _floats(1)[0],
                                   "signed_input": signed, "num_bits": bits, "range_given": True})
      for signed, bits in ((True, 0), (True, 62), (False, 0), (False, 63))),
    ("AsString", {"input": np.array([5], np.int32), "precision": 2}),
    ("AsString", {"input": np.array([True]), "scientific": True}),
    ("AsString", {"input": _floats(1.5), "scientific": True, "shortest": True}),
)  # fmt: skip


@pytest.mark.parametrize(("op", "arguments", "wanted"), VALUES)
def test_values(op: str, arguments: dict[str, Any], wanted: Any) -> None:
    assert np.asarray(getattr(vg.raw_ops, op)(**arguments)).tolist() == wanted


ROWS = ((b'"x""y",2', b'x"y'), (b"\xff,2", b"\xff"), (b'"a\n,b",2', b"a\n,b"), (b"\r\n1,2", b"1"), (b",", b"d"))


def _first_field(row: bytes, raw_ops: Any) -> Any:
    made = raw_ops.DecodeCSV(records=np.array([row], object), record_defaults=[np.array([b"d"], object)] * 2)
    return np.asarray(made[0]).item()


@pytest.mark.parametrize(("row", "first"), ROWS)
def test_rows(row: bytes, first: bytes) -> None:
    """Quotes and ends of lines in records."""
    assert _first_field(row, vg.raw_ops) == first


@pytest.mark.parametrize(("op", "arguments"), REFUSED)
def test_refusals(op: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(vg.InvalidArgumentError):
        getattr(vg.raw_ops, op)(**arguments)


@pytest.mark.parity
def test_tensorflow_says_so() -> None:
    tf = pytest.importorskip("tests.vectors.catalogue.tensorflow_run", exc_type=ImportError).tf
    for op, arguments, wanted in VALUES:
        given = {
            name: tf.constant(value) if isinstance(value, np.ndarray) else value for name, value in arguments.items()
        }
        assert np.asarray(getattr(tf.raw_ops, op)(**given).numpy(), object).tolist() == wanted, op
    assert [_first_field(row, tf.raw_ops) for row, _ in ROWS] == [first for _, first in ROWS]
    for op, arguments in REFUSED:
        given = {
            name: tf.constant(value) if isinstance(value, np.ndarray) else value for name, value in arguments.items()
        }
        with pytest.raises(tf.errors.InvalidArgumentError):
            getattr(tf.raw_ops, op)(**given)


def test_special_functions_outside_their_domain_are_nan() -> None:
    for op, arguments in (("Igamma", {"a": 0, "x": 1}), ("Igammac", {"a": 0, "x": 1}), ("Zeta", {"x": 2.8, "q": 0}),
                          ("Betainc", {"a": 0, "b": 1, "x": 0.5}), ("Polygamma", {"a": 2, "x": -2}),
                          ("Polygamma", {"a": 0, "x": 0})):  # fmt: skip
        given = {name: _floats(value) for name, value in arguments.items()}
        assert np.isnan(getattr(vg.raw_ops, op)(**given)).all(), op


def test_an_infinity_stays_with_the_channels_around_it() -> None:
    given = {name: np.ones((1, 1, 1, 4), np.float32) for name in ("input_grads", "input_image", "output_image")}
    given["input_image"][..., 3] = INF
    found = vg.raw_ops.LRNGrad(**given, depth_radius=1, beta=1.0)[0, 0, 0]
    assert np.isfinite(found[:2]).all() and not np.isfinite(found[2:]).all()


def test_a_small_tail_keeps_its_digits_in_single_precision() -> None:
    found = vg.raw_ops.Betainc(a=_floats(2.1258721), b=_floats(0.02242902), x=_floats(0.0034818072))
    assert found.item() == pytest.approx(6.43961944232639e-08, rel=1e-6)


def test_gradients_of_ramps_multiply() -> None:
    dy, x = _floats(INF, 1), _floats(-1, -1)
    for op in ("ReluGrad", "Relu6Grad"):
        found = getattr(vg.raw_ops, op)(gradients=dy, features=x)
        assert np.isnan(found[0]) and found[1] == 0


def test_the_quirks_of_3d_kernels_are_not_those_of_2d() -> None:
    image, attrs = _floats(1, 1, 0, 0).reshape(1, 1, 4, 1), {"ksize": [1, 1, 2, 1], "strides": [1, 1, 2, 1]}
    with vg.semantics("tf_cpu"):
        pooled = vg.raw_ops.MaxPool(input=image, **attrs, padding="VALID")
        found = vg.raw_ops.MaxPoolGrad(
            orig_input=image, orig_output=pooled, grad=np.ones_like(pooled), **attrs, padding="VALID"
        )
    assert found.ravel().tolist() == [1, 0, 1, 0]


def test_a_slice_of_a_single_text_is_an_array_of_texts() -> None:
    none = np.zeros(0, np.int64)
    found = vg.raw_ops.StridedSlice(input=np.array(b"1_0", object), begin=none, end=none, strides=none)
    assert found.dtype == object and found.shape == () and found.item() == b"1_0"


def test_nothing_is_gathered_from_a_scalar() -> None:
    with pytest.raises(vg.VoxgradError, match="VG010 GatherNd: params"):
        vg.raw_ops.GatherNd(params=np.int8(2), indices=np.zeros((5, 0), np.int32))


def test_a_limit_of_quantised_numbers_is_that_of_relu6() -> None:
    """TensorFlow declares QuantizedReluX and has no kernel: with 6 it is QuantizedRelu6, with more QuantizedRelu."""
    numbers = np.arange(256, dtype=np.uint8)
    ends = {"min_features": np.float32(-10), "max_features": np.float32(10)}
    for most, other in ((6, vg.raw_ops.QuantizedRelu6), (1e9, vg.raw_ops.QuantizedRelu)):
        found = vg.raw_ops.QuantizedReluX(features=numbers, max_value=np.float32(most), **ends)
        for one, two in zip(found, other(features=numbers, **ends), strict=True):
            np.testing.assert_array_equal(one, two)
    assert found[0].dtype == np.uint8 and found[0].min() == 128


def test_quantised_and_plain_integers_stand_for_each_other() -> None:
    floats = np.linspace(-1, 1, 5, dtype=np.float32)
    for name in ("quint8", "uint8"):
        made, low, high = vg.raw_ops.QuantizeV2(input=floats, min_range=-1.0, max_range=1.0, T=name)
        assert made.dtype == np.uint8 and made.tolist() == [0, 64, 128, 191, 255]
    with pytest.raises(vg.InvalidArgumentError, match="VG003 QuantizeV2: T must be"):
        vg.raw_ops.QuantizeV2(input=floats, min_range=-1.0, max_range=1.0, T="int64")
    with pytest.raises(vg.VoxgradError, match="VG011 Dequantize: input must be of type qint8, quint8"):
        vg.raw_ops.Dequantize(input=np.arange(3), min_range=low, max_range=high)


def test_the_least_integer_is_not_below_a_threshold() -> None:
    """1 + 127 is -128 in int8, whose size, 128, is no number of the type."""
    at = np.array([[0, 0], [0, 1]])
    a, b = np.array([1, 1], np.int8), np.array([0, 127], np.int8)
    found = vg.raw_ops.SparseAdd(a_indices=at, a_values=a, a_shape=[1, 2], b_indices=at, b_values=b, b_shape=[1, 2],
                                 thresh=np.int8(100))  # fmt: skip
    assert found.sum_indices.tolist() == [[0, 1]] and found.sum_values.tolist() == [-128]


def test_an_empty_quantised_tensor_has_the_sizes_that_reshape_gives_it() -> None:
    empty = {"tensor": np.zeros((0, 4), np.uint8), "shape": [0, -1, 1]}
    bounds = {"input_min": np.float32(-2), "input_max": np.float32(1)}
    assert vg.raw_ops.QuantizedReshape(**empty, **bounds)[0].shape == vg.raw_ops.Reshape(**empty).shape == (0, 4, 1)
