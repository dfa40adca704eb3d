# SPDX-License-Identifier: Apache-2.0
"""A volume in a file, whatever the format: what it holds is known at once, what is read is asked for by box."""

from __future__ import annotations

import errno
import math
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arrays.limits import check_size
from voxgrad.errors import Faults, VoxgradError
from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import WHOLE, Array, Index, Layout
from voxgrad.volumes.space import NOWHERE, Space, Triple

EXTRA = "pip install 'voxgrad[volumes]'"


@dataclass(frozen=True, slots=True)
class Address:
    """The name of a volume that is no file of this machine: s3://bucket/scan.zarr."""

    text: str

    @property
    def name(self) -> str:
        """The part behind the last slash."""
        return self.text.rstrip("/").rpartition("/")[2]

    def resolve(self) -> Address:
        """The same for every process."""
        return self

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, repr=False)
class Store:
    """A volume in a file, seen as [N, D, H, W, C]. `read` and `write` take slices of these five dimensions.

    `axes` are the file's own, in its order. `space` says where the voxels lie: `spacing`, `unit`, `affine`. `chunks` is
    what the file is cut into, where it is: what separate writers must not share.

    >>> store = open_volume("scan.nii.gz")
    >>> store[0, 10:20, :, :, 0]            # or store.read(), np.asarray(store)
    """

    path: Path | Address
    layout: Layout
    dtype: np.dtype[Any]
    fetch: Callable[[Index], Array]
    """Reads a box, given in the file's own axes."""
    put: Callable[[Index, Array], None] | None = None
    """Writes a box, in the file's own axes, where the file can be written to."""
    space: Space = NOWHERE
    chunks: tuple[int, ...] | None = None
    member: str = ""
    kind: str = ""
    settle: Callable[[], None] | None = None
    """Brings what was written to the disk, where writing alone does not."""
    beside: tuple[Path, ...] = ()
    """Files with data of this volume, besides the one that names it."""
    box: tuple[int, ...] = ()
    """The part of the file that this volume is: first and last cells along depth, height and width, or all."""

    @property
    def spacing(self) -> Triple:
        """The size of a voxel along depth, height and width."""
        return self.space.spacing

    @property
    def unit(self) -> str:
        """The unit of the spacing: mm, um and so on, or nothing where the file does not say."""
        return self.space.unit

    @property
    def affine(self) -> Array | None:
        """Takes voxel indices x, y, z to millimetres, as NIfTI has it, where the file has one."""
        return self.space.affine

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes as [N, D, H, W, C]."""
        return self.layout.five()

    @property
    def axes(self) -> str:
        """The axes of the file as letters, in its own order."""
        return self.layout.axes

    @property
    def ndim(self) -> int:
        """Always five."""
        return 5

    @property
    def nbytes(self) -> int:
        """The bytes of the whole volume in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def name(self) -> str:
        """The name under which it was opened."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    def as_data(self) -> dict[str, Any]:
        """What is known of it before it is read, as plain data."""
        return {
            "path": self.name, "format": self.kind, "shape": list(self.shape), "axes": self.axes,
            "dtype": str(self.dtype), "spacing": list(self.spacing), "unit": self.unit,
            "chunks": None if self.chunks is None else list(self.chunks), "bytes": self.nbytes,
            "affine": None if self.affine is None else self.affine.tolist(), "origin": list(self.space.origin),
            "lost": self.space.lost,
        }  # fmt: skip

    def read(self, index: Index = WHOLE) -> Array:
        """A box of the volume, or all of it, as an array [N, D, H, W, C] of the machine's own byte order."""
        faults = Faults("open_volume")
        sizes = [len(range(*one.indices(size))) for one, size in zip(index, self.shape, strict=True)]
        check_size("open_volume", math.prod(sizes) * self.dtype.itemsize, faults)
        faults.raise_if_any()
        with reading(self.name, self.kind):
            part = np.asarray(self.fetch(self.layout.own(index)))
            return np.asarray(self.layout.to_five(part, index), dtype=self.dtype)

    def write(self, index: Index, part: Array) -> None:
        """Put an array [N, D, H, W, C] at its place."""
        if self.put is None:
            raise bad_file(self.name, "be open for writing", f"a {self.kind} file that is only read")
        with reading(self.name, self.kind):
            self.put(self.layout.own(index), self.layout.to_own(part))

    def sync(self) -> None:
        """Return when all that was written is on the disk."""
        if self.settle is not None:
            with reading(self.name, self.kind):
                self.settle()

    def to_dask(self, chunks: Sequence[int] | None = None) -> Any:
        """The volume as a lazy Dask array [N, D, H, W, C], which workers open where they are."""
        from voxgrad.volumes import exchange

        return exchange.to_dask(self, chunks)

    def to_xarray(self, chunks: Sequence[int] | None = None) -> Any:
        """The volume as a lazy xarray.DataArray with dimensions t, z, y, x, c and places along them."""
        from voxgrad.volumes import exchange

        return exchange.to_xarray(self, chunks)

    def astype(self, dtype: Any) -> Store:
        """The same volume, read as another element type. It is only read."""
        return replace(self, dtype=np.dtype(dtype), put=None)

    def boxed(self, box: Sequence[int]) -> Store:
        """The part of the volume in a box: first cell and the one behind the last along depth, height and width."""
        if not box:
            return self
        starts = self.layout.own((0, *box[::2], 0))
        sizes = self.layout.own((self.shape[0], *(b - a for a, b in zip(box[::2], box[1::2], strict=True)),
                                 self.shape[4]))  # fmt: skip

        def fetch(index: Index) -> Array:
            moved = (range(*one.indices(size)) for one, size in zip(index, sizes, strict=True))
            return self.fetch(tuple(
                slice(at + one.start, at + one.stop, one.step) for one, at in zip(moved, starts, strict=True)
            ))  # fmt: skip

        return replace(
            self, layout=Layout(self.axes, sizes), fetch=fetch, put=None, chunks=None, box=tuple(box),
            space=self.space.boxed(box),
        )  # fmt: skip

    def __getitem__(self, key: Any) -> Array:
        boxes, picks = _normal(key, self.shape)
        part: Array = self.read(boxes)[picks]
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.read(), dtype=dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        spacing = " x ".join(f"{size:g}" for size in self.spacing) + (f" {self.unit}" if self.unit else "")
        told = f"{self.dtype} {list(self.shape)}, {human(self.nbytes)}, axes {self.axes}, voxels {spacing}"
        return f"<Store {self.path.name}{':' + self.member if self.member else ''} ({self.kind}): {told}>"


@dataclass(frozen=True)
class New:
    """What a new file is to hold: sizes and chunks as [N, D, H, W, C]."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...] | None = None
    shards: tuple[int, ...] | None = None
    axes: str | None = None
    space: Space = NOWHERE

    @property
    def nbytes(self) -> int:
        """The bytes of the data."""
        return math.prod(self.shape) * self.dtype.itemsize

    def size(self, letter: str) -> int:
        """The size along T, Z, Y, X or C."""
        return self.shape["TZYXC".index(letter)]


def _normal(key: Any, shape: Sequence[int]) -> tuple[Index, tuple[Any, ...]]:
    """An index as in NumPy (integers, slices, an ellipsis) as slices to read and what to pick from these."""
    keys = list(key) if isinstance(key, tuple) else [key]
    gaps = [at for at, one in enumerate(keys) if one is Ellipsis]
    if len(gaps) > 1 or len(keys) - len(gaps) > len(shape):
        raise IndexError(f"too many indices for a volume of 5 dimensions: {key!r}")
    at = gaps[0] if gaps else len(keys)
    keys[at : at + len(gaps)] = [slice(None)] * (len(shape) - len(keys) + len(gaps))
    boxes: list[slice] = []
    picks: list[Any] = []
    for one, size in zip(keys, shape, strict=True):
        if isinstance(one, slice):
            asked = range(*one.indices(size))
            # Files are read forwards; what was asked for backwards is turned afterwards.
            ahead = asked if asked.step > 0 else asked[::-1]
            boxes.append(slice(ahead.start, max(ahead.stop, ahead.start), ahead.step))
            picks.append(slice(None, None, 1 if asked.step > 0 else -1))
        else:
            number = range(size)[operator.index(one)]
            boxes.append(slice(number, number + 1))
            picks.append(0)
    return tuple(boxes), tuple(picks)


LONG_UNITS = {"m": "meter", "mm": "millimeter", "um": "micrometer", "nm": "nanometer"}
"""Units of length as stores have them, and as OME and NIfTI spell them out."""
_SHORT_UNITS = {long: short for short, long in LONG_UNITS.items()}
_SHORT_UNITS |= {"micron": "um", "microns": "um", "µm": "um", "\u03bcm": "um", "\\u00B5m": "um"}
_SHORT_UNITS |= {"pixel": "", "pixels": "", "unknown": "", "None": ""}


def short_unit(text: str) -> str:
    """A unit of length under one name, whichever way a file writes it."""
    return _SHORT_UNITS.get(text, text)


def human(size: int) -> str:
    """A number of bytes for people."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 2**power:
            return f"{size / 2**power:.1f} {unit}"
    return f"{size} bytes"


def needed(module: str, path: Any) -> Any:
    """A library for a format, or an error that says what to install."""
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        remedy = f"{EXTRA}, or pip install {library}"
        raise bad_file(path, f"be readable with {library}", "no such package", remedy, "VG070") from None


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """Around every use of a format's library: these raise whatever comes to them when a file is broken."""
    try:
        yield
    except VoxgradError:
        raise
    except ImportError as error:
        # Of what a library loads for itself: one for an address, one for a way to pack.
        raise bad_file(path, f"be readable as {kind}", str(error)[:160], code="VG070") from error
    except Exception as error:
        if is_full(error):
            raise no_room(path) from error
        told = str(error).splitlines()[0][:160] if str(error) else "nothing more is known"
        raise bad_file(path, f"be a readable {kind} volume", f"{type(error).__name__}: {told}") from error


def is_full(error: BaseException) -> bool:
    """Whether there was no room: on the disk, in a quota, or below the size that a process may give its files."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def no_room(path: object) -> VoxgradError:
    """The error for a disk that is full."""
    remedy = "Make room; a chunked run goes on when the same command is given again."
    return bad_file(path, "fit on its disk", "no space left", remedy, "VG073")


def reserve(path: Path) -> None:
    """Take the room of a new file now: a page of a map for which there is none would end the process later."""
    if hasattr(os, "posix_fallocate") and (size := path.stat().st_size):
        with path.open("r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, size)


def mapped(path: Path, shape: Sequence[int], dtype: np.dtype[Any], offset: int, order: str, write: bool) -> Array:
    """An array over the bytes of a file, which must be there: nothing is read until it is used."""
    wanted, there = math.prod(shape) * dtype.itemsize, path.stat().st_size
    if min(shape, default=0) < 0 or offset + wanted > there:
        got = f"{max(0, there - offset):,} for shape {list(shape)}"
        raise bad_file(path, f"hold {wanted:,} bytes of data", got, "The file is cut off.")
    if not wanted:
        return np.zeros(shape, dtype)
    kind: Any = "r+" if write else "r"
    return np.memmap(path, dtype, kind, offset, tuple(shape), order)  # type: ignore[call-overload, no-any-return]


def settled(array: Array) -> Callable[[], None] | None:
    """What brings a mapped array to the disk."""
    return array.flush if isinstance(array, np.memmap) else None


def check_dtype(path: object, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The element type as this machine has it; only numbers are volumes."""
    if (
        dtype.hasobject
        or dtype.fields is not None
        or dtype.kind not in "biufcV"
        or (dtype.kind == "V" and not _named(dtype))
    ):
        raise bad_file(path, "hold numbers", f"elements of type {dtype}")
    return dtype.newbyteorder("=")


def _named(dtype: np.dtype[Any]) -> bool:
    """True for bfloat16 and its kin, which NumPy has no letter for."""
    return dtype.type is not np.void
