# SPDX-License-Identifier: Apache-2.0
"""One rule for what people write: raw ops and pages accept the same, in one type, and refuse it in the same words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog import dtypes


class Odd:
    """What NumPy would take, and nobody else."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nobody asked to load it")


def ring() -> list[Any]:
    made: list[Any] = [1]
    made[0] = made
    return made


VALUES: dict[str, Any] = {
    "2": 2, "2.0": 2.0, "2.5": 2.5, "1j": 1j, "True": True, "300": 300, "-1": -1, "2**31": 2**31, "2**40": 2**40,
    "2**70": 2**70, "1e300": 1e300, "nan": math.nan, "inf": math.inf, "text": "a", "bytes": b"a", "None": None,
    "[1, 2.5]": [1, 2.5], "[1, True]": [1, True], "[1, 1j]": [1, 1j], "[]": [], "[[]]": [[]], "(1,)": (1,),
    "[1, 'a']": [1, "a"], "[None]": [None], "ragged": [[1], [1, 2]], "ring": ring(), "object": object(), "dict": {},
    "set": {1}, "lambda": len, "class": int, "generator": iter(()), "range": range(2), "Odd": Odd(), "[Odd]": [Odd()],
    "float64": np.float64(2.5), "int64": np.int64(2), "bool_": np.bool_(True), "[float64]": [np.float64(2.5)],
    "f8 array": np.ones(1), "i4 array": np.ones(1, np.int32), "f4 array": np.ones(1, np.float32),
    "big-endian": np.ones(1, ">f4"), "masked": np.ma.ones(1), "[masked]": [np.ma.ones(1)],
    "objects": np.array([object()]), "numbers as objects": np.array([1, 2], object), "structured": np.zeros(1, "i4,f4"),
    "dates": np.array(["2026-01-01"], "M8[D]"), "texts": np.array(["a"]),
}  # fmt: skip
TYPES = ["int32", "uint8", "int64", "half", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"]


def one(dtype: str) -> Any:
    found = dtypes.named(dtype)
    assert found is not None
    return np.ones(1, numpy_type(found))


CALLS: dict[str, tuple[str, Any]] = {
    **{f"Equal({dtype}, _)": ("Equal", lambda v, dtype=dtype: {"x": one(dtype), "y": v}) for dtype in TYPES},
    "Mul(_, float32)": ("Mul", lambda v: {"x": v, "y": one("float32")}),
    "Mul(_, 2)": ("Mul", lambda v: {"x": v, "y": 2}),
    "Mul(2.5, _)": ("Mul", lambda v: {"x": 2.5, "y": v}),
    "Identity(_)": ("Identity", lambda v: {"input": v}),
    "Relu(_)": ("Relu", lambda v: {"features": v}),
    "Sqrt(_)": ("Sqrt", lambda v: {"x": v}),
    "Conj(_)": ("Conj", lambda v: {"input": v}),
    "LogicalNot(_)": ("LogicalNot", lambda v: {"x": v}),
    "StringLower(_)": ("StringJoin", lambda v: {"inputs": [v]}),
    "Pack([float32, _])": ("Pack", lambda v: {"values": [one("float32"), v]}),
    "AddN([_, 1])": ("AddN", lambda v: {"inputs": [v, 1]}),
    "IdentityN([_])": ("IdentityN", lambda v: {"input": [v]}),
    "Sum(x, _)": ("Sum", lambda v: {"input": one("float32"), "axis": v}),
    "Fill([2], _)": ("Fill", lambda v: {"dims": [2], "value": v}),
    "Const(_)": ("Const", lambda v: {"value": v, "dtype": "float32"}),
    "MaxPool3D(_)": (
        "MaxPool3D", lambda v: {"input": v, "ksize": [1] * 5, "strides": [1] * 5, "padding": "SAME"},
    ),
}  # fmt: skip


def told(error: vg.VoxgradError) -> list[Any]:
    """What is wrong, without the name of the block."""
    return sorted((type(error).__name__, fault.code, fault.wanted) for fault in error.faults)


def shown(results: Any) -> list[Any]:
    flat = [one for made in (results if isinstance(results, (list, tuple)) else [results]) for one in
            (made if isinstance(made, list) else [made])]  # fmt: skip
    return [(array.dtype, array.shape, array.tolist() if array.dtype == object else array.tobytes()) for array in flat]


def raw(op: str, arguments: dict[str, Any]) -> list[Any]:
    try:
        return shown(getattr(vg.raw_ops, op)(**arguments))
    except vg.VoxgradError as error:
        return told(error)


def on_page(op: str, arguments: dict[str, Any]) -> list[Any]:
    page = vg.Page()
    try:
        made = getattr(vg.ops, op)(page, **arguments)
        return shown(vg.ClientSession(page).run(made if isinstance(made, list) else [made]))
    except vg.VoxgradError as error:
        return told(error)


@pytest.mark.parametrize("call", CALLS)
def test_raw_ops_and_pages_take_the_same(call: str) -> None:
    op, arguments = CALLS[call]
    different = {
        name: (here, there)
        for name, value in VALUES.items()
        if not (op == "Const" and value is None)  # on a page, an attribute that is not given
        and (here := raw(op, arguments(value))) != (there := on_page(op, arguments(value)))
    }
    assert not different


def test_values_typed_on_a_pin_follow_the_rule_too() -> None:
    page = vg.Page()
    x = vg.ops.Const(page, one("int32"))
    block = page.add("AddV2", {"x": x, "y": 2.0})
    assert [problem.code for problem in page.problems()] == ["VG011"]
    page.set_value(block, "y", 2)
    assert page.problems() == [] and vg.ClientSession(page).run(block).tolist() == [3]
    assert vg.raw_ops.Identity(input=1j).dtype == vg.ClientSession(page).run(vg.ops.Identity(page, 1j)).dtype == complex


OURS = {
    "300", "-1", "2**31", "2**40", "2**70",  # TensorFlow lets integers wrap around
    "True", "[1, True]",  # it takes bools for some types and not for others
    "float64", "int64", "bool_", "f8 array", "i4 array", "f4 array", "big-endian",  # it casts arrays, losing fractions
    "[1, 1j]", "masked", "[masked]", "range", "numbers as objects", "dates", "Odd", "[Odd]", "ring",
    "generator", "[1, 'a']",
    "1e300", "inf", "nan",  # complex NaN in another part
}  # fmt: skip


@pytest.mark.parity
def test_the_rule_is_that_of_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    different = {}
    for dtype in TYPES:
        x = one(dtype)
        for name in VALUES.keys() - OURS:
            value = VALUES[name]
            try:
                theirs: Any = bool(tf.raw_ops.Equal(x=tf.constant(x), y=value) is not None)
            except (TypeError, ValueError, AttributeError, tf.errors.OpError):
                theirs = False
            try:
                ours = vg.raw_ops.Equal(x=x, y=value) is not None
            except vg.VoxgradError:
                ours = False
            if ours != theirs:
                different[dtype, name] = ours
    # An array of texts beside truths: TensorFlow takes every text for True. Here text is text.
    assert different == {("bool", "objects"): False, ("bool", "texts"): False}
    for name in ("2", "2.5", "1j", "True", "2**31", "text", "[]", "float64", "int64", "[float64]", "[1, 2.5]"):
        wanted = tf.raw_ops.Identity(input=VALUES[name]).dtype
        made = vg.raw_ops.Identity(input=VALUES[name])
        assert wanted == (tf.string if made.dtype == object else tf.as_dtype(made.dtype)), name


@pytest.mark.parametrize("name", ["Odd", "[Odd]", "masked", "[masked]", "structured", "dates", "object"])
def test_the_family_ordinary_ops_and_feeds_refuse_the_same(name: str) -> None:
    value = VALUES[name]
    pool = raw("MaxPool3D", {"input": value, "ksize": [1] * 5, "strides": [1] * 5, "padding": "SAME"})
    relu = raw("Relu", {"features": value})
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", name="x")
    assert pool == relu
    with pytest.raises(vg.InvalidArgumentError) as caught:
        vg.ClientSession(page).run(x, {"x": value})
    assert caught.value.faults[0].wanted == relu[0][2]


def test_explain_tells_of_ordinary_ops_and_refuses_as_they_do() -> None:
    told = str(vg.explain(vg.raw_ops.Relu, features=np.ones((2, 3), np.float32)))
    assert told.splitlines()[0] == "Relu -> numpy float32 [2,3]" and "NumPy" in told
    assert "float32 [1,3], float32 [1,3]" in str(vg.explain("Split", axis=0, value=np.ones((2, 3), "f4"), num_split=2))
    for op, given in {"Relu": {}, "MaxPool3D": {"input": [1]}, "Cast": {"x": [1]}, "Mul": {"x": [1], "y": 1j}}.items():
        with pytest.raises(vg.InvalidArgumentError) as caught:
            vg.explain(op, **given)
        with pytest.raises(vg.InvalidArgumentError) as same:
            getattr(vg.raw_ops, op)(**given)
        assert str(caught.value) == str(same.value) and "REQUIRED" not in str(same.value)
    for op in ("Assign", "NoSuchOp", None, 5):
        with pytest.raises(vg.InvalidArgumentError, match=r"explain|catalog"):
            vg.explain(op)  # type: ignore[arg-type]
