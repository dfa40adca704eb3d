# SPDX-License-Identifier: Apache-2.0
"""TIFF stacks: plain ones are mapped, packed ones read piece by piece; ImageJ's and OME's axes and spacing are kept."""

from __future__ import annotations

import json
import math
import re
import weakref
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Array, Index, Layout, told_axes
from voxgrad.volumes.packed import check_chunks, check_piece, is_harmless
from voxgrad.volumes.space import Space, triple
from voxgrad.volumes.store import New, Store, check_dtype, mapped, needed, settled, short_unit

_CLASSIC = 2**32 - 2**25
"""Larger files need BigTIFF, whose offsets have 64 bits; the rest is room for tags."""
_IMAGEJ = ("uint8", "uint16", "float32")
_PACKED = {8: "zlib", 32946: "zlib", 34925: "lzma", 50000: "zstd", 34926: "zstd"}
"""TIFF's numbers of the ways to pack that have no bound of their own."""
_SPACE = "voxgrad_space"
"""Our own entry, for what the others have no words for: directions, and why a result lies nowhere."""
_METRES = {2: 25400.0, 3: 10000.0}
"""Micrometres in TIFF's units of resolution: inch and centimetre."""


def open_store(path: Path, member: str, axes: str | None, write: bool) -> Store:
    """The first series of images."""
    tifffile = needed("tifffile", path)
    # Other files, which OME metadata may name, are not opened.
    file = tifffile.TiffFile(path, _multifile=False)
    try:
        store = _store(path, file, axes, write)
    except BaseException:
        file.close()
        raise
    weakref.finalize(store.fetch, file.close)
    return store


def _store(path: Path, file: Any, axes: str | None, write: bool) -> Store:
    if not file.series:
        raise bad_file(path, "hold images", "a TIFF file without any")
    series = file.series[0]
    sizes = tuple(int(size) for size in series.shape)
    dtype = check_dtype(path, np.dtype(series.dtype))
    layout = Layout(axes or _axes(series.axes, len(sizes)), sizes)
    space = _space(file, series)
    if series.dataoffset is not None:
        stored = dtype.newbyteorder(file.byteorder)
        array = mapped(path, sizes, stored, int(series.dataoffset), "C", write)
        put, chunks = array.__setitem__ if write else None, None
    elif write:
        raise bad_file(path, "be a TIFF file that can be written in parts", "packed or scattered images")
    else:
        array = _pieces(path, series)
        put, chunks = None, layout.five(array.chunks)
        check_chunks(path, math.prod(array.chunks) * dtype.itemsize)
        _check_segments(path, file, series)

    def fetch(index: Index) -> Array:
        return np.array(array[index])

    return Store(path, layout, dtype, fetch, put, space=space, chunks=chunks, kind="TIFF",
                 settle=settled(array))  # fmt: skip


def _check_segments(path: Path, file: Any, series: Any) -> None:
    """Strips and tiles that are packed hold what the header promises: the library unpacks whatever is in them."""
    for page in series.pages:
        if page is None or int(page.compression) not in _PACKED:
            continue
        codec, promised = _PACKED[int(page.compression)], math.prod(page.chunks) * page.dtype.itemsize
        for at, size in zip(page.dataoffsets, page.databytecounts, strict=False):
            if codec != "zlib" or not is_harmless(size, promised):
                file.filehandle.seek(at)
                check_piece(path, codec, file.filehandle.read(size), promised)


def _pieces(path: Path, series: Any) -> Any:
    """The images as a Zarr array, whose chunks are the strips, tiles or pages of the file."""
    zarr = needed("zarr", path)
    found = zarr.open(store=series.aszarr(), mode="r")
    return found if hasattr(found, "shape") else found["0"]


def _axes(told: str, rank: int) -> str:
    """tifffile's letters; a sequence of images without a name is depth."""
    if "Z" not in told:
        told = re.sub("[QIR]", "Z", told, count=1)
    plain = told if rank > 2 else told.replace("S", "C")
    return plain if rank == 2 and set(plain) == set("YX") else told_axes(plain, rank)


def _space(file: Any, series: Any) -> Space:
    """What the file says of its voxels; of one that was written here and not changed since, all that was known."""
    told, text = _told_space(file, series), ""
    if file.is_ome:
        found = re.search(rf'<M K="{_SPACE}">([^<]*)</M>', str(file.ome_metadata))
        text = unescape(found[1]) if found else ""
    elif file.is_imagej:
        text = str(file.imagej_metadata.get(_SPACE, ""))
    elif file.is_shaped:
        text = str(file.shaped_metadata[0].get(_SPACE, ""))
    if not text:
        return told
    kept = Space.from_data(json.loads(text))
    # A plain file has no tag for depth.
    same = np.allclose(kept.spacing[1:], told.spacing[1:], rtol=1e-4)
    return kept if same else told


def _told_space(file: Any, series: Any) -> Space:
    """Depth, height and width of a voxel: from OME or ImageJ where they say so, else from the resolution."""
    if file.is_ome:
        text = str(file.ome_metadata)
        found = [re.search(rf'PhysicalSize{axis}="([0-9.eE+-]+)"', text) for axis in "ZYX"]
        unit = re.search(r'PhysicalSizeXUnit="([^"]*)"', text)
        sizes = [float(one[1]) if one else 1.0 for one in found]
        return Space(triple(sizes), short_unit(unit[1] if unit else "µm" if any(found) else ""))
    height, width = (_pixel(series.keyframe, name) for name in ("YResolution", "XResolution"))
    if file.is_imagej:
        known = file.imagej_metadata
        sizes = [float(known.get("spacing", 1.0)), height, width]
        # ImageJ counts the cell that is the origin.
        origin = [0.0 - float(known.get(f"{axis}origin", 0.0)) * size for axis, size in zip("zyx", sizes, strict=True)]
        return Space(triple(sizes), short_unit(str(known.get("unit", ""))), origin=triple(origin))
    told = series.keyframe.tags.get("ResolutionUnit")
    factor = _METRES.get(int(told.value)) if told else None
    if factor is None:
        return Space((1.0, height, width))
    return Space((1.0, height * factor, width * factor), "um")


def _pixel(page: Any, name: str) -> float:
    tag = page.tags.get(name)
    above, below = tag.value if tag else (1, 1)
    return float(below) / float(above) if above and below else 1.0


def create(path: Path, member: str, new: New) -> None:
    """Images of zeros, one behind the other: OME's by the name .ome.tif, else ImageJ's where it has the type."""
    tifffile = needed("tifffile", path)
    if new.dtype.kind not in "biuf":
        raise bad_file(path, "have an element type of TIFF", new.dtype)
    big = new.nbytes > _CLASSIC
    ome = path.name.lower().endswith((".ome.tif", ".ome.tiff"))
    # The library does not find its way back from ImageJ's images of one column.
    imagej = not ome and not big and new.dtype.name in _IMAGEJ and new.axes is None and new.shape[3] > 1
    axes = new.axes or "".join(letter for letter in "TZCYX" if letter in "YX" or new.size(letter) > 1 or letter == "Z")
    layout = Layout.holding(axes, new.shape)
    _, height, width = new.space.spacing
    options = {"resolution": (1 / width, 1 / height)} | ({} if ome else {"resolutionunit": "NONE"})
    metadata = {"axes": axes} | _metadata(new, axes, ome, imagej)
    tifffile.memmap(
        path, shape=layout.sizes, dtype=new.dtype, bigtiff=big, ome=ome, imagej=imagej, metadata=metadata,
        photometric="minisblack", **options,
    ).flush()  # fmt: skip


def _metadata(new: New, axes: str, ome: bool, imagej: bool) -> dict[str, Any]:
    """Where voxels lie, as ImageJ or OME say it, and all of it in an entry of ours."""
    space = new.space
    kept = {_SPACE: json.dumps(space.as_data())} if space.is_known or space.lost else {}
    if imagej:
        origins = zip("zyx", space.corner, space.spacing, strict=True)
        shifts = {f"{axis}origin": -corner / size for axis, corner, size in origins if corner}
        return {"spacing": space.spacing[0], "unit": space.unit or "pixel"} | shifts | kept
    if not ome:
        return kept
    unit = (space.unit or "pixel").replace("um", "µm")
    made: dict[str, Any] = {f"PhysicalSize{axis}": size for axis, size in zip("ZYX", space.spacing, strict=True)}
    made |= {f"PhysicalSize{axis}Unit": unit for axis in "ZYX"}
    if kept:
        made["MapAnnotation"] = {"Namespace": "voxgrad", **kept}
    if any(space.corner):
        planes = np.ndindex(*(new.size(letter) for letter in axes if letter not in "YX"))
        depth = [letter for letter in axes if letter not in "YX"].index("Z")
        z = [space.corner[0] + at[depth] * space.spacing[0] for at in planes]
        places = {"X": [space.corner[2]] * len(z), "Y": [space.corner[1]] * len(z), "Z": z}
        made["Plane"] = {f"Position{axis}": place for axis, place in places.items()}
        made["Plane"] |= {f"Position{axis}Unit": [unit] * len(z) for axis in "XYZ"}
    return made
