# SPDX-License-Identifier: Apache-2.0
"""Opens, makes and saves volumes: .npy, .npz, Zarr, OME-Zarr, NIfTI, TIFF, HDF5, NRRD, MetaImage, DICOM.

No file brings code with it.

A store shows its data as [N, D, H, W, C], whatever the order in the file. The name says what the file is; behind a
colon it can say what is meant inside: `features.npz:scan`, `run.h5:/t0/density`, `scan.ome.zarr:1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from os.path import exists
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.catalog.model import Input, Op, Side
from voxgrad.errors import Fault, InvalidArgumentError, VoxgradError
from voxgrad.formats.tensor_files import bad_file, is_array_file, read_array, write_array, write_npz
from voxgrad.formats.text.tables import is_table, read_table
from voxgrad.kernels.element_types import dtype_of
from voxgrad.volumes.axes import WHOLE, Array, Layout
from voxgrad.volumes.axes import Index as Index
from voxgrad.volumes.space import NOWHERE
from voxgrad.volumes.space import Space as Space
from voxgrad.volumes.store import Address, New, check_dtype, reading, reserve
from voxgrad.volumes.store import Store as Store
from voxgrad.volumes.store import human as human

_FORMATS = {
    ".npy": "npy", ".npz": "npy", ".zarr": "zarr", ".zarr.zip": "zarr", ".nii": "nifti", ".nii.gz": "nifti",
    ".tif": "tiff", ".tiff": "tiff", ".h5": "hdf5", ".hdf5": "hdf5", ".nrrd": "nrrd", ".mha": "metaimage",
    ".mhd": "metaimage", ".dcm": "dicom",
}  # fmt: skip
SUFFIXES = tuple(_FORMATS)
_PACKED = (".nii.gz", ".npz", ".zarr.zip")
"""The endings of names that are volumes."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")


@checked
def open_volume(path: str | Path, *, axes: str | None = None, write: bool = False) -> Store:
    """Open a volume without reading it: `vg.open_volume("scan.nii.gz")[0, 20:40]`.

    `axes` names the dimensions of the file, in its order, where the file does not say or is wrong: "zyx", "tczyx",
    "NDHWC". With `write`, boxes of the file can be replaced.
    """
    place, member = split_name(path)
    try:
        format_ = _format(place, member)
    except (OSError, ValueError) as error:
        if isinstance(error, VoxgradError):
            raise
        raise bad_file(place, "be the name of a file", str(error)[:60]) from None
    if isinstance(place, Path) and not exists(place):
        raise bad_file(place, "exist", "no such file")
    with reading(path, format_):
        return _module(format_).open_store(place, member, axes, write)  # type: ignore[no-any-return]


def headers(asked: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """What volumes say of themselves, by path and axes, as plain data; for those that cannot be opened, why not."""
    found = []
    for path, axes in asked:
        try:
            found.append(open_volume(path, axes=axes or None).as_data())
        except VoxgradError as error:
            found.append({"error": type(error).__name__, "faults": [fault.as_dict() for fault in error.faults]})
    return found


@checked
def create_volume(
    path: str | Path,
    shape: Sequence[int],
    dtype: Any,
    chunks: Sequence[int] | None = None,
    *,
    shards: Sequence[int] | None = None,
    axes: str | None = None,
    like: Store | Space | None = None,
) -> Store:
    """Make a new volume of zeros [N, D, H, W, C] whose boxes can be written, also by several processes at a time.

    `chunks` and `shards` matter to Zarr, whose writers must keep to whole ones. `like` says where its
    voxels lie: a volume of the same size, or a `Space`.
    """
    new = _new(shape, dtype, chunks, shards, axes, like)
    place, member = split_name(path)
    format_ = _format(place, member)
    module = _module(format_)
    if not hasattr(module, "create"):
        raise bad_file(place, "be a format that is written", format_, "Write .nii, .zarr, .tif, .h5 or .npy.")
    check_dtype(place, new.dtype)
    with reading(path, format_):
        module.create(place, member, new)
        if isinstance(place, Path) and place.is_file():
            reserve(place)
    return open_volume(path, axes=axes, write=True)


@checked
def save_volume(
    path: str | Path,
    array: Any,
    *,
    axes: str | None = None,
    like: Store | Space | None = None,
    chunks: Sequence[int] | None = None,
) -> None:
    """Write a whole volume [N, D, H, W, C] to a file of any format; packed ones (.npz, .nii.gz) too."""
    data = np.asarray(array)
    name, place = str(path).lower(), split_name(path)[0]
    if not is_packed(path):
        create_volume(path, data.shape, data.dtype, chunks, axes=axes, like=like).write(WHOLE, data)
        finish(path)
    elif not name.endswith(".npz"):
        format_ = _format(place, "")
        new = _new(data.shape, data.dtype, chunks, None, axes, like)
        with reading(path, format_):
            _module(format_).save_packed(place, data, new)
    else:
        assert isinstance(place, Path)
        write_npz(place, {split_name(path)[1] or "output": data})


def is_packed(path: str | Path) -> bool:
    """True for the name of a file that is packed as a whole, and written so."""
    place = split_name(path)[0]
    return isinstance(place, Path) and place.name.lower().endswith(_PACKED)


def begin(path: str | Path) -> None:
    """Before voxels of a file are written anew: what was made of them is none of theirs any more."""
    place, _ = split_name(path)
    if _has_levels(place):
        from voxgrad.volumes import pyramids

        pyramids.strike_levels(place)


def finish(path: str | Path) -> None:
    """When all voxels of a file are there: make what else it holds, the levels of an OME-Zarr."""
    place, _ = split_name(path)
    if _has_levels(place):
        from voxgrad.volumes import pyramids

        pyramids.make_levels(place)


def _has_levels(place: Path | Address) -> bool:
    return place.name.lower().endswith(".ome.zarr")


def _new(
    shape: Sequence[int],
    dtype: Any,
    chunks: Sequence[int] | None,
    shards: Sequence[int] | None,
    axes: str | None,
    like: Store | Space | None,
) -> New:
    sizes = tuple(int(size) for size in shape)
    Layout("NDHWC", sizes)
    kind, cut = np.dtype(dtype), None if chunks is None else tuple(chunks)
    whole = None if shards is None else tuple(shards)
    return New(sizes, kind, cut, whole, axes, _space(sizes, like))


def _space(shape: Sequence[int], like: Store | Space | None) -> Space:
    """The space of a new volume: what it is said to be, or that of a volume of the same size."""
    if not isinstance(like, Store):
        return like or NOWHERE
    if like.shape[1:4] != tuple(shape[1:4]):
        wanted = f"have the depth, height and width of the new volume, {list(shape[1:4])}"
        remedy = "Say where the new voxels lie: like=Space(spacing, unit, affine)."
        raise InvalidArgumentError(
            Fault("VG012", "save_volume", "like", wanted, str(list(like.shape[1:4])), remedy)
        )  # fmt: skip
    return like.space


def is_volume_name(name: str | Path) -> bool:
    """True for names that end as volumes do, members included."""
    return split_name(name)[0].name.lower().endswith(SUFFIXES)


def read_file(name: str) -> Array:
    """The array of a file: of .npy, .npz and tables as it is, of volumes [N, D, H, W, C], integers as floats."""
    if is_array_file(name):
        return read_array(name)
    if is_table(name):
        return read_table(name)
    store = open_volume(name)
    return store.astype(_as_float(store.dtype)).read()


def read_type(op: Op, item: Input, found: np.dtype[Any]) -> np.dtype[Any]:
    """What a volume is read as for an input: as it is where the op takes that; other integers as floats."""
    own = dtype_of(found.newbyteorder("="))
    return found if own is not None and own in op.allowed(item.type) else _as_float(found)


def result_type(op: Op, found: Mapping[str, np.dtype[Any]]) -> np.dtype[Any] | None:
    """What a result is written as, where not as it is computed: maxima of integers are such integers."""
    if op.problem is None or not op.map.selects or op.map.output is not Side.WINDOWS or op.maxima:
        return None
    (stored,) = (found[item.name] for item in op.inputs if item.side is Side.CELLS and not item.host)
    return stored.newbyteorder("=") if stored.kind in "iu" and stored.itemsize <= 4 else None


def fitted(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    """An array in another type, rounded to the nearest where that holds integers; what it cannot hold is an error."""
    if array.dtype == dtype:
        return array
    whole = np.rint(array) if dtype.kind in "iu" and array.dtype.kind not in "iub" else array
    if dtype.kind in "iu" and array.size:
        least, most = np.min(whole), np.max(whole)
        limits = np.iinfo(dtype)
        # In Python's numbers, which compare exactly; NaN fits nowhere.
        if not (np.isfinite(float(least)) and limits.min <= least.item() and most.item() <= limits.max):
            wanted = f"hold values from {limits.min} to {limits.max} to be written as {dtype}"
            remedy = "Choose a wider type, or scale the values first."
            raise InvalidArgumentError(Fault("VG043", "volumes", name, wanted, f"{least:g} to {most:g}", remedy))
    with np.errstate(over="ignore"):
        made = whole.astype(dtype)
    if dtype.kind == "f" and not np.array_equal(np.isfinite(made), np.isfinite(array)):
        wanted, got = f"hold values that {dtype} has", f"{np.abs(array[np.isfinite(array)]).max():g}"
        raise InvalidArgumentError(Fault("VG043", "volumes", name, wanted, got, "Choose a wider type."))
    return made


def _as_float(found: np.dtype[Any]) -> np.dtype[Any]:
    if found.kind not in "biu":
        return found
    return np.dtype(np.float32 if found.itemsize <= 2 else np.float64)


def write_file(name: str, array: Array, space: Space | None = None) -> None:
    """Write an array to a file: .npy and .npz take any, other volumes [N, D, H, W, C], which lie in `space`."""
    if is_array_file(name) or not is_volume_name(name):
        write_array(name, array)
    else:
        save_volume(name, array, like=space)


def split_name(path: str | Path) -> tuple[Path | Address, str]:
    """A path, or an address, and what is meant inside of it."""
    text = str(path)
    before, colon, member = text.rpartition(":")
    known = before.lower().endswith(SUFFIXES) or (len(before) > 1 and "/" not in member and Path(before).is_dir())
    return (_place(before), member) if colon and known else (_place(text), "")


def _place(text: str) -> Path | Address:
    if not _ADDRESS.match(text):
        return Path(text)
    return Path(text.removeprefix("file://")) if text.startswith("file://") else Address(text)


def is_there(path: str | Path) -> bool:
    """True where a volume of this name exists; of an address, where it can be opened."""
    place, _ = split_name(path)
    if isinstance(place, Path):
        return exists(place)
    try:
        open_volume(path)
    except VoxgradError as error:
        return any(fault.code == "VG070" for fault in error.faults)
    return True


def _format(path: Path | Address, member: str) -> str:
    name = path.name.lower()
    if isinstance(path, Address):
        if name.endswith(".zarr"):
            return "zarr"
        raise bad_file(path, "be a Zarr volume", "another format", "Others are read from files of this machine.")
    if path.is_dir():
        return "zarr" if any((path / mark).exists() for mark in _ZARR_MARKS) or name.endswith(".zarr") else "dicom"
    for suffix, format_ in _FORMATS.items():
        if name.endswith(suffix):
            return format_
    known = ", ".join(SUFFIXES)
    raise bad_file(path, f"end in one of {known}, or be a folder of DICOM files", path.suffix or "no suffix")


def _module(format_: str) -> Any:
    return import_module(f"voxgrad.volumes.formats.{format_}")
