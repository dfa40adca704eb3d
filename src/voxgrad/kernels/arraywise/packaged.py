# SPDX-License-Identifier: Apache-2.0
"""Functions of installed packages: found when a block first runs, given NumPy arrays, held to their declarations."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from voxgrad.catalog import packages
from voxgrad.catalog.dims import all_known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Input, Spec
from voxgrad.catalog.shapes import FOLDED, text
from voxgrad.errors import CancelledError, Fault, Faults, UnimplementedError, VoxgradError
from voxgrad.kernels.arraywise import namespace
from voxgrad.kernels.element_types import numpy_type
from voxgrad.loading import LOADING

if TYPE_CHECKING:
    from voxgrad.kernels.arraywise.evaluation import Run

Array = np.ndarray[Any, Any]


def caller(path: str) -> Callable[..., Any]:
    """What calls the function at "module:function"; it is imported by the first call."""
    return partial(_call, path)


def _call(path: str, run: Run, *inputs: Any) -> Any:
    given = [_given(run, item, value) for item, value in zip(run.op.inputs, inputs, strict=True)]
    attrs = {name: numpy_type(value) if isinstance(value, DType) else value for name, value in run.attrs.items()}
    try:
        made = _function(path)(*given, **attrs)
    except (CancelledError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        wanted = f"run, as the package {run.op.package} has it"
        raise VoxgradError(Fault("VG091", run.op.name, "function", wanted, packages.told(error))) from error
    results: Any = _checked(run, given, made)
    results = results[0] if len(results) == 1 else results
    like = run.like
    return results if like is None or namespace.is_numpy(like) else _moved(results, like)


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    with LOADING:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _given(run: Run, item: Input, value: Any) -> Any:
    """An input as the function gets it: NumPy, which it cannot write to. Nothing is copied between devices."""
    if item.many:
        return [_host(run, item, one) for one in value]
    return _host(run, item, value)


def _host(run: Run, item: Input, value: Any) -> Array:
    if namespace.is_torch(value) and value.device.type != "cpu":
        remedy = "Move its inputs to the CPU."
        wanted = f"be on the CPU, where the package {run.op.package} computes"
        raise UnimplementedError(Fault("VG032", run.op.name, item.name, wanted, f"on {value.device}", remedy))
    array = namespace.to_numpy(value).view()
    array.flags.writeable = False
    return array


def _checked(run: Run, given: Sequence[Any], made: Any) -> tuple[Any, ...]:
    """The results, if they are what the declaration says: so many, of these types, in these shapes."""
    op = run.op
    results = (made,) if len(op.outputs) == 1 else tuple(made) if isinstance(made, (tuple, list)) else (made,)
    if len(results) != len(op.outputs):
        raise _broken(run, "function", f"return {len(op.outputs)} results", f"{len(results)}")
    specs = {item.name: _specs(value) for item, value in zip(op.inputs, given, strict=True)}
    faults = Faults(op.name)
    wanted = op.infer(Call(op, specs, run.attrs, block=run.context.block), faults) if op.infer is not None else None
    faults.raise_if_any()
    found: list[Any] = []
    for at, (item, result) in enumerate(zip(op.outputs, results, strict=True)):
        spec = wanted[at] if wanted is not None else ()
        if item.many:
            listed = spec if isinstance(spec, tuple) and spec else (Spec(),) * len(result)
            if len(listed) != len(result):
                raise _broken(run, item.name, f"be {len(listed)} tensors", f"{len(result)}")
            found.append(tuple(_fitted(run, item.name, one, each) for one, each in zip(result, listed, strict=True)))
        else:
            found.append(_fitted(run, item.name, result, spec if isinstance(spec, Spec) else Spec()))
    return tuple(found)


def _fitted(run: Run, name: str, result: Any, spec: Spec) -> Array:
    array = namespace.to_numpy(result)
    if spec.dtype is not None and array.dtype != numpy_type(spec.dtype):
        raise _broken(run, name, f"be of the declared type, {spec.dtype}", str(array.dtype))
    sizes = spec.shape
    if sizes is not None and (len(sizes) != array.ndim or (all_known(sizes) and tuple(sizes) != array.shape)):
        raise _broken(run, name, f"have the shape that its rule says, {text(sizes)}", text(array.shape))
    return array


def _broken(run: Run, argument: str, wanted: str, got: str) -> VoxgradError:
    remedy = f"The package {run.op.package} breaks its own declaration."
    return VoxgradError(Fault("VG091", run.op.name, argument, wanted, got, remedy))


def _specs(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_specs(one) for one in value)
    dtype = namespace.element_type(value)
    small = dtype.kind in ("int", "uint") and value.size <= FOLDED
    return Spec(dtype, value.shape, tuple(value.ravel().tolist()) if small else None)


def _moved(results: Any, like: Any) -> Any:
    if isinstance(results, tuple):
        return tuple(_moved(one, like) for one in results)
    return namespace.moved_to(results, like)
