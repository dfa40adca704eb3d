# SPDX-License-Identifier: Apache-2.0
"""Volumes as Dask and xarray have them, and back: lazily, and with the places of their voxels where they have words.

xarray says where cells are along a volume's own axes. How these are turned, which it does not know, is in an entry of
ours among the attributes: slices of the array are turned alike.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Array, Index, Layout, default_axes, told_axes
from voxgrad.volumes.space import NOWHERE, Space, triple
from voxgrad.volumes.store import Address, Store, check_dtype, needed, short_unit
from voxgrad.volumes.stores import open_volume

DIMS = ("t", "z", "y", "x", "c")
"""What xarray calls the dimensions of a volume."""
_SPACE = "voxgrad_space"
_MOST_CELLS = 2**24
"""The cells of a chunk, where the file has none of its own."""


class Reader:
    """A volume that opens itself in whatever process it comes to."""

    ndim = 5

    def __init__(self, store: Store):
        if isinstance(store.path, Address) and not store.path.text:
            raise bad_file("an array", "be in a file", "one in memory")
        self.name, self.axes, self.box = store.name, store.axes, store.box
        self.shape, self.dtype = store.shape, store.dtype
        self._store: Store | None = store

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_store": None}

    def __getitem__(self, key: Any) -> Array:
        if self._store is None:
            # Two threads that open it at a time open the same.
            self._store = open_volume(self.name, axes=self.axes).boxed(self.box).astype(self.dtype)
        return self._store[key]


def to_dask(store: Store, chunks: Sequence[int] | None = None) -> Any:
    """The volume as a lazy array [N, D, H, W, C], in the chunks of its file."""
    da = needed("dask.array", store.name)
    cut = tuple(chunks or store.chunks or ())
    if not cut:
        # Of a file without chunks, slabs: they lie in it one behind the other.
        plane = max(1, int(np.prod(store.shape[2:])))
        cut = (1, max(1, min(store.shape[1], _MOST_CELLS // plane)), *store.shape[2:])
    meta = np.empty((0,) * 5, store.dtype)
    return da.from_array(Reader(store), chunks=cut, asarray=True, lock=False, name=False, meta=meta)


def to_xarray(store: Store, chunks: Sequence[int] | None = None) -> Any:
    """The volume as a lazy DataArray, with the places of its cells along depth, height and width."""
    xarray = needed("xarray", store.name)
    space, coords = store.space, {}
    if space.is_known:
        for dim, size, first, step in zip(DIMS[1:4], store.shape[1:4], space.corner, space.spacing, strict=True):
            coords[dim] = xarray.Variable((dim,), first + step * np.arange(size), {"units": space.unit})
    attrs = {_SPACE: json.dumps(space.as_data())} if space.is_known or space.lost else {}
    return xarray.DataArray(to_dask(store, chunks), coords, DIMS, attrs=attrs)


def store_of(array: Any, axes: str | None = None) -> Store:
    """A volume to read from, of an array: NumPy's, Dask's or xarray's, whose dimensions say what they are."""
    data, space = array, NOWHERE
    xarray = sys.modules.get("xarray")
    if xarray is not None and isinstance(array, xarray.DataArray):
        data = array.data
        axes = axes or told_axes("".join(str(dim)[:1] for dim in array.dims), len(array.dims))
        space = _space(array, Layout(axes, tuple(array.shape)))
    if not all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__")):
        got = type(array).__name__
        raise InvalidArgumentError(
            Fault("VG030", "convert", "volume", "be a file, or an array of NumPy, Dask or xarray", got)
        )
    layout = Layout(axes or default_axes(len(data.shape)), tuple(int(size) for size in data.shape))
    chunks = getattr(data, "chunksize", None)

    def fetch(index: Index) -> Array:
        return np.asarray(data[index])

    return Store(
        Address(""), layout, check_dtype("an array", np.dtype(data.dtype)), fetch, space=space,
        chunks=None if chunks is None else layout.five(chunks), kind=type(array).__name__,
    )  # fmt: skip


def _space(array: Any, layout: Layout) -> Space:
    """From evenly spaced coordinates, turned as our own attribute says."""
    told = {}
    for dim, letter in zip(array.dims, layout.axes, strict=True):
        if dim in array.coords and array.coords[dim].ndim == 1 and array.coords[dim].size:
            told[letter] = _line(array.coords[dim])
    five = layout.five([told.get(letter) for letter in layout.axes], None)[1:4]
    steps = triple([1.0 if one is None else one[1] for one in five])
    first = triple([0.0 if one is None else one[0] for one in five])
    unit = next((one[2] for one in five if one is not None and one[2]), "")
    found = Space(steps, unit, None, first)
    if _SPACE not in array.attrs:
        return found
    kept = Space.from_data(json.loads(array.attrs[_SPACE]))
    if kept.affine is None or not all(five):
        return kept if kept.lost else found
    affine = np.eye(4)
    affine[:3, :3] = kept.directions * steps[::-1]
    affine[:3, 3] = kept.directions @ first[::-1]
    return Space(steps, kept.unit, affine)


def _line(places: Any) -> tuple[float, float, str]:
    """The first place, the step and the unit of a coordinate, which must be even."""
    values = np.asarray(places.values)
    if values.dtype.kind not in "iuf":
        return 0.0, 1.0, ""
    steps = np.diff(values.astype(float))
    step = float(steps.mean()) if steps.size else 1.0
    if steps.size and not (step > 0 and np.allclose(steps, step, rtol=1e-4)):
        wanted = "have cells at even, growing places"
        remedy = "Sort it, or drop the coordinate."
        raise InvalidArgumentError(
            Fault("VG003", "convert", str(places.name), wanted, f"steps of {steps.min():g} to {steps.max():g}", remedy)
        )
    return float(values[0]), step, short_unit(str(places.attrs.get("units", "")))
