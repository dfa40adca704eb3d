# SPDX-License-Identifier: Apache-2.0
"""NRRD with its data behind the header: `.nrrd`. Ones that are packed with gzip are read.

`space directions`, `space origin` and `space units` are kept; a space of any of the three frames of patients is read,
left-posterior-superior written.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np

from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Layout
from voxgrad.volumes.formats.raw import MOST_HEADER, Head, file_axes, numbers, open_raw, spoken, write_raw
from voxgrad.volumes.space import LOST, MILLIMETRES, NOWHERE, TO_RAS, Space, lost_in, placed, sound
from voxgrad.volumes.store import LONG_UNITS, New, Store, short_unit

_WORDS = {
    "i1": ("int8", "signed char", "int8_t"), "u1": ("uint8", "uchar", "unsigned char", "uint8_t"),
    "i2": ("int16", "short", "short int", "signed short", "signed short int", "int16_t"),
    "u2": ("uint16", "ushort", "unsigned short", "unsigned short int", "uint16_t"),
    "i4": ("int32", "int", "signed int", "int32_t"), "u4": ("uint32", "uint", "unsigned int", "uint32_t"),
    "i8": ("int64", "longlong", "long long", "long long int", "signed long long", "signed long long int", "int64_t"),
    "u8": ("uint64", "ulonglong", "unsigned long long", "unsigned long long int", "uint64_t"),
    "f4": ("float",), "f8": ("double",),
}  # fmt: skip
_TYPES = {word: kind for kind, words in _WORDS.items() for word in words}
_FRAMES = {
    "right-anterior-superior": np.eye(4), "ras": np.eye(4),
    "left-anterior-superior": np.diag([-1.0, 1.0, 1.0, 1.0]), "las": np.diag([-1.0, 1.0, 1.0, 1.0]),
    "left-posterior-superior": TO_RAS, "lps": TO_RAS,
}  # fmt: skip
_VECTOR = re.compile(r"none|\(([^)]*)\)")
_ROOM = re.compile(r"\s+")


def open_store(path: Path, member: str, axes: str | None, write: bool) -> Store:
    """The volume of a header."""
    return open_raw(path, _head(path), axes, write)


def _head(path: Path) -> Head:
    told, end = _read(path)
    kind, rank = _TYPES.get(told.get("type", "")), int(told.get("dimension", "0"))
    encoding = told.get("encoding", "")
    if kind is None or not 2 <= rank <= 5 or encoding not in ("raw", "gzip", "gz") or "data file" in told:
        got = f"{told.get('type')} of {rank} dimensions, {'data elsewhere' if 'data file' in told else encoding}"
        raise bad_file(path, "hold 2 to 5 dimensions of numbers in this file, raw or gzip", got)
    if int(told.get("line skip", "0")) or int(told.get("byte skip", "0")):
        raise bad_file(path, "have its data right behind the header", "skipped lines or bytes")
    dtype = np.dtype((">" if told.get("endian") == "big" else "<") + kind)
    sizes = tuple(int(size) for size in told["sizes"].split())
    directions = [one[1] for one in _VECTOR.finditer(told.get("space directions", ""))]
    letters = _axes(path, told, rank, directions)
    bits = 0 if encoding == "raw" else zlib.MAX_WBITS + 16
    return Head("NRRD", letters[::-1], sizes[::-1], dtype, path, end, _space(path, told, letters, directions), bits)


def _read(path: Path) -> tuple[dict[str, str], int]:
    """The fields of the header, without comments and keys of others, and where it ends: behind an empty line."""
    told: dict[str, str] = {}
    with path.open("rb") as stream:
        if not stream.readline(16).startswith(b"NRRD000"):
            raise bad_file(path, "be a NRRD file", "one that does not begin with NRRD000")
        while line := stream.readline(MOST_HEADER).decode("utf-8", "replace").rstrip("\r\n"):
            if stream.tell() >= MOST_HEADER:
                raise bad_file(path, "have a short header", f"{MOST_HEADER:,} bytes or more")
            name, colon, value = line.partition(": ")
            if colon and not line.startswith("#") and ":=" not in name:
                told[_ROOM.sub(" ", name).strip().lower()] = value.strip()
        return told, stream.tell()


def _axes(path: Path, told: dict[str, str], rank: int, directions: list[str | None]) -> str:
    """Which axis is which, fastest first: those in space are x, y, z; before them lie channels, behind them time."""
    kinds = told.get("kinds", "").lower().split()
    inside = [
        bool(directions[at]) if len(directions) == rank else kinds[at] in ("domain", "space") if len(kinds) == rank
        else at < 3 for at in range(rank)
    ]  # fmt: skip
    letters, rest = "", iter("xyz")
    for at, is_space in enumerate(inside):
        behind = "t" if len(kinds) == rank and kinds[at] in ("time", "list") and "t" not in letters else "c"
        letters += next(rest, "?") if is_space else "c" if not any(inside[:at]) else behind
    if len(set(letters)) != rank or "?" in letters:
        raise bad_file(path, "have up to three axes in space, one of channels and one of time", f"kinds {kinds}")
    return letters


def _space(path: Path, told: dict[str, str], letters: str, directions: list[str | None]) -> Space:
    unit = short_unit((re.findall(r'"([^"]*)"', told.get("space units", "")) or [""])[0])
    vectors = [np.array(_numbers(one), float) for one in directions if one]
    if vectors:
        size = len(vectors[0])
        affine = np.eye(4)
        affine[:size, : len(vectors)] = np.stack(vectors, 1)
        affine[:size, 3] = _numbers(told.get("space origin", "")) or [0.0] * size
        frame = _FRAMES.get(told.get("space", "").lower())
        made = sound(affine if frame is None else frame @ affine)
        if made is None:
            return NOWHERE
        plain = frame is None and np.array_equal(made[:3, :3], np.diag(np.diag(made[:3, :3])))
        if plain and (np.diag(made) > 0).all():
            # A world that is not a patient's, and axes along it.
            depth, height, width = (float(made[at, at]) for at in (2, 1, 0))
            return Space((depth, height, width), unit, None, (float(made[2, 3]), float(made[1, 3]), float(made[0, 3])))
        return placed(made, unit or "mm")
    sizes = numbers(told.get("spacings", "").lower())
    found = dict(zip(letters, sizes, strict=False))
    depth, height, width = (abs(found.get(one, 1.0)) for one in "zyx")
    lost = lost_in(told.get("content", ""))
    return Space((depth, height, width), unit, lost=lost) if np.isfinite([depth, height, width]).all() else NOWHERE


def _numbers(text: str | None) -> list[float]:
    return [float(one) for one in (text or "").strip("() ").split(",") if one]


def create(path: Path, member: str, new: New) -> None:
    """A file of zeros with its header."""
    axes = file_axes(new)
    sizes, letters = Layout.holding(axes, new.shape).sizes[::-1], axes[::-1].lower()
    if new.dtype.str[1:] not in _WORDS or not set(letters) <= set("xyzct"):
        raise bad_file(path, "have axes tzyxc and a type of NRRD", f"{axes}, {new.dtype}")
    kinds = {"c": "vector", "t": "time"}
    lines = [
        "NRRD0005", f"type: {_WORDS[new.dtype.str[1:]][0]}", f"dimension: {len(sizes)}",
        f"sizes: {' '.join(map(str, sizes))}", *_told(new.space, letters),
        f"kinds: {' '.join(kinds.get(one, 'domain') for one in letters)}", "endian: little", "encoding: raw",
    ]  # fmt: skip
    write_raw(path, "\n".join(lines) + "\n\n", new)


def _told(space: Space, letters: str) -> list[str]:
    """The lines on space; of a result without a place, none but why."""
    if not space.is_known:
        return [f"content: {LOST}{space.lost}"] if space.lost else []
    patient = space.affine is not None
    if patient:
        # Readers take a patient's frame to be in millimetres.
        space = space.in_millimetres
    affine = TO_RAS @ space.matrix if patient else space.matrix
    columns = dict(zip("xyz", affine[:3, :3].T, strict=True))
    vectors = [f"({','.join(spoken(columns[one]).split())})" if one in columns else "none" for one in letters]
    unit = "mm" if space.unit == "mm" else LONG_UNITS.get(space.unit, space.unit)
    units = [f"space units: {' '.join([f'{chr(34)}{unit}{chr(34)}'] * 3)}"] if space.unit in MILLIMETRES else []
    return [
        "space: left-posterior-superior" if patient else "space dimension: 3",
        f"space directions: {' '.join(vectors)}", *units, f"space origin: ({','.join(spoken(affine[:3, 3]).split())})",
    ]  # fmt: skip
