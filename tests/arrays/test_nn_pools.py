# SPDX-License-Identifier: Apache-2.0
"""Places of maxima, the way back from them, and adaptive pools of `vg.nn`, beside loops that are easy to read."""

from __future__ import annotations

import doctest
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import voxgrad as vg
from voxgrad import nn
from voxgrad.arrays import kinds, pools
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Spec

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
Three = tuple[int, int, int]


def draw(case: int, low: int, high: int) -> Three:
    """Three numbers, other ones in every case."""
    one, two, three = np.random.default_rng([case, low, high]).integers(low, high, 3).tolist()
    return one, two, three


def integers(*shape: int, seed: int = 0) -> Any:
    """Small ones, with many ties."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float64)


def first(x: Any) -> Any:
    """The same with its channels first."""
    return np.moveaxis(x, 4, 1)


def winners(x: Any, window: Three, strides: Three, padding: Three) -> tuple[Any, Any]:
    """Maxima and their places, cell by cell: the first that is larger than all before it; NaN is larger than none."""
    batch, *sizes, channels = x.shape
    outs = [(size + 2 * pad - k) // s + 1 for size, k, s, pad in zip(sizes, window, strides, padding, strict=True)]
    y, places = np.full((batch, *outs, channels), -np.inf), np.full((batch, *outs, channels), -1)
    for n, c, out in product(range(batch), range(channels), np.ndindex(*outs)):
        at = (n, *out, c)
        for tap in np.ndindex(*window):
            cell = [o * s - pad + t for o, s, pad, t in zip(out, strides, padding, tap, strict=True)]
            if not all(0 <= one < size for one, size in zip(cell, sizes, strict=True)):
                continue
            value = x[n, cell[0], cell[1], cell[2], c]
            if value > y[at] or (value == -np.inf and places[at] < 0):
                y[at], places[at] = value, (cell[0] * sizes[1] + cell[1]) * sizes[2] + cell[2]
    return y, places


def put_back(y: Any, places: Any, sizes: Three) -> Any:
    """Values at their places, one after the other."""
    made = np.zeros((y.shape[0], *sizes, y.shape[4]))
    for n, d, h, w, c in np.ndindex(*y.shape):
        if places[n, d, h, w, c] >= 0:
            made[(n, *np.unravel_index(places[n, d, h, w, c], sizes), c)] = y[n, d, h, w, c]
    return made


def adapted(x: Any, outs: Three, of: Any) -> Any:
    """What is made of every window, in float64."""
    made = np.zeros((x.shape[0], *outs, x.shape[4]))
    for out in np.ndindex(*outs):
        cells = [slice(o * n // m, -((o + 1) * n // -m)) for o, n, m in zip(out, x.shape[1:4], outs, strict=True)]
        made[(slice(None), *out)] = of(x[(slice(None), *cells)].astype(np.float64), axis=(1, 2, 3))
    return made


@pytest.mark.parametrize("case", range(12))
def test_places_and_the_way_back(case: int) -> None:
    sizes, window, strides = draw(case, 3, 8), draw(case, 1, 4), draw(case, 1, 5)
    padding = tuple(min(pad, k - 1) for pad, k in zip(draw(case, 0, 3), window, strict=True))
    x = integers(2, *sizes, 2, seed=case)
    x[x == 3] = [np.nan, -np.inf][case % 2]
    wanted, places = winners(x, window, strides, padding)  # type: ignore[arg-type]
    whole = put_back(wanted, places, sizes)
    options: Any = {"strides": strides, "padding": padding}
    for dtype in FLOATS:
        given = x.astype(dtype)
        y, indices = nn.max_pool3d_with_argmax(given, window, **options)
        assert indices.dtype == np.int64 and y.dtype == dtype
        assert np.array_equal(y, wanted) and np.array_equal(indices, places)
        back = nn.max_unpool3d(y, indices, window, output_size=sizes, **options)
        assert back.dtype == dtype and np.array_equal(back, whole)
        y, indices = nn.max_pool3d_with_argmax(first(given), window, data_format="NCDHW", **options)
        assert np.array_equal(y, first(wanted)) and np.array_equal(indices, first(places))
        back = nn.max_unpool3d(y, indices, window, output_size=sizes, data_format="NCDHW", **options)
        assert np.array_equal(back, first(whole))


def test_a_window_of_nan_alone_has_no_place() -> None:
    x = np.full((1, 1, 1, 4, 1), np.nan, np.float32)
    x[..., 3, 0] = -np.inf
    y, indices = nn.max_pool3d_with_argmax(x, (1, 1, 2))
    assert y.ravel().tolist() == [-np.inf, -np.inf] and indices.ravel().tolist() == [-1, 3]
    assert nn.max_unpool3d(y, indices, (1, 1, 2)).ravel().tolist() == [0, 0, 0, -np.inf]


def test_places_of_many_cells_are_exact() -> None:
    """They are counted in float32 up to 2**24 cells, which is 256**3, and in float64 beyond."""
    assert pools.exact_type(Spec(dtypes.HALF, (9, 256, 256, 256, 9)), last=True) is dtypes.FLOAT32
    assert pools.exact_type(Spec(dtypes.HALF, (9, 9, 256, 256, 257)), last=False) is dtypes.FLOAT64


def test_windows_of_places_are_the_documented_ones() -> None:
    """TensorFlow's CPU kernels start some windows late, in the pool and not in its gradients."""
    x = integers(1, 3, 3, 3, 1)
    wanted = nn.max_pool3d_with_argmax(x, 1, strides=3, padding="SAME")
    with vg.semantics("tf_cpu"):
        for one, other in zip(nn.max_pool3d_with_argmax(x, 1, strides=3, padding="SAME"), wanted, strict=True):
            assert (
                np.array_equal(one, other) and other.ravel().tolist() == [[x[0, 0, 0, 0, 0]], [0]][other is wanted[1]]
            )


def test_the_smallest_volume_is_made_and_the_last_value_is_taken() -> None:
    y, indices = np.arange(1.0, 5).reshape(1, 1, 1, 4, 1), np.array([3, 1, 3, -1]).reshape(1, 1, 1, 4, 1)
    assert nn.max_unpool3d(y, indices, (1, 1, 2), strides=1).ravel().tolist() == [0, 2, 0, 3, 0]
    assert nn.max_unpool3d(y, indices, (2, 2, 2), padding="SAME").shape == (1, 2, 2, 8, 1)
    assert nn.max_unpool3d(y, indices, 3, strides=2, padding=1).shape == (1, 1, 1, 7, 1)
    assert nn.max_unpool3d(y, indices.astype(np.int32), 2, output_size=(3, 2, 9)).shape == (1, 3, 2, 9, 1)


Y, AT = np.ones((1, 2, 2, 2, 1), np.float32), np.zeros((1, 2, 2, 2, 1), np.int64)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"indices": AT + 64}, r"indices must name one of the 64 cells .* -1 for none; got 64 at \[0,0,0,0,0\]"),
        ({"indices": AT - 2}, r"VG043 .* got -2 at \[0,0,0,0,0\]"),
        ({"indices": AT[:, :1]}, r"indices must have the shape of input, \[1,2,2,2,1\]; got \[1,1,2,2,1\]"),
        ({"indices": AT.astype(np.float32)}, "indices must be of type int32, int64; got float32"),
        ({"input": AT}, "input must be of type half, bfloat16, float32, float64; got int64"),
        ({"input": Y[0]}, "input must have rank 5"),
        ({"input": np.ma.array(Y)}, "input must be a plain array; got a masked array"),
        ({"indices": np.ma.array(AT)}, "indices must be a plain array; got a masked array"),
        ({"ksize": 0}, r"ksize\[1\] must be at least 1"),
        ({"ksize": (1, 2)}, "ksize must be a number or three of them"),
        ({"padding": 2}, "padding must be less than the window"),
        ({"data_format": "NHWC"}, "data_format must be 'NDHWC' or 'NCDHW'"),
        ({"output_size": 6}, r"input must have the shape that the pool makes of \[1,6,6,6,1\], \[1,3,3,3,1\]"),
        ({"output_size": -1}, r"output_size must be 0 or more; got \[-1,-1,-1\]"),
        ({"output_size": "4"}, "output_size must be an integer or a list of integers"),
        ({"strides": 10**6, "ksize": 10**6}, "VG015|VG020"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_go_back_is_told(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(vg.InvalidArgumentError, match=told):
        nn.max_unpool3d(**({"input": Y, "indices": AT, "ksize": 2} | wrong))


def test_what_has_no_elements() -> None:
    y, indices = nn.max_pool3d_with_argmax(np.ones((0, 4, 4, 4, 3), np.float32), 2)
    assert y.shape == indices.shape == (0, 2, 2, 2, 3) and indices.dtype == np.int64
    assert nn.max_unpool3d(y, indices, 2).shape == (0, 4, 4, 4, 3)
    assert nn.adaptive_avg_pool3d(np.ones((0, 4, 4, 4, 3), np.float32), (3, None, 1)).shape == (0, 3, 4, 1, 3)


@pytest.mark.parametrize("case", range(12))
def test_adaptive_windows(case: int) -> None:
    sizes, outs = draw(case, 1, 9), draw(case, 1, 8)
    x = integers(2, *sizes, 3, seed=case) + 0.25
    for function, of in ((nn.adaptive_avg_pool3d, np.mean), (nn.adaptive_max_pool3d, np.max)):
        wanted = adapted(x, outs, of)
        np.testing.assert_allclose(function(x, outs), wanted, rtol=1e-14, atol=1e-14)
        made = function(first(x).astype(np.float32), outs, data_format="NCDHW")
        assert made.dtype == np.float32
        np.testing.assert_allclose(made, first(wanted), rtol=1e-6, atol=1e-6)
        for dtype in FLOATS[:2]:  # summed in float32 and rounded once
            whole = function(x.astype(dtype).astype(np.float32), outs)
            assert np.array_equal(function(x.astype(dtype), outs), whole.astype(dtype))


def test_what_is_not_finite_stays_in_its_windows() -> None:
    x = np.arange(5.0).reshape(1, 1, 1, 5, 1)
    x[..., 0, 0], x[..., 4, 0] = np.nan, np.inf
    assert str(nn.adaptive_avg_pool3d(x, (1, 1, 4)).ravel()) == "[nan 1.5 2.5 inf]"
    assert nn.adaptive_max_pool3d(x, (1, 1, 4)).ravel().tolist() == [1, 2, 3, np.inf]


def test_sizes_that_divide_are_a_plain_pool() -> None:
    x = integers(2, 6, 4, 9, 2)
    wanted = nn.avg_pool3d(x, (3, 1, 3))
    for size in ((2, None, 3), (2, 4, 3), [2, None, 3]):
        assert np.array_equal(nn.adaptive_avg_pool3d(x, size), wanted)
    assert np.array_equal(nn.adaptive_avg_pool3d(x, None), x)
    assert np.array_equal(nn.adaptive_avg_pool3d(x, 1), x.mean((1, 2, 3), keepdims=True))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"output_size": (1, 2)}, r"output_size must be a number or three of them; got \[1, 2\]"),
        ({"output_size": (1, 2, 3, 4)}, "output_size must be a number or three of them"),
        ({"output_size": 1.5}, "output_size must be an integer or a list of "),
        ({"output_size": (1, 0, 1)}, "output_size must be at least 1 in height; got 0"),
        ({"output_size": (1, 1, 10**12)}, "VG020 .* output must need at most"),
        ({"input": np.ones((0, 1, 1, 1, 0), np.float32), "output_size": (1, 1, 10**12)}, "VG020"),
        ({"input": np.ones((1, 2, 0, 2, 1), np.float32)}, "input must have cells in height; got none"),
        ({"input": np.ones((2, 2, 2))}, "input must have rank 5"),
        ({"input": AT}, "input must be of type half, bfloat16, float32, float64; got int64"),
        ({"input": np.ma.array(Y)}, "input must be a plain array; got a masked array"),
        ({"data_format": "NHWC"}, "data_format must be NDHWC or NCDHW; got 'NHWC'"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_adapted_is_told(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(vg.InvalidArgumentError, match=told):
        nn.adaptive_avg_pool3d(**({"input": Y, "output_size": 1} | wrong))


def test_other_wrong_pools_are_told() -> None:
    with pytest.raises(vg.InvalidArgumentError, match="input must be at least as large as the window"):
        nn.max_pool3d_with_argmax(Y, 5, strides=1)
    with pytest.raises(vg.InvalidArgumentError, match="got a masked array"):
        nn.max_pool3d_with_argmax(np.ma.array(Y), 2)
    with pytest.raises(vg.InvalidArgumentError, match="input must be of type half"):
        nn.max_pool3d_with_argmax(AT, 2)


def test_limits_hold() -> None:
    x = np.ones((1, 8, 8, 8, 4), np.float32)
    y, indices = nn.max_pool3d_with_argmax(x, 2)
    with vg.limits(bytes=1000):
        for call in (
            lambda: nn.max_pool3d_with_argmax(x, 2),
            lambda: nn.max_unpool3d(y, indices, 2),
            lambda: nn.adaptive_avg_pool3d(x, 5),
        ):
            with pytest.raises(vg.ResourceExhaustedError, match="VG020"):
                call()


def test_lists_and_memory_of_any_form() -> None:
    x = integers(1, 4, 4, 4, 2)
    wanted = nn.max_pool3d_with_argmax(x, 2)
    strange = np.asfortranarray(x).astype(">f8")
    for given in (strange, strange[:, ::1], x.astype(np.float32).tolist()):
        for one, other in zip(nn.max_pool3d_with_argmax(given, 2), wanted, strict=True):
            assert np.array_equal(one, other)
        assert np.array_equal(nn.adaptive_max_pool3d(given, 3), nn.adaptive_max_pool3d(x, 3))
    back = nn.max_unpool3d(wanted[0].astype(">f8"), wanted[1].astype(">i8"), 2)
    assert back.dtype.isnative and np.array_equal(back, nn.max_unpool3d(*wanted, 2))
    assert np.array_equal(nn.max_unpool3d(wanted[0].tolist(), wanted[1].tolist(), 2), back)


@pytest.mark.parametrize("data_format", ["NDHWC", "NCDHW"])
def test_dask_arrays_stay_lazy(data_format: str) -> None:
    da = pytest.importorskip("dask.array", reason="an optional extra")
    x = integers(2, 7, 6, 5, 3)
    chunks = (1, 3, 4, 5, 3) if data_format == "NDHWC" else (1, 3, 3, 4, 5)
    given = x if data_format == "NDHWC" else first(x)
    lazy = da.from_array(given, chunks=chunks)
    options: Any = {"strides": 2, "padding": 1, "data_format": data_format}
    for one, other in zip(
        nn.max_pool3d_with_argmax(lazy, 3, **options), nn.max_pool3d_with_argmax(given, 3, **options), strict=True
    ):
        assert isinstance(one, da.Array) and one.dtype == other.dtype and np.array_equal(one.compute(), other)
    mean = nn.adaptive_avg_pool3d(lazy, (3, None, 4), data_format=data_format)
    assert isinstance(mean, da.Array)
    assert np.array_equal(mean.compute(), nn.adaptive_avg_pool3d(given, (3, None, 4), data_format=data_format))
    with pytest.raises(
        vg.UnimplementedError, match=r"input must hold its values; got a Dask array\. Pass input.compute"
    ):
        nn.max_unpool3d(*nn.max_pool3d_with_argmax(lazy, 3, **options), 3, **options)
    with pytest.raises(vg.InvalidArgumentError, match="have known sizes"):
        nn.adaptive_avg_pool3d(lazy[:, :, lazy[0, 0, :, 0, 0] > 0], 2, data_format=data_format)


@pytest.mark.parity
def test_jax_arrays_come_back() -> None:
    jax = pytest.importorskip("jax")
    x = integers(1, 4, 5, 6, 2).astype(np.float32)
    given = jax.numpy.asarray(x)
    made = nn.max_pool3d_with_argmax(given, 2)
    made = (*made, nn.max_unpool3d(*made, 2, output_size=(4, 5, 6)), nn.adaptive_avg_pool3d(given, 3))
    wanted = nn.max_pool3d_with_argmax(x, 2)
    wanted = (*wanted, nn.max_unpool3d(*wanted, 2, output_size=(4, 5, 6)), nn.adaptive_avg_pool3d(x, 3))
    for one, other in zip(made, wanted, strict=True):
        assert isinstance(one, jax.Array) and np.array_equal(one, other)
    with pytest.raises(vg.UnimplementedError, match="input must hold values; got a traced JAX array"):
        jax.jit(lambda x: nn.adaptive_avg_pool3d(x, 2))(given)
    with pytest.raises(vg.InvalidArgumentError, match="indices must be of the kind of input, jax"):
        nn.max_unpool3d(made[0], wanted[1], 2)


@pytest.mark.parity
def test_arrays_of_a_gpu_go_by_way_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX arrays on a CPU that are said to be on a GPU: they share their memory with torch, as CuPy's do."""
    jax = pytest.importorskip("jax")
    pytest.importorskip("torch")
    x = integers(1, 4, 5, 6, 2).astype(np.float32)
    wanted = nn.max_pool3d_with_argmax(x, 2)
    wanted = (*wanted, nn.max_unpool3d(*wanted, 2, output_size=(4, 5, 6)), nn.adaptive_max_pool3d(x, 3))
    monkeypatch.setattr(kinds, "is_on_gpu", lambda array: isinstance(array, jax.Array))
    made = nn.max_pool3d_with_argmax(jax.numpy.asarray(x), 2)
    back = nn.max_unpool3d(*made, 2, output_size=(4, 5, 6))
    made = (*made, back, nn.adaptive_max_pool3d(jax.numpy.asarray(x), 3))
    for one, other in zip(made, wanted, strict=True):
        assert isinstance(one, jax.Array) and np.array_equal(one, other)


def test_the_examples_run() -> None:
    assert doctest.testmod(nn) == (0, 7)
