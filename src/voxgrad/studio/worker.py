# SPDX-License-Identifier: Apache-2.0
"""The process in which pages run: `python -m voxgrad.studio.worker`. It may be killed at any moment.

Frames come in on standard input and go out on standard output. One job runs at a time; a thread listens meanwhile for
the request to stop, and ends the process when the server is gone.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from voxgrad.arrays.limits import limits
from voxgrad.errors import CancelledError, Fault, VoxgradError
from voxgrad.isolation import ROOM, confine
from voxgrad.kernels.arraywise.files import Files
from voxgrad.studio import frames
from voxgrad.studio.frames import Frame
from voxgrad.studio.jobs import Jobs

REPEAT_SECONDS = 0.02
"""How often a request to stop is repeated: the run may be between two sessions when it comes."""


class Worker:
    """Takes jobs from the server and tells it what happens."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO, settings: Frame):
        self._incoming = incoming
        self._outgoing = outgoing
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._stop: str | None = None
        self._job: str | None = None
        self._memory = int(settings["memory"])
        self.jobs = Jobs(Path(settings["state"]), Files(Path(settings["files"])), self._memory, self.tell)

    def tell(self, message: Frame) -> None:
        """Send a message to the server."""
        data = frames.packed(message)
        with self._lock:
            self._outgoing.write(data)
            self._outgoing.flush()

    def listen(self) -> None:
        """Read frames until the server is gone."""
        while (frame := frames.read(self._incoming)) is not None:
            if frame["kind"] == "cancel":
                self._stop = frame["job"]
                threading.Thread(target=self._keep_stopping, args=(frame["job"],), daemon=True).start()
            else:
                self._waiting.put(frame)
        # Nobody is left to tell: a long kernel must not go on.
        os._exit(0)

    def _keep_stopping(self, job: str) -> None:
        while self._stop == job:
            if self._job == job:
                self.jobs.cancel()
            time.sleep(REPEAT_SECONDS)

    def work(self) -> None:
        """Run jobs, one after the other."""
        while True:
            frame = self._waiting.get()
            self._job = frame["job"]
            with limits(bytes=self._memory):
                self._guarded(frame)
            self._job = self._stop = None

    def _guarded(self, frame: Frame) -> None:
        state, error, result = "done", None, None
        try:
            if self._stop == frame["job"]:
                raise CancelledError(Fault("VG040", "studio", "run", "run to its end", "a request to stop"))
            result = self.jobs.do(frame)
        except CancelledError as caught:
            state, error = "cancelled", _error(caught.faults)
        except VoxgradError as caught:
            state, error = "failed", _error(caught.faults)
        except MemoryError:
            fault = Fault("VG020", "studio", "run", f"need at most {self._memory:,} bytes", "more", "Check the sizes.")
            state, error = "failed", _error([fault])
        except Exception as caught:
            fault = Fault("VG066", "studio", "run", "run", f"{type(caught).__name__}: {str(caught)[:200]}")
            state, error = "failed", _error([fault])
        self.tell({"kind": "end", "job": frame["job"], "state": state, "error": error, "result": result})


def _error(faults: Any) -> Frame:
    return {"message": "\n".join(map(str, faults)), "faults": [fault.as_dict() for fault in faults]}


def main() -> None:
    """Start, say hello, work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What libraries print must not get between the frames.
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    incoming = sys.stdin.buffer
    settings = frames.read(incoming)
    if settings is None:
        return
    if settings["engine"] in ("tensorflow", "torch"):
        from voxgrad.studio.peers import load

        load(settings["engine"])
    # CUDA maps far more addresses than it uses; there the estimate before the run is the limit.
    confine(None if settings["engine"].startswith("cuda") else int(settings["memory"]) + ROOM)
    worker = Worker(incoming, outgoing, settings)
    worker.tell({"kind": "hello"})
    threading.Thread(target=worker.listen, daemon=True).start()
    worker.work()


if __name__ == "__main__":
    main()
