# SPDX-License-Identifier: Apache-2.0
"""Calls into the native library: a problem becomes a C struct once, and is then only pointed at."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.catalog import geometry
from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, FLOAT64, HALF, DType
from voxgrad.catalog.problem import Problem
from voxgrad.errors import CancelledError, Fault, InvalidArgumentError

ABI_VERSION = 3
ISA_NAMES = ("baseline", "avx2", "avx512")
_FLOAT_CODES = {HALF: 0, BFLOAT16: 1, FLOAT32: 2, FLOAT64: 3}
_INTEGER_CODES = {1: 4, 2: 5, 4: 6, 8: 7}
_LIBRARY = "libvoxgrad.dylib" if sys.platform == "darwin" else "voxgrad.dll" if os.name == "nt" else "libvoxgrad.so"
_CANCELLED = 1
NOT_DENSE = 3
NOT_FINITE = 4


class _Axis(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("size", "out", "window", "stride", "dilation", "before")]


class _Conv(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("channels_last", ctypes.c_int32),
        ("batch", ctypes.c_int64),
        ("in_channels", ctypes.c_int64),
        ("out_channels", ctypes.c_int64),
        ("groups", ctypes.c_int64),
        ("axis", _Axis * 3),
    ]


class _Span(ctypes.Structure):
    _fields_ = [("size", ctypes.c_int64), ("out", ctypes.c_int64)] + [
        (name, ctypes.c_void_p) for name in ("lo", "hi", "first", "last")
    ]


class _Pool(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("near_ties", ctypes.c_int32),
        ("batch", ctypes.c_int64),
        ("channels", ctypes.c_int64),
        ("axis", _Span * 3),
    ]


class _Run(ctypes.Structure):
    _fields_ = [
        ("threads", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("cancel", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
    ]


class _Ready(ctypes.Structure):
    _fields_ = [
        ("kernel", ctypes.c_void_p),
        ("problem", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("header", ctypes.c_int64),
        ("run", _Run),
    ]


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The native library, or None where it was not built; then one warning says what that means."""
    path = Path(os.environ.get("VOXGRAD_LIBRARY") or Path(__file__).with_name(_LIBRARY))
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:
        warnings.warn(
            "voxgrad runs without its native kernels (no compiler was found when it was installed): results are the "
            "same, but slow. Install a C++20 compiler and reinstall.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    if loaded.vg_abi_version() != ABI_VERSION:
        raise ImportError(f"{path} has ABI {loaded.vg_abi_version()}, this package needs {ABI_VERSION}; rebuild it")
    _use_isa(loaded, os.environ.get("VOXGRAD_ISA", ""))
    return loaded


def _use_isa(loaded: ctypes.CDLL, wanted: str) -> None:
    if wanted not in ("", *ISA_NAMES) or not loaded.vg_use_isa(_isa_number(wanted)):
        best = ISA_NAMES[: loaded.vg_best_isa() + 1]
        raise InvalidArgumentError(
            Fault("VG003", "voxgrad", "VOXGRAD_ISA", f"be one of {', '.join(best)} on this CPU", repr(wanted))
        )


def _isa_number(name: str) -> int:
    return ISA_NAMES.index(name) if name else -1


def isa_name() -> str:
    """The instruction set in use, or "none" without the native library."""
    loaded = library()
    return "none" if loaded is None else ISA_NAMES[loaded.vg_isa()]


_isa = os.environ.get("VOXGRAD_ISA", "")
"""The name that was asked for, if any: the need for scratch memory depends on it."""


def use_isa(name: str) -> None:
    """Use another instruction set from now on, or with "" what suits each problem; VOXGRAD_ISA sets the first one."""
    global _isa, _scratch
    loaded = library()
    assert loaded is not None
    _use_isa(loaded, name)
    _isa = name
    _scratch = _Scratch()


def _default_threads() -> int:
    text = os.environ.get("VOXGRAD_NUM_THREADS", "")
    if text.isdecimal() and int(text) > 0:
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = _default_threads()


def set_num_threads(count: int) -> None:
    """Use at most `count` threads from now on. Results do not depend on it.

    The start value is VOXGRAD_NUM_THREADS, else the CPUs that this process may use.
    """
    global _threads, _scratch
    if not isinstance(count, int) or not 1 <= count <= 1024:
        raise InvalidArgumentError(
            Fault("VG003", "set_num_threads", "count", "be an integer from 1 to 1024", repr(count))
        )
    _threads = count
    _scratch = _Scratch()


def get_num_threads() -> int:
    """How many threads a call may use."""
    return _threads


@dataclass(frozen=True, slots=True)
class Prepared:
    """A problem as the native library sees it."""

    kernel: str
    function: Any
    address: int
    pointer: Any
    scratch: Any
    keep: tuple[Any, ...]
    sizes: dict[tuple[int, str], int] = field(default_factory=dict)
    """Bytes of scratch memory by number of threads and instruction set, once they were asked for."""


@lru_cache(maxsize=4096)
def prepare(problem: Problem, positions: bool = False) -> Prepared:
    """The C struct and the function for a problem; with `positions`, the one of a max pool that keeps or uses them."""
    loaded = library()
    assert loaded is not None
    name = f"vg_{problem.kernel}{'_positions' if positions else ''}"
    function, scratch = getattr(loaded, name), getattr(loaded, f"{name}_scratch")
    scratch.restype = ctypes.c_int64
    struct, keep = _conv_struct(problem) if problem.kernel.startswith("conv") else _pool_struct(problem)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    return Prepared(problem.kernel, function, address, ctypes.byref(struct), scratch, (struct, *keep))


def _dtype_code(dtype: DType) -> int:
    return _FLOAT_CODES[dtype] if dtype.is_floating else _INTEGER_CODES[dtype.itemsize]


def _conv_struct(problem: Problem) -> tuple[_Conv, tuple[Any, ...]]:
    axes = [
        _Axis(axis.size, axis.out, axis.window, axis.stride, axis.dilation, axis.before) for axis in problem.axes
    ]  # fmt: skip
    return _Conv(
        _dtype_code(problem.dtype),
        problem.channels_last,
        problem.batch,
        problem.in_channels,
        problem.out_channels,
        problem.groups,
        (_Axis * 3)(*axes),
    ), ()


def _pool_struct(problem: Problem) -> tuple[_Pool, tuple[Any, ...]]:
    # A channels-first pool is one of batch * channels images with a single channel.
    images = (problem.batch, problem.in_channels) if problem.channels_last else (problem.batch * problem.in_channels, 1)
    spans, keep = [], []
    for axis in problem.axes:
        tables: Sequence[array[int]] = (*geometry.spans(axis), *geometry.coverings(axis))
        keep.append(tables)
        spans.append(_Span(axis.size, axis.out, *(table.buffer_info()[0] for table in tables)))
    struct = _Pool(_dtype_code(problem.dtype), problem.near_ties, *images, (_Span * 3)(*spans))
    return struct, tuple(keep)


_OBJECT_HEADER = object.__basicsize__
_TUPLE_HEADER = tuple.__basicsize__


class _Scratch(threading.local):
    """Scratch memory of one thread, kept between calls; replaced where threads or instructions change."""

    size = 0
    address = 0
    buffer: Any = None

    def __init__(self) -> None:
        loaded = library()
        entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        # Without the library nothing is called here, but the package must still be there.
        self.call: Callable[[Any, int], int] | None = None if loaded is None else entry(("vg_call", loaded))
        self.ready = _Ready(header=_OBJECT_HEADER)
        self.pointer = ctypes.byref(self.ready)
        self.ready_for: Prepared | None = None

    def get_ready(self, prepared: Prepared, count: int) -> None:
        """Set the settings for a problem of so many arrays; setting a field of a C struct costs more than comparing."""
        threads = _threads
        self.ready.kernel, self.ready.count = prepared.address, count
        self.ready.problem = ctypes.addressof(prepared.keep[0])
        self.ready.run.threads, self.ready.run.scratch = threads, self.enough_for(prepared, threads)
        self.ready_for = prepared

    def enough_for(self, prepared: Prepared, threads: int) -> int:
        """The address of enough memory for a problem."""
        size = prepared.sizes.get((threads, _isa))
        if size is None:
            size = prepared.sizes[threads, _isa] = prepared.scratch(prepared.pointer, threads)
        return self.at_least(size)

    def at_least(self, size: int) -> int:
        """The address of `size` bytes, 64-byte aligned."""
        if size > self.size:
            self.buffer = ctypes.create_string_buffer(size + 64)
            self.ready_for = None
            self.address = (ctypes.addressof(self.buffer) + 63) & ~63
            self.size = size
        return self.address


_scratch = _Scratch()


class CancelFlag:
    """Set from any thread to stop the native call that was started with it."""

    def __init__(self) -> None:
        self._value = ctypes.c_int32(0)
        self.address = ctypes.addressof(self._value)

    def set(self) -> None:
        """Ask the call to stop."""
        self._value.value = 1

    def is_set(self) -> bool:
        """True after set()."""
        return bool(self._value.value)


def run(
    problem: Problem, addresses: Sequence[int], cancel: CancelFlag | None = None, *, positions: bool = False
) -> bool:
    """Run a problem on memory: the addresses of the tensor inputs in order, then of the output.

    False where the filter of a convolution, or its gradient, holds a value that is not finite. With `positions`, a max
    pool writes the position of every maximum as a byte behind its output, and its gradients take these bytes instead of
    the pool's input and output (see voxgrad.h).
    """
    prepared = prepare(problem, positions)
    threads = _threads
    settings = _Run(threads, 0, cancel.address if cancel else None, _scratch.enough_for(prepared, threads))
    pointers = [ctypes.c_void_p(address) for address in addresses]
    status = prepared.function(prepared.pointer, *pointers, ctypes.byref(settings))
    if status == _CANCELLED:
        raise CancelledError(Fault("VG040", problem.op, "run", "finish", "a request to stop"))
    assert status in (0, NOT_FINITE), f"{problem.op}: native status {status}"
    return bool(status == 0)


def run_arrays(prepared: Prepared, arrays: tuple[np.ndarray[Any, Any], ...]) -> int:
    """Run on NumPy arrays of native byte order, the output last. The status: 0, NOT_DENSE or NOT_FINITE."""
    local = _scratch
    if local.ready_for is not prepared:
        local.get_ready(prepared, len(arrays))
    return local.call(local.pointer, id(arrays) + _TUPLE_HEADER)  # type: ignore[misc]


class _Fields(ctypes.Structure):
    """What NumPy's array object holds behind the header of every object, as in voxgrad.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("nd", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("base", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
        ("flags", ctypes.c_int),
    ]


@lru_cache(maxsize=1)
def sees_arrays() -> bool:
    """True where array objects lie in memory as the native library takes them to: tried on one in a tuple."""
    if sys.implementation.name != "cpython" or library() is None:
        return False
    probe = np.empty((3, 5), np.int16)
    pair = (None, probe)
    if (ctypes.c_void_p * 2).from_address(id(pair) + _TUPLE_HEADER)[1] != id(probe):
        return False
    seen = _Fields.from_address(id(probe) + _OBJECT_HEADER)
    return (seen.data, seen.nd, seen.shape[1], seen.strides[0], seen.descr, seen.flags) == (
        probe.ctypes.data, 2, 5, 10, id(probe.dtype), probe.flags.num
    )  # fmt: skip
