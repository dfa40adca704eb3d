# SPDX-License-Identifier: Apache-2.0
"""TFRecord files: records of bytes one behind the other, each with its length and checksums of both."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from voxgrad.kernels.crc32c import sealed


class Damaged(Exception):  # noqa: N818 - an answer; whoever asked makes a fault of it
    """What is wrong with the bytes."""


def record_bytes(record: bytes) -> bytes:
    """A record as it stands in a file."""
    length = struct.pack("<Q", len(record))
    return length + sealed(length) + record + sealed(record)


def records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Where each record begins, and its bytes."""
    at = 0
    while at < len(data):
        (size,) = struct.unpack("<Q", _checked(data, at, 8, "the length of a record"))
        yield at, _checked(data, at + 12, size, "a record")
        at += 16 + size


def _checked(data: bytes, begin: int, size: int, what: str) -> bytes:
    """Some bytes with a checksum behind them."""
    end = begin + size
    if end + 4 > len(data):
        raise Damaged("cut off")
    if sealed(data[begin:end]) != data[end : end + 4]:
        raise Damaged(f"{what} at byte {begin} is damaged, for its checksum is another")
    return data[begin:end]
