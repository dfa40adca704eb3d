# SPDX-License-Identifier: Apache-2.0
"""The 486 blocks of the enuSpace-Tensorflow library: which op each one is, its pins and their default texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    """A block of the library. `op` is TensorFlow's name of it, None for a helper.

    `attrs_as` is what its pin of attributes was labelled where that kept the original from reading it; a block that is
    not `built` stood in the library, but the original could not make it.
    """

    name: str
    group: str
    op: str | None
    inputs: tuple[str, ...]
    values: tuple[str, ...]
    outputs: tuple[str, ...]
    defaults: Mapping[str, str]
    attrs_as: str = ""
    built: bool = True


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
        entry.get("attrs_as", ""),
        entry.get("built", True),
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


def input_of(op: Op, symbol: Symbol, pin: str) -> str:
    """The name of the op's input behind a pin: the same, or the one at the same place among the unmatched."""
    names = [item.name for item in op.inputs]
    if pin in names:
        return pin
    free_names = [name for name in names if name not in symbol.inputs]
    free_pins = [one for one in symbol.inputs if one not in names]
    if pin in free_pins and len(free_names) == len(free_pins):
        return free_names[free_pins.index(pin)]
    return pin


def symbols_of(op: Op) -> list[Symbol]:
    """The blocks that mean an op."""
    return [library()[name] for name in _symbols_by_op().get(op.name, ())]


@lru_cache(maxsize=1)
def _symbols_by_op() -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for name, symbol in library().items():
        op = op_of(symbol)
        if op is not None:
            found.setdefault(op.name, []).append(name)
    return found


def missing() -> list[Symbol]:
    """The blocks that neither the catalogue nor the import knows."""
    return [symbol for name, symbol in library().items() if name not in HELPERS and op_of(symbol) is None]
