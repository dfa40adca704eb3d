# SPDX-License-Identifier: Apache-2.0
"""MetaImage, ITK's own format: `.mha`, or `.mhd` with its data in a `.raw` file beside it. Packed ones are read.

Directions are those of ITK, in millimetres, to the left and to the back.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Layout
from voxgrad.volumes.formats.raw import MOST_HEADER, Head, beside, file_axes, numbers, open_raw, spoken, write_raw
from voxgrad.volumes.space import LOST, NOWHERE, TO_RAS, Space, lost_in, placed, sound
from voxgrad.volumes.store import New, Store

_TYPES = {
    "MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4", "MET_UINT": "u4",
    "MET_LONG": "i4", "MET_ULONG": "u4", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}  # fmt: skip
_NAMES = {kind: name for name, kind in reversed(_TYPES.items())}
_DATA = "ElementDataFile"


def open_store(path: Path, member: str, axes: str | None, write: bool) -> Store:
    """The volume of a header."""
    return open_raw(path, _head(path), axes, write)


def _head(path: Path) -> Head:
    told, end = _read(path)
    rank = int(told.get("NDims", "0"))
    if told.get("ObjectType", "Image") != "Image" or not 2 <= rank <= 4 or told.get("ElementType") not in _TYPES:
        got = f"{told.get('ObjectType', 'Image')} of {rank} dimensions, {told.get('ElementType')}"
        raise bad_file(path, "be an image of 2 to 4 dimensions of numbers", got)
    big = next((told[name] for name in ("ElementByteOrderMSB", "BinaryDataByteOrderMSB") if name in told), "False")
    dtype = np.dtype((">" if _true(big) else "<") + _TYPES[told["ElementType"]])
    samples = int(told.get("ElementNumberOfChannels", "1"))
    sizes = tuple(int(size) for size in told["DimSize"].split())[::-1] + ((samples,) if samples != 1 else ())
    local = told[_DATA].upper() == "LOCAL"
    file = path if local else beside(path, told[_DATA])
    packed = _true(told.get("CompressedData", "False"))
    wanted = int(np.prod(sizes, dtype=object)) * dtype.itemsize
    skipped = int(told.get("HeaderSize", "0"))
    offset = end if local else max(0, file.stat().st_size - wanted) if skipped == -1 else skipped
    letters = "tzyx"[4 - rank :] + ("c" if samples != 1 else "")
    return Head("MetaImage", letters, sizes, dtype, file, offset, _space(told, rank), zlib.MAX_WBITS if packed else 0)


def _read(path: Path) -> tuple[dict[str, str], int]:
    """The entries of the header, the last of which says where the data are, and where it ends."""
    told: dict[str, str] = {}
    with path.open("rb") as stream:
        while _DATA not in told and (line := stream.readline(MOST_HEADER)) and stream.tell() < MOST_HEADER:
            name, equals, value = line.decode("latin-1").partition("=")
            if not equals:
                raise bad_file(path, "be a MetaImage file", f"a line without =: {line[:40]!r}")
            told[name.strip()] = value.strip()
        if _DATA not in told or "DimSize" not in told:
            raise bad_file(path, "be a MetaImage file", f"a header without {_DATA} and DimSize")
        return told, stream.tell()


def _true(text: str) -> bool:
    return text.lower() in ("true", "1")


def _first(told: dict[str, str], *names: str) -> list[float]:
    return next((numbers(told[name]) for name in names if name in told), [])


def _space(told: dict[str, str], rank: int) -> Space:
    """From spacing, offset and directions, one row for each axis; a picture lies in the plane of x and y."""
    spacing, offset = _first(told, "ElementSpacing", "ElementSize"), _first(told, "Offset", "Position", "Origin")
    turned = _first(told, "TransformMatrix", "Rotation", "Orientation")
    if not spacing and not offset and not turned:
        return Space(lost=lost_in(told.get("Comment", "")))
    affine, used = np.eye(4), min(rank, 3)
    rows = np.reshape(turned or np.eye(rank), (rank, rank))
    affine[:used, :used] = rows[:used, :used].T * (spacing or [1.0] * rank)[:used]
    affine[:used, 3] = (offset or [0.0] * rank)[:used]
    found = sound(TO_RAS @ affine)
    return NOWHERE if found is None else placed(found)


def create(path: Path, member: str, new: New) -> None:
    """A file of zeros with its header."""
    axes = file_axes(new)
    sizes = Layout.holding(axes, new.shape).sizes
    flat = "tzyx"[-len(axes.rstrip("c")) :]
    if axes not in (flat, flat + "c") or new.dtype.str[1:] not in _NAMES:
        raise bad_file(path, "have axes tzyxc and a type of MetaImage", f"{axes}, {new.dtype}")
    local = path.suffix.lower() == ".mha"
    data = None if local else path.with_suffix(".raw")
    entries: dict[str, Any] = {
        "ObjectType": "Image", "NDims": len(flat), "BinaryData": True, "BinaryDataByteOrderMSB": False,
        "CompressedData": False, **_told(new.space, len(flat)),
        "DimSize": " ".join(str(size) for size in sizes[: len(flat)][::-1]),
        "ElementNumberOfChannels": new.shape[4] if axes.endswith("c") else 1,
        "ElementType": _NAMES[new.dtype.str[1:]], _DATA: "LOCAL" if data is None else data.name,
    }  # fmt: skip
    write_raw(path, "".join(f"{name} = {value}\n" for name, value in entries.items()), new, data)


def _told(space: Space, rank: int) -> dict[str, str]:
    """Directions, offset and spacing; of a result without a place, none of them."""
    if not space.is_known:
        return {"Comment": f"{LOST}{space.lost}"} if space.lost else {}
    there = space.in_millimetres
    # Files without directions have the axes of the format's own world.
    affine = there.matrix if there.affine is None else TO_RAS @ there.affine
    directions, offset, spacing = np.eye(rank), np.zeros(rank), np.ones(rank)
    spacing[:3] = np.linalg.norm(affine[:3, :3], axis=0)
    directions[:3, :3], offset[:3] = (affine[:3, :3] / spacing[:3]).T, affine[:3, 3]
    return {"TransformMatrix": spoken(directions), "Offset": spoken(offset), "ElementSpacing": spoken(spacing)}
