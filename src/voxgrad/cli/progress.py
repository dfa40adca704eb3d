# SPDX-License-Identifier: Apache-2.0
"""Progress of a run: a bar on a terminal, nothing where the output is piped."""

from __future__ import annotations

import importlib
import sys
import time
from types import TracebackType
from typing import Any

from voxgrad.graph.report import Progress

_INTERVAL = 0.1
"""Seconds between two drawings; more would slow the run down."""


class ProgressLine:
    """Shows which block runs. Uses rich where it is installed, else one line that is written over."""

    def __init__(self, cycles: int, active: bool | None = None):
        self.cycles = cycles
        self.cycle = 0
        self.active = sys.stderr.isatty() if active is None else active
        self._last = 0.0
        self._width = 0
        self._rich: Any = None
        self._task: Any = None

    def __enter__(self) -> ProgressLine:
        if self.active:
            try:
                progress = importlib.import_module("rich.progress")
                console = importlib.import_module("rich.console").Console(stderr=True)
                self._rich = progress.Progress(console=console, transient=True)
                self._rich.start()
                self._task = self._rich.add_task("run", total=1.0)
            except ImportError:
                self._rich = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rich is not None:
            self._rich.stop()
        elif self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")

    def __call__(self, event: Progress) -> None:
        """Show an event, unless one was shown a moment ago."""
        now = time.monotonic()
        if not self.active or event.state == "queued" or now - self._last < _INTERVAL:
            return
        self._last = now
        where = f"cycle {self.cycle + 1}/{self.cycles}, " if self.cycles > 1 else ""
        text = f"{where}block {event.index + 1}/{event.total}: {event.block}"
        if self._rich is not None:
            done = (self.cycle + event.index / max(event.total, 1)) / max(self.cycles, 1)
            # A name with brackets is a name, not markup.
            shown = importlib.import_module("rich.markup").escape(text)
            self._rich.update(self._task, completed=done, description=shown)
            return
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)
