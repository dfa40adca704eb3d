# SPDX-License-Identifier: Apache-2.0
"""What the studio remembers, in one SQLite file: the revisions of pages, the runs and what they gave."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.studio import messages
from voxgrad.studio.run_curves import Curves

KEPT_READ = 8
KEPT_RUNS = 200
"""Runs per page that are remembered."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS revisions (page TEXT PRIMARY KEY, revision INTEGER NOT NULL, sha TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, page TEXT NOT NULL, engine TEXT NOT NULL, state TEXT NOT NULL, started REAL NOT NULL,
    seconds REAL, cycles INTEGER NOT NULL, error TEXT, times TEXT);
CREATE INDEX IF NOT EXISTS runs_of_page ON runs (page, started);
CREATE TABLE IF NOT EXISTS blocks (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, block TEXT NOT NULL, cycle INTEGER NOT NULL,
    state TEXT NOT NULL, seconds REAL, reason TEXT NOT NULL, outputs TEXT NOT NULL, error TEXT, times TEXT,
    PRIMARY KEY (run, block));
CREATE TABLE IF NOT EXISTS curves (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, path TEXT NOT NULL, cycles BLOB NOT NULL,
    numbers BLOB NOT NULL, PRIMARY KEY (run, path));
"""
_LATER = (("runs", "times"), ("blocks", "times"))
"""Columns that files of earlier versions do not have."""


class History:
    """The memory of a project. A file that cannot be read is put aside: it holds nothing that is not elsewhere."""

    def __init__(self, path: Path):
        self._lock = threading.Lock()
        self._read: dict[str, messages.RunData] = {}
        try:
            self._database = _opened(path)
        except sqlite3.DatabaseError:
            path.replace(path.with_name(f"{path.name}.broken-{int(time.time())}"))
            self._database = _opened(path)
        # Runs that were under way when the server was killed are not under way any more.
        with self._database:
            self._database.execute("UPDATE runs SET state = 'cancelled' WHERE state IN ('queued', 'running')")

    def close(self) -> None:
        """Write everything out."""
        with self._lock:
            self._database.close()

    def revision(self, page: str, sha: str) -> int:
        """The revision of a page whose file has this content; content that nobody here wrote is a new revision."""
        with self._lock, self._database:
            row = self._database.execute("SELECT revision, sha FROM revisions WHERE page = ?", (page,)).fetchone()
            if row is not None and row[1] == sha:
                return int(row[0])
            revision = 1 if row is None else int(row[0]) + 1
            self._database.execute("INSERT OR REPLACE INTO revisions VALUES (?, ?, ?)", (page, revision, sha))
            return revision

    def forget_page(self, page: str) -> None:
        """A page is gone; a later one at its place must not continue its revisions by accident."""
        with self._lock, self._database:
            self._database.execute("UPDATE revisions SET revision = revision + 1, sha = '' WHERE page = ?", (page,))

    def start(self, run: messages.RunData) -> None:
        """Note a new run."""
        with self._lock, self._database:
            self._database.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run.id, run.page_id, run.engine, run.state, run.started, run.seconds, run.cycles, None, None),
            )
            self._database.execute(
                "DELETE FROM runs WHERE page = ?1 AND id NOT IN"
                " (SELECT id FROM runs WHERE page = ?1 ORDER BY started DESC LIMIT ?2)",
                (run.page_id, KEPT_RUNS),
            )

    def finish(self, run: messages.RunData) -> None:
        """Note how a run ended, and what it did with every block in its last cycle."""
        with self._lock, self._database:
            self._database.execute(
                "UPDATE runs SET state = ?, seconds = ?, error = ?, times = ? WHERE id = ?",
                (run.state, run.seconds, _dumped(run.error), _dumped(run.times), run.id),
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (run.id, one.block, one.cycle, one.state, one.seconds, one.reason,
                     json.dumps([output.model_dump() for output in one.outputs]), _dumped(one.error),
                     _dumped(one.times))
                    for one in run.blocks
                ],
            )  # fmt: skip

    def keep_curves(self, run: str, curves: Curves) -> None:
        """Note the numbers over the cycles of a run that has ended."""
        rows = [
            (run, path, np.array([at for at, _ in curve], "<i8").tobytes(), np.array([y for _, y in curve], "<f8").tobytes())
            for path, curve in curves.items()
        ]
        with self._lock, self._database:
            self._database.executemany("INSERT OR REPLACE INTO curves VALUES (?, ?, ?, ?)", rows)

    def curves(self, run: str) -> Curves:
        """The numbers over the cycles of a run, by the paths of outputs."""
        with self._lock:
            rows = self._database.execute("SELECT path, cycles, numbers FROM curves WHERE run = ?", (run,)).fetchall()
        return {
            path: list(zip(np.frombuffer(cycles, "<i8").tolist(), np.frombuffer(numbers, "<f8").tolist(), strict=True))
            for path, cycles, numbers in rows
        }

    def runs(self, page: str | None, limit: int) -> list[messages.RunData]:
        """The newest runs, of one page or of all, without their blocks."""
        where, values = ("WHERE page = ?", (page, limit)) if page is not None else ("", (limit,))
        with self._lock:
            rows = self._database.execute(
                f"SELECT * FROM runs {where} ORDER BY started DESC LIMIT ?", values
            ).fetchall()
        return [_run(row) for row in rows]

    def run(self, name: str) -> messages.RunData | None:
        """A run with its blocks, in the order in which they ran; not to be changed."""
        if name in self._read:
            return self._read[name]
        with self._lock:
            row = self._database.execute("SELECT * FROM runs WHERE id = ?", (name,)).fetchone()
            blocks = self._database.execute("SELECT * FROM blocks WHERE run = ? ORDER BY rowid", (name,)).fetchall()
        if row is None:
            return None
        found = _run(row)
        found.blocks = [_block(one) for one in blocks]
        if found.state not in ("queued", "running"):
            # Runs that have ended do not change; the last ones are asked for at every move of the mouse.
            self._read[name] = found
            while len(self._read) > KEPT_READ:
                self._read.pop(next(iter(self._read)), None)
        return found


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, check_same_thread=False, isolation_level="DEFERRED")
    database.execute("PRAGMA journal_mode = WAL")
    # A power cut may take the last runs along, a kill nothing; syncing each would hold up the event loop.
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA foreign_keys = ON")
    database.executescript(_SCHEMA)
    for table, column in _LATER:
        if all(row[1] != column for row in database.execute(f"PRAGMA table_info({table})")):
            database.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")
    return database


def _dumped(told: messages.ErrorData | messages.TimesData | None) -> str | None:
    return None if told is None else told.model_dump_json()


def _error(text: str | None) -> messages.ErrorData | None:
    return None if text is None else messages.ErrorData.model_validate_json(text)


def _times(text: str | None) -> messages.TimesData | None:
    return None if text is None else messages.TimesData.model_validate_json(text)


def _run(row: tuple[Any, ...]) -> messages.RunData:
    name, page, engine, state, started, seconds, cycles, error, times = row
    return messages.RunData(
        id=name, page_id=page, engine=engine, state=state, started=started, seconds=seconds, cycles=cycles,
        error=_error(error), times=_times(times),
    )  # fmt: skip


def _block(row: tuple[Any, ...]) -> messages.BlockRun:
    _, block, cycle, state, seconds, reason, outputs, error, times = row
    return messages.BlockRun(
        block=block, cycle=cycle, state=state, seconds=seconds, reason=reason,
        outputs=[messages.OutputData.model_validate(one) for one in json.loads(outputs)], error=_error(error),
        times=_times(times),
    )  # fmt: skip
