# SPDX-License-Identifier: Apache-2.0
"""The records beside an output say what a chunked run is doing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.volumes.run import apply
from voxgrad.volumes.watch import Record, folder_of, watch

POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}


def test_a_whole_run_is_seen_from_beginning_to_end(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 8, 8, 12, 1), np.float32))
    seen = []

    def look(done: int, total: int, seconds: float) -> None:
        seen.append((done, total, watch(tmp_path / "y.npy")))

    apply("MaxPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "y.npy", chunks=(2, 2, 2), workers=1, progress=look,
          **POOL)  # fmt: skip
    for done, total, state in seen:
        assert state.grid == (2, 2, 3) and state.chunks == (2, 2, 2) and state.total == total == 12
        assert len(state.done) == done and state.alive
        assert not state.done & state.running.keys()
    after = watch(tmp_path / "y.npy")
    assert after.phase == "finished" and not after.alive and not after.running and not after.failed
    assert after.rate > 0 and after.seconds_left is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = folder_of(tmp_path / "out.zarr")
    made.mkdir()
    return made


def test_running_failed_and_done_are_told_apart(folder: Path, tmp_path: Path) -> None:
    record = Record(folder)
    with record.run([1, 2, 3], [4, 4, 4]):
        with pytest.raises(ZeroDivisionError), record.chunk(2):
            raise ZeroDivisionError("by zero; on\nthe way")
        with record.chunk(0):
            pass
        (folder / "done").write_text("\n0;\n5")
        with record.chunk(4):
            state = watch(tmp_path / "out.zarr")
    assert state.done == {0}
    assert list(state.running) == [4] and state.running[4].endswith(f":{os.getpid()}")
    assert state.failed == {2: "ZeroDivisionError: by zero, on the way"}
    assert state.seconds_left is not None
    assert watch(folder).running == {}


def test_a_failure_is_forgotten_when_the_chunk_is_done(folder: Path) -> None:
    record = Record(folder)
    with record.run([1, 1, 2], [4, 4, 4]):
        with pytest.raises(ValueError), record.chunk(1):
            raise ValueError
        (folder / "done").write_text("\n1;")
        assert not watch(folder).failed


def test_dead_processes_run_nothing(folder: Path) -> None:
    code = "import os, sys; from pathlib import Path; from voxgrad.volumes.watch import Record\n"
    code += "record = Record(Path(sys.argv[1]))\nwith record.run([1, 1, 3], [1, 1, 1]), record.chunk(1): os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code, str(folder)]).returncode == 9
    state = watch(folder)
    assert not state.alive and not state.running and state.seconds_left is None


def test_a_folder_without_records_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(vg.InvalidArgumentError, match=r"VG051 watch: output must have the records.*nothing\.npy"):
        watch(tmp_path / "nothing.npy")


def test_the_picture_has_a_letter_for_every_chunk_or_box_of_chunks(folder: Path) -> None:
    record = Record(folder)
    with record.run([2, 3, 4], [1, 1, 1]):
        (folder / "done").write_text("\n" + "\n".join(f"{number};" for number in [0, 1, 4, 5, 12]))
        with pytest.raises(ValueError), record.chunk(23):
            raise ValueError
        with record.chunk(9):
            state = watch(folder)
    assert state.picture((8, 8, 8)) == ((2, 3, 4), "dd00dd000r00" + "d0000000000f")
    # Two by two by two: of the first box five of eight are done, the last ones are cut.
    assert state.picture((1, 2, 2)) == ((1, 2, 2), "60rf")
    assert state.phase == "running" and watch(folder).phase == "failed"


def test_a_million_chunks_are_drawn(folder: Path) -> None:
    with Record(folder).run([100, 100, 100], [64, 64, 64]):
        (folder / "done").write_text("".join(f"\n{number};" for number in range(0, 10**6, 2)))
        grid, text = watch(folder).picture((16, 16, 16))
    assert grid == (15, 15, 15) and set(text) <= {"5", "4"}


def voxgrad(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "voxgrad", *arguments], capture_output=True, text=True)


def test_the_commands(folder: Path, tmp_path: Path) -> None:
    record = Record(folder)
    with record.run([2, 2, 3], [4, 4, 4]):
        (folder / "done").write_text("\n0;\n1;\n2;\n7;")
        with pytest.raises(ValueError), record.chunk(11):
            raise ValueError("no")
    shown = voxgrad("watch", str(tmp_path / "out.zarr"))
    assert shown.stdout.splitlines()[:2] == ["███  ·█·", "···  ··x"]
    assert "4/12 chunks  0 running  1 failed" in shown.stdout and "chunk 11: ValueError: no" in shown.stdout
    assert shown.returncode == 1
    told = json.loads(voxgrad("watch", str(tmp_path / "out.zarr"), "--json").stdout)
    assert told["done"] == [0, 1, 2, 7] and told["phase"] == "failed"
    np.savez(tmp_path / "a.npz", x=np.zeros((3, 4, 5), np.int16))
    told = json.loads(voxgrad("info", str(tmp_path / "a.npz"), "--json").stdout)
    assert told["shape"] == [1, 3, 4, 5, 1] and told["dtype"] == "int16" and told["axes"] == "DHW"
    lines = voxgrad("info", f"{tmp_path}/a.npz:x", "--axes", "xyz").stdout.splitlines()
    assert "  shape   1 x 5 x 4 x 3 x 1  (batch, depth, height, width, channels)" in lines
    assert "  size    120 bytes" in lines
    missing = voxgrad("info", str(tmp_path / "b.npz"))
    assert missing.returncode == 3 and "b.npz must exist" in missing.stderr
