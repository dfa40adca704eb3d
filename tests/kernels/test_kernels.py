# SPDX-License-Identifier: Apache-2.0
"""Kernels against the reference: every op, type, layout and instruction set, in memory full of NaN."""

import os
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.kernels.oracle import run, run_poisoned, truth
from voxgrad.arrays import fast
from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog.dtypes import FLOAT32, FLOAT64, FLOATING, REAL, DType
from voxgrad.catalog.model import Op
from voxgrad.catalog.problem import DATA_FORMATS
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.catalog.semantics import SEMANTICS
from voxgrad.kernels import cpu
from voxgrad.testing import SeededChooser, assert_close, draw_call
from voxgrad.testing.calls import STYLES

Call = dict[str, Any]
GRID = [
    pytest.param(op, dtype, layout, id=f"{op.name}-{dtype}-{layout}")
    for op in FAMILY
    for dtype in FLOATING
    for layout in DATA_FORMATS
]


def attrs_of(call: dict[str, object]) -> dict[str, object]:
    """The part of a call that is worth reading in a message."""
    return {name: value.shape if isinstance(value, np.ndarray) else value for name, value in call.items()}


@pytest.mark.parametrize(("op", "dtype", "layout"), GRID)
def test_kernel_equals_reference(op: Op, dtype: DType, layout: str, isa: str) -> None:
    for seed in range(16):
        call = draw_call(op, SeededChooser(seed), dtype=dtype, formats=(layout,), style=STYLES[seed % len(STYLES)])
        for name in SEMANTICS:
            with vg.semantics(name):
                exact = seed % len(STYLES) in (0, 2) and op.map.of != "AvgPool3D"
                truth(op.name, call).check(run_poisoned(op.name, call), exact=exact, label=f"{name} {attrs_of(call)}")


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 8, 15, 16, 17, 32, 33, 48, 64, 65])
@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_every_vector_tail(op: Op, channels: int, isa: str) -> None:
    """Channel counts around the widths of vectors and register tiles, with a width that is not one of them."""
    random = np.random.default_rng(channels)
    for layout in DATA_FORMATS:
        x = random.integers(-3, 4, (1, 3, 4, 19, channels)).astype(np.float32)
        spatial = [2, 3, 3]
        stride = [1, 2, 1]
        call = _wide_call(op, x, spatial, stride, layout, random)
        truth(op.name, call).check(run_poisoned(op.name, call), label=f"{layout} {channels}")


@pytest.mark.parametrize("width", [29, 61])
@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_rows_of_several_tiles(op: Op, width: int, isa: str) -> None:
    """Rows so long that tiles lie between those at the padding, with channels that fill whole vectors."""
    random = np.random.default_rng(width)
    shapes = [(18, 32, 3, 1), (32, 48, 5, 1), (64, 16, 3, 2), (32, 32, 2, 1), (128, 64, 1, 1)]
    for channels, outs, taps, step in [*shapes, (24, 24, 3, 1), (24, 24, 3, 2)]:
        for layout in DATA_FORMATS:
            x = random.integers(-3, 4, (1, 3, 4, width, channels)).astype(np.float32)
            call = _wide_call(op, x, [2, taps, taps], [1, step, step], layout, random, outs)
            truth(op.name, call).check(run_poisoned(op.name, call), label=f"{layout} {channels} {outs} {taps} {step}")


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", ["AvgPool3D", "AvgPool3DGrad", "MaxPool3D"])
def test_windows_of_every_step(op: str, dtype: DType, isa: str) -> None:
    """Windows and steps of every size, gaps and leftover cells too, with channels that fill vectors."""
    random = np.random.default_rng(5)
    shapes = ((16, 11, "SAME", 2, 2), (40, 13, "VALID", 3, 1), (72, 9, "SAME", 3, 2), (16, 7, "SAME", 3, 1))
    for window in range(1, 6):
        for step in range(1, 6):
            for channels, width, padding, taps, stride in shapes:
                attrs: dict[str, Any] = {"ksize": [1, taps, 3, window, 1], "strides": [1, stride, 1, step, 1]}
                attrs["padding"] = padding
                x = random.integers(-3, 4, (1, 5, 5, width, channels)).astype(numpy_type(dtype))
                call = {"input": x} | attrs
                if op == "AvgPool3DGrad":
                    call = {"orig_input_shape": list(x.shape), "grad": vg.raw_ops.MaxPool3D(input=x, **attrs)} | attrs
                truth(op, call).check(run_poisoned(op, call), exact=op == "MaxPool3D", label=f"{attrs} {channels}")


@pytest.mark.parametrize("width", [60, 70, 100, 140])
@pytest.mark.parametrize("op", ["AvgPool3D", "MaxPool3D"])
def test_overlapping_windows_in_long_rows(op: str, width: int, isa: str) -> None:
    """Rows of which eight, seven, five or too few are kept from a depth to the next, and more rows than these."""
    x = np.random.default_rng(width).integers(-3, 4, (1, 5, 11, width, 64)).astype(np.float32)
    for padding in ("SAME", "VALID"):
        call = {"input": x, "ksize": [1, 3, 3, 3, 1], "strides": [1] * 5, "padding": padding}
        truth(op, call).check(run_poisoned(op, call), exact=op == "MaxPool3D", label=padding)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("op", [op for op in FAMILY if op.map.has_taps], ids=lambda op: op.name)
def test_inputs_read_in_place(op: Op, dtype: DType, isa: str) -> None:
    """Strides, and channels enough that nothing is copied: every width of the padding, down to single columns."""
    for seed in range(48):
        choose = SeededChooser(seed)
        call = _conv_call(op, dtype, choose, choose.pick((3, 5, 24, 64, 100)), choose.pick((5, 16, 64, 100)))
        truth(op.name, call).check(run_poisoned(op.name, call), label=str(attrs_of(call)))


@pytest.mark.parametrize("layout", DATA_FORMATS)
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", [op for op in FAMILY if op.map.has_taps], ids=lambda op: op.name)
def test_few_channels(op: Op, dtype: DType, layout: str, isa: str) -> None:
    """Channels so few that every tap of each is listed: padding at one side or both, strides, dilations, tails."""
    for seed in range(40):
        choose = SeededChooser(seed)
        few, many = 1 + seed % 8, choose.pick((4, 8, 17, 24, 40, 48, 64, 100))
        channels, outs = (many, few) if op.name == "Conv3DBackpropInputV2" else (few, many)
        with vg.semantics(choose.pick(tuple(SEMANTICS))):
            call = _conv_call(op, dtype, choose, channels, outs, layout)
            exact = dtype in (FLOAT32, FLOAT64)
            truth(op.name, call).check(run_poisoned(op.name, call), exact=exact, label=str(attrs_of(call)))


def _check_every_type(op: Op, call: Call) -> None:
    """Small integers, given in float64, in all types: they have one truth."""
    known = truth(op.name, call)
    for dtype in FLOATING:
        kind = numpy_type(dtype)
        typed = {name: one.astype(kind) if isinstance(one, np.ndarray) else one for name, one in call.items()}
        label = f"{dtype} {attrs_of(call)}"
        known.check(run_poisoned(op.name, typed), exact=dtype in (FLOAT32, FLOAT64), label=label)


@pytest.mark.parametrize("op", [op for op in FAMILY if op.map.has_taps], ids=lambda op: op.name)
def test_short_lines_of_many_channels(op: Op, isa: str) -> None:
    """Voxels whole pages apart, output channels in sets of unequal size, and a filter larger than the caches."""
    for width, channels, outs, taps, step, gap in (
        (4, 512, 40, 3, 1, 1), (8, 256, 72, 3, 2, 1), (7, 256, 104, 3, 2, 1), (9, 256, 24, 2, 2, 2),
        (3, 512, 56, 3, 1, 2), (5, 512, 40, 3, 1, 1), (8, 96, 136, 3, 1, 1), (16, 64, 88, 3, 2, 1),
        (8, 20, 67, 4, 1, 1), (17, 100, 61, 3, 1, 2), (4, 40, 264, 3, 3, 1), (5, 264, 456, 3, 1, 1),
        (8, 456, 264, 3, 2, 1), (2, 264, 456, 3, 1, 2),
    ):  # fmt: skip
        for layout in DATA_FORMATS:
            random = np.random.default_rng(width)
            x = random.integers(-3, 4, (1, 2, 7, width, channels)).astype(np.float64)
            call = _wide_call(op, x, [2, 2, taps], [1, 2, step], layout, random, outs, gap)
            for name in {"out_backprop"} & set(call):  # small numbers, whose sums are exact
                call[name] = random.integers(-3, 4, call[name].shape).astype(x.dtype)
            _check_every_type(op, call)


@pytest.mark.parametrize("op", [op for op in FAMILY if op.map.has_taps], ids=lambda op: op.name)
def test_sums_of_too_many_terms_to_list(op: Op, isa: str) -> None:
    """One tap over more channels, and few channels under more taps, than a list of products holds."""
    for spatial, taps, channels, outs in (
        ((2, 2, 5), (1, 1, 1), 2048, 33), ((2, 2, 5), (1, 1, 1), 2049, 33), ((5, 8, 9), (7, 7, 7), 6, 40),
    ):  # fmt: skip
        random = np.random.default_rng(0)
        x, w = (
            random.integers(-3, 4, shape).astype(np.float32)
            for shape in ((1, *spatial, channels), (*taps, channels, outs))
        )
        known = {"input": x, "filter": w, "input_sizes": list(x.shape), "filter_sizes": list(w.shape)}
        known["out_backprop"] = random.integers(-3, 4, (1, *spatial, outs)).astype(np.float32)
        call = {item.name: known[item.name] for item in op.inputs} | {"strides": [1] * 5, "padding": "SAME"}
        truth(op.name, call).check(run_poisoned(op.name, call), exact=True, label=f"{spatial} {taps} {channels}")


@pytest.mark.parametrize("layout", DATA_FORMATS)
def test_filter_gradients_of_many_voxels(layout: str, isa: str) -> None:
    """Blocks of several slices, which bring in what the one before has not; the last so large that it is asked for."""
    op = OPS["Conv3DBackpropFilterV2"]
    random = np.random.default_rng(3)
    for spatial, channels, outs, taps, steps, gaps in (
        ((9, 30, 31), 16, 32, (3, 3, 3), (1, 1, 1), (1, 1, 1)), ((12, 17, 19), 72, 48, (3, 2, 2), (1, 1, 1), (1, 1, 1)),
        ((13, 17, 19), 72, 16, (3, 3, 2), (1, 1, 2), (1, 1, 1)), ((14, 9, 19), 72, 17, (3, 1, 2), (1, 1, 1), (2, 3, 1)),
        ((40, 15, 15), 72, 16, (2, 2, 3), (3, 1, 1), (1, 1, 2)), ((27, 19, 20), 3, 16, (3, 2, 4), (2, 1, 1), (1, 1, 1)),
        ((40, 15, 15), 72, 4, (4, 2, 2), (2, 1, 1), (1, 1, 1)), ((6, 64, 64), 96, 96, (2, 1, 2), (1, 1, 1), (1, 1, 1)),
    ):  # fmt: skip
        last = layout == DATA_FORMATS[0]
        order = (lambda three: [1, *three, 1]) if last else (lambda three: [1, 1, *three])
        cells = tuple(-(-size // step) for size, step in zip(spatial, steps, strict=True))
        x, dy = (
            random.integers(-3, 4, (1, *here, count) if last else (1, count, *here)).astype(np.float64)
            for here, count in ((spatial, channels), (cells, outs))
        )
        call = {"input": x, "filter_sizes": [*taps, channels, outs], "out_backprop": dy, "padding": "SAME"}
        call |= {"strides": order(steps), "dilations": order(gaps), "data_format": layout}
        _check_every_type(op, call)


def _conv_call(op: Op, dtype: DType, choose: SeededChooser, channels: int, outs: int, layout: str = "NDHWC") -> Call:
    """Small integers, in lines of every length and windows of every step along the width, in few rows and many."""
    last = layout == DATA_FORMATS[0]
    width, window, step = choose.pick((1, 2, 3, 9, 16, 31)), choose.integer(1, 5), choose.integer(1, 3)
    spatial = (choose.pick((1, 2, 3, 6)), choose.pick((2, 3, 5, 17)), width)
    taps = choose.pick(((1, 1, 1), (1, 3, window), (2, 3, window), (2, 3, window)))
    gaps = (1, 1, choose.pick((1, 1, 1, 2)))
    fits = all((tap - 1) * gap < size for tap, gap, size in zip(taps, gaps, spatial, strict=True))
    order = (lambda three: [1, *three, 1]) if last else (lambda three: [1, 1, *three])
    attrs: Call = {"strides": order((1, step, step)), "dilations": order(gaps), "data_format": layout}
    attrs["padding"] = choose.pick(("SAME", "VALID")) if fits else "SAME"
    shape = (1, *spatial, channels) if last else (1, channels, *spatial)
    x = choose.random.integers(-3, 4, shape).astype(numpy_type(dtype))
    w = choose.random.integers(-3, 4, (*taps, channels, outs)).astype(x.dtype)
    known = {"input": x, "filter": w, "input_sizes": list(x.shape), "filter_sizes": list(w.shape)}
    known["out_backprop"] = truth("Conv3D", {"input": x, "filter": w, **attrs}).value.astype(x.dtype)
    return {item.name: known[item.name] for item in op.inputs} | attrs


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", [op for op in FAMILY if op.map.has_taps], ids=lambda op: op.name)
def test_channels_that_fill_half_a_vector(op: Op, dtype: DType) -> None:
    """Kernels with smaller vectors may take them, which need other scratch memory, if no set is asked for by name."""
    names = ["", cpu.isa_name(), ""] if cpu.library() is not None else [""]
    shapes = [(24, 8, 3, 1), (8, 24, 3, 1), (64, 24, 2, 2), (24, 12, 3, 1), (4, 40, 3, 2), (2, 8, 2, 2)]
    for channels, outs, taps, step in shapes:
        random = np.random.default_rng(channels)
        x = random.integers(-3, 4, (1, 4, 5, 13, channels)).astype(numpy_type(dtype))
        call = _wide_call(op, x, [2, taps, taps], [1, step, step], DATA_FORMATS[0], random, outs)
        known = truth(op.name, call)
        try:
            for name in names:
                cpu.use_isa(name)
                exact = dtype in (FLOAT32, FLOAT64)
                known.check(run_poisoned(op.name, call), exact=exact, label=f"{name} {attrs_of(call)}")
        finally:
            cpu.use_isa(os.environ.get("VOXGRAD_ISA", ""))


def _wide_call(op, x, window, stride, layout, random, outs=7, gap=1):  # type: ignore[no-untyped-def]
    last = layout == DATA_FORMATS[0]
    order = (lambda three: [1, *three, 1]) if last else (lambda three: [1, 1, *three])
    turn = (lambda a: a) if last else (lambda a: np.ascontiguousarray(np.moveaxis(a, -1, 1)))
    attrs = {"strides": order(stride), "padding": "SAME", "data_format": layout}
    channels = x.shape[-1]
    if op.map.has_taps:
        attrs["dilations"] = order([1, 1, gap])
        w = random.integers(-3, 4, (*window, channels, outs)).astype(x.dtype)
        y = vg.raw_ops.Conv3D(input=turn(x), filter=w, **attrs)
        known = {
            "input": turn(x),
            "filter": w,
            "out_backprop": y,
            "input_sizes": list(turn(x).shape),
            "filter_sizes": list(w.shape),
        }
    else:
        attrs["ksize"] = order(window)
        y = vg.raw_ops.MaxPool3D(input=turn(x), **attrs)
        known = {"input": turn(x), "orig_input": turn(x), "orig_output": y, "orig_input_shape": list(turn(x).shape)}
        known["grad"] = turn(x) + 1 if op.name == "MaxPool3DGradGrad" else y
    return {item.name: known[item.name] for item in op.inputs} | attrs


@pytest.mark.parametrize("dtype", [one for one in REAL if not one.is_floating], ids=str)
def test_second_gradient_of_integers(dtype: DType, isa: str) -> None:
    op = OPS["MaxPool3DGradGrad"]
    for seed in range(8):
        call = draw_call(op, SeededChooser(seed), dtype=dtype)
        truth(op.name, call).check(run_poisoned(op.name, call), label=str(call))


@pytest.mark.parametrize("data", FLOATING, ids=lambda dtype: f"data-{dtype}")
@pytest.mark.parametrize("grad", FLOATING, ids=lambda dtype: f"grad-{dtype}")
def test_max_pool_gradient_of_mixed_types(data: DType, grad: DType) -> None:
    op = OPS["MaxPool3DGrad"]
    for seed in range(6):
        call = draw_call(op, SeededChooser(seed), dtype=data, style="ties")
        call["grad"] = draw_call(op, SeededChooser(seed), dtype=grad, style="ties")["grad"]
        result = run(op.name, call)
        assert result.dtype == call["grad"].dtype
        truth(op.name, call).check(result)


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_the_numpy_path_gives_the_same(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [draw_call(op, SeededChooser(seed), dtype=dtype) for seed in range(4) for dtype in FLOATING]
    native = [run(op.name, call) for call in calls]
    fast.forget()
    monkeypatch.setattr(cpu, "library", lambda: None)
    for call, result in zip(calls, native, strict=True):
        known = truth(op.name, call)
        assert_close(run(op.name, call), known.value, label=str(call))
        known.check(result, label=str(call))


def test_large_windows_take_no_time() -> None:
    """A window of 2**31-1 cells is cut to the data before anything looks at it."""
    x = np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3, 1)
    huge = [1, 2**31 - 1, 2**31 - 1, 2**31 - 1, 1]
    y = vg.raw_ops.MaxPool3D(input=x, ksize=huge, strides=[1, 1, 1, 1, 1], padding="SAME")
    assert (y == 26).all()
    mean = vg.raw_ops.AvgPool3D(input=x, ksize=huge, strides=huge, padding="SAME")
    assert mean.ravel() == [13.0]
    far = [1, 2**31 - 1, 1, 1, 1]
    w = np.ones((3, 1, 1, 1, 1), np.float32)
    same = vg.raw_ops.Conv3D(input=x, filter=w, strides=[1, 1, 1, 1, 1], padding="SAME", dilations=far)
    assert_close(same, x)


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("padding", ["0:4", "2:0", "3:3", "5:1"])
@pytest.mark.parametrize("cells", [0, 1, 2])
def test_infinities_at_windows_of_padding_alone(cells: int, padding: str, stride: int) -> None:
    """0 * inf is NaN there too, though a kernel has nothing to read."""
    x, w = np.ones((1, cells, 2, 1, 1), np.float32), np.ones((2, 2, 1, 1, 2), np.float32)
    attrs = {"strides": [1, stride, 1, 1, 1], "padding": f"{padding},0,0"}
    y = run("Conv3D", {"input": x, "filter": w, **attrs})
    for place in np.ndindex(w.shape):
        bad = w.copy()
        bad[place] = np.inf
        call = {"input": x, "filter": bad, **attrs}
        truth("Conv3D", call).check(run("Conv3D", call), label=f"{place} {attrs}")
        call = {"input_sizes": list(x.shape), "filter": bad, "out_backprop": np.ones_like(y), **attrs}
        truth("Conv3DBackpropInputV2", call).check(run("Conv3DBackpropInputV2", call), label=f"{place} {attrs}")
    for place in np.ndindex(y.shape):
        dy = np.ones_like(y)
        dy[place] = np.inf
        call = {"input": x, "filter_sizes": list(w.shape), "out_backprop": dy, **attrs}
        truth("Conv3DBackpropFilterV2", call).check(run("Conv3DBackpropFilterV2", call), label=f"{place} {attrs}")
