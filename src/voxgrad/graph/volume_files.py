# SPDX-License-Identifier: Apache-2.0
"""Volumes that a page may read: opened by the room that knows their formats, when a block first asks for one."""

from __future__ import annotations

from typing import Any

from voxgrad.doors import through
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.kernels.arraywise.files import Files, NotAllowed, Place

Stamp = tuple[tuple[int, int], ...]


def open_in(files: Files, name: str, axes: str) -> Any:
    """The volume of this name, opened but not read; what the page may not touch is refused."""
    try:
        place, member = _found(files, name)
        path = place.checked()
    except NotAllowed as error:
        raise error.error("Volume", "path") from None
    except OSError as error:
        got = f"{name[:80]!r}: {error.strerror}"
        raise InvalidArgumentError(Fault("VG051", "Volume", "path", "be a file that can be read", got)) from None
    return through("volumes").open_volume(f"{path}:{member}" if member else path, axes=axes or None)


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
