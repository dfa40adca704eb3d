# SPDX-License-Identifier: Apache-2.0
"""CRC-32C, the checksum in TensorFlow's records, checkpoints and event files.

A checksum is linear: that of two pieces is that of the first, moved past as many bytes as the second has, and that of
the second. So long data are cut into rows that NumPy walks through side by side, and which are put together in pairs.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
_SHORT, _MOST_ROWS = 16_384, 4096


def crc32c(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """The checksum of bytes; `before` is that of the bytes in front of them."""
    register = before ^ _ONES
    if len(data) < _SHORT:
        table = _table().tolist()
        for byte in data:
            register = table[(register ^ byte) & 255] ^ register >> 8
        return int(register) ^ _ONES
    moved = _moved(np.array([register], np.uint32), len(data))
    return int(moved[0]) ^ _of_rows(np.frombuffer(data, np.uint8)) ^ _ONES


def masked(checksum: int) -> int:
    """A checksum as it is stored, so that the checksum of data that holds checksums is a good one, too."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & _ONES


def sealed(data: bytes) -> bytes:
    """The four bytes that are stored for data."""
    return struct.pack("<I", masked(crc32c(data)))


@cache
def _table() -> Array:
    """What a byte makes of a register."""
    made: Array = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        made = made >> 1 ^ np.where(made & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return made


def _of_rows(data: Array) -> int:
    """The register behind bytes that began with 0. Zeros in front of them change nothing."""
    rows = min(_MOST_ROWS, 2 ** (len(data).bit_length() // 2))
    length = -(-len(data) // rows)
    whole = np.zeros(rows * length, np.uint8)
    whole[len(whole) - len(data) :] = data
    columns, table = np.ascontiguousarray(whole.reshape(rows, length).T), _table()
    registers = np.zeros(rows, np.uint32)
    for column in columns:
        registers = table[(registers ^ column) & 255] ^ registers >> 8
    while len(registers) > 1:
        registers = _moved(registers[0::2], length) ^ registers[1::2]
        length *= 2
    return int(registers[0])


def _moved(registers: Array, length: int) -> Array:
    """Registers behind so many bytes of 0."""
    step = _byte()
    while length:
        if length & 1:
            registers = _applied(step, registers)
        step, length = _applied(step, step), length >> 1
    return registers


@cache
def _byte() -> Array:
    """What a byte of 0 makes of each bit of a register."""
    bits: Array = np.uint32(1) << np.arange(32, dtype=np.uint32)
    made: Array = _table()[bits & 255] ^ bits >> 8
    return made


def _applied(step: Array, registers: Array) -> Array:
    """A linear step, told by what it makes of each bit, on registers."""
    made = np.zeros_like(registers)
    for bit in range(32):
        made ^= np.where(registers >> np.uint32(bit) & 1, step[bit], np.uint32(0))
    return made
