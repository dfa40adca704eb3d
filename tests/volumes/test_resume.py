# SPDX-License-Identifier: Apache-2.0
"""A run that goes on believes nothing that it cannot check: data, records, inputs, and that it is alone."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.volumes import record
from voxgrad.volumes.run import apply, run_page
from voxgrad.volumes.stores import create_volume, open_volume, save_volume

POOL: dict[str, Any] = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
SUFFIXES = (".npy", ".zarr", ".nii", ".tif", ".h5", ".mha", ".mhd", ".nrrd")
LIBRARIES = {".zarr": "zarr", ".nii": "nibabel", ".tif": "tifffile", ".h5": "h5py"}


@pytest.fixture
def scan(tmp_path: Path) -> Any:
    x = np.random.default_rng(0).integers(1, 99, (1, 12, 12, 12, 1)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    return x


def go(tmp_path: Path, name: str, counts: list[int] | None = None, **more: Any) -> Any:
    def note(done: int, total: int, seconds: float) -> None:
        if counts is not None:
            counts.append(done)

    return apply("MaxPool3D", {"input": tmp_path / "x.npy"}, tmp_path / name, chunks=(2, 2, 2), workers=0,
                 progress=note, **more, **POOL)  # fmt: skip


def wreck(path: Path) -> None:
    """Zeros in the middle of the data, or a chunk that is gone."""
    if path.is_dir():
        (path / "c" / "0" / "1" / "1" / "1" / "0").unlink()
    elif path.suffix in (".tif", ".h5"):
        open_volume(path, write=True).write((slice(None), *[slice(2, 3)] * 3, slice(None)), np.zeros((1, 1, 1, 1, 1)))
    else:
        file = path.with_suffix(".raw") if path.suffix == ".mhd" else path
        file.write_bytes(file.read_bytes()[:-40] + bytes(40))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_chunk_that_was_damaged_is_found_and_done_again(tmp_path: Path, scan: Any, suffix: str) -> None:
    pytest.importorskip(LIBRARIES.get(suffix, "numpy"))
    wanted = vg.raw_ops.MaxPool3D(input=scan, **POOL)
    go(tmp_path, f"y{suffix}")
    counts: list[int] = []
    go(tmp_path, f"y{suffix}", counts)
    assert counts == [27], "nothing is damaged, and nothing is done again"
    wreck(tmp_path / f"y{suffix}")
    assert not np.array_equal(open_volume(tmp_path / f"y{suffix}").read(), wanted)
    counts.clear()
    np.testing.assert_array_equal(go(tmp_path, f"y{suffix}", counts).read(), wanted)
    assert 20 <= counts[0] < 27


@pytest.mark.parametrize("suffix", [".npy", ".nii", ".zarr"])
def test_an_output_that_is_gone_or_cut_short_is_made_again(tmp_path: Path, scan: Any, suffix: str) -> None:
    pytest.importorskip(LIBRARIES.get(suffix, "numpy"))
    wanted = vg.raw_ops.MaxPool3D(input=scan, **POOL)
    out = tmp_path / f"y{suffix}"
    go(tmp_path, out.name)
    shutil.rmtree(out) if out.is_dir() else out.unlink()
    np.testing.assert_array_equal(go(tmp_path, out.name).read(), wanted)
    if out.is_file():
        os.truncate(out, out.stat().st_size // 2)
        np.testing.assert_array_equal(go(tmp_path, out.name).read(), wanted)
    save_volume(tmp_path / f"other{suffix}", np.zeros((1, 2, 2, 2, 1), np.float32))
    shutil.rmtree(out) if out.is_dir() else out.unlink()
    (tmp_path / f"other{suffix}").rename(out)
    with pytest.raises(vg.VoxgradError, match="VG051 volumes: output must be the file that this run began"):
        go(tmp_path, out.name)


def test_records_that_were_changed_are_not_trusted(tmp_path: Path, scan: Any) -> None:
    wanted = vg.raw_ops.MaxPool3D(input=scan, **POOL)
    go(tmp_path, "y.npy")
    folder = tmp_path / "y.npy.voxgrad-run"
    (folder / "done").write_text("\n3;\n99999999;\n-1;\n4")
    (written,) = folder.glob("written-*")
    written.write_text(written.read_text().replace("\n3 ", "\n3 00"))
    counts: list[int] = []
    np.testing.assert_array_equal(go(tmp_path, "y.npy", counts).read(), wanted)
    assert counts[0] == 0
    for name in ("values.npz", "values.json", "page.vox.json", "feeds.npz", "job.json"):
        kept = (folder / name).read_bytes()
        for damage in (kept[:-1], bytes([kept[0] ^ 1]) + kept[1:]):
            (folder / name).write_bytes(damage)
            with pytest.raises(vg.VoxgradError, match=rf"VG075 volumes: record must .* got {name}, changed"):
                go(tmp_path, "y.npy")
        (folder / name).write_bytes(kept)
    np.testing.assert_array_equal(go(tmp_path, "y.npy").read(), wanted)


def test_damaged_sums_are_made_again(tmp_path: Path, scan: Any) -> None:
    page = vg.Page("sum")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[1, 12, 12, 12, 1], name="x")
    vg.ops.Sum(page, x, [0, 1, 2, 3, 4], name="total")
    counts: list[int] = []

    def run() -> Any:
        return run_page(page, {"x": tmp_path / "x.npy"}, {}, ["total"], chunks=(6, 6, 6), workers=0,
                        folder=tmp_path / "run", progress=lambda done, total, seconds: counts.append(done))  # fmt: skip

    assert run()["total"] == scan.sum()
    (top,) = (tmp_path / "run" / "sums").glob("*.npz")
    data = bytearray(top.read_bytes())
    data[-100] ^= 1
    data[len(data) // 2] ^= 255
    top.write_bytes(data)
    counts.clear()
    assert run()["total"] == scan.sum()
    assert counts[0] == 0


def test_inputs_are_known_by_what_they_hold(tmp_path: Path, scan: Any) -> None:
    """Of the same size and time, another file all the same."""
    go(tmp_path, "y.npy")
    path = tmp_path / "x.npy"
    seen = path.stat()
    np.save(path, scan[:, ::-1])
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size
    with pytest.raises(vg.VoxgradError, match=r"input.* must be what it was when the run began; got .*x\.npy, changed"):
        go(tmp_path, "y.npy")


def test_an_input_that_changes_during_a_run(tmp_path: Path, scan: Any) -> None:
    def change(done: int, total: int, seconds: float) -> None:
        if done == 5:
            np.save(tmp_path / "x.npy", scan * 2)

    with pytest.raises(vg.VoxgradError, match="must be what it was when the run began"):
        apply("MaxPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "y.npy", chunks=(2, 2, 2), workers=0,
              progress=change, **POOL)  # fmt: skip


def test_one_run_per_output(tmp_path: Path, scan: Any) -> None:
    def again(done: int, total: int, seconds: float) -> None:
        if done == 5:
            with pytest.raises(vg.VoxgradError, match=r"VG074 volumes: output must be written by one run at a time"):
                go(tmp_path, "y.npy")
            tried.append(done)

    tried: list[int] = []
    apply("MaxPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "y.npy", chunks=(2, 2, 2), workers=0, progress=again,
          **POOL)  # fmt: skip
    assert tried
    assert not list(tmp_path.glob(".*lock"))


def test_a_dead_process_keeps_no_lock(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; from voxgrad.volumes.record import only_run\n" \
             "with only_run(Path(sys.argv[1]), [sys.argv[2]]): print('held', flush=True); input()"  # fmt: skip
    arguments = [str(tmp_path / "run"), str(tmp_path / "y.npy")]
    with subprocess.Popen([sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(vg.VoxgradError, match=f"one run at a time; got .*:{other.pid}"),
            record.only_run(tmp_path / "elsewhere", [arguments[1]]),
        ):
            pass
        other.kill()
    with record.only_run(tmp_path / "run", [arguments[1]]):
        pass


@pytest.mark.parametrize("where", ["reserve", "chunk", "record"])
def test_a_full_disk_has_a_name(tmp_path: Path, scan: Any, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    name = "y.npy"
    if where == "reserve":
        monkeypatch.setattr(os, "posix_fallocate", full)
    elif where == "chunk":
        pytest.importorskip("zarr")
        name = "y.zarr"
        monkeypatch.setattr("voxgrad.volumes.formats.zarr._sync", full)
    else:
        monkeypatch.setattr(record.Digests, "note", full)
    with pytest.raises(vg.VoxgradError, match=r"VG073 file: .* must fit on its disk; got no space left\. Make room"):
        go(tmp_path, name)
    monkeypatch.undo()
    np.testing.assert_array_equal(go(tmp_path, name).read(), vg.raw_ops.MaxPool3D(input=scan, **POOL))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize("most", [0, 10, 500])
def test_files_that_may_not_grow_are_a_full_disk(tmp_path: Path, scan: Any, most: int) -> None:
    """The limit of a process, which meets the first bytes of the lock as it meets chunks."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        with pytest.raises(vg.VoxgradError, match=r"VG073|VG051 .* got File too large"):
            go(tmp_path, "y.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    np.testing.assert_array_equal(go(tmp_path, "y.npy").read(), vg.raw_ops.MaxPool3D(input=scan, **POOL))


def test_an_output_inside_of_a_file_has_a_name(tmp_path: Path, scan: Any) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(vg.VoxgradError, match=r"VG051 file: .*file must be a folder that can be written to; got File"):
        go(tmp_path, "file/y.npy")


def test_new_files_have_their_room(tmp_path: Path) -> None:
    """What is mapped has a place on the disk for every page before anything is written to it."""
    for name in ("a.npy", "a.nrrd", "a.mhd"):
        create_volume(tmp_path / name, (1, 64, 64, 64, 1), np.float32)
    for file in ("a.npy", "a.nrrd", "a.raw"):
        seen = (tmp_path / file).stat()
        assert seen.st_blocks * 512 >= seen.st_size


KILLED = """
import sys, time
from voxgrad.volumes.run import apply
def slowly(done, total, seconds):
    time.sleep(0.01)
apply("MaxPool3D", {"input": "x.npy"}, "y.npy", chunks=(2, 2, 2), workers=0, progress=slowly,
      ksize=[1, 3, 3, 3, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
"""


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_runs_give_the_same_bytes(tmp_path: Path, kills: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(kills).standard_normal((1, 32, 32, 32, 1)).astype(np.float32)
    np.save("x.npy", x)
    done = Path("y.npy.voxgrad-run", "done")
    rng = np.random.default_rng(kills)
    for _ in range(kills):
        before = done.stat().st_size if done.exists() else 0
        with subprocess.Popen([sys.executable, "-c", KILLED]) as run:
            while run.poll() is None and (done.stat().st_size if done.exists() else 0) <= before:
                time.sleep(0.005)
            time.sleep(float(rng.uniform(0, 0.1)))
            run.send_signal(signal.SIGKILL)
    counts: list[int] = []
    made = apply("MaxPool3D", {"input": "x.npy"}, "y.npy", chunks=(2, 2, 2), workers=0,
                 progress=lambda done, total, seconds: counts.append(done), **POOL)  # fmt: skip
    assert counts[0] >= kills
    np.testing.assert_array_equal(made.read(), vg.raw_ops.MaxPool3D(input=x, **POOL))


def test_a_worker_that_the_end_of_a_file_kills_is_told(tmp_path: Path, scan: Any) -> None:
    def cut(done: int, total: int, seconds: float) -> None:
        if done >= 1:
            os.truncate(tmp_path / "y.npy", 0)

    with pytest.raises(vg.VoxgradError, match=r"VG073 volumes: .*none \(SIGBUS\)"):
        apply("MaxPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "y.npy", chunks=(1, 1, 6), workers=1,
              progress=cut, **POOL)  # fmt: skip
