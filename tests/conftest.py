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
LONG_SCRIPTS = {"layout": 100, "looks": 70, "desk": 60, "displays": 45, "editing": 40, "safety": 35, "values": 35}
USUAL_SCRIPT = 20


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest begins, a browser before all, so that short files fill up the end of a parallel run."""

    def place(item: pytest.Item) -> int:
        folder = item.path.parent.name
        return LONGEST.index(folder) + 1 if folder in LONGEST else len(LONGEST) + 1

    if not config.pluginmanager.hasplugin("xdist"):
        return  # one process, in the order that it was given: `run mutants` loads no plugins
    items.sort(key=lambda item: 0 if item.get_closest_marker("browser") else place(item))
    # A process takes a file at a time, but for the scripts of the browser, which mostly wait: two go side by side.
    taken = {"browser, one": 0, "browser, two": 0}
    for item in sorted(items, key=_seconds, reverse=True):
        group = str(item.path)
        if item.get_closest_marker("browser"):
            group = min(taken, key=taken.__getitem__)
            taken[group] += _seconds(item)
        item.add_marker(pytest.mark.xdist_group(group))


def _seconds(item: pytest.Item) -> int:
    """About how long a script of the browser takes, so that two rows of them end together."""
    return next((seconds for name, seconds in LONG_SCRIPTS.items() if item.name.endswith(f"[{name}]")), USUAL_SCRIPT)
