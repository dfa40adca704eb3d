# SPDX-License-Identifier: Apache-2.0
"""What was fastest for problems like one: a table that `bench.choices` measured once, on an H200.

A layer that was measured, with as many channels and about as many positions, is run by what was fastest for it. For
others the order that `tune` tries them in stands: what a layer's neighbours are best run by is no better a guess. Only
speed depends on it.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from voxgrad.catalog.problem import Problem
from voxgrad.kernels.names import KERNELS

if TYPE_CHECKING:
    from voxgrad.kernels.cuda.tune import Choice

Row = tuple[int, int, int, dict[str, float]]
"""Positions, channels in and out of a group, milliseconds of each choice by its label."""
Table = dict[str, list[Row]]
"""Rows by the kind of problem."""

PLACE = Path(__file__).with_name("measured.json")
NEAR = 2.0
"""Times as many positions as were measured, or as few, up to which a layer is the same."""


def kind(problem: Problem, tf32: bool) -> str:
    """What problems must have in common for the same choice to be good."""
    bits = "16" if problem.dtype.itemsize == 2 else problem.dtype.name + (" tf32" if tf32 else "")
    axes = " ".join(f"k{axis.window}s{axis.stride}d{axis.dilation}" for axis in problem.axes)
    groups = " groups" if problem.groups > 1 else ""
    return f"{KERNELS[problem.op]} {bits} {'NDHWC' if problem.channels_last else 'NCDHW'} {axes}{groups}"


def extent(problem: Problem) -> tuple[int, int, int]:
    """How large a problem is: positions, channels in and out of a group."""
    positions = problem.batch * math.prod(axis.out for axis in problem.axes)
    return positions, problem.in_channels // problem.groups, problem.out_channels // problem.groups


def label(choice: Choice, options: list[Choice]) -> str:
    """A choice under a name that it has for other problems, too: splits of a sum are counted, not named."""
    config = choice.config
    if config is None:
        return choice.engine
    tile = tile_of(choice)
    same = [one.config.splits for one in options if one.config and tile_of(one) == tile]
    return f"{tile} #{same.index(config.splits)}"


def tile_of(choice: Choice) -> str:
    """All of a configuration but the splits."""
    config = choice.config
    assert config is not None
    across = " across" if config.across else ""
    return f"{config.kind} {config.bm}x{config.bn}x{config.bk} w{config.warps} s{config.stages}{across}"


@lru_cache(maxsize=2)
def read(place: Path = PLACE) -> Table:
    """The table of a file."""
    made: Table = json.loads(place.read_text())
    return made


def ranked(problem: Problem, options: list[Choice], rows: list[Row]) -> list[Choice]:
    """The options, those first that were fastest for such a layer; the others as they came."""
    positions, *channels = extent(problem)

    def apart(row: Row) -> float:
        return max(row[0] / positions, positions / row[0])

    same = [row for row in rows if [*row[1:3]] == channels and apart(row) <= NEAR]
    times = min(same, key=apart)[3] if same else {}
    return sorted(options, key=lambda one: times.get(label(one, options), math.inf))
