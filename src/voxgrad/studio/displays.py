# SPDX-License-Identifier: Apache-2.0
"""Displays on the screen: drawn here, from the results of a run, by the code that draws them in pictures."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np

from voxgrad.errors import VoxgradError
from voxgrad.formats.picture.displays import draw_display, spoken
from voxgrad.formats.picture.marks import Mark
from voxgrad.formats.picture.svg import data_uri
from voxgrad.graph.page import Page
from voxgrad.graph.readings import Curve, Readings
from voxgrad.studio import messages
from voxgrad.studio.tensors import Array, TensorStore

KEPT_PAGES = 32


class PageCurves:
    """Numbers over cycles, per page, as the workers tell them."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, Readings] = OrderedDict()

    def start(self, page: str, keep: bool) -> None:
        """A run begins, afresh or where the last one has stopped."""
        found = self._pages.pop(page, None) if keep else None
        self._pages[page] = found or Readings()
        while len(self._pages) > KEPT_PAGES:
            self._pages.popitem(last=False)

    def note(self, page: str, event: messages.ScalarEvent) -> None:
        """A block gave a number."""
        self._pages.setdefault(page, Readings()).note(*point_of(event))

    def of(self, page: str) -> dict[str, Curve]:
        """All curves of a page, by the paths of what they show."""
        found = self._pages.get(page)
        return {} if found is None else {path: list(curve) for path, curve in list(found.over.items())}


def point_of(event: messages.ScalarEvent) -> tuple[str, int, float]:
    """The path of a number, its cycle, and the number."""
    return f"{event.block}.{event.output}", event.cycle, math.nan if event.value is None else event.value


def readings_of(
    page: Page, run: messages.RunData | None, curves: dict[str, Curve], tensors: TensorStore, before: str = ""
) -> Readings:
    """What the displays of a page show after a run. `before` stands before the names of its blocks in the run."""
    readings = Readings()
    readings.over = {path.removeprefix(before): curve for path, curve in curves.items() if path.startswith(before)}
    blocks = {block.block: block for block in run.blocks} if run is not None else {}
    for output in {one.output for display in page.displays for one in display.of}:
        ran = blocks.get(before + output.block.name)
        found = next((one for one in ran.outputs if one.name == output.pin), None) if ran is not None else None
        value = None if found is None else _value(found, tensors)
        if value is not None:
            readings.last[output.path] = value
    return readings


def _value(output: messages.OutputData, tensors: TensorStore) -> Array | None:
    if output.hash is not None:
        try:
            return tensors.open(output.hash)
        except VoxgradError:
            return None
    texts = [text.encode() for text in output.summary.values]
    made = np.empty(len(texts), object)
    made[:] = texts
    return made.reshape(output.shape) if math.prod(output.shape) == len(texts) else made


def drawn(page: Page, readings: Readings) -> messages.DrawnDisplays:
    """All displays of a page, drawn."""
    return messages.DrawnDisplays(
        displays=[
            messages.DrawnDisplay(
                name=display.name,
                marks=[_mark(mark) for mark in draw_display(display, readings)],
                says=spoken(display, readings),
            )
            for display in page.displays
        ]
    )


def _mark(mark: Mark) -> messages.MarkData:
    return messages.MarkData(
        form=mark.form,
        points=[round(float(one), 2) for point in mark.points for one in point],
        style=mark.style,
        size=round(mark.size, 2),
        text=mark.text,
        anchor=mark.anchor,
        image="" if mark.pixels is None else data_uri(mark),
    )
