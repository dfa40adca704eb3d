# SPDX-License-Identifier: Apache-2.0
"""Blocks that are bypassed or muted: in inference, runs, gradients, files, edits, pages as blocks and exports."""

from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.errors import InvalidArgumentError, VoxgradError
from voxgrad.formats import page_file
from voxgrad.formats.graphdef import export_graph, import_graph
from voxgrad.formats.script import export_script
from voxgrad.graph.modes import silent

X = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4, 1)
WINDOW = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}


def chain() -> vg.Page:
    page = vg.Page("chain")
    x = vg.ops.Const(page, X, name="x")
    pool = vg.ops.MaxPool3D(page, x, **WINDOW, name="pool")
    vg.ops.Neg(page, pool, name="neg")
    return page


def test_a_bypassed_block_passes_its_input_on() -> None:
    page = chain()
    session = vg.ClientSession(page)
    pooled = session.run("neg")
    page.set_mode("pool", "bypassed")
    assert page.output("pool").shape == X.shape
    assert page.output("neg").shape == X.shape
    np.testing.assert_array_equal(session.run("neg"), -X)
    page.set_mode("pool", "")
    np.testing.assert_array_equal(session.run("neg"), pooled)


def test_a_bypassed_block_keeps_what_it_is() -> None:
    page = chain()
    page.set_mode("pool", "bypassed")
    page.set_attr("pool", "padding", "SAME")
    page.rename("x", "scan")
    copy = page_file.loads(page_file.dumps(page))
    data = copy.to_dict()["blocks"][1]
    assert data["op"] == "MaxPool3D"
    assert data["attrs"]["padding"] == "SAME"
    assert data["inputs"] == {"input": [{"from": "scan.output"}]}
    assert data["mode"] == "bypassed"
    copy.set_mode("pool", "")
    assert copy.output("neg").shape == (1, 2, 2, 2, 1)


def test_only_the_first_of_a_list_is_passed_on() -> None:
    page = vg.Page()
    a, b = vg.ops.Const(page, X, name="a"), vg.ops.Const(page, 2 * X, name="b")
    vg.ops.AddN(page, [b, a], name="sum")
    page.set_mode("sum", "bypassed")
    np.testing.assert_array_equal(vg.ClientSession(page).run("sum"), 2 * X)


def test_a_block_without_an_input_of_its_type_cannot_be_bypassed() -> None:
    page = chain()
    vg.ops.Cast(page, page.output("x"), "int32", name="cast")
    for name in ("cast", "x"):
        with pytest.raises(InvalidArgumentError, match=r"VG069.*Mute it"):
            page.set_mode(name, "bypassed")
    with pytest.raises(InvalidArgumentError, match=r"VG003"):
        page.set_mode("pool", "off")
    data = page.to_dict()
    data["blocks"][3]["mode"] = "bypassed"
    assert [one.code for one in vg.Page.from_dict(data).problems()] == ["VG069"]
    data["blocks"][3]["mode"] = "off"
    with pytest.raises(VoxgradError, match=r"VG053.*blocks\[3\].mode"):
        vg.Page.from_dict(data)


def test_gradients_flow_through_a_bypassed_block_and_not_through_a_muted_one() -> None:
    page = chain()
    page.set_mode("pool", "bypassed")
    (dx,) = vg.gradients([page.output("neg")], [page.output("x")])
    np.testing.assert_array_equal(vg.ClientSession(page).run(dx), -np.ones_like(X))
    page = chain()
    page.set_mode("pool", "muted")
    with pytest.raises(InvalidArgumentError, match=r"VG064.*pool.*muted"):
        vg.gradients([page.output("neg")], [page.output("x")])
    assert len(page) == 3


def test_a_muted_block_is_not_run_nor_what_reads_from_it() -> None:
    page = chain()
    vg.ops.Exp(page, page.output("x"), name="exp")
    page.set_mode("pool", "muted")
    assert page.problems() == []
    session = vg.ClientSession(page)
    with pytest.raises(VoxgradError, match=r"VG065.*neg.y must need no muted block; got pool"):
        session.run("neg")
    session.run([], targets=["pool", "neg", "exp"])
    report = {one.block: (one.state, one.reason) for one in session.report}
    assert report["pool"] == ("not needed", "it is muted")
    assert report["neg"] == ("dead", "it needs pool, which is muted")
    assert report["exp"][0] == "ran"
    assert report["x"][0] == "ran"
    assert {output.path: name for output, name in silent(page).items()} == {"pool.output": "pool", "neg.y": "pool"}


def test_the_wrong_arguments_of_a_muted_block_stop_no_run() -> None:
    page = chain()
    page.set_attr("pool", "ksize", [1, 0, 2, 2, 1])
    assert page.problems()
    page.set_mode("pool", "muted")
    assert page.problems() == []


def test_a_block_does_not_wait_for_a_muted_one() -> None:
    page = chain()
    vg.ops.Exp(page, page.output("x"), name="exp")
    page.run_after("exp", "pool")
    page.set_mode("pool", "muted")
    session = vg.ClientSession(page)
    np.testing.assert_allclose(session.run("exp"), np.exp(X), rtol=1e-6)
    assert {one.block: one.state for one in session.report}["pool"] == "not needed"


def test_a_merge_goes_on_with_what_is_left() -> None:
    page = vg.Page()
    a, b = vg.ops.Const(page, X, name="a"), vg.ops.Const(page, 2 * X, name="b")
    vg.ops.Merge(page, [a, b], name="merge")
    page.set_mode("a", "muted")
    np.testing.assert_array_equal(vg.ClientSession(page).run("merge.output"), 2 * X)
    assert [output.path for output in silent(page)] == ["a.output"]


def folded() -> vg.Page:
    """A block `layer` that stands for a page with pool and neg."""
    page = chain()
    vg.ops.Exp(page, page.output("neg"), name="exp")
    page.fold(["pool", "neg"], "layer")
    return page


def test_pages_as_blocks_are_bypassed_and_muted() -> None:
    page = folded()
    session = vg.ClientSession(page)
    worked = session.run("exp")
    page.set_mode("layer", "bypassed")
    np.testing.assert_allclose(session.run("exp"), np.exp(X), rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match=r"VG050.*set_mode\('layer', ''\)"):
        page.inline("layer")
    page.set_mode("layer", "muted")
    with pytest.raises(VoxgradError, match=r"VG065"):
        session.run("exp")
    page.set_mode("layer", "")
    np.testing.assert_array_equal(session.run("exp"), worked)


def test_blocks_inside_a_page_are_bypassed_and_muted() -> None:
    page = folded()
    session = vg.ClientSession(page)
    page.pages["layer"].set_mode("pool", "bypassed")
    np.testing.assert_allclose(session.run("exp"), np.exp(-X), rtol=1e-6)
    page.pages["layer"].set_mode("pool", "muted")
    with pytest.raises(VoxgradError, match=r"VG065.*layer/pool"):
        session.run("exp")
    assert set(silent(page).values()) == {"layer/pool"}
    scope = page.inline("layer")
    assert scope.block("pool").mode == "muted"


def test_modes_are_folded_and_unfolded_and_pasted_along() -> None:
    page = chain()
    page.set_mode("pool", "bypassed")
    page.fold(["pool", "neg"], "layer")
    assert page.pages["layer"].block("pool").mode == "bypassed"
    page.inline("layer")
    assert page.block("layer/pool").mode == "bypassed"
    page.apply({"do": "paste", "blocks": [page.to_dict()["blocks"][1]]})
    assert [block.mode for block in page.blocks].count("bypassed") == 2


def test_an_edit_sets_the_mode() -> None:
    page = chain()
    page.apply([{"do": "mode", "block": "pool", "value": "bypassed"}, {"do": "mode", "block": "neg", "value": "muted"}])
    assert [block.mode for block in page.blocks] == ["", "bypassed", "muted"]
    page.apply({"do": "mode", "block": "pool", "value": ""})
    assert page.block("pool").mode == ""


def test_wires_of_a_bypassed_block_can_be_changed() -> None:
    page = vg.Page()
    a, b = vg.ops.Const(page, X, name="a"), vg.ops.Const(page, 2 * X, name="b")
    vg.ops.Add(page, a, b, name="sum")
    page.set_mode("sum", "bypassed")
    page.connect("b.output", "sum", "x")
    page.remove("a")
    np.testing.assert_array_equal(vg.ClientSession(page).run("sum"), 2 * X)
    page.disconnect("sum", "y")
    page.set_mode("sum", "")
    assert [(one.pin, one.code) for one in page.problems()] == [("y", "VG001")]


def test_exports_pass_on_and_refuse_what_is_muted(tmp_path: Path) -> None:
    page = chain()
    page.expose({"y": "neg"})
    page.set_mode("pool", "bypassed")
    (tmp_path / "page.pb").write_bytes(export_graph(page))
    back, _ = import_graph(tmp_path / "page.pb")
    np.testing.assert_array_equal(vg.ClientSession(back).run("neg"), -X)
    assert "ops.Identity(" in export_script(page).text
    page.set_mode("pool", "muted")
    for export in (export_graph, export_script):
        with pytest.raises(VoxgradError, match=r"VG054.*pool must not be muted"):
            export(page)
