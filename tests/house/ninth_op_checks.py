# SPDX-License-Identifier: Apache-2.0
"""What every room makes of an op that is declared in `ninth_op` alone. Run by `test_ninth_op`, where it is declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.house.ninth_op import SUM_POOL3D
from voxgrad.errors import UnimplementedError

X = np.random.default_rng(0).integers(-4, 5, (1, 5, 6, 7, 2)).astype(np.float32)
ATTRS: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 2, 1], "padding": "VALID"}
WANTED = 8 * vg.raw_ops.AvgPool3D(input=X, **ATTRS)
BACK = vg.raw_ops.AvgPool3DGrad(orig_input_shape=X.shape, grad=8 * WANTED, **ATTRS)


def page() -> Any:
    """The sum of a half of the squares of sums over windows; its gradient spreads the sums again."""
    made = vg.Page("sums")
    x = vg.ops.Placeholder(made, dtype="float32", shape=["N", "D", "H", "W", 2], name="x")
    y = vg.ops.SumPool3D(made, x, **ATTRS, name="y")
    vg.ops.Sum(made, vg.ops.Mul(made, vg.ops.Square(made, y), 0.5), [0, 1, 2, 3, 4], name="loss")
    return made


def test_raw_ops_and_out_ops() -> None:
    assert (vg.raw_ops.SumPool3D(input=X, **ATTRS) == WANTED).all()
    assert vg.compat.v1.raw_ops.SumPool3D is vg.raw_ops.SumPool3D
    out = np.full_like(WANTED, np.nan)
    assert (vg.out_ops.SumPool3D(out=out, input=X, **ATTRS) == WANTED).all()
    assert "NumPy reference" in str(vg.explain(vg.raw_ops.SumPool3D, input=X, **ATTRS))
    with pytest.raises(vg.InvalidArgumentError, match="VG010 SumPool3D: input"):
        vg.raw_ops.SumPool3D(input=X[0], **ATTRS)


def test_stubs_and_reference_pages() -> None:
    from tools.generate import ROOT, files

    made = {str(path.relative_to(ROOT)): text for path, text in files().items()}
    assert "def SumPool3D(*, input: typing.Any, ksize: Sequence[int]" in made["src/voxgrad/raw_ops.pyi"]
    assert "def SumPool3D(page: Page, /, input: typing.Any" in made["src/voxgrad/ops.pyi"]
    assert SUM_POOL3D.example in made["docs/reference/SumPool3D.md"]
    assert "[SumPool3DGrad](SumPool3DGrad.md)" in made["docs/reference/README.md"]


def test_pages() -> None:
    made = page()
    assert str(made.output("y").shape) == "(N, D-1, floor(H/2), floor(W/2), 2)"
    (dx,) = vg.gradients([made.output("loss")], [made.output("x")])
    y, back = vg.ClientSession(made).run([made.output("y"), dx], feeds={"x": X})
    assert (y == WANTED).all() and np.allclose(back, BACK)
    checks = {check.block: check.passed for check in vg.check_gradients(made, feeds={"x": X[:, :2, :2, :2]})}
    assert all(checks.values()) and {"y", dx.block.name} <= checks.keys()


def test_chunked_runs(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    made, files = page(), {"x": tmp_path / "x.npy"}
    (dx,) = vg.gradients([made.output("loss")], [made.output("x")])
    assert dx is not None
    found = vg.volumes.run_page(
        made, files, {dx.path: tmp_path / "dx.npy"}, ["loss"], chunks=(2, 3, 4), workers=2, folder=tmp_path / "run"
    )
    assert np.allclose(np.load(tmp_path / "dx.npy"), BACK)
    assert np.allclose(found["loss"], (WANTED**2).sum() / 2)
    plan = vg.volumes.plan_op("SumPool3D", {"input": tmp_path / "x.npy"}, chunks=(2, 3, 4), **ATTRS)
    assert vg.volumes.cost(plan).flops >= 8 * WANTED.size


def test_studio(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the studio is an optional extra")
    from tests.studio.serving import Server
    from voxgrad.formats import page_file

    made = vg.Page("studio")
    x = vg.ops.Const(made, X, name="x")
    vg.ops.SumPool3D(made, x, **ATTRS, name="y")
    document = page_file.to_data(made)
    server = Server(tmp_path)
    try:
        ops = {op["name"]: op for op in server.get("ops")["ops"]}
        assert ops["SumPool3D"]["differentiable"] and ops["SumPool3DGrad"]["inputs"][0]["host"]
        assert server.post("analyse", {"document": document})["estimate"]["blocks"]["y"]["flops"] == 8 * WANTED.size
        (window,) = server.post("trace", {"document": document, "block": "y", "index": [0, 1, 2, 0, 1]})["windows"]
        assert (window["lo"], window["hi"]) == ([0, 1, 4, 0, 1], [1, 3, 6, 2, 2])
        (row,) = (one for one in server.run(document)["blocks"] if one["block"] == "y")
        assert row["outputs"][0]["summary"]["max"] == WANTED.max()
        assert all(one["ok"] for one in server.post("check", {"document": document})["rows"])
    finally:
        server.stop()


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    from voxgrad.cli import main

    assert main(["ops", "SumPool3D"]) == 0
    assert "Sum over 3-D windows." in capsys.readouterr().out


def test_rows_of_benchmarks() -> None:
    from bench.rows import listed, work

    rows = [row for row in listed(["float32"]) if row.op.startswith("SumPool3D")]
    assert len(rows) == 2 * 12
    small = min(rows, key=lambda row: np.prod(row.spatial) * row.channels * np.prod(row.window))
    assert work(small, small.call())[1] > 0


def test_a_gpu_says_that_it_has_no_kernel() -> None:
    on_gpu = type("ndarray", (), {"__module__": "cupy"})()
    with pytest.raises(UnimplementedError, match="VG032 SumPool3D: input must have a kernel on GPUs"):
        vg.raw_ops.SumPool3D(input=on_gpu, **ATTRS)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is an optional extra")
    from voxgrad.torch.operators import call

    attrs = ([2, 2, 2], [1, 2, 2], "VALID", True, "documented")
    x = torch.from_numpy(X)

    def function(x: Any) -> Any:
        return call.sum_pool3d(x, *attrs)

    def loss(x: Any) -> Any:
        return function(x).square().sum() / 2

    assert (function(x).numpy() == WANTED).all()
    leaf = x.clone().requires_grad_()
    loss(leaf).backward()
    assert np.allclose(leaf.grad, BACK)
    made = torch.compile(torch.func.grad(loss), backend="aot_eager", fullgraph=True)(x)
    assert np.allclose(made, BACK)
    _, tangent = torch.func.jvp(function, (x,), (x,))
    assert (tangent.numpy() == WANTED).all()
    many = torch.func.vmap(torch.func.grad(loss))(torch.stack([x, -x]))
    assert np.allclose(many[0], BACK) and np.allclose(many[1], -BACK)
    assert torch.autograd.gradgradcheck(function, x[:, :2, :2, :2].double().requires_grad_())
