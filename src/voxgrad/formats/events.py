# SPDX-License-Identifier: Apache-2.0
"""Event files: what summary blocks made, run by run, as TensorBoard reads it."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from voxgrad.catalog.logging import SUMMARY
from voxgrad.formats.tensor_files import bad_file
from voxgrad.graph.block import Block
from voxgrad.graph.page import Page
from voxgrad.kernels.records import record_bytes
from voxgrad.kernels.wire import FIXED64, field_of, number_of, parse, varint

_TIME, _STEP, _VERSION, _SUMMARY = 1, 2, 3, 5
"""Fields of an Event."""
_NUMBERS = itertools.count()
"""Files of one process that are begun in the same second."""


def summary_blocks(page: Page) -> list[Block]:
    """The blocks that make summaries, but for those that another one merges."""
    found = [block for block in page.blocks if block.op is not None and SUMMARY in block.op.outputs]
    return [block for block in found if not any(reader in found for reader in block.readers)]


def numbers_of(summary: bytes) -> Iterator[tuple[str, float]]:
    """The tags and numbers of the scalars in what a summary block made."""
    for value in parse(summary, "a summary").messages(1):
        if len(number := value.chunk(2)) == 4:
            yield value.chunk(1).decode(errors="replace"), struct.unpack("<f", number)[0]


class EventFile:
    """A new file in a folder, to which events are added; each is in it when it was added.

    with EventFile("runs/first") as events:
        events.add(session.run(summary), step=3)
    """

    def __init__(self, folder: str | Path):
        names = f"{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.{next(_NUMBERS)}"
        self.path = Path(folder) / f"events.out.tfevents.{names}"
        with _named(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb")
        self._write(field_of(_VERSION, b"brain.Event:2"))

    def add(self, summary: bytes, step: int) -> None:
        """What a summary block made in a step."""
        self._write(number_of(_STEP, step) + field_of(_SUMMARY, summary))

    def _write(self, event: bytes) -> None:
        now = varint(_TIME << 3 | FIXED64) + struct.pack("<d", time.time())
        with _named(self.path):
            self._file.write(record_bytes(now + event))
            self._file.flush()

    def __enter__(self) -> EventFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """What the system refuses names the file."""
    try:
        yield
    except OSError as error:
        raise bad_file(str(path), "be a file that can be written", error.strerror or str(error)) from None
