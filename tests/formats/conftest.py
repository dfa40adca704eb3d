# SPDX-License-Identifier: Apache-2.0
"""What several tests of formats read."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All original pages of enuSpace in one folder."""
    folder = tmp_path_factory.mktemp("originals")
    for file in Path(__file__).with_name("enuspace").iterdir():
        data = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
        (folder / file.name.removesuffix(".xz")).write_bytes(data)
    return folder
