# SPDX-License-Identifier: Apache-2.0
"""One value, one verdict: every kind of value that people have, given to every op, at once and on a page.

A raw op, a block on a page, a value typed on a pin and a fed Placeholder accept the same, make the same numbers of it
in the same type, and refuse the rest with the same words.
"""

from __future__ import annotations

import array
import math
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import voxgrad as vg
from tests.vectors.catalogue.load import recorded
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Input, Op
from voxgrad.catalog.registry import FAMILY, OPS, ORDINARY
from voxgrad.catalog.semantics import current_semantics
from voxgrad.graph.block import Value
from voxgrad.kernels.element_types import dtype_of
from voxgrad.raw_ops import callable_at_once
from voxgrad.testing.calls import SeededChooser, draw_call

Array = np.ndarray[Any, Any]
Make = Callable[[Array], Any]


class HasArray:
    """What only NumPy could load, and nobody is to."""

    def __init__(self, values: Array):
        self.values = values
        self.dtype, self.shape, self.ndim = values.dtype, values.shape, values.ndim

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("it was loaded silently")


class HasInterface:
    """The older protocol of NumPy."""

    def __init__(self, values: Array):
        self.__array_interface__ = values.__array_interface__
        self.values = values


class HasDlpack:
    """The protocol of the array API, and nothing else."""

    def __init__(self, values: Array):
        self.values = values

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("it was loaded silently")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Subclass(np.ndarray[Any, Any]):
    """An array of a class of its own."""


def ring(_: Array) -> list[Any]:
    made: list[Any] = [1]
    made[0] = made
    return made


def read_only(values: Array) -> Array:
    made = values.copy()
    made.flags.writeable = False
    return made


def strided(values: Array) -> Array:
    """The same numbers, every other cell of memory."""
    return np.repeat(values, 2, axis=-1)[..., ::2] if values.ndim else values


def masked(values: Array, cells: bool) -> Any:
    made = np.ma.masked_array(values)
    if cells and values.size:
        made[(0,) * values.ndim] = np.ma.masked
    return made


def first(values: Array, otherwise: Any = 0) -> Any:
    return values.reshape(-1)[0] if values.size else otherwise


KINDS: dict[str, Make] = {
    # What Python has
    "int": lambda a: 2,
    "negative": lambda a: -1,
    "bool": lambda a: True,
    "float": lambda a: 2.5,
    "whole float": lambda a: 2.0,
    "nan": lambda a: math.nan,
    "1e300": lambda a: 1e300,
    "complex": lambda a: 1j,
    "2**40": lambda a: 2**40,
    "2**70": lambda a: 2**70,
    "str": lambda a: "a",
    "bytes": lambda a: b"\xff",
    "None": lambda a: None,
    "object": lambda a: object(),
    "dict": lambda a: {},
    "generator": lambda a: iter(()),
    "range": lambda a: range(2),
    "nested lists": lambda a: a.tolist(),
    "tuple": lambda a: tuple(a.tolist()) if a.ndim else (a.item(),),
    "list of arrays": lambda a: list(a) if a.ndim else [a],
    "ragged": lambda a: [[1], [1, 2]],
    "empty list": lambda a: [],
    "list in itself": ring,
    "list with None": lambda a: [None],
    "list of all": lambda a: [1, True, 2.5, 1j],
    "bytearray": lambda a: bytearray(4),
    "memoryview": lambda a: memoryview(bytes(4)),
    "array.array": lambda a: array.array("f", [1, 2]),
    # What NumPy has
    "array": lambda a: a,
    "own element": first,
    "float64 element": lambda a: np.float64(2.5),
    "int64 element": lambda a: np.int64(2),
    "bfloat16 element": lambda a: ml_dtypes.bfloat16(2),
    "0-d": lambda a: np.array(first(a), a.dtype),
    "strided": strided,
    "reversed": lambda a: a[::-1] if a.ndim else a,
    "fortran": np.asfortranarray,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")) if a.dtype != object else a,
    "read-only": read_only,
    "repeated": lambda a: np.broadcast_to(np.array(first(a), a.dtype), a.shape),
    "subclass": lambda a: a.view(Subclass),
    "matrix": lambda a: np.asmatrix(a.reshape(1, -1)) if a.dtype != object else np.asmatrix([[1]]),
    "no mask": lambda a: masked(a, cells=False),
    "masked": lambda a: masked(a, cells=True),
    "list of masked": lambda a: [masked(a, cells=True)],
    "float64 array": lambda a: np.ones(a.shape),
    "int8 array": lambda a: np.ones(a.shape, np.int8),
    "bool array": lambda a: np.ones(a.shape, bool),
    "complex array": lambda a: np.ones(a.shape, complex),
    "longdouble": lambda a: np.ones(a.shape, np.longdouble),
    "int4": lambda a: np.ones(a.shape, ml_dtypes.int4),
    "float8": lambda a: np.ones(a.shape, ml_dtypes.float8_e5m2),
    "structured": lambda a: np.zeros(a.shape, "i4,f4"),
    "record": lambda a: np.zeros(1, "i4,f4")[0],
    "objects": lambda a: np.array([object()]),
    "numbers as objects": lambda a: np.array([1, 2], object),
    "dates": lambda a: np.array(["2026-01-01"], "M8[D]"),
    "texts": lambda a: np.array(["a", "bc"]),
    "byte texts": lambda a: np.array([b"a", b"bc"]),
    "empty array": lambda a: np.zeros((0, *a.shape[1:]), a.dtype),
    # What others have
    "__array__": HasArray,
    "list with __array__": lambda a: [HasArray(a)],
    "__array_interface__": HasInterface,
    "__dlpack__": HasDlpack,
}


@cache
def calls() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """A small valid call of every op that computes at once: inputs and attributes."""
    made: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for one in recorded():
        case = one.case
        given = [one for value in case.inputs.values() for one in (value if isinstance(value, list) else [value])]
        full = all(np.size(one) for one in given)
        if callable_at_once(OPS[case.op]) and full:
            made.setdefault(case.op, (case.inputs, case.attrs))
    for op in FAMILY:
        drawn = draw_call(op, SeededChooser(3), dtype=dtypes.FLOAT32, style="integers")
        inputs = {item.name: drawn.pop(item.name) for item in op.inputs}
        made[op.name] = inputs, drawn
    two = np.array([1, 2], np.float32)
    quantised, attrs = made["QuantizedRelu6"]
    made |= {
        "QuantizedReluX": ({**quantised, "max_value": np.array(3, np.float32)}, attrs),
        "PreventGradient": ({"input": two}, {}), "TopK": ({"input": two}, {"k": 1}),
        "Merge": ({"inputs": [two, two]}, {}), "NextIteration": ({"data": two}, {}),
        "LoopCond": ({"input": np.array(True)}, {}), "CheckNumerics": ({"tensor": two}, {"message": "no"}),
        "ParallelConcat": ({"values": [two[None], two[None]]}, {"shape": [2, 2]}),
        **{f"Encode{name}": ({"image": np.full((2, 3, 1), 7, np.uint8)}, {}) for name in ("Png", "Jpeg")},
        "MaxPoolGradGradWithArgmax": (
            {"input": np.ones((1, 1, 2, 1)), "grad": np.ones((1, 1, 2, 1)), "argmax": np.ones((1, 1, 1, 1), np.int64)},
            {"ksize": [1, 1, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}),
        "ParseExample": (
            {"serialized": np.array([b""], object), "names": np.array([b"first"], object),
             "sparse_keys": [np.array(b"a", object)], "dense_keys": [np.array(b"f", object)],
             "dense_defaults": [two[:1]]},
            {"sparse_types": ["int64"], "dense_shapes": [[1]]}),
        "DecodeCSV": ({"records": np.array([b"1,2"], object), "record_defaults": [two[:1], two[:1]]}, {}),
    }  # fmt: skip
    return made


def told(error: vg.VoxgradError) -> list[Any]:
    """What is wrong and what helps, without the names of places."""
    return sorted((fault.code, fault.wanted, _same_objects(fault.got), bool(fault.remedy)) for fault in error.faults)


def _same_objects(text: Any) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", str(text))


def shown(results: Any) -> list[Any]:
    """Type, shape and bits of every result."""
    if isinstance(results, (list, tuple)):
        return [entry for one in results for entry in shown(one)]
    made = np.asarray(results)
    return [(str(made.dtype), made.shape, made.tolist() if made.dtype == object else made.tobytes())]


def verdict(run: Callable[[], Any]) -> list[Any]:
    try:
        return shown(run())
    except vg.VoxgradError as error:
        return told(error)


@dataclass(frozen=True)
class Trial:
    """A call with one input replaced, made in one of several ways."""

    op: Op
    pin: str
    inputs: dict[str, Any]
    attrs: dict[str, Any]

    @property
    def base(self) -> Any:
        """What the input in question is in a valid call."""
        base = calls()[self.op.name][0][self.pin]
        return base[0] if self.op.input(self.pin).many else base

    def run(self) -> Any:
        return getattr(vg.raw_ops, self.op.name)(**self.inputs, **self.attrs)

    def raw(self) -> list[Any]:
        return verdict(self.run)

    def constants(self) -> tuple[list[Any], Any]:
        """As constants on a page; and the type of the one in question, None where it was not made."""
        page = vg.Page()

        def run() -> Any:
            made = getattr(vg.ops, self.op.name)(page, **self.inputs, **self.attrs, name=self.op.name)
            return vg.ClientSession(page, cache=False).run(_flat(made))

        said = verdict(run)
        name = f"{self.op.name}/{self.pin}" + ("_0" if self.op.input(self.pin).many else "")
        return said, page[name].output(0).dtype if name in page else None

    def typed(self) -> list[Any]:
        """As values on the pins of a block."""

        def run() -> Any:
            page = vg.Page()
            block = page.add(self.op, attrs=self.attrs, name=self.op.name)
            for item in self.op.inputs:
                for one in self.entries(item):
                    page.attach(block, item.name, Value(one))
            return vg.ClientSession(page, cache=False).run(list(block.outputs))

        return verdict(run)

    def fed(self, dtype: Any) -> list[Any]:
        """As a feed of a Placeholder of a type, among constants."""

        def run() -> Any:
            page = vg.Page()
            item = self.op.input(self.pin)
            value, *others = self.entries(item)
            fed = vg.ops.Placeholder(page, dtype=dtype)
            given = {**self.inputs, self.pin: [fed, *others] if item.many else fed}
            made = getattr(vg.ops, self.op.name)(page, **given, **self.attrs, name=self.op.name)
            return vg.ClientSession(page, cache=False).run(_flat(made), {fed: value})

        return verdict(run)

    def entries(self, item: Input) -> list[Any]:
        given = self.inputs[item.name]
        return list(given) if item.many else [given]


def _flat(made: Any) -> list[Any]:
    return [one for entry in made for one in _flat(entry)] if isinstance(made, (list, tuple)) else [made]


Place = tuple[Op, Input, str]
"""An op, one of its inputs, and the kind of value that is given there."""


def trial_of(op: Op, item: Input, make: Make) -> Trial:
    """The call of an op with a value of a kind as one of its inputs."""
    inputs, attrs = calls()[op.name]
    base = inputs[item.name]
    value = make(np.asarray(base[0] if item.many else base))
    return Trial(op, item.name, {**inputs, item.name: [value, *base[1:]] if item.many else value}, attrs)


NOT_OF_TYPES = ("VG002", "VG030", "VG031", "VG032")
"""Refusals that do not depend on the type that is asked for."""


def differences(trial: Trial, at_once: list[Any] | None = None) -> dict[str, Any]:
    """The ways in which a call is not judged as at once."""
    at_once = trial.raw() if at_once is None else at_once
    constants, dtype = trial.constants()
    found = {"on a page": constants, "on a pin": trial.typed()}
    base = np.asarray(trial.base)
    if dtype is not None:
        found["fed"] = trial.fed(dtype)
    elif at_once[0][0] in NOT_OF_TYPES and base.dtype != object:
        found["fed"] = trial.fed(dtype_of(base.dtype))
    return {way: (at_once, said) for way, said in found.items() if not is_same(at_once, said)}


def is_same(at_once: list[Any], said: list[Any]) -> bool:
    """The same results, up to the roundings of another library's functions; or the same words, each once."""
    if at_once == said or {*map(repr, at_once)} == {*map(repr, said)} or len(at_once) != len(said):
        return {*map(repr, at_once)} == {*map(repr, said)}
    return all(_is_close(*both) for both in zip(at_once, said, strict=True))


def _is_close(one: Any, other: Any) -> bool:
    if len(one) != 3 or len(other) != 3 or one[:2] != other[:2] or one[0] == "object":
        return bool(one == other)
    kind = np.dtype(one[0])
    made, wanted = (np.frombuffer(bits, kind).astype(complex) for bits in (one[2], other[2]))
    coarse = kind.itemsize < 4 and kind.kind not in "iub"
    return np.allclose(made, wanted, rtol=2e-2 if coarse else 1e-5, atol=1e-2 if coarse else 1e-6, equal_nan=True)


TESTED = [op for op in (*FAMILY, *ORDINARY) if callable_at_once(op) and op.inputs and op.name != "Switch"]
"""All but Switch, whose dead output only a page can leave out."""
PLACES: list[Place] = [(op, item, kind) for op in TESTED for item in op.inputs[:2] for kind in KINDS]
SHARE = 29
"""The default run makes every 29th trial, of each op with other kinds of value."""


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("share", [SHARE, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_raw_ops_and_pages_agree(share: int) -> None:
    chosen = PLACES[::share]
    assert len({kind for _, _, kind in chosen}) >= 40 and {op.name for op, _, _ in chosen} == {op.name for op in TESTED}
    assert not {
        f"{op.name}({item.name}={kind})": found
        for op, item, kind in chosen
        if (found := differences(trial_of(op, item, KINDS[kind])))
    }


def torch_kinds() -> dict[str, Make]:
    import torch

    def tensor(values: Array) -> Any:
        bits = np.array(values.view(np.int16) if values.dtype == ml_dtypes.bfloat16 else values)
        made = torch.from_numpy(bits)
        return made.view(torch.bfloat16) if values.dtype == ml_dtypes.bfloat16 else made

    return {
        "torch": tensor,
        "requires_grad": lambda a: tensor(a).requires_grad_() if a.dtype.kind == "f" else tensor(a),
        "strided": lambda a: tensor(np.repeat(a, 2, -1))[..., ::2] if a.ndim else tensor(a),
        "bfloat16": lambda a: tensor(a).to(torch.bfloat16) if a.dtype.kind == "f" else tensor(a),
        "conjugated": lambda a: tensor(a).to(torch.complex64).conj(),
        "sparse": lambda a: tensor(a).to_sparse(),
        "meta": lambda a: tensor(a).to("meta"),
        "float8": lambda a: torch.zeros(a.shape, dtype=torch.float8_e5m2),
        "list of tensors": lambda a: [tensor(one) for one in a] if a.ndim else tensor(a),
    }


def beside(op: Op, make: Make) -> Trial:
    """The call of an op with every array as one of another library; text stays."""
    inputs, attrs = calls()[op.name]

    def made(value: Any) -> Any:
        array = np.asarray(value)
        return array if array.dtype == object else make(array)

    given = {
        item.name: [made(one) for one in inputs[item.name]] if item.many else made(inputs[item.name])
        for item in op.inputs
    }
    return Trial(op, op.inputs[0].name, given, attrs)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["torch", "requires_grad", "strided", "bfloat16", "conjugated", "sparse", "meta",
                                  "float8", "list of tensors"])  # fmt: skip
def test_tensors_of_torch(kind: str) -> None:
    import torch

    def host(result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            return [host(one) for one in result]
        if not isinstance(result, torch.Tensor):
            return result
        low = result.dtype == torch.bfloat16
        return result.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if low else result.numpy()

    different, make = {}, torch_kinds()[kind]
    for op in TESTED:
        trial = beside(op, make)
        at_once = verdict(lambda trial=trial: host(trial.run()))
        if found := differences(trial, at_once):
            different[op.name] = found
        if kind in ("torch", "strided"):
            assert is_same(at_once, beside(op, lambda array: array).raw()), op.name
    assert not different


@pytest.mark.parity
def test_arrays_of_jax() -> None:
    import jax

    with jax.enable_x64(True):
        trials = {op.name: beside(op, jax.numpy.asarray) for op in TESTED}
        assert not {name: found for name, trial in trials.items() if (found := differences(trial))}


def stored(values: Array, folder: Any) -> Iterator[Any]:
    """An array in files: of Zarr, and of HDF5."""
    import h5py
    import zarr

    yield zarr.create_array(store=str(folder / "a.zarr"), data=values)
    with h5py.File(folder / "a.h5", "w") as file:
        yield file.create_dataset("a", data=values)


@pytest.mark.parity
def test_nothing_is_loaded_silently(tmp_path: Any) -> None:
    """Arrays in files are refused everywhere, with what helps; lazy ones stay lazy, or are refused like them."""
    import dask.array as da

    for number, op in enumerate(TESTED):
        base = np.asarray(trial_of(op, op.inputs[0], lambda a: a).base)
        if base.dtype.kind in "OV":
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        for value in stored(base, folder):
            trial = trial_of(op, op.inputs[0], lambda _, value=value: value)
            assert not differences(trial)
            assert [(code, helps) for code, _, _, helps in trial.raw()] == [("VG030", True)]
        lazy = trial_of(op, op.inputs[0], lambda a: da.from_array(a))
        for said in (lazy.constants()[0], lazy.typed()):
            assert [(code, helps) for code, _, _, helps in said] == [("VG030", True)]
        try:
            made = lazy.run()
        except vg.UnimplementedError as error:
            assert told(error)[0][0] == "VG032" and told(error)[0][3]
        else:
            assert isinstance(made, da.Array)
            plain = shown(trial_of(op, op.inputs[0], lambda a: a).run())
            assert is_same(shown(made.compute(scheduler="sync")), plain), op.name


@pytest.mark.parity
def test_tensors_of_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    relu = OPS["Relu"]
    trial = trial_of(relu, relu.inputs[0], tf.constant)
    assert not differences(trial) and trial.raw()[0][0] == "VG030"


class FakeCupy(types.ModuleType):
    """CuPy as far as arrays are handed over, in the memory of the host."""

    class ndarray:
        def __init__(self, values: Any):
            self.values, self.dtype, self.shape = values, values.numpy().dtype, tuple(values.shape)

        def __dlpack__(self, **given: Any) -> Any:
            return self.values.__dlpack__(**given)

        def __dlpack_device__(self) -> Any:
            return self.values.__dlpack_device__()

    ndarray.__module__ = "cupy"

    def from_dlpack(self, values: Any) -> Any:
        return self.ndarray(values)


@pytest.mark.parity
def test_arrays_of_cupy_go_into_ordinary_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    cupy = FakeCupy("cupy")
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    x = cupy.ndarray(torch.tensor([-1.0, 2.0]))
    y = vg.raw_ops.Mul(x=vg.raw_ops.Relu(features=x), y=3)
    assert isinstance(y, cupy.ndarray) and y.values.tolist() == [0, 6]
    page = vg.Page()
    assert vg.ClientSession(page).run(vg.ops.Relu(page, x)).tolist() == [0, 2]
    with pytest.raises(vg.InvalidArgumentError, match="VG030 Add: y must be of the kind of x, cupy"):
        vg.raw_ops.Add(x=x, y=np.ones(2, np.float32))


POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 4, 4, 4, 1], "padding": "SAME"}


def pooled(path: str, x: Array) -> Any:
    """The mean over windows that do not touch, whose places the semantics decide."""
    if path == "at once":
        return vg.raw_ops.AvgPool3D(input=x, **POOL)
    if path == "on a page":
        page = vg.Page(semantics=current_semantics())
        return vg.ClientSession(page).run(vg.ops.AvgPool3D(page, x, **POOL))
    import torch

    import voxgrad.torch as vt

    tensor = torch.from_numpy(x.copy())
    if path == "at once, of torch":
        return vg.raw_ops.AvgPool3D(input=tensor, **POOL).numpy()
    tensor.requires_grad_(path == "with a gradient")
    return vt.avg_pool3d(tensor, 2, 4, data_format="NDHWC").detach().numpy()


@pytest.mark.parametrize(
    "path",
    ["at once", "on a page"]
    + [pytest.param(one, marks=pytest.mark.parity) for one in ("at once, of torch", "by torch", "with a gradient")],
)
def test_settings_hold_on_every_path(path: str) -> None:
    x = np.arange(8**3, dtype=np.float32).reshape(1, 8, 8, 8, 1)
    wanted = {}
    for rule in ("documented", "tf_cpu"):
        with vg.semantics(rule):
            wanted[rule] = vg.raw_ops.AvgPool3D(input=x, **POOL)
            assert np.array_equal(pooled(path, x), wanted[rule])
    assert not np.array_equal(*wanted.values())
    for _ in range(2):  # the second time on the short way
        with vg.limits(bytes=31), pytest.raises(vg.ResourceExhaustedError, match="VG020"):
            pooled(path, x)
        assert pooled(path, x).shape == (1, 2, 2, 2, 1)
