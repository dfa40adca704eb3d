# SPDX-License-Identifier: Apache-2.0
"""Page files of earlier versions, brought to the current one step by step.

A version is frozen once it was released: its sample stays in the tests, and a change of the format raises VERSION and
adds one step here. Steps work on the JSON data before anything else looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VERSION = 1
"""The version of page files that is written."""

Step = Callable[[dict[str, Any]], dict[str, Any]]

STEPS: dict[int, Step] = {}
"""Per version, the step from it to the next one."""


def migrate(data: dict[str, Any], steps: dict[int, Step] | None = None, version: int = VERSION) -> dict[str, Any]:
    """The data in the current version; `data["version"]` must be an integer up to it."""
    steps = STEPS if steps is None else steps
    while data["version"] < version:
        data = steps[data["version"]](data) | {"version": data["version"] + 1}
    return data
