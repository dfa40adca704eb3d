# SPDX-License-Identifier: Apache-2.0
"""A DICOM series in a folder, or one DICOM file of one or more frames: slices in their order along the patient.

Slices are ordered by where they lie along the normal of their plane, never by their names. Slope and intercept are
applied. A folder with several series, a slice that is missing and one that is there twice are errors.
"""

from __future__ import annotations

import io
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Array, Index, Layout
from voxgrad.volumes.packed import RATIO, check_chunks
from voxgrad.volumes.space import TO_RAS, Space, sound
from voxgrad.volumes.store import Store, check_dtype, needed

_KEPT_FRAMES = 16
"""Decoded slices that are kept: boxes of one run touch the same slices again."""
_TAGS = [
    "SeriesInstanceUID", "SeriesDescription", "Rows", "Columns", "NumberOfFrames", "SamplesPerPixel", "BitsAllocated",
    "PixelRepresentation", "ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing", "SliceThickness",
    "SpacingBetweenSlices", "RescaleSlope", "RescaleIntercept", "PhotometricInterpretation",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """One image: its file, its number there, and how its numbers are scaled."""

    path: Path
    number: int
    slope: float
    intercept: float


def open_store(path: Path, member: str, axes: str | None, write: bool) -> Store:
    """The slices as one volume [depth, height, width], or with channels behind."""
    if write:
        raise bad_file(path, "be a format that is written", "DICOM", "Write .nii, .zarr, .tif, .h5 or .npy.")
    pydicom = needed("pydicom", path)
    frames, gap, first, last = _frames(_headers(pydicom, path, member))
    samples = int(first.get("SamplesPerPixel", 1))
    sizes = (len(frames), int(first.Rows), int(first.Columns), *([samples] if samples > 1 else []))
    layout = Layout(axes or "zyxc"[: len(sizes)], sizes)
    scaled = any((frame.slope, frame.intercept) != (1.0, 0.0) for frame in frames)
    dtype = np.dtype(np.float32) if scaled else check_dtype(path, _stored_type(path, first))

    @lru_cache(maxsize=_KEPT_FRAMES)
    def image(at: int) -> Array:
        frame = frames[at]
        check_chunks(path, math.prod(sizes[1:]) * 4)
        try:
            source = _unpacked(pydicom, frame.path, math.prod(sizes) * 4) or frame.path
            pixels: Array = pydicom.pixels.pixel_array(source, index=frame.number)
        except RuntimeError as error:
            # What the library says when nothing that is installed unpacks this kind of image.
            got = str(error).partition(" because")[0]
            raise bad_file(frame.path, "be unpacked", got, "pip install 'pylibjpeg[all]'", "VG070") from None
        return (pixels * frame.slope + frame.intercept).astype(dtype) if scaled else pixels.astype(dtype, copy=False)

    def fetch(index: Index) -> Array:
        asked = range(*index[0].indices(len(frames)))
        # Of no slices, the shape of one still counts.
        return np.stack([image(at)[index[1:]] for at in asked or range(1)])[: len(asked)]

    space = _space(first, last, len(frames), gap)
    return Store(path, layout, dtype, fetch, space=space, member=member, kind="DICOM")


def _headers(pydicom: Any, path: Path, member: str) -> list[tuple[Path, Any]]:
    """The files of the one series that is meant, with their headers."""
    files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    found = []
    for file in files:
        try:
            header = pydicom.dcmread(_unpacked(pydicom, file, 0) or file, stop_before_pixels=True, specific_tags=_TAGS)
        except pydicom.errors.InvalidDicomError:
            if path.is_dir() and file.suffix.lower() != ".dcm":
                continue  # notes and indexes lie beside the images
            raise bad_file(file, "be a DICOM file", "one without its mark at byte 128") from None
        if "Rows" in header and "Columns" in header:
            found.append((file, header))
    series = Counter(str(header.get("SeriesInstanceUID", "")) for _, header in found)
    if member:
        found = [one for one in found if str(one[1].get("SeriesInstanceUID", "")) == member]
    elif len(series) > 1:
        listed = ", ".join(f"{name} ({count} files)" for name, count in series.most_common(4))
        raise bad_file(path, "hold one series", f"{len(series)}: {listed}", f"Write {path}:SERIES.")
    if not found:
        raise bad_file(path, f"hold DICOM images{f' of series {member}' if member else ''}", "none")
    return found


_DEFLATED = b"1.2.840.10008.1.2.1.99"
_HEAD = 2**20
"""Bytes of a deflated file that are unpacked for its header."""


def _is_deflated(file: Path) -> bool:
    with file.open("rb") as stream:
        start = stream.read(2**12)
    return start[128:132] == b"DICM" and _DEFLATED in start


def _unpacked(pydicom: Any, file: Path, pixels: int) -> Any:
    """A deflated file as an ordinary one: its header, and as many bytes of pixels as that promises. None for others."""
    if not _is_deflated(file):
        return None
    meta = pydicom.filereader.read_file_meta_info(file)
    begin = 132 + 12 + int(meta.FileMetaInformationGroupLength)
    with file.open("rb") as stream:
        head = stream.read(132)
        stream.seek(begin)
        body = zlib.decompressobj(-zlib.MAX_WBITS).decompress(stream.read(), _HEAD + pixels)
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    made = io.BytesIO()
    made.write(head)
    pydicom.filewriter.write_file_meta_info(made, meta)
    made.write(body)
    made.seek(0)
    return made


def _check_count(file: Path, count: int) -> None:
    """Refuse more frames than the file can hold: each takes eight bytes at least, the head of an item."""
    there = file.stat().st_size
    if not 0 <= count <= 1 + there * (RATIO if _is_deflated(file) else 1) // 8:
        raise bad_file(file, f"hold {count:,} frames", f"{there:,} bytes", "The file is damaged.")


def _frames(headers: Sequence[tuple[Path, Any]]) -> tuple[list[Frame], float, Any, Any]:
    """The images in their order, the distance from one to the next, and the headers of the first and the last."""
    first = headers[0][1]
    for file, header in headers:
        for name in ("Rows", "Columns", "SamplesPerPixel", "BitsAllocated", "PixelRepresentation"):
            if header.get(name) != first.get(name):
                raise bad_file(file, f"have {name} {first.get(name)}, as {headers[0][0].name}", header.get(name))
    thickness = float(first.get("SpacingBetweenSlices") or first.get("SliceThickness") or 1.0)
    if len(headers) == 1:
        count = int(first.get("NumberOfFrames", 1) or 1)
        _check_count(headers[0][0], count)
        return [Frame(headers[0][0], number, *_scale(first)) for number in range(count)], thickness, first, first
    ordered = sorted(((_place(file, header, first), file, header) for file, header in headers), key=lambda one: one[0])
    gaps = np.diff([place for place, _, _ in ordered])
    gap = float(np.median(gaps))
    for (place, file, _), step in zip(ordered[1:], gaps, strict=True):
        if step < 0.01 * max(gap, 1e-6):
            raise bad_file(file, "lie at a place of its own", f"a second slice at {place:g} mm", "Is it a time series?")
        if abs(step - gap) > 0.05 * gap:
            got = f"a step of {step:g} mm before it, where others have {gap:g} mm"
            raise bad_file(file, "follow the slice before it", got, "A slice is missing.")
    return [Frame(file, 0, *_scale(header)) for _, file, header in ordered], gap, ordered[0][2], ordered[-1][2]


def _place(file: Path, header: Any, first: Any) -> float:
    """Where a slice lies along the normal of the series."""
    if "ImagePositionPatient" not in header or "ImageOrientationPatient" not in header:
        raise bad_file(file, "say where its slice lies", "no ImagePositionPatient and ImageOrientationPatient")
    along = np.asarray(first.ImageOrientationPatient, dtype=float)
    if not np.allclose(np.asarray(header.ImageOrientationPatient, dtype=float), along, atol=1e-3):
        raise bad_file(file, "lie in the plane of the other slices", f"{list(header.ImageOrientationPatient)}")
    normal = np.cross(along[:3], along[3:])
    return float(np.dot(np.asarray(header.ImagePositionPatient, dtype=float), normal))


def _scale(header: Any) -> tuple[float, float]:
    return float(header.get("RescaleSlope", 1.0)), float(header.get("RescaleIntercept", 0.0))


def _stored_type(path: Path, header: Any) -> np.dtype[Any]:
    bits, signed = int(header.get("BitsAllocated", 0)), int(header.get("PixelRepresentation", 0))
    if bits not in (8, 16, 32):
        raise bad_file(path, "hold 8, 16 or 32 bits for each number", f"{bits} bits")
    return np.dtype(f"{'i' if signed else 'u'}{bits // 8}")


def _space(first: Any, last: Any, count: int, gap: float) -> Space:
    """From indices x, y, z to millimetres, of the first slice on; slices may lie askew on each other."""
    if "PixelSpacing" not in first:
        return Space((gap, 1.0, 1.0))
    rows, columns = (float(size) for size in first.PixelSpacing)
    if "ImageOrientationPatient" not in first:
        return Space((gap, rows, columns), "mm")
    along = np.asarray(first.ImageOrientationPatient, dtype=float)
    begin, end = (np.asarray(one.get("ImagePositionPatient", (0, 0, 0)), dtype=float) for one in (first, last))
    affine = np.eye(4)
    affine[:3, 0], affine[:3, 1] = along[:3] * columns, along[3:] * rows
    affine[:3, 2] = (end - begin) / (count - 1) if count > 1 and last is not first else (
        np.cross(along[:3], along[3:]) * gap
    )  # fmt: skip
    affine[:3, 3] = begin
    step = float(np.linalg.norm(affine[:3, 2]))
    return Space((step, rows, columns), "mm", sound(TO_RAS @ affine))
