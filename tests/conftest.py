# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hypothesis
import pytest

# How fast a machine is, or how much else it does, is nothing that a test here decides about.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What drives a browser takes longest and waits most: where the tests run in parallel, it begins."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)
