# SPDX-License-Identifier: Apache-2.0
"""The calls of ordinary ops that are recorded from TensorFlow: small, and full of edges.

A case is an op, inputs by name (an array, or a list of arrays) and attributes as JSON holds them. `gradient` names the
inputs whose gradients are recorded too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from voxgrad.catalog.dtypes import INT64, DType, named
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.tensor_proto import tensor_bytes

Array = np.ndarray[Any, Any]

DTYPES = {
    "half": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16), "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64), "complex64": np.dtype(np.complex64), "complex128": np.dtype(np.complex128),
    "bool": np.dtype(bool),
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    op: str
    inputs: dict[str, Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    gradient: tuple[str, ...] = ()
    outputs: int | None = None
    """How many outputs TensorFlow defines; None for all."""


def numbers(dtype: str, *values: Any) -> Array:
    return np.array(values, dtype=np.complex128 if "complex" in dtype else None).astype(DTYPES[dtype])


def ramp(dtype: str, *shape: int, scale: float = 0.5, start: float = -2.0) -> Array:
    """Different values of both signs, exact in every type."""
    count = int(np.prod(shape))
    flat = (np.arange(count) * 7 % max(count, 1)) * scale + start
    if "uint" in dtype or dtype == "bool":
        flat = np.arange(count) * 7 % max(count, 1)
    if "complex" in dtype:
        flat = flat + 1j * (np.arange(count) * 3 % 5 - 2)
    with np.errstate(invalid="ignore"):
        return flat.reshape(shape).astype(DTYPES[dtype])


def edges(dtype: str) -> Array:
    """The edges of a type, and ordinary values."""
    if "complex" in dtype:
        return np.array([0, 1, -1, 1j, -2.5j, 0.5 + 0.25j, -0.75 + 2j, 3 - 4j, 1e-3 + 1e-3j], DTYPES[dtype])
    if dtype == "bool":
        return np.array([True, False])
    if "int" in dtype:
        info = np.iinfo(DTYPES[dtype])
        return np.array([info.min, info.max, 0, 1, 2, 3, 7, 100, max(info.min, -1), max(info.min, -2),
                         max(info.min, -7)],
                        DTYPES[dtype])  # fmt: skip
    return np.array([-np.inf, -100, -3.5, -2.5, -1.5, -1, -0.75, -0.5, -1e-3, -0.0, 0.0, 1e-3, 0.25, 0.5, 0.9, 1, 1.5,
                     2, 2.5,
                     3.25, 7, 20, 100, np.inf, np.nan], np.float64).astype(DTYPES[dtype])  # fmt: skip


def _pair(dtype: str) -> tuple[Array, Array]:
    """Two arrays with every pair of some edges."""
    if "complex" in dtype:
        few = edges(dtype)[1:7]
    elif "int" in dtype or dtype == "bool":
        few = edges(dtype)
    else:
        few = np.array([-np.inf, -3.5, -1, -0.0, 0.0, 0.5, 1, 2, 3.25, np.inf, np.nan]).astype(DTYPES[dtype])
    left, right = np.meshgrid(few, few, indexing="ij")
    return left.copy(), right.copy()


def types_of(op: str, variable: str = "T") -> list[str]:
    return [dtype.name for dtype in OPS[op].types[variable] if dtype.name in DTYPES]


def _some(names: Sequence[str]) -> list[str]:
    """One type per class: enough where only data moves."""
    kept = ("float32", "bfloat16", "int32", "uint8", "complex64", "bool")
    return [name for name in names if name in kept]


_INTEGER_ZERO = ("Div", "RealDiv", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod")
ODD: dict[str, Any] = {
    "Log1p": lambda x: (x.dtype.kind == "c") & ((x == -1) | (np.abs(x) < 0.01)),
    "Erf": lambda x: np.isinf(x) if x.dtype == np.float64 else np.zeros(x.shape, bool),
}
"""Points at which TensorFlow 2.21 is wrong: Log1p of a complex -1 has a NaN angle and loses digits near 0, Erf of an
infinite float64 is NaN. Round of integers is 0 everywhere, and is left out too."""


def unary() -> Iterator[Case]:
    for op in OPS.values():
        if (
            op.group not in ("math", "nn")
            or len(op.inputs) != 1
            or len(op.outputs) != 1
            or op.attrs
            or op.inputs[0].many
        ):
            continue
        if op.inputs[0].host or op.outputs[0].shape == "[]" or op.name in ("Softmax", "LogSoftmax", "BiasAddGrad"):
            continue
        name = op.inputs[0].name
        types = types_of(op.name) if isinstance(op.inputs[0].type, str) else ["bool"]
        for dtype in types:
            values = edges(dtype)
            if op.name in ("Reciprocal", "Inv") and "int" in dtype:
                values = values[values != 0]
            if op.name in ODD:
                values = values[~ODD[op.name](values)]
            if op.name == "Round" and "int" in dtype:
                continue
            yield Case(op.name, {name: values})
        yield Case(op.name, {name: ramp(types[0], 0, 3)})
        yield Case(op.name, {name: ramp(types[0], 1).reshape(())})
        if op.gradient is not None and "float64" in types:
            inner = (
                np.array([-0.9, -0.6, -0.25, 0.3, 0.5, 0.8])
                if op.name not in ("Acosh", "Ndtri")
                else np.array([1.5, 2, 4])
            )
            inner = np.array([0.1, 0.4, 0.7]) if op.name == "Ndtri" else inner
            inner = np.abs(inner) if op.name in ("Log", "Sqrt", "Rsqrt") else inner
            yield Case(op.name, {name: inner}, gradient=(name,))


def binary() -> Iterator[Case]:
    for op in OPS.values():
        if (
            op.group != "math"
            or len(op.inputs) != 2
            or len(op.outputs) != 1
            or any(item.host or item.many for item in op.inputs)
        ):
            continue
        if op.name in ("Cross", "Complex") or op.kernel.startswith(("special", "reductions", "matrix")):
            continue
        first, second = (item.name for item in op.inputs)
        types = types_of(op.name) if isinstance(op.inputs[0].type, str) else ["bool"]
        for dtype in types:
            left, right = _pair(dtype)
            if "int" in dtype:
                keep = np.ones(left.shape, bool)
                if op.name in _INTEGER_ZERO:
                    keep &= (right != 0) & ~((left == left.min()) & (right.astype(object) == -1))
                if op.name == "Pow":
                    keep &= (right >= 0) & (right < 8)
                left, right = left[keep], right[keep]
            yield Case(op.name, {first: left, second: right})
        alike = op.name.endswith("Grad") or op.name == "ApproximateEqual"
        if not alike:
            dtype = "float32" if "float32" in types else types[0]
            yield Case(op.name, {first: ramp(dtype, 2, 1, 3, start=0.5), second: ramp(dtype, 4, 1, start=1.0)})
            yield Case(op.name, {first: ramp(dtype, 3, 0), second: ramp(dtype, 1, 1, start=1)})
            yield Case(op.name, {first: ramp(dtype, 1).reshape(()), second: ramp(dtype, 2, 2, start=0.5)})
        if op.gradient is not None and "float64" in types and op.name != "TruncateMod":
            x, y = np.array([[0.5, 1.25, 2.0], [-0.75, 3.5, 0.25]]), np.array([[1.5, 0.75, -2.25], [0.5, 1.75, 3.0]])
            x = np.abs(x) if op.name in ("Pow", "Xlogy", "Atan2") else x
            y = np.abs(y) if op.name in ("Xlogy",) else y
            yield Case(op.name, {first: x, second: y}, gradient=(first, second))
            if not alike:
                yield Case(op.name, {first: x, second: np.abs(y[:1])}, gradient=(first, second))
    yield Case("Equal", {"x": ramp("float32", 2), "y": ramp("float32", 3)}, {"incompatible_shape_error": False})
    yield Case("NotEqual", {"x": ramp("float32", 2), "y": ramp("float32", 3)}, {"incompatible_shape_error": False})
    yield Case("Add", {"x": np.array([b"ab", b"\x00"], object), "y": np.array([b"c"], object)})


def complex_gradients() -> Iterator[Case]:
    """Gradients of complex numbers: where a conjugate belongs shows only here."""
    x, y = np.array([0.5 + 0.25j, -0.75 + 2j, 1 - 0.5j]), np.array([1.5 - 1j, 0.25 + 0.5j, -1 + 2j])
    for op in ("Neg", "Reciprocal", "Square", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Sin", "Cos", "Tan",
               "Sinh",
               "Cosh", "Tanh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Sigmoid"):  # fmt: skip
        yield Case(op, {"x": x}, gradient=("x",))
    for op in ("AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "Pow", "SquaredDifference", "Xlogy", "Xdivy"):
        yield Case(op, {"x": x, "y": y}, gradient=("x", "y"))
    for op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad"):
        yield Case(op, {"y": x, "dy": y}, gradient=("y", "dy"))
    yield Case("Conj", {"input": x}, gradient=("input",))
    for op in ("Real", "Imag", "ComplexAbs"):
        name = OPS[op].inputs[0].name
        yield Case(op, {name: x}, {"Tout": "float64"}, (name,))
    yield Case("Complex", {"real": x.real.copy(), "imag": x.imag.copy()}, {"Tout": "complex128"}, ("real", "imag"))
    square = np.outer(x, y)
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        yield Case("MatMul", {"a": square, "b": square.T.copy()}, {"transpose_a": a, "transpose_b": b}, ("a", "b"))
        yield Case(
            "BatchMatMulV2", {"x": square[None], "y": square.T[None].copy()}, {"adj_x": a, "adj_y": b}, ("x", "y")
        )
    axis = {"axis": np.array([1], np.int32)}
    for op in ("Sum", "Mean", "Prod"):
        yield Case(op, {"input": square, **axis}, gradient=("input",))
    yield Case("ConjugateTranspose", {"x": square, "perm": np.array([1, 0], np.int32)}, gradient=("x",))


def special() -> Iterator[Case]:
    for op in OPS.values():
        if not op.kernel.startswith("special") or len(op.inputs) == 1:
            continue
        for dtype in types_of(op.name):
            positive = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0]).astype(DTYPES[dtype])
            names = [item.name for item in op.inputs]
            if op.name == "Betainc":
                a, b = np.meshgrid(positive, positive)
                x = np.full(a.shape, 0.3).astype(DTYPES[dtype])
                yield Case(
                    op.name, {"a": a.copy(), "b": b.copy(), "x": x}, gradient=("x",) if dtype == "float64" else ()
                )
                continue
            left, right = np.meshgrid(positive, positive, indexing="ij")
            left, right = left.copy(), right.copy()
            if op.name == "Polygamma":
                left = np.round(left)
            if op.name == "Zeta":
                left = left + np.asarray(1, left.dtype)
            if op.name == "IgammaGradA" and dtype == "float64":
                a, x = np.meshgrid([1e-3, 0.1, 5, 10, 20, 50, 100, 1000], [1e-6, 1e-3, 0.1, 1, 3, 45, 100])
                yield Case(op.name, {"a": a.astype(DTYPES[dtype]), "x": x.astype(DTYPES[dtype])})
            yield Case(op.name, dict(zip(names, (left, right), strict=True)))
            if op.gradient is not None and dtype == "float64":
                wanted = names if op.name.startswith("Igamma") else names[1:]
                yield Case(op.name, dict(zip(names, (left, right), strict=True)), gradient=tuple(wanted))


def casts() -> Iterator[Case]:
    sources = (
        "float32",
        "float64",
        "half",
        "bfloat16",
        "int32",
        "int64",
        "uint8",
        "int8",
        "uint16",
        "bool",
        "complex64",
    )
    for source in sources:
        values = edges(source)
        for target in (*sources, "uint32", "uint64", "int16", "complex128"):
            inside = values
            if "float" in source or source == "half":
                inside = values[np.isfinite(values)] if "int" in target else values
                inside = np.abs(inside) if "uint" in target else inside
            if "complex" in source and target not in ("complex64", "complex128"):
                inside = np.abs(values.real).astype(values.dtype)
            yield Case("Cast", {"x": inside}, {"DstT": target})
    yield Case(
        "Cast", {"x": np.array([1.0009765, -1.0009765, 3.14159], np.float32)}, {"DstT": "half", "Truncate": True}
    )
    yield Case(
        "Cast", {"x": np.array([1.0009765, -1.0009765, 3.14159], np.float32)}, {"DstT": "bfloat16", "Truncate": True}
    )
    yield Case("Cast", {"x": np.array([1.5, -2.5])}, {"DstT": "float32"}, gradient=("x",))
    for source in ("complex64", "complex128"):
        imaginary = np.array([0, 1j, 1, 0.5, -2j, 3 + 4j]).astype(DTYPES[source])
        for target in ("bool", "int32", "uint8", "half", "float32", "float64", "complex64", "complex128"):
            yield Case("Cast", {"x": imaginary}, {"DstT": target})
    wide = np.array([1.0009765, -1.0009765, 3.14159, 0, -0.0, 1e30, -1e30, np.inf, np.nan, 1e-30, 6e-8, 65519, 65520,
                     1 + 2**-11])  # fmt: skip
    for source in ("half", "bfloat16", "float32", "float64", "complex128"):
        with np.errstate(over="ignore"):
            values = wide.astype(DTYPES[source])
        for target in ("half", "bfloat16", "float32", "float64", "complex64", "complex128"):
            # TensorFlow reads the bits of a float64 as those of something else on the way to complex64.
            if (source, target) != ("float64", "complex64"):
                yield Case("Cast", {"x": values}, {"DstT": target, "Truncate": True})
        yield Case("Cast", {"x": values[:4]}, {"DstT": "int32", "Truncate": True})


def choices() -> Iterator[Case]:
    flags = np.array([[True, False, True], [False, False, True]])
    for dtype in _some(list(DTYPES)):
        yield Case("Select", {"condition": flags, "x": ramp(dtype, 2, 3), "y": ramp(dtype, 2, 3)[::-1].copy()})
        yield Case(
            "Select", {"condition": flags[:, 0].copy(), "x": ramp(dtype, 2, 3), "y": ramp(dtype, 2, 3)[::-1].copy()}
        )
        yield Case("SelectV2", {"condition": flags, "t": ramp(dtype, 3), "e": ramp(dtype, 2, 1)})
        if dtype in ("float32", "int32"):
            low, high = (numbers(dtype, one)[0].reshape(()) for one in (1, 2))
            yield Case("ClipByValue", {"t": ramp(dtype, 6), "clip_value_min": low, "clip_value_max": high})
        if dtype != "bool":
            yield Case("AddN", {"inputs": [ramp(dtype, 2, 3), ramp(dtype, 2, 3)[::-1].copy(), ramp(dtype, 2, 3)]})
            yield Case("AddN", {"inputs": [ramp(dtype, 2)]})
    x, y = ramp("float64", 2, 3), ramp("float64", 2, 3, start=1)
    yield Case("Select", {"condition": flags, "x": x, "y": y}, gradient=("x", "y"))
    yield Case("Select", {"condition": flags[:, 0].copy(), "x": x, "y": y}, gradient=("x", "y"))
    yield Case("SelectV2", {"condition": flags, "t": x[0].copy(), "e": y[:, :1].copy()}, gradient=("t", "e"))
    bounds = {"clip_value_min": np.array(-1.1), "clip_value_max": np.array(0.3)}
    yield Case("ClipByValue", {"t": x, **bounds}, gradient=("t", "clip_value_min", "clip_value_max"))
    yield Case("AddN", {"inputs": [x, y]}, gradient=("inputs",))
    for dtype in ("float32", "int32"):
        yield Case("Cross", {"a": ramp(dtype, 2, 3), "b": ramp(dtype, 2, 3, start=1)})
    yield Case("Cross", {"a": x, "b": y}, gradient=("a", "b"))
    for wide in (False, True):
        real, full = ("float64", "complex128") if wide else ("float32", "complex64")
        yield Case("Complex", {"real": edges(real), "imag": edges(real)[::-1].copy()}, {"Tout": full})
        for op in ("Real", "Imag", "ComplexAbs", "Angle"):
            yield Case(op, {OPS[op].inputs[0].name: edges(full)}, {"Tout": real})


def matrices() -> Iterator[Case]:
    for dtype in types_of("MatMul"):
        for a, b in ((False, False), (True, False), (False, True), (True, True)):
            left = ramp(dtype, 2, 3) if not a else ramp(dtype, 3, 2)
            right = ramp(dtype, 3, 4) if not b else ramp(dtype, 4, 3)
            yield Case("MatMul", {"a": left, "b": right}, {"transpose_a": a, "transpose_b": b},
                       ("a", "b") if dtype == "float64" else ())  # fmt: skip
    yield Case("MatMul", {"a": ramp("float32", 2, 0), "b": ramp("float32", 0, 3)})
    for op in ("BatchMatMul", "BatchMatMulV2"):
        for dtype in types_of(op):
            for a, b in ((False, False), (True, True)):
                left = ramp(dtype, 2, 2, 3) if not a else ramp(dtype, 2, 3, 2)
                right = ramp(dtype, 2, 3, 4) if not b else ramp(dtype, 2, 4, 3)
                yield Case(
                    op, {"x": left, "y": right}, {"adj_x": a, "adj_y": b}, ("x", "y") if dtype == "float64" else ()
                )
    yield Case("BatchMatMulV2", {"x": ramp("float64", 3, 1, 2, 3), "y": ramp("float64", 2, 3, 2)}, gradient=("x", "y"))
    for a, b in ((True, False), (False, True)):
        left = ramp("float64", 2, 3) if not a else ramp("float64", 3, 2)
        right = ramp("float64", 2, 3, 4) if not b else ramp("float64", 2, 4, 3)
        yield Case("BatchMatMulV2", {"x": left, "y": right}, {"adj_x": a, "adj_y": b}, ("x", "y"))


def reductions() -> Iterator[Case]:
    for op in ("Sum", "Prod", "Mean", "Max", "Min", "All", "Any"):
        types = types_of(op) if isinstance(OPS[op].inputs[0].type, str) else ["bool"]
        for dtype in types:
            x = ramp(dtype, 2, 3, 4, scale=0.25)
            for axes in ([], [0], [1], [-1], [0, 2], [0, 1, 2]):
                full = dtype in ("float32", "bool")
                if full or axes in ([1], [0, 2]):
                    yield Case(op, {"input": x, "axis": np.array(axes, np.int32)}, {"keep_dims": len(axes) == 2})
            if "int" in dtype and op in ("Sum", "Mean", "Prod"):
                info = np.iinfo(DTYPES[dtype])
                ends = np.array([[info.max, info.max, info.max - 1], [info.min, info.min, info.max]], DTYPES[dtype])
                yield Case(op, {"input": ends, "axis": np.array([1], np.int32)})
        dtype = "float32" if "float32" in types else types[0]
        yield Case(op, {"input": ramp(dtype, 2, 0), "axis": np.array([1], np.int64)})
        yield Case(op, {"input": ramp(dtype, 0, 2), "axis": np.array([1], np.int32)})
        yield Case(op, {"input": ramp(dtype, 1).reshape(()), "axis": np.array([], np.int32)})
        yield Case(op, {"input": ramp(dtype, 3), "axis": np.array(0, np.int32)})
        if "float32" in types:
            yield Case(
                op,
                {
                    "input": np.array([[1, np.nan, 2], [np.inf, 1, -np.inf]], np.float32),
                    "axis": np.array([1], np.int32),
                },
            )
            yield Case(op, {"input": ramp("float64", 2, 3), "axis": np.array([1], np.int32)}, gradient=("input",))
            yield Case(op, {"input": ramp("float64", 2, 3, 2, start=0), "axis": np.array([0, -1], np.int32)},
                       {"keep_dims": True},
                       ("input",))  # fmt: skip
        if "int32" in types:
            yield Case(op, {"input": ramp("int32", 2, 0), "axis": np.array([1], np.int32)})
            yield Case(op, {"input": np.array([[-7, 2], [5, -8]], np.int32), "axis": np.array([0], np.int32)})
    yield Case(
        "Max", {"input": np.array([[1.0, 3, 3], [2, 2, 2]]), "axis": np.array([1], np.int32)}, gradient=("input",)
    )
    for op in ("ArgMax", "ArgMin"):
        for dtype in types_of(op):
            yield Case(op, {"input": ramp(dtype, 3, 5), "dimension": np.array(1, np.int32)}, {"output_type": "int32"})
        ties = np.array([[2.0, 5, 5, 1], [np.nan, 1, 2, 0], [1, np.nan, 3, -1], [np.nan] * 4], np.float32)
        yield Case(op, {"input": ties, "dimension": np.array(-1, np.int32)})
        yield Case(op, {"input": ties, "dimension": np.array(0, np.int64)})
    for op in ("Cumsum", "Cumprod"):
        for dtype in types_of(op):
            yield Case(op, {"x": ramp(dtype, 2, 4), "axis": np.array(1, np.int32)})
        for exclusive in (False, True):
            for reverse in (False, True):
                attrs = {"exclusive": exclusive, "reverse": reverse}
                yield Case(op, {"x": ramp("float32", 3, 4), "axis": np.array(-2, np.int64)}, attrs)
                yield Case(op, {"x": ramp("float64", 3, 2, start=0.5), "axis": np.array(0, np.int32)}, attrs, ("x",))
        yield Case(op, {"x": ramp("float32", 2, 0), "axis": np.array(1, np.int32)})


def segments() -> Iterator[Case]:
    ids, gaps = np.array([0, 0, 1, 3], np.int32), np.array([2, 0, -1, 2], np.int64)
    for op in ("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin"):
        for dtype in types_of(op):
            yield Case(op, {"data": ramp(dtype, 4, 3), "segment_ids": ids})
        for dtype in ("half", "bfloat16", "float32", "float64"):
            ends = numbers(dtype, -np.inf, np.inf, -np.inf, np.nan)
            yield Case(op, {"data": ends, "segment_ids": np.arange(4, dtype=np.int32)})
        gradient = ("data",) if OPS[op].gradient is not None else ()
        yield Case(
            op, {"data": ramp("float64", 4, 2), "segment_ids": np.array([0, 0, 1, 1], np.int32)}, gradient=gradient
        )
    for op in ("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"):
        for dtype in types_of(op):
            yield Case(op, {"data": ramp(dtype, 4, 3), "segment_ids": gaps, "num_segments": np.array(4, np.int32)})
        pairs = np.array([[0, 1], [1, 0]], np.int32)
        yield Case(op, {"data": ramp("float32", 2, 2, 3), "segment_ids": pairs, "num_segments": np.array(2, np.int32)})
        if op in ("UnsortedSegmentSum", "UnsortedSegmentMax"):
            whole = np.array([1, 0, 1], np.int32)
            yield Case(
                op,
                {"data": ramp("float64", 3, 2), "segment_ids": whole, "num_segments": np.array(2, np.int32)},
                gradient=("data",),
            )


def counts() -> Iterator[Case]:
    chosen, ids = np.array([3, 0, 3, 1], np.int32), np.array([0, 0, 1, 3], np.int32)
    for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        for dtype in types_of(op):
            yield Case(op, {"data": ramp(dtype, 4, 3), "indices": chosen, "segment_ids": ids})
        whole = np.array([0, 0, 1, 1], np.int64)
        yield Case(op, {"data": ramp("float64", 4, 2), "indices": chosen, "segment_ids": whole}, gradient=("data",))
    for op in ("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"):
        for dtype in ("float32", "float64"):
            yield Case(
                op, {"grad": ramp(dtype, 4, 2), "indices": chosen, "segment_ids": ids, "output_dim0": _scalar(5)}
            )
    numbers_ = np.array([[1, 4], [1, 9]], np.int32)
    for dtype in types_of("Bincount"):
        yield Case("Bincount", {"arr": numbers_, "size": _scalar(5), "weights": ramp(dtype, 2, 2)})
        yield Case("Bincount", {"arr": numbers_, "size": _scalar(5), "weights": ramp(dtype, 0)})
    for dtype in types_of("Bucketize"):
        yield Case("Bucketize", {"input": ramp(dtype, 2, 4, scale=1)}, {"boundaries": [-1.0, 0.0, 2.5]})


def _at(*values: int, dtype: Any = np.int32) -> Array:
    return np.array(values, dtype)


def _scalar(value: Any, dtype: str = "int32") -> Array:
    return np.asarray(value).astype(DTYPES[dtype])


def shapes() -> Iterator[Case]:
    for dtype in (*_some(list(DTYPES)), "half", "int64"):
        x = ramp(dtype, 2, 3, 4)
        yield Case("Identity", {"input": x})
        yield Case("ZerosLike", {"x": x})
        yield Case("OnesLike", {"x": x})
        yield Case("Reshape", {"tensor": x, "shape": _at(4, -1, 2)})
        yield Case("ExpandDims", {"input": x, "axis": _scalar(-2)})
        yield Case("Squeeze", {"input": x.reshape(1, 2, 1, 12)}, {"axis": [0, -2]})
        yield Case("Transpose", {"x": x, "perm": _at(2, 0, 1)})
        yield Case("BroadcastTo", {"input": x[:, :1], "shape": _at(2, 2, 3, 4, dtype=np.int64)})
        yield Case("Fill", {"dims": _at(2, 3), "value": x[1, 1, 1].reshape(())})
    yield Case("ConjugateTranspose", {"x": ramp("complex64", 2, 3), "perm": _at(1, 0)})
    yield Case("ConjugateTranspose", {"x": ramp("float32", 2, 3), "perm": _at(1, 0)})
    x = ramp("float32", 2, 3, 4)
    for out in ("int32", "int64"):
        yield Case("Shape", {"input": x}, {"out_type": out})
        yield Case("Size", {"input": x}, {"out_type": out})
        yield Case("ShapeN", {"input": [x, x[0, 0]]}, {"out_type": out})
    yield Case("Shape", {"input": np.float32(1).reshape(())})
    yield Case("Rank", {"input": x})
    yield Case("Reshape", {"tensor": ramp("float32", 0, 3), "shape": _at(3, 0)})
    yield Case("Reshape", {"tensor": ramp("float32", 1), "shape": _at()})
    for wanted in ((-1, 0), (0, -1), (-1, 3, 0), (-1,)):
        yield Case("Reshape", {"tensor": ramp("float32", 0, 3), "shape": _at(*wanted)})
    yield Case("Reshape", {"tensor": x, "shape": _scalar(24)})
    for axis in (_at(0), _at(-1), _at(1).reshape(1, 1)):
        yield Case("ExpandDims", {"input": ramp("float32", 2), "axis": axis})
    yield Case("Fill", {"dims": _at(2), "value": np.array([1.5], np.float32)})
    yield Case("Fill", {"dims": _at(), "value": np.array([b"a"], object)})
    yield Case("Squeeze", {"input": x.reshape(1, 2, 1, 12)})
    yield Case("Transpose", {"x": ramp("float32", 3, 0), "perm": _at(1, 0)})
    yield Case("Fill", {"dims": _at(dtype=np.int64), "value": _scalar(3)})
    yield Case("InvertPermutation", {"x": _at(3, 0, 2, 1)})
    for left, right in (
        ([2, 3], [3]),
        ([2, 1, 3], [4, 1]),
        ([1], [1]),
        ([], [2, 1]),
        ([1, 1, 2], [1, 2]),
        ([0, 3], [1, 3]),
    ):
        yield Case("BroadcastArgs", {"s0": np.array(left, np.int32), "s1": np.array(right, np.int32)})
        yield Case("BroadcastGradientArgs", {"s0": np.array(left, np.int32), "s1": np.array(right, np.int32)})
    yield Case("Bitcast", {"input": ramp("float32", 2, 3)}, {"type": "int32"})
    yield Case("Bitcast", {"input": ramp("float32", 2, 3)}, {"type": "uint8"})
    yield Case("Bitcast", {"input": ramp("uint16", 3, 2)}, {"type": "float32"})
    d = ramp("float64", 2, 3)
    yield Case("Reshape", {"tensor": d, "shape": _at(6)}, gradient=("tensor",))
    yield Case("ExpandDims", {"input": d, "axis": _scalar(1)}, gradient=("input",))
    yield Case("Squeeze", {"input": d[:, :1].copy()}, gradient=("input",))
    yield Case("Transpose", {"x": d, "perm": _at(1, 0)}, gradient=("x",))
    yield Case("BroadcastTo", {"input": d[:, :1].copy(), "shape": _at(3, 2, 2)}, gradient=("input",))
    yield Case("Fill", {"dims": _at(2, 3), "value": np.array(1.5)}, gradient=("value",))
    yield Case("Identity", {"input": d}, gradient=("input",))
    yield Case("IdentityN", {"input": [d, _at(1, 2)]})
    yield Case("StopGradient", {"input": d})


def diagonals() -> Iterator[Case]:
    for dtype in ("float32", "int32", "complex64"):
        yield Case("Diag", {"diagonal": ramp(dtype, 2, 2)})
        yield Case("DiagPart", {"input": ramp(dtype, 2, 3, 2, 3)})
        yield Case("MatrixDiag", {"diagonal": ramp(dtype, 2, 3)})
        yield Case("MatrixDiagPart", {"input": ramp(dtype, 2, 3, 4)})
        yield Case("MatrixSetDiag", {"input": ramp(dtype, 2, 3, 4), "diagonal": ramp(dtype, 2, 3, start=5)})
        yield Case("MatrixSetDiag", {"input": ramp(dtype, 4, 3), "diagonal": ramp(dtype, 3, start=5)})
        for lower, upper in ((0, 0), (1, -1), (-1, 1), (2, 0), (-1, -1)):
            band = {"num_lower": _scalar(lower, "int64"), "num_upper": _scalar(upper, "int64")}
            yield Case("MatrixBandPart", {"input": ramp(dtype, 4, 3), **band})
    yield Case("DiagPart", {"input": _scalar(2)})
    for lower, upper in ((4, 0), (0, 3)):
        band = {"num_lower": _scalar(lower, "int64"), "num_upper": _scalar(upper, "int64")}
        yield Case("MatrixBandPart", {"input": ramp("float32", 4, 3), **band})
    d = ramp("float64", 3, 3)
    yield Case("Diag", {"diagonal": d[0].copy()}, gradient=("diagonal",))
    yield Case("DiagPart", {"input": d}, gradient=("input",))
    yield Case("MatrixDiag", {"diagonal": d}, gradient=("diagonal",))
    yield Case("MatrixDiagPart", {"input": d}, gradient=("input",))
    yield Case("MatrixSetDiag", {"input": d, "diagonal": d[0].copy()}, gradient=("input", "diagonal"))
    yield Case(
        "MatrixBandPart",
        {"input": d, "num_lower": _scalar(1, "int64"), "num_upper": _scalar(0, "int64")},
        gradient=("input",),
    )


_STRIDED = (
    ([0, 0], [2, 2], [1, 1], {}), ([1], [3], [1], {}), ([0, 1], [0, -1], [1, 2], {"begin_mask": 1, "end_mask": 1}),
    ([-1], [0], [-1], {"end_mask": 1}), ([5, -9], [-9, 9], [-2, 3], {}),
    ([1, 0], [2, 1], [1, 1], {"shrink_axis_mask": 1}),
    ([0, -1], [0, 0], [1, 1], {"ellipsis_mask": 1, "shrink_axis_mask": 2}),
    ([0, 0, 1], [0, 0, 2], [1, 1, 1], {"new_axis_mask": 2}),
    ([0, 0, 0], [1, 0, 3], [1, 1, 2], {"ellipsis_mask": 2}), ([2], [1], [1], {}),
    ([3, 0, 0], [0, 4, 4], [-1, 1, 3], {}),
    ([-2], [-1], [1], {"shrink_axis_mask": 1, "begin_mask": 1}),
    ([0, 0], [0, 0], [1, -1], {"begin_mask": 3, "end_mask": 3}),
)  # fmt: skip


def slices() -> Iterator[Case]:
    x = ramp("float32", 4, 3, 5)
    for dtype in _some(list(DTYPES)):
        yield Case("Slice", {"input": ramp(dtype, 4, 3, 5), "begin": _at(1, 0, 2), "size": _at(2, -1, 3)})
        yield Case(
            "StridedSlice",
            {"input": ramp(dtype, 4, 3, 5), "begin": _at(1, 2), "end": _at(4, -4), "strides": _at(2, -1)},
        )
    yield Case("Slice", {"input": x, "begin": _at(4, 0, 0, dtype=np.int64), "size": _at(0, 2, -1, dtype=np.int64)})
    yield Case(
        "Slice", {"input": x.astype(np.float64), "begin": _at(1, 0, 2), "size": _at(2, -1, 3)}, gradient=("input",)
    )
    for begin, end, strides, masks in _STRIDED:
        bounds = {
            "begin": np.array(begin, np.int32),
            "end": np.array(end, np.int32),
            "strides": np.array(strides, np.int32),
        }
        yield Case("StridedSlice", {"input": x, **bounds}, masks)
        yield Case("StridedSlice", {"input": x.astype(np.float64), **bounds}, masks, ("input",))
    dy = ramp("float32", 2, 3)
    bounds = {"begin": _at(3, 0), "end": _at(-5, 3), "strides": _at(-2, 1)}
    yield Case("StridedSliceGrad", {"shape": _at(4, 3), **bounds, "dy": dy})
    for parts, axis in ((2, 0), (3, 1), (1, -1)):
        yield Case("Split", {"axis": _scalar(axis), "value": ramp("float32", 4, 3)}, {"num_split": parts})
        yield Case("Split", {"axis": _scalar(axis), "value": ramp("float64", 4, 3)}, {"num_split": parts}, ("value",))
    yield Case("SplitV", {"value": x, "size_splits": _at(1, -1, 2), "axis": _scalar(2)}, {"num_split": 3})
    yield Case(
        "SplitV",
        {"value": x.astype(np.float64), "size_splits": _at(1, 3), "axis": _scalar(0)},
        {"num_split": 2},
        ("value",),
    )
    yield Case("Unpack", {"value": x}, {"num": 3, "axis": 1})
    yield Case("Unpack", {"value": ramp("int32", 2)}, {"num": 2, "axis": -1})
    words = np.array([b"a", b"b"], object)
    yield Case("Unpack", {"value": words}, {"num": 2, "axis": 0})
    yield Case("Slice", {"input": np.array(b"a", object), "begin": _at(), "size": _at()})
    yield Case("StridedSliceGrad", {"shape": _at(3), "begin": _at(0), "end": _at(2), "strides": _at(1), "dy": words})
    yield Case("Unpack", {"value": ramp("float64", 2, 3)}, {"num": 3, "axis": -1}, ("value",))


def joins() -> Iterator[Case]:
    for dtype in _some(list(DTYPES)):
        a, b = ramp(dtype, 2, 3), ramp(dtype, 2, 1)
        yield Case("ConcatV2", {"values": [a, b, a], "axis": _scalar(-1)})
        yield Case("Concat", {"concat_dim": _scalar(1), "values": [a, b]})
        yield Case("Pack", {"values": [a, a[::-1].copy()]}, {"axis": -1})
        yield Case("Tile", {"input": a, "multiples": _at(2, 3)})
        yield Case("Pad", {"input": a, "paddings": _at(1, 0, 0, 2).reshape(2, 2)})
        yield Case(
            "PadV2", {"input": a, "paddings": _at(1, 0, 0, 2).reshape(2, 2), "constant_values": a[0, 0].reshape(())}
        )
        for mode, pads in (("REFLECT", [[1, 1], [2, 0]]), ("SYMMETRIC", [[2, 1], [0, 3]])):
            yield Case("MirrorPad", {"input": a, "paddings": np.array(pads, np.int32)}, {"mode": mode})
        yield Case("ReverseV2", {"tensor": a, "axis": _at(-1, 0)})
        yield Case(
            "ReverseSequence", {"input": ramp(dtype, 2, 4, 3), "seq_lengths": _at(3, 1)}, {"seq_dim": 1, "batch_dim": 0}
        )
    yield Case("ConcatOffset", {"concat_dim": _scalar(1), "shape": [_at(2, 3), _at(2, 1), _at(2, 5)]})
    yield Case("ConcatV2", {"values": [ramp("float32", 0, 2), ramp("float32", 1, 2)], "axis": _scalar(0, "int64")})
    yield Case("Tile", {"input": ramp("float32", 2), "multiples": _at(0)})
    text, none = np.array(b"a", object), np.zeros((0, 2), np.int32)
    yield Case("Pad", {"input": text, "paddings": none})
    yield Case("PadV2", {"input": text, "paddings": none, "constant_values": np.array(b"z", object)})
    yield Case("Pad", {"input": text.reshape(1), "paddings": _at(1, 2).reshape(1, 2)})
    yield Case("Pack", {"values": [_scalar(1), _scalar(2)]})
    yield Case(
        "ReverseSequence",
        {"input": ramp("float32", 4, 3, 2), "seq_lengths": _at(3, 1, 4)},
        {"seq_dim": 0, "batch_dim": 1},
    )
    yield Case(
        "ReverseSequence", {"input": ramp("float32", 2, 3, 2), "seq_lengths": _at(2, 0)}, {"seq_dim": 1, "batch_dim": 2}
    )
    d, e = ramp("float64", 2, 3), ramp("float64", 2, 1)
    yield Case("ConcatV2", {"values": [d, e], "axis": _scalar(1)}, gradient=("values",))
    yield Case("ConcatV2", {"values": [d, d], "axis": _scalar(-2)}, gradient=("values",))
    yield Case("Concat", {"concat_dim": _scalar(0), "values": [d, d]}, gradient=("values",))
    yield Case("Pack", {"values": [d, d]}, {"axis": 1}, ("values",))
    yield Case("Tile", {"input": d, "multiples": _at(2, 3)}, gradient=("input",))
    yield Case("Pad", {"input": d, "paddings": _at(1, 0, 0, 2).reshape(2, 2)}, gradient=("input",))
    yield Case("PadV2", {"input": d, "paddings": _at(1, 0, 0, 2).reshape(2, 2), "constant_values": np.array(1.5)},
               gradient=("input",))  # fmt: skip
    for mode in ("REFLECT", "SYMMETRIC"):
        pads = np.array([[1, 1], [2, 1]], np.int32)
        yield Case("MirrorPad", {"input": d, "paddings": pads}, {"mode": mode}, ("input",))
        yield Case("MirrorPadGrad", {"input": ramp("float64", 4, 6), "paddings": pads}, {"mode": mode}, ("input",))
    yield Case("ReverseV2", {"tensor": d, "axis": _at(1)}, gradient=("tensor",))
    yield Case("ReverseSequence", {"input": d, "seq_lengths": _at(3, 2)}, {"seq_dim": 1, "batch_dim": 0}, ("input",))


def gathers() -> Iterator[Case]:
    for dtype in _some(list(DTYPES)):
        x = ramp(dtype, 4, 3, 2)
        rows = np.array([[3, 0], [1, 3]], np.int32)
        yield Case("Gather", {"params": x, "indices": rows})
        for axis in (0, 1, -1):
            yield Case("GatherV2", {"params": x, "indices": rows % x.shape[axis], "axis": _scalar(axis)})
        yield Case("GatherNd", {"params": x, "indices": np.array([[0, 2], [3, 1]], np.int32)})
        places = np.array([[1], [3], [1]], np.int32)
        if dtype != "bool":
            yield Case("ScatterNd", {"indices": places, "updates": ramp(dtype, 3, 2), "shape": _at(4, 2)})
            yield Case(
                "TensorScatterAdd", {"tensor": ramp(dtype, 4, 2), "indices": places, "updates": ramp(dtype, 3, 2)}
            )
        yield Case(
            "TensorScatterUpdate",
            {"tensor": ramp(dtype, 4, 2), "indices": places[:2], "updates": ramp(dtype, 2, 2, start=3)},
        )
        yield Case("OneHot", {"indices": np.array([[1, -1], [3, 0]], np.int64), "depth": _scalar(3),
                              "on_value": numbers(dtype, 1)[0].reshape(()),
                              "off_value": numbers(dtype, 0)[0].reshape(())})  # fmt: skip
        yield Case("Where", {"condition": np.where(np.arange(24).reshape(4, 3, 2) % 5 == 1, x, np.zeros_like(x))})
    places = np.array([[1], [3], [1]], np.int32)
    for updates in (np.array([True, True, False]), np.array([b"a", b"b", b"c"], object)):
        yield Case("ScatterNd", {"indices": places, "updates": updates, "shape": _at(4)})
    for axis in (0, 1, -1):
        yield Case("OneHot", {"indices": np.array([1, 2], np.uint8), "depth": _scalar(4),
                              "on_value": np.float32(5).reshape(()),
                              "off_value": np.float32(-1).reshape(())}, {"axis": axis})  # fmt: skip
    yield Case("Where", {"condition": np.zeros((0, 2), bool)})
    batched = np.array([[1, 0, 0], [2, 2, 1]], np.int32)
    yield Case(
        "GatherV2", {"params": ramp("float32", 2, 3, 2), "indices": batched, "axis": _scalar(1)}, {"batch_dims": 1}
    )
    yield Case(
        "GatherV2",
        {"params": ramp("float64", 2, 3, 2), "indices": batched, "axis": _scalar(1)},
        {"batch_dims": 1},
        ("params",),
    )
    yield Case(
        "GatherV2", {"params": ramp("float32", 2, 4, 3), "indices": batched, "axis": _scalar(2)}, {"batch_dims": 1}
    )
    d = ramp("float64", 4, 3)
    rows = np.array([[3, 0], [1, 3]], np.int32)
    yield Case("Gather", {"params": d, "indices": rows}, gradient=("params",))
    yield Case("GatherV2", {"params": d, "indices": rows, "axis": _scalar(0)}, gradient=("params",))
    yield Case(
        "GatherV2", {"params": d, "indices": np.array([2, 2, 0], np.int64), "axis": _scalar(-1)}, gradient=("params",)
    )
    yield Case("GatherV2", {"params": d, "indices": np.array(1, np.int64), "axis": _scalar(1)}, gradient=("params",))
    yield Case("GatherNd", {"params": d, "indices": np.array([[0, 2], [3, 1], [0, 2]], np.int32)}, gradient=("params",))
    places = np.array([[1], [3], [1]], np.int32)
    yield Case(
        "ScatterNd", {"indices": places, "updates": ramp("float64", 3, 2), "shape": _at(4, 2)}, gradient=("updates",)
    )
    yield Case(
        "TensorScatterAdd",
        {"tensor": d, "indices": places, "updates": ramp("float64", 3, 3)},
        gradient=("tensor", "updates"),
    )
    yield Case("TensorScatterUpdate", {"tensor": d, "indices": places[:2], "updates": ramp("float64", 2, 3)},
               gradient=("tensor", "updates"))  # fmt: skip
    yield Case(
        "ScatterNdNonAliasingAdd", {"input": ramp("float32", 4, 2), "indices": places, "updates": ramp("float32", 3, 2)}
    )


def lists() -> Iterator[Case]:
    repeated = np.array([4, 1, 4, 2, 1, 1], np.int32)
    for values in (repeated, repeated.astype(np.float32), np.array([], np.int64), np.array([b"a", b"b", b"a"], object)):
        yield Case("Unique", {"x": values}, {"out_idx": "int64"})
        yield Case("UniqueWithCounts", {"x": values})
    yield Case("ListDiff", {"x": _at(1, 2, 3, 2, 5), "y": _at(2, 4)})
    for start, limit, delta, dtype in ((0, 5, 1, "int32"), (5, -2, -3, "int64"), (0.5, 2, 0.25, "float32"),
                                       (1, 1, 1, "int32"),
                                       (0, 1, 0.1, "float64"), (0, 1, 0.1, "float32")):  # fmt: skip
        yield Case(
            "Range",
            {
                name: _scalar(value, dtype)
                for name, value in zip(("start", "limit", "delta"), (start, limit, delta), strict=True)
            },
        )
    for dtype in ("float32", "float64"):
        for count in (1, 2, 5):
            yield Case("LinSpace", {"start": _scalar(-1.5, dtype), "stop": _scalar(2.25, dtype), "num": _scalar(count)})
    for dtype in ("float32", "int32", "bool"):
        yield Case(
            "DynamicPartition", {"data": ramp(dtype, 4, 2), "partitions": _at(1, 0, 2, 1)}, {"num_partitions": 4}
        )
        yield Case("DynamicStitch", {"indices": [_at(3, 0), np.array([[1, 4], [2, 0]], np.int32)],
                                     "data": [ramp(dtype, 2, 2), ramp(dtype, 2, 2, 2, start=3)]})  # fmt: skip
    for where, rows in (([], (0, 3)), ([0, 1], (2, 0)), ([0, 3], (2, 0))):
        yield Case("DynamicStitch", {"indices": [np.array(where, np.int32)], "data": [ramp("float32", *rows)]})
    yield Case("DynamicStitch", {"indices": [_at(0), _at()], "data": [ramp("float32", 1, 0), ramp("float32", 0, 0)]})
    words = [np.array([b"a"], object), np.array([b"b"], object)]
    yield Case("DynamicStitch", {"indices": [_at(0), _at(2)], "data": words})
    d = ramp("float64", 4, 2)
    yield Case("DynamicPartition", {"data": d, "partitions": _at(1, 0, 2, 1)}, {"num_partitions": 3}, ("data",))
    yield Case(
        "DynamicStitch", {"indices": [_at(3, 0), _at(1, 2)], "data": [d[:2].copy(), d[2:].copy()]}, gradient=("data",)
    )


def networks() -> Iterator[Case]:
    for dtype in types_of("Softmax"):
        rows = ramp(dtype, 3, 4)
        yield Case("Softmax", {"logits": rows})
        yield Case("LogSoftmax", {"logits": rows})
        yield Case("L2Loss", {"t": rows})
        labels = np.array([[0, 1, 0, 0], [0.25] * 4, [0.5, 0, 0, 0.5]]).astype(DTYPES[dtype])
        yield Case("SoftmaxCrossEntropyWithLogits", {"features": rows, "labels": labels})
        yield Case("SparseSoftmaxCrossEntropyWithLogits", {"features": rows, "labels": np.array([3, 0, 1], np.int64)})
    far = np.array([[1000.0, 0, -1000], [-1000, -1000, -1001]], np.float32)
    for op in ("Softmax", "LogSoftmax"):
        yield Case(op, {"logits": far})
        yield Case(op, {"logits": ramp("float64", 2, 3)}, gradient=("logits",))
    d, labels = ramp("float64", 2, 3), np.array([[0.2, 0.3, 0.5], [0, 1, 0]])
    yield Case("SoftmaxCrossEntropyWithLogits", {"features": d, "labels": labels}, gradient=("features", "labels"))
    yield Case(
        "SoftmaxCrossEntropyWithLogits",
        {"features": ramp("float32", 2, 3), "labels": np.array([[0.2, 0.3, 0.5]], np.float32)},
    )
    yield Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        {"features": d, "labels": np.array([2, 0], np.int32)},
        gradient=("features",),
    )
    yield Case("L2Loss", {"t": d}, gradient=("t",))
    for dtype in types_of("BiasAdd"):
        yield Case("BiasAdd", {"value": ramp(dtype, 2, 3), "bias": ramp(dtype, 3, start=1)})
        yield Case("BiasAddGrad", {"out_backprop": ramp(dtype, 2, 2, 3)})
    image = ramp("float32", 2, 3, 2, 2)
    yield Case("BiasAdd", {"value": image, "bias": ramp("float32", 3)}, {"data_format": "NCHW"})
    yield Case("BiasAddV1", {"value": image, "bias": ramp("float32", 2)})
    yield Case("BiasAddGrad", {"out_backprop": image}, {"data_format": "NCHW"})
    for layout, size in (("NHWC", 2), ("NCHW", 3)):
        wide = image.astype(np.float64)
        yield Case(
            "BiasAdd", {"value": wide, "bias": ramp("float64", size)}, {"data_format": layout}, ("value", "bias")
        )
        yield Case("BiasAddGrad", {"out_backprop": wide}, {"data_format": layout}, ("out_backprop",))
    for op in ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"):
        seen = OPS[f"{op}Grad"].inputs[1].name
        for dtype in types_of(f"{op}Grad"):
            values = edges(dtype)
            grads = ramp(dtype, len(values), start=0.5)
            yield Case(f"{op}Grad", {"gradients": grads, seen: values})
    yield Case("LeakyRelu", {"features": edges("float32")}, {"alpha": 0.3})
    yield Case("LeakyRelu", {"features": np.array([-1.5, 0.5])}, {"alpha": 0.3}, ("features",))
    for op in ("ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "LeakyReluGrad"):
        seen = OPS[op].inputs[1].name
        values = np.array([-0.75, -0.25, 0.5, 1.5])
        yield Case(op, {"gradients": np.array([0.5, -1.0, 2.0, 1.5]), seen: values}, gradient=("gradients", seen))
    for attrs in ({}, {"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75}):
        x = ramp("float32", 1, 2, 2, 5)
        yield Case("LRN", {"input": x}, attrs)
        yield Case(
            "LRNGrad",
            {"input_grads": x[..., ::-1].copy(), "input_image": x, "output_image": x * np.float32(0.5)},
            attrs,
        )
    for dtype in types_of("TopKV2"):
        yield Case("TopKV2", {"input": ramp(dtype, 2, 5), "k": _scalar(3)})
    ties = np.array([[1, 3, 3, 2], [5, 5, 5, 5]], np.float32)
    yield Case("TopKV2", {"input": ties, "k": _scalar(2)}, {"index_type": "int64"})
    yield Case("TopKV2", {"input": ramp("float64", 2, 5), "k": _scalar(2)}, gradient=("input",))
    for k in (1, 2):
        yield Case("InTopK", {"predictions": ties, "targets": _at(1, 3)}, {"k": k})
    yield Case(
        "InTopK",
        {"predictions": np.array([[1, np.nan], [np.inf, 0], [1, 2]], np.float32), "targets": _at(0, 0, 5)},
        {"k": 1},
    )


def normalisations() -> Iterator[Case]:
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        for layout in ("NHWC", "NCHW"):
            for training, factor in ((True, 1.0), (True, 0.25), (False, 1.0)):
                if layout == "NCHW":
                    continue
                x = ramp("float32", 2, 3, 2, 2)
                stats = {name: ramp("float32", 2, start=start) for name, start in
                         (("scale", 1.5), ("offset", -1), ("mean", 0.25), ("variance", 0.5))}  # fmt: skip
                attrs = {
                    "epsilon": 0.001,
                    "is_training": training,
                    "exponential_avg_factor": factor,
                    "data_format": layout,
                }
                yield Case(
                    op,
                    {"x": x, **stats},
                    attrs,
                    ("x", "scale", "offset") if factor == 1 else (),
                    None if training else 3,
                )
        if op != "FusedBatchNorm":
            stats = {name: ramp("float32", 2, start=1.5) for name in ("scale", "offset", "mean", "variance")}
            yield Case(op, {"x": ramp("half", 2, 3, 2, 2), **stats}, {"epsilon": 0.001})
    volume = {
        "x": ramp("float32", 1, 2, 2, 2, 3),
        **{name: ramp("float32", 3, start=1) for name in ("scale", "offset", "mean", "variance")},
    }
    yield Case("FusedBatchNormV3", volume, {"data_format": "NDHWC", "epsilon": 0.01}, ("x", "scale", "offset"))


def windows() -> Iterator[Case]:
    image, taps = ramp("float32", 2, 5, 4, 2, scale=0.25), ramp("float32", 3, 2, 2, 3, scale=0.25)
    for padding in ("SAME", "VALID"):
        for strides, dilations in (((1, 1), (1, 1)), ((2, 1), (1, 1)), ((1, 1), (2, 1))):
            attrs = {"strides": [1, *strides, 1], "padding": padding, "dilations": [1, *dilations, 1]}
            wide = {"input": image.astype(np.float64), "filter": taps.astype(np.float64)}
            yield Case("Conv2D", {"input": image, "filter": taps}, attrs)
            # TensorFlow's CPU has no gradients of dilated convolutions.
            yield Case("Conv2D", wide, attrs, ("input", "filter") if dilations == (1, 1) else ())
        pool = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "padding": padding}
        for dtype in ("float32", "float64", "half", "bfloat16"):
            yield Case("MaxPool", {"input": ramp(dtype, 2, 5, 4, 2)}, pool, ("input",) if dtype == "float64" else ())
            yield Case("AvgPool", {"value": ramp(dtype, 2, 5, 4, 2)}, pool, ("value",) if dtype == "float64" else ())
        yield Case("MaxPool", {"input": ramp("int32", 1, 4, 4, 1)}, pool)
    explicit = {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0]}
    yield Case("Conv2D", {"input": image, "filter": taps}, explicit)
    yield Case(
        "Conv2D", {"input": image.astype(np.float64), "filter": taps.astype(np.float64)}, explicit, ("input", "filter")
    )
    pads = {**explicit, "explicit_paddings": [0, 0, 1, 0, 1, 1, 0, 0]}
    yield Case("MaxPool", {"input": ramp("float32", 1, 4, 4, 1)}, {"ksize": [1, 2, 2, 1], **pads})
    yield Case("MaxPool", {"input": ramp("float64", 1, 4, 4, 1)}, {"ksize": [1, 2, 2, 1], **pads}, ("input",))
    for padding in ("SAME", "VALID"):
        attrs = {"strides": [1, 2, 2, 1], "padding": padding}
        deep = ramp("float64", 2, 2, 2, 3, scale=0.25)
        yield Case(
            "DepthwiseConv2dNative",
            {"input": ramp("float32", 1, 5, 4, 2), "filter": ramp("float32", 2, 2, 2, 3)},
            attrs,
        )
        yield Case(
            "DepthwiseConv2dNative", {"input": ramp("float64", 1, 5, 4, 2), "filter": deep}, attrs, ("input", "filter")
        )


def whole_windows() -> Iterator[Case]:
    """Windows over integers: padding below every number, 64 bits, sums that wrap; and over nothing."""
    pads = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 1, 1, 0, 0]}
    pads |= {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1]}
    plain = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16"):
        image = (100 - ramp(dtype, 1, 4, 4, 1) * 7).astype(DTYPES[dtype])
        image = image if "uint" in dtype else -image
        yield Case("MaxPool", {"input": image}, pads)
        left, above = (np.pad(image, ((0, 0), (1, 0), (1, 1), (0, 0)), constant_values=image.min())[:, :, at : at + 5]
                       for at in (0, 1))  # fmt: skip
        best = np.maximum(np.maximum(left, above)[:, 1:], np.maximum(left, above)[:, :-1])
        yield Case("MaxPoolGrad", {"orig_input": image, "orig_output": best, "grad": np.ones_like(best)}, pads)
    for dtype in ("int32", "int64", "uint32", "uint64"):
        info = np.iinfo(DTYPES[dtype])
        row = np.array([info.max - 2, info.max, info.max - 1], DTYPES[dtype]).reshape(1, 1, 3, 1)
        best, twice = row[:, :, [1, 1]], np.full((1, 1, 2, 1), info.max // 2 + 2, DTYPES[dtype])
        if dtype in ("int32", "int64"):
            yield Case("MaxPool", {"input": row}, plain)
        yield Case("MaxPoolGrad", {"orig_input": row, "orig_output": best, "grad": twice}, plain)
        yield Case("MaxPoolGradGrad", {"orig_input": row, "orig_output": best, "grad": row}, plain)
    nothing = ramp("float32", 0, 1, 3, 1)
    given = {"orig_input": nothing, "orig_output": nothing[:, :, :2]}
    yield Case("MaxPool", {"input": nothing}, plain)
    yield Case("MaxPoolGrad", {**given, "grad": nothing[:, :, :2]}, plain)
    yield Case("MaxPoolGradGrad", {**given, "grad": nothing}, plain)
    ends = np.array([2**31 - 1, -(2**31), 2**30, -7], np.int32).reshape(1, 2, 2, 1)
    for taps in (ends.reshape(2, 2, 1, 1), np.array([5, 3, 2**30, -1], np.int32).reshape(2, 2, 1, 1)):
        attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        yield Case("Conv2D", {"input": ends, "filter": taps}, attrs)
        yield Case("Conv2DBackpropInput", {"input_sizes": _at(1, 2, 2, 1), "filter": taps, "out_backprop": ends}, attrs)


def backward() -> Iterator[Case]:
    """The gradient ops by themselves."""
    sizes, deep = _at(1, 4, 5, 2), np.array([2, 3, 2, 2], np.int32)
    pool = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
    for dtype in ("float32", "float64"):
        image, pooled = ramp(dtype, 1, 4, 5, 2), ramp(dtype, 1, 2, 4, 2, scale=0.25)
        maxima = np.lib.stride_tricks.sliding_window_view(image, (2, 2), axis=(1, 2))[:, ::2].max(axis=(-1, -2))
        yield Case("AvgPoolGrad", {"orig_input_shape": sizes, "grad": pooled}, pool)
        yield Case("MaxPoolGrad", {"orig_input": image, "orig_output": maxima, "grad": pooled}, pool)
        yield Case("MaxPoolGradGrad", {"orig_input": image, "orig_output": maxima, "grad": image[:, ::-1].copy()}, pool)
        for padding in ("SAME", "VALID"):
            attrs = {"strides": [1, 1, 1, 1], "padding": padding}
            rows, columns = (4, 5) if padding == "SAME" else (3, 3)
            dy, twice = ramp(dtype, 1, rows, columns, 3, scale=0.25), ramp(dtype, 1, rows, columns, 4, scale=0.25)
            taps = {"filter": ramp(dtype, 2, 3, 2, 3), "out_backprop": dy}
            yield Case("Conv2DBackpropInput", {"input_sizes": sizes, **taps}, attrs)
            yield Case(
                "Conv2DBackpropFilter", {"input": image, "filter_sizes": _at(2, 3, 2, 3), "out_backprop": dy}, attrs
            )
            taps = {"filter": ramp(dtype, 2, 3, 2, 2), "out_backprop": twice}
            yield Case("DepthwiseConv2dNativeBackpropInput", {"input_sizes": sizes, **taps}, attrs)
            given = {"input": image, "filter_sizes": deep, "out_backprop": twice}
            yield Case("DepthwiseConv2dNativeBackpropFilter", given, attrs)
    for op in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"):
        for training in (True, False):
            x = ramp("float32", 2, 3, 2, 2)
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            given = {"y_backprop": x[::-1].copy(), "x": x, "scale": ramp("float32", 2, start=1.5),
                     "reserve_space_1": mean,
                     "reserve_space_2": variance}  # fmt: skip
            extra = {"reserve_space_3": np.zeros((), np.float32)} if op.endswith("V3") else {}
            # TensorFlow leaves the reserves of the result undefined.
            yield Case(op, {**given, **extra}, {"epsilon": 0.001, "is_training": training}, outputs=3)
    yield Case("PlaceholderWithDefault", {"input": ramp("float32", 2)}, {"shape": [2]})


def rearrangements() -> Iterator[Case]:
    x = ramp("float32", 1, 4, 6, 2)
    for dtype in ("float32", "int32"):
        yield Case("SpaceToDepth", {"input": ramp(dtype, 1, 4, 6, 2)}, {"block_size": 2})
        yield Case("DepthToSpace", {"input": ramp(dtype, 1, 2, 3, 8)}, {"block_size": 2})
    pads = np.array([[0, 0], [1, 1]], np.int32)
    yield Case("SpaceToBatch", {"input": x, "paddings": pads}, {"block_size": 2})
    yield Case("BatchToSpace", {"input": ramp("float32", 8, 2, 3, 1), "crops": pads}, {"block_size": 2})
    yield Case("SpaceToBatchND", {"input": x, "block_shape": _at(2, 4), "paddings": pads})
    yield Case("BatchToSpaceND", {"input": ramp("float32", 8, 2, 3, 1), "block_shape": _at(2, 2), "crops": pads})
    yield Case("SpaceToBatchND", {"input": ramp("float32", 2, 4), "block_shape": _at(2), "paddings": pads[:1]})
    wide = x.astype(np.float64)
    yield Case("SpaceToDepth", {"input": wide}, {"block_size": 2}, ("input",))
    yield Case("DepthToSpace", {"input": ramp("float64", 1, 2, 3, 8)}, {"block_size": 2}, ("input",))
    yield Case("SpaceToBatchND", {"input": wide, "block_shape": _at(2, 4), "paddings": pads}, gradient=("input",))
    yield Case(
        "BatchToSpaceND",
        {"input": ramp("float64", 8, 2, 3, 1), "block_shape": _at(2, 2), "crops": pads},
        gradient=("input",),
    )


def texts() -> Iterator[Case]:
    raw = np.array([b"\x01\x02\x03\x04", b"\xff\x00\x80\x7f"], object)
    for dtype in ("uint8", "int16", "int32", "float32", "half", "bool"):
        yield Case("DecodeRaw", {"bytes": raw}, {"out_type": dtype})
    yield Case("DecodeRaw", {"bytes": raw}, {"out_type": "uint16", "little_endian": False})
    words = np.array([b"12", b" -3 ", b"4e2"], object)
    yield Case("StringToNumber", {"string_tensor": words})
    yield Case("StringToNumber", {"string_tensor": words[:2]}, {"out_type": "int64"})
    yield Case("StringToNumber", {"string_tensor": np.zeros((0, 1), object)})
    yield Case("StringToNumber", {"string_tensor": np.array([b"0x10", b"-0x1p3", b"inf", b".5"], object)})
    for dtype in ("float32", "float64", "int32", "int64", "bool", "complex64"):
        yield Case("AsString", {"input": ramp(dtype, 4)})
    yield Case("AsString", {"input": ramp("float32", 4)}, {"precision": 2, "width": 8, "fill": "0"})
    yield Case("AsString", {"input": ramp("float32", 4)}, {"scientific": True})
    yield Case("AsString", {"input": ramp("float32", 4)}, {"shortest": True})
    yield Case("StringJoin", {"inputs": [words, np.array(b"x", object), words]}, {"separator": "-"})
    grid = np.array([[b"a", b"b"], [b"c", b"d"]], object)
    for axes in ([0], [1], [0, 1], [1, 0], [-1]):
        yield Case(
            "ReduceJoin",
            {"inputs": grid, "reduction_indices": np.array(axes, np.int32)},
            {"separator": ".", "keep_dims": axes == [1]},
        )
    yield Case("Substr", {"input": words, "pos": _at(0, 1, -2), "len": _at(1, 2, 5)})
    yield Case("EncodeBase64", {"input": raw})
    yield Case("EncodeBase64", {"input": raw}, {"pad": True})
    yield Case("DecodeBase64", {"input": np.array([b"AQIDBA", b"_wCAfw=="], object)})
    lines = np.array([b'1,2.5,"a,b"', b"3,,c"], object)
    yield Case(
        "DecodeCSV",
        {"records": lines, "record_defaults": [_at(), np.array([7.5], np.float32), np.array([b""], object)]},
    )
    yield Case(
        "ShardedFilename", {"basename": np.array(b"model", object), "shard": _scalar(1), "num_shards": _scalar(4)}
    )
    yield Case("ShardedFilespec", {"basename": np.array(b"model", object), "num_shards": _scalar(4)})


def sparse() -> Iterator[Case]:
    places = np.array([[0, 1], [1, 0], [2, 2]], np.int32)
    for dtype in _some(list(DTYPES)):
        yield Case("SparseToDense", {"sparse_indices": places, "output_shape": _at(3, 3),
            "sparse_values": ramp(dtype, 3),
                                     "default_value": numbers(dtype, 1)[0].reshape(())})  # fmt: skip
    yield Case("SparseToDense", {"sparse_indices": _at(1, 3), "output_shape": _at(5),
                                 "sparse_values": np.float32(2).reshape(()),
                                 "default_value": np.float32(-1).reshape(())})  # fmt: skip
    yield Case("SparseToDense", {"sparse_indices": places, "output_shape": _at(3, 3),
            "sparse_values": ramp("float64", 3),
                                 "default_value": np.array(0.5)},
                                 gradient=("sparse_values", "default_value"))  # fmt: skip
    whole = places.astype(np.int64)
    for a, b in ((False, False), (True, False), (False, True)):
        right = ramp("float64", 3, 2) if not b else ramp("float64", 2, 3)
        yield Case("SparseTensorDenseMatMul", {"a_indices": whole, "a_values": ramp("float64", 3),
            "a_shape": _at(3, 3, dtype=np.int64),
                                               "b": right}, {"adjoint_a": a, "adjoint_b": b},
                                               ("a_values", "b"))  # fmt: skip
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        turned = {"a_indices": whole, "a_values": ramp("complex128", 3), "a_shape": _at(3, 3, dtype=np.int64)}
        right = ramp("complex128", 3, 2) if not b else ramp("complex128", 2, 3)
        attrs = {"adjoint_a": a, "adjoint_b": b}
        yield Case("SparseTensorDenseMatMul", {**turned, "b": right}, attrs, ("a_values", "b"))
    yield Case(
        "SparseReorder",
        {
            "input_indices": whole[::-1].copy(),
            "input_values": ramp("float32", 3),
            "input_shape": _at(3, 3, dtype=np.int64),
        },
    )
    yield Case(
        "SparseReshape",
        {"input_indices": whole, "input_shape": _at(3, 4, dtype=np.int64), "new_shape": _at(-1, 6, dtype=np.int64)},
    )


def hashes() -> Iterator[Case]:
    """Texts of every length at which a hash takes another way; crosses of columns; pieces."""
    lengths = (0, 1, 3, 4, 7, 8, 16, 17, 32, 33, 64, 65, 130)
    words = np.array([bytes(at * 37 % 256 for at in range(size)) for size in lengths], object)
    yield Case("StringToHashBucket", {"string_tensor": words}, {"num_buckets": 2**40})
    yield Case("StringToHashBucketFast", {"input": words}, {"num_buckets": 2**40})
    yield Case("StringToHashBucketStrong", {"input": words}, {"num_buckets": 2**40, "key": [5, -(2**40)]})
    for delimiter, skip in ((b"", True), (b" ", True), (b" ", False), (b",;", False)):
        given = {"input": np.array([b"a b", b"", b" a,;b ", b"c"], object), "delimiter": np.array(delimiter, object)}
        yield Case("StringSplit", given, {"skip_empty": skip})
    column = _entries("float32", [[0, 0], [0, 1], [1, 0]], (2, 2))
    given = {"indices": [column["indices"]], "values": [np.array([b"a", b"b", b"c"], object)],
             "shapes": [column["shape"]],
             "dense_inputs": [np.array([[7], [-8]], np.int64), np.array([[b"x"], [b"y"]], object)]}  # fmt: skip
    for out, buckets in (("string", 0), ("int64", 0), ("int64", 100)):
        attrs = {"hashed_output": out == "int64", "num_buckets": buckets, "hash_key": 956888297470, "out_type": out,
                 "internal_type": "int64"}  # fmt: skip
        yield Case("SparseCross", given, attrs)
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        left, right = ramp("float32", *((4, 2) if a else (2, 4))), ramp("float32", *((3, 4) if b else (4, 3)))
        flips = {"transpose_a": a, "transpose_b": b}
        yield Case("SparseMatMul", {"a": left, "b": right}, flips, ("a", "b"))
        yield Case("SparseMatMul", {"a": left.astype(DTYPES["bfloat16"]), "b": right}, flips)


def _entries(dtype: str, places: Any, shape: Sequence[int], prefix: str = "", name: str = "shape") -> dict[str, Any]:
    """A sparse tensor as the inputs of an op."""
    where = np.array(places, np.int64).reshape(-1, len(shape))
    return {f"{prefix}indices": where, f"{prefix}values": ramp(dtype, len(where), start=1),
            f"{prefix}{name}": _at(*shape, dtype=np.int64)}  # fmt: skip


def sparse_algebra() -> Iterator[Case]:
    a, b, shape = [[0, 1], [1, 0], [2, 2]], [[0, 1], [1, 2], [2, 2], [2, 3]], (3, 4)
    for dtype in ("float64", "int32", "complex64"):
        pair = _entries(dtype, a, shape, "a_") | _entries(dtype, b, shape, "b_")
        thresh = _scalar(2, {"complex64": "float32"}.get(dtype, dtype))
        yield Case("SparseAdd", {**pair, "thresh": thresh})
        if dtype != "complex64":
            yield Case("SparseSparseMaximum", pair)
            yield Case("SparseSparseMinimum", pair)
    union = np.array([[0, 1], [1, 0], [1, 2], [2, 3]], np.int64)
    yield Case("SparseAddGrad", {"backprop_val_grad": ramp("float32", 4), "a_indices": np.array(a, np.int64),
                                 "b_indices": np.array(b, np.int64), "sum_indices": union})  # fmt: skip
    words = np.array([b"x", b"y", b"z"], object)
    for axis in (0, 1, -1):
        parts = [_entries("float32", a, (3, 3)), _entries("float32", b[:3], (3, 3))]
        joined = {"indices": [one["indices"] for one in parts], "values": [one["values"] for one in parts],
                  "shapes": [one["shape"] for one in parts]}  # fmt: skip
        yield Case("SparseConcat", joined, {"concat_dim": axis})
    yield Case("SparseConcat", {**joined, "values": [words, words]}, {"concat_dim": 1})
    for count in (1, 3):
        yield Case("SparseSplit", {"split_dim": np.array(1, np.int64), **_entries("float32", b, shape)},
                   {"num_split": count})  # fmt: skip
    box = {"start": _at(1, 1, dtype=np.int64), "size": _at(5, 2, dtype=np.int64)}
    yield Case("SparseSlice", _entries("float64", b, shape) | box)
    yield Case("SparseSliceGrad", {"backprop_val_grad": ramp("float64", 2), "input_indices": np.array(b, np.int64),
                                   "input_start": box["start"], "output_indices": np.array([[0, 1], [1, 1]], np.int64),
                                   })  # fmt: skip
    for axes, keep in (([0], False), ([-1], True), ([0, 1], False), ([], False)):
        for op in ("SparseReduceSum", "SparseReduceSumSparse", "SparseReduceMax", "SparseReduceMaxSparse"):
            slopes = ("input_values",) if op == "SparseReduceSum" else ()
            yield Case(op, {**_entries("float64", b, shape, "input_"), "reduction_axes": np.array(axes, np.int32)},
                       {"keep_dims": keep}, slopes)  # fmt: skip
    yield Case("SparseSoftmax", _entries("float64", b, shape, "sp_"), gradient=("sp_values",))
    for op in ("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
        for dtype, dense in (("float64", (3, 4)), ("float64", (4,)), ("float64", (3, 1)), ("int32", (3, 4))):
            slopes = ("sp_values", "dense") if dtype == "float64" and op != "SparseDenseCwiseAdd" else ()
            beside = (
                ramp(dtype, *dense, start=0.25) if dtype == "float64" else ramp("uint8", *dense).astype(np.int32) + 1
            )
            yield Case(op, {**_entries(dtype, b, shape, "sp_"), "dense": beside}, gradient=slopes)
    yield Case("SparseTensorDenseAdd", {**_entries("float64", b, shape, "a_"), "b": ramp("float64", *shape)},
               gradient=("a_values", "b"))  # fmt: skip
    holes = _entries("float64", [[3, 1], [0, 2], [3, 0]], (5, 3), name="dense_shape")
    yield Case("SparseFillEmptyRows", {**holes, "default_value": np.array(-1.5)})
    yield Case("SparseFillEmptyRows", {**holes, "values": words, "default_value": np.array(b"none", object)})
    yield Case("SparseFillEmptyRowsGrad", {"reverse_index_map": _at(3, 0, dtype=np.int64),
                                           "grad_values": ramp("float64", 5)})  # fmt: skip


def serialized() -> Iterator[Case]:
    """Sparse tensors as texts, and back; a tensor of every type from its text."""
    entry = _entries("float32", [[0, 1], [1, 0], [1, 2]], (3, 3), "sparse_")
    kinds = [entry["sparse_values"], np.array([b"a", b"", b"ccc"], object), np.array([True, False, True])]
    for values in (*kinds, *(ramp(dtype, 3) for dtype in ("half", "bfloat16", "int64", "complex64"))):
        yield Case("SerializeSparse", {**entry, "sparse_values": values})
        yield Case("SerializeManySparse", {**entry, "sparse_values": values})
    yield Case("SerializeManySparse", _entries("float32", [], (0, 3), "sparse_"))
    bare = {"sparse_indices": np.zeros((0, 0), np.int64), "sparse_shape": np.zeros(0, np.int64)}
    yield Case("SerializeSparse", {**bare, "sparse_values": np.zeros(0, np.float32)})
    places, sizes = np.array([[1], [3]], np.int64), np.array([4], np.int64)
    for dtype in ("float32", "bool", "string"):
        kind = named(dtype)
        assert kind is not None
        values = np.array([b"x", b""], object) if dtype == "string" else ramp(dtype, 2)
        texts = [tensor_bytes(places, INT64), tensor_bytes(values, kind), tensor_bytes(sizes, INT64)]
        wide = [*texts[:2], tensor_bytes(sizes + 3, INT64)]
        given = np.array([texts, wide, texts], object)
        yield Case("DeserializeManySparse", {"serialized_sparse": given}, {"dtype": dtype})
        yield Case("ParseTensor", {"serialized": np.array(texts[1], object)}, {"out_type": dtype})
    for dtype in DTYPES:
        kind = named(dtype)
        assert kind is not None
        text = np.array(tensor_bytes(ramp(dtype, 2, 3), kind), object)
        yield Case("ParseTensor", {"serialized": text}, {"out_type": dtype})
    for text, dtype in _SHORT_PROTOS:
        yield Case("ParseTensor", {"serialized": np.array(text, object)}, {"out_type": dtype})


_SHORT_PROTOS = (
    (b"\x08\x01\x12\x04\x12\x02\x08\x03\x2a\x04\x00\x00\x80?", "float32"),  # one value for three cells
    (b"\x08\x01\x12\x04\x12\x02\x08\x03", "float32"),  # none
    (b"\x08\x01\x12\x04\x12\x02\x08\x01\x2a\x08\x00\x00\x80?\x00\x00\x00@", "float32"),  # two for one
    (b"\x08\x07\x12\x04\x12\x02\x08\x02", "string"),
    (b"\x08\x07\x12\x04\x12\x02\x08\x02\x42\x02ab", "string"),
    (b"\x08\x03\x12\x00\x3a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "int32"),  # -1, a scalar
)
"""Tensors of fewer or more values than cells, or of values in fields."""


def candidates() -> Iterator[Case]:
    given = {"true_classes": np.array([[1, 2], [3, 1], [9, 9]], np.int64)}
    for sampled in ([3, 1, 7, 1, -2], [8], []):
        inputs = {**given, "sampled_candidates": np.array(sampled, np.int64)}
        yield Case("ComputeAccidentalHits", inputs, {"num_true": 2})
    given = {"true_classes": np.array([[1, 2], [3, 1], [8, 0]], np.int64)}
    for unique, count in ((True, 7), (False, 20)):
        attrs = {"num_true": 2, "num_sampled": count, "unique": unique, "seed": 3, "seed2": 4}
        for op in ("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler"):
            yield Case(op, given, {**attrs, "range_max": 12})
        weights = {"unigrams": [3.0, 1, 0.5, 9, 2, 2, 7], "distortion": 0.75}
        yield Case("FixedUnigramCandidateSampler", given, {**attrs, **weights, "range_max": 9, "num_reserved_ids": 2})
    yield Case("AllCandidateSampler", given, {"num_true": 2, "num_sampled": 9, "unique": True})


def fused() -> Iterator[Case]:
    """Convolutions of mirrored, and of resized and mirrored images."""
    pads = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)
    for mode, padding, strides in (("REFLECT", "VALID", [1, 1, 1, 1]), ("SYMMETRIC", "SAME", [1, 2, 1, 1]),
                                   ("REFLECT", "SAME", [1, 4, 4, 1])):  # fmt: skip
        attrs = {"mode": mode, "strides": strides, "padding": padding}
        for dtype in ("half", "float32", "float64"):
            given = {"input": ramp(dtype, 1, 4, 5, 2), "paddings": pads, "filter": ramp(dtype, 2, 3, 2, 3, scale=0.25)}
            yield Case("FusedPadConv2D", given, attrs)
            if dtype == "half":
                continue  # TensorFlow rounds every step between cells
            for size, corners in ((_at(3, 7), False), (_at(8, 4), True)):
                more = attrs | {"resize_align_corners": corners}
                yield Case("FusedResizeAndPadConv2D", {**given, "size": size}, more)


def randoms() -> Iterator[Case]:
    """Seeded numbers: the first draw of a kernel."""
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for dtype in ("half", "bfloat16", "float32", "float64"):
            yield Case(op, {"shape": _at(3, 7)}, {"dtype": dtype, "seed": 7, "seed2": 11})
        yield Case(op, {"shape": _at(0, 2)}, {"dtype": "float32", "seed": 7, "seed2": 11})
        yield Case(op, {"shape": _at(1001, dtype=np.int64)}, {"dtype": "float32", "seed": -3, "seed2": 2**40})
    for dtype in ("int32", "int64"):
        bounds = {"minval": _scalar(-5, dtype), "maxval": _scalar(1000, dtype)}
        yield Case("RandomUniformInt", {"shape": _at(9), **bounds}, {"seed": 1, "seed2": 2})
    yield Case("RandomShuffle", {"value": ramp("int32", 9)}, {"seed": 1, "seed2": 2})
    yield Case("RandomShuffle", {"value": ramp("float32", 5, 2)}, {"seed": 1, "seed2": 2})
    yield from _distributions()


def _distributions() -> Iterator[Case]:
    places = itertools.count(5)

    def case(op: str, inputs: dict[str, Any], **more: Any) -> Case:
        """With seeds of its own: TensorFlow's kernel goes on where the last call with the same attributes stopped."""
        attrs = {"seed": next(places), "seed2": -2} | more.pop("attrs", {})
        return Case(op, inputs, attrs, **more)

    odd = numbers("float32", [0, -np.inf, 1, np.nan], [3, 2, 1, 0])
    for output in ("int32", "int64"):
        given = {"logits": odd, "num_samples": _scalar(9, "int32")}
        yield case("Multinomial", given, attrs={"output_dtype": output})
    for dtype in ("half", "bfloat16", "float64"):
        logits = ramp(dtype, 3, 5, scale=0.25)
        yield case("Multinomial", {"logits": logits, "num_samples": _scalar(30, "int32")})
    for dtype in ("half", "float32", "float64"):
        yield case("RandomGamma", {"shape": _at(2, 9), "alpha": numbers(dtype, 0.25, 1, 7.5)})
        yield case("RandomPoisson", {"shape": _at(9, dtype=np.int64), "rate": numbers(dtype, [0, 3], [12, 200])})
        for means, low, high in (([0.0], -1.0, 2.0), ([1.0, -3.0, 0.25], 0.5, np.inf), ([0.5], 3.0, 3.125),
                                 ([2.0, 0.0, 1.0], -np.inf, -1.0)):  # fmt: skip
            given = {"means": numbers(dtype, *means), "stdevs": numbers(dtype, 1.5), "minvals": _scalar(low, dtype),
                     "maxvals": _scalar(high, dtype)}  # fmt: skip
            yield case("ParameterizedTruncatedNormal", {"shape": _at(3, 5), **given})
    yield case("RandomGamma", {"shape": _at(4), "alpha": np.array([0.5, 2.0])}, gradient=("alpha",))
    yield case("RandomGamma", {"shape": _at(0, 2), "alpha": np.array([0.5, 2.0])})
    a, x = np.meshgrid([0.25, 1.0, 3.0, 8.0], [0.01, 0.5, 2.5, 9.0])
    for dtype in ("float32", "float64"):
        yield Case("RandomGammaGrad", {"alpha": a.astype(dtype), "sample": x.astype(dtype)})


GROUPS = (
    unary, binary, complex_gradients, special, casts, choices, matrices, reductions, segments, counts, shapes,
    diagonals,
    slices, joins, gathers,
    lists,
    networks, normalisations, windows, whole_windows, backward, rearrangements, texts, sparse,
    sparse_algebra, hashes, serialized, candidates, fused, randoms,
)  # fmt: skip


def all_cases() -> list[Case]:
    """Every case, in a fixed order."""
    from . import example_cases, image_cases, quantised_cases

    more = (image_cases, quantised_cases, example_cases)
    return [case for group in (*GROUPS, *(one for module in more for one in module.GROUPS)) for case in group()]


def attribute(value: Any) -> Any:
    """An attribute as JSON holds it."""
    return value.name if isinstance(value, DType) else value
