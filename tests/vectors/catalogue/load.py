# SPDX-License-Identifier: Apache-2.0
"""Read the recorded TensorFlow answers. Needs NumPy and ml_dtypes, never TensorFlow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.vectors.load import load_pools

from .cases import Array, Case
from .sessions import Step

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Recorded:
    """A case and TensorFlow's answer."""

    id: str
    case: Case
    outputs: list[Any]
    gradients: dict[str, Any]


@dataclass(frozen=True)
class RecordedStep:
    """A step, and what every variable holds after one and after two of them."""

    id: str
    step: Step
    after: list[dict[str, Array]]


class Archive:
    """The manifest with its arrays."""

    def __init__(self) -> None:
        self.manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
        self.pools = load_pools(HERE / self.manifest["data"], self.manifest["sha256"])

    def take(self, entry: Any) -> Any:
        """The array, or the list of arrays, that a manifest entry stands for."""
        if isinstance(entry, dict):
            flat = np.empty(len(entry["text"]), dtype=object)
            flat[:] = [one.encode("latin-1") for one in entry["text"]]
            return flat.reshape(entry["shape"])
        if not entry or not isinstance(entry[0], str):
            return [self.take(one) for one in entry]
        name, shape, at = entry
        count = int(np.prod(shape, dtype=np.int64))
        return self.pools[name][at : at + count].reshape(shape)


@cache
def archive() -> Archive:
    """The recorded answers, read once."""
    return Archive()


@cache
def recorded() -> tuple[Recorded, ...]:
    """All recorded cases, in manifest order."""
    source = archive()
    made = []
    for number, entry in enumerate(source.manifest["cases"]):
        inputs = {name: source.take(value) for name, value in entry["inputs"].items()}
        outputs = [source.take(one) for one in entry["outputs"]]
        gradients = {name: source.take(value) for name, value in entry.get("gradients", {}).items()}
        case = Case(entry["op"], inputs, entry.get("attrs", {}), tuple(gradients), len(outputs))
        made.append(Recorded(f"{number}-{entry['op']}", case, outputs, gradients))
    return tuple(made)


@cache
def recorded_steps() -> tuple[RecordedStep, ...]:
    """All recorded steps, in manifest order."""
    source = archive()
    made = []
    for number, entry in enumerate(source.manifest["steps"]):
        variables, inputs = (
            {name: source.take(value) for name, value in entry[key].items()} for key in ("variables", "inputs")
        )
        after = [{name: source.take(value) for name, value in one.items()} for one in entry["after"]]
        made.append(
            RecordedStep(f"{number}-{entry['op']}", Step(entry["op"], variables, inputs, entry["attrs"]), after)
        )
    return tuple(made)


@cache
def declarations() -> dict[str, Any]:
    """Every op as TensorFlow declares it."""
    found: dict[str, Any] = json.loads((HERE / "declarations.json").read_text(encoding="utf-8"))
    return found
