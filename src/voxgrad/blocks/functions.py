# SPDX-License-Identifier: Apache-2.0
"""The functions of a package's ops, as attributes under the names that the package gave them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voxgrad.catalog import packages, registry
from voxgrad.catalog.model import Op
from voxgrad.errors import InvalidArgumentError


class Functions:
    """What one package brings: `functions.Name`. It is loaded when one of them is first asked for."""

    def __init__(self, package: str, make: Callable[[Op], Callable[..., Any]]):
        self._package = package
        self._make = make

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            made = self._make(registry.find(f"{self._package}.{name}"))
        except InvalidArgumentError as error:
            raise AttributeError(str(error)) from None
        self.__dict__[name] = made  # found before this next time
        return made

    def __dir__(self) -> list[str]:
        found = packages.package(self._package)
        return sorted(name.partition(".")[2] for name in found.ops) if found is not None else []

    def __repr__(self) -> str:
        return f"<the ops of {self._package}>"


def of_package(name: str, make: Callable[[Op], Callable[..., Any]]) -> Functions:
    """The functions of a package; one that is not installed is an error that says so."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name not in packages.names():
        listed = ", ".join(packages.names()) or "none"
        raise AttributeError(f"no package {name!r} with blocks is installed; there are: {listed}")
    return Functions(name, make)
