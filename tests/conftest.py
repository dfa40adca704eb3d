# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os

import hypothesis
import pytest

# On processors with VNNI TensorFlow takes oneDNN's kernels unless told otherwise before it is first imported: their
# results are those of the semantics `documented`, while `tf_cpu` is what its own kernels do.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
# Some of its random ops give other numbers on several threads, and it counts these when it first runs.
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"

# How fast a machine is, or how much else it does, is nothing that a test here decides about.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

LONGEST = ("studio", "volumes", "catalogue", "kernels", "house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins, a browser before all, so that short tests fill up the end of a parallel run."""

    def place(item: pytest.Item) -> int:
        folder = item.path.parent.name
        return LONGEST.index(folder) + 1 if folder in LONGEST else len(LONGEST) + 1

    items.sort(key=lambda item: 0 if item.get_closest_marker("browser") else place(item))
