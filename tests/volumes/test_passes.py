# SPDX-License-Identifier: Apache-2.0
"""Statistics of whole volumes used on the volumes, and blocks that move cells: chunked runs against NumPy."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_pages import dense, saved
from voxgrad.volumes.space import placed
from voxgrad.volumes.stores import open_volume, save_volume
from voxgrad.volumes.watch import watch

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)
X = RNG.integers(-9, 10, (2, 7, 6, 5, 4)).astype(np.float64)
W = (RNG.integers(-2, 3, (3, 3, 3, 4, 4)) / 4).astype(np.float64)


def page_of(build: Callable[[vg.Page, Any], Any], dtype: str = "float64") -> vg.Page:
    page = vg.Page("passes")
    x = vg.ops.Placeholder(page, dtype=dtype, shape=[None, None, None, None, X.shape[4]], name="x")
    page.expose({"y": build(page, x)})
    return page


def run(folder: Path, page: vg.Page, x: Array, chunks: Any = (4, 3, 3), **how: Any) -> Any:
    """The result of a page: an array, of a file or of the run itself."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target = folder / "y.npy"
    found = vg.volumes.run_page(page, saved(folder, x=x), {"y": target}, chunks=chunks, **{"workers": 0, **how})["y"]
    return np.asarray(found)


def conv(page: vg.Page, x: Any) -> Any:
    return vg.ops.Conv3D(page, x, W, strides=[1] * 5, padding="SAME")


def normalised(page: vg.Page, x: Any, axes: list[int]) -> Any:
    """A norm as pages spell it: the mean first, then the mean of squares around it."""
    mean = vg.ops.Mean(page, x, axes, keep_dims=True)
    variance = vg.ops.Mean(page, vg.ops.SquaredDifference(page, x, mean), axes, keep_dims=True)
    return vg.ops.Mul(page, vg.ops.Sub(page, x, mean), vg.ops.Rsqrt(page, vg.ops.AddV2(page, variance, 1e-5)))


def by_hand(x: Array, axes: tuple[int, ...]) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def filtered(x: Array) -> Array:
    """The convolution of `conv`, tap by tap."""
    padded = np.pad(x, [(0, 0), *[(1, 1)] * 3, (0, 0)])
    d, h, w = x.shape[1:4]
    taps = [(i, j, k) for i in range(3) for j in range(3) for k in range(3)]
    return np.sum([padded[:, i : i + d, j : j + h, k : k + w] @ W[i, j, k] for i, j, k in taps], axis=0)


def grouped(page: vg.Page, x: Any) -> Any:
    made = vg.ops.Reshape(page, x, [*X.shape[:4], 2, 2])
    return vg.ops.Reshape(page, normalised(page, made, [1, 2, 3, 5]), list(X.shape))


NORMS: dict[str, tuple[Any, Callable[[Array], Array]]] = {
    "instance": (lambda page, x: normalised(page, x, [1, 2, 3]), lambda x: by_hand(x, (1, 2, 3))),
    "batch": (lambda page, x: normalised(page, x, [0, 1, 2, 3]), lambda x: by_hand(x, (0, 1, 2, 3))),
    "layer": (lambda page, x: normalised(page, x, [1, 2, 3, 4]), lambda x: by_hand(x, (1, 2, 3, 4))),
    "group": (grouped, lambda x: by_hand(x.reshape(*x.shape[:4], 2, 2), (1, 2, 3, 5)).reshape(x.shape)),
}


@pytest.mark.parametrize("norm", NORMS)
def test_norms_between_convolutions(tmp_path: Path, norm: str) -> None:
    build, wanted = NORMS[norm]
    page = page_of(lambda page, x: build(page, conv(page, vg.ops.Relu(page, build(page, conv(page, x))))))
    plan = vg.volumes.plan_page(page, saved(tmp_path, x=X), ["y"], chunks=(4, 3, 3))
    assert len(plan.before) == 4 and vg.volumes.cost(plan).passes == 5
    # Each convolution is done once: later passes go on from what an earlier one kept.
    assert vg.volumes.cost(plan).recomputed < 0.1
    got = run(tmp_path / "run", page, X)
    np.testing.assert_allclose(got, wanted(filtered(np.maximum(wanted(filtered(X)), 0))), rtol=1e-10, atol=1e-11)
    assert not list((tmp_path / "run").glob("*/passes/*/*.npy")), "what passes left for each other is gone"


def test_softmax_over_space_and_a_global_pool(tmp_path: Path) -> None:
    def softmax(page: vg.Page, x: Any) -> Any:
        powers = vg.ops.Exp(page, vg.ops.Sub(page, x, vg.ops.Max(page, x, [1, 2, 3], keep_dims=True)))
        return vg.ops.RealDiv(page, powers, vg.ops.Sum(page, powers, [1, 2, 3], keep_dims=True))

    powers = np.exp(X - X.max((1, 2, 3), keepdims=True))
    np.testing.assert_allclose(run(tmp_path, page_of(softmax), X), powers / powers.sum((1, 2, 3), keepdims=True), 1e-12)

    def squeezed(page: vg.Page, x: Any) -> Any:
        """Squeeze and excite: channels weighed by what their means become."""
        pooled = vg.ops.MatMul(page, vg.ops.Mean(page, x, [1, 2, 3]), W[0, 0, 0])
        return vg.ops.Mul(page, x, vg.ops.Reshape(page, vg.ops.Sigmoid(page, pooled), [2, 1, 1, 1, 4]))

    weights = 1 / (1 + np.exp(-X.mean((1, 2, 3)) @ W[0, 0, 0]))
    np.testing.assert_allclose(run(tmp_path, page_of(squeezed), X), X * weights[:, None, None, None], 1e-12)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("data_format", ["NDHWC", "NCDHW"])
def test_fused_batch_norm_and_its_gradient(tmp_path: Path, data_format: str, training: bool) -> None:
    """By its parts over a volume, held against the op's own kernel."""
    x = X.astype(np.float32) if data_format == "NDHWC" else X.transpose(0, 4, 1, 2, 3).astype(np.float32).copy()
    page = vg.Page("fused")
    given = vg.ops.Placeholder(page, dtype="float32", shape=list(x.shape), name="x")
    given = vg.ops.Conv3D(page, given, W.astype(np.float32), strides=[1] * 5, padding="SAME", data_format=data_format)
    scale, offset = (vg.ops.Const(page, RNG.random(4, np.float32), name=name) for name in ("scale", "offset"))
    old = np.full(4, 2, np.float32)
    made = vg.ops.FusedBatchNormV3(page, given, scale, offset, old, old, exponential_avg_factor=0.5,
                                   data_format=data_format, is_training=training, name="norm")  # fmt: skip
    axis = [1] if data_format == "NCDHW" else [-1]
    loss = vg.ops.Mean(page, vg.ops.Sum(page, vg.ops.Tanh(page, made[0]), axis, keep_dims=True), [0, 1, 2, 3, 4])
    page.expose({"y": made[0], "mean": made[1], "variance": made[2], "loss": loss})
    found = vg.volumes.run_page(
        page, saved(tmp_path, x=x), {"y": tmp_path / "y.npy"}, ["mean", "norm:2"], chunks=(4, 3, 3), workers=0
    )
    y, mean, variance = dense(page, ["y", "mean", "variance"], {"x": x})
    np.testing.assert_allclose(found["y"].read(), y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["norm:2"], variance, rtol=1e-5)
    value, grads = vg.volumes.value_and_gradients(
        page, "loss", ["scale", "offset"], saved(tmp_path, x=x), chunks=(4, 3, 3), workers=0
    )
    wanted = vg.gradients([page.outputs["loss"]], [page.output("scale"), page.output("offset")])
    loss, *slopes = vg.ClientSession(page).run([page.outputs["loss"], *wanted], feeds={"x": x})
    np.testing.assert_allclose(value, loss, rtol=1e-5)
    for got, want in zip(grads, slopes, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_the_gradients_of_a_network_with_norms(tmp_path: Path) -> None:
    page = vg.Page("train")
    x = vg.ops.Placeholder(page, dtype="float64", shape=[None, None, None, None, 4], name="x")
    w1, w2 = (vg.ops.Const(page, W * scale, name=name) for name, scale in (("w1", 1.0), ("w2", 0.5)))
    hidden = vg.ops.Relu(page, normalised(page, vg.ops.Conv3D(page, x, w1, strides=[1] * 5, padding="SAME"), [1, 2, 3]))
    y = normalised(page, vg.ops.Conv3D(page, hidden, w2, strides=[1, 2, 2, 2, 1], padding="SAME"), [0, 1, 2, 3])
    peak = vg.ops.Max(page, y, [1, 2, 3], keep_dims=True)
    loss = vg.ops.Mean(page, vg.ops.Square(page, vg.ops.Sub(page, vg.ops.Tanh(page, y), peak)), [0, 1, 2, 3, 4])
    page.expose({"loss": loss})
    value, grads = vg.volumes.value_and_gradients(
        page, "loss", ["w1", "w2"], saved(tmp_path, x=X), chunks=(4, 3, 5), workers=0
    )
    made = vg.gradients([loss], [w1, w2])
    wanted, *slopes = vg.ClientSession(page).run([loss, *made], feeds={"x": X})
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    for got, want in zip(grads, slopes, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


WIDE = (RNG.integers(-(2**40), 2**40, X.shape)).astype(np.int64)
REDUCTIONS: dict[str, tuple[Any, Array, Array]] = {
    "Max": (lambda page, x: vg.ops.Max(page, x, [1, 2, 3]), X, X.max((1, 2, 3))),
    "Min": (lambda page, x: vg.ops.Min(page, x, [0, 1, 2, 3], keep_dims=True), X, X.min((0, 1, 2, 3), keepdims=True)),
    "Max of integers": (lambda page, x: vg.ops.Max(page, x, [1, 2, 3]), WIDE, WIDE.max((1, 2, 3))),
    "Max with NaN": (
        lambda page, x: vg.ops.Max(page, x, [1, 2, 3]), np.where(X == 9, np.nan, X),
        np.where(X == 9, np.nan, X).max((1, 2, 3)),
    ),
    "Prod": (
        lambda page, x: vg.ops.Prod(page, x, [0, 1, 2, 3]), 1 + X / 999, (1 + X / 999).prod((0, 1, 2, 3)),
    ),
    "Mean of integers": (
        lambda page, x: vg.ops.Mean(page, x, [1, 2, 3]), WIDE,
        np.fix(WIDE.sum((1, 2, 3)) / np.float64(7 * 6 * 5)).astype(np.int64),
    ),
    "All": (lambda page, x: vg.ops.All(page, vg.ops.Less(page, x, 9.0), [1, 2, 3]), X, (X < 9).all((1, 2, 3))),
    "Any": (lambda page, x: vg.ops.Any(page, vg.ops.Less(page, x, -8.0), [1, 2, 3]), X, (X < -8).any((1, 2, 3))),
    "channels too": (lambda page, x: vg.ops.Max(page, x, [1, 2, 3, 4]), X, X.max((1, 2, 3, 4))),
}  # fmt: skip


def test_reductions_of_any_kind(tmp_path: Path) -> None:
    for name, (build, x, wanted) in REDUCTIONS.items():
        page = page_of(build, str(x.dtype))
        found = vg.volumes.run_page(page, saved(tmp_path, x=x), {}, ["y"], chunks=(4, 3, 3), workers=0)["y"]
        assert found.shape == wanted.shape, name
        assert found.dtype == wanted.dtype, name
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=name)


def softmax_along(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def resized(page: vg.Page, x: Any) -> Any:
    one = vg.ops.Squeeze(page, vg.ops.Slice(page, x, [1, 0, 0, 0, 0], [1, -1, -1, -1, -1]), axis=[0])
    small = vg.ops.Cast(page, vg.ops.ResizeNearestNeighbor(page, one, [12, 10]), DstT="float64")
    return vg.ops.Conv3D(page, vg.ops.ExpandDims(page, small, 0), W, strides=[1] * 5, padding="SAME")


ALONG: dict[str, tuple[Any, Callable[[Array], Array]]] = {
    "a projection": (lambda page, x: vg.ops.Max(page, x, [1], keep_dims=True), lambda x: x.max(1, keepdims=True)),
    "planes": (lambda page, x: vg.ops.Mean(page, x, [2, 3], keep_dims=True), lambda x: x.mean((2, 3), keepdims=True)),
    "images": (lambda page, x: vg.ops.Sum(page, x, [0], keep_dims=True), lambda x: x.sum(0, keepdims=True)),
    "where it is largest": (
        lambda page, x: vg.ops.ExpandDims(page, vg.ops.ArgMax(page, x, 2), 2), lambda x: x.argmax(2)[:, :, None]
    ),
    "a running sum": (lambda page, x: vg.ops.Cumsum(page, conv(page, x), 1), lambda x: filtered(x).cumsum(1)),
    "softmax along width": (
        lambda page, x: vg.ops.Transpose(
            page, vg.ops.Softmax(page, vg.ops.Transpose(page, conv(page, x), [0, 1, 2, 4, 3])), [0, 1, 2, 4, 3]
        ),
        lambda x: softmax_along(filtered(x), 3),
    ),
    "a mirror": (
        lambda page, x: conv(page, vg.ops.MirrorPad(page, x, [[0, 0], [2, 1], [0, 0], [0, 0], [0, 0]], mode="REFLECT")),
        lambda x: filtered(np.pad(x, [(0, 0), (2, 1), (0, 0), (0, 0), (0, 0)], mode="reflect")),
    ),
    "a repeated volume": (
        lambda page, x: conv(page, vg.ops.Tile(page, x, [1, 2, 1, 1, 1])),
        lambda x: filtered(np.tile(x, (1, 2, 1, 1, 1))),
    ),
    "a repeated plane": (
        lambda page, x: conv(page, vg.ops.Tile(page, vg.ops.Max(page, x, [1], keep_dims=True), [1, 4, 1, 1, 1])),
        lambda x: filtered(np.tile(x.max(1, keepdims=True), (1, 4, 1, 1, 1))),
    ),
    "a resize": (resized, lambda x: filtered(x[1:].repeat(2, 2).repeat(2, 3))),
}  # fmt: skip


def test_ops_that_need_all_of_a_direction_get_it(tmp_path: Path) -> None:
    for name, (build, wanted) in ALONG.items():
        np.testing.assert_allclose(run(tmp_path, page_of(build), X), wanted(X), rtol=1e-9, atol=1e-9, err_msg=name)


def cells(shape: Any, start: int = 1000) -> Array:
    return np.arange(start, start + np.prod(shape), dtype=np.float64).reshape(shape)


MOVES: list[tuple[str, Any, Callable[[Array], Array]]] = [
    ("Slice", lambda page, x: vg.ops.Slice(page, x, [0, 2, 1, 0, 1], [2, -1, 3, -1, 2]),
     lambda x: x[:, 2:, 1:4, :, 1:3]),
    ("StridedSlice", lambda page, x: vg.ops.StridedSlice(
        page, x, [0, 5, 0, -1, 0], [2, 0, 6, 0, 4], [1, -2, 3, -1, 1], begin_mask=21, end_mask=29),
     lambda x: x[:, 5:0:-2, ::3, ::-1]),
    ("one plane", lambda page, x: vg.ops.StridedSlice(
        page, x, [0, 3, 0], [0, 4, 0], [1, 1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2, new_axis_mask=4),
     lambda x: x[:, 3, None]),
    ("Pad", lambda page, x: vg.ops.Pad(page, x, [[0, 0], [2, 0], [0, 3], [9, 1], [0, 1]]),
     lambda x: np.pad(x, [(0, 0), (2, 0), (0, 3), (9, 1), (0, 1)])),
    ("PadV2", lambda page, x: vg.ops.PadV2(page, x, [[1, 0], [0, 0], [1, 1], [0, 0], [0, 0]], 7.0),
     lambda x: np.pad(x, [(1, 0), (0, 0), (1, 1), (0, 0), (0, 0)], constant_values=7)),
    ("ReverseV2", lambda page, x: vg.ops.ReverseV2(page, x, [1, -2]), lambda x: x[:, ::-1, :, ::-1]),
    ("ConcatV2", lambda page, x: vg.ops.ConcatV2(page, [cells((2, 3, *X.shape[2:])), x, vg.ops.Neg(page, x)], 1),
     lambda x: np.concatenate([cells((2, 3, *X.shape[2:])), x, -x], 1)),
    ("Split", lambda page, x: vg.ops.Sub(page, *vg.ops.Split(page, 2, x, num_split=2)),
     lambda x: x[:, :, :3] - x[:, :, 3:]),
    ("SplitV", lambda page, x: vg.ops.ConcatV2(page, list(vg.ops.SplitV(page, x, [1, -1, 2], 1, num_split=3)[::-1]), 1),
     lambda x: np.concatenate([x[:, 5:], x[:, 1:5], x[:, :1]], 1)),
    ("Unpack", lambda page, x: vg.ops.Pack(page, list(vg.ops.Unpack(page, x, num=7, axis=1)[4:0:-1]), axis=2),
     lambda x: np.stack([x[:, at] for at in (4, 3, 2, 1)], 2)),
]  # fmt: skip


def test_moved_cells(tmp_path: Path) -> None:
    """Alone, and between a convolution and a maximum, whose windows reach over what was moved."""
    pool: Any = {"ksize": [1, 3, 3, 3, 1], "strides": [1] * 5, "padding": "SAME"}
    for name, build, wanted in MOVES:
        assert np.array_equal(run(tmp_path, page_of(build), X), wanted(X)), name
        page = page_of(lambda page, x, build=build: vg.ops.MaxPool3D(page, build(page, vg.ops.Abs(page, x)), **pool))
        assert np.array_equal(run(tmp_path, page, X), dense(page, ["y"], {"x": X})[0]), name


def test_gradients_through_moved_cells(tmp_path: Path) -> None:
    page = vg.Page("crop")
    x = vg.ops.Placeholder(page, dtype="float64", shape=[None, None, None, None, 4], name="x")
    w = vg.ops.Const(page, W, name="w")
    y = vg.ops.Conv3D(page, x, w, strides=[1] * 5, padding="SAME")
    inner = vg.ops.Pad(page, vg.ops.Slice(page, y, [0, 1, 1, 1, 0], [2, 5, 4, 3, 4]), [[0, 0], [1, 2], *[[0, 0]] * 3])
    joined = vg.ops.ConcatV2(page, [vg.ops.ReverseV2(page, inner, [1]), inner], 1)
    page.expose({"loss": vg.ops.Sum(page, vg.ops.Square(page, joined), [0, 1, 2, 3, 4])})
    files = saved(tmp_path, x=X)
    _, (got,) = vg.volumes.value_and_gradients(page, "loss", ["w"], files, chunks=(4, 3, 3), workers=0)
    # A quadratic form: its slope is found exactly by differences of whole steps.
    step = np.zeros_like(W)
    step[1, 0, 2, 3, 1] = 1
    ends = [vg.ClientSession(page).run(page.outputs["loss"], feeds={"x": X, "w": W + sign * step}) for sign in (1, -1)]
    assert np.isclose(got[1, 0, 2, 3, 1], (ends[0] - ends[1]) / 2, rtol=1e-12)


def test_a_box_of_a_volume_is_a_volume(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    affine = np.array([[0, 2.0, 0, 5], [-1.5, 0, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1]])
    save_volume(tmp_path / "files" / "scan.nii", X[:1, ..., :1].astype(np.float32), like=placed(affine))
    page = vg.Page("box")
    page.allow_files(tmp_path / "files")
    part = vg.ops.Volume(page, path="scan.nii", dtype="float32", box=[1, 6, 2, 6, 0, 4])
    page.expose({"y": vg.ops.Sub(page, part, vg.ops.Mean(page, part, [0, 1, 2, 3, 4]))})
    found = vg.volumes.run_page(page, outputs={"y": tmp_path / "y.nii"}, chunks=(2, 3, 2), workers=1)["y"]
    box = X[:1, 1:6, 2:6, :4, :1]
    np.testing.assert_allclose(found.read(), box - box.mean(), rtol=1e-6, atol=1e-6)
    # The first voxel of the box, x 0, y 2, z 1; also behind a pass, whose own files hold no place.
    np.testing.assert_allclose(found.affine @ [0, 0, 0, 1], affine @ [0, 2, 1, 1])


def random_page() -> vg.Page:
    """Random numbers are drawn once, though several passes read them, and a sum reads what they were made of."""
    page = vg.Page("random")
    x = vg.ops.Placeholder(page, dtype="float64", shape=[None] * 5, name="x")
    drawn = vg.ops.RandomUniform(page, [4], dtype="float64", seed=0)
    shifted = vg.ops.AddV2(page, x, vg.ops.Mul(page, drawn, 2.0))
    total = vg.ops.Mean(page, vg.ops.Sub(page, shifted, vg.ops.Mul(page, drawn, 2.0)), [0, 1, 2, 3])
    page.expose({"y": vg.ops.Sub(page, vg.ops.Sub(page, shifted, vg.ops.Mul(page, drawn, 2.0)), total)})
    return page


def test_random_numbers_are_drawn_once(tmp_path: Path) -> None:
    np.testing.assert_allclose(run(tmp_path, random_page(), X), X - X.mean((0, 1, 2, 3)), atol=1e-12)


class StopError(Exception):
    """Raised where a test stops a run."""


def stopping(after: int) -> Callable[[int, int, float], None]:
    def progress(done: int, total: int, seconds: float) -> None:
        if done >= after:
            raise StopError

    return progress


def norm_page() -> vg.Page:
    return page_of(lambda page, x: normalised(page, conv(page, normalised(page, conv(page, x), [1, 2, 3])), [1, 2, 3]))


def test_a_run_of_passes_goes_on_wherever_it_was_stopped(tmp_path: Path) -> None:
    page, seen = norm_page(), []
    whole = run(tmp_path / "whole", page, X, (4, 3, 5), progress=lambda done, total, _: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == vg.volumes.cost(
        vg.volumes.plan_page(page, saved(tmp_path, x=X), ["y"], chunks=(4, 3, 5))
    ).tasks  # fmt: skip
    assert [one for one, _ in seen] == sorted(one for one, _ in seen)
    assert run(tmp_path / "two", page, X, (4, 3, 5), workers=2).tobytes() == whole.tobytes()
    files, target = saved(tmp_path, x=X), tmp_path / "y.npy"

    def go(**how: Any) -> Any:
        return vg.volumes.run_page(page, files, {"y": target}, chunks=(4, 3, 5), workers=0, **how)["y"]

    for after in (3, 9, 14, 22, 27, 33, 39):
        with pytest.raises(StopError):
            go(progress=stopping(after))
        state = watch(target) if after < 30 else None
        assert state is None or state.total == 8
    assert go().read().tobytes() == whole.tobytes()


def test_what_a_pass_left_is_not_trusted_when_it_was_changed(tmp_path: Path) -> None:
    page, files, target = norm_page(), saved(tmp_path, x=X), tmp_path / "y.npy"

    def go(**how: Any) -> Any:
        return vg.volumes.run_page(page, files, {"y": target}, chunks=(4, 3, 5), workers=0, **how)

    with pytest.raises(StopError):
        go(progress=stopping(20))
    kept = tmp_path / "y.npy.voxgrad-run" / "passes" / "0" / "0.npy"
    data = np.load(kept, mmap_mode="r+")
    data[0, 0, 0, 0, 0] += 1
    data.flush()
    with pytest.raises(vg.InvalidArgumentError, match="VG075"):
        go()
    data[0, 0, 0, 0, 0] -= 1
    data.flush()
    sums = kept.parent / "found.npz"
    sums.write_bytes(sums.read_bytes()[:-1])
    with pytest.raises(vg.InvalidArgumentError, match="VG075"):
        go()
    assert not open_volume(files["x"]).box
