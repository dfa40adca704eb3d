# SPDX-License-Identifier: Apache-2.0
"""A folder in which packages are found while a test runs, and of which nothing is left behind it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from voxgrad.blocks import ops, raw_ops
from voxgrad.catalog import packages


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where packages are installed to; processes that the test starts find them, too."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    loaded = set(sys.modules)
    packages.forget()
    yield folder
    for functions in (raw_ops, ops):
        for name in packages.names():
            vars(functions).pop(name, None)
    for name in set(sys.modules) - loaded:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    packages.forget()
