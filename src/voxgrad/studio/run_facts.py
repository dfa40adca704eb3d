# SPDX-License-Identifier: Apache-2.0
"""A run of the history as the facts of a report."""

from __future__ import annotations

from voxgrad.errors import Fault
from voxgrad.formats.run_report import FEW, BlockFacts, OutputFacts, RunFacts
from voxgrad.graph.block import outermost
from voxgrad.graph.page import Page
from voxgrad.graph.readings import Readings
from voxgrad.studio import engines, messages


def run_facts(page: Page, run: messages.RunData, readings: Readings) -> RunFacts:
    """What a report tells of a run of this page."""
    order = {block.name: at for at, block in enumerate(page.blocks)}
    blocks = sorted(run.blocks, key=lambda one: order.get(outermost(one.block, order), len(order)))
    faults = [] if run.error is None else [Fault(**one.model_dump()) for one in run.error.faults]
    version = next((one.version for one in engines.found() if one.name == run.engine), "")
    versions = {run.engine: version} if version and run.engine != "cpu" else {}
    seconds = run.seconds
    if run.times is not None:
        versions["times"] = f"the median of {run.times.count} cold runs, which keep nothing from before"
        seconds = run.times.median
    told = [_block(one) for one in blocks]
    return RunFacts(run.engine, run.state, run.started, seconds, run.cycles, told, readings, faults, versions)


def _block(run: messages.BlockRun) -> BlockFacts:
    outputs = tuple(_output(one) for one in run.outputs)
    seconds = run.times.median if run.times is not None else run.seconds if run.state == "done" else None
    error = "" if run.error is None else run.error.message
    return BlockFacts(run.block, run.state, run.reason, seconds, outputs, error)


def _output(data: messages.OutputData) -> OutputFacts:
    at_a_glance = data.summary
    bad = at_a_glance.nan + at_a_glance.infinite
    first = tuple(at_a_glance.values[: FEW + 1])
    return OutputFacts(
        data.name, data.dtype, tuple(data.shape), at_a_glance.min, at_a_glance.mean, at_a_glance.max, bad, first
    )  # fmt: skip
