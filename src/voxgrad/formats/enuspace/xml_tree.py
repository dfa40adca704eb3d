# SPDX-License-Identifier: Apache-2.0
"""XML from strangers: UTF-16 or UTF-8, no document types, no entities of its own, bounded in size and depth."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat

from voxgrad.errors import Fault, VoxgradError

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 64
MAX_ELEMENTS = 500_000


@dataclass(slots=True)
class Element:
    """An element: its name without a prefix, its attributes, its children, its text and its line."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text between its children."""
        return "".join(self.parts)

    def get(self, name: str, default: str = "") -> str:
        """An attribute."""
        return self.attributes.get(name, default)

    def walk(self, closed: str = "") -> Iterator[Element]:
        """This element and all inside it, in document order; not what is inside of elements named `closed`."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            if element.name != closed:
                stack.extend(reversed(element.children))


def bad_document(source: str, line: int, wanted: str, got: object) -> VoxgradError:
    """The error for a document that breaks its format."""
    place = f"{source}:{line}" if line else source
    return VoxgradError(Fault("VG053", place, "the document", wanted, str(got)))


def parse_xml(data: bytes, source: str) -> Element:
    """The root element of a document."""
    if len(data) > MAX_BYTES:
        raise bad_document(source, 0, f"have at most {MAX_BYTES:,} bytes", f"{len(data):,}")
    text = _decoded(data, source)
    builder = _Builder(source)
    try:
        builder.parser.Parse(text, True)
    except expat.ExpatError as error:
        raise bad_document(source, error.lineno, "be XML", expat.errors.messages[error.code]) from None
    except (UnicodeEncodeError, ValueError) as error:
        raise bad_document(source, 0, "be XML", error) from None
    assert builder.root is not None
    return builder.root


def _decoded(data: bytes, source: str) -> str:
    """The text, without the declaration: it names an encoding that no longer holds."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        wanted = "be UTF-16 with a byte order mark, or UTF-8"
        raise bad_document(source, 0, wanted, f"{error.reason} at byte {error.start}") from None
    if text.startswith("<?xml"):
        end = text.find("?>") + 2
        # The line breaks stay, so that lines keep their numbers.
        text = "\n" * text.count("\n", 0, end) + text[end:]
    return text


class _Builder:
    def __init__(self, source: str):
        self.source = source
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.parser = expat.ParserCreate(namespace_separator=None)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.ExternalEntityRefHandler = self._refuse
        self.parser.UnparsedEntityDeclHandler = self._refuse

    def _refuse(self, *_: Any) -> NoReturn:
        line = self.parser.CurrentLineNumber
        raise bad_document(self.source, line, "have no document type and no entities", "a declaration")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if len(self.open) >= MAX_DEPTH or self.count > MAX_ELEMENTS:
            wanted = f"have at most {MAX_ELEMENTS:,} elements, nested at most {MAX_DEPTH} deep"
            raise bad_document(self.source, self.parser.CurrentLineNumber, wanted, "more")
        plain = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        element = Element(name.rpartition(":")[2], plain, self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _end(self, name: str) -> None:
        self.open.pop()

    def _characters(self, text: str) -> None:
        if self.open:
            self.open[-1].parts.append(text)
