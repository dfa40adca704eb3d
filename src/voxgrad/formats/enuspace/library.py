# SPDX-License-Identifier: Apache-2.0
"""The 486 blocks of the enuSpace-Tensorflow library: which op each one is, its pins and their default texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from voxgrad.catalog import registry
from voxgrad.catalog.model import Op

HELPERS = (
    "AddSymbolicGradients", "ClientSession", "FeedType", "Input", "InputList", "Input_Initializer", "Operation",
    "Output", "Status", "Tensor",
)  # fmt: skip
"""Blocks that are no ops: an import gives them their meaning."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A block of the library. `op` is TensorFlow's name of it, None for a helper."""

    name: str
    group: str
    op: str | None
    inputs: tuple[str, ...]
    values: tuple[str, ...]
    outputs: tuple[str, ...]
    defaults: Mapping[str, str]


@lru_cache(maxsize=1)
def library() -> Mapping[str, Symbol]:
    """All blocks, by name."""
    data = json.loads(Path(__file__).with_name("blocks.json").read_text())
    return {name: _symbol(name, entry) for name, entry in data["blocks"].items()}


def _symbol(name: str, entry: Mapping[str, Any]) -> Symbol:
    return Symbol(
        name,
        entry["group"],
        entry.get("op", name),
        tuple(pin for pin in entry["inputs"] if pin != "attrs"),
        tuple(entry.get("values", ())),
        tuple(entry["outputs"]),
        entry.get("defaults", {}),
    )


def op_of(symbol: Symbol) -> Op | None:
    """The op of the catalogue that a block means, or None where there is none yet."""
    for name in (symbol.op, symbol.name):
        if name is None:
            continue
        found = registry.OPS.get(name) or registry.OPS.get(registry.ALIASES.get(name, ""))
        if found is not None:
            return found
    return None


def missing() -> list[Symbol]:
    """The blocks that neither the catalogue nor the import knows."""
    return [symbol for name, symbol in library().items() if name not in HELPERS and op_of(symbol) is None]
