# SPDX-License-Identifier: Apache-2.0
"""What blocks, pages and displays can be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voxgrad.errors import Fault, InvalidArgumentError

MOST_LETTERS, MOST_SCOPES = 1000, 32


def checked_title(name: Any) -> str:
    """The title of a page."""
    if isinstance(name, str) and 0 < len(name) <= MOST_LETTERS and name.isprintable():
        return name
    wanted = f"be printable text of at most {MOST_LETTERS:,} letters"
    raise InvalidArgumentError(Fault("VG061", "Page", "name", wanted, repr(name)[:60]))


def checked_part(part: Any) -> str:
    """A part of a block's name: printable, not empty, without the marks that stand between names."""
    if isinstance(part, str) and part and part.isprintable() and not set(part) & set(":/^") and part == part.strip():
        return part
    wanted = "be printable text without ':', '/', '^' or blanks at its ends"
    raise InvalidArgumentError(Fault("VG061", "Page", "name", wanted, repr(part)[:60]))


def checked_path(name: str) -> str:
    """A name with its scopes. Every scope is known by its whole name, so that there cannot be any number of them."""
    parts = name.split("/", MOST_SCOPES + 1)
    if len(name) > MOST_LETTERS or len(parts) > MOST_SCOPES:
        wanted = f"have at most {MOST_LETTERS:,} letters in {MOST_SCOPES} scopes"
        raise InvalidArgumentError(Fault("VG061", "Page", "name", wanted, repr(name[:60])))
    for part in parts:
        checked_part(part)
    return name


def free_name(name: str, is_taken: Callable[[str], bool], counters: dict[str, int]) -> str:
    """The name, or the name with the first free number behind it: `x`, `x_1`, `x_2`."""
    if not is_taken(name):
        return name
    number = counters.get(name, 0) + 1
    while is_taken(f"{name}_{number}"):
        number += 1
    # The next search starts here, and finds the number taken if the name was used.
    counters[name] = number - 1
    return f"{name}_{number}"
