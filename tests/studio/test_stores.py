# SPDX-License-Identifier: Apache-2.0
"""What the studio keeps on the disk: tensors within bounds, a history that forgives."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from voxgrad.errors import InvalidArgumentError
from voxgrad.studio.history import History
from voxgrad.studio.messages import BlockRun, RunData, TimesData
from voxgrad.studio.tensors import TensorStore


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "uint16", "int64", "bool", "bfloat16"])
def test_a_tensor_is_stored_once_under_the_hash_of_its_file(tmp_path: Path, kind: str) -> None:
    store = TensorStore(tmp_path)
    array = np.arange(24).reshape(2, 3, 4).astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    stored = store.put(array)
    assert stored is not None and stored == store.put(array.copy()) and len(list(tmp_path.iterdir())) == 1
    assert (store.open(stored.hash) == array).all() and store.open(stored.hash).dtype == array.dtype
    found = load_file(tmp_path / f"{stored.hash}.safetensors")["tensor"]
    assert (found.view(np.uint8) == array.view(np.uint8)).all()
    with pytest.raises(ValueError, match="read-only"):
        store.open(stored.hash)[0] = 1


def test_strange_layouts_and_empty_tensors_are_stored(tmp_path: Path) -> None:
    store = TensorStore(tmp_path)
    for array in (
        np.zeros((0, 3), np.float32),
        np.float32(3)[...],
        np.arange(24.0).reshape(2, 3, 4).T,
        np.arange(6)[::-2],
    ):
        stored = store.put(array)
        assert stored is not None
        assert store.open(stored.hash).shape == array.shape and (store.open(stored.hash) == array).all()
    assert store.put(np.array([b"text"], dtype=object)) is None


def test_the_store_is_bounded_and_drops_what_was_used_longest_ago(tmp_path: Path) -> None:
    store = TensorStore(tmp_path, max_bytes=5000)
    names = []
    for number in range(10):
        stored = store.put(np.full(200, number, np.float32))
        assert stored is not None
        names.append(stored.hash)
        os.utime(tmp_path / f"{stored.hash}.safetensors", (number, number))
    store.open(names[0])
    assert store.trim() > 0
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5000
    assert store.has(names[0]) and store.has(names[9]) and not store.has(names[1])
    with pytest.raises(InvalidArgumentError):
        store.open(names[1])


def test_a_tensor_that_was_cut_is_not_there(tmp_path: Path) -> None:
    store = TensorStore(tmp_path)
    stored = store.put(np.arange(100.0))
    assert stored is not None
    path = tmp_path / f"{stored.hash}.safetensors"
    for length in (0, 4, 20, path.stat().st_size - 1):
        os.truncate(path, length)
        with pytest.raises(InvalidArgumentError):
            store.open(stored.hash)
        path.unlink()
        store.put(np.arange(100.0))


def test_a_history_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "studio.sqlite"
    path.write_bytes(b"not a database" * 1000)
    history = History(path)
    history.start(RunData(id="a", page_id="p", engine="cpu", state="running", started=1.0, seconds=None, cycles=1))
    assert [run.id for run in history.runs("p", 10)] == ["a"]
    history.close()
    again = History(path)
    found = again.run("a")
    assert found is not None and found.state == "cancelled"
    again.close()
    assert list(tmp_path.glob("studio.sqlite.broken-*"))


def test_revisions_follow_the_content(tmp_path: Path) -> None:
    history = History(tmp_path / "studio.sqlite")
    assert [history.revision("p", sha) for sha in ("a", "a", "b", "a")] == [1, 1, 2, 3]
    history.forget_page("p")
    assert history.revision("p", "a") == 5
    history.close()


def test_a_history_of_an_earlier_version_gets_the_columns_that_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "studio.sqlite"
    database = sqlite3.connect(path)
    database.executescript(
        "CREATE TABLE runs (id TEXT PRIMARY KEY, page TEXT NOT NULL, engine TEXT NOT NULL, state TEXT NOT NULL,"
        " started REAL NOT NULL, seconds REAL, cycles INTEGER NOT NULL, error TEXT);"
        "CREATE TABLE blocks (run TEXT NOT NULL, block TEXT NOT NULL, cycle INTEGER NOT NULL, state TEXT NOT NULL,"
        " seconds REAL, reason TEXT NOT NULL, outputs TEXT NOT NULL, error TEXT, PRIMARY KEY (run, block));"
        "INSERT INTO runs VALUES ('old', 'p', 'cpu', 'done', 1.0, 2.0, 1, NULL);"
        "INSERT INTO blocks VALUES ('old', 'x', 0, 'done', 0.5, '', '[]', NULL);"
    )
    database.close()
    history = History(path)
    old = history.run("old")
    assert old is not None and old.times is None and old.blocks[0].seconds == 0.5
    times = TimesData(count=3, median=2.0, low=1.0, high=3.0, first=None)
    new = RunData(id="new", page_id="p", engine="cpu", state="running", started=2.0, seconds=None, cycles=1)
    history.start(new)
    block = BlockRun(block="x", cycle=0, state="done", seconds=2.0, times=times)
    history.finish(new.model_copy(update={"state": "done", "times": times, "blocks": [block]}))
    history.close()
    again = History(path)
    found = again.run("new")
    assert found is not None and found.times == times and found.blocks[0].times == times
    again.close()
