# SPDX-License-Identifier: Apache-2.0
"""The library of pages in the studio: `library/` in the folder that is open, and that of the person behind it."""

from __future__ import annotations

from dataclasses import replace

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Spec
from voxgrad.formats.library import FOLDER, Kept, Library
from voxgrad.graph.page import Origin, Page
from voxgrad.graph.problems import Fix, PinProblem
from voxgrad.studio import messages
from voxgrad.studio.documents import Documents, page_at


def listed(library: Library) -> messages.KeptPages:
    """All pages of the library, each as the palette shows an op."""
    entries = library.entries()
    return messages.KeptPages(
        pages=[_as_op(one) for one in entries if not one.error],
        broken=[messages.BrokenPage(name=one.name, error=one.error) for one in entries if one.error],
        where=FOLDER,
    )


def _as_op(kept: Kept) -> messages.OpData:
    inputs = [
        messages.OpInput(
            name=pin, types=_types(spec), type_var=None, shape=_shape(spec), host=False, many=False, doc="", layout=""
        )
        for pin, spec in kept.inputs.items()
    ]
    outputs = [
        messages.OpOutput(
            name=pin, types=_types(spec), type_var=None, shape=_shape(spec), many=False, doc="", layout="", count=""
        )
        for pin, spec in kept.outputs.items()
    ]
    return messages.OpData(
        name=kept.name, group=FOLDER, family=False, package="", summary=kept.about, doc="", laws=[], example="",
        inputs=inputs, attrs=[], outputs=outputs, aliases=[], differentiable=True, stateful=False,
    )  # fmt: skip


def _types(spec: Spec) -> list[str]:
    return [spec.dtype.name] if spec.dtype is not None else [one.name for one in dtypes.ALL]


def _shape(spec: Spec) -> str:
    return "" if spec.shape is None else f"[{', '.join(map(str, spec.shape))}]"


def newer(library: Library, documents: Documents, page: Page) -> list[PinProblem]:
    """What the library has newer versions of. Large constants of a fix lie with those of other documents."""
    return [replace(one, fixes=tuple(_as_sent(fix, documents) for fix in one.fixes)) for one in library.newer(page)]


def _as_sent(fix: Fix, documents: Documents) -> Fix:
    (edit,) = fix.edits
    pages = {}
    for name, data in edit["pages"].items():
        document = documents.write(Page.from_dict(data))
        pages[name] = {key: value for key, value in document.items() if key not in ("format", "version")}
    return Fix(fix.title, ({**edit, "pages": pages},))


def keep(library: Library, documents: Documents, ask: messages.AskKeep) -> messages.PageKept:
    """Write a page into the library. An inner page remembers that it lies there."""
    page = documents.read(ask.document)
    inner = page_at(page, ask.path)
    made = library.keep(inner, ask.name, ask.replace)
    if ask.path:
        inner.origin = Origin(made.name, made.version)
    return messages.PageKept(name=made.name, document=documents.write(page))
