# SPDX-License-Identifier: Apache-2.0
"""The passes of a page that uses a statistic of a whole volume on the volume: norms, softmax over space, and slopes.

A sum over a volume is known when a pass over all chunks has ended; what needs it is made in the next. A pass leaves its
sums, and those volumes that later passes would have to compute again through windows: they go on from there. To each
pass, sums are feeds and these volumes are files, so a pass is a run like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from voxgrad.catalog.model import Spec
from voxgrad.graph.block import Output
from voxgrad.graph.page import Page
from voxgrad.volumes.layout import SMALL, VOLUME, Layout, Roles, lay_out


@dataclass(frozen=True)
class Pass:
    """One walk over all chunks: what it reads of volumes, what it leaves, and how that lies."""

    layout: Layout
    reads: frozenset[Output]
    """The volumes, of files and of earlier passes, that it needs."""
    sums: tuple[Output, ...] = ()
    keeps: tuple[Output, ...] = ()
    """The volumes that it leaves for later passes."""


@dataclass(frozen=True)
class Passes:
    """All passes of a run. `early` are values that nobody must draw twice: variables, random numbers."""

    survey: Layout
    each: tuple[Pass, ...]
    early: tuple[Output, ...] = ()

    def roles(self, one: Pass) -> dict[Output, Roles]:
        """What the dimensions of the volumes of a pass are."""
        return _roles(self.survey, one.reads)

    def is_read(self, volume: Output, after: int) -> bool:
        """Whether a pass behind this one needs a volume."""
        return any(volume in one.reads for one in self.each[after + 1 :])


def passes_of(
    page: Page, volumes: Mapping[Output, Spec], feeds: Mapping[Output, Spec], fetches: Sequence[Output],
    roles: Mapping[Output, Roles],
) -> Passes:  # fmt: skip
    """The passes of a flat page, or an error that names every block in the way. `roles` as in `lay_out`."""
    survey = lay_out(page, volumes, feeds, fetches, roles)
    if not survey.last:
        return Passes(survey, (Pass(survey, frozenset(volumes)),))
    early = _early(survey)
    kept = _kept(survey)
    there, known = dict(volumes), {**feeds, **{output: _spec(survey, output) for output in early}}
    found = []
    for number in range(survey.last):
        sums = [survey.sources[one.outputs[0]] for one in survey.sinks if survey.depths[one.outputs[0]] == number + 1]
        keeps = [survey.sources[slot] for slot in kept if survey.depths[slot] == number]
        layout = lay_out(page, there, known, [*sums, *keeps], _roles(survey, there))
        found.append(Pass(layout, _read(layout), tuple(sums), tuple(keeps)))
        known |= {output: _spec(survey, output) for output in sums}
        there |= {output: _spec(survey, output) for output in keeps}
    layout = lay_out(page, there, known, fetches, _roles(survey, there))
    return Passes(survey, (*found, Pass(layout, _read(layout))), early)


def _roles(survey: Layout, volumes: Iterable[Output]) -> dict[Output, Roles]:
    """What the dimensions of volumes are: a pass of its own may have no windows that say it."""
    slots = {output: slot for slot, output in survey.sources.items()}
    return {output: survey.roles[slots[output]] for output in volumes}


def _spec(survey: Layout, output: Output) -> Spec:
    return survey.inference.spec(output)


def _read(layout: Layout) -> frozenset[Output]:
    read = {slot for piece in layout.pieces for slot in piece.inputs} | set(layout.fetches.values())
    return frozenset(output for output, slot in layout.volumes.items() if slot in read)


def _early(survey: Layout) -> tuple[Output, ...]:
    """What is not cut, is needed with or behind a volume, and might be another value if it was made again."""
    steps = {slot: step for step in survey.plan.steps for slot in step.flat_outputs}
    late = [step for step in survey.plan.steps if any(survey.kinds[slot] != SMALL for slot in step.flat_outputs)]
    read = dict.fromkeys(slot for step in late for slot in step.flat_inputs)
    return tuple(
        survey.sources[slot] for slot in read
        if survey.kinds[slot] == SMALL and slot in steps and steps[slot].volatile
    )  # fmt: skip


def _kept(survey: Layout) -> list[int]:
    """The volumes that a later pass reads, and that cost windows to make again. In the order in which they are made."""
    used: dict[int, int] = dict.fromkeys(survey.fetches.values(), survey.last)
    for piece in survey.pieces:
        number = max(survey.depths[slot] for slot in piece.inputs)
        used |= {slot: max(number, used.get(slot, 0)) for slot in piece.inputs}
    makers = {slot: piece for piece in survey.pieces for slot in piece.outputs}
    dear: set[int] = set()
    kept: dict[int, None] = {}

    def keep(slot: int) -> None:
        """Keep a volume, or where files hold none of its kind, what it is made of."""
        dear.discard(slot)
        if _is_storable(survey.specs[slot]):
            kept[slot] = None
            return
        for source in makers[slot].inputs:
            if source in dear:
                keep(source)

    for piece in survey.pieces:
        if piece.adds or not (piece.problem or piece.wholes or dear.intersection(piece.inputs)):
            continue
        dear.update(piece.outputs)
        for slot in piece.outputs:
            if survey.kinds[slot] == VOLUME and used.get(slot, 0) > survey.depths[slot]:
                keep(slot)
    return list(kept)


def _is_storable(spec: Spec) -> bool:
    assert spec.dtype is not None
    return len(spec.shape or ()) == 5 and spec.dtype.kind in ("float", "int", "uint")
