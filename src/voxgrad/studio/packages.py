# SPDX-License-Identifier: Apache-2.0
"""Packages of blocks in the studio: each is tried in a child before the server loads its declarations.

The server never runs the functions of a package; its workers do, which may be killed. A package whose import crashes,
hangs or takes all memory is one that does not load, and the studio goes on.
"""

from __future__ import annotations

from voxgrad.catalog import packages
from voxgrad.errors import VoxgradError
from voxgrad.isolation import isolated

SECONDS = 20.0
"""As long as the import of a package may take."""
MEMORY = 2**34


def load(name: str) -> str:
    """Load a package in this process; why it does not load, or ""."""
    found = packages.package(name)
    return found.error if found is not None else ""


def tried(name: str) -> str:
    """Why a package does not load, found out in a child; or ""."""
    try:
        return str(isolated(load, name, about=name, seconds=SECONDS, memory=MEMORY))
    except VoxgradError as error:
        fault = error.faults[0]
        if fault.code == "VG021":
            return f"its import has not ended after {SECONDS:g} s"
        return f"its import ended in {fault.got}"


def try_all_first() -> None:
    """From now on no package is loaded in this process that was not tried before."""
    packages.try_first(tried)
