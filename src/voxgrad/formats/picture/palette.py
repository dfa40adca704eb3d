# SPDX-License-Identifier: Apache-2.0
"""Colours of pictures. A colour means a type or a state; there is no decoration."""

from __future__ import annotations

from dataclasses import dataclass

from voxgrad.catalog.dtypes import DType


@dataclass(frozen=True, slots=True)
class Palette:
    """One theme. Text reaches 4.5:1 on the block, wires and pins 3:1 on the page."""

    page: str
    block: str
    head: str
    frame: str
    text: str
    muted: str
    note: str
    wrong: str
    types: dict[str, str]


DARK = Palette(
    page="#16181d",
    block="#23262e",
    head="#2e323c",
    frame="#4a505e",
    text="#f0f2f5",
    muted="#a7afbd",
    note="#c9ced8",
    wrong="#ff8a80",
    types={
        "float": "#7cc4ff",
        "int": "#8fd6a0",
        "bool": "#f2c14e",
        "complex": "#d7a6ff",
        "string": "#ffab91",
        "other": "#b8c0cc",
    },
)
LIGHT = Palette(
    page="#f6f7f9",
    block="#ffffff",
    head="#e9ecf1",
    frame="#b4bcc9",
    text="#14171c",
    muted="#525b6b",
    note="#3a4250",
    wrong="#b3261e",
    types={
        "float": "#0b63a8",
        "int": "#1c6e37",
        "bool": "#8a5a00",
        "complex": "#7a31b0",
        "string": "#a33c17",
        "other": "#4f5866",
    },
)
THEMES = {"dark": DARK, "light": LIGHT}


def style_colour(palette: Palette, style: str) -> str:
    """The colour of a mark's style (`marks.STYLES`)."""
    named = {
        "text": palette.text, "heavy": palette.text, "muted": palette.muted, "frame": palette.frame,
        "panel": palette.block, "track": palette.head, "lit": palette.types["bool"], "wrong": palette.wrong,
    }  # fmt: skip
    curves = {f"curve{at}": colour for at, colour in enumerate(palette.types.values())}
    return (named | curves).get(style, style)


def type_class(dtype: DType | None) -> str:
    """The key in `types` for an element type."""
    if dtype is None:
        return "other"
    kind = "int" if dtype.kind in ("int", "uint") else dtype.kind
    return kind if kind in LIGHT.types else "other"
