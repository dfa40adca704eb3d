# SPDX-License-Identifier: Apache-2.0
"""A studio in a process of its own, and a client that talks to it as a browser or a program would."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

import voxgrad

# The studio speaks plain HTTP: loading the certificates of the world takes longer than most of the tests.
http_client = functools.partial(httpx.Client, verify=False)
http_get = functools.partial(httpx.get, verify=False)

SOURCE = Path(voxgrad.__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """The environment of a process that finds this voxgrad."""
    path = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": path}


class Server:
    """A running studio."""

    def __init__(self, folder: Path, *options: str):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "voxgrad", "studio", str(folder), "--no-browser", "--port", "0", *options],
            stdout=subprocess.PIPE, env=environment(), text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.address
        self.base, _, self.ticket = self.address.partition("/?t=")
        self.token = (folder / ".voxgrad" / "token").read_text()
        self.host = self.base.removeprefix("http://")
        self.port = int(self.host.partition(":")[2])
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        self.client = http_client(base_url=self.base, headers=headers, timeout=60)

    def kill(self) -> None:
        """As a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> None:
        """As Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self._end()

    def _end(self) -> None:
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.client.close()

    def get(self, path: str, **more: Any) -> Any:
        """The JSON that a GET gives."""
        return self._json(self.client.get(f"/api/{path}", **more))

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        """The JSON that a POST gives."""
        return self._json(self.client.post(f"/api/{path}", content=json.dumps(body or {}), **more))

    def put(self, path: str, body: Any) -> Any:
        """The JSON that a PUT gives."""
        return self._json(self.client.put(f"/api/{path}", content=json.dumps(body)))

    @staticmethod
    def _json(answer: httpx.Response) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()

    def listen(self) -> Events:
        """A WebSocket."""
        return Events(self)

    def run(self, document: Any, page: str = "p", **more: Any) -> dict[str, Any]:
        """Run a document to its end; the run with its blocks."""
        name = self.post("runs", {"page_id": page, "document": document, **more})["run_id"]
        return self.wait(name)

    def wait(self, name: str, seconds: float = 60) -> dict[str, Any]:
        """The run when it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            run: dict[str, Any] = self.get(f"runs/{name}")
            if run["state"] not in ("queued", "running"):
                return run
            time.sleep(0.02)
        raise AssertionError(f"run {name} did not end: {run}")


class Events:
    """Events of a studio, in the order in which they came."""

    def __init__(self, server: Server):
        self._stack = contextlib.ExitStack()
        self._socket: ClientConnection = self._stack.enter_context(
            connect(
                f"ws://{server.host}/api/events",
                origin=server.base,
                additional_headers={"authorization": f"Bearer {server.token}"},
            )
        )
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            for text in self._socket:
                self._queue.put(json.loads(text))

    def until(self, seconds: float = 20, **wanted: Any) -> list[dict[str, Any]]:
        """All events up to the first that has these entries."""
        seen = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                event = self._queue.get(timeout=0.5)
            except queue.Empty:
                continue
            seen.append(event)
            if all(event.get(key) == value for key, value in wanted.items()):
                return seen
        raise AssertionError(f"no event {wanted} among {seen[-5:]}")

    def close(self) -> None:
        """Leave."""
        self._stack.close()
        self._thread.join(5)
