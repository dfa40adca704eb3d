# SPDX-License-Identifier: Apache-2.0
"""NIfTI-1 and NIfTI-2 in one file: x, y, z, t, c in the file; slope and intercept applied; the affine kept.

A packed file is unpacked once, into a temporary file, when it is first read, so that boxes of it cost what they hold.
"""

from __future__ import annotations

import gzip
import math
import shutil
import struct
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Array, Index, Layout
from voxgrad.volumes.packed import unpacked_map
from voxgrad.volumes.space import LOST, Space, lost_in, placed, sound
from voxgrad.volumes.store import New, Store, check_dtype, mapped, needed, settled, short_unit

AXES = "xyztc"
MAX_OFFSET = 2**26
"""Where data may begin: behind the header and what was added to it."""
_CODES = {"m": "meter", "mm": "mm", "um": "micron"}


def open_store(path: Path, member: str, axes: str | None, write: bool) -> Store:
    """The volume; integers stay integers unless the header scales them."""
    nibabel = needed("nibabel", path)
    packed = path.name.lower().endswith(".gz")
    if write and packed:
        raise bad_file(path, "be a file that can be written in parts", "a packed one", "Write .nii or .zarr.")
    image = _image_class(nibabel, path, packed).from_filename(str(path))
    # A loaded header forgets where the data begin and how they are scaled; the array's stand-in knows.
    header, data = image.header, image.dataobj
    sizes = tuple(int(size) for size in data.shape)
    sizes += (1,) * (3 - len(sizes))
    scale = float(data.slope), float(data.inter)
    stored = np.dtype(data.dtype)
    dtype = check_dtype(path, stored) if scale == (1.0, 0.0) else _scaled_type(stored)
    if write and scale != (1.0, 0.0):
        raise bad_file(path, "be written without slope and intercept", f"{scale[0]:g} and {scale[1]:g}")
    offset = int(data.offset)
    if len(sizes) > 5 or min(sizes) < 0 or offset < 0:
        raise bad_file(path, "have up to five dimensions, x, y, z, t, c", f"sizes {list(sizes)}, data at {offset}")
    layout = Layout(axes or AXES[: len(sizes)], sizes)
    array = _array(path, packed, sizes, stored, offset, write)

    def fetch(index: Index) -> Array:
        part = np.array(array()[index])
        return part if scale == (1.0, 0.0) else (part * scale[0] + scale[1]).astype(dtype)

    def put(index: Index, part: Array) -> None:
        array()[index] = part

    return Store(path, layout, dtype, fetch, put if write else None, space=_space(header), kind="NIfTI",
                 settle=settled(array()) if write else None)  # fmt: skip


def _space(header: Any) -> Space:
    """From the sform, else the qform; where the header declares neither, there are sizes of voxels and no more."""
    unit = short_unit(header.get_xyzt_units()[0])
    if header["sform_code"] > 0 or header["qform_code"] > 0:
        affine = sound(np.asarray(header.get_best_affine(), float))
        if affine is not None:
            return placed(affine, unit or "mm")
    zooms = [float(size) for size in header.get_zooms()] + [1.0, 1.0, 1.0]
    return Space((zooms[2], zooms[1], zooms[0]), unit, lost=lost_in(header["descrip"].item().decode("latin-1")))


def _scaled_type(stored: np.dtype[Any]) -> np.dtype[Any]:
    """Scaled values are exact enough in float32 unless more than 24 bits are stored."""
    return np.dtype(np.float64 if stored.itemsize > 2 and stored != np.float32 else np.float32)


def _image_class(nibabel: Any, path: Path, packed: bool) -> Any:
    """By the size of the header alone: the library would also try formats that are no volumes."""
    with gzip.open(path) if packed else path.open("rb") as stream:
        head = stream.read(540)
    size = head[:4]
    for number, kind, at, form in ((348, nibabel.Nifti1Image, 108, "f"), (540, nibabel.Nifti2Image, 168, "q")):
        for order in ("<", ">"):
            if size == struct.pack(f"{order}i", number) and len(head) >= number:
                (offset,) = struct.unpack_from(f"{order}{form}", head, at)
                if not offset <= MAX_OFFSET:
                    # The library would read all that is before the data, and so would an unpacker.
                    wanted = f"have its data within the first {MAX_OFFSET:,} bytes"
                    raise bad_file(path, wanted, f"an offset of {offset:g}")
                return kind
    raise bad_file(path, "be a NIfTI file", f"one that begins with {size!r}")


def _array(path: Path, packed: bool, sizes: tuple[int, ...], stored: np.dtype[Any], offset: int, write: bool) -> Any:
    """The data as a function, so that opening a packed file unpacks nothing."""
    if not packed:
        array = mapped(path, sizes, stored, offset, "F", write)
        return lambda: array

    def pieces() -> Iterator[bytes]:
        with gzip.open(path) as stream:
            stream.read(offset)
            yield from iter(lambda: stream.read(2**22), b"")

    return unpacked_map(path, pieces, sizes, stored, "F")


def create(path: Path, member: str, new: New) -> None:
    """A file of zeros with its header."""
    if path.name.lower().endswith(".gz"):
        raise bad_file(path, "be a file that can be written in parts", "a packed one", "Write .nii or .zarr.")
    axes = new.axes or AXES[: 5 if new.shape[4] > 1 else 4 if new.shape[0] > 1 else 3]
    layout = Layout.holding(axes, new.shape)
    image = _new_image(path, layout, new)
    header = image.header
    header.set_data_offset(max(352, header.single_vox_offset))
    with path.open("wb") as stream:
        header.write_to(stream)
        stream.write(b"\0" * 4)
        stream.truncate(header.get_data_offset() + math.prod(layout.sizes) * header.get_data_dtype().itemsize)


def save_packed(path: Path, array: Array, new: New) -> None:
    """A whole volume as .nii.gz: written unpacked, then packed."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "volume.nii"
        create(plain, "", new)
        store = open_store(plain, "", new.axes, True)
        store.write((slice(None),) * 5, array)
        with plain.open("rb") as source, gzip.open(path, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target, 2**22)


_CLOSE = 1e-3
"""How far off a voxel may be that is found by the quaternion, in voxels."""


def _fine_qform(header: Any, affine: Array, sizes: Sequence[int]) -> bool:
    """Whether the quaternion puts every voxel where the affine does.

    Its first number is not in the file but follows from the others. Where it is small, as after half a turn and a tilt,
    it takes up all that these were rounded by.
    """
    corners = np.array([[*at, 1] for at in product(*((0, max(0, size - 1)) for size in sizes))], float).T
    apart = np.abs(((header.get_qform() - affine) @ corners)[:3]).max()
    return bool(apart <= _CLOSE * np.linalg.norm(affine[:3, :3], axis=0).min())


def _new_image(path: Path, layout: Layout, new: New) -> Any:
    nibabel = needed("nibabel", path)
    kind = nibabel.Nifti1Image if max(layout.sizes) < 2**15 else nibabel.Nifti2Image
    space = new.space if new.space.unit in _CODES else new.space.in_millimetres
    affine = space.matrix
    blank = np.broadcast_to(np.zeros((), new.dtype), layout.sizes)
    # int64 has to be asked for: older readers do not know it.
    image = kind(blank, affine, dtype=new.dtype)
    # Readers differ in which of the two they look at first; a sheared affine fits only one of them.
    straight = np.allclose(space.directions.T @ space.directions, np.eye(3), atol=1e-5)
    # ITK reads the sform of a file that says so, and else the qform, which is coarse where it turns by half a circle.
    known = "scanner" if space.is_known else "unknown"
    image.set_sform(affine, known)
    image.set_qform(affine, known if straight else "unknown")
    if straight and not _fine_qform(image.header, affine, layout.sizes[:3]):
        image.set_qform(affine, "unknown")
    image.header.set_xyzt_units(_CODES.get(space.unit, "unknown" if space.affine is None else "mm"))
    if space.lost:
        image.header["descrip"] = f"{LOST}{space.lost}".encode("latin-1", "replace")[:79]
    if image.header.get_data_dtype() != new.dtype:
        raise bad_file(path, "have an element type of NIfTI", new.dtype)
    return image
