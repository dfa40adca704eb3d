# SPDX-License-Identifier: Apache-2.0
"""Finds the function of an op and calls it on arrays."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

import numpy as np

from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, HALF, DType
from voxgrad.catalog.model import Op
from voxgrad.errors import Fault, Faults, InvalidArgumentError, VoxgradError
from voxgrad.kernels.arraywise import namespace, packaged
from voxgrad.kernels.arraywise.context import DEAD, Context, Ref
from voxgrad.kernels.element_types import numpy_type
from voxgrad.loading import LOADING

UNFORESEEN = "arguments"
"""What a fault names where no rule of the declaration foresaw it."""

_LOW = (HALF, BFLOAT16)
_LOW_NUMPY = frozenset(numpy_type(dtype) for dtype in _LOW)


@dataclass(slots=True)
class Run:
    """One evaluation, as the function of an op sees it: array namespace, attributes, context."""

    op: Op
    xp: Any
    like: Any
    attrs: Mapping[str, Any]
    context: Context

    def make(self, values: Any, dtype: DType) -> Any:
        """A fresh array beside the inputs, or where the session keeps its arrays."""
        made = namespace.array_like(values, dtype, self.like)
        return self.context.place(made) if self.like is None and self.context.place is not None else made

    def native(self, dtype: DType) -> Any:
        """The namespace's type object for an element type."""
        return namespace.native_type(self.xp, dtype)

    def fail(self, argument: str, *, wanted: str, got: object, code: str = "VG043", remedy: str = "") -> NoReturn:
        """Raise the fault of a value that only a run can see."""
        faults = Faults(self.op.name)
        faults.add(code, argument, wanted=wanted, got=got, remedy=remedy)
        raise faults.error()

    def room(self, argument: str, shape: Sequence[int], like: Any) -> None:
        """Fail before a result whose size the data decide takes more memory than the session allows."""
        size = math.prod(shape) * getattr(like.dtype, "itemsize", 8)
        limit = self.context.passed_limit(size)
        if limit is not None:
            self.fail(argument, wanted=f"need at most {limit:,} bytes", got=f"{size:,}", code="VG020")


Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function `f(run, *inputs)`. `widen`: half and bfloat16 go in as float32 and come back rounded once.

    `dead`: it wants to see dead inputs.
    """

    function: Function
    widen: bool = False
    dead: bool = False


KERNELS: dict[str, Kernel] = {}
"""Functions by "module.name", as far as their modules were needed."""


def add_kernel(module: str, name: str, function: Function, *, widen: bool = False, dead: bool = False) -> None:
    """Register a function under the short name of its module."""
    KERNELS[f"{module.rpartition('.')[2]}.{name}"] = Kernel(function, widen, dead)


def kernel(*, widen: bool = False, dead: bool = False, name: str = "") -> Callable[[Function], Function]:
    """Register the decorated function as `<module>.<name>`."""

    def register(function: Function) -> Function:
        add_kernel(function.__module__, name or function.__name__, function, widen=widen, dead=dead)
        return function

    return register


@cache
def find_kernel(path: str) -> Kernel:
    """The kernel that a declaration names; its module is imported at the first use."""
    if ":" in path:
        return Kernel(packaged.caller(path))
    with LOADING:
        importlib.import_module(f"voxgrad.kernels.arraywise.{path.partition('.')[0]}")
    return KERNELS[path]


def evaluate(op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], context: Context) -> tuple[Any, ...]:
    """The results of an op: one per output. `attrs` are canonical, `inputs` as the package says."""
    found = find_kernel(op.kernel)
    values, like, plain = _taken(op, inputs, found.dead)
    if values is None:
        return (DEAD,) * len(op.outputs)
    xp = namespace.numpy_namespace
    if not plain and like is not None and not namespace.is_numpy(like):
        xp = namespace.namespace_of(like)
        values = [_beside(value, like) for value in values]
    run = Run(op, xp, like, attrs, context)
    widen = found.widen and (not plain or any(value.dtype in _LOW_NUMPY for value in values))
    try:
        with np.errstate(all="ignore"):
            results = _widened(found, run, values) if widen else found.function(run, *values)
    except MemoryError as error:
        if isinstance(error, VoxgradError):
            raise
        run.fail("output", wanted="fit into memory", got=str(error) or "no memory left", code="VG020")
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        if isinstance(error, VoxgradError):
            raise
        # The rules of the declaration let a call through that the arrays cannot follow: still no foreign exception.
        raise InvalidArgumentError(Fault("VG043", op.name, UNFORESEEN, "fit together", str(error))) from error
    if type(results) is np.ndarray:
        return (results,)
    outs = (results,) if len(op.outputs) == 1 else tuple(results or ())
    return tuple([_as_array(out) if isinstance(out, (np.generic, bytes)) else out for out in outs])


def _as_array(scalar: Any) -> np.ndarray[Any, Any]:
    """NumPy gives single elements as such, and single texts as bytes."""
    return np.asarray(scalar, dtype=object if isinstance(scalar, bytes) else None)


def _taken(op: Op, inputs: Sequence[Any], takes_dead: bool) -> tuple[list[Any] | None, Any, bool]:
    """The values to compute with, None where one is dead; the array that decides the library; whether all are NumPy's.

    One pass, and nothing to do for plain arrays: this runs before every block of a page.
    """
    values: list[Any] = []
    like, plain = None, True
    for item, value in zip(op.inputs, inputs, strict=True):
        if type(value) is np.ndarray:
            like = value if like is None else like
        else:
            if not takes_dead and _is_dead(value):
                return None, None, False
            plain = False
            value = value if item.ref else _read(value)
        values.append(value)
    if not plain:
        like = namespace.first_array(_held(value) for value in values)
    return values, like, plain


def _is_dead(value: Any) -> bool:
    return value is DEAD or (isinstance(value, (list, tuple)) and any(one is DEAD for one in value))


def _held(value: Any) -> Any:
    """What a variable holds already, None before its first assignment."""
    return (value.value if value.ready else None) if type(value) is Ref else value


def _read(value: Any) -> Any:
    """The value of a variable, also inside a list of inputs."""
    if type(value) is Ref:
        return value.value
    return [_read(one) for one in value] if isinstance(value, (list, tuple)) else value


def _beside(value: Any, like: Any) -> Any:
    """NumPy constants beside tensors of another library join them; text and host values stay."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return namespace.moved_to(value, like)
    if isinstance(value, list):
        return [_beside(one, like) for one in value]
    if namespace.is_torch(value) and value.device != like.device:
        return value.to(like.device)
    return value


def _widened(found: Kernel, run: Run, values: list[Any]) -> Any:
    low = next((dtype for value in values for dtype in _types(value) if dtype in _LOW), None)
    if low is None:
        return found.function(run, *values)
    wide = [_recast(value, _LOW, FLOAT32) for value in values]
    return _recast(found.function(run, *wide), (FLOAT32,), low)


def _types(value: Any) -> list[DType]:
    if isinstance(value, (list, tuple)):
        return [dtype for one in value for dtype in _types(one)]
    return [namespace.element_type(value)] if hasattr(value, "dtype") else []


def _recast(value: Any, types: tuple[DType, ...], dtype: DType) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_recast(one, types, dtype) for one in value)
    if hasattr(value, "dtype") and namespace.element_type(value) in types:
        return namespace.cast(value, dtype)
    return value
