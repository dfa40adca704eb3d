# SPDX-License-Identifier: Apache-2.0
"""`voxgrad run --report`: what a run did, written down also where it failed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from voxgrad.errors import Fault, VoxgradError
from voxgrad.formats.run_report import BlockFacts, OutputFacts, RunFacts, report_html
from voxgrad.formats.tensor_files import bad_file, replace_file
from voxgrad.graph import report as states
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.graph.values import Array


@contextlib.contextmanager
def reporting(name: str | None, page: Page, session: ClientSession) -> Iterator[ClientSession]:
    """A session whose run is written into a file when it has ended, in whatever way; without a name nothing is."""
    if name is None:
        yield session
        return
    if not name.lower().endswith((".html", ".htm")):
        raise bad_file(name, "end in .html", Path(name).suffix or "no suffix")
    values: dict[str, list[Array | None]] = {}

    def take(block: str, made: list[Array | None]) -> None:
        # A variable may write into its memory again.
        values[block] = [None if value is None else np.array(value) for value in made]

    session.on_values = take
    started, begun = time.time(), time.perf_counter()
    faults: tuple[Fault, ...] = ()
    state = "done"
    try:
        yield session
    except KeyboardInterrupt:
        state = "stopped"
        raise
    except VoxgradError as error:
        state, faults = "failed", error.faults
        raise
    finally:
        seconds = time.perf_counter() - begun
        cycles = max(0, session.runs - bool(page.initializers))
        facts = RunFacts(
            session.device.name, state, started, seconds, cycles, _blocks(page, session, values), session.readings, faults
        )
        replace_file(Path(name), report_html(page, facts).encode())


def _blocks(page: Page, session: ClientSession, values: dict[str, list[Array | None]]) -> list[BlockFacts]:
    """What the last cycle did with the blocks that it needed."""
    found = []
    for one in session.report:
        if one.state == states.UNNEEDED:
            continue
        made = values.get(one.block, []) if one.state in (states.RAN, states.CACHED) else []
        names = page.block(one.block).output_names if one.block in page else [str(at) for at in range(len(made))]
        outputs = [OutputFacts.of(pin, value) for pin, value in zip(names, made, strict=False) if value is not None]
        seconds = one.seconds if one.state == states.RAN else None
        error = one.reason if one.state == states.FAILED else ""
        found.append(BlockFacts(one.block, one.state, one.reason, seconds, tuple(outputs), error))
    return found
