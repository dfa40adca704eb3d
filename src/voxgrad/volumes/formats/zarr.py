# SPDX-License-Identifier: Apache-2.0
"""Zarr arrays (version 3, and 2 where the library reads it), and OME-Zarr 0.4 and 0.5 in and 0.5 out.

`scan.ome.zarr` is its full resolution, `scan.ome.zarr:1` another level of it. A `.zarr.zip` is such a folder as one
file, which is written whole.
"""

from __future__ import annotations

import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Array, Index, Layout, default_axes, told_axes
from voxgrad.volumes.packed import check_chunks, check_inside, check_piece
from voxgrad.volumes.space import Space, triple
from voxgrad.volumes.store import LONG_UNITS, Address, New, Store, check_dtype, needed, short_unit

_OME_ORDER = "tczyx"
_SPACE = "voxgrad_space"
"""Our own attribute of an array, for what OME has no words for: directions, and why a result lies nowhere."""
_OME_TYPES = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}


def open_store(path: Path | Address, member: str, axes: str | None, write: bool) -> Store:
    """An array, the first dataset of an OME image, or the array of a group that `member` names."""
    zarr = needed("zarr", path)
    if write and path.name.lower().endswith(".zip"):
        raise bad_file(path, "be a file that can be written in parts", "a packed one", "Write .zarr.")
    guard = _guarded(zarr, path, write)
    found = zarr.open(store=guard, mode="r+" if write else "r")
    image: Mapping[str, Any] = {}
    if not hasattr(found, "shape"):
        found, image, member = _of_group(path, found, member)
    _refuse_code(path, found.metadata.to_dict())
    told, spacing, origin, unit = _described(found, image, member)
    layout = Layout(axes or told, tuple(int(size) for size in found.shape))
    chunks = layout.five(found.shards or found.chunks)

    promised = math.prod(found.chunks) * np.dtype(found.dtype).itemsize
    guard.pieces = _packing(path, found.metadata.to_dict() | {"attributes": {}}), promised

    def fetch(index: Index) -> Array:
        check_chunks(path, promised, _touched(index, found.shape, found.chunks))
        return np.asarray(found[index])

    space = Space(triple(layout.five(spacing)[1:4]), unit, origin=triple(layout.five(origin, 0.0)[1:4]))
    return Store(
        path, layout, check_dtype(path, np.dtype(found.dtype)), fetch, found.__setitem__ if write else None,
        space=_whole_space(found.attrs, space, bool(image)), chunks=chunks, member=member,
        kind="OME-Zarr" if image else "Zarr",
    )  # fmt: skip


def _whole_space(attributes: Mapping[str, Any], told: Space, is_ome: bool) -> Space:
    """With the directions that our own attribute keeps; what OME says counts where they do not agree."""
    if _SPACE not in attributes:
        return told
    kept = Space.from_data(attributes[_SPACE])
    same = np.allclose((kept.spacing, kept.corner), (told.spacing, told.origin), rtol=1e-6, atol=1e-9)
    return kept if same or not is_ome else told


def _of_group(path: Path | Address, group: Any, member: str) -> tuple[Any, Mapping[str, Any], str]:
    """The array that is meant, the OME image that it belongs to, and its name in the group."""
    attributes = dict(group.attrs)
    listed = attributes.get("ome", attributes).get("multiscales")
    image = listed[0] if listed else {}
    names = [one["path"] for one in image["datasets"]] if image else []
    if not image or (member and member not in names):
        image, names = {}, sorted(name for name, _ in group.arrays())
    if not names or (not member and not image and len(names) > 1):
        got = f"a group with {len(names)} arrays: {', '.join(names[:8])}" if names else "a group without arrays"
        raise bad_file(path, "be a Zarr array or an OME image", got, f"Write {path}:NAME." if names else "")
    name = member or names[0]
    if name not in names:
        raise bad_file(path, f"hold an array {name!r}", ", ".join(names[:8]))
    return group[name], image, name if member else ""


def _touched(index: Index, shape: Sequence[int], chunks: Sequence[int]) -> int:
    """How many chunks a box lies in."""
    spans = [range(*one.indices(size)) for one, size in zip(index, shape, strict=True)]
    return math.prod(
        span[-1] // cut - span[0] // cut + 1 if span else 0 for span, cut in zip(spans, chunks, strict=True)
    )


def _guarded(zarr: Any, path: Path | Address, write: bool) -> Any:
    """The files of a folder, and of no other: links are not followed, and chunks hold what the header promises."""
    packed = isinstance(path, Path) and path.name.lower().endswith(".zip")
    root = os.path.realpath(path) if isinstance(path, Path) and not packed else ""
    entries = _entries_of_zip(path) if packed else {}

    class Guard(zarr.storage.WrapperStore):  # type: ignore[misc]
        pieces: tuple[str, int] = "", 0

        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            if root:
                check_inside(os.path.join(root, key), root)
            # The files of an archive may be packed once more.
            elif entries.get(key, 0) > max(2 * self.pieces[1], _MOST_HEADER):
                raise bad_file(path, "hold the chunks that its header promises", f"{entries[key]:,} bytes in {key}")
            found = await self._store.get(key, prototype, byte_range)
            if found is not None and self.pieces[0] and key.rpartition("/")[2] not in _HEADERS:
                check_piece(path, self.pieces[0], found.to_bytes(), self.pieces[1])
            return found

        async def get_partial_values(self, prototype: Any, key_ranges: Any) -> Any:
            return [await self.get(key, prototype, one) for key, one in key_ranges]

        async def set(self, key: str, value: Any) -> None:
            if root:
                check_inside(os.path.join(root, key), root)
            await self._store.set(key, value)
            if root:
                _sync(os.path.join(root, key))

    if packed:
        return Guard(zarr.storage.ZipStore(path, mode="r"))
    if isinstance(path, Path):
        return Guard(zarr.storage.LocalStore(root, read_only=not write))
    return Guard(zarr.storage.FsspecStore.from_url(str(path), read_only=not write))


def _entries_of_zip(path: Path | Address) -> dict[str, int]:
    """The files of an archive, with the sizes that they unpack to at most."""
    with zipfile.ZipFile(str(path)) as packed:
        return {one.filename: one.file_size for one in packed.infolist()}


def _sync(path: str) -> None:
    """What a chunk holds is on the disk before a run records that it is."""
    for one in (path, os.path.dirname(path)) if os.name != "nt" else ():
        descriptor = os.open(one, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_MOST_HEADER = 2**26
_HEADERS = (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json")
_PACKING = ("gzip", "zlib", "bz2", "lzma", "blosc", "lz4", "zstd")


def _packing(path: Path | Address, metadata: Any) -> str:
    """What the chunks of an array are packed with; twice packed ones could unpack twice as far."""
    names = [str(value).rpartition(".")[2] for key, value in _entries(metadata) if key in ("id", "name")]
    found = [name for name in names if name in _PACKING]
    if len(found) > 1:
        raise bad_file(path, "pack its chunks once", ", then ".join(found))
    return found[0] if found else ""


def _refuse_code(path: Path | Address, metadata: Any) -> None:
    """Version 2 can name pickle as a filter, which would run what the file says."""
    for key, value in _entries(metadata):
        if key in ("id", "name") and str(value).rpartition(".")[2] == "pickle":
            raise bad_file(path, "hold numbers", "data packed with pickle", "Pickle can run code; it is not read.")


def _entries(data: Any) -> Iterator[tuple[Any, Any]]:
    items = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, (list, tuple)) else ()
    for key, value in items:
        yield key, value
        yield from _entries(value)
        if hasattr(value, "get_config"):
            yield from _entries(value.get_config())


def _described(array: Any, image: Mapping[str, Any], member: str) -> tuple[str, list[float], list[float], str]:
    """The axes, their spacing, where they begin and the unit, from OME's metadata or the names of the dimensions."""
    rank = len(array.shape)
    if not image:
        names = getattr(array.metadata, "dimension_names", None) or ()
        letters = "".join(name[:1] if isinstance(name, str) else "?" for name in names)
        return (told_axes(letters, rank) if names else default_axes(rank)), [1.0] * rank, [0.0] * rank, ""
    axes = [one if isinstance(one, Mapping) else {"name": one} for one in image.get("axes", _OME_ORDER[-rank:])]
    letters = "".join(str(one["name"])[:1] for one in axes)
    dataset = next(one for one in image["datasets"] if not member or one["path"] == member)
    spacing, origin = np.ones(rank), np.zeros(rank)
    for step in [*dataset.get("coordinateTransformations", ()), *image.get("coordinateTransformations", ())]:
        if step.get("type") == "scale":
            spacing, origin = spacing * np.asarray(step["scale"], float), origin * np.asarray(step["scale"], float)
        elif step.get("type") == "translation":
            origin = origin + np.asarray(step["translation"], float)
    unit = next((str(one["unit"]) for one in axes[::-1] if one.get("unit")), "")
    return told_axes(letters, rank), spacing.tolist(), origin.tolist(), short_unit(unit)


def create(path: Path | Address, member: str, new: New) -> None:
    """A Zarr array of zeros, or an OME image of one resolution where the name ends in .ome.zarr."""
    zarr = needed("zarr", path)
    if path.name.lower().endswith(".zip"):
        raise bad_file(path, "be a file that can be written in parts", "a packed one", "Write .zarr.")
    ome = path.name.lower().endswith(".ome.zarr")
    axes = new.axes or (_ome_axes(new) if ome else "NDHWC")
    layout = Layout.holding(axes, new.shape)
    options: dict[str, Any] = {"fill_value": 0, "dtype": new.dtype, "shape": layout.sizes}
    options["chunks"] = layout.own(new.chunks) if new.chunks else "auto"
    options["shards"] = layout.own(new.shards) if new.shards else None
    options["attributes"] = _own_attributes(new.space, ome)
    if not ome:
        names = None if axes == "NDHWC" else list(axes)
        zarr.create_array(store=str(path), overwrite=True, dimension_names=names, **options)
        return
    group = zarr.create_group(store=str(path), overwrite=True, attributes={"ome": _ome_metadata(path, axes, new)})
    group.create_array("0", dimension_names=list(axes), **options)


def save_packed(path: Path, array: Array, new: New) -> None:
    """A whole volume as .zarr.zip: written as a folder, whose packed chunks are then put into one file as they are."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / path.name[: -len(".zip")]
        create(folder, "", new)
        open_store(folder, "", new.axes, True).write((slice(None),) * 5, array)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
            for file in sorted(one for one in folder.rglob("*") if one.is_file()):
                packed.write(file, file.relative_to(folder).as_posix())


def _own_attributes(space: Space, ome: bool) -> dict[str, Any]:
    """What is kept of a place in an attribute of ours: all that the file has no words for."""
    kept = space.lost or space.affine is not None or (space.is_known and not ome)
    return {_SPACE: space.as_data()} if kept else {}


def _ome_axes(new: New) -> str:
    """Time and channels only where there are several."""
    return "".join(letter for letter in _OME_ORDER if letter in "zyx" or new.shape["tzyxc".index(letter)] != 1)


def _ome_metadata(path: Path | Address, axes: str, new: New) -> dict[str, Any]:
    space = {"unit": LONG_UNITS.get(new.space.unit, new.space.unit)} if new.space.unit else {}
    described = [{"name": one, "type": _OME_TYPES[one]} | (space if one in "zyx" else {}) for one in axes]
    name = path.name[: -len(".ome.zarr")]
    return {"version": "0.5", "multiscales": [{"name": name, "axes": described,
                                               "datasets": [_dataset("0", axes, new.space)]}]}  # fmt: skip


def _dataset(name: str, axes: Iterable[str], space: Space) -> dict[str, Any]:
    """The entry of a level: its voxels, and where the first of them is."""
    sizes, corner = (dict(zip("zyx", one, strict=True)) for one in (space.spacing, space.corner))
    scale = {"type": "scale", "scale": [sizes.get(one, 1.0) for one in axes]}
    shift = {"type": "translation", "translation": [corner.get(one, 0.0) for one in axes]}
    return {"path": name, "coordinateTransformations": [scale, *([shift] if any(corner.values()) else [])]}


# Levels of an OME image


def listed_levels(path: Path | Address) -> list[str]:
    """The names of the levels, the full resolution first."""
    (image,) = _group(path).attrs["ome"]["multiscales"]
    return [one["path"] for one in image["datasets"]]


def new_level(path: Path | Address, name: str, shape: Sequence[int], space: Space) -> Store:
    """A level of zeros [N, D, H, W, C], cut as the full resolution is, that is not listed yet."""
    group = _group(path)
    first = group[listed_levels(path)[0]]
    axes = first.metadata.dimension_names
    group.create_array(
        name, shape=Layout.holding("".join(axes), shape).sizes, dtype=first.dtype, chunks=first.chunks,
        shards=first.shards, fill_value=0, dimension_names=axes, overwrite=True,
        attributes=_own_attributes(space, True),
    )  # fmt: skip
    return open_store(path, name, None, True)


def list_level(path: Path | Address, name: str, space: Space) -> None:
    """A level is there."""
    _list(path, lambda image: [*image["datasets"], _dataset(name, [one["name"] for one in image["axes"]], space)])


def strike_levels(path: Path | Address) -> None:
    """List the full resolution alone."""
    _list(path, lambda image: image["datasets"][:1])


def _list(path: Path | Address, change: Callable[[Mapping[str, Any]], list[Any]]) -> None:
    group = _group(path)
    told = dict(group.attrs["ome"])
    (image,) = told["multiscales"]
    group.attrs["ome"] = told | {"multiscales": [{**image, "datasets": change(image)}]}


def _group(path: Path | Address) -> Any:
    zarr = needed("zarr", path)
    return zarr.open_group(store=_guarded(zarr, path, True), mode="r+")
