# SPDX-License-Identifier: Apache-2.0
"""Graphs of TensorFlow, recorded from it, are pages that give the same numbers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxgrad as vg
from examples.make_pages import FOLDER, PAGES
from voxgrad.cli import main
from voxgrad.errors import VoxgradError
from voxgrad.formats.graphdef import export_graph, import_graph
from voxgrad.formats.graphdef.convert import convert
from voxgrad.formats.graphdef.values import tensor
from voxgrad.formats.page_file import load
from voxgrad.formats.script import export_script
from voxgrad.graph.session import ClientSession
from voxgrad.kernels.wire import parse

SAMPLES = Path(__file__).with_name("graphdef")


@pytest.mark.parametrize("name", ["unet_block", "second_order", "xor"])
def test_recorded_graphs_give_the_numbers_of_their_pages(name: str) -> None:
    made, report = import_graph(SAMPLES / f"{name}.pb")
    assert report.remarks == []
    assert made.problems() == []
    page = load(FOLDER / f"{name}.vox.json")
    ours, theirs = ClientSession(page), ClientSession(made)
    if page.initializers:
        theirs.run(targets=[block.name for block in page.initializers])
    paths = [output.path for output in page.outputs.values()]
    targets = [block.name for block in page.targets]
    for _ in range(3):
        for one, two in zip(ours.run(paths, targets=targets), theirs.run(paths, targets=targets), strict=True):
            np.testing.assert_array_equal(one, two)


OURS = ("scan_edges",)
"""Pages with ops that TensorFlow does not have."""
RIGHT = [name for name in PAGES if not name.endswith("_mistake") and name not in OURS]


@pytest.mark.parametrize("name", RIGHT)
def test_exported_graphs_come_back(name: str) -> None:
    page = load(FOLDER / f"{name}.vox.json")
    made, report = convert(export_graph(page), "g.pb", "g")
    assert report.remarks == []
    made.start_with([block.name for block in page.initializers])
    paths, targets = [one.path for one in page.outputs.values()], [block.name for block in page.targets]
    for one, two in zip(
        ClientSession(page).loop(2, paths, targets=targets),
        ClientSession(made).loop(2, paths, targets=targets),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parity
@pytest.mark.parametrize("name", RIGHT)
def test_tensorflow_runs_exported_graphs(name: str) -> None:
    tf = pytest.importorskip("tensorflow")
    page = load(FOLDER / f"{name}.vox.json")
    graph, definition = tf.Graph(), tf.compat.v1.GraphDef()
    definition.ParseFromString(export_graph(page))
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    names, targets = [one.name for one in page.outputs.values()], [block.name for block in page.targets]
    with tf.compat.v1.Session(graph=graph) as session:
        session.run([block.name for block in page.initializers])
        found = [session.run([names, targets])[0] for _ in range(2)][-1]
    wanted = ClientSession(page).loop(2, list(page.outputs.values()), targets=page.targets)
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-6 * float(np.abs(two).max()))


def _quantised_page() -> vg.Page:
    """Quantised integers through an op that knows plain ones, and a typed matrix beside them."""
    page, x = vg.Page("quantised"), np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
    whole = page.add("QuantizeV2", {"input": x, "min_range": -1.0, "max_range": 2.0}, {"T": "quint8"})
    moved = page.add("Reshape", {"tensor": whole.output(0), "shape": np.array([4, 3], np.int32)})
    matrix = {"b": np.array([[1, 2], [3, 4], [5, 250]], np.uint8), "min_b": 0.0, "max_b": 4.0}
    product = page.add(
        "QuantizedMatMul", {"a": moved.output(0), "min_a": whole.output(1), "max_a": whole.output(2), **matrix}
    )
    ends = {"min_range": product.output(1), "max_range": product.output(2)}
    page.add("Dequantize", {"input": product.output(0), **ends}, {"mode": "MIN_FIRST"}, name="floats")
    return page


def test_quantised_integers_come_back() -> None:
    page = _quantised_page()
    back, _ = convert(export_graph(page), "a graph", "t")
    assert back.problems() == [] and {block.op_name for block in back.blocks} >= {"Bitcast", "QuantizedMatMul"}
    np.testing.assert_array_equal(ClientSession(back).run("floats"), ClientSession(page).run("floats"))


@pytest.mark.parity
def test_tensorflow_runs_exported_quantised_integers() -> None:
    tf = pytest.importorskip("tensorflow")
    page, definition = _quantised_page(), tf.compat.v1.GraphDef()
    definition.ParseFromString(export_graph(page))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(definition, name="")
        np.testing.assert_array_equal(session.run("floats:0"), ClientSession(page).run("floats"))


def test_pages_that_are_wrong_are_not_exported() -> None:
    with pytest.raises(VoxgradError, match="VG012"):
        export_graph(load(FOLDER / "avg_pool3d_grad_mistake.vox.json"))


@pytest.mark.parametrize("export", [export_graph, lambda page: export_script(page, "tensorflow", "page.py")])
def test_padding_in_numbers_is_not_exported(export: Any) -> None:
    page = vg.Page()
    x = vg.ops.Const(page, value=np.ones((1, 4, 4, 4, 1), np.float32))
    vg.ops.MaxPool3D(page, x, ksize=[1, 3, 3, 3, 1], strides=[1, 2, 2, 2, 1], padding="1")
    with pytest.raises(VoxgradError, match=r"VG054.*padding that TensorFlow knows, SAME or VALID.*Put a Pad before it"):
        export(page)


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(key: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(key << 3) + varint(value)
    return varint(key << 3 | 2) + varint(len(value)) + value


def node(name: str, op: str, *inputs: str, **attrs: bytes) -> bytes:
    body = field(1, name.encode()) + field(2, op.encode()) + b"".join(field(3, one.encode()) for one in inputs)
    body += b"".join(field(5, field(1, key.encode()) + field(2, value)) for key, value in attrs.items())
    return field(1, body)


def test_constants_in_all_their_forms() -> None:
    def read(dtype: int, sizes: list[int], rest: bytes) -> list[object]:
        shape = b"".join(field(2, field(1, size)) for size in sizes)
        found: list[object] = tensor(parse(field(1, dtype) + field(2, shape) + rest, "t")).tolist()
        return found

    assert read(1, [2], field(4, struct.pack("<2f", 1, 2))) == [1, 2]
    assert read(1, [3], field(5, struct.pack("<f", 7))) == [7, 7, 7]  # one value stands for all
    assert read(1, [2], b"") == [0, 0]
    assert read(3, [2, 1], field(7, varint(-1) + varint(5))) == [[-1], [5]]
    assert read(9, [1], field(10, 2**40)) == [2**40]
    assert read(10, [2], field(11, varint(1) + varint(0))) == [True, False]
    assert read(19, [1], field(13, varint(0x3C00))) == [1.0]
    assert read(14, [1], field(13, varint(0x3F80))) == [1.0]
    assert read(2, [1], field(6, struct.pack("<d", 0.1))) == [0.1]
    assert read(7, [2], field(8, b"a") + field(8, b"\xff")) == [b"a", b"\xff"]
    assert read(8, [1], field(9, struct.pack("<2f", 1, 2))) == [1 + 2j]
    for bad in (field(1, 99), field(1, 20) + field(2, b""), field(1, 6) + field(2, b"") + field(7, 300)):
        with pytest.raises(VoxgradError):
            tensor(parse(bad, "t"))
    huge = b"".join(field(2, field(1, 2**20)) for _ in range(3))
    with pytest.raises(VoxgradError, match="a constant of shape"):
        tensor(parse(field(1, 1) + field(2, huge), "t"))


def test_what_is_unknown_is_kept_and_told() -> None:
    value = field(8, field(1, 1) + field(2, b"") + field(5, struct.pack("<f", 2)))
    data = (
        node("c", "Const", value=value, dtype=field(6, 1))
        + node("d", "Neg", "c", "^c")
        + node("e", "Magic", "d:0", "q")
    )
    page, report = convert(data, "g.pb", "g")
    assert [block.op_name for block in page] == ["Const", "Neg", "Magic"]
    assert [block.name for block in page["d"].control] == ["c"]
    assert page["e"].sources["input_0"][0].path == "d.y"  # type: ignore[union-attr]
    assert {remark.place for remark in report.lost} == {"e", "e.input_1"}
    assert float(ClientSession(page).run("d")) == -2


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"hello", node("a", "Neg") * 2, node("", "Neg"), b"\x0a\xff\xff\xff\xff\x0f"]
)
def test_bad_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(VoxgradError, match=r"VG053 g\.pb"):
        convert(data, "g.pb", "g")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_graphs_are_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray((SAMPLES / "xor.pb").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        convert(bytes(raw), "g.pb", "g")
    except VoxgradError as error:
        assert "g.pb" in str(error) or error.faults[0].code.startswith("VG0")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(SAMPLES / "second_order.pb"), "-o", str(tmp_path / "g.vox.json")]) == 0
    assert main(["run", str(tmp_path / "g.vox.json"), "--fetch", "loss"]) == 0
    assert "432.879" in capsys.readouterr().out
    assert main(["export", str(tmp_path / "g.vox.json"), "--to", "graphdef", "-o", str(tmp_path / "g.pb")]) == 0
    assert import_graph(tmp_path / "g.pb")[0].problems() == []
    assert main(["export", str(tmp_path / "g.vox.json"), "--to", "graphdef"]) == 3
