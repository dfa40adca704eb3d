# SPDX-License-Identifier: Apache-2.0
"""Files of saved tensors: those that TensorFlow 2.21 wrote, byte for byte, and damaged ones."""

from __future__ import annotations

import base64
import io
import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.catalogue.test_sessions import Session, one, text
from voxgrad.errors import VoxgradError
from voxgrad.kernels import tables
from voxgrad.kernels.crc32c import crc32c
from voxgrad.kernels.saved_tensors import Key, data_name, index_name, read_v1, read_v2, v1_bytes, write_v2
from voxgrad.kernels.tables import table_bytes, table_entries
from voxgrad.kernels.wire import broken

# tf.raw_ops.SaveSlices and SaveV2 on the tensors below.
V1 = base64.b64decode(
    "AACZAQqWAQoLCgNiL3gSABgJIgAKDwoBYxIEEgIIARgIIgIKAAoPCgFoEgQSAggBGBMiAgoAChcKAXASCBICCAQSAggDGAEiBgoCEAIKAAoP"
    "CgFzEgQSAggCGAciAgoACg8KAXUSBBICCAIYBCICCgAKFQoBdxIIEgIIAhICCAIYASIECgAKAAoPCgF6EgQSAggCGAoiAgoAEgIIAQAHFwBi"
    "L3gAAQASFQoDYi94EgAaDFIK+f//////////AQEHFWMAAQEBgH8SEwoBYxICCgAaCkoIAACAPwAAAEABBw9oAAEBAYB/Eg0KAWgSAgoAGgRq"
    "AoB8AQkpcAABAQKAgoB/EicKAXASBgoCEAIKABoaKhgAAAAAAACAPwAAAEAAAEBAAACAQAAAoEABBxJzAAEBAYB/EhAKAXMSAgoAGgdCAWFC"
    "AmJjAQcQdQABAQGAfxIOCgF1EgIKABoFOgMB/wEBCR93AAEBAoB/gH8SHQoBdxIECgAKABoSKhAAAIA/AAAAQAAAQEAAAIBAAQcPegABAQGA"
    "fxINCgF6EgIKABoEWgIBAAAAAAABAAAAAPWCEJEAAAAAAQAAAADA8qGwAAEDAQCtAwAAAAABAAAAAPVaTnWyAwi/Aw8AAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s="
)
V2_INDEX = base64.b64decode(
    "AAAGCAEaAggBAAoVAHAAAQECgIKAfwgBEggSAggCEgIIAyAqKBg1wNs9FwADDWIveAgJEgAgECgINbvXnxEAARRwCAESCBICCAQSAggDOgYK"
    "AhACCgAAARFzCAcSBBICCAMgGCgSNVEnDAsAARN3CAESCBICCAISAggCKBA1TCiYdAAAAAABAAAAAOZay2UAAAAAAQAAAADA8qGwAAEDeACK"
    "AQAAAAABAAAAAGFs3sSPAQicAQ8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s="
)
V2_DATA = base64.b64decode("AACAPwAAAEAAAEBAAACAQAcAAAAAAAAABQAG/iFB6mhlbGxvd8O2cmxkAAAAAAAAgD8AAABAAABAQAAAgEAAAKBA")
_ROWS = np.array([[1, 2], [3, 4]], np.float32)
_PART = (Key("p", "4 3 0,2:-"), np.arange(6, dtype=np.float32).reshape(2, 3))
IN_V1 = [
    (Key("w"), _ROWS), (Key("b/x"), np.array(-7, np.int64)), _PART, (Key("h"), np.array([1.5], np.float16)),
    (Key("s"), text(b"a", b"bc")), (Key("z"), np.array([True, False])), (Key("c"), np.array([1 + 2j], np.complex64)),
    (Key("u"), np.array([1, 255], np.uint8)),
]  # fmt: skip
IN_V2 = [
    (Key("w"), _ROWS), (Key("b/x"), np.array(7, np.int64)), (Key("s"), text(b"hello", b"", "wörld".encode())), _PART,
]  # fmt: skip


def test_checkpoints_are_tensorflows_byte_for_byte() -> None:
    assert v1_bytes(IN_V1) == V1
    data = io.BytesIO()
    assert write_v2(IN_V2, data) == V2_INDEX and data.getvalue() == V2_DATA


def same(found: Any, wanted: Any) -> None:
    assert {key: (one.dtype, one.tolist()) for key, one in found} == {k: (v.dtype, v.tolist()) for k, v in wanted}


def test_tensorflows_checkpoints_are_read(tmp_path: Path) -> None:
    same([(key, held.load()) for key, held in read_v1(V1, "v1").items()], IN_V1)
    files = {data_name("v2"): V2_DATA}
    read = read_v2("v2", V2_INDEX, lambda name: io.BytesIO(files[name]))
    same([(key, held.load()) for key, held in read.items()], IN_V2)
    (tmp_path / "old").write_bytes(V1)
    (tmp_path / index_name("new")).write_bytes(V2_INDEX)
    (tmp_path / data_name("new")).write_bytes(V2_DATA)
    run = Session(tmp_path)
    assert run("Restore", one(b"old"), one(b"w"), dt="float32").tolist() == _ROWS.tolist()
    assert run("RestoreSlice", one(b"old"), one(b"p"), one(b"4 3 1,1:0,2"), dt="float32").tolist() == [[3, 4]]
    for name, w in ((b"old", text(b"a", b"bc")), (b"new", IN_V2[2][1])):
        (found,) = run("RestoreV2", one(name), text(b"s"), text(b""), dtypes=["string"])
        assert found.tolist() == w.tolist()
    with pytest.raises(VoxgradError, match=r"VG011 Restore: dt must be the type of s, texts; got float32"):
        run("Restore", one(b"old"), one(b"s"), dt="float32")
    with pytest.raises(VoxgradError, match=r"tensor_name must be one of w, b/x|tensor_name must be one of b/x"):
        run("Restore", one(b"old"), one(b"nothing"), dt="float32")


def test_an_op_prefers_what_its_version_writes(tmp_path: Path) -> None:
    run = Session(tmp_path)
    run("Save", one(b"m"), text(b"x"), [np.float32([1])])
    run("SaveV2", one(b"m"), text(b"x"), text(b""), [np.float32([2])])
    assert run("Restore", one(b"m"), one(b"x"), dt="float32").tolist() == [1]
    assert run("RestoreV2", one(b"m"), text(b"x"), text(b""), dtypes=["float32"])[0].tolist() == [2]
    (tmp_path / "m").unlink()
    assert run("Restore", one(b"m"), one(b"x"), dt="float32").tolist() == [2]


def test_archives_are_read_whatever_they_are_called(tmp_path: Path) -> None:
    run = Session(tmp_path)
    run("SaveSlices", one(b"a.npz"), text(b"w", b"p"), text(b"", b"4 3 0,2:-"), [_ROWS, _PART[1]])
    (tmp_path / "a.npz").rename(tmp_path / "model")
    assert run("Restore", one(b"model"), one(b"w"), dt="float32").tolist() == _ROWS.tolist()
    assert run("RestoreSlice", one(b"model"), one(b"p"), one(b"4 3 1,1:-"), dt="float32").tolist() == [[3, 4, 5]]
    with pytest.raises(VoxgradError, match=r"VG011 Save: data must hold numbers to be saved; got text in s.*\.npz"):
        run("Save", one(b"t.npz"), text(b"s"), [text(b"x")])


def test_parts_of_a_tensor_have_one_shape(tmp_path: Path) -> None:
    run, half = Session(tmp_path), _PART[1]
    for parts, tensors in (((b"4 3 0,2:-", b"5 3 2,2:-"), [half, half]), ((b"", b"4 3 2,2:-"), [half, half])):
        with pytest.raises(VoxgradError, match="VG003 SaveV2: tensor_names must state one shape for all parts of w"):
            run("SaveV2", one(b"f"), text(b"w", b"w"), text(*parts), tensors)
    empty = np.zeros((0, 3), np.float32)
    run("SaveSlices", one(b"f"), text(b"e"), text(b""), [empty])
    assert run("Restore", one(b"f"), one(b"e"), dt="float32").shape == (0, 3)


def test_every_damaged_byte_is_noticed() -> None:
    for at in range(len(V2_DATA)):
        files = {data_name("v2"): V2_DATA[:at] + bytes([V2_DATA[at] ^ 1]) + V2_DATA[at + 1 :]}
        with pytest.raises(VoxgradError, match="VG053"):
            [
                held.load()
                for held in read_v2("v2", V2_INDEX, lambda name, files=files: io.BytesIO(files[name])).values()
            ]
    for data, last in ((V1, 48), (V2_INDEX, 48)):
        for at in range(len(data) - last):
            spoiled = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
            # Blocks that hold nothing are not looked at.
            assert list(table_entries(data, "t")) == entries(spoiled) or entries(spoiled) is None


def entries(data: bytes) -> Any:
    try:
        return list(table_entries(data, "t"))
    except VoxgradError as error:
        assert "VG053" in str(error)
        return None


def test_random_bytes_end_in_an_error_with_a_name() -> None:
    """Also where checksums are good: what a table holds is made up, and its sizes lie."""
    chance, sound = random.Random(5), 0
    for _ in range(2000):
        old, new = made_up(chance, V1), made_up(chance, V2_INDEX)
        for read in (partial(read_v1, old, "t"), partial(read_v2, "v2", new, bytes_of)):
            try:
                sound += len([held.load() for held in read().values()])
            except VoxgradError as error:
                assert error.faults[0].code == "VG053", error
    assert sound > 0


def made_up(chance: random.Random, table: bytes) -> bytes:
    return table_bytes([(key, changed(chance, value)) for key, value in table_entries(table, "t")])


def bytes_of(name: str) -> io.BytesIO:
    if name != data_name("v2"):
        raise broken("v2", name)
    return io.BytesIO(V2_DATA)


def changed(chance: random.Random, value: bytes) -> bytes:
    if not value or chance.random() < 0.7:
        return value
    at = chance.randrange(len(value))
    return value[:at] + bytes([chance.randrange(256)]) + value[at + chance.randrange(2) :]


def test_tables_of_many_blocks() -> None:
    many = [(f"layer/{at:07d}/weights".encode(), b"\x08\x01" * (at % 200)) for at in range(4000)]
    made = table_bytes(many)
    assert list(table_entries(made, "t")) == many


def test_keys_are_not_spelled_out_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables._Block.__init__, "__defaults__", (10**6,))
    made = table_bytes([(b"k" * 4000 + f"{at:05d}".encode(), b"") for at in range(20_000)])
    with pytest.raises(VoxgradError, match="keys of more than 64 times"):
        list(table_entries(made, "t"))


def bit_by_bit(data: bytes) -> int:
    register = 2**32 - 1
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ (2**32 - 1)


@pytest.mark.parametrize("length", [0, 1, 16_383, 16_384, 16_385, 70_001])
def test_checksums(length: int) -> None:
    data = np.random.default_rng(length).bytes(length)
    assert crc32c(data) == bit_by_bit(data)
    assert crc32c(data[length // 3 :], crc32c(data[: length // 3])) == bit_by_bit(data)
    assert crc32c(b"123456789") == 0xE3069283
