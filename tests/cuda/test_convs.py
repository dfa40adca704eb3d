# SPDX-License-Identifier: Apache-2.0
"""The convolution kernels against the float64 reference, on small cases that reach their branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

from dataclasses import replace  # noqa: E402

from tests.cuda.test_pools import draw, to_numpy  # noqa: E402
from voxgrad import reference  # noqa: E402
from voxgrad.catalog import dtypes, problem  # noqa: E402
from voxgrad.catalog.model import Spec  # noqa: E402
from voxgrad.catalog.registry import OPS  # noqa: E402
from voxgrad.kernels.cuda import conv3d, parts, tune  # noqa: E402
from voxgrad.kernels.cuda.conv_common import Config  # noqa: E402
from voxgrad.kernels.names import KERNELS  # noqa: E402

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
SMALL = Config(bm=32, bn=16, bk=16, splits=2)
STRIP, DIRECT, ROWS = (Config(bm=32, bn=16, bk=16, splits=2, kind=kind) for kind in ("strip", "direct", "rows"))


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
    for config in tune.possible(back, [SMALL, replace(SMALL, kind="few")]):
        agree(conv3d.conv3d_input(back, w, dy, config), back, [w, dy], tolerance)
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
    for config in tune.possible(forward, [SMALL, ROWS]):
        assert torch.equal(conv3d.conv3d(forward, x, turned, config), conv3d.conv3d(forward, x, w, config))
        assert torch.equal(conv3d.conv3d_input(back, turned, dy, config), conv3d.conv3d_input(back, w, dy, config))
    dw = conv3d.conv3d_filter(filters, x, dy, SMALL)
    assert dw.permute(4, 0, 1, 2, 3).is_contiguous()
    agree(dw, filters, [x, dy], 2e-6)


@pytest.mark.parametrize("last", [True, False], ids=["NDHWC", "NCDHW"])
@pytest.mark.parametrize("config", [STRIP, DIRECT], ids=["strip", "direct"])
@pytest.mark.parametrize("case", [*CASES[3:5], ((2, 3, 5), (2, 3, 3), (1, 1, 1), (1, 1, 1), "SAME", 2, 4, 1)], ids=str)
def test_few_channels(case: Any, config: Config, last: bool, device: str) -> None:
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
    window, channels = ((3, 2, 3), 16) if padding == "SAME" else ((1, 2, 3), 32)
    case = (sizes, window, (1, 1, 1), (1, 1, 1), padding, channels, channels, 1)
    forward, back, filters = make_problems(case, declared, True)
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
    agree(conv3d.conv3d_input(back, w, dy, replace(SMALL, kind="few")), back, [w, dy], 2e-6)


@pytest.mark.parametrize("type_name", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("deep", [1, 2, 3])
def test_input_gradient_of_few_channels_plane_by_plane(type_name: str, deep: int, device: str) -> None:
    """The taps of depth are carried along it; more planes than one program walks, and tiles past the end of one."""
    case = ((35, 4, 5), (deep, 3, 3), (1, 2, 1), (1, 1, 2), "SAME" if deep > 1 else "VALID", 1, 20, 1)
    _, (back, tensors), _ = operands(case, type_name, True, device)
    config = Config(bm=16, bn=16, bk=32, kind="planes")
    agree(run(back, tensors, config), back, tensors, TYPES[type_name][2])


def test_infinities_in_float32(device: str) -> None:
    """An infinity in the data reaches the outputs of its windows with the right sign, and nobody else."""
    case = ((3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), "VALID", 16, 16, 1)
    forward, _, _ = make_problems(case, dtypes.FLOAT32, True)
    x, w = (draw(shape, torch.float32, device, 1) for shape in (forward.input_extent, forward.filter_shape))
    x[0, 1, 1, 1, 3], x[0, 0, 2, 0, 5], w[0, 0, 0, 7, 2] = float("inf"), float("nan"), 2.0
    wanted = reference.evaluate(forward, to_numpy(x), to_numpy(w))
    np.testing.assert_allclose(to_numpy(conv3d.conv3d(forward, x, w, SMALL)), wanted, rtol=1e-5, atol=1e-5)


BOX = Config(bm=32, bn=16, bk=16, splits=2, kind="boxes")
BOXED = [
    ((3, 4, 6), (3, 2, 3), (1, 1, 1), (2, 1, 1), "SAME", 16, 24, 1),
    ((4, 4, 8), (3, 3, 3), (2, 2, 2), (1, 1, 1), "SAME", 16, 16, 1),
    ((3, 6, 8), (2, 2, 3), (1, 3, 2), (1, 1, 1), "VALID", 32, 16, 1),
    ((3, 5, 7), (3, 3, 3), (1, 2, 2), (1, 1, 1), "SAME", 16, 16, 1),
]
KINDS = ("boxes", "box rows", "box stack", "box pairs")


def kinds_of(made: Any, kinds: tuple[str, ...] = KINDS) -> list[str]:
    """Those of the kinds that could run a problem."""
    return [path.name for path in conv3d.CONVS[KERNELS[made.op]].may(made, 16) if path.name in kinds]


def operands(case: Any, type_name: str, last: bool, device: str) -> list[tuple[Any, list[Any]]]:
    """The three problems of a case with their tensors."""
    dtype, declared, _ = TYPES[type_name]
    made = make_problems(case, declared, last)
    x, w, dy = (
        draw(shape, dtype, device, seed)
        for seed, shape in enumerate((made[0].input_extent, made[0].filter_shape, made[0].output_extent))
    )
    return [(made[0], [x, w]), (made[1], [w, dy]), (made[2], [x, dy])]


def as_torch(made: Any, tensors: list[Any]) -> list[Any]:
    """The same tensors, a filter among them as torch's channels_last_3d has it in memory."""
    return [
        t.permute(4, 0, 1, 2, 3).contiguous().permute(1, 2, 3, 4, 0) if t.shape == made.filter_shape else t
        for t in tensors
    ]


def run(made: Any, tensors: list[Any], config: Config) -> Any:
    """A problem with a given configuration."""
    return getattr(conv3d, KERNELS[made.op])(made, *tensors, config)


@pytest.mark.parametrize("type_name", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", BOXED, ids=str)
def test_boxes(case: Any, type_name: str, device: str) -> None:
    """Boxes past every border, strides taken apart, phases of strided gradients; filters in both orders."""
    seen = set()
    for made, tensors in operands(case, type_name, True, device):
        for kind in kinds_of(made):
            seen.add(kind)
            config = replace(BOX, kind=kind, splits=1 + (type_name == "float32"))
            agree(run(made, tensors, config), made, tensors, TYPES[type_name][2])
            if made.op != "Conv3DBackpropFilterV2":
                assert torch.equal(run(made, as_torch(made, tensors), config), run(made, tensors, config))
    assert "boxes" in seen


@pytest.mark.parametrize("type_name", ["float32", "half"])
@pytest.mark.parametrize("case", [((2, 4, 8), *BOXED[1][1:5]), ((1, 4, 12), *BOXED[0][1:5])], ids=str)
def test_products_turned_over(case: Any, type_name: str, device: str) -> None:
    """Columns as the rows of the product; boxes of dy that are pieces of its memory, or are not."""
    tile = replace(BOX, bm=64, bn=64, across=True)
    for made, tensors in operands((*case, 64, 64, 1), type_name, True, device):
        for kind in kinds_of(made, ("boxes", "box pairs")):
            agree(run(made, tensors, replace(tile, kind=kind)), made, tensors, TYPES[type_name][2])


@pytest.mark.parametrize(("kind", "type_name"), [*((kind, "bfloat16") for kind in KINDS[:3]), ("box rows", "float32")])
def test_boxes_of_other_layouts(kind: str, type_name: str, device: str) -> None:
    """NCDHW, and a width that takes several tiles; float32 in parts."""
    case = ((2, 3, 130), (1, 3, 3), (1, 1, 1), (1, 1, 1), "SAME", 16, 16, 1)
    for made, tensors in operands(case, type_name, False, device)[:2]:
        agree(run(made, tensors, replace(BOX, kind=kind, bm=128)), made, tensors, TYPES[type_name][2])


def test_float64_and_tf32_in_boxes(device: str) -> None:
    """FP64 tensor cores; and float32 in two parts, far better than TF32's eleven bits."""
    case = ((2, 8, 8), *BOXED[1][1:])
    for made, tensors in operands(case, "float64", True, device):
        agree(run(made, tensors, BOX), made, tensors, TYPES["float64"][2])
        agree(run(made, as_torch(made, tensors), BOX), made, tensors, TYPES["float64"][2])
    for made, tensors in operands(case, "float32", True, device):
        agree(run(made, tensors, replace(BOX, tf32=True)), made, tensors, 3e-5)


@pytest.mark.parametrize("case", [CASES[1], CASES[2], CASES[4]], ids=str)
def test_float32_as_it_is(case: Any, device: str) -> None:
    """Tiny problems: one launch, nothing taken apart."""
    for last in (True, False):
        for made, tensors in operands(case, "float32", last, device):
            agree(run(made, tensors, replace(SMALL, kind="whole")), made, tensors, TYPES["float32"][2])


@pytest.mark.parametrize("type_name", ["float32", "bfloat16"])
def test_rows_of_taps_as_channels(type_name: str, device: str) -> None:
    """Few channels and wide windows: forward, filter gradient, and the input gradient in boxes."""
    case = ((4, 4, 16), (2, 3, 7), (2, 2, 2), (1, 1, 1), "SAME", 3, 16, 1)
    kinds = (("unfold", 32), ("few boxes", 16), ("unfold", 16))
    for (made, tensors), (kind, bk) in zip(operands(case, type_name, True, device), kinds, strict=True):
        agree(run(made, tensors, replace(BOX, kind=kind, bk=bk)), made, tensors, TYPES[type_name][2])


@pytest.mark.parametrize("channels", [(1, 16), (16, 32), (64, 128), (24, 20)], ids=str)
@pytest.mark.parametrize(("type_name", "stride"), [("float32", 1), ("bfloat16", 2), ("float64", 2)])
def test_every_candidate(
    channels: tuple[int, int], type_name: str, stride: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever tuning may choose of ours is right; the interpreter is slow, and tries what comes first."""
    case = ((1, 4, 8), (1, 3, 3), (1, stride, stride), (1, 1, 1), "SAME", *channels, 1)
    monkeypatch.setattr(tune, "TINY", 0)
    for made, tensors in operands(case, type_name, True, device):
        dtype, _, tolerance = TYPES[type_name]
        configs = [choice.config for choice in tune.candidates(made, dtype) if choice.config]
        for config in configs if device == "cuda" else configs[:1]:
            agree(run(made, tensors, config), made, tensors, tolerance)


def test_float32_is_no_worse_than_fused_multiply_adds(device: str) -> None:
    """The sum of many products: against float64, the error of one chain of float32 additions or less."""
    case = ((2, 2, 4), (2, 3, 3), (1, 1, 1), (1, 1, 1), "VALID", 32, 16, 1)
    made, (x, w) = operands(((2, 3, 4), *case[1:]), "float32", True, device)[0]
    result = to_numpy(run(made, [x, w], BOX)).astype(np.float64)
    wanted = reference.evaluate(made, to_numpy(x), to_numpy(w))
    chain = np.zeros(wanted.shape, np.float32)
    for d, h, v, c in np.ndindex(*made.filter_shape[:4]):
        cells = to_numpy(x)[:, d : d + wanted.shape[1], h : h + wanted.shape[2], v : v + wanted.shape[3], c]
        # A product of two float32 is exact in float64: one rounding per step, as a fused multiply-add has.
        step = cells[..., None].astype(np.float64) * to_numpy(w)[d, h, v, c].astype(np.float64)
        chain = (chain.astype(np.float64) + step).astype(np.float32)
    assert np.linalg.norm(result - wanted) <= np.linalg.norm(chain - wanted)


@pytest.mark.parametrize("what", ["tame", "outlier", "tiny region", "huge", "small", "infinite"])
def test_float32_of_any_range(what: str, device: str) -> None:
    """Every output is right relative to its own terms, whatever else is in the data; two float16 serve tame data."""
    case = ((3, 2, 4), (1, 1, 2), (1, 1, 1), (1, 1, 1), "SAME", 1024, 16, 1)
    made, (x, w) = operands(case, "float32", True, device)[0]
    if what == "outlier":
        x[0, 0, 0, 0, 0] = 1e12
    elif what == "tiny region":
        x[0, 2] *= 1e-9
    elif what == "infinite":
        x[0, 1, 1, 1, 0] = float("inf")
    else:
        x *= {"tame": 1.0, "huge": 1e30, "small": 1e-28}[what]
    assert bool(parts.split(x, w)[2][2] == 0) == (what == "tame")
    result = to_numpy(run(made, [x, w], replace(BOX, bk=128))).astype(np.float64)
    wanted = reference.evaluate(made, to_numpy(x), to_numpy(w))
    bound = reference.evaluate(made, np.abs(to_numpy(x)), np.abs(to_numpy(w)))
    fine = np.isfinite(wanted)
    assert np.array_equal(np.isfinite(result), fine)
    assert (np.abs(result - wanted)[fine] <= 4e-7 * bound[fine]).all()
