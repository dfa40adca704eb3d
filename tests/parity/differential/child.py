# SPDX-License-Identifier: Apache-2.0
"""TensorFlow in a process of its own: it may abort on a call, and a fresh one goes on with the next.

The process that this file is run as imports TensorFlow and forks a child that answers; when that one dies, it forks
another, which takes no time.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import subprocess
import sys
from typing import Any, BinaryIO

CRASHED = {"crash": True, "error": "TensorFlow aborted the process"}
SECONDS = 60


def _write(stream: BinaryIO, value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(struct.pack("<q", len(data)) + data)
    stream.flush()


def _read(stream: BinaryIO) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<q", head)[0]))


class TensorFlow:
    """Answers jobs, one by one, in another process; what kills it is answered with CRASHED."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._out: BinaryIO = self._process.stdout  # type: ignore[assignment]
        self._waiting = 0

    def send(self, jobs: list[Any]) -> None:
        """Start to answer; `answers` waits for them."""
        _write(self._in, jobs)
        self._waiting = len(jobs)

    def answers(self) -> list[Any]:
        """The answers to the jobs that were sent."""
        return [_read(self._out) for _ in range(self._waiting)]

    def ask(self, *jobs: Any) -> list[Any]:
        """Send and wait."""
        self.send(list(jobs))
        return self.answers()

    def close(self) -> None:
        """End the process."""
        self._in.close()
        self._process.wait(timeout=30)
        self._out.close()


def _serve() -> None:
    """Hands each job to a child and its answer to the caller."""
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from tests.parity.differential import theirs

    child: tuple[int, BinaryIO, BinaryIO] | None = None
    while True:
        try:
            jobs = _read(source)
        except EOFError:
            break
        for job in jobs:
            if child is None:
                child = _fork(theirs.answer)
            answer = _asked(child, job)
            if answer is None:
                os.kill(child[0], signal.SIGKILL)
                os.waitpid(child[0], 0)
                child = None
            _write(target, CRASHED if answer is None else answer)
    if child is not None:
        os.kill(child[0], signal.SIGKILL)


def _fork(answer: Any) -> tuple[int, BinaryIO, BinaryIO]:
    (job_in, job_out), (made_in, made_out) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid:
        os.close(job_in)
        os.close(made_out)
        return pid, os.fdopen(job_out, "wb"), os.fdopen(made_in, "rb")
    os.close(job_out)
    os.close(made_in)
    source, target = os.fdopen(job_in, "rb"), os.fdopen(made_out, "wb")
    while True:
        try:
            _write(target, answer(_read(source)))
        except (EOFError, BrokenPipeError):
            os._exit(0)


def _asked(child: tuple[int, BinaryIO, BinaryIO], job: Any) -> Any:
    """The answer of the child, None where it died or does not answer."""
    try:
        _write(child[1], job)
        if not select.select([child[2]], [], [], SECONDS)[0]:
            return None
        return _read(child[2])
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        return None


if __name__ == "__main__":
    _serve()
