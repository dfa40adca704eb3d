# SPDX-License-Identifier: Apache-2.0
"""`voxgrad run --events`: what summary blocks make, cycle by cycle, in a file for TensorBoard."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.events import EventFile, summary_blocks
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.graph.values import Array


@contextlib.contextmanager
def logging(folder: str | None, page: Page, session: ClientSession) -> Iterator[None]:
    """Have the page's summaries executed and written down while its session runs; without a folder nothing is."""
    if folder is None:
        yield
        return
    blocks = summary_blocks(page)
    if not blocks:
        remedy = "Wire a ScalarSummary or a HistogramSummary to what shall be shown, or leave --events away."
        raise InvalidArgumentError(Fault("VG003", page.name, "--events", "be of a page with summaries", "none", remedy))
    if page.outputs or page.targets:
        page.execute(list(dict.fromkeys([*page.targets, *blocks])))
    names, told, steps = {block.name for block in blocks}, session.on_values, Counter[str]()
    with EventFile(folder) as events:

        def take(block: str, made: list[Array | None]) -> None:
            if told is not None:
                told(block, made)
            if block in names and made[0] is not None:
                events.add(made[0].item(), steps[block])
                steps[block] += 1

        session.on_values = take
        yield
