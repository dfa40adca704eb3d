# SPDX-License-Identifier: Apache-2.0
"""The pages that enuSpace-Tensorflow came with: each imports without a fault, runs and gives what it had stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.enuspace_dialect import saved_in
from tests.formats.enuspace_results import Results, differing, stored_results
from voxgrad.cli.run import run_page
from voxgrad.formats.enuspace import Imported, import_page
from voxgrad.formats.page_file import dumps, loads
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession

IMAGES, LABELS = "train-images.idx3-ubyte", "train-labels.idx1-ubyte"
Array = np.ndarray[Any, Any]


def opened(originals: Path, name: str) -> tuple[Imported, Page, Results]:
    """A page as it is after a save, with its report and what its last run had stored."""
    path = originals / f"{name}.svg"
    found = import_page(path)
    return found, loads(dumps(found.page)), stored_results(path, found)


def after(session: ClientSession, cycles: int) -> Results:
    """The values of a cycle, with those of constants that only start variables."""
    results: Results = {}
    for _ in range(cycles):
        results = run_page(session, [], {})
    constants = {block.name: block for block in session.page.blocks if block.op_name == "Const"}
    return {name: {"output": np.asarray(block.attrs["value"])} for name, block in constants.items()} | results


def test_every_original_imports_without_a_fault(originals: Path) -> None:
    names = sorted(path.stem for path in originals.glob("*.svg"))
    assert len(names) == 10
    for name in names:
        found = import_page(originals / f"{name}.svg")
        assert found.report.lost == [], name
        assert found.page.problems() == [], name
        assert len(found.page) or name.startswith("task_"), name


@pytest.mark.parametrize(
    ("name", "cycle", "count"),
    [
        ("basic", 1, 3),
        ("basic_v4", 1, 3),
        ("one_hot", 1, 2),
        ("gradient_descent_xw_sub", 28, 12),
        ("addsymbolicgradients", 159, 33),
        ("v4_web_gradient_descent_xnwn_b", 817, 15),
    ],
)
def test_an_original_gives_its_stored_values_at_some_cycle(originals: Path, name: str, cycle: int, count: int) -> None:
    _, page, stored = opened(originals, name)
    assert sum(map(len, stored.values())) == count
    version = "4" if name.startswith("v4") else "3"
    session = ClientSession(page)
    before = after(session, cycle - 1) if cycle > 1 else {}
    assert differing(before, stored, version)
    assert differing(after(session, 1), stored, version) == []


def test_xor_was_stored_by_a_run_from_other_first_values(originals: Path) -> None:
    """Its last run began with weights that the page no longer has: followed backwards, the stored state comes to even
    numbers ten cycles before. From those of the page it is never reached: the two inputs of XOR can be exchanged, so
    equal rows of weights stay equal, and the stored rows differ."""
    _, page, stored = opened(originals, "Xor")
    weights = "ID_1eM6jr110"
    rows = run_page(ClientSession(page), [], {}, cycles=50)[weights]["ref"]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert np.all(np.abs(np.diff(stored[weights]["ref"], axis=0)) > 0.02)
    page.set_value(page[f"{weights}/initialize"], "value", np.array([[0.58, 0.5], [0.55, 0.45]], np.float32))
    session = ClientSession(page)
    assert differing(after(session, 10), stored)
    assert differing(after(session, 1), stored) == []


def test_the_reader_gives_its_stored_values_from_the_records_it_had_read(originals: Path) -> None:
    """The page stores its last twenty records: ten as they were read, and ten as the variable held them before. The
    session wrote all values behind a reader's handle to the block before their own."""
    found, page, stored = opened(originals, "queueenqueue_mnist_reader")
    assert [str(remark) for remark in found.report.missing] == [
        f"missing: {IMAGES}: ID_1eXIeg594 reads it; put it into files/ beside the page: records of 784 bytes behind 16 "
        "bytes of header",
        f"missing: {LABELS}: ID_1eXIeg595 reads it; put it into files/ beside the page: records of 1 bytes behind 8 "
        "bytes of header",
    ]
    now = found.expected["ID_1eXNRF248"]["y"].astype(np.uint8)
    before = np.round(stored["ID_IMAGE"]["ref"] * 255).astype(np.uint8)
    files = originals / "reader_files"
    files.mkdir()
    (files / IMAGES).write_bytes(bytes(16) + before.tobytes() + now.tobytes())
    (files / LABELS).write_bytes(bytes(8) + bytes(10) + found.expected["ID_IND"]["y"].astype(np.uint8).tobytes())
    session = ClientSession(page, allow_files=files)
    assert sorted(differing(after(session, 1), stored)) == [
        "ID_1eXIeg587.values", "ID_1eXIeg613.output", "ID_1eXNRF244.values", "ID_1eXNRF248.y", "ID_1eXNRF249.output",
        "ID_1eXNRF259.z", "ID_1eXNRq43.output_ref", "ID_IMAGE.ref", "ID_IND.y",
    ]  # fmt: skip
    assert differing(after(session, 1), stored) == []


def test_the_softmax_trainer_gives_its_stored_values_and_saves(originals: Path) -> None:
    """It was stored in its 23rd batch of images that are not at hand: from the stored variables a cycle gives the rest.
    At the mark of a hundred batches it saves its weights."""
    found, page, stored = opened(originals, "mnistTrain_softmax10")
    assert [remark.place for remark in found.report.missing] == [IMAGES, LABELS]
    files = originals / "trainer_files"
    files.mkdir()
    rng = np.random.default_rng(0)
    (files / IMAGES).write_bytes(bytes(16) + rng.integers(0, 256, (20, 784), dtype=np.uint8).tobytes())
    (files / LABELS).write_bytes(bytes(8) + rng.integers(0, 10, 20, dtype=np.uint8).tobytes())
    session = ClientSession(page, allow_files=files)
    session.run([])
    batches = "ID_1eJ9Xq201"
    for name in ("ID_TRAIN_W", "ID_TRAIN_B", "ID_IMAGE", "ID_1eHkzO1479", batches):
        session.assign(name, stored[name]["ref"])
    # The offsets B stand in the page with six decimals: what follows from them differs that much.
    assert differing(after(session, 1), stored, slack=1.5e-6) == []
    assert not (files / "trainW.t").exists()
    session.assign(batches, np.int32(99))
    session.assign("ID_1eHkzO1471", np.int32(19))
    results = after(session, 1)
    for letter, trained in (("W", "ID_1eHkzO1436"), ("B", "ID_1eHkzO1483")):
        np.testing.assert_array_equal(saved_in(files / f"train{letter}.t")[letter], results[trained]["out"])
    # Ten maps show what a script computed: a row of W and its offset of B.
    weights, offsets = results["ID_TRAIN_W"]["ref"], results["ID_TRAIN_B"]["ref"]
    for row in range(10):
        (shown,) = page.displays[f"ID_TRAIN_WB{row}"].of
        np.testing.assert_array_equal(session.readings.value(shown), weights[row] + offsets[0, row])
