# SPDX-License-Identifier: Apache-2.0
"""Volumes in the folder of a page: opened by the room that knows their formats, when a block first asks for one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.kernels.arraywise.io import confined

_FORMATS = "voxgrad.volumes.stores"
Stamp = tuple[tuple[int, int], ...]


def open_in(folder: Path, name: str, axes: str) -> Any:
    """The volume of this name in a folder, opened but not read; what lies elsewhere is refused."""
    stores = import_module(_FORMATS)
    path, member = _path(folder, name)
    return stores.open_volume(f"{path}:{member}" if member else path, axes=axes or None)


def _path(folder: Path, name: str) -> tuple[Path, str]:
    place, member = import_module(_FORMATS).split_name(folder / name)
    path = confined(folder, str(place)) if name else None
    if path is None:
        wanted = "be the name of a file inside the folder of the page"
        raise InvalidArgumentError(Fault("VG051", "Volume", "path", wanted, repr(name)))
    return path, member


def stamp(folder: Path, name: str) -> Stamp:
    """What changes when the file does, as far as a look at its entry tells."""
    try:
        path, _ = _path(folder, name)
        seen = [one.stat() for one in (path, path / "zarr.json") if one.exists()]
    except (InvalidArgumentError, OSError, ValueError):
        return ()
    return tuple((one.st_mtime_ns, one.st_size) for one in seen)
