# SPDX-License-Identifier: Apache-2.0
"""What NRRD and MetaImage share: a header of text, then numbers in one run of bytes, which is mapped.

Read and written here rather than through ITK: its readers take a file whole, and boxes of these files cost what they
hold, so that chunked runs read and write them in parts.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Array, Index, Layout
from voxgrad.volumes.packed import check_inside, unpacked_map
from voxgrad.volumes.space import Space
from voxgrad.volumes.store import New, Store, check_dtype, mapped, reserve, settled

MOST_HEADER = 2**20
"""Bytes of a header; lists of numbers are short."""
_STEP = 2**22


@dataclass(frozen=True)
class Head:
    """What a header says. `axes` and `sizes` are in C's order; `bits` is zlib's number for packed data, else 0."""

    kind: str
    axes: str
    sizes: tuple[int, ...]
    dtype: np.dtype[Any]
    file: Path
    offset: int
    space: Space
    bits: int = 0


def open_raw(path: Path, head: Head, axes: str | None, write: bool) -> Store:
    """The volume that a header describes."""
    if min(head.sizes) < 0 or len(head.sizes) != len(head.axes):
        raise bad_file(path, "have a size for each of its axes", f"{list(head.sizes)} for {head.axes}")
    if write and head.bits:
        raise bad_file(path, "be a file that can be written in parts", "a packed one", "Write it unpacked.")
    stored = check_dtype(path, head.dtype)

    def array() -> Array:
        return whole() if head.bits else plain

    if head.bits:
        whole = unpacked_map(head.file, lambda: _unpacked(head), head.sizes, head.dtype, "C")
    else:
        plain = mapped(head.file, head.sizes, head.dtype, head.offset, "C", write)

    def fetch(index: Index) -> Array:
        return np.array(array()[index])

    def put(index: Index, part: Array) -> None:
        array()[index] = part

    layout = Layout(axes or head.axes, head.sizes)
    return Store(
        path, layout, stored, fetch, put if write else None, space=head.space, kind=head.kind,
        settle=settled(array()) if write else None, beside=() if head.file == path else (head.file,),
    )  # fmt: skip


def _unpacked(head: Head) -> Iterator[bytes]:
    """The data of a packed file, piece by piece."""
    opened = zlib.decompressobj(head.bits)
    with head.file.open("rb") as stream:
        stream.seek(head.offset)
        while not opened.eof and (block := opened.unconsumed_tail or stream.read(_STEP)):
            yield opened.decompress(block, _STEP)


def beside(path: Path, name: str) -> Path:
    """The file with the data of a header: one of its folder, and no link out of it."""
    found = path.parent / name
    if Path(name).name != name or name in ("", ".", ".."):
        raise bad_file(path, "have its data in a file beside it", name)
    check_inside(str(found), str(path.parent.resolve()))
    return found


def write_raw(path: Path, header: str, new: New, data: Path | None = None) -> None:
    """A header, and zeros behind it, or in a file of their own."""
    with path.open("wb") as stream:
        stream.write(header.encode())
        if data is None:
            stream.truncate(stream.tell() + new.nbytes)
    if data is not None:
        with data.open("wb") as stream:
            stream.truncate(new.nbytes)
        reserve(data)


def file_axes(new: New) -> str:
    """The axes of a new file in C's order: channels beside each other, time and channels only where there are some."""
    return new.axes or "".join(
        letter for letter in "tzyxc" if letter in "zyx" or new.size(letter.upper()) > 1
    )  # fmt: skip


def numbers(text: str) -> list[float]:
    """Numbers with spaces between them."""
    return [float(one) for one in text.split()]


def spoken(values: Any) -> str:
    """Numbers as they are read back."""
    return " ".join(f"{float(one):.17g}" for one in np.ravel(values))
