# SPDX-License-Identifier: Apache-2.0
"""Calls into the native library: a problem becomes a C struct once, and is then only pointed at."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
import warnings
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.catalog import geometry
from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, FLOAT64, HALF, DType
from voxgrad.catalog.problem import Problem
from voxgrad.errors import CancelledError, Fault, InvalidArgumentError, ResourceExhaustedError
from voxgrad.kernels import interrupt
from voxgrad.kernels.names import KERNELS

Array = np.ndarray[Any, Any]

ABI_VERSION = 6
ISA_NAMES = ("baseline", "avx2", "avx512")
_FLOAT_CODES = {HALF: 0, BFLOAT16: 1, FLOAT32: 2, FLOAT64: 3}
_INTEGER_CODES = {1: 4, 2: 5, 4: 6, 8: 7}
_LIBRARY = "libvoxgrad.dylib" if sys.platform == "darwin" else "voxgrad.dll" if os.name == "nt" else "libvoxgrad.so"
_CANCELLED = 1
NOT_DENSE = 3
NOT_FINITE = 4
NO_MEMORY = 5


class Seen(ctypes.Structure):
    """What a call found when it asked for its paths, as bits: see voxgrad.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("possible", "impossible", "worth", "unworthy", "taken")]


class How(ctypes.Structure):
    """Which paths a call takes or leaves, for tests: see voxgrad.h and paths.py."""

    _fields_ = [
        ("force", ctypes.c_uint64),
        ("avoid", ctypes.c_uint64),
        ("grain", ctypes.c_int64),
        ("seen", ctypes.POINTER(Seen)),
    ]


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
        ("how", How),
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
        ("how", How),
    ]


class _Ready(ctypes.Structure):
    _fields_ = [
        ("kernel", ctypes.c_void_p),
        ("problem", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("scratch", ctypes.c_int64),
        ("header", ctypes.c_int64),
        ("threads", ctypes.c_int32),
    ]


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The native library, or None where it was not built; then one warning says what that means."""
    named = os.environ.get("VOXGRAD_LIBRARY", "")
    path = Path(named or Path(__file__).with_name(_LIBRARY))
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:
        why, remedy = "no compiler was found when it was installed", "Install a C++20 compiler and reinstall."
        if named:
            why, remedy = f"VOXGRAD_LIBRARY names {named!r}, which cannot be loaded", "Unset it, or name a library."
        warnings.warn(
            f"voxgrad runs without its native kernels ({why}): results are the same, but slow. {remedy}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    if loaded.vg_abi_version() != ABI_VERSION:
        raise ImportError(f"{path} has ABI {loaded.vg_abi_version()}, this package needs {ABI_VERSION}; rebuild it")
    if not _sets(loaded):
        raise ImportError(f"{path} was built for another kind of CPU; build it on this one: python3 run test --fast")
    _use_isa(loaded, os.environ.get("VOXGRAD_ISA", ""))
    return loaded


def _use_isa(loaded: ctypes.CDLL, wanted: str) -> None:
    if wanted not in ("", *ISA_NAMES) or not loaded.vg_use_isa(_isa_number(wanted)):
        listed = ", ".join(_sets(loaded))
        raise InvalidArgumentError(
            Fault("VG003", "voxgrad", "VOXGRAD_ISA", f"be one of {listed} on this CPU", repr(wanted))
        )


def _sets(loaded: ctypes.CDLL) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(ISA_NAMES) if loaded.vg_isas() >> bit & 1)


def instruction_sets() -> tuple[str, ...]:
    """Those that were compiled and that this CPU has, the widest last; none without the native library."""
    loaded = library()
    return () if loaded is None else _sets(loaded)


def _isa_number(name: str) -> int:
    return ISA_NAMES.index(name) if name else -1


def isa_name() -> str:
    """The instruction set in use, or "none" without the native library."""
    loaded = library()
    return "none" if loaded is None else ISA_NAMES[loaded.vg_isa()]


MOST_THREADS = 1024


def _default_threads() -> int:
    text = os.environ.get("VOXGRAD_NUM_THREADS", "").strip()
    if text.isdecimal() and 1 <= int(text) <= MOST_THREADS:
        return int(text)
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if text:
        # An import must not fail for it, and nobody should wonder why it changes nothing.
        warnings.warn(
            f"VOXGRAD_NUM_THREADS must be an integer from 1 to {MOST_THREADS}; got {text!r:.40}, so voxgrad uses "
            f"{count} threads.",
            RuntimeWarning,
            stacklevel=2,
        )
    return min(count, MOST_THREADS)


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """With how many threads, and which instruction set, calls run; "" is what suits each problem."""

    threads: int
    isa: str


@cache
def _setting_of(threads: int, isa: str) -> _Setting:
    """One object for each, by which calls find what was made ready for it."""
    return _Setting(threads, isa)


_setting = _setting_of(_default_threads(), os.environ.get("VOXGRAD_ISA", ""))


def use_isa(name: str) -> None:
    """Use another instruction set from now on, or with "" what suits each problem; VOXGRAD_ISA sets the first one."""
    global _setting
    loaded = library()
    assert loaded is not None
    _use_isa(loaded, name)
    _setting = _setting_of(_setting.threads, name)


@checked
def set_num_threads(count: int) -> None:
    """Use at most `count` threads from now on. Results do not depend on it.

    The start value is VOXGRAD_NUM_THREADS, else the CPUs that this process may use.
    """
    global _setting
    if not isinstance(count, int) or not 1 <= count <= MOST_THREADS:
        raise InvalidArgumentError(
            Fault("VG003", "set_num_threads", "count", f"be an integer from 1 to {MOST_THREADS}", repr(count))
        )
    _setting = _setting_of(int(count), _setting.isa)


def get_num_threads() -> int:
    """How many threads a call may use."""
    return _setting.threads


def computes(op: str) -> bool:
    """True where the native library is there and has a kernel of this op."""
    return op in KERNELS and library() is not None


@dataclass(slots=True, eq=False)
class Prepared:
    """A problem as the native library sees it."""

    op: str
    name: str
    """Of the kernel in the library."""
    struct: Any
    tables: tuple[Any, ...]
    """What the struct points at."""
    bytes: int
    """Of the tables."""
    may_be_long: bool
    """Whether a call could take so long that somebody wants to interrupt it."""
    seconds: dict[_Setting, float] = field(default_factory=dict)
    """How long the last such call took that was watched, by setting."""
    ready: dict[_Setting, Any] = field(default_factory=dict)
    """Pointers to the C structs of calls, one for each setting. A struct never changes, so that any call may use it."""

    def make_ready(self, setting: _Setting) -> Any:
        """The pointer to the struct of a call."""
        loaded, made = library(), _Ready()
        assert loaded is not None
        known = loaded.vg_get_ready(
            ctypes.byref(made), self.name.encode(), ctypes.byref(self.struct), setting.threads, _isa_number(setting.isa)
        )
        assert known, f"no native kernel {self.name} for {setting}"
        made.header = _OBJECT_HEADER
        pointer = self.ready[setting] = ctypes.byref(made)
        return pointer

    def scratch_bytes(self) -> int:
        """Bytes of scratch memory that a call needs now."""
        made = (self.ready.get(_setting) or self.make_ready(_setting))._obj
        return int(made.scratch)


KEPT_BYTES = 2**27
"""Tables of at most so many bytes are kept for calls to come."""
_KEPT = 4096
_prepared: dict[tuple[Problem, bool], Prepared] = {}


def prepare(problem: Problem, positions: bool = False) -> Prepared:
    """The C struct and the kernel for a problem; with `positions`, the one of a max pool that keeps or uses them."""
    found = _prepared.get((problem, positions))
    if found is None:
        found = _made(problem, f"{KERNELS[problem.op]}{'_positions' if positions else ''}")
        if len(_prepared) >= _KEPT or sum(one.bytes for one in tuple(_prepared.values())) + found.bytes > KEPT_BYTES:
            _prepared.clear()
        if found.bytes <= KEPT_BYTES:
            _prepared[problem, positions] = found
    return found


def _made(problem: Problem, name: str) -> Prepared:
    struct, tables = struct_of(problem)
    size = sum(table.itemsize * len(table) for table in tables)
    taps = math.prod(axis.out * axis.window for axis in problem.axes)
    work = problem.batch * problem.in_channels * taps
    if problem.map.has_taps:
        work *= problem.out_channels // max(problem.groups, 1)
    cells = problem.batch * problem.in_channels * math.prod(axis.size for axis in problem.axes)
    return Prepared(problem.op, name, struct, tables, size, work + cells > _SURELY_SHORT)


_SURELY_SHORT = 2_000_000
"""So many products or comparisons take at most a few milliseconds, whatever the machine."""


def struct_of(problem: Problem) -> tuple[Any, tuple[Any, ...]]:
    """The C struct of a problem, and what must be kept as long as it."""
    return _conv_struct(problem) if problem.map.has_taps else _pool_struct(problem)


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
    spans: list[_Span] = []
    keep: list[array[int]] = []
    for axis in problem.axes:
        tables: Sequence[array[int]] = (*geometry.spans(axis), *geometry.coverings(axis))
        keep.extend(tables)
        spans.append(_Span(axis.size, axis.out, *(table.buffer_info()[0] for table in tables)))
    struct = _Pool(_dtype_code(problem.dtype), problem.near_ties, *images, (_Span * 3)(*spans))
    return struct, tuple(keep)


_OBJECT_HEADER = object.__basicsize__
_TUPLE_HEADER = tuple.__basicsize__


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
    problem: Problem,
    arrays: Sequence[Array | int],
    cancel: CancelFlag | None = None,
    *,
    positions: bool = False,
    patience: float = interrupt.PATIENCE,
) -> bool:
    """Run a problem on dense arrays, or memory at addresses: the tensor inputs in order, then the output.

    False where the filter of a convolution, or its gradient, holds a value that is not finite. With `positions`, a max
    pool writes the position of every maximum as a byte behind its output, and its gradients take these bytes instead of
    the pool's input and output (see voxgrad.h). After an exception that a signal handler raised, the kernel may write
    to the output for a moment longer; how long it is waited for is its `patience`.
    """
    prepared = prepare(problem, positions)
    status = _run_at(prepared, arrays, cancel or CancelFlag(), patience)
    if status == _CANCELLED:
        raise CancelledError(Fault("VG040", problem.op, "run", "finish", "a request to stop"))
    if status == NO_MEMORY:
        wanted = f"{prepared.scratch_bytes():,} bytes to work in"
        raise ResourceExhaustedError(Fault("VG020", problem.op, "output", "fit into memory", wanted))
    assert status in (0, NOT_FINITE), f"{problem.op}: native status {status}"
    return bool(status == 0)


def _run_at(prepared: Prepared, arrays: Sequence[Array | int], cancel: CancelFlag, patience: float) -> int:
    """The status of a call that can be cancelled; one that takes long is interrupted by signals too."""
    setting = _setting
    ready = prepared.ready.get(setting) or prepared.make_ready(setting)
    addresses = [one if isinstance(one, int) else one.ctypes.data for one in arrays]
    data = (ctypes.c_void_p * len(addresses))(*addresses)
    kept = tuple(arrays)

    def call() -> int:
        start = time.perf_counter()
        status: int = _call_at(ready, data, cancel.address)  # type: ignore[misc]
        if status != _CANCELLED:
            prepared.seconds[setting] = time.perf_counter() - start
        # Whoever leaves this call lets go of the arrays, but not before the kernel does.
        return status if kept else NOT_DENSE

    if not prepared.may_be_long or _is_quick(prepared, setting) or not interrupt.is_possible():
        return call()
    if any(isinstance(one, int) for one in arrays):
        patience = math.inf
    return interrupt.watched(call, cancel.set, patience)()


def _is_quick(prepared: Prepared, setting: _Setting) -> bool:
    """Whether a call is known to be over before anybody would want to interrupt it."""
    return prepared.seconds.get(setting, math.inf) < interrupt.LONG


def run_arrays(prepared: Prepared, arrays: tuple[Array, ...]) -> int:
    """Run on NumPy arrays of native byte order, the output last. The status: 0, NOT_DENSE, NOT_FINITE or NO_MEMORY."""
    try:
        ready = prepared.ready[_setting]
    except KeyError:
        ready = prepared.make_ready(_setting)
    if prepared.may_be_long and not _is_quick(prepared, _setting):
        if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            return NOT_DENSE
        return _run_at(prepared, arrays, CancelFlag(), interrupt.PATIENCE)
    return _call(ready, id(arrays) + _TUPLE_HEADER)  # type: ignore[misc]


def _entry(name: str, *arguments: Any) -> Callable[..., int] | None:
    """A function of the library; without it nothing is called, but the package must still be there."""
    loaded = library()
    return None if loaded is None else ctypes.CFUNCTYPE(ctypes.c_int32, *arguments)((name, loaded))


_call = _entry("vg_call", ctypes.c_void_p, ctypes.c_void_p)
_call_at = _entry("vg_call_at", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def release_scratch() -> int:
    """Give the memory that kernels work in back to the system; returns how many bytes that were."""
    loaded = library()
    if loaded is None:
        return 0
    release = loaded.vg_release_scratch
    release.restype = ctypes.c_int64
    return int(release())


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
