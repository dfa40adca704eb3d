# SPDX-License-Identifier: Apache-2.0
"""Pages over volumes: chunked equals dense, sums are those of the whole, and what cannot be cut is refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.random_pages import random_page
from voxgrad.catalog.registry import OPS
from voxgrad.testing import SeededChooser, assert_close

Array = np.ndarray[Any, Any]
TERMS = 3 * 27 * 12
"""Three layers of at most 27 taps over 12 channels."""


def dense(page: vg.Page, fetches: list[str], feeds: dict[str, Array]) -> list[Array]:
    named = [page.outputs.get(name, name) for name in fetches]
    found: list[Array] = vg.ClientSession(page).run(named, feeds=feeds)
    return found


def saved(folder: Path, **arrays: Array) -> dict[str, str]:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return {name: str(folder / f"{name}.npy") for name in arrays}


@pytest.mark.parametrize(
    "start", [*range(0, 100, 20), *(pytest.param(start, marks=pytest.mark.slow) for start in range(100, 400, 20))]
)
def test_three_layers_in_chunks_are_the_dense_page(start: int, tmp_path: Path) -> None:
    for seed in range(start, start + 20):
        choose = SeededChooser(seed)
        style = ("integers", "normal")[seed % 2]
        page, x = random_page(choose, (np.float32, np.float64)[seed // 2 % 2], style)
        (wanted,) = dense(page, ["y"], {"x": x})
        chunks = [choose.integer(3, 9) for _ in range(3)]
        chunks[choose.integer(0, 2)] = choose.integer(1, 5)
        place = tmp_path / str(seed)
        place.mkdir()
        got = vg.volumes.run_page(
            page, saved(place, x=x), {"y": place / "y.npy"}, chunks=chunks, workers=0, folder=place / "run"
        )["y"].read((slice(None),) * 5)
        averages = any(block.op_name == "AvgPool3D" for block in page.blocks)
        terms = TERMS if style == "normal" or averages else 0
        assert_close(got, wanted, terms=terms, scale=float(np.abs(wanted).max(initial=0)), label=f"seed {seed}")


def small_unet(dtype: str = "float32", semantics: str = "documented") -> vg.Page:
    """Down, up and a skip: the way down is pooled, the way up is a transposed convolution."""
    random = np.random.default_rng(3)
    page = vg.Page("unet", semantics=semantics)

    def filters(*shape: int) -> Array:
        return (random.integers(-2, 3, shape) / 4).astype(dtype)

    x = vg.ops.Placeholder(page, dtype=dtype, shape=[None, None, None, None, 2], name="x")
    t = vg.ops.Placeholder(page, dtype=dtype, shape=[None, None, None, None, 3], name="t")
    w1, b1 = (vg.ops.Const(page, filters(*shape), name=name) for name, shape in (("w1", (3, 3, 3, 2, 4)), ("b1", (4,))))
    w2, w3 = (
        vg.ops.Const(page, filters(*shape), name=name)
        for name, shape in (("w2", (2, 2, 2, 4, 4)), ("w3", (3, 1, 3, 8, 3)))
    )
    slope = vg.ops.Const(page, np.asarray(0.75, dtype), name="slope")
    down = vg.ops.Relu(page, vg.ops.BiasAdd(page, vg.ops.Conv3D(page, x, w1, strides=[1] * 5, padding="SAME"), b1))
    pooled = vg.ops.MaxPool3D(page, down, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
    up = vg.ops.Conv3DBackpropInputV2(
        page, vg.ops.Shape(page, down), w2, vg.ops.Mul(page, pooled, slope), strides=[1, 2, 2, 2, 1], padding="SAME"
    )
    both = vg.ops.ConcatV2(page, [down, up], -1)
    y = vg.ops.Conv3D(page, both, w3, strides=[1] * 5, padding="SAME", dilations=[1, 2, 1, 1, 1], name="y")
    error = vg.ops.Square(page, vg.ops.Sub(page, vg.ops.Softmax(page, y), t))
    loss = vg.ops.Mean(page, error, [0, 1, 2, 3, 4], name="mean")
    page.expose({"y": y, "loss": vg.ops.Mul(page, loss, 0.5, name="half")})
    return page


def volumes_of_unet(dtype: str = "float32") -> dict[str, Array]:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 9, 10, 7, 2)).astype(dtype)
    return {"x": x, "t": random.random((2, 9, 10, 7, 3)).astype(dtype)}


@pytest.mark.parametrize("semantics", ["documented", "tf_cpu"])
@pytest.mark.parametrize("chunks", [(9, 10, 7), (4, 3, 5), (5, 1, 4)])
def test_the_gradients_of_a_whole_volume(chunks: tuple[int, ...], semantics: str, tmp_path: Path) -> None:
    page, data = small_unet("float64", semantics), volumes_of_unet("float64")
    wrt = ["w1", "b1", "w2", "w3", "slope"]
    loss, grads = vg.volumes.value_and_gradients(page, "loss", wrt, saved(tmp_path, **data), chunks=chunks, workers=0)
    assert len(page.blocks) == len(small_unet().blocks), "the caller's page is left as it was"
    made = vg.gradients([page.outputs["loss"]], [page.output(name) for name in wrt])
    wanted = vg.ClientSession(page).run([page.outputs["loss"], *made], feeds=data)
    assert np.allclose(loss, wanted[0], rtol=1e-13)
    for name, got, want in zip(wrt, grads, wanted[1:], strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        assert np.abs(got - want).max() <= 1e-13 * np.abs(want).max() * np.sqrt(data["x"].size), name


def test_the_same_chunks_give_the_same_bits_whoever_does_them(tmp_path: Path) -> None:
    page, files = small_unet(), saved(tmp_path, **volumes_of_unet())

    def bits(**how: Any) -> bytes:
        loss, (dw,) = vg.volumes.value_and_gradients(page, "loss", ["w1"], files, chunks=(4, 3, 5), **how)
        return loss.tobytes() + dw.tobytes()

    assert bits(workers=0) == bits(workers=2)


def test_results_and_sums_in_one_run(tmp_path: Path) -> None:
    page, data = small_unet(), volumes_of_unet()
    found = vg.volumes.run_page(
        page, saved(tmp_path, **data), {"y": tmp_path / "y.npy"}, ["loss"], chunks=(4, 4, 4), workers=0
    )
    y, loss = dense(page, ["y", "loss"], data)
    assert_close(found["y"].read((slice(None),) * 5), y, terms=TERMS, scale=float(np.abs(y).max()))
    assert np.allclose(found["loss"], loss, rtol=1e-6)


def test_variables_have_what_the_page_starts_them_with(tmp_path: Path) -> None:
    page = vg.Page("variables")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    w = vg.ops.VariableV2(page, shape=[1, 1, 1, 1, 1], dtype="float32", name="w")
    page.start_with([vg.ops.Assign(page, w, np.full((1, 1, 1, 1, 1), 3, np.float32)).block])
    y = vg.ops.Conv3D(page, x, w, strides=[1] * 5, padding="SAME")
    page.expose({"loss": vg.ops.Sum(page, y, [0, 1, 2, 3, 4], name="sum")})
    files = saved(tmp_path, x=np.ones((1, 4, 4, 4, 1), np.float32))
    loss, (dw,) = vg.volumes.value_and_gradients(page, "loss", ["w"], files, chunks=(2, 2, 2), workers=0)
    assert loss == 3 * 64
    assert dw.ravel() == 64
    loss, _ = vg.volumes.value_and_gradients(
        page, "loss", ["w"], files, feeds={"w": np.full((1,) * 5, 5)}, chunks=(2, 2, 2), workers=0
    )
    assert loss == 5 * 64


def test_a_volume_of_another_type_is_read_as_the_page_says(tmp_path: Path) -> None:
    x = np.arange(64, dtype=">i2").reshape(1, 4, 4, 4, 1)
    page = vg.Page("types")
    given = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    page.expose({"y": vg.ops.Mul(page, given, np.float32(0.5))})
    found = vg.volumes.run_page(page, saved(tmp_path, x=x), {"y": tmp_path / "y.npy"}, chunks=(3, 2, 4), workers=0)
    assert np.array_equal(found["y"].read((slice(None),) * 5), x.astype(np.float32) / 2)


def test_parts_of_a_split_that_need_different_boxes(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(-9, 10, (1, 9, 8, 7, 4)).astype(np.float32)
    page = vg.Page("split")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None, None, None, None, 4], name="x")
    left, right = vg.ops.Split(page, -1, x, num_split=2)
    wide = vg.ops.MaxPool3D(page, left, ksize=[1, 5, 5, 5, 1], strides=[1] * 5, padding="SAME")
    page.expose({"y": vg.ops.Add(page, wide, right), "same": right, "right": right})
    found = vg.volumes.run_page(
        page, saved(tmp_path, x=data), {"y": tmp_path / "y.npy", "same": tmp_path / "r.npy"}, ["right"],
        chunks=(2, 3, 4), workers=0,
    )  # fmt: skip
    assert np.array_equal(found["y"].read(), dense(page, ["y"], {"x": data})[0])
    assert np.array_equal(found["right"].read(), data[..., 2:])
    with pytest.raises(vg.InvalidArgumentError, match="name every result once"):
        vg.volumes.run_page(page, saved(tmp_path, x=data), {"same": tmp_path / "a.npy", "right": tmp_path / "b.npy"})


def test_volume_blocks_bring_their_own_files(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 99, (1, 7, 6, 5, 1)).astype(np.int16)
    (tmp_path / "page" / "files").mkdir(parents=True)
    np.save(tmp_path / "page" / "files" / "scan.npy", data)
    page = vg.Page("own")
    scan = vg.ops.Volume(page, path="scan.npy", dtype="float32")
    corner = vg.ops.Volume(page, path="scan.npy", dtype="float32", box=[0, 2, 0, 2, 0, 2])
    offset = vg.ops.Max(page, corner, [0, 1, 2, 3, 4])
    page.expose({"y": vg.ops.Sub(page, scan, offset)})
    page.save(tmp_path / "page" / "own.vox.json")
    found = vg.volumes.run_page(
        tmp_path / "page" / "own.vox.json", outputs={"y": tmp_path / "y.npy"}, chunks=(3, 3, 3), workers=1
    )
    wanted = data.astype(np.float32) - data[:, :2, :2, :2].max()
    assert np.array_equal(found["y"].read(), wanted)
    # A page that was made in a program and was allowed a folder is worked on in other processes too.
    page.allow_files(tmp_path / "page" / "files")
    found = vg.volumes.run_page(page, outputs={"y": tmp_path / "z.npy"}, chunks=(3, 3, 3), workers=1)
    assert np.array_equal(found["y"].read(), wanted)


def page_with(build: Any) -> vg.Page:
    page = vg.Page("refused")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None, None, None, None, None], name="x")
    page.expose({"y": build(page, x)})
    return page


REFUSED = {
    "Reshape": lambda page, x: vg.ops.Reshape(page, x, [-1], name="culprit"),
    "ReverseSequence": lambda page, x: vg.ops.ReverseSequence(page, x, [1, 2], seq_dim=1, name="culprit"),
    "StridedSliceGrad": lambda page, x: vg.ops.StridedSliceGrad(
        page, [2, 8, 4, 4, 4], [0, 0], [2, 8], [1, 2], x, name="culprit"
    ),
    "Conv3D": lambda page, x: vg.ops.Conv3D(
        page, x, vg.ops.Mul(page, x, np.float32(2)), strides=[1] * 5, padding="SAME", name="culprit"
    ),
}


@pytest.mark.parametrize("op", REFUSED)
def test_what_needs_a_whole_volume_is_refused_by_name(op: str, tmp_path: Path) -> None:
    page, files = page_with(REFUSED[op]), saved(tmp_path, x=np.zeros((2, 4, 4, 4, 4), np.float32))
    with pytest.raises(vg.InvalidArgumentError, match=f"VG072 {op}: culprit must") as caught:
        vg.volumes.run_page(page, files, {"y": tmp_path / "y.npy"}, workers=0)
    assert all(fault.remedy for fault in caught.value.faults)
    assert not (tmp_path / "y.npy").exists()


def test_a_run_needs_a_volume_and_files_for_volumes(tmp_path: Path) -> None:
    page, files = page_with(lambda page, x: vg.ops.Relu(page, x)), saved(tmp_path, x=np.zeros((1,) * 5, np.float32))
    with pytest.raises(vg.InvalidArgumentError, match="VG001 refused: volumes must hold one volume or more"):
        vg.volumes.run_page(page, {}, {"y": tmp_path / "y.npy"}, workers=0)
    with pytest.raises(vg.InvalidArgumentError, match="be written to a file: it is a volume"):
        vg.volumes.run_page(page, files, {}, ["y"], workers=0)
    with pytest.raises(vg.InvalidArgumentError, match="VG010 value_and_gradients"):
        vg.volumes.value_and_gradients(page, "y", ["x"], files, workers=0)


def test_reductions_over_channels_and_over_everything_are_fine(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 7, 3)).astype(np.float32)
    page = vg.Page("fine")
    given = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    brightest = vg.ops.Max(page, given, [-1], name="brightest")
    page.expose({
        "norm": vg.ops.Sqrt(page, vg.ops.Sum(page, vg.ops.Square(page, given), [-1], keep_dims=True)),
        "turned": vg.ops.Transpose(page, given, [0, 4, 1, 2, 3]),
        "brightest": vg.ops.ExpandDims(page, brightest, -1),
        "total": vg.ops.Sum(page, brightest, [0, 1, 2, 3]),
        "images": vg.ops.Mean(page, given, [1, 2, 3]),
    })  # fmt: skip
    files = {name: tmp_path / f"{name}.npy" for name in ("norm", "turned", "brightest")}
    found = vg.volumes.run_page(page, saved(tmp_path, x=x), files, ["total", "images"], chunks=(2, 3, 1), workers=0)
    assert np.allclose(np.load(files["norm"]), np.sqrt((x**2).sum(-1, keepdims=True)))
    assert np.array_equal(np.load(files["turned"]), x.transpose(0, 4, 1, 2, 3))
    assert np.array_equal(np.load(files["brightest"]), x.max(-1, keepdims=True))
    assert np.allclose(found["total"], x.max(-1).sum(), rtol=1e-6)
    assert np.allclose(found["images"], x.mean((1, 2, 3)), rtol=1e-5)


def test_pages_inside_pages_are_put_in_their_place(tmp_path: Path) -> None:
    inner = vg.Page("inner")
    given = vg.ops.Placeholder(inner, dtype="float32", shape=[None] * 5, name="given")
    pooled = vg.ops.MaxPool3D(inner, given, ksize=[1, 3, 3, 3, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    inner.expose({"out": pooled}, [given])
    page = vg.Page("outer")
    page.define("inner", inner)
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    one = page.use("inner", {"given": x}, name="one")
    page.expose({"y": page.use("inner", {"given": one.output(0)}, name="two").output(0)})
    data = np.random.default_rng(0).standard_normal((1, 7, 7, 7, 1)).astype(np.float32)
    found = vg.volumes.run_page(page, saved(tmp_path, x=data), {"y": tmp_path / "y.npy"}, chunks=(2, 3, 4), workers=0)
    assert np.array_equal(found["y"].read((slice(None),) * 5), dense(page, ["y"], {"x": data})[0])


FLOATS = [
    op for op in OPS.values()
    if op.follows is not None and not op.adds_up and not op.attrs
    and all(not item.host and not item.many and "float32" in map(str, op.allowed(item.type)) for item in op.inputs)
]  # fmt: skip


@pytest.mark.parametrize("op", FLOATS, ids=lambda op: op.name)
def test_every_op_that_claims_to_be_local_is(op: Any, tmp_path: Path) -> None:
    """The declared fact, held against the op itself on parts of a volume."""
    pytest.importorskip("scipy", reason="special functions need it") if op.kernel.startswith("special") else None
    random = np.random.default_rng(0)
    page, data = vg.Page("local"), {}
    shapes = [(2, 4, 3, 5, 3) if op.name != "BiasAddV1" or at == 0 else (3,) for at in range(len(op.inputs))]
    given = []
    for item, shape in zip(op.inputs, shapes, strict=True):
        array = random.uniform(0.1, 0.9, shape).astype(np.float32)
        if len(shape) < 5:
            given.append(vg.ops.Const(page, array))
            continue
        data[item.name] = array
        given.append(vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name=item.name))
    page.expose({"result": getattr(vg.ops, op.name)(page, *given)})
    found = vg.volumes.run_page(
        page, saved(tmp_path, **data), {"result": tmp_path / "result.npy"}, chunks=(3, 1, 2), workers=0
    )
    got = found["result"].read((slice(None),) * 5)
    assert np.array_equal(got, dense(page, ["result"], data)[0], equal_nan=got.dtype.kind == "f")
