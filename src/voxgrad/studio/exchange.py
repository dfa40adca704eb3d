# SPDX-License-Identifier: Apache-2.0
"""Files that come in and go out. What comes in is untrusted, gets a name of ours and is parsed, never executed."""

from __future__ import annotations

import base64
import binascii
import io
import re
import secrets
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from starlette.responses import Response

from voxgrad.arrays.kinds import dtype_of
from voxgrad.errors import Fault, InvalidArgumentError, VoxgradError
from voxgrad.formats import page_file, tensor_files
from voxgrad.formats.picture import draw_png, draw_svg, with_page
from voxgrad.formats.run_report import report_html
from voxgrad.formats.text.tables import TABLES
from voxgrad.graph.page import Page
from voxgrad.graph.readings import Readings
from voxgrad.isolation import isolated
from voxgrad.studio import messages
from voxgrad.studio.project import file_stem
from voxgrad.studio.run_facts import run_facts
from voxgrad.studio.tensors import Array, TensorStore
from voxgrad.volumes.stores import SUFFIXES

VOLUMES = tuple(sorted((*SUFFIXES, *TABLES), key=len, reverse=True))
"""Of volumes and tables. Longer endings first: .nii.gz is not .gz."""
PAGES = (page_file.SUFFIX, ".json", ".svg", ".png", ".pb")
BESIDE = (".dat",)
PROJECT = (".enup", ".svg", *BESIDE)
"""What is read of a project of enuSpace."""
RESULT = "result.page"
IMPORT_SECONDS = 120.0


def decoded(ask: messages.AskImport) -> dict[str, bytes]:
    """The files of a request; ValueError for bad base64."""
    try:
        return {file.name: base64.b64decode(file.base64, validate=True) for file in ask.files}
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def read_files(files: Mapping[str, bytes], uploads: Path, memory: int) -> tuple[list[Page], list[str]]:
    """The page in some files that belong together, or the pages of a project, and what was changed or lost on the way.

    They are parsed in a child process, which leaves page files beside them.
    """
    folder = uploads / secrets.token_hex(8)
    folder.mkdir()
    try:
        path = _placed(folder, files)
        report = isolated(brought, str(path), str(folder), about=path.name, seconds=IMPORT_SECONDS, memory=memory)
        pages = [page_file.load(one) for one in sorted(folder.glob(f"{RESULT}*{page_file.SUFFIX}"))]
        return pages, [str(line) for line in report]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def brought(path: str, folder: str) -> list[str]:
    """In the child: read what came, leave its pages in the folder, tell what was changed or lost."""
    try:
        pages, report = _read_project(Path(path)) if Path(path).name == _FOLDER else _read(Path(path))
    except VoxgradError as error:
        # The person knows the file, not the folder that it was put into.
        plain = str(Path(path).parent) + "/"
        raise type(error)([_without(plain, fault) for fault in error.faults]) from None
    for number, page in enumerate(pages):
        page.save(Path(folder, f"{RESULT}.{number:04}{page_file.SUFFIX}"))
    return report


def _without(folder: str, fault: Fault) -> Fault:
    return Fault(**{key: text.replace(folder, "") for key, text in fault.as_dict().items()})


def _placed(folder: Path, files: Mapping[str, bytes]) -> Path:
    if all(_ZARR.match(name) for name in files):
        return _place_store(folder, files)
    endings = [name.lower().rpartition(".")[2] for name in files]
    if "enup" in endings or endings.count("svg") > 1:
        return _place_project(folder, files)
    placed = [path for name, data in files.items() if (path := _place(folder, name, data)).suffix not in BESIDE]
    if len(placed) != 1:
        wanted = "be one page or volume, with what belongs to it"
        raise InvalidArgumentError(Fault("VG053", "studio", "files", wanted, f"{len(placed)} of {len(files)}"))
    return placed[0]


def _place(folder: Path, name: str, data: bytes) -> Path:
    """Write a file under a name of ours that keeps the stem and a known ending."""
    plain = name.replace("\\", "/").rpartition("/")[2]
    suffix = next((one for one in (*PAGES, *VOLUMES, *BESIDE) if plain.lower().endswith(one)), None)
    if suffix is None:
        endings = ", ".join((*PAGES, *VOLUMES))
        raise InvalidArgumentError(Fault("VG053", "studio", "name", f"end in one of {endings}", repr(plain[-40:])))
    path = folder / f"{file_stem(plain[: -len(suffix)])}{suffix}"
    path.write_bytes(data)
    return path


_ZARR = re.compile(r"([^/\\]+)\.zarr/(.+)", re.IGNORECASE)
_PART = re.compile(r"\.?[A-Za-z0-9_-][A-Za-z0-9._-]*")


def _place_store(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files of a Zarr folder, whose names say where in it they belong."""
    stem = ""
    for name, data in files.items():
        match = _ZARR.fullmatch(name)
        parts = match[2].split("/") if match is not None else []
        # Old versions of Zarr let an array name pickle as its codec.
        coded = bool(parts) and parts[-1] in (".zarray", ".zmetadata", "zarr.json") and b"pickle" in data
        if match is None or len(parts) > 16 or coded or not all(_PART.fullmatch(part) for part in parts):
            raise InvalidArgumentError(Fault("VG053", "studio", "name", "be a part of a Zarr folder", repr(name[-60:])))
        stem = stem or file_stem(match[1])
        path = folder.joinpath(f"{stem}.zarr", *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / f"{stem}.zarr"


_FOLDER = "project"
_SAFE = re.compile(r"\w[\w .()-]*")


def _place_project(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the pages of a project where their names say; whatever else its folder holds is left out."""
    for name, data in files.items():
        parts = name.replace("\\", "/").split("/")
        if parts[-1].lower().endswith(PROJECT) and len(parts) <= 16:
            safe = [part if _SAFE.fullmatch(part) else file_stem(part) for part in parts[:-1]]
            stem, _, ending = parts[-1].rpartition(".")
            safe.append(f"{stem if _SAFE.fullmatch(stem) else file_stem(stem)}.{ending.lower()}")
            path = folder.joinpath(_FOLDER, *safe)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder / _FOLDER


def _read_project(folder: Path) -> tuple[list[Page], list[str]]:
    from voxgrad.formats.enuspace import import_project

    lists = sorted(folder.rglob("*.enup"))
    pages, report = import_project(lists[0] if len(lists) == 1 else folder)
    if not pages:
        told = "; ".join(map(str, report.lost))
        raise InvalidArgumentError(Fault("VG053", "studio", "files", "hold pages of a project", told))
    lines = [f"{name}: {remark}" for name, found in pages.items() for remark in found.report.remarks]
    return [found.page for found in pages.values()], [*map(str, report.remarks), *lines]


def _read(path: Path) -> tuple[list[Page], list[str]]:
    page, report = _read_page(path)
    return [page], report


def _read_page(path: Path) -> tuple[Page, list[str]]:
    from voxgrad.formats.graphdef import import_graph

    if path.name.endswith(VOLUMES):
        return _volume_page(path)
    if path.suffix == ".pb":
        page, graph = import_graph(path)
        return page, [str(remark) for remark in graph.remarks]
    try:
        return page_file.load(path), []
    except VoxgradError as error:
        if path.suffix != ".svg" or error.faults[0].got != "a picture without one":
            raise
    from voxgrad.formats.enuspace import import_page

    found = import_page(path)
    return found.page, [str(remark) for remark in found.report.remarks]


def _volume_page(path: Path) -> tuple[Page, list[str]]:
    """A page with one block that holds a volume."""
    stem = next(path.name.removesuffix(ending) for ending in VOLUMES if path.name.endswith(ending))
    array = _volume(path)
    report = []
    shape = {3: (1, *array.shape, 1), 4: (1, *array.shape)}.get(array.ndim)
    if shape is not None:
        report.append(f"changed: {stem}: [{_sizes(array.shape)}] became [{_sizes(shape)}], in N, D, H, W, C order")
        array = array.reshape(shape)
    dtype = dtype_of(array.dtype)
    page = Page(stem)
    block = page.add(
        "Const", attrs={"value": array, "dtype": dtype.name if dtype else None}, name=stem, position=(0.0, 0.0)
    )
    report.append(f"noted: {block.name}: {dtype} [{_sizes(array.shape)}]")
    return page, report


def _volume(path: Path) -> Array:
    from voxgrad.volumes.stores import read_file

    return np.ascontiguousarray(read_file(str(path)))


def _sizes(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape))


def read_array(files: Mapping[str, bytes], uploads: Path, memory: int) -> Array:
    """The array of a volume or a table."""
    pages, _ = read_files(files, uploads, memory)
    value = pages[0].blocks[0].attrs.get("value") if len(pages[0].blocks) == 1 else None
    if not isinstance(value, np.ndarray):
        endings = ", ".join(VOLUMES)
        raise InvalidArgumentError(
            Fault("VG053", "studio", "name", f"be an array, a file that ends in {endings}", "a page")
        )
    return value


def like(array: Array, shape: tuple[int, ...]) -> Array:
    """An array in a shape that differs from its own in axes of one cell only; else as it is."""
    same = [size for size in shape if size != 1] == [size for size in array.shape if size != 1]
    return array.reshape(shape) if same and shape else array


def attachment(body: bytes, name: str, media_type: str) -> Response:
    """A file to be saved, never shown: browsers must not run what a page brought along."""
    plain = name.encode("ascii", "replace").decode().replace("?", "-")
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    return Response(body, headers={"content-disposition": disposition}, media_type=media_type)


@dataclass(frozen=True, slots=True)
class Results:
    """What an export can show of a run: none where there was none."""

    run: messages.RunData | None
    readings: Readings
    tensors: TensorStore


def export(page: Page, kind: messages.ExportFormat, stem: str, results: Results) -> Response:
    """A page in another form."""
    if kind == "json":
        return attachment(page_file.dumps(page).encode(), f"{stem}{page_file.SUFFIX}", "application/json")
    if kind == "svg":
        return attachment(draw_svg(page, readings=results.readings).encode(), f"{stem}.svg", "image/svg+xml")
    if kind == "png":
        return attachment(draw_png(page, readings=results.readings), f"{stem}.png", "image/png")
    if kind == "report":
        body = report_html(page, run_facts(page, _ran(results.run), results.readings)).encode()
        return attachment(body, f"{stem}-report.html", "text/html; charset=utf-8")
    if kind == "npz":
        return attachment(_results(results.run, results.tensors), f"{stem}.npz", "application/octet-stream")
    return _script(page, "voxgrad" if kind == "python" else "tensorflow", stem)


def picture(page: Page, kind: messages.ExportFormat, drawn: str) -> Response:
    """A picture that the browser has drawn, with the page inside."""
    media = {"svg": "image/svg+xml", "png": "image/png"}.get(kind)
    if media is None:
        raise InvalidArgumentError(Fault("VG053", "studio", "format", "be svg or png where a picture comes", kind))
    try:
        data = base64.b64decode(drawn, validate=True)
    except binascii.Error as error:
        raise InvalidArgumentError(Fault("VG053", "studio", "picture", "be base64", str(error))) from None
    return attachment(with_page(data, page, "picture"), f"page.{kind}", media)


def _script(page: Page, target: str, stem: str) -> Response:
    from voxgrad.formats.script import export_script

    made = export_script(page, target, f"{stem}.py")
    if not made.arrays:
        return attachment(made.text.encode(), f"{stem}.py", "text/x-python; charset=utf-8")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{stem}.py", made.text)
        archive.writestr(f"{stem}.npz", bytes(tensor_files.npz_bytes(made.arrays)))
    return attachment(buffer.getvalue(), f"{stem}.zip", "application/zip")


def _ran(run: messages.RunData | None) -> messages.RunData:
    if run is None:
        raise VoxgradError(Fault("VG050", "studio", "run", "have run before its results are exported", "no run"))
    return run


def _results(run: messages.RunData | None, tensors: TensorStore) -> bytes:
    run = _ran(run)
    found = {
        f"{block.block}.{output.name}".replace("/", "."): tensors.open(output.hash)
        for block in run.blocks
        for output in block.outputs
        if output.hash is not None
    }
    return bytes(tensor_files.npz_bytes(found))
