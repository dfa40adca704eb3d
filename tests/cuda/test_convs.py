# SPDX-License-Identifier: Apache-2.0
"""The convolution kernels against the float64 reference, on small cases that reach their branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

from tests.cuda.test_pools import draw, to_numpy  # noqa: E402
from voxgrad import reference  # noqa: E402
from voxgrad.catalog import dtypes, problem  # noqa: E402
from voxgrad.catalog.model import Spec  # noqa: E402
from voxgrad.catalog.registry import OPS  # noqa: E402
from voxgrad.kernels.cuda import conv3d  # noqa: E402

# torch and Triton are installed by `python3 run test --parity`. NumPy warns inside the interpreter.
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

CASES = [
    # sizes, window, strides, dilations, padding, in, out, groups
    ((3, 4, 5), (3, 3, 3), (1, 1, 1), (1, 1, 1), "SAME", 16, 16, 1),
    ((4, 5, 6), (3, 3, 3), (2, 2, 2), (1, 1, 1), "SAME", 5, 3, 1),
    ((5, 4, 7), (2, 3, 2), (1, 2, 3), (2, 1, 1), "SAME", 6, 4, 2),
    ((5, 7, 5), (3, 2, 1), (1, 2, 2), (2, 3, 1), "VALID", 2, 5, 1),
    ((4, 4, 6), (3, 3, 3), (2, 1, 2), (1, 1, 1), "SAME", 1, 4, 1),
    ((3, 3, 3), (1, 1, 1), (2, 2, 2), (1, 1, 1), "VALID", 8, 8, 1),
    ((4, 3, 2), (2, 2, 2), (3, 3, 3), (1, 1, 1), "SAME", 3, 2, 1),
]
TYPES = {
    "float32": (torch.float32, dtypes.FLOAT32, 2e-6),
    "float64": (torch.float64, dtypes.FLOAT64, 1e-13),
    "bfloat16": (torch.bfloat16, dtypes.BFLOAT16, 2e-2),
    "half": (torch.float16, dtypes.HALF, 4e-3),
}
SMALL = conv3d.Config(bm=32, bn=16, bk=16, splits=2)
STRIP, DIRECT, ROWS = (conv3d.Config(bm=32, bn=16, bk=16, splits=2, kind=kind) for kind in ("strip", "direct", "rows"))


def make_problems(case: Any, dtype: Any, last: bool) -> tuple[Any, Any, Any]:
    """The forward problem and both gradients of a case."""
    sizes, window, strides, dilations, padding, ci, co, groups = case
    shape = (1, *sizes, ci) if last else (1, ci, *sizes)
    wide = [(1, *v, 1) if last else (1, 1, *v) for v in (strides, dilations)]
    attrs = {"strides": wide[0], "dilations": wide[1], "padding": padding, "data_format": "NDHWC" if last else "NCDHW"}
    taps = (*window, ci // groups, co)
    forward = problem.parse(
        OPS["Conv3D"], {"input": Spec(dtype, shape), "filter": Spec(dtype, taps)}, attrs, "documented"
    )
    dy = Spec(dtype, forward.output_shape)
    inputs = {"input_sizes": Spec(dtypes.INT32, (5,), shape), "filter": Spec(dtype, taps), "out_backprop": dy}
    filters = {"input": Spec(dtype, shape), "filter_sizes": Spec(dtypes.INT32, (5,), taps), "out_backprop": dy}
    back = problem.parse(OPS["Conv3DBackpropInputV2"], inputs, attrs, "documented")
    return forward, back, problem.parse(OPS["Conv3DBackpropFilterV2"], filters, attrs, "documented")


def agree(result: Any, made: Any, tensors: list[Any], tolerance: float) -> None:
    """The result equals the reference, relative to its largest element."""
    wanted = reference.evaluate(made, *(to_numpy(tensor) for tensor in tensors))
    scale = np.abs(wanted).max() or 1
    np.testing.assert_allclose(to_numpy(result).astype(np.float64) / scale, wanted / scale, rtol=0, atol=tolerance)


CALLS = [("float32", case, last) for case in CASES for last in (True, False)]
CALLS += [(name, case, True) for name in list(TYPES)[1:] for case in CASES[:2]]


@pytest.mark.parametrize(("type_name", "case", "last"), CALLS, ids=str)
def test_convolutions(case: Any, last: bool, type_name: str, device: str) -> None:
    """Forward and both gradients: strides, dilations, groups, asymmetric padding, few channels."""
    dtype, declared, tolerance = TYPES[type_name]
    forward, back, filters = make_problems(case, declared, last)
    x, w, dy = (
        draw(shape, dtype, device, seed)
        for seed, shape in enumerate((forward.input_extent, forward.filter_shape, forward.output_extent))
    )
    agree(conv3d.conv3d(forward, x, w, SMALL), forward, [x, w], tolerance)
    agree(conv3d.conv3d_input(back, w, dy, SMALL), back, [w, dy], tolerance)
    agree(conv3d.conv3d_filter(filters, x, dy, SMALL), filters, [x, dy], tolerance)


@pytest.mark.parametrize("case", [CASES[2], ((2, 3, 5), (1, 2, 3), (1, 1, 1), (1, 1, 1), "SAME", 16, 16, 1)], ids=str)
def test_filters_as_torch_keeps_them(case: Any, device: str) -> None:
    """A filter whose output channels come first in memory is read as it lies, and so is the gradient written."""
    forward, back, filters = make_problems(case, dtypes.FLOAT32, True)
    x, w, dy = (
        draw(shape, torch.float32, device, seed)
        for seed, shape in enumerate((forward.input_extent, forward.filter_shape, forward.output_extent))
    )
    turned = w.permute(4, 0, 1, 2, 3).contiguous().permute(1, 2, 3, 4, 0)
    assert conv3d.filter_memory(turned) == (turned, True)
    for config in (SMALL, *((ROWS,) if conv3d.fits_rows(forward, channels=case[5]) else ())):
        assert torch.equal(conv3d.conv3d(forward, x, turned, config), conv3d.conv3d(forward, x, w, config))
        assert torch.equal(conv3d.conv3d_input(back, turned, dy, config), conv3d.conv3d_input(back, w, dy, config))
    dw = conv3d.conv3d_filter(filters, x, dy, SMALL)
    assert dw.permute(4, 0, 1, 2, 3).is_contiguous()
    agree(dw, filters, [x, dy], 2e-6)


@pytest.mark.parametrize("last", [True, False], ids=["NDHWC", "NCDHW"])
@pytest.mark.parametrize("config", [STRIP, DIRECT], ids=["strip", "direct"])
@pytest.mark.parametrize("case", CASES[3:5], ids=str)
def test_few_channels(case: Any, config: conv3d.Config, last: bool, device: str) -> None:
    """The kernels for volumes of one to four channels."""
    forward, _, _ = make_problems(case, dtypes.FLOAT32, last)
    x, w = (draw(shape, torch.float32, device, 1) for shape in (forward.input_extent, forward.filter_shape))
    agree(conv3d.conv3d(forward, x, w, config), forward, [x, w], 2e-6)


@pytest.mark.parametrize("width", [5, 130])
@pytest.mark.parametrize(("padding", "type_name"), [("SAME", "float32"), ("VALID", "bfloat16")])
def test_rows(width: int, padding: str, type_name: str, device: str) -> None:
    """All width taps at once, in one tile and in overlapping ones; and many columns of few channels."""
    dtype, declared, tolerance = TYPES[type_name]
    sizes = (1, 2, width) if padding == "SAME" else (2, 2, width)
    case = (sizes, (3, 2, 3) if padding == "SAME" else (1, 2, 3), (1, 1, 1), (1, 1, 1), padding, 16, 16, 1)
    forward, back, filters = make_problems(case, declared, True)
    assert conv3d.fits_rows(forward, channels=16)
    x, w, dy = (
        draw(shape, dtype, device, seed)
        for seed, shape in enumerate((forward.input_extent, forward.filter_shape, forward.output_extent))
    )
    agree(conv3d.conv3d(forward, x, w, ROWS), forward, [x, w], tolerance)
    agree(conv3d.conv3d_input(back, w, dy, ROWS), back, [w, dy], tolerance)
    agree(conv3d.conv3d_filter(filters, x, dy, ROWS), filters, [x, dy], tolerance)


def test_input_gradient_of_few_channels_and_many_taps(device: str) -> None:
    """More columns than one product holds: rows of taps are the columns."""
    _, back, _ = make_problems(((4, 5, 6), (3, 3, 5), (2, 2, 2), (1, 1, 1), "SAME", 3, 16, 1), dtypes.FLOAT32, True)
    w, dy = (draw(shape, torch.float32, device, 1) for shape in (back.filter_shape, back.output_extent))
    agree(conv3d.conv3d_input(back, w, dy, SMALL), back, [w, dy], 2e-6)


def test_infinities_in_float32(device: str) -> None:
    """An infinity in the data reaches the outputs of its windows with the right sign, and nobody else."""
    case = ((3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), "VALID", 16, 16, 1)
    forward, _, _ = make_problems(case, dtypes.FLOAT32, True)
    x, w = (draw(shape, torch.float32, device, 1) for shape in (forward.input_extent, forward.filter_shape))
    x[0, 1, 1, 1, 3], x[0, 0, 2, 0, 5], w[0, 0, 0, 7, 2] = float("inf"), float("nan"), 2.0
    wanted = reference.evaluate(forward, to_numpy(x), to_numpy(w))
    np.testing.assert_allclose(to_numpy(conv3d.conv3d(forward, x, w, SMALL)), wanted, rtol=1e-5, atol=1e-5)
