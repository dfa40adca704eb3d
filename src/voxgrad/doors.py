# SPDX-License-Identifier: Apache-2.0
"""The doors through which a room calls one on its right: each is declared here, and loaded when it is first used.

Imports point one way. Where a room on the left must hand something over all the same (a page that is saved, a lazy
array that is planned), it goes through one of these doors; the house test holds everybody to the list.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from voxgrad.loading import LOADING

DOORS = {
    "lazy": ("arrays", "voxgrad.volumes.lazy"),  # calls on lazy arrays are planned, not run
    "volumes": ("graph", "voxgrad.volumes.stores"),  # the files behind Volume blocks
    "page_file": ("graph", "voxgrad.formats.page_file"),  # Page.save, Page.load
    "text": ("graph", "voxgrad.formats.text"),  # values as people type them, in edits
    "picture": ("graph", "voxgrad.formats.picture"),  # a page draws itself in a notebook
}
"""Per door the room that may use it, and the module behind it."""


def through(door: str) -> Any:
    """The module behind a door."""
    with LOADING:
        return import_module(DOORS[door][1])
