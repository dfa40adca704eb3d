# SPDX-License-Identifier: Apache-2.0
"""The entries of an LMDB database, from the bytes of its file: a tree of pages, each of which is looked at once."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_HEAD = 16
_BRANCH, _LEAF, _OVERFLOW, _META, _FIXED, _SUB = 0x01, 0x02, 0x04, 0x08, 0x20, 0x40
_BIG, _INNER, _DUPLICATES = 0x01, 0x02, 0x04
_NOTHING = 2**64 - 1
_DEPTH = 32


class Broken(Exception):  # noqa: N818 - an answer; whoever asked makes a fault of it
    """What is wrong with the bytes."""


def entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values in the order of the keys."""
    size, root = _newest(data)
    pages = len(data) // size
    if root != _NOTHING:
        yield from _Tree(data, size, pages).below(root, 0)


def _newest(data: bytes) -> tuple[int, int]:
    """The size of a page, and the root of the main tree in the newer of the two meta pages."""
    found: list[tuple[int, int]] = []
    size = 0
    while len(found) < 2 and len(data) >= (at := size * len(found)) + _HEAD + 136:
        flags = struct.unpack_from("<H", data, at + 10)[0]
        magic, version = struct.unpack_from("<II", data, at + _HEAD)
        if magic != _MAGIC or version != _VERSION or not flags & _META:
            raise Broken("no database of this kind")
        size = struct.unpack_from("<I", data, at + _HEAD + 24)[0]
        root, _, change = struct.unpack_from("<QQQ", data, at + _HEAD + 24 + 48 + 40)
        found.append((change, root))
    if not found or size < 256:
        raise Broken("no pages")
    return size, max(found)[1]


class _Tree:
    """Pages of a file; one that is met twice ends the walk."""

    def __init__(self, data: bytes, size: int, pages: int):
        self._data, self._size, self._pages = data, size, pages
        self._seen: set[int] = set()

    def below(self, page: int, depth: int) -> Iterator[tuple[bytes, bytes]]:
        """The entries of a page and of those that it leads to."""
        at = self._start(page, depth)
        flags, lower = struct.unpack_from("<HH", self._data, at + 10)
        if not flags & (_BRANCH | _LEAF) or flags & (_FIXED | _SUB) or not _HEAD <= lower <= self._size:
            raise Broken(f"page {page} of another kind")
        for offset in struct.unpack_from(f"<{(lower - _HEAD) // 2}H", self._data, at + _HEAD):
            low, high, more, length = struct.unpack_from("<HHHH", self._bytes(at + offset, 8))
            if flags & _BRANCH:
                yield from self.below(low | high << 16 | more << 32, depth + 1)
                continue
            if more & (_INNER | _DUPLICATES):
                raise Broken("databases in the database, or several values of a key")
            key, count = self._bytes(at + offset + 8, length), low | high << 16
            place = at + offset + 8 + length
            if more & _BIG:
                place = self._start(struct.unpack("<Q", self._bytes(place, 8))[0], depth) + _HEAD
            yield key, self._bytes(place, count)

    def _start(self, page: int, depth: int) -> int:
        if page >= self._pages or page in self._seen or depth > _DEPTH:
            raise Broken(f"page {page} is not there, or met twice")
        self._seen.add(page)
        return page * self._size

    def _bytes(self, at: int, count: int) -> bytes:
        found = self._data[at : at + count]
        if len(found) != count:
            raise Broken("the file is cut off")
        return found
