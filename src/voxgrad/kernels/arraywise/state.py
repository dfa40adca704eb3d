# SPDX-License-Identifier: Apache-2.0
"""Variables and what changes them. A change makes a new array: whoever holds the old one keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import BOOL
from voxgrad.kernels.arraywise.context import Handle, Ref
from voxgrad.kernels.arraywise.evaluation import Run, add_kernel, kernel
from voxgrad.kernels.arraywise.namespace import Array, element_type, integer, moved_to, to_numpy


@kernel()
def variable(run: Run) -> Ref:
    """The variable of this block, or the shared one that it names."""
    shared, shape = run.attrs["shared_name"], run.attrs["shape"]
    ref = Ref(run.context.state, f"{run.attrs['container']}/{shared}" if shared else run.context.block)
    if not ref.ready and shape is not None and 0 in shape and None not in shape:
        ref.assign(run.make(np.zeros(shape), run.attrs["dtype"]))  # without elements there is no value to wait for
    return ref


@kernel()
def handle(run: Run) -> Handle:
    """The handle of the variable of this block, or of the shared one that it names."""
    shared, attrs = run.attrs["shared_name"], run.attrs
    name = f"{attrs['container']}/{shared}" if shared else run.context.block
    return Handle(run.context.state, name, attrs["dtype"], attrs["shape"])


@kernel()
def read_handle(run: Run, resource: Handle) -> Array:
    """The value of the variable behind a handle."""
    if run.attrs["dtype"] != resource.holds:
        wanted = f"be that of the variable, {resource.holds}"
        run.fail("dtype", wanted=wanted, got=run.attrs["dtype"].name, code="VG011")
    return resource.value


@kernel()
def assign_handle(run: Run, resource: Handle, value: Array) -> tuple[()]:
    """Give the variable behind a handle a value."""
    if element_type(value) != resource.holds:
        wanted = f"be of the type of the variable, {resource.holds}"
        run.fail("value", wanted=wanted, got=element_type(value).name, code="VG011")
    stated = resource.stated
    if stated is not None and (
        len(stated) != len(value.shape)
        or any(size is not None and size != given for size, given in zip(stated, value.shape, strict=True))
    ):
        run.fail("value", wanted=f"have the shape {list(stated)}", got=list(value.shape), code="VG012")
    resource.assign(value)
    return ()


@kernel()
def assign(run: Run, ref: Ref, value: Array) -> Ref:
    """Give it a value."""
    if run.attrs["validate_shape"] and ref.ready and tuple(ref.value.shape) != tuple(value.shape):
        wanted = f"have the shape of the variable, {list(ref.value.shape)}"
        run.fail("value", wanted=wanted, got=list(value.shape), code="VG012")
    return ref.assign(value)


def _changed(operate: Callable[[Run, Array, Array], Array]) -> Any:
    def function(run: Run, ref: Ref, value: Array) -> Ref:
        old = ref.value
        if tuple(old.shape) != tuple(value.shape):
            run.fail(
                "value",
                wanted=f"have the shape of the variable, {list(old.shape)}",
                got=list(value.shape),
                code="VG012",
            )
        return ref.assign(
            np.asarray(operate(run, old, value)) if isinstance(old, np.ndarray) else operate(run, old, value)
        )

    return function


add_kernel(__name__, "assign_add", _changed(lambda run, old, value: old + value))
add_kernel(__name__, "assign_sub", _changed(lambda run, old, value: old - value))


@kernel()
def is_initialized(run: Run, ref: Ref) -> Array:
    """Whether it has a value."""
    return run.make(ref.ready, BOOL)


@kernel()
def count_up_to(run: Run, ref: Ref) -> Array:
    """The count, raised by one afterwards."""
    now = ref.value
    if integer(now) >= run.attrs["limit"]:
        run.fail("ref", wanted=f"be below the limit {run.attrs['limit']}", got=integer(now), code="VG042")
    ref.assign(run.make(integer(now) + 1, element_type(now)))
    return now


@kernel()
def temporary_variable(run: Run) -> Ref:
    """A variable that holds zeros until it is assigned."""
    ref = Ref(run.context.state, f"temporary/{run.attrs['var_name'] or run.context.block}")
    return ref.assign(run.make(np.zeros(run.attrs["shape"]), run.attrs["dtype"]))


@kernel()
def destroy_temporary_variable(run: Run, ref: Ref) -> Array:
    """Its last value; the variable is gone."""
    if ref.name != f"temporary/{run.attrs['var_name']}":
        run.fail("var_name", wanted=f"be {ref.name.removeprefix('temporary/')!r}", got=repr(run.attrs["var_name"]))
    value = ref.value
    del run.context.state.variables[ref.name]
    return value


def _updated(operate: Callable[[Any, Any, Any], None], *, nd: bool) -> Any:
    """A copy of the variable with rows or slices changed in order, as if one by one."""

    def function(run: Run, ref: Ref, indices: Array, updates: Array) -> Ref:
        old = ref.value
        out, where = to_numpy(old).copy(), to_numpy(indices)
        if not out.ndim:
            run.fail("ref", wanted="have rows", got="a scalar variable, without rows", code="VG010")
        depth = where.shape[-1] if nd else 1
        places = where.reshape(-1, depth) if nd else where.reshape(-1, 1)
        check_positions(run, places, out.shape)
        shape = (len(places), *out.shape[depth:])
        values = (
            np.broadcast_to(to_numpy(updates), shape)
            if to_numpy(updates).ndim == 0
            else to_numpy(updates).reshape(shape)
        )
        if operate is _divide_at and out.dtype.kind in "iu" and not values.all():
            run.fail("updates", wanted="have no zeros in an integer division", got="a zero")
        operate(out, tuple(places.T), values)
        return ref.assign(moved_to(out, old))

    return function


def check_positions(run: Run, places: Any, shape: tuple[int, ...]) -> None:
    """Every position lies inside."""
    for column in range(places.shape[1]):
        bad = places[(places[:, column] < 0) | (places[:, column] >= shape[column])]
        if len(bad):
            run.fail("indices", wanted=f"be inside {list(shape)}", got=bad[0].tolist())


def _set(out: Any, at: Any, values: Any) -> None:
    out[at] = values


def _divide_at(out: Any, at: Any, values: Any) -> None:
    """Quotients; of integers towards zero: magnitudes by themselves, then the signs."""
    if out.dtype.kind not in "iu":
        np.divide.at(out, at, values)
        return
    unsigned = np.dtype(f"u{out.dtype.itemsize}")
    sizes, minus = np.abs(out).view(unsigned), out < 0
    np.floor_divide.at(sizes, at, np.abs(values).view(unsigned))
    np.logical_xor.at(minus, at, values < 0)
    out[...] = np.where(minus, np.negative(sizes), sizes).view(out.dtype)


for _name, _operate in {
    "add": np.add.at,
    "sub": np.subtract.at,
    "mul": np.multiply.at,
    "div": _divide_at,
    "update": _set,
}.items():
    add_kernel(__name__, f"scatter_{_name}", _updated(_operate, nd=False))
    add_kernel(__name__, f"scatter_nd_{_name}", _updated(_operate, nd=True))
