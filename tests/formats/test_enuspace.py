# SPDX-License-Identifier: Apache-2.0
"""Pages of enuSpace: the samples give their stored results, and pages of every other shape mean what they meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.enuspace_dialect import OldPage
from voxgrad.catalog import registry
from voxgrad.cli.run import run_page
from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace import Imported, import_page, import_project, library
from voxgrad.formats.enuspace.library import missing
from voxgrad.formats.enuspace.xml_tree import parse_xml
from voxgrad.formats.page_file import dumps, loads
from voxgrad.graph.session import ClientSession

SAMPLES = Path(__file__).with_name("enuspace")
Array = np.ndarray[Any, Any]


def run(found: Imported, cycles: int = 1, folder: Path | None = None) -> dict[str, dict[str, Array]]:
    """Results of every block, after the page went through its file."""
    page = loads(dumps(found.page))
    return run_page(ClientSession(page, allow_files=() if folder is None else folder), [], {}, cycles)


def needs(*blocks: str) -> pytest.MarkDecorator:
    absent = [name for name in blocks if name in {symbol.name for symbol in missing()}]
    return pytest.mark.skipif(bool(absent), reason=f"no op yet for {', '.join(absent)}")


@pytest.mark.parametrize("name", ["basic", "basic_v4", "one_hot", "gradient_descent_xw_sub"])
def test_samples_give_their_stored_results(name: str) -> None:
    found = import_page(SAMPLES / f"{name}.svg")
    assert found.report.lost == []
    assert found.page.problems() == []
    assert found.expected
    session = ClientSession(loads(dumps(found.page)))
    for _ in range(200):
        results = run_page(session, [], {})
        if all(
            value.shape == results[block][pin].shape
            and np.array_equal(np.round(results[block][pin].astype(float), 6), np.round(value.astype(float), 6))
            for block, pins in found.expected.items()
            for pin, value in pins.items()
        ):
            return
    pytest.fail("no cycle gives the stored results")


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
    assert "auto v = MatMul" in page.notes[0]["text"]
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
    assert any("number of cycles" in remark.text for remark in found.report.remarks)
    assert found.page.notes[-1]["display"] == "SENSOR_TREND"
    assert found.page.notes[-1]["of"] == ["W.ref"]
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
    with np.load(tmp_path / "files" / "w.t") as saved:
        assert saved["W"].tolist() == [5, 6]


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
    with np.load(tmp_path / "one.t") as saved:
        assert {name: saved[name].tolist() for name in saved} == {"W": [1, 2]}
    with np.load(tmp_path / "all.t") as saved:
        assert {name: saved[name].tolist() for name in saved} == {"W": [1, 2], "B": [3]}


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


def test_gadgets_and_drawing_are_notes(tmp_path: Path) -> None:
    old = OldPage()
    old.block("X", "Const", val=np.array([1.0]))
    old.block("LCD", "SENSOR_LCD", task="logic")
    old.link("X.result_output", "LCD.value")
    old.parts.append('<text transform="translate(5,6)">a remark</text><rect/><script>os.exit()</script>')
    found = import_page(old.write(tmp_path / "g.svg"))
    assert found.report.lost == []
    assert [note["text"] for note in found.page.notes] == ["a remark", "SENSOR_LCD: X.output"]
    assert "os.exit" not in dumps(found.page)


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


def test_projects(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "picture").mkdir(parents=True)
    for name in ("basic", "one_hot"):
        (project / "picture" / f"{name}.svg").write_bytes((SAMPLES / f"{name}.svg").read_bytes())
    (tmp_path / "outside.svg").write_bytes((SAMPLES / "basic.svg").read_bytes())
    listed = r'<project active="basic"><page path="picture\basic.svg"/><page path="picture/one_hot.svg"/>'
    listed += r'<page path="..\outside.svg"/><page path="none.svg"/></project>'
    (project / "p.enup").write_bytes(f'<?xml version="1.0" encoding="UTF-16"?>{listed}'.encode("utf-16"))
    pages, report = import_project(project / "p.enup")
    assert list(pages) == ["basic", "one_hot"]
    assert [remark.place for remark in report.lost] == ["..\\outside.svg", "none.svg"]


def test_the_library_knows_all_blocks() -> None:
    assert len(library()) == 486
    known = {symbol.name for symbol in library().values()} - {symbol.name for symbol in missing()}
    assert known >= {"Const_ex", "Multiply", "Subtract", "Negate", "AvgPool3DGrad", "ClientSession", "FeedType"}
    assert all(symbol.op not in registry.OPS for symbol in missing())
