# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that TensorFlow wrote and we read, and the other way round, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.catalogue.test_sessions import Session, one, text
from voxgrad.formats.events import EventFile
from voxgrad.kernels.element_types import NUMBERS, numpy_type

tf: Any = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.parity
SEED = int(os.environ.get("VOXGRAD_SEED", "1"))
OLD = tuple(one for one in NUMBERS if one.name not in ("bfloat16", "uint32", "uint64"))
"""The types that TensorFlow puts into checkpoints of the first version."""
Named = tuple[list[bytes], list[bytes], list[Any]]


def tensors(seed: int, types: tuple[Any, ...] = NUMBERS) -> Named:
    """Tensors of every type and many shapes, some of them parts of larger ones."""
    chance = np.random.default_rng([SEED, seed])
    names, parts, arrays = list[bytes](), list[bytes](), list[Any]()
    for number in range(24):
        shape = tuple(chance.integers(0 if number % 5 == 4 else 1, 5, chance.integers(0, 4)).tolist())
        kind = numpy_type(types[int(chance.integers(len(types)))])
        array: Any = (chance.integers(-3, 4, shape) if kind.kind != "u" else chance.integers(0, 9, shape)).astype(kind)
        if number % 6 == 5:
            array = text(*[chance.bytes(int(size)) for size in chance.integers(0, 200, int(np.prod(shape)))]).reshape(
                shape
            )
        names.append(f"{'layer/' * (number % 3)}t{number}\u00fc".encode())
        parts.append(b"")
        arrays.append(array)
    first, many = (int(one) for one in chance.integers(1, 300, 2))
    # Parts of one tensor lie in no order in TensorFlow's list of the first version.
    names += [b"cut", b"cut" if types == NUMBERS else b"other"]
    parts += [f"{first + many} 20000 0,{first}:-".encode(), f"{first + many} 20000 {first},{many}:9000,70".encode()]
    return names, parts, [*arrays, chance.random((first, 20000), np.float32), chance.random((many, 70), np.float32)]


def theirs_v1(name: str, names: list[bytes], parts: list[bytes], arrays: list[Any]) -> None:
    tf.raw_ops.SaveSlices(filename=name, tensor_names=names, shapes_and_slices=parts, data=arrays)


def theirs_v2(name: str, names: list[bytes], parts: list[bytes], arrays: list[Any]) -> None:
    tf.raw_ops.SaveV2(prefix=name, tensor_names=names, shape_and_slices=parts, tensors=arrays)


@pytest.mark.parametrize(("op", "theirs"), [("SaveSlices", theirs_v1), ("SaveV2", theirs_v2)])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_bytes(tmp_path: Path, op: str, theirs: Callable[..., None], seed: int) -> None:
    names, parts, arrays = tensors(seed, OLD if op == "SaveSlices" else NUMBERS)
    theirs(str(tmp_path / "theirs"), names, parts, arrays)
    run = Session(tmp_path)
    run(op, one(b"ours"), text(*names), text(*parts), arrays)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name, data in files.items():
        assert data == files[name.replace("theirs", "ours")], name
    assert len(files) == (2 if op == "SaveSlices" else 4)


@pytest.mark.parametrize("theirs", [theirs_v1, theirs_v2])
def test_theirs_are_read(tmp_path: Path, theirs: Callable[..., None]) -> None:
    names, parts, arrays = tensors(7, OLD)
    theirs(str(tmp_path / "model"), names, parts, arrays)
    run = Session(tmp_path)
    kinds = ["string" if array.dtype == object else array.dtype for array in arrays]
    for name, part, array, kind in zip(names, parts, arrays, kinds, strict=True):
        (found,) = run("RestoreV2", one(b"model"), text(name), text(part), dtypes=[kind])
        assert found.shape == array.shape and found.tolist() == array.tolist(), name
        wanted = tf.raw_ops.RestoreV2(prefix=str(tmp_path / "model"), tensor_names=[name], shape_and_slices=[part],
                                      dtypes=[tf.as_dtype(array.dtype)])[0].numpy()  # fmt: skip
        # Of one text TensorFlow gives the bytes themselves.
        assert np.asarray(wanted, found.dtype).tolist() == found.tolist()


def test_keras_weights(tmp_path: Path) -> None:
    """A checkpoint of tf.train.Checkpoint, with its graph of objects, which is text."""
    kernel = np.random.default_rng(0).random((3, 3, 3, 2, 4), np.float32)
    prefix = tf.train.Checkpoint(kernel=tf.Variable(kernel)).write(str(tmp_path / "ckpt"))
    name = b"kernel/.ATTRIBUTES/VARIABLE_VALUE"
    (found,) = Session(tmp_path)(
        "RestoreV2", one(Path(prefix).name.encode()), text(name), text(b""), dtypes=["float32"]
    )
    assert np.array_equal(found, kernel)


def test_event_files(tmp_path: Path) -> None:
    """TensorFlow reads what a summary block made."""
    summary = Session()("ScalarSummary", text(b"loss", b"rate"), np.float32([0.5, 2]))
    with EventFile(tmp_path) as events:
        for step in (0, 7):
            events.add(summary.item(), step)
    first, *found = tf.compat.v1.train.summary_iterator(str(events.path))
    assert first.file_version == "brain.Event:2"
    read = [(event.step, [(one.tag, one.simple_value) for one in event.summary.value]) for event in found]
    assert read == [(step, [("loss", 0.5), ("rate", 2.0)]) for step in (0, 7)]
