# SPDX-License-Identifier: Apache-2.0
"""HDF5: `file.h5:/path/to/dataset`, or the only dataset. Links to other files are not followed.

A dataset without chunks is one run of bytes, and is mapped: several processes may then read and write it at a time,
which the library itself does not allow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Array, Index, Layout, default_axes, told_axes
from voxgrad.volumes.packed import check_chunks, check_piece, is_harmless
from voxgrad.volumes.space import MILLIMETRES, NOWHERE, Space
from voxgrad.volumes.store import New, Store, check_dtype, mapped, needed, settled

_SIZES = "element_size_um"
"""The attribute in which microscopy keeps depth, height and width of a voxel."""
_DEFLATE = 1
"""HDF5's number of the filter."""
_SPACE = "voxgrad_space"
"""Our own attribute, for what that one cannot hold: the unit, where the first voxel is, directions."""


def open_store(path: Path, member: str, axes: str | None, write: bool) -> Store:
    """A dataset and what its labels and attributes say of its axes."""
    h5py = needed("h5py", path)
    file = h5py.File(path, "r+" if write else "r", locking=False)
    data = _dataset(h5py, path, file, member.strip("/"))
    sizes = tuple(int(size) for size in data.shape)
    layout = Layout(axes or _axes(data), sizes)
    dtype = check_dtype(path, data.dtype)
    name, space = data.name, _space(data)
    offset = data.id.get_offset()
    array, chunks = data, None if data.chunks is None else layout.five(data.chunks)
    if offset is not None and data.chunks is None:
        stored = data.dtype
        file.close()
        array = mapped(path, sizes, stored, offset, "C", write)

    check = _chunk_check(path, data) if array is data and data.chunks is not None else None

    def fetch(index: Index) -> Array:
        if check is not None:
            check(index)
        return np.array(array[index])

    return Store(
        path, layout, dtype, fetch, array.__setitem__ if write else None,
        space=space, chunks=chunks, member=name, kind="HDF5", settle=settled(array) if write else None,
    )  # fmt: skip


def _chunk_check(path: Path, data: Any) -> Callable[[Index], None]:
    """What is done before chunks are read: the library unpacks whatever is in them."""
    promised = math.prod(data.chunks) * data.dtype.itemsize
    packed = any(data.id.get_create_plist().get_filter(at)[0] == _DEFLATE
                 for at in range(data.id.get_create_plist().get_nfilters()))  # fmt: skip
    doubtful: dict[tuple[int, ...], int] = {}
    if packed and not is_harmless(data.id.get_storage_size(), promised):

        def note(info: Any) -> None:
            if not is_harmless(info.size, promised):
                doubtful[info.chunk_offset] = info.size

        data.id.chunk_iter(note)

    def check(index: Index) -> None:
        check_chunks(path, promised)
        spans = [range(*one.indices(size)) for one, size in zip(index, data.shape, strict=True)]
        for begin in list(doubtful):
            cells = zip(begin, data.chunks, spans, strict=True)
            if all(span and span[0] < at + cut and span[-1] >= at for at, cut, span in cells):
                check_piece(path, "zlib", data.id.read_direct_chunk(begin)[1], promised)
                del doubtful[begin]

    return check


def _dataset(h5py: Any, path: Path, file: Any, member: str) -> Any:
    names = [member] if member else _names(h5py, file)
    if len(names) != 1:
        listed = ", ".join(f"/{name}" for name in names[:8])
        raise bad_file(path, "hold one dataset", f"{len(names)}: {listed}", f"Write {path}:/NAME.")
    found = file
    for part in names[0].split("/"):
        link = found.get(part, getlink=True) if isinstance(found, h5py.Group) else None
        if link is None:
            raise bad_file(path, f"hold a dataset /{member}", ", ".join(f"/{one}" for one in _names(h5py, file)[:8]))
        if not isinstance(link, h5py.HardLink):
            raise bad_file(path, "hold its own data", f"a link to elsewhere at /{names[0]}")
        found = found[part]
    if not isinstance(found, h5py.Dataset) or found.shape is None:
        raise bad_file(path, f"hold a dataset at /{member}", "a group")
    if found.is_virtual or found.external:
        raise bad_file(path, "hold its own data", f"data in other files at /{names[0]}")
    return found


def _names(h5py: Any, file: Any) -> list[str]:
    """The datasets that can be volumes; links are not visited."""
    found: list[str] = []

    def note(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None and 3 <= len(item.shape) <= 5:
            found.append(name)

    file.visititems(note)
    return found


def _axes(data: Any) -> str:
    """The labels of the dimensions, or vigra's tags, or what is usual."""
    rank = len(data.shape)
    letters = "".join((dimension.label or "?")[0] for dimension in data.dims)
    if "?" in letters and "axistags" in data.attrs:
        letters = "".join(tag["key"][:1] for tag in json.loads(data.attrs["axistags"])["axes"])
    return told_axes(letters, rank) if "?" not in letters else default_axes(rank)


def _space(data: Any) -> Space:
    if _SPACE in data.attrs:
        return Space.from_data(json.loads(data.attrs[_SPACE]))
    found = np.ravel(data.attrs.get(_SIZES, ()))
    return Space((float(found[0]), float(found[1]), float(found[2])), "um") if len(found) == 3 else NOWHERE


def _describe(data: Any, space: Space) -> None:
    if space.unit in MILLIMETRES:
        data.attrs[_SIZES] = [size * 1e3 * MILLIMETRES[space.unit] for size in space.spacing]
    if space.is_known or space.lost:
        data.attrs[_SPACE] = json.dumps(space.as_data())


def create(path: Path, member: str, new: New) -> None:
    """A file with one dataset of zeros, in one run of bytes."""
    h5py = needed("h5py", path)
    axes = new.axes or "NDHWC"
    layout = Layout.holding(axes, new.shape)
    with h5py.File(path, "w") as file:
        kind = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        kind.set_layout(h5py.h5d.CONTIGUOUS)
        # The bytes must have a place before they are mapped.
        kind.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        name = (member.strip("/") or "volume").encode()
        links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
        links.set_create_intermediate_group(True)
        space = h5py.h5s.create_simple(layout.sizes)
        h5py.h5d.create(file.id, name, h5py.h5t.py_create(new.dtype, logical=True), space, kind, lcpl=links)
        data = file[name.decode()]
        for dimension, letter in zip(data.dims, axes, strict=True):
            dimension.label = letter
        _describe(data, new.space)
