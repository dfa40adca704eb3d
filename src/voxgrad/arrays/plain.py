# SPDX-License-Identifier: Apache-2.0
"""Plain arguments of functions (`ksize=2`, `padding=1`, `(1, 2, 2)`) to what the declarations of ops take."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import geometry
from voxgrad.errors import Fault, InvalidArgumentError, safe_repr

Three = int | Sequence[int]
Padding = str | int | Sequence[int] | Sequence[Sequence[int]]


def three(function: str, name: str, value: Three) -> list[int]:
    """One number for all axes, or depth, height and width."""
    try:
        values = [operator.index(item) for item in ([value] * 3 if not isinstance(value, Sequence) else value)]
    except TypeError:
        values = []
    small = all(abs(one) < 2**63 for one in values)
    if len(values) != 3 or not small:
        wanted = "be a number or three of them" if small else "hold numbers of 64 bits"
        raise InvalidArgumentError(Fault("VG003", function, name, wanted, safe_repr(value)))
    return values


def padding_text(function: str, value: Padding) -> str:
    """SAME, VALID, or cells before and behind each axis, from a text, a number, three of them or three pairs."""
    if isinstance(value, str):
        written = value
    else:
        entries = list(value) if isinstance(value, Sequence) else [value]
        pairs = [entry if isinstance(entry, Sequence) else [entry] for entry in entries]
        written = ",".join(":".join(map(str, pair)) for pair in pairs)
    found = written if written in geometry.PADDINGS else geometry.explicit(written)
    if found is None:
        wanted = "be 'SAME', 'VALID', a number of cells, three of them, or three pairs"
        raise InvalidArgumentError(Fault("VG003", function, "padding", wanted, safe_repr(value)))
    return found


def transposed_sizes(
    spatial: Sequence[Any], taps: Sequence[int], attrs: dict[str, Any], more: Sequence[int]
) -> list[Any]:
    """The sizes that a transposed convolution makes of these: the smallest that a convolution maps back, and `more`."""
    sizes = []
    stated = geometry.paddings(attrs["padding"])
    for size, window, step, spread, padding, extra in zip(
        spatial, taps, attrs["strides"], attrs["dilations"], stated, more, strict=True
    ):
        whole = (size - 1) * step + geometry.reach(window, spread)
        around = sum(padding) if isinstance(padding, tuple) else 0
        sizes.append((size * step if padding == geometry.SAME else whole - around) + extra)
    return sizes
