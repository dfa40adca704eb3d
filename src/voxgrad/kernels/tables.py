# SPDX-License-Identifier: Apache-2.0
"""Tables of keys and values in a file, as LevelDB and TensorFlow's checkpoints have them.

A table is blocks of entries in the order of their keys, a block that says where these lie, and a foot that says where
that lies. A key is written without what it begins with in common with the key before; some stand whole, to start from.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from voxgrad.kernels.crc32c import sealed
from voxgrad.kernels.wire import broken, read_varint, varint

Entry = tuple[bytes, bytes]
FOOT = 48
_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_BLOCK = 262_144
_PLAIN = b"\0"
"""How the bytes of a block are packed: not at all."""
_MOST_TIMES = 64
"""Keys may not spell out to more than so many times the bytes of their table."""


def is_table(foot: bytes) -> bool:
    """Whether a file that ends so is a table."""
    return len(foot) >= FOOT and foot.endswith(_MAGIC)


def table_bytes(entries: Iterable[Entry]) -> bytes:
    """A table, byte for byte as TensorFlow writes it. Keys must come in their order."""
    made, index, block = bytearray(), _Block(1), _Block()
    for key, value in entries:
        if block.size >= _BLOCK or (block.count and len(key) + len(value) >= 2 * _BLOCK):
            index.add(_between(block.last, key), _laid(made, block))
            block = _Block()
        block.add(key, value)
    if block.count:
        index.add(_behind(block.last), _laid(made, block))
    handles = _laid(made, _Block()) + _laid(made, index)
    return bytes(made) + handles.ljust(FOOT - len(_MAGIC), b"\0") + _MAGIC


class _Block:
    """Entries, some of them whole."""

    def __init__(self, whole_every: int = 16):
        self.whole_every = whole_every
        self.made = bytearray()
        self.starts = [0]
        self.count = 0
        self.last = b""

    @property
    def size(self) -> int:
        """Bytes of the block as it is."""
        return len(self.made) + 4 * len(self.starts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        """An entry behind the others."""
        common = _common(self.last, key)
        if self.count and self.count % self.whole_every == 0:
            self.starts.append(len(self.made))
            common = 0
        rest = key[common:]
        self.made += varint(common) + varint(len(rest)) + varint(len(value)) + rest + value
        self.count, self.last = self.count + 1, key

    def finished(self) -> bytes:
        """The bytes, with where the whole entries begin."""
        return bytes(self.made) + struct.pack(f"<{len(self.starts) + 1}I", *self.starts, len(self.starts))


def _laid(made: bytearray, block: _Block) -> bytes:
    """Put a block behind the others; returns where it lies."""
    data = block.finished() + _PLAIN
    handle = varint(len(made)) + varint(len(data) - 1)
    made += data + sealed(data)
    return handle


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two keys begin with in common."""
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)


def _between(low: bytes, high: bytes) -> bytes:
    """A short key that is not below one and below another."""
    at = _common(low, high)
    if at < min(len(low), len(high)) and low[at] < 255 and low[at] + 1 < high[at]:
        return low[:at] + bytes([low[at] + 1])
    return low


def _behind(key: bytes) -> bytes:
    """A short key that is not below another."""
    at = next((at for at, byte in enumerate(key) if byte < 255), None)
    return key if at is None else key[:at] + bytes([key[at] + 1])


def table_entries(data: bytes, source: str) -> Iterator[Entry]:
    """The entries of a table, in their order. Checksums are looked at, and nothing that it states is believed."""
    if not is_table(data):
        raise broken(source, "no table of this kind")
    foot, at = data[-FOOT:], 0
    numbers = []
    for _ in range(4):
        number, at = read_varint(foot, at, source)
        numbers.append(number)
    end, spelled = 0, 0
    for _, handle in _entries(_block(data, numbers[2], numbers[3], source), source):
        begin, at = read_varint(handle, 0, source)
        size, _ = read_varint(handle, at, source)
        if begin < end:
            raise broken(source, f"a block at byte {begin}, which lies in the block before")
        end = begin + size
        for key, value in _entries(_block(data, begin, size, source), source):
            spelled += len(key)
            if spelled > _MOST_TIMES * len(data):
                raise broken(source, f"keys of more than {_MOST_TIMES} times the bytes of the file")
            yield key, value


def _block(data: bytes, begin: int, size: int, source: str) -> bytes:
    """The entries of a block."""
    end = begin + size + 1
    if end + 4 > len(data) - FOOT:
        raise broken(source, f"a block of {size} bytes at byte {begin}, beyond the end")
    if data[end - 1 : end] != _PLAIN:
        raise broken(source, "packed blocks, which TensorFlow does not write")
    if sealed(data[begin:end]) != data[end : end + 4]:
        raise broken(source, f"a damaged block at byte {begin}: its checksum is another")
    starts = int.from_bytes(data[end - 5 : end - 1], "little") if size >= 4 else size
    if 4 * starts + 4 > size:
        raise broken(source, f"a damaged block at byte {begin}")
    return data[begin : end - 5 - 4 * starts]


def _entries(block: bytes, source: str) -> Iterator[Entry]:
    at, key = 0, b""
    while at < len(block):
        sizes = []
        for _ in range(3):
            size, at = read_varint(block, at, source)
            sizes.append(size)
        common, rest, length = sizes
        if common > len(key) or at + rest + length > len(block):
            raise broken(source, "an entry that is longer than its block")
        key = key[:common] + block[at : at + rest]
        at += rest
        yield key, block[at : at + length]
        at += length
