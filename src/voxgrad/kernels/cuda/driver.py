# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels launched through the CUDA driver itself.

Triton's launcher asks the driver about every address, describes the launch for hooks and calls them, which takes ten
times as long as the launch. Here only what changes is written: addresses and the stream. What the driver says about
the parameters of a kernel must be what is expected of Triton, else the kernel stays with Triton's launcher.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

_CODES = {
    "i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "B", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "fp32": "f", "fp64": "d",
}  # fmt: skip
"""The numbers among a kernel's parameters, in the words of `struct`."""
_MAP, _MAP_ALIGNMENT, _ADDRESS = 128, 64, 8
_MOST_MAPS = 64
_HOST_TYPES = {8: 10, 9: 8, 10: 9}
"""Element types of boxes that have other numbers on the host than in Triton's notes."""


@cache
def _library() -> ctypes.CDLL | None:
    """The driver, if it is new enough to tell the parameters of a kernel."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        for name in ("cuFuncGetParamInfo", "cuLaunchKernelEx", "cuTensorMapEncodeTiled"):
            getattr(library, name)
    except (OSError, AttributeError):
        return None
    return library


class _Config(ctypes.Structure):
    """The driver's CUlaunchConfig."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


_EARLY = (ctypes.c_uint * 18)(6, 0, 1)
"""The driver's CUlaunchAttribute: the kernel may begin before the one in front of it has ended, for which it waits."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where a parameter of a kernel lies."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Box:
    """How the copy engine reads a tensor, without its address; sizes from the innermost axis outwards."""

    type: int
    swizzle: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]

    def map_of(self, address: int) -> bytes | None:
        """The description of a tensor at an address, 128 bytes; None if the driver refuses."""
        library, rank = _library(), len(self.shape)
        assert library is not None
        memory = ctypes.create_string_buffer(_MAP + _MAP_ALIGNMENT)
        begin = -ctypes.addressof(memory) % _MAP_ALIGNMENT
        long, short = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        # Steps of one element, no interleaving; lines of 128 bytes are brought to the cache, zeros past the border.
        status = library.cuTensorMapEncodeTiled(
            ctypes.byref(memory, begin), self.type, rank, ctypes.c_void_p(address), long(*self.shape),
            long(*self.strides), short(*self.block), short(*[1] * rank), 0, self.swizzle, 2, 0,
        )  # fmt: skip
        return None if status else memory.raw[begin : begin + _MAP]


class _Frame:
    """The arguments of one launch. Each is used by one thread at a time."""

    def __init__(self, entry: Entry):
        memory = ctypes.create_string_buffer(bytes(entry.image), len(entry.image))
        first = ctypes.addressof(memory)
        self.memory = memoryview(memory).cast("B")
        self.addresses = (ctypes.c_void_p * len(entry.fields))(*(first + field.offset for field in entry.fields))
        self.config = _Config(*entry.grid, *entry.block, entry.shared, None, None, 0)
        if entry.early:
            self.config.attributes, self.config.count = ctypes.addressof(_EARLY), 1
        self.given = (ctypes.byref(self.config), entry.function, self.addresses, None)
        self.stream = 0


class Entry:
    """One compiled kernel with its grid and all its arguments but the addresses."""

    def __init__(self, library: ctypes.CDLL, compiled: Any, grid: tuple[int, ...], parameters: _Image):
        self.function = ctypes.c_void_p(compiled.function)
        self.grid, self.block = grid, (32 * compiled.metadata.num_warps, 1, 1)
        self.shared, self.image, self.fields = compiled.metadata.shared, bytes(parameters.image), parameters.fields
        self.boxes, self.first = parameters.boxes, parameters.first
        self.early = bool(getattr(compiled.metadata, "launch_pdl", False))
        self._launch = library.cuLaunchKernelEx
        self._pack = struct.Struct(f"{parameters.addresses}Q").pack_into
        self._maps: dict[tuple[int, int], bytes] = {}
        self._free: list[_Frame] = []

    def __call__(self, addresses: Sequence[int], stream: int) -> bool:
        """Launch on tensors at these addresses; False if the driver did not."""
        try:
            frame = self._free.pop()
        except IndexError:
            frame = _Frame(self)
        boxes = self.boxes
        if boxes:
            for number, (offset, box) in enumerate(boxes):
                tensor_map = self._map(number, box, addresses[number])
                if tensor_map is None:
                    return False
                frame.memory[offset : offset + _MAP] = tensor_map
            addresses = addresses[len(boxes) :]
        self._pack(frame.memory, self.first, *addresses)
        if stream != frame.stream:
            frame.config.stream = frame.stream = stream
        status: int = self._launch(*frame.given)
        self._free.append(frame)
        return status == 0

    def _map(self, number: int, box: Box, address: int) -> bytes | None:
        """Torch hands out the same addresses again and again, so most descriptions are there."""
        tensor_map = self._maps.get((number, address))
        if tensor_map is None and (tensor_map := box.map_of(address)) is not None:
            if len(self._maps) >= _MOST_MAPS:
                self._maps.clear()
            self._maps[number, address] = tensor_map
        return tensor_map


def entry(compiled: Any, grid: tuple[int, ...], scalars: Sequence[Any],
          boxes: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> Entry | None:  # fmt: skip
    """The entry of a kernel whose first tensors are read in boxes (shape, block); None where Triton must launch it."""
    library, metadata = _library(), compiled.metadata
    if library is None or getattr(metadata, "num_ctas", 0) != 1 or not math.prod(grid):
        return None
    for name in ("launch_cooperative_grid", "global_scratch_size", "profile_scratch_size"):
        if getattr(metadata, name, 1):
            return None
    parameters = _Image(getattr(metadata, "tensordesc_meta", None) or [])
    try:
        parameters.fill(list(compiled.src.signature.values()), list(scalars), list(boxes))
    except (KeyError, IndexError, ValueError, struct.error):
        return None
    if not _agrees(library, compiled.function, parameters.fields):
        return None
    return Entry(library, compiled, grid, parameters)


class _Image:
    """The parameters of a kernel in memory, as they are expected to lie."""

    def __init__(self, notes: list[dict[str, Any]]):
        self.notes = notes
        self.fields: list[Field] = []
        self.image = bytearray()
        self.boxes: list[tuple[int, Box]] = []
        self.first = self.addresses = 0

    def fill(self, kinds: list[Any], scalars: list[Any], boxes: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
        """Lay out all parameters by their kinds; the last two are Triton's own addresses, of nothing."""
        tensors = sum(1 for kind in kinds if kind[0] == "*" or kind.startswith("tensordesc"))
        for place, kind in enumerate(kinds):
            if kind == "constexpr":
                continue
            if kind.startswith("tensordesc"):
                self._box(*boxes[len(self.boxes)])
            elif kind[0] == "*":
                self._address()
            else:
                self._number(_CODES[kind], scalars[place - tensors])
        for _ in range(2):
            self._place(_ADDRESS, _ADDRESS)

    def _place(self, size: int, alignment: int) -> int:
        self.image.extend(bytes(-len(self.image) % alignment))
        offset = len(self.image)
        self.fields.append(Field(offset, size))
        self.image.extend(bytes(size))
        return offset

    def _number(self, code: str, value: float) -> None:
        size = struct.calcsize(code)
        struct.pack_into(code, self.image, self._place(size, size), value)

    def _address(self) -> None:
        offset = self._place(_ADDRESS, _ADDRESS)
        if not self.addresses:
            self.first = offset
        if offset != self.first + _ADDRESS * self.addresses:
            raise ValueError("addresses do not lie side by side")
        self.addresses += 1

    def _box(self, shape: tuple[int, ...], block: tuple[int, ...]) -> None:
        note = self.notes[len(self.boxes)]
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        size, kind = note["elem_size"], note["elem_type"]
        if note["fp4_padded"] or len(note["block_size"]) != len(shape):
            raise ValueError("not a box of these kernels")
        outer = [size * stride for stride in strides[-2::-1]]
        box = Box(
            _HOST_TYPES.get(kind, kind), note["swizzle"], shape[::-1], (*outer, size * math.prod(shape)),
            tuple(note["block_size"][::-1]),
        )  # fmt: skip
        self.boxes.append((self._place(_MAP, _MAP_ALIGNMENT), box))
        for value in shape:
            self._number("i", value)
        for value in strides:
            self._number("q", value)


def _agrees(library: ctypes.CDLL, function: int, fields: list[Field]) -> bool:
    """Does the driver say the same of the kernel's parameters? It counts from where it will put the first of them."""
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    given = (ctypes.byref(offset), ctypes.byref(size))
    first = None
    for index, field in enumerate(fields):
        if library.cuFuncGetParamInfo(ctypes.c_void_p(function), ctypes.c_size_t(index), *given):
            return False
        first = offset.value if first is None else first
        if (offset.value - first, size.value) != (field.offset, field.size):
            return False
    return bool(library.cuFuncGetParamInfo(ctypes.c_void_p(function), ctypes.c_size_t(len(fields)), *given))
