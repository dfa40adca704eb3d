# SPDX-License-Identifier: Apache-2.0
"""The page file, `*.vox.json`: a contract with a version, a published schema and a canonical text.

    save(page, "second_order.vox.json")
    page = load("second_order.vox.json")

No code and no results are in it. Large constants stand beside it, in `second_order.data/`, under their checksums. A
save is one step: whoever reads, or whatever crashes, finds the old page or the new one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxgrad.catalog import registry
from voxgrad.errors import Fault, VoxgradError
from voxgrad.formats import json_text
from voxgrad.formats.constants import Arrays, Reader, Writer
from voxgrad.formats.json_text import broken
from voxgrad.formats.migrations import STEPS, VERSION, migrate
from voxgrad.formats.tensor_files import bad_file, replace_file
from voxgrad.graph.data import MOST_FAULTS
from voxgrad.graph.page import Page
from voxgrad.kernels.arraywise.files import Files

FORMAT = "voxgrad-page"
SUFFIX = ".vox.json"
SCHEMA = Path(__file__).with_name("page.schema.json")
"""The published JSON Schema of the current version."""

_PAGE_KEYS = (
    "name", "semantics", "blocks", "inputs", "outputs", "targets", "initializers", "pages", "displays", "groups",
    "notes", "origin",
)  # fmt: skip
_BLOCK_KEYS = ("name", "op", "page", "attrs", "inputs", "typed", "control", "position", "mode")
_STALE_SECONDS = 3600


def save(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page, and its large constants into a folder beside it."""
    target = Path(os.path.realpath(path))
    folder = target.with_name(f"{target.name.removesuffix(SUFFIX).removesuffix('.json')}.data")
    writer = Writer(folder)
    try:
        if folder.is_symlink():
            raise bad_file(folder, "be a folder", "a link, which is not followed", code="VG056")
        text = _text(page, writer)
    except OSError as error:
        raise bad_file(target, "be a place that can be written to", error.strerror or error) from None
    replace_file(target, text.encode())
    _sweep(target, folder, writer.files)


def _sweep(target: Path, folder: Path, used: set[str]) -> None:
    """Take away constants that the page no longer speaks of, and what a killed save has left."""
    for file in folder.glob("*.npy") if folder.is_dir() else ():
        if re.fullmatch(r"[0-9a-f]{16}\.npy", file.name) and file.name not in used:
            file.unlink(missing_ok=True)
    for place, name in ((target.parent, target.name), (folder, "*")):
        for file in place.glob(f".{name}.*.tmp") if place.is_dir() else ():
            if time.time() - file.stat().st_mtime > _STALE_SECONDS:
                file.unlink(missing_ok=True)


def dumps(page: Page) -> str:
    """The page as one text that needs no other file; large constants are inside."""
    return _text(page, Writer(None))


def to_data(page: Page, folder: Path | None = None, known: Arrays | None = None) -> dict[str, Any]:
    """The page as JSON data. Large constants go into the folder, or into the data where there is none."""
    return _data(page, Writer(folder, known))


def _data(page: Page, writer: Writer) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION} | _encode_page(page.to_dict(), writer)


def _text(page: Page, writer: Writer) -> str:
    return json_text.write_json(_data(page, writer))


def _encode_page(data: Mapping[str, Any], writer: Writer) -> dict[str, Any]:
    made = {key: data[key] for key in _PAGE_KEYS if key in data}
    made["blocks"] = [_encode_block(block, writer) for block in data["blocks"]]
    if "pages" in made:
        made["pages"] = {name: _encode_page(inner, writer) for name, inner in made["pages"].items()}
    if "displays" in made:
        made["displays"] = [_encode_display(display) for display in made["displays"]]
    return made


def _encode_display(display: Mapping[str, Any]) -> dict[str, Any]:
    return {**display, **{key: [_coordinate(value) for value in display[key]] for key in ("position", "size")}}


def _encode_block(block: Mapping[str, Any], writer: Writer) -> dict[str, Any]:
    made = {key: block[key] for key in _BLOCK_KEYS if key in block}
    declared = registry.OPS.get(made.get("op", ""))
    order = [item.name for item in declared.parameters] if declared else []
    if "attrs" in made:
        made["attrs"] = {name: writer.encode(made["attrs"][name]) for name in _ordered(made["attrs"], order)}
    if "inputs" in made:
        made["inputs"] = {
            pin: [_encode_source(source, writer) for source in made["inputs"][pin]]
            for pin in _ordered(made["inputs"], order)
        }
    if "position" in made:
        made["position"] = [_coordinate(value) for value in made["position"]]
    return made


def _ordered(names: Mapping[str, Any], order: list[str]) -> list[str]:
    """Names as the op declares them, then the unknown ones by alphabet."""
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def _encode_source(source: Mapping[str, Any], writer: Writer) -> dict[str, Any]:
    return {**source, "value": writer.encode(source["value"])} if "value" in source else dict(source)


def _coordinate(value: float) -> float | int:
    rounded = round(float(value), 2)
    return int(rounded) if rounded.is_integer() else rounded


def load(path: str | os.PathLike[str]) -> Page:
    """The page in a page file, or in an SVG or PNG picture that was drawn from a page."""
    file = Path(path)
    data = _read(file)
    if file.suffix.lower() in (".svg", ".png"):
        from voxgrad.formats.picture import embedded_page

        page = loads(embedded_page(data, file.name), file.name)
    else:
        page = loads(data, file.name, file.resolve().parent)
    page.files = Files.beside(file)
    return page


def _read(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():
            raise bad_file(file, "be a file", "a folder or a device")
        with file.open("rb") as stream:
            data = stream.read(json_text.MAX_BYTES + 1)
    except OSError as error:
        raise bad_file(file, "be a file that can be read", error.strerror or error) from None
    except ValueError as error:
        raise bad_file(repr(str(file)), "be the name of a file", error) from None
    return data


def loads(data: bytes | str, source: str = "page", folder: Path | None = None) -> Page:
    """The page in a text. Constants in files are read from `folder`, and from nowhere else."""
    value, text = json_text.read_json(data.encode() if isinstance(data, str) else data, source)
    return from_data(value, source, folder, text)


def from_data(
    value: Any, source: str = "page", folder: Path | None = None, text: str = "", known: Arrays | None = None
) -> Page:
    """The page in JSON data that was read already. With its text, errors show the line."""
    places = json_text.Places(text)
    current = migrate(_checked_head(value, text, source))
    decoder = _Decoder(places, source, folder, known)
    plain = decoder.page({key: item for key, item in current.items() if key not in ("format", "version")}, ())
    if decoder.faults:
        raise VoxgradError(decoder.faults)
    try:
        return Page.from_dict(plain)
    except VoxgradError as error:
        raise VoxgradError([_placed(fault, places, source) for fault in error.faults]) from None


def edits_from_data(edits: Any, folder: Path | None = None, known: Arrays | None = None) -> list[dict[str, Any]]:
    """Edits (`voxgrad.graph.edits`) in JSON data, one or several, with the values that it stands for."""
    decoder = _Decoder(json_text.Places(""), "edits", folder, known)
    made = [decoder.edit(one, (at,)) for at, one in enumerate(edits if isinstance(edits, list) else [edits])]
    if decoder.faults:
        raise VoxgradError(decoder.faults)
    return made


def _checked_head(value: Any, text: str, source: str) -> dict[str, Any]:
    """The document, if it says that it is a page of a version that can be read."""
    if not isinstance(value, dict):
        raise VoxgradError(broken(source, "be an object", type(value).__name__))
    if value.get("format") != FORMAT:
        got = repr(value.get("format", "no format"))[:60]
        raise VoxgradError(broken(source, f'say "format": "{FORMAT}"', got, path=("format",), text=text))
    version = value.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or not min([VERSION, *STEPS]) <= version <= VERSION:
        newer = isinstance(version, int) and version > VERSION
        remedy = "It was written by a newer voxgrad; update this one." if newer else ""
        wanted = f"be a version up to {VERSION}"
        raise VoxgradError(broken(source, wanted, repr(version)[:60], path=("version",), text=text, remedy=remedy))
    return value


class _Decoder:
    """Decodes the values of a page and its inner pages, and leaves the rest of the structure as it is."""

    def __init__(self, text: json_text.Places, source: str, folder: Path | None, known: Arrays | None):
        self.text = text
        self.source = source
        self.faults: list[Fault] = []
        self.values = Reader(folder, self.note, known)

    def note(self, path: json_text.Path, wanted: str, got: object) -> None:
        """Remember a fault with its place; some are enough."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(broken(self.source, wanted, got, path=path, text=self.text))

    def page(self, data: dict[str, Any], path: json_text.Path) -> dict[str, Any]:
        """A page with its values decoded."""
        made = dict(data)
        if isinstance(made.get("blocks"), list):
            made["blocks"] = [
                self._block(block, (*path, "blocks", index)) for index, block in enumerate(made["blocks"])
            ]
        if isinstance(made.get("pages"), dict):
            made["pages"] = {
                name: self.page(inner, (*path, "pages", name)) if isinstance(inner, dict) else inner
                for name, inner in made["pages"].items()
            }
        return made

    def edit(self, data: Any, path: json_text.Path) -> dict[str, Any]:
        """An edit with its values decoded; it holds them as a block does, or blocks as a page does."""
        if not isinstance(data, dict):
            self.note(path, "be an object", type(data).__name__)
            return {}
        made = self.page(self._block(data, path), path)
        return made | {"value": self.values.decode(made["value"], (*path, "value"))} if "value" in made else made

    def _block(self, block: Any, path: json_text.Path) -> Any:
        if not isinstance(block, dict):
            return block
        made = dict(block)
        if isinstance(made.get("attrs"), dict):
            made["attrs"] = {
                name: self.values.decode(value, (*path, "attrs", name)) for name, value in made["attrs"].items()
            }
        if isinstance(made.get("inputs"), dict):
            made["inputs"] = {
                pin: self._sources(sources, (*path, "inputs", pin)) for pin, sources in made["inputs"].items()
            }
        return made

    def _sources(self, sources: Any, path: json_text.Path) -> Any:
        if not isinstance(sources, list):
            return sources
        return [
            source | {"value": self.values.decode(source["value"], (*path, index, "value"))}
            if isinstance(source, dict) and "value" in source
            else source
            for index, source in enumerate(sources)
        ]


def _placed(fault: Fault, text: json_text.Places, source: str) -> Fault:
    """A fault of the structure, whose argument is a place such as `blocks[3].inputs.x[0]`, with its line."""
    path = tuple(
        int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)(?![^\[]*\])|\[(\d+)\]", fault.argument)
    )
    made = broken(source, fault.wanted, fault.got, path=path, text=text, remedy=fault.remedy)
    return Fault(fault.code, made.op, made.argument, made.wanted, made.got, made.remedy, made.where)
