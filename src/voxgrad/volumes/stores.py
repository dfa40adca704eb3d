# SPDX-License-Identifier: Apache-2.0
"""Arrays in files, read and written box by box: .npy, Zarr, NIfTI, TIFF. No file brings code with it.

A store shows its data as [N, D, H, W, C]. Files of fewer dimensions are read as what they usually are: [D, H, W] is one
image of one channel, NIfTI's x, y, z, t become W, H, D and C. `axes` and `spacing` say what the file said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.errors import Fault, InvalidArgumentError

Array = np.ndarray[Any, Any]
Index = tuple[slice, ...]


@dataclass(frozen=True)
class Store:
    """A volume in a file. `read` and `write` take slices of its five dimensions."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axes: str
    spacing: tuple[float, ...]
    chunks: tuple[int, ...] | None
    read: Callable[[Index], Array]
    write: Callable[[Index, Array], None] | None = None

    def __repr__(self) -> str:
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        return f"<Store {self.path.name}: {self.dtype} {list(self.shape)}, {size / 2**20:.1f} MiB, axes {self.axes}>"


def needed(module: str, path: Path) -> Any:
    """A library for a format, or an error that says what to install."""
    try:
        return import_module(module)
    except ImportError:
        fault = Fault("VG070", "open_volume", "path", f"be readable with {module}", str(path), f"pip install {module}")
        raise InvalidArgumentError(fault) from None


def open_volume(path: str | Path, *, write: bool = False) -> Store:
    """Open a volume without reading it; the suffix of the name says what it is."""
    path = Path(path)
    for suffixes, opener in _OPENERS:
        if path.name.lower().endswith(suffixes):
            if not path.exists():
                raise InvalidArgumentError(Fault("VG051", "open_volume", "path", "exist", str(path)))
            return opener(path, write)
    known = ", ".join(suffix for suffixes, _ in _OPENERS for suffix in suffixes)
    raise InvalidArgumentError(Fault("VG051", "open_volume", "path", f"end in one of {known}", str(path)))


def create_volume(path: str | Path, shape: Sequence[int], dtype: np.dtype[Any], chunks: Sequence[int]) -> Store:
    """Make a new volume of zeros: .npy, or .zarr with chunks that tasks can write alone."""
    path = Path(path)
    if path.name.endswith(".zarr"):
        zarr = needed("zarr", path)
        zarr.create_array(
            store=str(path), shape=tuple(shape), dtype=dtype, chunks=tuple(chunks), fill_value=0, overwrite=True
        )
    elif path.suffix == ".npy":
        np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=tuple(shape)).flush()
    else:
        raise InvalidArgumentError(Fault("VG051", "create_volume", "path", "end in .npy or .zarr", str(path)))
    return open_volume(path, write=True)


def _five(array: Any) -> tuple[tuple[int, ...], tuple[int | None, ...], str]:
    """The shape as [N, D, H, W, C], where each of the file's dimensions goes, and the axes as letters."""
    rank = len(array.shape)
    places: dict[int, tuple[int | None, ...]] = {
        5: (0, 1, 2, 3, 4),
        4: (None, 0, 1, 2, 3),
        3: (None, 0, 1, 2, None),
    }
    if rank not in places:
        fault = Fault("VG010", "open_volume", "path", "hold 3, 4 or 5 dimensions", f"{rank} dimensions")
        raise InvalidArgumentError(fault)
    place = places[rank]
    shape = tuple(1 if at is None else int(array.shape[at]) for at in place)
    return shape, place, "".join(letter for letter, at in zip("NDHWC", place, strict=True) if at is not None)


def _dense_store(path: Path, array: Any, write: bool, chunks: tuple[int, ...] | None) -> Store:
    """A store over anything that is indexed like an array."""
    shape, place, axes = _five(array)
    kept = [at for at, source in enumerate(place) if source is not None]

    def inner(index: Index) -> Index:
        return tuple(index[at] for at in kept)

    def read(index: Index) -> Array:
        part = np.asarray(array[inner(index)])
        return part.reshape([len(range(*one.indices(size))) for one, size in zip(index, shape, strict=True)])

    def put(index: Index, part: Array) -> None:
        array[inner(index)] = part.reshape([part.shape[at] for at in kept])

    whole = None if chunks is None else tuple(1 if at is None else chunks[at] for at in place)
    return Store(path, shape, np.dtype(array.dtype), axes, (1.0, 1.0, 1.0), whole, read, put if write else None)


def _open_npy(path: Path, write: bool) -> Store:
    return _dense_store(path, np.load(path, mmap_mode="r+" if write else "r", allow_pickle=False), write, None)


def _open_zarr(path: Path, write: bool) -> Store:
    zarr = needed("zarr", path)
    found = zarr.open(store=str(path), mode="r+" if write else "r")
    if not hasattr(found, "shape"):
        # OME-Zarr: a group whose first dataset is the full resolution.
        ome = dict(found.attrs).get("ome", {}).get("multiscales") or dict(found.attrs).get("multiscales")
        if not ome:
            raise InvalidArgumentError(Fault("VG051", "open_volume", "path", "be a Zarr array or OME-Zarr", str(path)))
        found = found[ome[0]["datasets"][0]["path"]]
    return _dense_store(path, found, write, tuple(found.shards or found.chunks))


def _open_nifti(path: Path, write: bool) -> Store:
    image = needed("nibabel", path).load(path)
    shape = tuple(image.shape) + (1,) * (4 - len(image.shape))
    data = image.dataobj
    has_time = len(image.shape) > 3
    scaled = getattr(data, "slope", 1.0) != 1.0 or getattr(data, "inter", 0.0) != 0.0
    kind = np.dtype(np.float32) if scaled else data.dtype

    def read(index: Index) -> Array:
        # NIfTI is x, y, z, t in the file; slope and intercept are applied by nibabel.
        spatial = (index[3], index[2], index[1])
        picked = data[(*spatial, index[4])] if has_time else data[spatial][..., None]
        volume = np.transpose(np.asarray(picked), (2, 1, 0, 3))[None].astype(kind.newbyteorder("="), copy=False)
        return volume[index[0]]

    spacing = tuple(float(size) for size in image.header.get_zooms()[:3])[::-1]
    volume_shape = (1, shape[2], shape[1], shape[0], shape[3])
    return Store(path, volume_shape, kind.newbyteorder("="), "xyzt"[: len(image.shape)], spacing, None, read)


def _open_tiff(path: Path, write: bool) -> Store:
    return _dense_store(path, needed("tifffile", path).imread(path), False, None)


_OPENERS: tuple[tuple[tuple[str, ...], Callable[[Path, bool], Store]], ...] = (
    ((".npy",), _open_npy),
    ((".zarr",), _open_zarr),
    ((".nii", ".nii.gz"), _open_nifti),
    ((".tif", ".tiff"), _open_tiff),
)
