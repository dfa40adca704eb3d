# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers as bytes: fields with their numbers, written, and read from strangers with every length checked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from voxgrad.errors import Fault, VoxgradError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_FIELDS = 5_000_000


@dataclass(slots=True)
class Message:
    """The fields of a message: numbers and bytes under the number of the field, in order."""

    source: str
    numbers: dict[int, list[int]] = field(default_factory=dict)
    chunks: dict[int, list[bytes]] = field(default_factory=dict)

    def number(self, key: int, default: int = 0) -> int:
        """The last number of a field."""
        found = self.numbers.get(key)
        return found[-1] if found else default

    def signed(self, key: int, default: int = 0) -> int:
        """The last number of a field as a signed 64-bit integer."""
        return as_signed(self.number(key, default))

    def chunk(self, key: int) -> bytes:
        """The last bytes of a field, empty where there are none."""
        found = self.chunks.get(key)
        return found[-1] if found else b""

    def text(self, key: int) -> str:
        """The last bytes of a field as text."""
        return decoded(self.chunk(key), self.source)

    def messages(self, key: int) -> Iterator[Message]:
        """The messages in a field."""
        return (parse(chunk, self.source) for chunk in self.chunks.get(key, ()))

    def message(self, key: int) -> Message:
        """The last message in a field, an empty one where there is none."""
        return parse(self.chunk(key), self.source)

    def packed(self, key: int) -> list[int]:
        """The numbers of a repeated field, one by one or packed."""
        found = list(self.numbers.get(key, ()))
        for chunk in self.chunks.get(key, ()):
            at = 0
            while at < len(chunk):
                number, at = read_varint(chunk, at, self.source)
                found.append(number)
        return found


def broken(source: str, got: object) -> VoxgradError:
    """The error for bytes that are no message."""
    return VoxgradError(
        Fault("VG053", source, "the document", "be a message of TensorFlow, such as a GraphDef", str(got))
    )


def decoded(data: bytes, source: str) -> str:
    """Bytes that must be text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise broken(source, f"a name that is no text, {data[:20]!r}") from None


def as_signed(number: int) -> int:
    """A varint as a signed 64-bit integer."""
    return number - 2**64 if number >= 2**63 else number


def parse(data: bytes, source: str) -> Message:
    """The fields of a message."""
    message = Message(source)
    at = count = 0
    while at < len(data):
        count += 1
        tag, at = read_varint(data, at, source)
        key, kind = tag >> 3, tag & 7
        if key == 0 or count > MAX_FIELDS:
            raise broken(source, f"a damaged field at byte {at}")
        if kind == VARINT:
            number, at = read_varint(data, at, source)
            message.numbers.setdefault(key, []).append(number)
        elif kind == BYTES:
            length, at = read_varint(data, at, source)
            if at + length > len(data):
                raise broken(source, f"a field of {length} bytes that ends after {len(data) - at}")
            message.chunks.setdefault(key, []).append(data[at : at + length])
            at += length
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
            if at + size > len(data):
                raise broken(source, "a number that is cut off")
            # Fixed numbers are kept as bytes: who reads them knows whether they are floats.
            message.chunks.setdefault(key, []).append(data[at : at + size])
            at += size
        else:
            raise broken(source, f"a field of unknown kind {kind} at byte {at}")
    return message


def read_varint(data: bytes, at: int, source: str) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise broken(source, f"a damaged number at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7


def floats(chunks: list[bytes]) -> list[float]:
    """32-bit floats, one by one or packed."""
    data = b"".join(chunks)
    return list(struct.unpack(f"<{len(data) // 4}f", data[: len(data) // 4 * 4]))


def varint(number: int) -> bytes:
    """A number of 64 bits, seven to a byte."""
    made = bytearray()
    number &= 2**64 - 1
    while number >= 128:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def field_of(key: int, data: bytes) -> bytes:
    """A field of bytes, or of a message."""
    return varint(key << 3 | BYTES) + varint(len(data)) + data


def number_of(key: int, number: int, *, always: bool = False) -> bytes:
    """A field of a number; 0 is left out, unless it is to be there `always`."""
    return varint(key << 3 | VARINT) + varint(number) if number or always else b""


def fixed32_of(key: int, number: int) -> bytes:
    """A field of four bytes."""
    return varint(key << 3 | FIXED32) + struct.pack("<I", number)
