# SPDX-License-Identifier: Apache-2.0
"""Store to store: the same numbers as in memory, also when workers or the whole run are killed."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_pages import saved as saved_volumes
from tests.volumes.test_pages import small_unet, volumes_of_unet
from voxgrad.catalog.dtypes import FLOAT32
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY
from voxgrad.testing import SeededChooser, assert_close, draw_call
from voxgrad.volumes import job as job_module
from voxgrad.volumes.chunk import Chunks
from voxgrad.volumes.executors import ThisProcess, Workers, _Lines
from voxgrad.volumes.run import apply, op_job, run_in
from voxgrad.volumes.stores import create_volume
from voxgrad.volumes.sums import Sums

POOL = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}


def saved(call: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a call as files, and the rest of it."""
    inputs: dict[str, Any] = {}
    for name, value in call.items():
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
            inputs[name] = folder / f"{name}.npy"
        elif name.endswith(("_sizes", "_shape")):
            inputs[name] = value
    return inputs, {name: value for name, value in call.items() if name not in inputs}


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_files_give_what_memory_gives(op: Op, tmp_path: Path) -> None:
    call = draw_call(op, SeededChooser(5), dtype=FLOAT32, style="integers", largest=2)
    inputs, attrs = saved(call, tmp_path)
    out = apply(op.name, inputs, tmp_path / "out.npy", chunks=(2, 3, 2), workers=1, **attrs)
    dense = getattr(vg.raw_ops, op.name)(**call)
    assert_close(out.read((slice(None),) * 5), dense, label=op.name)


def test_zarr(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="zarr is an optional extra")
    x = np.random.default_rng(0).integers(0, 9, (1, 9, 10, 11, 2)).astype(np.float32)
    store = create_volume(tmp_path / "x.zarr", x.shape, x.dtype, (1, 4, 4, 4, 2))
    assert store.write is not None
    store.write((slice(None),) * 5, x)
    out = apply("MaxPool3D", {"input": tmp_path / "x.zarr"}, tmp_path / "y.zarr", chunks=(2, 3, 4), workers=1, **POOL)
    assert out.chunks == (1, 2, 3, 4, 2)
    assert np.array_equal(out.read((slice(None),) * 5), vg.raw_ops.MaxPool3D(input=x, **POOL))


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 12, 12, 12, 1)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    seen: list[int] = []

    class StopError(Exception):
        pass

    def stop_at_five(done: int, total: int, seconds: float) -> None:
        seen.append(done)
        if done >= 5:
            raise StopError

    arguments = ("AvgPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "y.npy")
    with pytest.raises(StopError):
        apply(*arguments, chunks=(2, 2, 2), workers=1, progress=stop_at_five, **POOL)
    log = tmp_path / "y.npy.voxgrad-run" / "done"
    with log.open("a") as file:
        file.write("\n1")  # a line that a crash cut off
    first: list[int] = []
    out = apply(
        *arguments, chunks=(2, 2, 2), workers=1, progress=lambda done, total, seconds: first.append(done), **POOL
    )
    assert first[0] >= 5
    assert first[-1] == 27
    assert_close(out.read((slice(None),) * 5), vg.raw_ops.AvgPool3D(input=x, **POOL), terms=27, scale=1.0)
    with pytest.raises(vg.InvalidArgumentError, match="belong to this very run"):
        apply(*arguments, chunks=(3, 3, 3), workers=1, **POOL)


def test_an_output_that_is_there_is_kept(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 4, 4, 1), np.float32))
    np.save(tmp_path / "y.npy", np.ones(3))
    with pytest.raises(vg.InvalidArgumentError, match="VG051 AvgPool3D: output must not exist yet"):
        apply("AvgPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "y.npy", **POOL)
    assert np.load(tmp_path / "y.npy").tolist() == [1, 1, 1]


def children() -> list[int]:
    """The worker processes of this process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(stat[1]) == os.getpid() and b"spawn_main" in command:
                found.append(int(entry.name))
    return found


def test_killed_workers_do_not_matter(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 24, 24, 24, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    stop = threading.Event()
    kills: list[int] = []

    def hunt() -> None:
        pick = random.Random(0)
        while not stop.is_set() and len(kills) < 3:
            time.sleep(pick.uniform(0.4, 0.9))
            for pid in children()[:1]:
                os.kill(pid, signal.SIGKILL)
                kills.append(pid)

    hunter = threading.Thread(target=hunt)
    hunter.start()

    def slowly(done: int, total: int, seconds: float) -> None:
        time.sleep(0.02)

    try:
        out = apply(
            "MaxPool3D",
            {"input": tmp_path / "x.npy"},
            tmp_path / "y.npy",
            chunks=(1, 2, 4),
            workers=2,
            progress=slowly,
            **POOL,
        )
    finally:
        stop.set()
        hunter.join()
    assert kills
    assert np.array_equal(out.read((slice(None),) * 5), vg.raw_ops.MaxPool3D(input=x, **POOL))


def taken(folder: Path) -> set[int]:
    """The chunks that the last run has worked on."""
    return {int(line.split()[0]) for line in (folder / "running").read_text().splitlines() if line}


def test_a_killed_run_recomputes_only_what_was_not_recorded(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 16, 16, 16, 1)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    code = (
        "import time\nfrom voxgrad.volumes.run import apply\n"
        f"if __name__ == '__main__': apply('MaxPool3D', {{'input': r'{tmp_path / 'x.npy'}'}}, r'{tmp_path / 'y.npy'}', "
        f"chunks=(1, 4, 4), workers=1, progress=lambda *a: time.sleep(0.05), **{json.dumps(POOL)})\n"
    )
    script = tmp_path / "job.py"
    script.write_text(code)
    log = tmp_path / "y.npy.voxgrad-run" / "done"
    run = subprocess.Popen([sys.executable, str(script)], start_new_session=True)
    while not (log.exists() and len(log.read_text().splitlines()) > 4):
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    recorded = {int(line[:-1]) for line in log.read_text().split() if line.endswith(";")}
    counts: list[int] = []
    out = apply(
        "MaxPool3D", {"input": str(tmp_path / "x.npy")}, str(tmp_path / "y.npy"), chunks=(1, 4, 4), workers=1,
        progress=lambda done, total, seconds: counts.append(done), **POOL,
    )  # fmt: skip
    assert counts[0] == len(recorded)
    assert taken(tmp_path / "y.npy.voxgrad-run") == set(range(counts[-1])) - recorded
    assert np.array_equal(out.read((slice(None),) * 5), vg.raw_ops.MaxPool3D(input=x, **POOL))


def test_a_killed_run_of_a_page_keeps_its_sums(tmp_path: Path) -> None:
    data = volumes_of_unet()
    small_unet().save(tmp_path / "unet.vox.json")
    files = saved_volumes(tmp_path, **data)
    code = (
        "import time, voxgrad as vg\n"
        f"if __name__ == '__main__': vg.volumes.run_page(r'{tmp_path / 'unet.vox.json'}', {files}, "
        f"{{'y': r'{tmp_path / 'y.npy'}'}}, ['loss'], chunks=(2, 3, 3), workers=2, "
        "progress=lambda *a: time.sleep(0.02))\n"
    )
    script, folder = tmp_path / "job.py", tmp_path / "y.npy.voxgrad-run"
    script.write_text(code)
    for least in (8, 30):
        run = subprocess.Popen([sys.executable, str(script)], start_new_session=True)
        while not ((folder / "done").exists() and len((folder / "done").read_text().splitlines()) > least):
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    recorded = {int(line[:-1]) for line in (folder / "done").read_text().split() if line.endswith(";")}
    (folder / "done").write_text((folder / "done").read_text() + "\n11")  # a line that a crash cut off
    found = vg.volumes.run_page(
        tmp_path / "unet.vox.json", files, {"y": tmp_path / "y.npy"}, ["loss"], chunks=(2, 3, 3), workers=0
    )
    total = 2 * 5 * 4 * 3
    assert taken(folder) == set(range(total)) - recorded
    once = vg.volumes.run_page(
        tmp_path / "unet.vox.json", files, {"y": tmp_path / "once.npy"}, ["loss"], chunks=(2, 3, 3), workers=0
    )
    assert found["loss"].tobytes() == once["loss"].tobytes()
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.load(tmp_path / "once.npy"))
    assert len(list((folder / "sums").iterdir())) == 1, "what was added up is gone"


def test_an_input_that_changed_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 4, 4, 1), np.float32))
    arguments = ("AvgPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "y.npy")
    apply(*arguments, chunks=(1, 1, 1), workers=0, **POOL)
    np.save(tmp_path / "x.npy", np.ones((1, 4, 4, 4, 1), np.float32))
    with pytest.raises(vg.InvalidArgumentError, match=r"VG051 AvgPool3D: input\.output must be what it was") as caught:
        apply(*arguments, chunks=(1, 1, 1), workers=0, **POOL)
    assert "x.npy, changed" in str(caught.value)


def test_a_filter_that_changed_is_another_run(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 4, 4, 4, 1), np.float32))
    conv = {"strides": [1] * 5, "padding": "SAME"}
    for value in (1, 2):
        np.save(tmp_path / "w.npy", np.full((1, 1, 1, 1, 1), value, np.float32))
        arguments = ("Conv3D", {"input": tmp_path / "x.npy", "filter": tmp_path / "w.npy"}, tmp_path / "y.npy")
        if value == 1:
            apply(*arguments, chunks=(2, 2, 2), workers=0, **conv)
            continue
        with pytest.raises(vg.InvalidArgumentError, match="belong to this very run"):
            apply(*arguments, chunks=(2, 2, 2), workers=0, **conv)


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 4, 4, 1), np.float32))
    script = tmp_path / "naive.py"
    script.write_text(
        "import voxgrad as vg\n"
        f"vg.volumes.apply('AvgPool3D', {{'input': r'{tmp_path / 'x.npy'}'}}, r'{tmp_path / 'y.npy'}', workers=1, "
        f"chunks=(1, 1, 1), **{POOL})\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "call it under `if __name__ == '__main__':`" in done.stderr


def test_sums_do_not_depend_on_the_order(tmp_path: Path) -> None:
    parts = np.random.default_rng(0).standard_normal((11, 3)) * 10.0 ** np.arange(-5, 6)[:, None]
    bits = set()
    for seed in range(4):
        sums = Sums(tmp_path / str(seed), len(parts), ["sum"])
        order = list(range(len(parts)))
        random.Random(seed).shuffle(order)
        for number in order:
            sums.put(number, [parts[number], None])
            sums.add(number)
        assert len(list(sums.folder.iterdir())) == 1
        bits.add(sums.totals()[0].tobytes())
        assert np.allclose(sums.totals()[0], parts.sum(0))
    assert len(bits) == 1


def test_sums_after_a_crash_count_nothing_twice(tmp_path: Path) -> None:
    folder = tmp_path / "sums"
    sums = Sums(folder, 6, ["sum"])
    for number in range(6):
        sums.put(number, [np.full(1, 2.0**number)])
    kept = (folder / "0-1.npz").read_bytes()
    sums.add(0)
    assert (folder / "0-0.npz").exists(), "chunk 1 is not recorded: it may still be brought again"
    sums.add(1)
    (folder / "0-1.npz").write_bytes(kept)  # killed after the sum was written, before its parts were gone
    (folder / "0-5.part.npz").write_bytes(b"half a file")
    again = Sums(folder, 6, ["sum"])
    # Chunks 2 and 3 were recorded, but not yet added; 4 and 5 brought their parts and were not recorded.
    assert again.go_on([0, 1, 2, 3]) == {0, 1, 2, 3}
    for number in (5, 4):
        again.put(number, [np.full(1, 2.0**number)])
        again.add(number)
    assert again.totals()[0].tolist() == [63.0]
    assert Sums(folder, 6, ["sum"]).go_on([0, 1, 2, 3, 4, 5]) == {0, 1, 2, 3, 4, 5}
    assert Sums(tmp_path / "gone", 6).go_on([0, 1]) == set()


def test_the_next_chunk_is_read_while_one_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the other to begin: where one came after the other, it would never."""
    count = 12
    x = np.random.default_rng(0).random((1, count, 4, 4, 1), np.float32)
    np.save(tmp_path / "x.npy", x)
    pool: dict[str, Any] = {"ksize": [1, 3, 3, 3, 1], "strides": [1] * 5, "padding": "SAME"}
    job = op_job("MaxPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "y.npy", chunks=(1, 4, 4), **pool)
    original, compute, changed = job_module.open_volume, Chunks.compute, threading.Condition()
    read: list[Any] = []
    begun: list[int] = []

    def watched(path: Any, **named: Any) -> Any:
        store = original(path, **named)

        def fetch(index: Any) -> Any:
            with changed:
                read.append(index)
                changed.notify_all()
                assert changed.wait_for(lambda: len(begun) >= len(read) - 1, 20), "nothing is computed meanwhile"
            return store.fetch(index)

        return replace(store, fetch=fetch) if str(path).endswith("x.npy") else store

    def computed(self: Chunks, number: int) -> Any:
        with changed:
            begun.append(number)
            changed.notify_all()
            assert changed.wait_for(lambda: len(read) > min(len(begun), count - 1), 20), "nobody reads ahead"
        return compute(self, number)

    monkeypatch.setattr(job_module, "open_volume", watched)
    monkeypatch.setattr(Chunks, "compute", computed)
    (made,) = run_in(job, None, ThisProcess(), None).values()
    np.testing.assert_array_equal(made.read(), vg.raw_ops.MaxPool3D(input=x, **pool))
    assert len(begun) == count
    assert len(read) == count, "nothing is read twice"


def test_workers_share_what_is_left(tmp_path: Path) -> None:
    """Each has its next chunk set aside; nothing is done twice or left, and a worker without any takes another's."""
    for count in (1, 2, 3):
        for many in (0, 1, 2, 3, 7):
            waiting = list(reversed(range(many)))
            lines, done = _Lines(waiting), []
            for worker in (*range(count), *range(count)):
                if lines.first(worker) is not None:
                    done.append(lines.took(worker))
            while lines.first(0) is not None:
                done.append(lines.took(0))
            assert sorted(done) == list(range(many))
    lines = _Lines(waiting := [3, 2, 1])
    assert (lines.first(0), lines.following()) == (1, 2)
    lines.put_back()
    assert sorted(waiting) == [1, 2, 3]


def test_every_worker_sees_its_own_gpu() -> None:
    with Workers(3, gpus=("4", "7")) as workers:
        seen = [pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result() for pool in workers._open()]
    assert seen == ["4", "7", "4"]
