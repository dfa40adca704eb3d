# SPDX-License-Identifier: Apache-2.0
"""What was typed and not yet saved: an append-only journal per page, one checked line per draft.

A line is on the disk before its writer hears that it is. A line that a crash has cut is not a draft: the one before it
counts.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from pathlib import Path
from typing import Any

from voxgrad.formats.tensor_files import replace_file

COMPACT_BYTES = 8 * 2**20
"""A journal that has grown past this, and past four of its lines, is rewritten with its last line alone."""


class Journal:
    """The drafts of one page, in a file of its own."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.Lock()

    def append(self, record: dict[str, Any]) -> None:
        """Write a record and wait until the disk has it."""
        line = _line(record)
        with self._lock:
            # What a crash has cut must not swallow the line behind it.
            lead = b"" if self._ends_well() else b"\n"
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                _write_all(descriptor, lead + line)
                os.fsync(descriptor)
                size = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
            if size > max(COMPACT_BYTES, 4 * len(line)):
                replace_file(self.path, line)

    def last(self) -> dict[str, Any] | None:
        """The newest record that is whole; None where there is none, or where the last one ended the draft."""
        with self._lock:
            try:
                data = self.path.read_bytes()
            except FileNotFoundError:
                return None
        for line in reversed(data.split(b"\n")):
            record = _record(line)
            if record is not None:
                return record or None
        return None

    def end(self) -> None:
        """There is no draft any more."""
        with self._lock:
            self.path.unlink(missing_ok=True)

    def _ends_well(self) -> bool:
        try:
            with self.path.open("rb") as stream:
                if stream.seek(0, os.SEEK_END) == 0:
                    return True
                stream.seek(-1, os.SEEK_END)
                return stream.read(1) == b"\n"
        except FileNotFoundError:
            return True


def _line(record: dict[str, Any]) -> bytes:
    body = json.dumps(record, separators=(",", ":")).encode()
    return f"{zlib.crc32(body):08x} ".encode() + body + b"\n"


def _record(line: bytes) -> dict[str, Any] | None:
    """The record of a line, None where the line is cut or changed."""
    if len(line) < 10 or line[8:9] != b" ":
        return None
    body = line[9:]
    if line[:8] != f"{zlib.crc32(body):08x}".encode():
        return None
    found = json.loads(body)
    return found if isinstance(found, dict) else None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
