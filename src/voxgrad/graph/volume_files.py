# SPDX-License-Identifier: Apache-2.0
"""Volumes that a page may read: opened by the room that knows their formats, when a block first asks for one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from voxgrad import errors
from voxgrad.arrays.locks import make_lock
from voxgrad.doors import through
from voxgrad.errors import Fault, InvalidArgumentError, VoxgradError
from voxgrad.isolation import isolated
from voxgrad.kernels.arraywise.files import Files, NotAllowed, Place

HEADER_SECONDS = 10.0
KEPT_HEADERS = 1024
Stamp = tuple[tuple[int, int], ...]
Told = dict[str, Any]
"""What a volume says of itself, or why it cannot be opened."""


def open_in(files: Files, name: str, axes: str) -> Any:
    """The volume of this name, opened but not read; what the page may not touch is refused."""
    return through("volumes").open_volume(path_in(files, name), axes=axes or None)


def path_in(files: Files, name: str) -> str:
    """The path of a volume, with what is meant inside of it; what the page may not touch is refused."""
    try:
        place, member = _found(files, name)
        path = place.checked()
    except NotAllowed as error:
        raise error.error("Volume", "path") from None
    except OSError as error:
        got = f"{name[:80]!r}: {error.strerror}"
        raise InvalidArgumentError(Fault("VG051", "Volume", "path", "be a file that can be read", got)) from None
    return f"{path}:{member}" if member else str(path)


def _found(files: Files, name: str) -> tuple[Place, str]:
    """Where a volume lies, and what is meant inside of it."""
    before, colon, after = name.rpartition(":")
    if colon and (place := files.find(before)).path.is_dir():
        return place, after
    path, member = through("volumes").split_name(name)
    return files.find(str(path) if member else name), member


def stamp(files: Files, name: str) -> Stamp:
    """What changes when the file does, as far as a look at its entry tells."""
    try:
        path = _found(files, name)[0].path
        seen = [one.lstat() for one in (path, path / "zarr.json") if one.exists()]
    except (NotAllowed, OSError, ValueError):
        return ()
    return tuple((one.st_mtime_ns, one.st_size) for one in seen)


def header(files: Files, name: str, axes: str) -> Told:
    """What a volume says of itself."""
    (told,) = headers(files, [name], axes)
    if isinstance(told, VoxgradError):
        raise told
    return told


def headers(files: Files, names: Sequence[str], axes: str = "") -> list[Told | VoxgradError]:
    """What volumes say of themselves, one by one, or why they cannot be opened."""
    found: dict[str, Told | VoxgradError] = {}
    keys: dict[str, _Key] = {}
    for name in names:
        try:
            keys[name] = path_in(files, name), axes, stamp(files, name)
        except VoxgradError as error:
            found[name] = error
    told = _apart(list(keys.values())) if files.apart else _here(list(keys.values()))
    found |= {name: _as_error(one) for name, one in zip(keys, told, strict=True)}
    return [found[name] for name in names]


_Key = tuple[str, str, Stamp]


def _as_error(told: Told) -> Told | VoxgradError:
    if "faults" not in told:
        return told
    kind = getattr(errors, told["error"], VoxgradError)
    made: VoxgradError = kind([Fault(**fault) for fault in told["faults"]])
    return made


def _here(asked: Sequence[_Key]) -> list[Told]:
    told: list[Told] = through("volumes").headers([key[:2] for key in asked])
    return told


_known: OrderedDict[_Key, Told] = OrderedDict()
_lock = make_lock()


def _apart(asked: Sequence[_Key]) -> list[Told]:
    """The same from a child process; what did not change since is remembered."""
    with _lock:
        new = [key for key in dict.fromkeys(asked) if key not in _known]
    told = dict(zip(new, _in_child(new), strict=True))
    with _lock:
        found = [told[key] if key in told else _known[key] for key in asked]
        _known.update(told)
        while len(_known) > KEPT_HEADERS:
            _known.popitem(last=False)
    return found


def _in_child(asked: Sequence[_Key]) -> list[Told]:
    """All in one child; where it dies, halves of them in two, until it is known which file it was."""
    if not asked:
        return []
    try:
        read = through("volumes").headers
        told: list[Told] = isolated(read, [key[:2] for key in asked], about=asked[0][0], seconds=HEADER_SECONDS)
        return told
    except VoxgradError as error:
        if len(asked) == 1:
            return [{"error": type(error).__name__, "faults": [fault.as_dict() for fault in error.faults]}]
    middle = len(asked) // 2
    return [*_in_child(asked[:middle]), *_in_child(asked[middle:])]
