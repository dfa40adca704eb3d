# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments during editing and saving: what was acknowledged is there, and no page is half-written."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.studio.documents import pool_page, slow_page
from tests.studio.serving import Server, environment
from voxgrad.formats import page_file


class Typist:
    """Types into a page as fast as the studio takes it, and saves now and then."""

    def __init__(self, server: Server, page: str, start: int):
        self.server = server
        self.page = page
        self.sent = self.kept = start
        self.saved = -1
        self.saving = -1
        self.base = json.loads(json.dumps(server.get(f"pages/{page}")["document"]))
        self.revision = server.get(f"pages/{page}")["revision"]
        self._thread = threading.Thread(target=self._type)
        self._thread.start()

    def document(self, number: int) -> dict[str, Any]:
        """The page with a number typed into it."""
        self.base["blocks"][0]["position"] = [number, 0]
        return self.base

    def _type(self) -> None:
        try:
            while True:
                number = self.sent + 1
                self.sent = number
                path = f"pages/{self.page}"
                if number % 5:
                    self.server.put(
                        f"{path}/draft", {"base_revision": self.revision, "document": self.document(number)}
                    )
                else:
                    self.saving = number
                    body = {"revision": self.revision, "document": self.document(number)}
                    self.revision = self.server.put(path, body)["revision"]
                    self.saved = number
                self.kept = number
        except httpx.TransportError:
            return
        except RuntimeError as error:
            # The test closes its own client with the server it killed; whoever types just then is told so.
            if "client has been closed" not in str(error):
                raise

    def join(self) -> None:
        """Wait until it has noticed that the studio is gone."""
        self._thread.join(20)
        assert not self._thread.is_alive()


def number_in(document: dict[str, Any]) -> int:
    return int(document["blocks"][0].get("position", [0, 0])[0])


def test_nothing_that_was_typed_is_lost_when_the_studio_is_killed(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    chance = random.Random(5)
    server = Server(tmp_path)
    page = server.post("pages", {"name": "typed", "document": pool_page()})["id"]
    newest = 0
    for _ in range(pytestconfig.getoption("--kills")):
        typist = Typist(server, page, newest)
        time.sleep(chance.uniform(0.0, 0.5))
        server.kill()
        typist.join()
        # The file alone is a whole page, whoever reads it.
        on_disk = int((page_file.load(tmp_path / "typed.vox.json").block("x").position or (0, 0))[0])
        assert on_disk >= typist.saved and (typist.saved < 0 or on_disk in (typist.saved, typist.saving))
        server = Server(tmp_path)
        found = server.get(f"pages/{page}")
        newest = max(number_in(found["document"]), number_in(found["draft"]["document"]) if found["draft"] else 0)
        assert typist.kept <= newest <= typist.sent
        assert not list(tmp_path.glob(".*.tmp")) or page_file.load(tmp_path / "typed.vox.json")
    server.stop()


def test_a_killed_worker_fails_its_run_and_the_next_run_has_a_new_one(tmp_path: Path) -> None:
    server = Server(tmp_path)
    name = server.post("runs", {"page_id": "p", "document": slow_page(), "cycles": 1000})["run_id"]
    while not (worker := children(server.process.pid)):
        time.sleep(0.02)
    while server.get(f"runs/{name}")["state"] != "running":
        time.sleep(0.02)
    os.kill(worker[0], signal.SIGKILL)
    run = server.wait(name)
    assert run["state"] == "failed" and run["error"]["faults"][0]["code"] == "VG068"
    assert server.run(pool_page())["state"] == "done"
    server.stop()


def test_workers_end_with_the_studio(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.post("runs", {"page_id": "p", "document": slow_page(), "cycles": 1000})
    while not (worker := children(server.process.pid)):
        time.sleep(0.02)
    server.kill()
    end = time.monotonic() + 10
    while Path(f"/proc/{worker[0]}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker[0]}").exists()
    again = Server(tmp_path)
    assert [run["state"] for run in again.get("runs")["runs"]] == ["cancelled"]
    again.stop()


def test_a_run_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    server = Server(tmp_path, "--time-limit", "0.5")
    run = server.run(slow_page(), cycles=1000)
    assert run["state"] == "failed" and run["error"]["faults"][0]["code"] == "VG021"
    server.stop()


def test_a_worker_cannot_take_more_memory_than_allowed(tmp_path: Path) -> None:
    server = Server(tmp_path, "--memory", "0.3")
    document = slow_page(size=64, layers=1)
    # Fed sizes are not known before the run, so only the worker can refuse.
    document["blocks"][0] = {
        "name": "x",
        "op": "Fill",
        "inputs": {"dims": [{"from": "n.output"}], "value": [{"value": 1.0}]},
    }
    document["blocks"].insert(0, {"name": "n", "op": "Placeholder", "attrs": {"dtype": "int32", "shape": [1]}})
    document["blocks"] = document["blocks"][:2]
    feeds = {"n": {"tensor": {"dtype": "int32", "shape": [1], "values": [2_000_000_000]}}}
    run = server.run(document, feeds=feeds)
    assert run["state"] == "failed" and run["error"]["faults"][0]["code"] in ("VG020", "VG066"), run
    assert server.run(pool_page())["state"] == "done"
    server.stop()


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to ignore")
def test_whoever_reads_the_address_can_stop_the_studio(tmp_path: Path) -> None:
    """Started as scripts start what runs beside them, with Ctrl-C ignored until the program asks for it."""
    command = [sys.executable, "-m", "voxgrad", "studio", str(tmp_path), "--no-browser", "--port", "0"]
    started = ["env", "--ignore-signal=INT", *command]
    with subprocess.Popen(started, stdout=subprocess.PIPE, env=environment(), text=True) as studio:
        assert studio.stdout is not None
        assert studio.stdout.readline().startswith("http://")
        studio.send_signal(signal.SIGINT)
        try:
            studio.wait(30)
        finally:
            studio.kill()
