# SPDX-License-Identifier: Apache-2.0
"""Where things stand on a page: transforms of groups, one inside of another, and lengths with their units."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from voxgrad.formats.enuspace.xml_tree import Element

PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}
"""How many pixels a unit of length has."""

_LENGTH = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-z]*)\s*")
_TRANSFORM = re.compile(r"(translate|rotate|scale|matrix)\(([^()]*)\)")
_SEPARATOR = re.compile(r"[\s,]+")


def length(text: str) -> float:
    """A length in pixels: `12.5`, `10mm`; 0 for a text that is none."""
    match = _LENGTH.fullmatch(text)
    try:
        found = float(match[1]) * PIXELS[match[2]] if match else 0.0
    except (ValueError, KeyError):
        return 0.0
    return found if math.isfinite(found) else 0.0


class Placement(NamedTuple):
    """From coordinates inside of an element to those of the page: `x a + y c + e` and `x b + y d + f`."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point on the page; the corner where there is none."""
        found = (x * self.a + y * self.c + self.e, x * self.b + y * self.d + self.f)
        return found if all(map(math.isfinite, found)) else (0.0, 0.0)

    def inside(self, transform: str) -> Placement:
        """The coordinates inside of an element with a transform, such as `translate(9,2) rotate(90) scale(2)`."""
        made = self
        for kind, text in _TRANSFORM.findall(transform):
            made = made._then(_matrix(kind, [length(part) for part in _SEPARATOR.split(text.strip())]))
        return made

    def _then(self, other: Placement) -> Placement:
        return Placement(
            self.a * other.a + self.c * other.b,
            self.b * other.a + self.d * other.b,
            self.a * other.c + self.c * other.d,
            self.b * other.c + self.d * other.d,
            *self.at(other.e, other.f),
        )


def _matrix(kind: str, values: list[float]) -> Placement:
    if kind == "matrix":
        return Placement(*values) if len(values) == 6 else Placement()
    first, second, third = (*values, 0.0, 0.0)[:3]
    if kind == "translate":
        return Placement(e=first, f=second)
    if kind == "scale":
        return Placement(a=first, d=second if len(values) > 1 else first)
    sine, cosine = math.sin(math.radians(first)), math.cos(math.radians(first))
    turned = Placement(cosine, sine, -sine, cosine)
    x, y = turned.at(second, third)
    return turned._replace(e=second - x, f=third - y)


def walk_placed(root: Element, closed: Collection[str]) -> Iterator[tuple[Element, Placement]]:
    """All elements in document order, with the coordinates inside of each; not what is inside of elements named in
    `closed`. The transform of the root is how far the editor had zoomed, and counts for nothing."""
    stack = [(root, Placement())]
    while stack:
        element, placement = stack.pop()
        yield element, placement
        if element.name not in closed:
            inner = [(child, placement.inside(child.get("transform"))) for child in element.children]
            stack.extend(reversed(inner))
