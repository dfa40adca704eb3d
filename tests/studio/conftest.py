# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("websockets")
pytest.importorskip("httpx")

from tests.studio.serving import Server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=3, help="how often the studio is killed (the bar: 50)")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One studio for all tests that do not harm it."""
    found = Server(tmp_path_factory.mktemp("project"), "--memory", "1")
    yield found
    found.stop()
