# SPDX-License-Identifier: Apache-2.0
"""What a chunked run is doing, from the files beside its output: anyone who can read the folder can watch.

The folder `OUTPUT.voxgrad-run` holds `begun.json` (grid, chunks, who runs it, since when and until when), `done` (the
manifest: the only thing a later run trusts), `running` (a line for every chunk that a worker takes) and `failed` (one
for every chunk that raised). The last two start afresh with each run. A line counts when its `;` is there.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from voxgrad.errors import Fault, InvalidArgumentError

Array = np.ndarray[Any, Any]
SUFFIX = ".voxgrad-run"
_MOST_CHUNKS = 10**8
_TAKEN = re.compile(r"(\d+) (\S+) (\S+)")
_RAISED = re.compile(r"(\d+) (.*)")


def folder_of(output: str | Path) -> Path:
    """The folder of records beside an output; of one at an address, in the current folder."""
    text = str(output)
    path = Path(text.rstrip("/").rpartition("/")[2]) if "://" in text else Path(text)
    return path.with_name(path.name + SUFFIX)


Phase = Literal["running", "finished", "failed", "stopped"]


class Record:
    """Writes what a run is doing; workers append, so any number of them may share it."""

    def __init__(self, folder: Path):
        self.folder = folder

    @contextmanager
    def run(self, grid: Sequence[int], chunks: Sequence[int]) -> Iterator[None]:
        """A run starts, or goes on: how its result is cut, and who runs it, until it ends in whatever way."""
        for name in ("running", "failed"):
            (self.folder / name).unlink(missing_ok=True)
        begun = {"grid": list(grid), "chunks": list(chunks), "runner": me(), "since": time.time()}
        self._say(begun)
        try:
            yield
        finally:
            self._say(begun | {"until": time.time()})

    def _say(self, begun: dict[str, Any]) -> None:
        unfinished = self.folder / "begun.json.part"
        unfinished.write_text(json.dumps(begun))
        unfinished.replace(self.folder / "begun.json")

    @contextmanager
    def chunk(self, number: int) -> Iterator[None]:
        """A worker has a chunk; what it raises is noted and goes on its way."""
        self._append("running", f"{number} {me()} {time.time():.3f}")
        try:
            yield
        except Exception as error:
            told = " ".join(str(error).replace(";", ",").split())
            self._append("failed", f"{number} {type(error).__name__}: {told[:300]}")
            raise

    def _append(self, name: str, line: str) -> None:
        # One write in append mode: lines of several workers do not mix.
        with (self.folder / name).open("ab", buffering=0) as log:
            log.write(f"\n{line};".encode())


@dataclass(frozen=True)
class State:
    """How far a run is. `grid` counts the chunks along depth, height and width; chunks are numbered in that order."""

    grid: tuple[int, int, int]
    chunks: tuple[int, int, int]
    done: frozenset[int]
    running: dict[int, str] = field(default_factory=dict)
    """Each chunk in work, with the worker that has it."""
    failed: dict[int, str] = field(default_factory=dict)
    """Each chunk that raised and was not done since, with what it said."""
    alive: bool = False
    """True while the process that started the run is there, as far as this machine can tell."""
    rate: float = 0.0
    """Chunks a second, in this run."""
    seconds: float = 0.0
    """How long this run has been going, until its last sign of life."""
    since: float = 0.0
    """When this run began."""

    @property
    def total(self) -> int:
        """The number of chunks."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def finished(self) -> bool:
        """True once every chunk is written."""
        return len(self.done) >= self.total

    @property
    def seconds_left(self) -> float | None:
        """The time that is left at this rate; None where nothing can be said."""
        return (self.total - len(self.done)) / self.rate if self.rate and self.alive else None

    @property
    def phase(self) -> Phase:
        """In a word: running, finished, failed, or stopped before its end."""
        if self.finished:
            return "finished"
        return "running" if self.alive else "failed" if self.failed else "stopped"

    def as_dict(self) -> dict[str, Any]:
        """The state as plain data."""
        own = asdict(self) | {"done": sorted(self.done), "grid": list(self.grid), "chunks": list(self.chunks)}
        return own | {"total": self.total, "phase": self.phase, "seconds_left": self.seconds_left}

    def picture(self, most: Sequence[int]) -> tuple[tuple[int, int, int], str]:
        """The grid as text, one letter for a chunk, or for several where there are more than `most` along an axis.

        `f` failed, `r` running, `d` done, else a digit: how many tenths of it are done.
        """
        steps = [max(1, -(-size // limit)) for size, limit in zip(self.grid, most, strict=True)]
        _, height, width = self.grid
        d, rest = np.divmod(np.arange(self.total), height * width)
        h, w = np.divmod(rest, width)
        small = tuple(-(-size // step) for size, step in zip(self.grid, steps, strict=True))
        merged = ((d // steps[0]) * small[1] + h // steps[1]) * small[2] + w // steps[2]
        cells = np.bincount(merged, minlength=small[0] * small[1] * small[2])
        done = np.bincount(merged[_numbers(self.done, self.total)], minlength=len(cells))
        letters = np.array(list("0123456789d"))[np.where(cells, 10 * done // np.maximum(cells, 1), 0)]
        letters[merged[_numbers(self.running, self.total)]] = "r"
        letters[merged[_numbers(self.failed, self.total)]] = "f"
        return (small[0], small[1], small[2]), "".join(letters)


def _numbers(chunks: Iterable[int], total: int) -> Array:
    found = np.fromiter(chunks, np.int64)
    return found[(found >= 0) & (found < total)]


def watch(output: str | Path) -> State:
    """The state of the run that writes `output` (or of the run folder itself)."""
    folder = _latest(Path(output) if str(output).endswith(SUFFIX) else folder_of(output))
    begun = _begun(folder)
    done = frozenset(int(line) for line in _lines(folder / "done") if line.isdecimal())
    taken = [found for line in _lines(folder / "running") if (found := _TAKEN.fullmatch(line))]
    raised = [found for line in _lines(folder / "failed") if (found := _RAISED.fullmatch(line))]
    failed = {int(found[1]): found[2] for found in raised if int(found[1]) not in done}
    latest = {found[2]: int(found[1]) for found in taken}
    held = {number: worker for worker, number in latest.items() if number not in done and _alive(worker)}
    alive = "until" not in begun and _alive(begun["runner"])
    finished_here = {int(found[1]) for found in taken} & done
    last = max(_changed(folder / name) for name in ("done", "running", "failed"))
    seconds = max(0.0, (time.time() if alive else begun.get("until", last)) - begun["since"])
    return State(
        grid=tuple(begun["grid"]),
        chunks=tuple(begun["chunks"]),
        done=done,
        running={number: worker for number, worker in held.items() if number not in failed} if alive else {},
        failed=failed,
        alive=alive,
        rate=len(finished_here) / seconds if seconds else 0.0,
        seconds=seconds,
        since=begun["since"],
    )


def _latest(folder: Path) -> Path:
    """The folder of the pass that was begun last; of a run of one pass, its own."""
    earlier = [one.parent for one in folder.glob("passes/*/begun.json")]
    return folder if (folder / "begun.json").exists() or not earlier else max(earlier, key=lambda one: int(one.name))


def _begun(folder: Path) -> dict[str, Any]:
    try:
        begun: dict[str, Any] = json.loads((folder / "begun.json").read_text())
        sizes = [*begun["grid"], *begun["chunks"]]
        sound = len(sizes) == 6 and all(type(size) is int and size > 0 for size in sizes)
        if not sound or math.prod(begun["grid"]) > _MOST_CHUNKS or float(begun["since"]) < 0 or not begun["runner"]:
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        fault = Fault("VG051", "watch", "output", "have the records of a chunked run beside it", str(folder))
        raise InvalidArgumentError(fault) from None
    return begun


def _lines(path: Path) -> Iterator[str]:
    """The complete lines of a record, without their ends; one that a crash cut off does not count."""
    if path.exists():
        for line in path.read_text(errors="replace").splitlines():
            if line.endswith(";"):
                yield line[:-1]


def _changed(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def me() -> str:
    """This process, as records name it."""
    return f"{socket.gethostname().replace(' ', '-')}:{os.getpid()}"


def _alive(worker: str) -> bool:
    """False for a process of this machine that is gone; those of others are taken at their word."""
    host, _, pid = worker.rpartition(":")
    if host != socket.gethostname().replace(" ", "-") or not pid.isdecimal():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
