# SPDX-License-Identifier: Apache-2.0
"""Pages of enuSpace mean what they meant, whatever their shape; test_enuspace_originals.py has those it came with."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.enuspace_dialect import OldPage, saved_in
from voxgrad.catalog import registry
from voxgrad.cli.run import run_page
from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace import Imported, import_page, import_project, library
from voxgrad.formats.enuspace.library import missing
from voxgrad.formats.enuspace.xml_tree import parse_xml
from voxgrad.formats.page_file import dumps, loads
from voxgrad.formats.picture import draw_svg
from voxgrad.graph.session import ClientSession
from voxgrad.kernels.arraywise import png

SAMPLES = Path(__file__).with_name("enuspace")
Array = np.ndarray[Any, Any]


def run(found: Imported, cycles: int = 1, folder: Path | None = None) -> dict[str, dict[str, Array]]:
    """Results of every block, after the page went through its file."""
    page = loads(dumps(found.page))
    return run_page(ClientSession(page, allow_files=() if folder is None else folder), [], {}, cycles)


def needs(*blocks: str) -> pytest.MarkDecorator:
    absent = [name for name in blocks if name in {symbol.name for symbol in missing()}]
    return pytest.mark.skipif(bool(absent), reason=f"no op yet for {', '.join(absent)}")


def test_what_a_sample_becomes() -> None:
    page = import_page(SAMPLES / "basic.svg").page
    assert [(block.name, block.op_name) for block in page] == [
        ("ID_A", "Const"),
        ("ID_B", "Const"),
        ("ID_MUL", "MatMul"),
    ]
    assert page["ID_MUL"].attrs == {"transpose_b": True}
    assert page["ID_A"].position == (917.22, 293.44)
    assert page["ID_A"].attrs["value"].dtype == np.float64
    assert list(page.outputs) == ["ID_MUL"]
    (text,) = page.displays
    assert "auto v = MatMul" in text.attrs["text"]
    # The first of its lines stood at 147.78, in letters of 20.
    assert (text.kind.name, text.position, text.attrs["points"]) == ("text", (102.22, 127.78), 20.0)
    assert "result" not in dumps(page)


def test_gradient_descent_with_an_apply_block(tmp_path: Path) -> None:
    old = OldPage()
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])
    old.block("X", "Const", val=x)
    old.block("Y", "Const", val=y)
    old.block("W", "Variable", shape="{1}", dtype="DT_DOUBLE", attrs="container_ =;shared_name_ =;", initvalues="{100}")
    old.block("H", "Multiply", x="", y="")
    old.block("D", "Subtract", x="", y="")
    old.block("DX", "Multiply", x="", y="")
    old.block("G", "Mean", input="", axis="0", attrs="keep_dims_ = true;")
    old.block("APPLY", "ApplyGradientDescent", var="", alpha="0.01", delta="", attrs="use_locking_ = false;")
    old.block("TREND", "SENSOR_TREND", task="logic")
    old.links(("X.output", "H.x"), ("W.ref", "H.y"), ("H.z", "D.x"), ("Y.output", "D.y"), ("D.z", "DX.x"))
    old.links(("X.output", "DX.y"), ("DX.z", "G.input"), ("G.output", "APPLY.delta"), ("W.ref", "APPLY.var"))
    old.link("W.result_ref", "TREND.value")
    old.session(["APPLY.out"], INFINITE_LOOP="TRUE")
    found = import_page(old.write(tmp_path / "a.svg"))
    assert found.report.lost == []
    assert any("--cycles forever" in remark.text for remark in found.report.remarks)
    (trend,) = found.page.displays
    assert (trend.name, trend.kind.name, [one.path for one in trend.of]) == ("TREND", "trend", ["W.ref"])
    w = 100.0
    for _ in range(5):
        w -= 0.01 * np.mean((w * x - y) * x)
    np.testing.assert_allclose(run(found, 5)["APPLY"]["out"], [w])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def test_a_small_net_with_hand_wired_gradients(tmp_path: Path) -> None:
    """XOR: two sigmoid layers, every gradient a block, four Assigns on one session."""
    x, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([[0.0], [1], [1], [0]])
    w1, w2 = np.array([[0.5, -0.4], [0.3, 0.8]]), np.array([[0.7], [-0.6]])
    old = OldPage("4.0.3.0")
    old.block("X", "Const", val=x)
    old.block("Y", "Const", val=y)
    old.block("W1", "Variable", shape="{2,2}", dtype="DT_DOUBLE", initvalues="{{0.5,-0.4},{0.3,0.8}}")
    old.block("W2", "Variable", shape="[2][1]", dtype="DT_DOUBLE", initvalues=w2)
    names = {
        "Z1": "MatMul", "A1": "Sigmoid", "Z2": "MatMul", "A2": "Sigmoid", "E": "Subtract", "S2": "Subtract",
        "D2a": "Multiply", "D2b": "Multiply", "G2": "MatMul", "B1": "MatMul", "S1": "Subtract", "D1a": "Multiply",
        "D1b": "Multiply", "G1": "MatMul", "U1": "Multiply", "U2": "Multiply", "N1": "Subtract", "N2": "Subtract",
        "P1": "Assign", "P2": "Assign",
    }  # fmt: skip
    texts = {"G2": {"attrs": "transpose_a_ = true;transpose_b_ = false;"}, "G1": {"attrs": "transpose_a_ = true;"}}
    texts |= {"B1": {"attrs": "transpose_b_ = true;"}, "S2": {"x": "1.0"}, "S1": {"x": "1.0"}}
    texts |= {"U1": {"x": "0.1"}, "U2": {"x": "0.1"}}
    for name, symbol in names.items():
        old.block(name, symbol, **texts.get(name, {}))
    wires = """
        X.output>Z1.a W1.ref>Z1.b Z1.product>A1.x A1.y>Z2.a W2.ref>Z2.b Z2.product>A2.x A2.y>E.x Y.output>E.y
        A2.y>S2.y A2.y>D2a.x S2.z>D2a.y D2a.z>D2b.x E.z>D2b.y A1.y>G2.a D2b.z>G2.b D2b.z>B1.a W2.ref>B1.b
        A1.y>S1.y A1.y>D1a.x S1.z>D1a.y D1a.z>D1b.x B1.product>D1b.y X.output>G1.a D1b.z>G1.b
        G1.product>U1.y W1.ref>N1.x U1.z>N1.y G2.product>U2.y W2.ref>N2.x U2.z>N2.y
        W1.ref>P1.ref N1.z>P1.value W2.ref>P2.ref N2.z>P2.value"""
    for wire in wires.split():
        old.link(*wire.split(">"))
    old.session(["E.z", "P1.output_ref", "P2.output_ref"])
    found = import_page(old.write(tmp_path / "xor.svg"))
    assert found.report.lost == []
    assert len(found.page) == 26
    for _ in range(10):
        a1 = sigmoid(x @ w1)
        a2 = sigmoid(a1 @ w2)
        error = a2 - y
        d2 = a2 * (1 - a2) * error
        d1 = a1 * (1 - a1) * (d2 @ w2.T)
        w1, w2 = w1 - 0.1 * (x.T @ d1), w2 - 0.1 * (a1.T @ d2)
    results = run(found, 10)
    np.testing.assert_allclose(results["E"]["z"], error)
    np.testing.assert_allclose(results["P1"]["output_ref"], w1)
    np.testing.assert_allclose(results["P2"]["output_ref"], w2)


@needs("L2Loss", "AddN")
def test_automatic_gradients(tmp_path: Path) -> None:
    """tanh layers with an L2 term: AddSymbolicGradients, indexed outputs, hidden links, list pins."""
    x = np.array([[0.5, -1.0]])
    old = OldPage()
    old.block("X", "Const", val=x)
    old.block("W1", "Variable", shape="{2,3}", dtype="DT_DOUBLE", initvalues="{{0.1,0.2,0.3},{0.4,0.5,0.6}}")
    old.block("W2", "Variable", shape="{3,1}", dtype="DT_DOUBLE", initvalues="{{1},{2},{3}}")
    for name, symbol in {
        "Z1": "MatMul",
        "T1": "Tanh",
        "Z2": "MatMul",
        "T2": "Tanh",
        "L1": "L2Loss",
        "L2": "L2Loss",
    }.items():
        old.block(name, symbol)
    old.block("LIST", "InputList")
    old.block("LOSS", "AddN")
    old.block("GRADS", "AddSymbolicGradients")
    old.block("STEP1", "ApplyGradientDescent", alpha="0.1")
    old.block("STEP2", "ApplyGradientDescent", alpha="0.1")
    wires = """X.output>Z1.a W1.ref>Z1.b Z1.product>T1.x T1.y>Z2.a W2.ref>Z2.b Z2.product>T2.x T2.y>L1.t W1.ref>L2.t
        L1.output>LIST.outputlist L2.output>LIST.outputlist LIST.output>LOSS.inputs LOSS.sum>GRADS.outputs
        W1.ref>GRADS.inputs W2.ref>GRADS.inputs W1.ref>STEP1.var W2.ref>STEP2.var
        GRADS.grad_outputs[1]>STEP2.delta GRADS.grad_outputs[0]>STEP1.delta"""
    for wire in wires.split():
        old.link(*wire.split(">"), hidden="GRADS" in wire)
    old.session(["LOSS.sum", "STEP1.out", "STEP2.out"])
    found = import_page(old.write(tmp_path / "g.svg"))
    assert found.report.lost == []
    assert any(block.name.startswith("gradients/") for block in found.page)
    w1, w2 = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]), np.array([[1.0], [2], [3]])
    t1 = np.tanh(x @ w1)
    t2 = np.tanh(t1 @ w2)
    d2 = t2 * (1 - t2**2)
    d1 = (d2 @ w2.T) * (1 - t1**2)
    results = run(found)
    np.testing.assert_allclose(results["LOSS"]["sum"], (t2**2).sum() / 2 + (w1**2).sum() / 2)
    np.testing.assert_allclose(results["STEP1"]["out"], w1 - 0.1 * (x.T @ d1 + w1))
    np.testing.assert_allclose(results["STEP2"]["out"], w2 - 0.1 * (t1.T @ d2))


READER = ("FIFOQueue", "QueueEnqueue", "QueueSize", "FixedLengthRecordReader", "ReaderReadUpTo", "DecodeRaw", "Switch")


@needs(*READER)
def test_records_are_read_through_a_gated_queue(tmp_path: Path) -> None:
    """A file of records after the MNIST page: the queue is filled by a Switch when it is empty, and read two by two."""
    images = np.random.default_rng(0).integers(0, 256, size=(6, 16), dtype=np.uint8)
    (tmp_path / "images.bin").write_bytes(b"head" + images.tobytes())
    old = OldPage()
    old.block("FILE", "Const", val="C:\\\\Users\\\\someone\\\\images.bin")
    old.block(
        "Q",
        "FIFOQueue",
        component_types="DT_STRING",
        attrs="shapes_ = {};capacity_ = -1;container_ = ;shared_name_ = ;",
    )
    old.block("SIZE", "QueueSize")
    old.block("EMPTY", "Equal", y="0")
    old.block("GATE", "Switch")
    old.block("PUT", "QueueEnqueue", attrs="timeout_ms_ = -1;")
    old.block("DO", "Operation")
    more = "header_bytes_ = 4;footer_bytes_ = 0;hop_bytes_ = 0;container_ = ;shared_name_ = ;"
    old.block("READER", "FixedLengthRecordReader", record_bytes="16", attrs=more)
    old.block("READ", "ReaderReadUpTo", num_records="2")
    old.block("RAW", "DecodeRaw", out_type="DT_UINT8", attrs="little_endian_ = true;")
    old.block("NUMBERS", "Cast", DstT="DT_DOUBLE")
    old.block("SCALED", "Div", y="255.0")
    wires = """Q.handle>SIZE.handle SIZE.size>EMPTY.x FILE.output>GATE.data EMPTY.z>GATE.pred Q.handle>PUT.handle
        GATE.output_true>PUT.components PUT.operation>DO.operation READER.reader_handle>READ.reader_handle
        Q.handle>READ.queue_handle READ.values>RAW.bytes RAW.output>NUMBERS.x NUMBERS.y>SCALED.x"""
    for wire in wires.split():
        old.link(*wire.split(">"))
    old.session(["SCALED.z", "Q.handle"], ["DO.output"])
    found = import_page(old.write(tmp_path / "mnist.svg"))
    assert found.report.lost == []
    assert found.page.problems() == []
    session = ClientSession(loads(dumps(found.page)), allow_files=tmp_path)
    for cycle in range(3):
        results = run_page(session, [], {})
        np.testing.assert_allclose(results["SCALED"]["z"], images[2 * cycle : 2 * cycle + 2] / 255)
        assert "Q" not in results


@needs("Switch", "QueueEnqueue")
def test_a_branch_that_is_not_taken_does_nothing(tmp_path: Path) -> None:
    """A counter that stops at a mark, as the training pages have it: Switch gates the Assign."""
    old = OldPage()
    old.block("COUNT", "Variable", shape="{}", dtype="DT_INT32", initvalues="0")
    old.block("MORE", "Add", y="1")
    old.block("LESS", "Greater", x="3")
    old.block("GATE", "Switch")
    old.block("SET", "Assign", attrs="validate_shape_ = true;")
    old.block("DO", "Operation")
    wires = """COUNT.ref>MORE.x COUNT.ref>LESS.y MORE.z>GATE.data LESS.z>GATE.pred COUNT.ref>SET.ref
        GATE.output_true>SET.value SET.output_ref>DO.operation"""
    for wire in wires.split():
        old.link(*wire.split(">"))
    old.session(["MORE.z"], ["DO.output"])
    found = import_page(old.write(tmp_path / "gate.svg"))
    assert found.report.lost == []
    session = ClientSession(loads(dumps(found.page)))
    seen = [int(run_page(session, [], {})["MORE"]["z"]) for _ in range(6)]
    assert seen == [1, 2, 3, 4, 4, 4]


@needs("Save", "Restore", "SparseToDense", "ArgMax")
def test_weights_are_saved_and_restored_beside_the_page(tmp_path: Path) -> None:
    """The end of a training page and the start of its evaluation."""
    path = "C:\\\\Users\\\\someone\\\\weights.ckpt"
    old = OldPage()
    old.block("W", "Variable", shape="{2,2}", dtype="DT_DOUBLE", initvalues="{{1,2},{3,4}}")
    old.block("B", "Variable", shape="{2}", dtype="DT_DOUBLE", initvalues="{5,6}")
    old.block("LIST", "InputList")
    old.block("SAVE", "Save", filename=path, tensor_names='{"W","B"}')
    old.links(("W.ref", "LIST.outputlist"), ("B.ref", "LIST.outputlist"), ("LIST.output", "SAVE.data"))
    old.session(run=["SAVE.operation"])
    found = import_page(old.write(tmp_path / "train.svg"))
    assert found.report.lost == []
    run(found, folder=tmp_path)
    old = OldPage()
    old.block("FILE", "Const", val=path)
    old.block("RW", "Restore", tensor_name='"W"', dt="DT_DOUBLE", attrs="preferred_shard_ = -1;")
    old.block("LABELS", "Const", val=np.array([[0, 1], [1, 0]], dtype=np.int32))
    old.block("DENSE", "SparseToDense", output_shape="{2,2}", sparse_values="1.0", default_value="0.0")
    old.block("SUM", "Add")
    old.block("BEST", "ArgMax", dimension="1")
    old.links(("FILE.output", "RW.file_pattern"), ("LABELS.output", "DENSE.sparse_indices"), ("RW.tensor", "SUM.x"))
    old.links(("DENSE.dense", "SUM.y"), ("SUM.z", "BEST.input"))
    old.session(["BEST.output"])
    found = import_page(old.write(tmp_path / "eval.svg"))
    assert found.report.lost == []
    assert found.page.problems() == []
    results = run(found, folder=tmp_path)
    np.testing.assert_array_equal(results["SUM"]["z"], [[1, 3], [4, 4]])
    np.testing.assert_array_equal(results["BEST"]["output"], [1, 0])


@needs("Conv2D", "MaxPool", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Transpose", "Reshape")
def test_a_convolution_with_hand_wired_gradients(tmp_path: Path) -> None:
    """The shape of the CNN page: 2-D blocks with their text attributes, and both gradients of the convolution."""
    x = np.arange(16.0).reshape(1, 4, 4, 1)
    w = np.array([1.0, -1.0, 0.5, 2.0]).reshape(2, 2, 1, 1)
    old = OldPage()
    old.block("X", "Const", val=np.arange(16.0))
    old.block("IMAGE", "Reshape", shape="{1,4,4,1}")
    old.block("W", "Const", val=w)
    old.block(
        "CONV", "Conv2D", strides="1,1,1,1", padding="VALID", attrs="use_cudnn_on_gpu_ = true;data_format_ = NHWC;"
    )
    old.block("RELU", "Relu")
    old.block("POOL", "MaxPool", ksize="1,3,3,1", strides="1,3,3,1", padding="VALID", attrs="data_format_ = NHWC;")
    old.block("DW", "Conv2DBackpropFilter", filter_sizes="{2,2,1,1}", strides="1,1,1,1", padding="VALID")
    old.block("DX", "Conv2DBackpropInput", input_sizes="{1,4,4,1}", strides="1,1,1,1", padding="VALID")
    old.block("T", "Transpose", perm="{0,2,1,3}")
    wires = """X.output>IMAGE.tensor IMAGE.output>CONV.input W.output>CONV.filter CONV.output>RELU.features
        RELU.activations>POOL.input IMAGE.output>DW.input CONV.output>DW.out_backprop W.output>DX.filter
        CONV.output>DX.out_backprop DX.output>T.x"""
    for wire in wires.split():
        old.link(*wire.split(">"))
    old.session(["POOL.output", "DW.output", "T.y"])
    found = import_page(old.write(tmp_path / "cnn.svg"))
    assert found.report.lost == []
    assert found.page.problems() == []
    conv = sum(w[i, j, 0, 0] * x[:, i : i + 3, j : j + 3] for i in range(2) for j in range(2))
    dw = [(x[:, i : i + 3, j : j + 3] * conv).sum() for i in range(2) for j in range(2)]
    dx = np.zeros_like(x)
    for i in range(2):
        for j in range(2):
            dx[:, i : i + 3, j : j + 3] += w[i, j, 0, 0] * conv
    results = run(found)
    np.testing.assert_allclose(results["CONV"]["output"], conv)
    np.testing.assert_allclose(results["POOL"]["output"].ravel(), [conv.max()])
    np.testing.assert_allclose(results["DW"]["output"].ravel(), dw)
    np.testing.assert_allclose(results["T"]["y"], dx.transpose(0, 2, 1, 3))


def test_feeds_become_placeholders_with_a_default(tmp_path: Path) -> None:
    old = OldPage()
    old.block("P", "Placeholder", dtype="DT_DOUBLE", attrs="shape_ = {2};")
    old.block("INIT", "Input_Initializer", t="{3.5,4.5}")
    old.block("FEED", "FeedType")
    old.block("NEG", "Negate")
    old.links(("P.output", "FEED.input"), ("INIT.output", "FEED.initializer"), ("P.output", "NEG.x"))
    old.session(["NEG.y"])
    old.link("FEED.output", "ID_SESSION.inputs")
    found = import_page(old.write(tmp_path / "feed.svg"))
    assert found.report.lost == []
    np.testing.assert_array_equal(run(found)["NEG"]["y"], [-3.5, -4.5])


def test_helpers_pass_wires_on(tmp_path: Path) -> None:
    """Tensor and Input hold values; Operation and Output are views of the same block."""
    old = OldPage()
    old.block("T", "Tensor", dtype="DT_FLOAT", initvalues="{1.0f,2.0f}")
    old.block("I", "Input", dtype="DT_FLOAT", initvalues="{10,20}")
    old.block("A", "Add")
    old.block("V", "Variable", shape="{2}", dtype="DT_FLOAT", initvalues="{0,0}")
    old.block("SET", "Assign", attrs="validate_shape_ = true;use_locking_ = true;")
    old.block("OP", "Operation")
    old.block("OUT", "Output", index="0")
    old.block("N", "Negate")
    old.block("STATUS", "Status")
    old.links(("T.output", "A.x"), ("I.input", "A.y"), ("V.ref", "SET.ref"), ("A.z", "SET.value"))
    old.links(("SET.output_ref", "OP.operation"), ("OP.output", "OUT.output_op"), ("OUT.output", "N.x"))
    old.session(run=["OP.output", "N.y"])
    found = import_page(old.write(tmp_path / "h.svg"))
    assert found.report.lost == []
    assert [block.name for block in found.page.targets] == ["SET", "N"]
    results = run(found)
    np.testing.assert_array_equal(results["SET"]["output_ref"], [11, 22])
    np.testing.assert_array_equal(results["N"]["y"], [-11, -22])


def test_large_constants_come_from_the_dat_file(tmp_path: Path) -> None:
    values = np.arange(400, dtype=np.float32).reshape(20, 20)
    old = OldPage()
    old.block("A", "Const", val=np.arange(200, dtype=np.int32))
    old.block("B", "Const_ex", dtype="DT_DOUBLE", val=values)
    old.block("N", "Square")
    old.link("B.output", "N.x")
    old.session(["N.y"])
    path = old.write(tmp_path / "big.svg")
    found = import_page(path)
    np.testing.assert_array_equal(run(found)["N"]["y"], values.astype(np.float64) ** 2)
    path.with_suffix(".dat").write_bytes(old.data[:-1])
    assert "find 1600 bytes in the .dat file" in str(import_page(path).report.lost[0])
    path.with_suffix(".dat").unlink()
    assert import_page(path).report.lost


def test_a_file_of_values_is_no_page(tmp_path: Path) -> None:
    (tmp_path / "net.dat").write_bytes(bytes(range(256)))
    with pytest.raises(VoxgradError, match=r"Import net\.svg, which reads it"):
        import_page(tmp_path / "net.dat")


def test_a_variable_without_type_and_shape_has_those_of_its_first_value(tmp_path: Path) -> None:
    """A text, an array, a .dat, a wire: all as the editor leaves a Variable whose table was never filled in."""
    large = np.arange(200, dtype=np.float32).reshape(10, 20)
    old = OldPage()
    old.block("TYPED", "Variable", shape="", dtype="", initvalues="{{0.5f,1.5f}}")
    old.block("ONE", "Variable", shape="", dtype="", initvalues=np.array([[0.25]], np.float32))
    old.block("LARGE", "Variable", shape="", dtype="", initvalues=large)
    old.block("HALF_SAID", "Variable", shape="", dtype="DT_DOUBLE", initvalues="{1,2,3}")
    old.block("C", "Const", val=np.array([[1, 2]], np.int32))
    old.block("WIRED", "Variable", shape="", dtype="", initvalues="")
    old.link("C.output", "WIRED.initvalues")
    names = ["TYPED", "ONE", "LARGE", "HALF_SAID", "WIRED"]
    old.session([f"{name}.ref" for name in names])
    found = import_page(old.write(tmp_path / "v.svg"))
    assert found.report.lost == []
    assert found.page.problems() == []
    kinds = {name: (found.page[name].attrs["dtype"], list(found.page[name].attrs["shape"])) for name in names}
    assert kinds == {
        "TYPED": ("float32", [1, 2]), "ONE": ("float32", [1, 1]), "LARGE": ("float32", [10, 20]),
        "HALF_SAID": ("float64", [3]), "WIRED": ("int32", [1, 2]),
    }  # fmt: skip
    results = run(found)
    np.testing.assert_array_equal(results["ONE"]["ref"], [[0.25]])
    np.testing.assert_array_equal(results["LARGE"]["ref"], large)
    np.testing.assert_array_equal(results["WIRED"]["ref"], [[1, 2]])


def test_a_variable_that_says_nothing_takes_what_is_assigned(tmp_path: Path) -> None:
    old = OldPage()
    old.block("C", "Const", val=np.array([4.0, 5.0]))
    old.block("V", "Variable", shape="", dtype="", initvalues="")
    old.block("SET", "Assign")
    old.links(("C.output", "SET.value"), ("V.ref", "SET.ref"))
    old.session(["SET.output_ref"])
    found = import_page(old.write(tmp_path / "v.svg"))
    assert [remark.text for remark in found.report.lost] == ["has no first value"]
    assert found.page.problems() == []
    np.testing.assert_array_equal(run(found)["SET"]["output_ref"], [4, 5])


def test_the_web_form_of_version_4(tmp_path: Path) -> None:
    """An export in which every block repeats the picture of the library, with its values as `initial` of the pins."""
    old = OldPage("4.0.3.0")

    def block(id_: str, symbol: str, **pins: tuple[str, str]) -> None:
        rows = "".join(
            f'<pg-pin type="{type_}" variable="{name.replace("__", "[1][2]")}" pin-type="input" initial="{text}">'
            '<circle r="3"/></pg-pin>'
            for name, (type_, text) in pins.items()
        )
        drawn = f'id="{symbol}" type="node" <rect id="ID_RECT"/><text>{symbol}</text><script type="text/lua"/>'
        old.parts.append(
            f'<use id="{id_}" type="tensorflow" transform="translate(1,2)" xlink:href="#{symbol}">'
            f"{drawn.replace('<rect', ' <rect')}{rows}</use>"
        )

    block("W", "Variable", shape=("string", "{1,2}"), dtype=("string", "DT_DOUBLE"), initvalues=("string", "{{3,5}}"))
    block("RATE", "Const", val=("double", "0.5"))
    block("ROW", "Const", val__=("double", "{1,2}"))
    block("STEP", "ApplyGradientDescent", attrs=("string", "use_locking_ = false;"), result_out__=("double", "{2.5,0}"))
    block("SUM", "Mean", axis=("string", "1"), attrs=("string", "keep_dims_ =true;"))
    block("SESSION", "ClientSession", INFINITE_LOOP=("bool", "FALSE"))
    old.links(("W.ref", "STEP.var"), ("RATE.output", "STEP.alpha"), ("ROW.output", "STEP.delta"))
    old.links(("STEP.out", "SUM.input"), ("SUM.output", "SESSION.fetch_outputs"))
    found = import_page(old.write(tmp_path / "web.svg"))
    assert found.report.lost == []
    assert found.page.problems() == []
    assert found.page.notes == []
    assert found.expected["STEP"]["out"].tolist() == [[2.5, 0]]
    np.testing.assert_array_equal(run(found)["SUM"]["output"], [[3.25]])


def test_a_task_is_a_list_of_blocks(tmp_path: Path) -> None:
    """The file of a library window: symbols with pins, in the words of version 3 and of version 4."""
    pin = '<pg-pin {0}="{1}" pin-type="{2}"/>'
    old = OldPage()
    rows = "".join(pin.format("name", *row) for row in [("scope", "input"), ("value", "input"), ("output", "output")])
    old.parts.append(f'<defs><symbol id="AvgPool" type="node"><rect/>{rows}</symbol>')
    rows = "".join(pin.format("variable", *row) for row in [("x", "input"), ("y", "output"), ("result_y", "const")])
    old.parts.append(f'<symbol id="Abs" type="node">{rows}</symbol><symbol id="MyOwn" type="node"/></defs>')
    old.parts.append("<text>nn_ops</text>")
    found = import_page(old.write(tmp_path / "task_mine.svg"))
    assert len(found.page) == 0
    assert [note["text"] for note in found.page.notes] == ["AvgPool: value -> output", "Abs: x -> y", "MyOwn:  -> "]
    assert [str(remark) for remark in found.report.remarks] == [
        "noted: task_mine: is a task, a list of 3 blocks, and no page: each is a note, nothing runs",
        "noted: task_mine: blocks of it that are not here: MyOwn",
    ]
    assert loads(dumps(found.page)).problems() == []


def window(**more: str) -> dict[str, str]:
    return {"ksize": "1,4,3,2,1", "strides": "{1,4,3,2,1}", "padding": "SAME", "attrs": "data_format_ = NHWC;"} | more


def test_the_3d_blocks_lose_their_wrong_default(tmp_path: Path) -> None:
    x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
    old = OldPage()
    old.block("X", "Const", val=x)
    old.block("POOL", "AvgPool3D", **window())
    old.block("SHAPE", "Const", val=np.array([2, 2, 2, 2, 2], dtype=np.int32))
    old.block("GRAD", "AvgPool3DGrad", **window())
    old.links(("X.output", "POOL.input"), ("SHAPE.output", "GRAD.orig_input_shape"), ("POOL.output", "GRAD.grad"))
    old.session(["GRAD.output"])
    found = import_page(old.write(tmp_path / "pool.svg"))
    assert found.report.lost == []
    assert [remark.text for remark in found.report.remarks if remark.kind == "changed"] == [
        "NHWC is no format of AvgPool3D: now NDHWC",
        "NHWC is no format of AvgPool3DGrad: now NDHWC",
    ]
    results = run(found)
    np.testing.assert_array_equal(results["POOL"]["output"].ravel(), [8, 9, 24, 25])
    np.testing.assert_array_equal(results["GRAD"]["output"][:, 0, 0, 0].ravel(), [1, 9 / 8, 3, 25 / 8])


def test_a_malformed_page_imports_and_says_why_it_cannot_run(tmp_path: Path) -> None:
    """The documentation's own picture of AvgPool3DGrad: the gradient has the shape of the input."""
    old = OldPage()
    old.block("G", "Const", val=np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2))
    old.block("SHAPE", "Const", val=np.array([2, 1, 1, 1, 2], dtype=np.int32))
    old.block("GRAD", "AvgPool3DGrad", **window(attrs="data_format_ = NDHWC;"))
    old.links(("SHAPE.output", "GRAD.orig_input_shape"), ("G.output", "GRAD.grad"))
    old.session(["GRAD.output"])
    found = import_page(old.write(tmp_path / "bad.svg"))
    assert found.report.lost == []
    (problem,) = found.page.problems()
    assert (problem.block, problem.pin) == ("GRAD", "grad")
    (told,) = [remark for remark in found.report.remarks if remark.kind == "stops"]
    assert "GRAD.grad" in told.text
    with pytest.raises(VoxgradError):
        run(found)


def test_what_cannot_be_read_is_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    old = OldPage()
    old.block("X", "Const", val=np.zeros((1, 2, 2, 2, 1), np.float32))
    old.block("POOL", "MaxPool3D", **window(ksize="1,2,,2,1"))
    old.block("WHAT", "NoSuchBlock")
    old.block("a/b:c", "Negate", x="{1,2")
    old.links(("X.output", "POOL.input"), ("GONE.output", "POOL.input"), ("POOL.output", "WHAT.x"))
    found = import_page(old.write(tmp_path / "odd.svg"))
    lost = {remark.place: remark.text for remark in found.report.lost}
    assert "    1,2,,2,1\n        ^" in lost["POOL.ksize"]
    assert "no block of the library" in lost["WHAT"]
    assert "there is no block GONE" in lost["GONE.output -> POOL.input"]
    assert "a/b:c.x" in lost
    assert [block.name for block in found.page] == ["X", "POOL", "WHAT", "a_b_c"]
    assert found.page["WHAT"].sources["x"][0].path == "POOL.output"  # type: ignore[union-attr]


def test_paths_of_another_machine_are_looked_for_beside_the_page(tmp_path: Path) -> None:
    old = OldPage()
    old.block("FILE", "Const", val="C:\\\\Users\\\\someone\\\\data\\\\train.bin")
    found = import_page(old.write(tmp_path / "p.svg"))
    assert found.page["FILE"].attrs["value"].item() == b"train.bin"
    assert "path of another machine" in str(found.report)


def test_the_report_says_what_runs_and_which_files_are_missing(tmp_path: Path) -> None:
    """A file that is read is missing until it is there; one that is written, here or through a wire, never is."""
    folder = "C:\\\\data\\\\"
    old = OldPage()
    old.block("W", "Variable", shape="{2}", dtype="DT_DOUBLE", initvalues="{5,6}")
    old.block("SAVE", "Save", filename=f"{folder}w.t", tensor_names="W")
    old.block("OUT", "Const", val=f"{folder}log.txt")
    old.block("WRITE", "WriteFile", contents="done")
    old.block("IN", "Const", val=f"{folder}scan.bin")
    old.block("READ", "ReadFile")
    old.links(("W.ref", "SAVE.data"), ("OUT.output", "WRITE.filename"), ("IN.output", "READ.filename"))
    old.session(["READ.contents"], ["SAVE.operation", "WRITE.operation"])
    path = old.write(tmp_path / "p.svg")
    told = [str(remark) for remark in import_page(path).report.remarks if remark.kind in ("runs", "stops", "missing")]
    assert told == [
        "missing: scan.bin: IN reads it; put it into files/ beside the page",
        "runs: p: fetches READ and executes SAVE, WRITE; variables with a first value: 1",
    ]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "scan.bin").write_bytes(b"abc")
    found = import_page(path)
    assert [remark.kind for remark in found.report.remarks if remark.kind == "missing"] == []
    assert run(found, folder=tmp_path / "files")["READ"]["contents"].item() == b"abc"
    assert saved_in(tmp_path / "files" / "w.t")["W"].tolist() == [5, 6]


def test_names_of_tensors_without_braces_are_a_list(tmp_path: Path) -> None:
    """One name, or several between semicolons, for one file of all tensors."""
    old = OldPage()
    for name, values in (("W", "{1,2}"), ("B", "{3}")):
        size = values.count(",") + 1
        old.block(name, "Variable", shape=f"[{size}]", dtype="DT_DOUBLE", initvalues=values)
    old.block("ONE", "Save", filename="one.t", tensor_names="W")
    old.block("ALL", "Save", filename="all.t", tensor_names="W; B;")
    old.links(("W.ref", "ONE.data"), ("W.ref", "ALL.data"), ("B.ref", "ALL.data"))
    old.session(run=["ONE.operation", "ALL.operation"])
    found = import_page(old.write(tmp_path / "s.svg"))
    assert found.page.problems() == []
    run(found, folder=tmp_path)
    for name, wanted in (("one.t", {"W": [1, 2]}), ("all.t", {"W": [1, 2], "B": [3]})):
        assert {key: value.tolist() for key, value in saved_in(tmp_path / name).items()} == wanted


def test_rings_of_lists_end(tmp_path: Path) -> None:
    old = OldPage()
    old.block("A", "InputList")
    old.block("B", "InputList")
    old.block("N", "AddN")
    old.links(("A.output", "B.outputlist"), ("B.output", "A.outputlist"), ("A.output", "N.inputs"))
    old.block("G", "AddSymbolicGradients")
    old.links(("G.grad_outputs", "G.outputs"), ("N.sum", "G.inputs"))
    assert import_page(old.write(tmp_path / "ring.svg")).report.lost


def test_lists_of_lists_stay_bounded(tmp_path: Path) -> None:
    old = OldPage()
    old.block("X", "Const", val=np.array([1.0]))
    old.link("X.output", "L0.outputlist")
    for level in range(30):
        old.block(f"L{level}", "InputList")
        old.links(*[(f"L{level}.output", f"L{level + 1}.outputlist")] * 2)
    old.block("L30", "InputList")
    old.block("N", "AddN")
    old.link("L30.output", "N.inputs")
    found = import_page(old.write(tmp_path / "laugh.svg"))
    assert "longer than 1024" in str(found.report)


GADGETS = """
<text id="T" transform="translate(5,26)" font-size="10.0" font-weight="bold">a remark</text>
<rect id="R" transform="translate(100,200) rotate(0.00) scale(2,1)" x="-10" y="5" width="30" height="40"/>
<rect id="GO" onmousedown="_onmousedown()" width="30" height="40">
 <script>function _onmousedown() run_task(1) end</script></rect>
<rect id="MUTE" onmousedown="_onmousedown()"><script>function _onmousedown() a = 1 end</script></rect>
<pg-trend id="TREND" transform="translate(1,2)" x="3" y="4" width="300" height="100" auto-scale="off" yview-min="-1"
 yview-max="2"><pg-trendtitle title="COST"/><pg-trendseries id="first" variable="X.result_output[0][1]"/>
 <pg-trendseries id="own" variable="" data="1,2 3,4"/></pg-trend>
<g transform="translate(1000,0)">
<pg-trend-contour id="MAP" transform="translate(100,50) rotate(90.00)" x="0" y="70" width="80" height="20"
 subdivision="2,2" minElevation="0" maxElevation="4"/></g>
<pg-trend-contour id="SUM" subdivision="2,2"/><pg-trend-contour id="OUT"/><pg-trend-contour id="ODD"/>
<text id="V" pg-format="">0.5</text><text id="W">1</text>
<pg-editbox id="BOX" text="3" width="40" height="10"/><pg-editbox id="LOOSE" text="3"/>
<pg-button id="B" text="Start"/><image href="..\\..\\secret.png"/><image href="own.png" width="9" height="9"/>
<line id="L"/>
<script type="text/lua"><![CDATA[function _ontask()
  -- V.text = X.result_output[9][9]
  for i=0,1,1 do
    for j=0,1,1 do
      MAP.data[i][j] = ROW.result_output[1][i*2+j]
      SUM.data[i][j] = ROW.result_output[0][i*2+j] + X.result_output[0][0]
      OUT.data[i][j] = ROW.result_output[2][i*2+j] + X.result_output[0][0]
      ODD.data[i][j] = ROW.result_output[0][i*2+j] - X.result_output[0][i]
    end
  end
  V.text = string.format("%4.1f", X.result_output[1][0])
  SetAttribute("W.text", X.result_output[0][0])
  X.val = tonumber(BOX.text)
  os.execute("rm -rf /")
end]]></script>
"""


def test_what_a_page_shows_becomes_displays(tmp_path: Path) -> None:
    """Each where it stood, bound to what its variable, its wire or the script says; nothing is executed."""
    old = OldPage()
    old.block("X", "Const", val=np.array([[1.0, 2.0], [3.0, 4.0]]))
    old.block("ROW", "Const", val=np.arange(8.0).reshape(2, 4))
    for gadget, symbol in {"LCD": "SENSOR_LCD", "PARTED": "ARAAY_3_OUT", "OTHER": "CLOCK"}.items():
        old.block(gadget, symbol, "logic", out1="", out2="")
    old.links(("X.result_output", "LCD.value"), ("ROW.result_output", "PARTED.input"))
    old.block("SECOND", "SENSOR_TREND", task="logic")
    old.link("PARTED.out2", "SECOND.input")
    old.parts.append(GADGETS)
    (tmp_path / "own.png").write_bytes(png.write(np.zeros((2, 2, 3), np.uint8), 6))
    (tmp_path.parent / "secret.png").write_bytes(png.write(np.zeros((2, 2, 3), np.uint8), 6))
    found = import_page(old.write(tmp_path / "g.svg"))
    page, told = found.page, str(found.report)
    kinds = {one.name: (one.kind.name, [shown.path for shown in one.of]) for one in page.displays}
    assert kinds == {
        "T": ("text", []), "R": ("frame", []), "GO": ("button", []), "MUTE": ("frame", []), "B": ("button", []),
        "TREND": ("trend", ["X.output[0][1]"]), "MAP": ("heat", ["ROW.output[1]"]),
        "SUM": ("heat", ["shown/SUM_2.z"]), "OUT": ("heat", []), "ODD": ("heat", []),
        "V": ("value", ["X.output[1][0]"]), "W": ("value", ["X.output[0][0]"]), "BOX": ("edit", ["X.output"]),
        "LOOSE": ("edit", []), "LCD": ("value", ["X.output"]), "PARTED": ("table", ["ROW.output"]),
        "SECOND": ("trend", ["ROW.output[1]"]), "frame": ("frame", []), "picture": ("picture", []),
    }  # fmt: skip
    boxes = {one.name: (*one.position, *one.size) for one in page.displays}
    assert boxes["T"][:2] == (5.0, 16.0) and page.displays["T"].attrs == {
        "text": "a remark",
        "points": 10.0,
        "bold": True,
    }
    assert boxes["R"] == (80.0, 205.0, 60.0, 40.0)
    assert boxes["TREND"] == (4.0, 6.0, 300.0, 100.0)
    # Turned by a quarter inside of a group that is moved.
    assert boxes["MAP"] == (1010.0, 50.0, 20.0, 80.0)
    assert page.displays["TREND"].attrs == {"title": "COST", "low": -1.0, "high": 2.0}
    assert (page.displays["MAP"].value("rows"), page.displays["MAP"].value("high")) == (2, 4.0)
    assert (page.displays["V"].value("format"), page.displays["BOX"].value("entry")) == ("%4.1f", "value")
    assert found.report.lost == []
    for part in (
        "SUM: ROW + X, which a script computed, is a block now", "OUT: shows what a script made of several blocks",
        "ODD: shows what a script made of several blocks", "LOOSE: held '3'",
        "MUTE: a click ran a script", "TREND.own: shows numbers of its own",
        "missing: secret.png", "noted: <line>", "the gadget CLOCK shows nothing", "os.execute. It is not executed",
    ):  # fmt: skip
        assert part in told, part
    assert ClientSession(page).run("shown/SUM_2").tolist() == [1.0, 2.0, 3.0, 4.0]
    assert page.displays["SUM"].value("rows") == 2 and [len(one.blocks) for one in page.groups] == [3]
    assert [note["text"] for note in page.notes] == ["CLOCK"]
    assert "rm -rf" not in dumps(page) and loads(dumps(page)).problems() == page.problems()


SVG = "{http://www.w3.org/2000/svg}"
KINDS = {"text": "text", "rect": "frame", "pg-trend": "trend", "pg-trend-contour": "heat"}
ORIGINALS = ["gradient_descent_xw_sub", "basic", "basic_v4", "Xor", "queueenqueue_mnist_reader", "mnistTrain_softmax10",
             "v4_web_gradient_descent_xnwn_b"]  # fmt: skip


@pytest.mark.parametrize("name", ORIGINALS)
def test_what_originals_show_stands_where_it_stood(originals: Path, name: str) -> None:
    """Every element of the file, read by another parser, is a display; a turned one fills the box that it filled."""
    root = ElementTree.fromstring((originals / f"{name}.svg").read_bytes().decode("utf-16").partition("?>")[2])
    page = import_page(originals / f"{name}.svg").page
    elements = [one for one in root if one.tag.removeprefix(SVG) in KINDS]
    boxes = [one for one in root.iter() if one.tag.removeprefix(SVG) == "pg-editbox" or one.get("type") == "logic"]
    assert elements and len(page.displays) == len(elements) + len(boxes)
    for box in boxes:
        x, y = (float(one) for one in re.findall(r"-?[\d.]+", box.get("transform", ""))[:2])
        at = (x + float(box.get("x", 0)), y + float(box.get("y", 0)))
        np.testing.assert_allclose(page.displays[str(box.get("id"))].position, at, atol=0.011)
    for element in elements:
        x, y, turn = (float(one) for one in re.findall(r"-?[\d.]+", element.get("transform", ""))[:3])
        left, top, width, height = (float(element.get(key, 0)) for key in ("x", "y", "width", "height"))
        display = page.displays[str(element.get("id"))]
        kind = KINDS[element.tag.removeprefix(SVG)]
        if kind == "text":
            assert display.kind.name in ("text", "value")
            wanted = (x, y - float(element.get("font-size", 0)), *display.size)
            assert display.kind.name == "value" or display.attrs["text"].split() == "".join(element.itertext()).split()
        else:
            assert display.kind.name == kind
            wanted = (x - top - height, y + left, height, width) if turn else (x + left, y + top, width, height)
        np.testing.assert_allclose((*display.position, *display.size), wanted, atol=0.011)


def test_what_originals_show_is_alive(originals: Path) -> None:
    """The trends of XOR are the numbers of its blocks, cycle by cycle; the reader's images are rows of its block."""
    page = import_page(originals / "Xor.svg").page
    session, seen = ClientSession(page), list[tuple[float, ...]]()
    for _ in range(20):
        y, cost = session.run(["ID_HY_SIGMOID", "ID_XOR_MEAN"], targets=page.targets)
        seen.append((*y.reshape(-1).tolist(), cost.item()))
    shown = [one for display in page.displays if display.kind.name == "trend" for one in display.of]
    assert [one.label for one in shown] == ["XOR_00", "XOR_01", "XOR_10", "XOR_11", "COST"]
    curves = [[number for _, number in session.readings.curves(one)[""]] for one in shown]
    np.testing.assert_array_equal(np.transpose(curves), seen)
    reader = import_page(originals / "queueenqueue_mnist_reader.svg").page
    images = [one for one in reader.displays if one.kind.name == "heat"]
    assert {one.of[0].path: one.value("rows") for one in images} == {f"ID_IMAGE.ref[{at}]": 28 for at in range(10)}
    labels = [one.of[0].path for one in reader.displays if one.kind.name == "value"]
    assert sorted(labels) == [f"ID_IND.y[{at}][0]" for at in range(10)]


LAUGHS = '<!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><svg><use id="x" href="#C">&b;</use></svg>'
BAD_XML = {
    "empty": b"",
    "no xml": b"hello",
    "truncated": (SAMPLES / "basic.svg").read_bytes()[:5000],
    "odd bytes": b"\xff\xfe\x00\xd8\x00\xd8",
    "laughs": LAUGHS.encode(),
    "wide laughs": LAUGHS.encode("utf-16"),
    "external": b'<!DOCTYPE svg SYSTEM "file:///etc/passwd"><svg/>',
    "entity": b"<svg><use id='x' href='#C'>&x;</use></svg>",
    "deep": b"<svg>" + b"<g>" * 5000 + b"</g>" * 5000 + b"</svg>",
    "other svg": b"<svg><rect/></svg>",
    "no id": b"<svg><use href='#Const'/></svg>",
    "twice": b"<svg><use id='x' href='#Const'/><use id='x' href='#Const'/></svg>",
    "odd pin": b"<svg><use id='x' href='#Const'><pg-set-pin variable='[['/></use></svg>",
    "odd at": b"<svg><use id='x' href='#C'><pg-set-pin variable='#v' save-type='binary' binary-pos='?'/></use></svg>",
}


@pytest.mark.parametrize("name", BAD_XML)
def test_bad_documents_are_refused_by_name_and_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bad.svg"
    path.write_bytes(BAD_XML[name])
    with pytest.raises(VoxgradError) as caught:
        import_page(path)
    assert caught.value.faults[0].code == "VG053"
    assert "bad.svg" in str(caught.value)


def test_huge_declared_shapes_take_no_memory(tmp_path: Path) -> None:
    old = OldPage()
    old.block("X", "Const", val=np.zeros(200))
    text = old.text().replace("[200]", "[99999][99999][99999]")
    (tmp_path / "huge.svg").write_bytes(text.encode("utf-16"))
    assert "moderate sizes" in str(import_page(tmp_path / "huge.svg").report.lost[0])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_pages_are_read_or_refused(data: st.DataObject) -> None:
    """Characters changed at random: a page with remarks, or an error that names the file."""
    text = SAMPLES.joinpath("gradient_descent_xw_sub.svg").read_bytes().decode("utf-16")
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text) - 1))
        text = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 40)) :]
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.svg"
        path.write_bytes(text.encode("utf-16", "surrogatepass"))
        try:
            import_page(path)
        except VoxgradError as error:
            assert "damaged.svg" in str(error)


@given(st.binary(max_size=300))
def test_random_bytes_are_no_xml(data: bytes) -> None:
    with pytest.raises(VoxgradError):
        parse_xml(data, "x.svg")


def as_project(folder: Path, listed: str = "", pages: dict[str, str] | None = None) -> Path:
    """A folder as the editor leaves it; `pages` are its drawings, by the sample that each is."""
    for name, sample in (pages or {"picture/basic": "basic", "picture/one_hot": "one_hot"}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".svg", ".dat"):
            file = SAMPLES / f"{sample}{suffix}"
            if file.exists():
                (folder / f"{name}{suffix}").write_bytes(file.read_bytes())
    if listed:
        (folder / "p.enup").write_bytes(f'<?xml version="1.0" encoding="UTF-16"?>{listed}'.encode("utf-16"))
    return folder


def test_projects(tmp_path: Path) -> None:
    listed = r'<project active="basic"><page path="picture\basic.svg"/><page path="picture/one_hot.svg"/>'
    listed += r'<page path="..\outside.svg"/><page path="none.svg"/></project>'
    project = as_project(tmp_path / "project", listed)
    (tmp_path / "outside.svg").write_bytes((SAMPLES / "basic.svg").read_bytes())
    (project / "picture" / "link.svg").symlink_to(tmp_path / "outside.svg")
    for place in (project, project / "p.enup"):
        pages, report = import_project(place)
        assert list(pages) == ["basic", "one_hot"]
        assert [remark.place for remark in report.lost] == ["..\\outside.svg", "none.svg"]
        assert str(report.remarks[-1]) == f"runs: {place.name}: 2 pages; run: basic, one_hot"


def test_a_project_may_name_its_pages_or_none(tmp_path: Path) -> None:
    """Without their ending, in the texts of elements, or not at all; libraries and web forms are no pages."""
    drawn = {
        "picture/basic": "basic", "picture/sub/basic": "basic_v4", "picture/one_hot": "one_hot",
        "Task/Tensorflow/tf_nn": "basic", "web/basic": "basic", "global/global": "basic",
    }  # fmt: skip
    named = as_project(tmp_path / "a", "<p><pages><page>one_hot</page></pages><task>tf_nn</task></p>", drawn)
    assert list(import_project(named)[0]) == ["one_hot"]
    for folder in (as_project(tmp_path / "b", "<p><x/></p>", drawn), as_project(tmp_path / "c", "", drawn)):
        pages, report = import_project(folder)
        assert list(pages) == ["basic", "one_hot", "basic 2"]
        assert report.lost == []
        assert [remark.text for remark in report.remarks if remark.kind == "changed"] == [
            "is called basic 2: there is another basic"
        ]
    (folder / "picture" / "bad.svg").write_text("<svg><g>")
    (folder / "picture" / "other.svg").write_text("<svg><rect/></svg>")
    pages, report = import_project(folder)
    assert len(pages) == 3
    assert [remark.place for remark in report.lost] == ["bad.svg", "other.svg"]
    (tmp_path / "empty").mkdir()
    assert [remark.text for remark in import_project(tmp_path / "empty")[1].lost] == ["it has no pages"]
    (named / "q.enup").write_text("<p/>")
    with pytest.raises(VoxgradError, match=r"hold one project; got p\.enup, q\.enup"):
        import_project(named)


def test_files_are_missing_where_the_page_goes(tmp_path: Path) -> None:
    old = OldPage()
    old.block("IN", "Const", val="C:\\\\data\\\\scan.bin")
    old.block("READ", "ReadFile")
    old.link("IN.output", "READ.filename")
    old.session(["READ.contents"])
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "scan.bin").write_bytes(b"abc")
    path = old.write(tmp_path / "p.svg")
    assert import_page(path).report.missing == []
    for found in (import_page(path, tmp_path / "new"), import_project(tmp_path, tmp_path / "new")[0]["p"]):
        assert [remark.place for remark in found.report.missing] == ["scan.bin"]
    assert import_project(tmp_path)[1].remarks[-1].text == "1 pages; run: p"
    assert import_project(tmp_path, tmp_path / "new")[1].remarks[-1].text == "1 pages; run: p; need files: p"


def test_the_library_knows_all_blocks() -> None:
    assert len(library()) == 486
    known = {symbol.name for symbol in library().values()} - {symbol.name for symbol in missing()}
    assert known >= {"Const_ex", "Multiply", "Subtract", "Negate", "AvgPool3DGrad", "ClientSession", "FeedType"}
    assert all(symbol.op not in registry.OPS for symbol in missing())


def kinds(found: Imported, kind: str) -> dict[str, str]:
    return {remark.place: remark.text for remark in found.report.remarks if remark.kind == kind}


def test_blocks_stand_where_their_groups_put_them(tmp_path: Path) -> None:
    """Transforms of groups in groups, lengths with units; what is only defined is not on the page."""
    block = '<use id="{0}" type="tensorflow" transform="{1}" xlink:href="#Const" {2}>'
    block += '<pg-set-pin variable="#val" value="1"/></use>'
    old = OldPage()
    old.parts += [
        '<g transform="translate(100,50) rotate(90) scale(2,3)">',
        block.format("A", "translate(10,1)", ""),
        '<g transform="matrix(1 0 0 1 5 -2)">',
        block.format("B", "translate(1) rotate(45.00) scale(7)", ""),
        "</g></g>",
        block.format("C", "translate(3,4)", 'x="10mm" y="1in"'),
        '<g transform="rotate(180, 50, 20) nonsense(1)">',
        block.format("D", "", ""),
        '</g><g transform="scale(1e999)">',
        block.format("E", "translate(1,1)", 'x="wide"'),
        "</g>",
        f"<defs><symbol id='MINE'>{block.format('NOWHERE', '', '')}</symbol></defs>",
    ]
    found = import_page(old.write(tmp_path / "g.svg"))
    assert found.report.lost == []
    places = {"A": (97, 70), "B": (106, 62), "C": (3 + 10 * 96 / 25.4, 100), "D": (100, 40), "E": (0, 0)}
    assert {name: found.page[name].position for name in places} == {
        name: pytest.approx(place) for name, place in places.items()
    }
    assert "NOWHERE" not in found.page


def test_a_link_says_what_it_did_besides_passing_a_value(tmp_path: Path) -> None:
    old = OldPage()
    old.block("X", "Const", val=np.array([1.0]))
    old.block("N", "Negate")
    old.link("X.output", "N.x")
    old.parts[-1] = old.parts[-1].replace("<pg-link ", '<pg-link unit="degC" to-unit="degF" ')
    found = import_page(old.write(tmp_path / "u.svg"))
    (told,) = [text for place, text in kinds(found, "noted").items() if place.startswith("link")]
    assert "unit='degC', to-unit='degF' is not known here" in told
    assert run(found)["N"]["y"].tolist() == [-1]


def test_texts_are_read_as_the_original_read_them(tmp_path: Path) -> None:
    """Lists with any separators, numbers with something behind them, shapes without braces, keys without a value."""
    x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
    old = OldPage("4.0.3.0")
    old.block("X", "Const", val=x)
    old.block(
        "MIXED", "MaxPool3D", **window(ksize="{1,{2;2},2;1}", strides="1;1;1;1;1;", attrs="data_format_ = NDHWC;")
    )
    old.block(
        "CUT", "MaxPool3D", **window(ksize="1,2.9,2abc,2,1", strides="1,1,1,1,1", attrs="oops; data_format_=NDHWC")
    )
    old.block("P", "Placeholder", dtype="DT_FLOAT", attrs="shape_ = 2;")
    old.block("V", "Variable", shape="2,3", dtype="DT_DOUBLE", initvalues="1;2;3;4;5;6")
    old.block("HEX", "Const", val=np.array([0.0, 0.0]))
    old.parts[-1] = old.parts[-1].replace("{0.000000,0.000000}", "{0x1F,1e-3}")
    old.block("WHOLE", "Add", x="{0x10,2}", y="{1,2}")
    old.block("NAMES", "Const", val="{a,b c}")
    old.parts[-1] = old.parts[-1].replace('"#val"', '"#val[2]"').replace('shape=""', 'shape="[2]"')
    old.block("Z", "Const_ex", dtype="DT_COMPLEX128", val="{1+2J,3j}")
    old.links(("X.output", "MIXED.input"), ("X.output", "CUT.input"))
    old.session(["MIXED.output", "CUT.output", "WHOLE.z", "V.ref", "HEX.output", "NAMES.output", "Z.output"])
    found = import_page(old.write(tmp_path / "t.svg"))
    assert found.report.lost == []
    assert found.page.problems() == []
    assert found.page["P"].attrs["shape"] == [2]
    changed = kinds(found, "changed")
    assert changed.keys() == {"CUT.ksize", "CUT.attrs", "WHOLE.x"}
    assert changed["CUT.ksize"] == "1,2.9,2abc,2,1 is [1,2,2,2,1], as the original read it"
    results = run(found)
    np.testing.assert_array_equal(results["MIXED"]["output"], results["CUT"]["output"])
    np.testing.assert_array_equal(results["V"]["ref"], [[1, 2, 3], [4, 5, 6]])
    assert results["HEX"]["output"].tolist() == [31, 0.001]
    assert results["WHOLE"]["z"].tolist() == [17, 4]
    assert results["NAMES"]["output"].tolist() == [b"a", b"b c"]
    assert results["Z"]["output"].tolist() == [1 + 2j, 3j]


def test_what_the_original_misread_is_told_with_a_fix(tmp_path: Path) -> None:
    """True was false there, and the fractions of some attributes were cut: what is written is kept."""
    old = OldPage()
    old.block("A", "Const", val=np.array([[1.0, 2.0], [3.0, 4.0]]))
    old.block("M", "MatMul", attrs="transpose_a_ = True;transpose_b_ = true;")
    old.block("L", "LRN", attrs="depth_radius_ = 5;bias_ = 1.0;alpha_ = 0.5;beta_ = 2;")
    old.links(("A.output", "M.a"), ("A.output", "M.b"))
    old.session(["M.product"])
    found = import_page(old.write(tmp_path / "m.svg"))
    told = {remark.place: remark for remark in found.report.remarks if remark.fixes}
    assert {place: remark.text for place, remark in told.items() if not place.startswith("L.input")} == {
        "M.transpose_a": "True is kept; the original read it as False",
        "L.alpha": "0.5 is kept; the original read it as 0.0",
    }
    assert run(found)["M"]["product"].tolist() == [[7, 15], [10, 22]]
    found.page.apply(told["M.transpose_a"].fixes[0])
    assert run(found)["M"]["product"].tolist() == [[5, 11], [11, 25]]
    (data,) = [one for one in found.report.as_data() if one["place"] == "M.transpose_a"]
    assert data["fixes"][0]["edits"] == [{"do": "set_attr", "block": "M", "attr": "transpose_a", "value": False}]


def test_what_stops_a_page_comes_with_its_fixes(tmp_path: Path) -> None:
    old = OldPage()
    old.block("X", "Const", val=np.zeros((1, 2, 2, 2, 1), np.float32))
    old.block("A", "AvgPool3D", **window(padding="", attrs="data_format_ = NDHWC;"))
    old.block("B", "MaxPool3D", **window(ksize="1,2,2", attrs="data_format_ = NDHWC;"))
    old.links(("X.output", "A.input"), ("X.output", "B.input"))
    found = import_page(old.write(tmp_path / "s.svg"))
    stops = {remark.place: remark for remark in found.report.remarks if remark.kind == "stops"}
    assert stops.keys() == {"A.padding", "B.ksize"}
    assert "runs" not in {remark.kind for remark in found.report.remarks}
    assert "  fix: Set padding to SAME" in str(found.report)
    found.page.apply(stops["A.padding"].fixes[0])
    assert [(one.block, one.pin) for one in found.page.problems()] == [("B", "ksize")]


def test_sessions_and_their_modes(tmp_path: Path) -> None:
    old = OldPage()
    old.block("X", "Const", val=np.array([1.0]))
    for name in ("N", "S"):
        old.block(name, {"N": "Negate", "S": "Square"}[name])
        old.link("X.output", f"{name}.x")
    old.session(["N.y"], SHOW_DEBUG="TRUE", INFINITE_LOOP="FALSE")
    old.block("A_SECOND", "ClientSession")
    setting = '<pg-set-attribute id="I" variable="#m_bInfiniteLoop" value="TRUE"></pg-set-attribute></use>'
    old.parts[-1] = old.parts[-1].replace("</use>", setting)
    old.link("S.y", "A_SECOND.fetch_outputs")
    found = import_page(old.write(tmp_path / "s.svg"))
    assert list(found.page.outputs) == ["S", "N"]
    assert kinds(found, "changed") == {
        "ClientSession": "the 2 sessions are one run: they ran one after another, A_SECOND, ID_SESSION, each with "
        "variables of its own"
    }
    assert kinds(found, "noted") == {
        "A_SECOND": "ran until it was stopped; here `voxgrad run --cycles forever` does",
        "ID_SESSION": "printed what it fetched in every cycle; here `voxgrad run --every-cycle` does",
    }


def test_scripts_are_told_and_not_executed(tmp_path: Path) -> None:
    old = OldPage()
    old.block("X", "Placeholder", dtype="DT_DOUBLE")
    old.block("N", "Negate")
    old.link("X.output", "N.x")
    script = '<script id="S{0}" type="text/lua"><![CDATA[{1}]]></script>'
    lua = """function _ontask()
        -- N.x = 5
        local i
        for i=0,27,1 do
            ID_PICTURE.data[i][0]  = N.result_y[i] + string.len("a.b"); ID_PICTURE.title = "now"
        end
        if N.result_y[0] == 3 then stop() end
    end
    function _onmousedown()
        X.output[0] = X.output[0] + 1
    end
    function _onload()
    end
    function helper() os.execute("rm -rf /") end"""
    old.parts += [
        '<rect id="ID_PICTURE"/>',
        script.format(1, lua),
        script.format(2, "  "),
        script.format(3, "GONE.a = 1"),
    ]
    old.parts.append(script.format(4, "x" * 300_000 + "\nA.b = 1\n" + "a." * 200_000))
    found = import_page(old.write(tmp_path / "s.svg"))
    feed = "give X.output a value with --feed or session.run(feeds=...), a new one each cycle with loop"
    assert kinds(found, "script") == {
        "S1 _ontask": "in every cycle it wrote ID_PICTURE.data, ID_PICTURE.title from N.result_y. It is not executed: "
        "a display of N.y shows it",
        "S1 _onmousedown": f"on a click it wrote X.output from X.output. It is not executed: {feed}",
        "S1 helper": "when it was called it called os.execute. It is not executed: call from Python, between the "
        "cycles of a loop",
        "S3": "at the start it wrote GONE.a. It is not executed; what it wrote is not on the page",
    }
    assert "rm -rf" not in dumps(found.page)


def test_checkpoints_in_every_form(tmp_path: Path) -> None:
    """One file for all tensors or one for each, names in braces, between semicolons or alone, slices said or not."""
    folder = "\\\\\\\\server\\\\share\\\\"
    old = OldPage()
    old.block("W", "Variable", shape="{2,2}", dtype="DT_DOUBLE", initvalues="{{1,2},{3,4}}")
    old.block("B", "Variable", shape="{2}", dtype="DT_FLOAT", initvalues="{5,6}")
    old.block("LIST", "InputList")
    old.block("V1", "Save", filename=f"{folder}one.t", tensor_names='{"W","B"}')
    old.block("V2", "SaveV2", prefix="..\\\\two.t", tensor_names="W;B;", shape_and_slices='{"",""}')
    old.block("EACH", "SaveV2", prefix=f"{folder}each.t", tensor_names='"W"', shape_and_slices="")
    old.links(("W.ref", "LIST.outputlist"), ("B.ref", "LIST.outputlist"), ("LIST.output", "V1.data"))
    old.links(("LIST.output", "V2.tensors"), ("W.ref", "EACH.tensors"))
    old.session(run=["V1.operation", "V2.operation", "EACH.operation"])
    found = import_page(old.write(tmp_path / "save.svg"))
    assert found.report.lost == []
    assert kinds(found, "changed")["EACH.shape_and_slices"] == "was empty: 1 whole tensors"
    run(found, folder=tmp_path)
    old = OldPage()
    old.block("R1", "Restore", file_pattern=f"{folder}one.t", tensor_name='"W"', dt="DT_DOUBLE")
    old.block("R2", "RestoreV2", prefix="two.t", tensor_names="W;B", shape_and_slices="", dtypes="{DT_DOUBLE;DT_FLOAT}")
    old.block("R3", "RestoreV2", prefix="each.t", tensor_names="W", shape_and_slices='{""}', dtypes="DT_DOUBLE")
    old.block("N", "Negate")
    old.link("R2.tensors[1]", "N.x")
    old.session(["R1.tensor", "N.y", "R3.tensors"])
    found = import_page(old.write(tmp_path / "restore.svg"))
    assert found.report.lost == []
    assert found.page.problems() == []
    results = run(found, folder=tmp_path)
    assert results["R1"]["tensor"].tolist() == [[1, 2], [3, 4]] == next(iter(results["R3"].values())).tolist()
    assert results["N"]["y"].tolist() == [-5, -6]


PAGES = ["Xor", "addsymbolicgradients", "basic", "basic_v4", "gradient_descent_xw_sub", "mnistTrain_softmax10",
         "one_hot", "queueenqueue_mnist_reader", "v4_web_gradient_descent_xnwn_b"]  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_picture_of_an_original_has_its_arrangement(originals: Path, name: str) -> None:
    """Every block of the picture stands where it stood in the original's own file, all by one factor; blocks that an
    import adds, those of gradients, stand below."""
    raw = (originals / f"{name}.svg").read_bytes()
    text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    root = ElementTree.fromstring(text.partition("?>")[2] if text.startswith("<?xml") else text)
    there = {
        str(one.get("id")): [float(part) for part in re.findall(r"-?[\d.]+", one.get("transform", ""))[:2]]
        for one in root.iter(f"{SVG}use")
    }
    page = import_page(originals / f"{name}.svg").page
    picture = ElementTree.fromstring(draw_svg(page, embed=False))
    here = {}
    for group in picture.iter(f"{SVG}g"):
        box, title = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert box is not None and title is not None and "vg-box" in box.get("class", "")
        here[str(title.text)] = [float(box.get(key, "nan")) for key in ("x", "y")]
    both = sorted(there.keys() & here.keys())
    assert both and {block.name for block in page.blocks if "/" not in block.name} == set(both)
    old, new = np.array([there[one] for one in both]), np.array([here[one] for one in both])
    apart = [np.subtract.outer(points[:, axis], points[:, axis]) for points in (old, new) for axis in (0, 1)]
    scale = round(float(np.abs(apart[2]).max() / max(np.abs(apart[0]).max(), 1e-9)), 2)
    assert scale in (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
    np.testing.assert_allclose(apart[2:], np.multiply(apart[:2], scale), atol=0.2 + 0.02 * scale)
    added = [place for one, place in here.items() if one.startswith("gradients/")]
    assert bool(added) == (name == "addsymbolicgradients")
    assert all(y > new[:, 1].max() for _, y in added)
