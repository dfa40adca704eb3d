# SPDX-License-Identifier: Apache-2.0
"""Launches through the driver, here a stand-in: where arguments lie, what is refused, what every launch writes."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from voxgrad.kernels.cuda import driver

ANY, INT, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
# As PTX has them: a box is 128 bytes, its shape and strides; numbers lie at multiples of their size.
PLAIN = (["*bf16", "*fp32", "i32", "constexpr", "i64", "fp32", "constexpr"], [7, 1, 2**40, 0.5])
PLAIN_LAYOUT = [(0, 8), (8, 8), (16, 4), (24, 8), (32, 4), (40, 8), (48, 8)]
BOXED = (["tensordesc<bf16[1, 8, 64]>", "*bf16", "i32", "constexpr"], [3])
BOXED_LAYOUT = [
    (0, 128),
    (128, 4),
    (132, 4),
    (136, 4),
    (144, 8),
    (152, 8),
    (160, 8),
    (168, 8),
    (176, 4),
    (184, 8),
    (192, 8),
]
NOTE = {"swizzle": 3, "elem_size": 2, "elem_type": 10, "block_size": [1, 8, 64], "fp4_padded": False}


class Driver:
    """Says of every kernel that its parameters lie as given, counted from `base`, and keeps what it was told."""

    def __init__(self, layout: list[tuple[int, int]], base: int = 0):
        self.layout, self.base, self.status = layout, base, 0
        self.launched: list[tuple[tuple[int, ...], list[bytes]]] = []
        self.mapped: list[tuple[Any, ...]] = []
        self.cuFuncGetParamInfo = ctypes.CFUNCTYPE(INT, ANY, SIZE, ANY, ANY)(self._info)
        self.cuLaunchKernelEx = ctypes.CFUNCTYPE(INT, ANY, ANY, ANY, ANY)(self._launch)
        encode = ctypes.CFUNCTYPE(INT, ANY, INT, INT, ANY, ANY, ANY, ANY, ANY, INT, INT, INT, INT)
        self.cuTensorMapEncodeTiled = encode(self._map)

    def _info(self, function: int, index: int, offset: int, size: int) -> int:
        if index >= len(self.layout):
            return 1
        SIZE.from_address(offset).value = self.layout[index][0] + self.base
        SIZE.from_address(size).value = self.layout[index][1]
        return 0

    def _launch(self, config: int, function: int, parameters: int, extra: int | None) -> int:
        head = struct.unpack("7I4xQQI", ctypes.string_at(config, 52))
        places = (ANY * len(self.layout)).from_address(parameters)
        read = [ctypes.string_at(place, size) for place, (_, size) in zip(places, self.layout, strict=True)]
        self.launched.append((head, read))
        return self.status

    def _map(self, to: int, kind: int, rank: int, address: int, *rest: int) -> int:
        assert to % 64 == 0
        sizes = [tuple((width * rank).from_address(at)) for width, at in zip(WIDTHS, rest[:4], strict=True)]
        self.mapped.append((kind, rank, address, *sizes, *rest[4:]))
        ctypes.memmove(to, bytes([address % 251]) * 128, 128)
        return 0


WIDTHS = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)
Made = Callable[..., tuple[Driver, Any]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """The driver and the entry of a kernel, or None for that."""

    def make(kernel: Any, layout: Any, base: int = 0, boxes: Any = (), **metadata: Any) -> tuple[Driver, Any]:
        library = Driver(layout, base)
        monkeypatch.setattr(driver, "_library", lambda: library)
        known = {
            "num_ctas": 1, "num_warps": 4, "shared": 99, "launch_cooperative_grid": False, "launch_pdl": False,
            "global_scratch_size": 0, "profile_scratch_size": 0, "tensordesc_meta": [NOTE] * len(boxes),
        }  # fmt: skip
        signature = dict(enumerate(kernel[0]))
        compiled = SimpleNamespace(
            metadata=SimpleNamespace(**(known | metadata)), function=5, src=SimpleNamespace(signature=signature)
        )
        return library, driver.entry(compiled, (2, 3, 1), kernel[1], boxes)

    return make


@pytest.mark.parametrize("base", [0, 48])
def test_arguments_as_the_kernel_reads_them(made: Made, base: int) -> None:
    """Addresses, numbers and Triton's two addresses of nothing; what is 1 is a constant and not there."""
    library, entry = made(PLAIN, PLAIN_LAYOUT, base)
    assert entry([1000, 2000], 77)
    (head, read), = library.launched  # fmt: skip
    assert head == (2, 3, 1, 128, 1, 1, 99, 77, 0, 0)
    wanted = [("Q", 1000), ("Q", 2000), ("i", 7), ("q", 2**40), ("f", 0.5), ("Q", 0), ("Q", 0)]
    assert read == [struct.pack(code, value) for code, value in wanted]


def test_a_kernel_that_waits_itself_is_launched_early(made: Made) -> None:
    """One attribute: number 6, programmatic stream serialization, is allowed."""
    library, entry = made(PLAIN, PLAIN_LAYOUT, launch_pdl=True)
    assert entry([1000, 2000], 0)
    *_, attributes, count = library.launched[0][0]
    assert count == 1
    assert struct.unpack("I4xI60x", ctypes.string_at(attributes, 72)) == (6, 1)


def test_boxes_are_described_once_per_address(made: Made) -> None:
    """What the copy engine wants to know of a tensor: sizes from the innermost axis, strides in bytes."""
    library, entry = made(BOXED, BOXED_LAYOUT, boxes=[((4, 16, 64), (1, 8, 64))])
    assert all(entry([address, 9], 0) for address in (512, 1024, 512))
    assert library.mapped[0][:6] == (9, 3, 512, (64, 16, 4), (128, 2048, 8192), (64, 8, 1))
    assert [row[2] for row in library.mapped] == [512, 1024]
    first, second, third = (read for _, read in library.launched)
    assert first[0] == third[0] == bytes([512 % 251]) * 128 and second[0] != first[0]
    assert first[1:4] == [struct.pack("i", size) for size in (4, 16, 64)]
    assert first[4:7] == [struct.pack("q", stride) for stride in (1024, 64, 1)]
    assert first[7:9] == [struct.pack("Q", 9), struct.pack("i", 3)]


@pytest.mark.parametrize(
    ("layout", "metadata"),
    [
        (PLAIN_LAYOUT[:-1], {}),
        ([*PLAIN_LAYOUT, (56, 8)], {}),
        ([*PLAIN_LAYOUT[:2], (16, 8), *PLAIN_LAYOUT[3:]], {}),
        ([*PLAIN_LAYOUT[:3], (20, 8), *PLAIN_LAYOUT[4:]], {}),
        (PLAIN_LAYOUT, {"num_ctas": 2}),
        (PLAIN_LAYOUT, {"launch_cooperative_grid": True}),
        (PLAIN_LAYOUT, {"global_scratch_size": 8}),
    ],
)
def test_other_kernels_stay_with_triton(made: Made, layout: Any, metadata: Any) -> None:
    """Parameters that lie otherwise than expected, and launches with more to them."""
    assert made(PLAIN, layout, **metadata)[1] is None


def test_a_launch_that_fails_says_so(made: Made) -> None:
    library, entry = made(PLAIN, PLAIN_LAYOUT)
    library.status = 201
    assert not entry([16, 32], 0)
    library.status = 0
    assert entry([16, 32], 0)


def test_threads_do_not_share_arguments(made: Made) -> None:
    """Every launch reads the addresses of its own call, whoever else launches the kernel at the time."""
    library, entry = made(PLAIN, PLAIN_LAYOUT)

    def work(first: int) -> None:
        for step in range(200):
            assert entry([first + step, first + step], first)

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(library.launched) == 800
    for head, read in library.launched:
        assert read[0] == read[1] and 0 <= struct.unpack("Q", read[0])[0] - head[7] < 200
