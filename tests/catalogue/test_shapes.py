# SPDX-License-Identifier: Apache-2.0
"""Inference tells types and shapes before a run, and keeps what it can where sizes are symbols."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.catalogue.test_vectors import by_op
from tests.grouped import grouped
from tests.vectors.catalogue.load import Recorded
from voxgrad.catalog import attributes, dtypes
from voxgrad.catalog.dims import Dim
from voxgrad.catalog.model import Call, Spec
from voxgrad.catalog.registry import OPS, find
from voxgrad.errors import Faults
from voxgrad.kernels.element_types import dtype_of


def _type(array: Any) -> Any:
    return dtypes.STRING if array.dtype == object else dtype_of(array.dtype)


def _flat(values: Any) -> list[Any]:
    return [one for value in values for one in (_flat(value) if isinstance(value, (list, tuple)) else [value])]


def _infer(one: Recorded, spec: Any) -> tuple[list[Spec], Faults]:
    """The specs of a recorded case, its inputs seen through `spec(item, array)`."""
    op, faults = OPS[one.case.op], Faults(one.case.op)
    inputs = {}
    for item in op.inputs:
        given = one.case.inputs[item.name]
        inputs[item.name] = (
            tuple(spec(item, each, i) for i, each in enumerate(given)) if item.many else spec(item, given, 0)
        )
    attrs = attributes.canonical(op, one.case.attrs, faults)
    assert op.infer is not None
    made = op.infer(Call(op, inputs, attrs, block="block"), faults)
    return _flat(made or ())[: len(_flat(one.outputs))], faults


def _known(item: Any, array: Any, index: int) -> Spec:
    values = tuple(array.ravel().tolist()) if item.host else None
    return Spec(_type(array), array.shape, values)


OPEN_RANK = ("ParseTensor",)
"""Ops of whose results only the data know the rank."""


@grouped("op", by_op(), by=lambda op: OPS[op].group)
def test_known_inputs_give_known_outputs(op: str) -> None:
    """Type and rank are right; a size is right or, where only data decide it, a symbol."""
    for one in by_op()[op]:
        specs, faults = _infer(one, _known)
        assert not faults, [str(fault) for fault in faults.found]
        for spec, array in zip(specs, _flat(one.outputs), strict=True):
            assert spec.dtype is not None and dtypes.plain(spec.dtype) == _type(array), one.id
            if op in OPEN_RANK:
                assert spec.shape is None
                continue
            assert spec.shape is not None and len(spec.shape) == array.ndim, f"{one.id}: {spec.shape}"
            assert all(isinstance(a, Dim) or a == b for a, b in zip(spec.shape, array.shape, strict=True)), (
                f"{one.id}: {spec.shape}"
            )
            if spec.value is not None and array.size <= 64:
                assert [value for value in spec.value if isinstance(value, Dim)] or list(
                    spec.value
                ) == array.ravel().tolist(), one.id


@grouped("op", by_op(), by=lambda op: OPS[op].group)
def test_symbols_pass_through(op: str) -> None:
    """With every size a symbol nothing is a fault, and the sizes of the result are right once the symbols are."""
    for one in by_op()[op]:
        values: dict[str, int] = {}

        def hidden(item: Any, array: Any, index: int, values: dict[str, int] = values) -> Spec:
            if item.host:
                return _known(item, array, index)
            names = [f"{item.name}{index}_{axis}" for axis in range(array.ndim)]
            values.update(zip(names, array.shape, strict=True))
            # A size of 1 stays: whether something broadcasts must be known.
            shape = tuple(size if size <= 1 else Dim(name) for name, size in zip(names, array.shape, strict=True))
            return Spec(_type(array), shape)

        specs, faults = _infer(one, hidden)
        assert not faults, (one.id, [str(fault) for fault in faults.found])
        for spec, array in zip(specs, _flat(one.outputs), strict=True):
            assert spec.dtype is not None and dtypes.plain(spec.dtype) == _type(array), one.id
            if spec.shape is None:
                continue
            assert len(spec.shape) == array.ndim, f"{one.id}: {spec.shape}"
            for size, real in zip(spec.shape, array.shape, strict=True):
                found = size.at(values) if isinstance(size, Dim) else size
                assert isinstance(found, Dim) or found == real, f"{one.id}: {spec.shape} for {array.shape}"


@grouped("op", by_op(), by=lambda op: OPS[op].group)
def test_unknown_shapes_are_no_fault(op: str) -> None:
    for one in by_op()[op]:
        specs, faults = _infer(one, lambda item, array, index: Spec(_type(array)))
        assert not faults, (one.id, [str(fault) for fault in faults.found])
        found = [spec.dtype and dtypes.plain(spec.dtype) for spec in specs]
        assert found == [_type(array) for array in _flat(one.outputs)] or not specs


WRONG: dict[str, list[tuple[dict[str, Any], dict[str, Any], str]]] = defaultdict(list)


def _wrong(op: str, code: str, attrs: dict[str, Any] | None = None, **inputs: Any) -> None:
    WRONG[op].append((inputs, attrs or {}, code))


_wrong("AddV2", "VG012", x=np.zeros(2), y=np.zeros(3))
_wrong("AddV2", "VG011", x=np.zeros(2), y=np.zeros(2, np.float32))
_wrong("MatMul", "VG012", a=np.zeros((2, 3)), b=np.zeros((2, 3)))
_wrong("MatMul", "VG010", a=np.zeros(3), b=np.zeros((3, 3)))
_wrong("Sum", "VG003", input=np.zeros((2, 3)), axis=[2])
_wrong("Sum", "VG003", input=np.zeros((2, 3)), axis=[0, -2])
_wrong("Reshape", "VG012", tensor=np.zeros((2, 3)), shape=[4, 2])
_wrong("Reshape", "VG014", tensor=np.zeros((2, 3)), shape=[-1, -1])
_wrong("Transpose", "VG003", x=np.zeros((2, 3)), perm=[0, 0])
_wrong("ConcatV2", "VG012", values=[np.zeros((2, 3)), np.zeros((3, 3))], axis=1)
_wrong("ConcatV2", "VG004", values=[np.zeros(2)], axis=0)
_wrong("Pack", "VG012", values=[np.zeros(2), np.zeros(3)])
_wrong("Slice", "VG043", input=np.zeros(4), begin=[2], size=[3])
_wrong("StridedSlice", "VG003", input=np.zeros(4), begin=[0], end=[2], strides=[0])
_wrong("Split", "VG012", {"num_split": 3}, axis=0, value=np.zeros(4))
_wrong("Pad", "VG003", input=np.zeros(2), paddings=[[-1, 0]])
_wrong("MirrorPad", "VG003", {"mode": "REFLECT"}, input=np.zeros(2), paddings=[[2, 0]])
_wrong("MirrorPad", "VG003", {"mode": "reflect"}, input=np.zeros(2), paddings=[[1, 0]])
_wrong("Squeeze", "VG012", {"axis": [0]}, input=np.zeros((2, 1)))
_wrong("Tile", "VG004", input=np.zeros(2), multiples=[1, 2])
_wrong("OneHot", "VG003", {"axis": 3}, indices=[1], depth=3, on_value=1.0, off_value=0.0)
_wrong("Range", "VG003", start=0, limit=5, delta=-1)
_wrong("BiasAdd", "VG013", value=np.zeros((2, 3)), bias=np.zeros(2))
_wrong("SparseSoftmaxCrossEntropyWithLogits", "VG012", features=np.zeros((2, 3)), labels=[1])
_wrong(
    "Conv2D",
    "VG013",
    {"strides": [1, 1, 1, 1], "padding": "SAME"},
    input=np.zeros((1, 4, 4, 3)),
    filter=np.zeros((2, 2, 2, 1)),
)
_wrong(
    "Conv2D",
    "VG003",
    {"strides": [1, 1, 1, 1], "padding": "same"},
    input=np.zeros((1, 4, 4, 3)),
    filter=np.zeros((2, 2, 3, 1)),
)
_wrong(
    "MaxPool",
    "VG016",
    {"ksize": [1, 9, 1, 1], "strides": [1, 1, 1, 1], "padding": "VALID"},
    input=np.zeros((1, 4, 4, 3)),
)
_wrong("GatherV2", "VG043", params=np.zeros(3), indices=[3], axis=0)
_wrong("GatherNd", "VG043", params=np.zeros((3, 2)), indices=[[0, 2]])
_wrong("Fill", "VG014", dims=[-1], value=1.0)
_wrong("FloorDiv", "VG043", x=np.array([1]), y=np.array([0]))
_wrong("Pow", "VG043", x=np.array([2]), y=np.array([-1]))
_wrong(
    "SparseToDense", "VG043", sparse_indices=[[1], [1]], output_shape=[3], sparse_values=[1.0, 2.0], default_value=0.0
)
for _op in ("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"):
    for _indices, _rows, _code in (([-1, 0], 3, "VG043"), ([0, 3], 3, "VG043"), ([0, 1], -3, "VG003")):
        _wrong(_op, _code, grad=np.ones((2, 2)), indices=_indices, segment_ids=[0, 1], output_dim0=_rows)
_wrong("Bincount", "VG003", arr=[0], size=-1, weights=[1.0])
_wrong("UnsortedSegmentSum", "VG003", data=np.ones(2), segment_ids=[0, 1], num_segments=-1)
_wrong("ConcatOffset", "VG012", concat_dim=0, shape=[[2, 3], [2, 4]])
_wrong("ConcatOffset", "VG004", concat_dim=0, shape=[[2, 3]])
_wrong("ConcatOffset", "VG010", concat_dim=0, shape=[2, 3])
_wrong("SpaceToBatch", "VG003", {"block_size": 1}, input=np.ones((1, 2, 2, 1)), paddings=[[0, 0], [0, 0]])
_wrong("BatchToSpace", "VG003", {"block_size": 1}, input=np.ones((4, 2, 2, 1)), crops=[[0, 0], [0, 0]])
_wrong("MatrixBandPart", "VG003", input=np.ones((2, 3)), num_lower=3, num_upper=0)
_wrong("MatrixBandPart", "VG003", input=np.ones((2, 3)), num_lower=0, num_upper=4)
_wrong("Diag", "VG010", diagonal=1.0)
_wrong("ExpandDims", "VG012", input=np.ones(2), axis=[0, 1])
_wrong("Fill", "VG012", dims=[2], value=[1.0, 2.0])
_wrong("Fill", "VG010", dims=[2], value=[[1.0]])
_wrong("Reshape", "VG012", tensor=np.zeros((0, 3)), shape=[3])
_wrong("Reshape", "VG012", tensor=np.zeros((2, 3)), shape=[-1, 0])
for _text in (b"+/+/", b"AQ=", b"A", b"A===", b"AQID BA", b"====", b"AQID="):
    _wrong("DecodeBase64", "VG043", input=[_text])
for _text in (b"1_0", b"", b"0x10", b"1e5", b"1f"):
    _wrong("StringToNumber", "VG043", {"out_type": "int32"}, string_tensor=[_text])
for _text in (b"1_0", b"1_0.5", b"", b"0x", b"1f", b"1e_5"):
    _wrong("StringToNumber", "VG043", string_tensor=[_text])
_wrong("DecodeCSV", "VG043", records=[b"1_0"], record_defaults=[np.array([1], np.int32)])
_wrong("DecodeCSV", "VG012", records=[b"1"], record_defaults=[np.array([1, 2], np.int32)])
_wrong("DecodeCSV", "VG012", records=[b"1"], record_defaults=[np.array([[1]], np.int32)])
_WINDOW = {"strides": [1, 1, 1, 1], "padding": "EXPLICIT"}
for _code, _amounts in (("VG003", [0, 0, 2, 0, 0, 0, 0, 0]), ("VG007", [1, 0, 0, 0, 0, 0, 0, 0]),
                        ("VG007", [0, 0, 0, 0, 0, 0, 0, 1])):  # fmt: skip
    _attrs = {"ksize": [1, 2, 2, 1], "explicit_paddings": _amounts, **_WINDOW}
    _wrong("MaxPool", _code, _attrs, input=np.ones((1, 2, 2, 1)))
_wrong("Conv2D", "VG007", {"explicit_paddings": [1, 0, 0, 0, 0, 0, 0, 0], **_WINDOW}, input=np.ones((1, 2, 2, 1)),
       filter=np.ones((1, 1, 1, 1)))  # fmt: skip
_wrong("DecodeRaw", "VG012", {"out_type": "int32"}, bytes=[b"abc"])
_wrong("StringToNumber", "VG043", string_tensor=["a"])
_wrong("CheckNumerics", "VG044", {"message": "x"}, tensor=np.array([np.nan]))


@pytest.mark.parametrize("op", WRONG)
def test_wrong_calls_name_the_fault(op: str) -> None:
    import voxgrad as vg

    for inputs, attrs, code in WRONG[op]:
        with pytest.raises(vg.VoxgradError) as error:
            getattr(vg.raw_ops, op)(**inputs, **attrs)
        assert code in {fault.code for fault in error.value.faults}, str(error.value)
        assert all(fault.op == op for fault in error.value.faults)


def test_shape_arithmetic_is_followed() -> None:
    """A size taken out of a shape, multiplied and packed again is still that size."""
    n = Dim("N")

    def infer(name: str, attrs: dict[str, Any] | None = None, **inputs: Any) -> Spec:
        op = find(name)
        faults = Faults(name)
        assert op.infer is not None
        made = op.infer(Call(op, inputs, attributes.canonical(op, attrs or {}, faults)), faults)
        assert made is not None and not faults, [str(one) for one in faults.found]
        return made[0]

    def const(*values: int) -> Spec:
        return Spec(dtypes.INT32, (len(values),), values)

    shape = infer("Shape", input=Spec(dtypes.FLOAT32, (n, 4, 6)))
    rows = infer("StridedSlice", {"shrink_axis_mask": 1}, input=shape, begin=const(0), end=const(1), strides=const(1))
    doubled = infer("Mul", x=rows, y=Spec(dtypes.INT32, (), (2,)))
    packed = infer("Pack", values=(doubled, Spec(dtypes.INT32, (), (-1,))))
    made = infer("Reshape", tensor=Spec(dtypes.FLOAT32, (n, 4, 6)), shape=packed)
    assert made.shape == (2 * n, 12)


@pytest.mark.parametrize(("begin", "size"), [([0], [1, 2]), ([0, 0], [1])])
def test_a_slice_of_an_open_shape_has_as_many_sizes_as_beginnings(begin: list[int], size: list[int]) -> None:
    page = vg.Page()
    vg.ops.Slice(page, vg.ops.Placeholder(page, dtype="float32", shape=None), begin, size)
    (problem,) = page.problems()
    assert (problem.code, problem.pin, problem.wanted) == ("VG004", "size", f"have {len(begin)} entries, as begin")
