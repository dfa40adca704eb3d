# SPDX-License-Identifier: Apache-2.0
"""No op takes memory or time by the size that a value, a shape or an attribute claims."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import voxgrad as vg
from tests.catalogue.hostile_sizes import hostile, valid_calls
from voxgrad.catalog.registry import OPS

PARTS = 4


def tried(*arguments: str, seconds: float) -> tuple[int, list[str]]:
    """How many calls were made in a child process, and what was wrong with them."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.catalogue.hostile_sizes", *arguments]
    try:
        told = subprocess.run(command, stdout=subprocess.PIPE, timeout=seconds).stdout
    except subprocess.TimeoutExpired as error:
        told = error.stdout or b""
    lines = [json.loads(line) for line in told.splitlines(True) if line.endswith(b"\n")]
    labels = {line["at"]: line["label"] for line in lines if "label" in line}
    wrong = [f"{labels[line['at']]}: {line['wrong']}" for line in lines if "wrong" in line]
    if not lines or "done" not in lines[-1]:
        wrong.append(f"the process ended in {labels[max(labels)] if labels else 'nothing'}")
    return len(labels), wrong


@pytest.mark.parametrize("part", range(PARTS))
def test_every_op_bounds_its_results_before_it_works(part: int) -> None:
    count, wrong = tried(*list(OPS)[part::PARTS], seconds=900)
    assert wrong == []
    assert count > 1000


@pytest.mark.slow
def test_every_op_in_every_way() -> None:
    assert tried("--all", seconds=1800)[1] == []


def test_every_op_with_sizes_is_tried() -> None:
    """The generator finds something to spoil wherever there is a number or a shape."""
    for op in OPS.values():
        sized = [attr for attr in op.attrs if attr.kind in ("int", "ints", "shape", "shapes")]
        if sized or any(item.host for item in op.inputs):
            assert any(True for _ in hostile(op, valid_calls(op, 1)[0])), op.name


LONG = np.broadcast_to(np.array(b"A" * 2**20, object), (2**12,))
"""One text in many places: four gigabytes, were each its own."""


@pytest.mark.parametrize(
    ("op", "arguments"),
    [
        ("StringJoin", {"inputs": [LONG, LONG]}),
        ("StringJoin", {"inputs": [np.full(2**12, b"", object)] * 2, "separator": "x" * 2**20}),
        ("ReduceJoin", {"inputs": LONG, "reduction_indices": [0]}),
        ("EncodeBase64", {"input": LONG}),
        ("DecodeBase64", {"input": LONG}),
        ("DecodeRaw", {"bytes": LONG, "out_type": "uint8"}),
        ("DecodeCSV", {"records": LONG, "record_defaults": [np.array([b""], object)]}),
        ("Substr", {"input": LONG, "pos": 1, "len": 2**20}),
        ("AsString", {"input": LONG, "width": 1}),
        ("AsString", {"input": np.broadcast_to(np.float32(1), (2**22,)), "width": 512}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_texts_are_bounded_by_their_letters(op: str, arguments: dict[str, object]) -> None:
    """Elements of an array of texts are pointers: the size of a result is the sum of its letters."""
    with (
        vg.limits(bytes=2**30),
        pytest.raises(vg.ResourceExhaustedError, match=f"VG020 {op}: .* at most 1,073,741,824"),
    ):
        getattr(vg.raw_ops, op)(**arguments)


def test_pieces_of_long_texts_are_small() -> None:
    with vg.limits(bytes=2**20):
        assert vg.raw_ops.Substr(input=LONG, pos=1, len=2).tolist() == [b"AA"] * 2**12
