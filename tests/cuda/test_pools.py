# SPDX-License-Identifier: Apache-2.0
"""Every pool kernel against the float64 reference, on small cases that reach its branches."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

from voxgrad import reference  # noqa: E402
from voxgrad.catalog import dtypes, problem  # noqa: E402
from voxgrad.catalog.model import Spec  # noqa: E402
from voxgrad.catalog.registry import OPS  # noqa: E402
from voxgrad.kernels.cuda import pool_avg, pool_max  # noqa: E402

# torch and Triton are installed by `python3 run test --parity`. NumPy warns inside the interpreter, on NaN.
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

SHAPES = [
    # sizes, window, strides, padding
    ((4, 4, 6), (2, 2, 2), (2, 2, 2), "SAME"),
    ((5, 7, 6), (2, 2, 2), (2, 2, 2), "SAME"),
    ((5, 7, 9), (2, 2, 2), (2, 2, 2), "VALID"),
    ((5, 6, 7), (3, 3, 3), (1, 1, 1), "SAME"),
    ((6, 5, 8), (3, 3, 3), (2, 2, 2), "SAME"),
    ((6, 5, 8), (3, 2, 4), (2, 1, 4), "VALID"),
    ((5, 5, 5), (2, 2, 2), (1, 1, 1), "VALID"),
    ((7, 3, 4), (1, 2, 3), (3, 4, 2), "SAME"),
    ((6, 3, 3), (4, 3, 2), (1, 2, 1), "SAME"),
    ((2, 2, 2), (1, 9, 8), (1, 2, 3), "SAME"),
    ((2, 4, 4), (2, 4, 4), (2, 4, 4), "VALID"),
    ((3, 4, 16), (3, 3, 3), (1, 1, 1), "SAME"),
    ((4, 5, 16), (3, 3, 3), (2, 2, 2), "SAME"),
    ((4, 3, 16), (2, 2, 2), (2, 2, 2), "SAME"),
    ((3, 3, 16), (2, 3, 2), (1, 2, 1), "SAME"),
    ((4, 16, 64), (2, 2, 2), (2, 2, 2), "SAME"),
    ((3, 4, 16), (3, 2, 2), (3, 2, 2), "VALID"),
]
TYPES = {
    "float32": (torch.float32, dtypes.FLOAT32, 2e-6),
    "float64": (torch.float64, dtypes.FLOAT64, 1e-14),
    "half": (torch.float16, dtypes.HALF, 1e-3),
    "bfloat16": (torch.bfloat16, dtypes.BFLOAT16, 8e-3),
}
Case = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], str]


def make_problem(
    name: str, case: Case, dtype: Any, *, last: bool, semantics: str = "documented", n: int = 1, c: int = 2
) -> Any:
    """The problem of a pool op for a case of the table."""
    sizes, window, strides, padding = case
    shape = (n, *sizes, c) if last else (n, c, *sizes)
    wide = [(1, *v, 1) if last else (1, 1, *v) for v in (window, strides)]
    attrs = {"ksize": wide[0], "strides": wide[1], "padding": padding, "data_format": "NDHWC" if last else "NCDHW"}
    sized = Spec(dtypes.FLOAT32, shape)  # only for its output shape: integers have a second order, but no forward op
    forward = problem.parse(OPS["MaxPool3D"], {"input": sized}, attrs, semantics)
    small = Spec(dtype, forward.output_shape)
    specs = {
        "MaxPool3D": {"input": Spec(dtype, shape)},
        "AvgPool3D": {"input": Spec(dtype, shape)},
        "AvgPool3DGrad": {"orig_input_shape": Spec(dtypes.INT32, (5,), shape), "grad": small},
        "MaxPool3DGrad": {"orig_input": Spec(dtype, shape), "orig_output": small, "grad": small},
        "MaxPool3DGradGrad": {"orig_input": Spec(dtype, shape), "orig_output": small, "grad": Spec(dtype, shape)},
    }[name]
    return problem.parse(OPS[name], specs, attrs, semantics)


def to_numpy(tensor: Any) -> Any:
    """A tensor's values as NumPy has them; bfloat16 through its bits."""
    plain = tensor.detach().cpu()
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def draw(shape: Any, dtype: Any, device: str, seed: int, ties: bool = False) -> Any:
    """Random values; few different ones where ties are wanted."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, shape) if ties else rng.standard_normal(shape)
    return torch.tensor(values, dtype=torch.float64).to(dtype).to(device)


def agree(result: Any, made: Any, tensors: list[Any], tolerance: float) -> None:
    """The result equals the reference, NaN and infinities included."""
    wanted = reference.evaluate(made, *(to_numpy(tensor) for tensor in tensors))
    got = to_numpy(result).astype(np.float64)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


# Float32 goes everywhere; other types take the same branches and need only show that their values survive.
CALLS = [("float32", case, last) for case in SHAPES for last in (True, False)]
CALLS += [(name, case, True) for name in list(TYPES)[1:] for case in SHAPES[3:5]]
CALLS += [("bfloat16", case, False) for case in SHAPES[11:14] + SHAPES[15:]]  # Lines of eight numbers.


@pytest.mark.parametrize(("type_name", "case", "last"), CALLS, ids=str)
def test_pools(case: Case, last: bool, type_name: str, device: str) -> None:
    """All five ops in every type: mean, its transpose, maximum, its scatter and its gather, with ties."""
    all_five(case, last, type_name, device)


# Windows side by side that hold all cells: the gradient of the mean repeats numbers, 16 or 32 bytes at a time.
TILES = ((6, 2, 6), (3, 2, 3), (3, 2, 3), "VALID")
REPEATED = [("bfloat16", SHAPES[0], True, 8), ("float32", TILES, True, 12), ("float64", TILES, True, 2)]
REPEATED += [("float64", SHAPES[0], False, 1), ("half", TILES, False, 1), ("half", TILES, True, 32)]


@pytest.mark.parametrize(("type_name", "case", "last", "c"), REPEATED, ids=str)
def test_repeated_gradients(case: Case, last: bool, c: int, type_name: str, device: str) -> None:
    dtype, declared, tolerance = TYPES[type_name]
    back = make_problem("AvgPool3DGrad", case, declared, last=last, c=c, n=2)
    dy = draw(back.output_extent, dtype, device, 3)
    agree(pool_avg.avg_pool_grad(back, dy), back, [dy], tolerance)


# Channels that lanes share side by side: a multiple of 4 or of 8, or 16 at a time; 32 are one lane.
@pytest.mark.parametrize("c", [8, 12, 48, 32])
@pytest.mark.parametrize(("type_name", "at"), [("bfloat16", 1), ("bfloat16", 3), ("float32", 4)])
def test_channels(at: int, type_name: str, c: int, device: str) -> None:
    """All five ops with so many channels."""
    all_five(SHAPES[at], True, type_name, device, c)


def all_five(case: Case, last: bool, type_name: str, device: str, c: int = 2) -> None:
    """Mean, its transpose, maximum, its scatter and its gather agree with the reference."""
    dtype, declared, tolerance = TYPES[type_name]
    forward = make_problem("AvgPool3D", case, declared, last=last, c=c)
    x, g = (draw(forward.input_extent, dtype, device, seed, ties=seed == 1) for seed in (1, 2))
    dy = draw(forward.output_extent, dtype, device, 3)
    agree(pool_avg.avg_pool(forward, x), forward, [x], tolerance)
    back = make_problem("AvgPool3DGrad", case, declared, last=last, c=c)
    agree(pool_avg.avg_pool_grad(back, dy), back, [dy], tolerance)
    top = make_problem("MaxPool3D", case, declared, last=last, c=c)
    y = pool_max.max_pool(top, x)
    agree(y, top, [x], 0)
    scatter = make_problem("MaxPool3DGrad", case, declared, last=last, c=c)
    agree(pool_max.max_pool_grad(scatter, x, y, dy), scatter, [x, y, dy], tolerance)
    gather = make_problem("MaxPool3DGradGrad", case, declared, last=last, c=c)
    agree(pool_max.max_pool_grad_grad(gather, x, y, g), gather, [x, y, g], 0)


@pytest.mark.parametrize(("case", "last"), [(SHAPES[0], False), *((SHAPES[at], True) for at in (0, 3, 4, 5))], ids=str)
def test_special_values(case: Case, last: bool, device: str) -> None:
    """NaN never wins, -inf may, and a given y that is not the maximum is still what cells are compared with."""
    forward = make_problem("MaxPool3D", case, dtypes.FLOAT32, last=last)
    x = draw(forward.input_extent, torch.float32, device, 5, ties=True)
    x[torch.rand(x.shape, generator=torch.Generator().manual_seed(1)).to(device) < 0.5] = float("nan")
    x[x == 2] = float("-inf")
    x[:, :2] = float("nan")
    y = pool_max.max_pool(forward, x)
    agree(y, forward, [x], 0)
    g, dy = draw(x.shape, torch.float32, device, 6), draw(y.shape, torch.float32, device, 7)
    for top in (y, torch.roll(y, 1, 3), torch.full_like(y, float("nan"))):
        scatter = make_problem("MaxPool3DGrad", case, dtypes.FLOAT32, last=last)
        agree(pool_max.max_pool_grad(scatter, x, top, dy), scatter, [x, top, dy], 2e-6)
        gather = make_problem("MaxPool3DGradGrad", case, dtypes.FLOAT32, last=last)
        agree(pool_max.max_pool_grad_grad(gather, x, top, g), gather, [x, top, g], 0)


# Channels that fill words, and lines; 12 channels are three lanes of four.
SMALL = ((2, 3, 4), (3, 3, 3), (1, 1, 1), "SAME")
SMALL_LINES = ((2, 3, 16), (3, 3, 3), (1, 1, 1), "SAME")
WORDS = [(name, SMALL, True, c) for name, c in (("bfloat16", 8), ("half", 4), ("float32", 4), ("float64", 4))]
WORDS += [(name, SMALL, True, 16) for name in ("bfloat16", "float32")]
WORDS += [(name, SMALL_LINES, False, 1) for name in TYPES]
LONG = ((9, 7, 8), (3, 3, 3), (1, 1, 1), "SAME")  # Walked in several pieces, along depth, height and width.
WORDS += [(name, LONG, last, 4 if last else 1) for name in ("bfloat16", "float32") for last in (True, False)]
WORDS += [("bfloat16", ((8, 5, 3), (3, 3, 3), (1, 1, 1), "SAME"), True, 64)]  # Places as long as a cache line.
WORDS += [("bfloat16", ((2, 3, 5), (3, 3, 3), (2, 2, 2), "SAME"), True, 12), ("half", SHAPES[0], True, 4)]
WORDS += [("bfloat16", ((3, 2, 16), (3, 3, 3), (2, 2, 2), "SAME"), False, 1), ("half", SHAPES[14], False, 1)]


@pytest.mark.parametrize(("type_name", "case", "last", "c"), WORDS, ids=str)
def test_maxima_in_words(case: Case, last: bool, c: int, type_name: str, device: str) -> None:
    """Searches that take several numbers at a time: with ties, both zeros, NaN, and a y that is not the maximum."""
    dtype, declared, tolerance = TYPES[type_name]
    forward, scatter, gather = (
        make_problem(name, case, declared, last=last, c=c)
        for name in ("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad")
    )
    x = draw(forward.input_extent, dtype, device, 1, ties=True)
    x[..., ::2][x[..., ::2] == 0] = -0.0
    g, dy = draw(x.shape, dtype, device, 2), draw(forward.output_extent, dtype, device, 3)
    dy.view(-1)[::7] = float("inf")  # What a cell does not get must not reach it, not even times zero.
    y = pool_max.max_pool(forward, x)
    agree(pool_max.max_pool_grad(scatter, x, y, dy), scatter, [x, y, dy], tolerance)
    agree(pool_max.max_pool_grad_grad(gather, x, y, g), gather, [x, y, g], 0)
    x[torch.rand(x.shape, generator=torch.Generator().manual_seed(1)).to(device) < 0.3] = float("nan")
    top = torch.roll(pool_max.max_pool(forward, x), 1, 3)
    agree(pool_max.max_pool_grad(scatter, x, top, dy), scatter, [x, top, dy], tolerance)
    agree(pool_max.max_pool_grad_grad(gather, x, top, g), gather, [x, top, g], 0)


def test_misaligned_pairs(device: str) -> None:
    """Numbers of 16 bits that start at an odd one cannot be taken two at a time, and are not."""
    names = ("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad")
    forward, scatter, gather = (make_problem(name, SMALL, dtypes.BFLOAT16, last=True, c=8) for name in names)
    shape = forward.input_extent
    x = draw((1 + int(np.prod(shape)),), torch.bfloat16, device, 1, ties=True)[1:].view(shape)
    assert x.data_ptr() % 4
    y = pool_max.max_pool(forward, x)
    agree(pool_max.max_pool_grad(scatter, x, y, x), scatter, [x, y, x], 8e-3)
    agree(pool_max.max_pool_grad_grad(gather, x, y, x), gather, [x, y, x], 0)


@pytest.mark.parametrize("case", SHAPES[3:5] + SHAPES[7:10], ids=str)
@pytest.mark.parametrize("type_name", ["float32", "bfloat16"])
def test_tf_cpu_semantics(case: Case, type_name: str, device: str) -> None:
    """Late starts, overreaching windows and near ties."""
    dtype, declared, tolerance = TYPES[type_name]
    made = {
        name: make_problem(name, case, declared, last=True, semantics="tf_cpu")
        for name in ("AvgPool3D", "AvgPool3DGrad", "MaxPool3D", "MaxPool3DGrad")
    }
    x = draw(made["AvgPool3D"].input_extent, dtype, device, 8) * 2e-5
    dy = draw(made["AvgPool3D"].output_extent, dtype, device, 9)
    agree(pool_avg.avg_pool(made["AvgPool3D"], x), made["AvgPool3D"], [x], tolerance)
    agree(pool_avg.avg_pool_grad(made["AvgPool3DGrad"], dy), made["AvgPool3DGrad"], [dy], tolerance)
    y = pool_max.max_pool(made["MaxPool3D"], x)
    scatter = made["MaxPool3DGrad"]
    agree(pool_max.max_pool_grad(scatter, x, y, dy), scatter, [x, y, dy], tolerance)


@pytest.mark.parametrize("dtype", ["int64", "uint8"])
@pytest.mark.parametrize("case", [SHAPES[1], SHAPES[3]], ids=str)
def test_second_order_of_integers(case: Case, dtype: str, device: str) -> None:
    """MaxPool3DGradGrad only compares and copies, so it takes integers."""
    made = make_problem("MaxPool3DGradGrad", case, dtypes.named(dtype), last=True)
    rng = np.random.default_rng(1)
    x, g = (torch.tensor(rng.integers(0, 9, made.input_extent).astype(dtype)).to(device) for _ in range(2))
    y = torch.tensor(rng.integers(0, 9, made.output_extent).astype(dtype)).to(device)
    agree(pool_max.max_pool_grad_grad(made, x, y, g), made, [x, y, g], 0)


POOLS = ("AvgPool3D", "MaxPool3D", "AvgPool3DGrad", "MaxPool3DGrad")
NO_WINDOWS = ((1, 4, 4), (2, 2, 2), (2, 2, 2), "VALID")


@pytest.mark.parametrize("case", [SHAPES[0], ((2, 4, 4), (3, 3, 3), (1, 1, 1), "VALID"), NO_WINDOWS], ids=str)
@pytest.mark.parametrize("empty", [{"n": 0}, {"c": 0}, {}], ids=str)
def test_empty_tensors(case: Case, empty: dict[str, int], device: str) -> None:
    """Nothing in, nothing out; an input without windows has a gradient of zeros."""
    made = {name: make_problem(name, case, dtypes.FLOAT32, last=True, **empty) for name in POOLS}
    forward = made["AvgPool3D"]
    x, y = (draw(extent, torch.float32, device, 1) for extent in (forward.input_extent, forward.output_extent))
    assert pool_avg.avg_pool(made["AvgPool3D"], x).shape == y.shape
    assert pool_max.max_pool(made["MaxPool3D"], x).shape == y.shape
    for grad in (
        pool_avg.avg_pool_grad(made["AvgPool3DGrad"], y),
        pool_max.max_pool_grad(made["MaxPool3DGrad"], x, y, y),
    ):
        assert grad.shape == x.shape
        assert y.numel() or not grad.any()
