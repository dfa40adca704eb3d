# SPDX-License-Identifier: Apache-2.0
"""The calls that record.py runs on TensorFlow: seeded random ones and hand-written ones.

Every array is drawn from a generator seeded by the case's own name, so that adding a case changes no other.
Windows follow the documented rule here (SAME pads clamped at zero). The two places where TensorFlow's Eigen kernels
differ, checked exhaustively in one dimension (n <= 10, k <= 12, s <= 6, each spatial axis), are, with
out = ceil(n / s), total = (out - 1) * s + k - n and start(o) = o * s - max(0, total) // 2:

* B2, forward ops (Conv3D, AvgPool3D, MaxPool3D), SAME, total <= -2: every window starts (-total) // 2 later.
  The gradient ops and MaxPool3DGradGrad keep the documented grid.
* B3, AvgPool3DGrad and MaxPool3DGrad, SAME, k > n: a window with start < 0 always ends at n (and AvgPool3DGrad divides
  by the cells of that larger window). MaxPool3DGradGrad keeps the documented window.

XLA breaks ties of MaxPool3DGrad and MaxPool3DGradGrad in depth, height, width order only where the padding is the same
on both sides of every axis; elsewhere it visits the window in an order of its own ("accident" below).
"""

import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Axes = tuple[int, int, int]
Fill = Callable[[np.random.Generator, tuple[int, ...]], Array]

CONVS = ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
AVG_POOLS = ("AvgPool3D", "AvgPool3DGrad")
MAX_POOLS = ("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad")
OPS = CONVS + AVG_POOLS + MAX_POOLS
FORWARD = ("Conv3D", "AvgPool3D", "MaxPool3D")

HALF, BF16, F32, F64 = (np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
EXACT_INTEGERS = {HALF: 2048, BF16: 256}  # all integers up to here are representable
MATCH = 1e-5  # how close to orig_output a cell must be for Eigen's MaxPool3DGrad
LOWEST = float(np.finfo(np.float32).min)  # Eigen's padding sentinel


# ---- geometry --------------------------------------------------------------------------------------------------------


def axes(values: Iterable[Any]) -> Axes:
    d, h, w = (int(value) for value in values)
    return d, h, w


@dataclass(frozen=True)
class Geometry:
    """Sizes and attributes of one call, spatial tuples in depth, height, width order."""

    size: Axes
    window: Axes
    stride: Axes = (1, 1, 1)
    padding: str = "SAME"
    dilation: Axes = (1, 1, 1)
    batch: int = 1
    channels: int = 2
    out_channels: int = 3
    groups: int = 1
    data_format: str = "NDHWC"

    @property
    def extents(self) -> Axes:
        """What a dilated window spans."""
        return axes((k - 1) * r + 1 for k, r in zip(self.window, self.dilation, strict=True))

    @property
    def out(self) -> Axes:
        along = zip(self.size, self.extents, self.stride, strict=True)
        return axes(-(-n // s) if self.padding == "SAME" else (n - e + s) / s for n, e, s in along)

    @property
    def totals(self) -> Axes:
        """Per axis, how far the documented grid of windows reaches beyond the input (negative: it falls short)."""
        along = zip(self.size, self.extents, self.stride, self.out, strict=True)
        return axes((o - 1) * s + e - n for n, e, s, o in along)

    def cells(self, axis: int) -> list[tuple[int, int]]:
        """The documented windows along one axis as [low, high) ranges of input cells (undilated)."""
        before = max(0, self.totals[axis]) // 2 if self.padding == "SAME" else 0
        starts = [o * self.stride[axis] - before for o in range(self.out[axis])]
        return [(max(0, a), min(self.size[axis], a + self.window[axis])) for a in starts]

    def shape(self, spatial: Axes, channels: int) -> tuple[int, ...]:
        tail = (*spatial, channels) if self.data_format == "NDHWC" else (channels, *spatial)
        return (self.batch, *tail)

    def attr(self, spatial: Axes) -> list[int]:
        return [1, *spatial, 1] if self.data_format == "NDHWC" else [1, 1, *spatial]

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.shape(self.size, self.channels)

    @property
    def filter_shape(self) -> tuple[int, ...]:
        return (*self.window, self.channels // self.groups, self.out_channels)


def max_pool(geometry: Geometry, x: Array) -> Array:
    """The documented maximum of every window, NaN ignored; channels last."""
    y = np.full(geometry.shape(geometry.out, geometry.channels), -np.inf, x.dtype)
    for o in np.ndindex(*geometry.out):
        (d0, d1), (h0, h1), (w0, w1) = (geometry.cells(axis)[o[axis]] for axis in range(3))
        cells = x[:, d0:d1, h0:h1, w0:w1, :]
        y[:, *o, :] = np.fmax.reduce(cells, axis=(1, 2, 3), initial=-np.inf)
    return y


# ---- data ------------------------------------------------------------------------------------------------------------


def integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(-4, 5, shape)


def units(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(-1, 2, shape)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape)


def coarse(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Normal values that bfloat16 holds exactly."""
    return rng.standard_normal(shape).astype(BF16)


def distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """No two equal values; integers around zero."""
    count = int(np.prod(shape))
    return np.asarray(rng.permutation(count) - count // 2).reshape(shape)


def ties(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 3, shape)


def relu(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.maximum(rng.integers(-6, 4, shape), 0)


def constant(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.full(shape, rng.integers(-3, 4))


def near_ties(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Zeros and ones plus steps around the 1e-5 of Eigen's MaxPool3DGrad."""
    steps = [0.0, 2e-6, 8e-6, 9.9e-6, 1.01e-5, 1.3e-5, 5e-5]
    return np.asarray(rng.integers(0, 2, shape) + rng.choice(steps, shape))


def tiny(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape) * 4e-6


def mixed_with(*values: float) -> Fill:
    """Integers of which about one in five is replaced by one of the values."""

    def fill(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.where(rng.random(shape) < 0.2, rng.choice(values, shape), integers(rng, shape))

    return fill


def negative_zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.choice([0.0, -0.0, -1.0], shape)


def all_of(value: float) -> Fill:
    return lambda rng, shape: np.full(shape, value)


def counting(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """1, 2, 3, ...: the numbers of the enuSpace pictures."""
    return np.arange(1, int(np.prod(shape)) + 1).reshape(shape)


# ---- one call --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """A call before it is recorded. `backends` are those of TensorFlow 2.21 on CPU that run it."""

    name: str
    op: str
    geometry: Geometry
    attrs: dict[str, Any]
    inputs: dict[str, Array]
    tags: frozenset[str]
    backends: tuple[str, ...] = field(default=())

    @property
    def dtype(self) -> np.dtype[Any]:
        return next(array.dtype for array in self.inputs.values() if array.dtype.kind != "i")


def make_inputs(
    op: str, geometry: Geometry, dtype: np.dtype[Any], fill: Fill, second: Fill, rng: np.random.Generator
) -> dict[str, Array]:
    """The tensors of a call. `fill` draws the first float tensor (the volume), `second` the other one."""
    output_shape = geometry.shape(geometry.out, geometry.out_channels if op in CONVS else geometry.channels)
    sizes = np.array(geometry.input_shape, np.int32)

    def draw(how: Fill, shape: tuple[int, ...]) -> Array:
        return np.asarray(how(rng, shape), np.float64).astype(dtype)

    if op == "Conv3D":
        return {"input": draw(fill, geometry.input_shape), "filter": draw(second, geometry.filter_shape)}
    if op == "Conv3DBackpropInputV2":
        w, dy = draw(fill, geometry.filter_shape), draw(second, output_shape)
        return {"input_sizes": sizes.astype(rng.choice(["i4", "i8"])), "filter": w, "out_backprop": dy}
    if op == "Conv3DBackpropFilterV2":
        x, dy = draw(fill, geometry.input_shape), draw(second, output_shape)
        return {"input": x, "filter_sizes": np.array(geometry.filter_shape, np.int32), "out_backprop": dy}
    if op in ("AvgPool3D", "MaxPool3D"):
        return {"input": draw(fill, geometry.input_shape)}
    if op == "AvgPool3DGrad":
        return {"orig_input_shape": sizes, "grad": draw(fill, output_shape)}
    x = draw(fill, geometry.input_shape)
    channels_last = x if geometry.data_format == "NDHWC" else np.moveaxis(x, 1, -1)
    y = max_pool(replace(geometry, data_format="NDHWC"), channels_last)
    if geometry.data_format == "NCDHW":
        y = np.ascontiguousarray(np.moveaxis(y, -1, 1))
    grad = draw(second, output_shape if op == "MaxPool3DGrad" else geometry.input_shape)
    return {"orig_input": x, "orig_output": y, "grad": grad}


def make_attrs(op: str, geometry: Geometry) -> dict[str, Any]:
    attrs: dict[str, Any] = {} if op in CONVS else {"ksize": geometry.attr(geometry.window)}
    attrs |= {
        "strides": geometry.attr(geometry.stride),
        "padding": geometry.padding,
        "data_format": geometry.data_format,
    }
    return attrs | ({"dilations": geometry.attr(geometry.dilation)} if op in CONVS else {})


def make(
    name: str,
    op: str,
    geometry: Geometry,
    fill: Fill,
    *tags: str,
    dtype: np.dtype[Any] = F32,
    second: Fill | None = None,
    backends: tuple[str, ...] | None = None,
) -> Spec:
    name = f"{op}/{name}/{dtype}"
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = make_inputs(op, geometry, dtype, fill, second or fill, rng)
    spec = Spec(name, op, geometry, make_attrs(op, geometry), inputs, frozenset(tags))
    spec = replace(spec, tags=spec.tags | geometry_tags(spec) | value_tags(spec))
    return replace(spec, backends=runnable(spec) if backends is None else backends)


def runnable(spec: Spec) -> tuple[str, ...]:
    """Which back ends run the call and give an answer that means something (section 3 of ops.md)."""
    plain = not spec.tags & {"NCDHW", "dilated", "grouped"}
    eigen = plain and (spec.op in CONVS or spec.dtype in (F32, BF16))
    xla = spec.dtype != F64 or spec.op not in MAX_POOLS
    if spec.op == "MaxPool3DGradGrad":  # XLA compares the upper 16 bits of float32 and rejects other types
        x = spec.inputs["orig_input"]
        xla = spec.dtype == F32 and np.array_equal(x, x.astype(BF16).astype(F32), equal_nan=True)
    return ("eigen",) * eigen + ("xla",) * xla


# ---- tags ------------------------------------------------------------------------------------------------------------


def geometry_tags(spec: Spec) -> set[str]:
    g = spec.geometry
    along = list(zip(g.size, g.extents, g.stride, g.totals, strict=True))
    same = g.padding == "SAME"
    cut_short = (high < n < e for (n, e, *_), axis in zip(along, range(3), strict=True) for _, high in g.cells(axis))
    found = {
        "window>input": any(e > n for n, e, *_ in along),
        "stride>window": any(s > e for _, e, s, _ in along),
        "NCDHW": g.data_format == "NCDHW",
        "dilated": g.dilation != (1, 1, 1),
        "grouped": g.groups > 1,
        "empty": 0 in (g.batch, g.channels, g.out_channels, *g.size, *g.out),
        "B2": spec.op in FORWARD and same and any(total <= -2 for *_, total in along),
        "B3": spec.op in ("AvgPool3DGrad", "MaxPool3DGrad") and same and any(cut_short),
    }
    return {tag for tag, holds in found.items() if holds}


def value_tags(spec: Spec) -> set[str]:
    floats = [array.astype(np.float64) for array in spec.inputs.values() if array.dtype.kind != "i"]
    found = {
        "nan": any(np.isnan(a).any() for a in floats),
        "inf": any(np.isinf(a).any() for a in floats),
        "negative-zero": any((np.signbit(a) & (a == 0)).any() for a in floats),
        "integer": all((a == np.rint(a))[np.isfinite(a)].all() for a in floats),
        "B4": spec.op == "MaxPool3DGrad" and any((near != 1).any() for near in matches(spec, MATCH)),
    }
    return {tag for tag, holds in found.items() if holds}


def matches(spec: Spec, distance: float) -> Iterator[Array]:
    """For each window, how many of its cells are nearer to orig_output than `distance`, or equal to it."""
    g = spec.geometry
    x, y = spec.inputs["orig_input"], spec.inputs["orig_output"]
    if g.data_format == "NCDHW":
        x, y = np.moveaxis(x, 1, -1), np.moveaxis(y, 1, -1)
    for o in np.ndindex(*g.out):
        (d0, d1), (h0, h1), (w0, w1) = (g.cells(axis)[o[axis]] for axis in range(3))
        cells, maximum = x[:, d0:d1, h0:h1, w0:w1, :], y[:, *o, :][:, None, None, None, :]
        with np.errstate(invalid="ignore"):
            near = np.abs(cells - maximum) < x.dtype.type(distance) if distance else cells == maximum
        yield near.sum(axis=(1, 2, 3))


def backend_tags(spec: Spec, backend: str) -> frozenset[str]:
    """The tags that hold for one back end: accidents, and sums kept in half or bfloat16."""
    tags = set(spec.tags)
    if eigen_accident(spec) if backend == "eigen" else xla_accident(spec):
        tags.add("accident")
    sums_in_dtype = backend == "eigen" or spec.op == "MaxPool3DGrad"
    if sums_in_dtype and spec.dtype in EXACT_INTEGERS and not sums_are_exact(spec):
        tags.add("low-precision-sum")
    return frozenset(tags)


def eigen_accident(spec: Spec) -> bool:
    """NaN or the padding sentinel where Eigen's answer follows no rule (B5, B6)."""
    if spec.op not in ("AvgPool3D", "MaxPool3D"):
        return zero_times_nonfinite(spec)
    x = spec.inputs["input"].astype(np.float64)
    sentinel = (x == LOWEST) if spec.op == "AvgPool3D" else (x <= LOWEST) & (spec.geometry.padding == "SAME")
    return bool(np.isnan(x).any() or sentinel.any())


def xla_accident(spec: Spec) -> bool:
    """NaN, minus infinity or a tie that XLA decides in its own way; sums that overflow."""
    if spec.op == "AvgPool3D":
        return bool((spec.inputs["input"].astype(np.float64) == LOWEST).any())
    if spec.op not in MAX_POOLS[1:]:
        return zero_times_nonfinite(spec)
    lopsided = spec.geometry.padding == "SAME" and any(total > 0 and total % 2 for total in spec.geometry.totals)
    tied = any((equal > 1).any() for equal in matches(spec, 0))
    lost = spec.op == "MaxPool3DGradGrad" and (spec.inputs["orig_output"] == -np.inf).any()
    return bool(np.isnan(spec.inputs["orig_input"]).any() or (lopsided and tied) or lost)


def zero_times_nonfinite(spec: Spec) -> bool:
    """The convolution gradients multiply zeros that are no part of the sum, which shows with NaN and infinity."""
    suspects = {"Conv3DBackpropInputV2": ("filter",), "Conv3DBackpropFilterV2": ("input", "out_backprop")}
    return any(not np.isfinite(spec.inputs[name]).all() for name in suspects.get(spec.op, ()))


def sums_are_exact(spec: Spec) -> bool:
    """Whether no order of summation in half or bfloat16 can round: integers whose sums stay representable."""
    if spec.op in ("MaxPool3D", "MaxPool3DGradGrad"):
        return True
    if "integer" not in spec.tags or spec.op == "AvgPool3DGrad":  # which multiplies by a rounded 1/count
        return False
    g = spec.geometry
    voxels = int(np.prod(g.window))
    terms = {
        "Conv3D": voxels * g.channels,
        "Conv3DBackpropInputV2": voxels * g.out_channels,
        "Conv3DBackpropFilterV2": g.batch * int(np.prod(g.out)),
    }.get(spec.op, voxels)
    factors = [v for name, v in spec.inputs.items() if v.dtype.kind != "i" and not name.startswith("orig_")]
    largest = np.prod([float(np.abs(v.astype(np.float64)).max(initial=0)) for v in factors])
    return bool(terms * largest <= EXACT_INTEGERS[spec.dtype])


# ---- the lists -------------------------------------------------------------------------------------------------------


def random_geometry(name: str, padding: str, voxels: int = 120) -> Geometry:
    """Ragged sizes 1-8, windows 1-5, strides 1-4, few channels; at most `voxels` cells a volume."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    while True:
        size, window, stride = (axes(rng.integers(1, top, 3)) for top in (9, 6, 5))
        fits = padding == "SAME" or all(n >= k for n, k in zip(size, window, strict=True))
        if fits and 8 <= np.prod(size) <= voxels:
            break
    batch, channels, out_channels = int(rng.integers(1, 3)), int(rng.choice([1, 2, 3, 4, 8])), int(rng.integers(1, 5))
    return Geometry(size, window, stride, padding, batch=batch, channels=channels, out_channels=out_channels)


def random_cases() -> Iterator[Spec]:
    fills = itertools.cycle((integers, normal, coarse))
    for op, i in itertools.product(OPS, range(18)):
        fill = next(fills)
        yield make(f"random-{i}-{fill.__name__}", op, random_geometry(f"{op} {i}", ("SAME", "VALID")[i % 2]), fill)


def dtype_cases() -> Iterator[Spec]:
    for op, dtype, i in itertools.product(OPS, (HALF, BF16, F64), range(5)):
        if (op in MAX_POOLS and dtype == F64) or (op == "MaxPool3DGradGrad" and dtype == HALF):
            continue  # TensorFlow has no such kernel
        fill = (normal, units)[i % 2]
        geometry = random_geometry(f"{op} dtype {i}", ("SAME", "VALID")[i // 2 % 2], voxels=60)
        yield make(f"dtype-{i}-{fill.__name__}", op, geometry, fill, dtype=dtype)


def layout_cases() -> Iterator[Spec]:
    for op, i in itertools.product(OPS, range(5)):
        geometry = random_geometry(f"{op} layout {i}", ("SAME", "VALID")[i % 2], voxels=60)
        fill = (coarse, integers)[i % 2]
        yield make(f"ncdhw-{i}-{fill.__name__}", op, replace(geometry, data_format="NCDHW"), fill)


DILATED = [
    Geometry((5, 6, 4), (2, 2, 2), dilation=(2, 2, 2)),
    Geometry((5, 7, 6), (3, 2, 1), padding="VALID", dilation=(2, 3, 1)),
    Geometry((7, 4, 5), (2, 3, 2), stride=(2, 1, 2), dilation=(3, 2, 1)),
    Geometry((6, 6, 5), (2, 2, 3), stride=(2, 3, 1), padding="VALID", dilation=(3, 1, 2), batch=2),
    Geometry((3, 4, 5), (3, 3, 2), dilation=(2, 3, 4), channels=1),
    Geometry((4, 5, 6), (2, 3, 2), stride=(1, 2, 3), dilation=(2, 2, 2), data_format="NCDHW"),
]
GROUPED = [
    Geometry((3, 4, 3), (2, 2, 2), channels=4, out_channels=6, groups=2),
    Geometry((4, 3, 5), (2, 1, 3), stride=(2, 1, 2), padding="VALID", channels=6, out_channels=3, groups=3),
    Geometry((4, 5, 4), (2, 2, 2), dilation=(2, 1, 2), channels=4, out_channels=4, groups=4, batch=2),
    Geometry((3, 4, 5), (3, 2, 2), stride=(1, 2, 2), channels=4, out_channels=2, groups=2, data_format="NCDHW"),
]


def convolution_cases() -> Iterator[Spec]:
    for op, fill in itertools.product(CONVS, (integers, normal)):
        for kind, geometries in (("dilated", DILATED), ("grouped", GROUPED)):
            for i, geometry in enumerate(geometries):
                yield make(f"{kind}-{i}-{fill.__name__}", op, geometry, fill)
    for op, dtype in itertools.product(CONVS, (HALF, BF16, F64)):
        yield make("dilated-dtype", op, DILATED[2], units, dtype=dtype)
        yield make("grouped-dtype", op, GROUPED[0], units, dtype=dtype)


WINDOWS = {
    "B3-line": Geometry((4, 1, 1), (5, 1, 1)),
    "B3-height": Geometry((1, 7, 2), (1, 9, 1)),
    "B3-width-stride": Geometry((2, 1, 6), (1, 1, 11), (1, 1, 2)),
    "B3-two-axes": Geometry((4, 5, 3), (7, 6, 2), batch=2),
    "B3-all-axes": Geometry((4, 4, 5), (5, 6, 8), (1, 2, 1), channels=1),
    "B3-big-window": Geometry((5, 4, 2), (12, 12, 12), channels=3),
    "window>input-short": Geometry((3, 2, 1), (5, 4, 3)),
    "window>input-stride": Geometry((3, 3, 2), (4, 5, 5), (2, 3, 4)),
    "B2-point": Geometry((3, 1, 1), (1, 1, 1), (3, 1, 1), channels=1),
    "B2-height": Geometry((2, 4, 3), (2, 2, 2), (1, 4, 2)),
    "B2-width": Geometry((1, 2, 10), (1, 2, 1), (1, 1, 5), channels=3),
    "B2-three-axes": Geometry((4, 8, 6), (1, 2, 3), (4, 4, 6)),
    "B2-wide-gap": Geometry((6, 5, 1), (1, 1, 1), (6, 5, 3), batch=2, channels=8),
    "B2-and-B3": Geometry((4, 4, 3), (1, 7, 1), (4, 1, 3)),
    "stride>window-no-shift": Geometry((5, 5, 4), (2, 1, 2), (3, 2, 3)),
    "stride>window-valid": Geometry((7, 6, 4), (2, 1, 1), (4, 3, 4), "VALID"),
    "B3-stride-3": Geometry((7, 5, 1), (10, 6, 1), (3, 2, 1)),
    "exact-fit": Geometry((4, 3, 2), (4, 3, 2), (1, 1, 1), "VALID"),
    "ragged-end": Geometry((7, 5, 6), (2, 2, 3), (3, 2, 2), "VALID"),
}


def window_cases() -> Iterator[Spec]:
    for op, (name, geometry) in itertools.product(OPS, WINDOWS.items()):
        volume = distinct if op in MAX_POOLS else integers
        yield make(name, op, geometry, volume, second=integers)
    for op, name in itertools.product(OPS, ("B2-height", "B3-two-axes")):
        yield make(name, op, WINDOWS[name], units, dtype=BF16)
        yield make(name + "-normal", op, WINDOWS[name], normal)


LINES = {  # (n, k, s), laid along each axis in turn; the rules are at the top of this file
    "B2": [(3, 1, 3), (4, 1, 4), (4, 2, 4), (5, 3, 5), (6, 1, 3), (6, 1, 6), (8, 2, 4), (9, 1, 3), (10, 3, 5)],
    "B3": [(4, 5, 1), (5, 6, 2), (5, 8, 1), (6, 7, 3), (6, 11, 1), (7, 8, 2), (7, 12, 2), (8, 9, 4), (9, 12, 5)],
}


def line_cases() -> Iterator[Spec]:
    for op, (rule, lines) in itertools.product(OPS, LINES.items()):
        for i, (n, k, s) in enumerate(lines):
            at = np.eye(3, dtype=int)[i % 3]
            size, window, stride = (axes(1 + at * (full - 1)) for full in (n, k, s))
            geometry = Geometry(size, window, stride, batch=2, channels=1, out_channels=1)
            yield make(f"line-{rule}-n{n}-k{k}-s{s}", op, geometry, distinct, second=distinct)


POOLS = {
    "overlap": Geometry((4, 5, 4), (3, 3, 3), (1, 2, 1)),
    "apart": Geometry((4, 6, 4), (2, 3, 2), (2, 3, 2), "VALID", batch=2),
    "vector": Geometry((3, 4, 3), (2, 2, 2), (2, 1, 2), channels=8),
    "even": Geometry((5, 3, 5), (3, 3, 3), (2, 1, 2), channels=8),
}


def tie_cases() -> Iterator[Spec]:
    tags = {ties: "ties", relu: "ties", constant: "ties", near_ties: "near-ties", tiny: "near-ties"}
    for op, (name, geometry), fill in itertools.product(MAX_POOLS, POOLS.items(), tags):
        for dtype in (F32, BF16):
            yield make(f"{fill.__name__}-{name}", op, geometry, fill, tags[fill], dtype=dtype, second=integers)
    for op in MAX_POOLS[:2]:
        yield make("ties-overlap", op, POOLS["overlap"], ties, "ties", dtype=HALF, second=integers)
    for op in MAX_POOLS:
        yield make("ties-B3", op, WINDOWS["B3-two-axes"], ties, "ties", second=integers)
        yield make("ties-B2", op, WINDOWS["B2-three-axes"], ties, "ties", second=integers)


SPECIAL_VALUES: dict[str, Fill] = {
    "nan": mixed_with(np.nan),
    "all-nan": all_of(np.nan),
    "inf": mixed_with(np.inf),
    "both-inf": mixed_with(np.inf, -np.inf),
    "nan-and-inf": mixed_with(np.nan, np.inf, -np.inf),
    "all-minus-inf": all_of(-np.inf),
    "lowest": mixed_with(LOWEST),
    "negative-zero": negative_zeros,
    "all-negative-zero": all_of(-0.0),
}


def special_value_cases() -> Iterator[Spec]:
    """Values in the volume (or, for AvgPool3DGrad, the gradient); the other tensor is finite."""
    geometries = {"same": POOLS["even"], "valid": replace(POOLS["apart"], channels=1)}
    for op, (where, geometry), (name, fill) in itertools.product(OPS, geometries.items(), SPECIAL_VALUES.items()):
        if op not in CONVS or name in ("nan", "both-inf", "negative-zero"):
            yield make(f"{name}-{where}", op, geometry, fill, second=integers)
    for op, name in itertools.product((*CONVS[1:], *MAX_POOLS[1:]), ("nan", "both-inf", "negative-zero")):
        yield make(f"{name}-in-gradient", op, POOLS["overlap"], distinct, second=SPECIAL_VALUES[name])
    for name in ("nan", "both-inf"):
        yield make(f"{name}-in-filter", "Conv3D", POOLS["apart"], integers, second=SPECIAL_VALUES[name])
        tag = "padding-times-nonfinite"  # 0 * inf = nan at the border, in both back ends
        yield make(f"{name}-in-filter-padded", "Conv3D", POOLS["vector"], integers, tag, second=SPECIAL_VALUES[name])


EMPTY = {
    "batch": Geometry((3, 4, 2), (2, 2, 2), batch=0),
    "channels": Geometry((3, 4, 2), (2, 2, 2), (2, 1, 1), channels=0),
    "out-channels": Geometry((3, 4, 2), (2, 2, 2), out_channels=0),
    "axis": Geometry((3, 0, 2), (2, 2, 2)),
    "no-window-fits": Geometry((3, 2, 4), (2, 3, 2), padding="VALID"),
}
EMPTY_BACKENDS = {  # what answers with an array: others raise, crash or return uninitialised memory (B8)
    "Conv3D": {"batch": "eigen xla", "axis": "eigen xla", "no-window-fits": "eigen"},
    "Conv3DBackpropInputV2": {"batch": "eigen xla", "axis": "eigen xla", "no-window-fits": "eigen"},
    "Conv3DBackpropFilterV2": {"batch": "eigen xla", "axis": "eigen", "out-channels": "eigen xla"},
    "MaxPool3DGradGrad": {"batch": "xla", "channels": "xla", "axis": "xla"},
}
EMPTY_POOL = {"batch": "eigen xla", "channels": "eigen xla", "axis": "eigen xla", "no-window-fits": "eigen"}


def empty_cases() -> Iterator[Spec]:
    for op in OPS:
        for name, backends in EMPTY_BACKENDS.get(op, EMPTY_POOL).items():
            yield make(f"empty-{name}", op, EMPTY[name], integers, backends=tuple(backends.split()))


def wrong_maximum_cases() -> Iterator[Spec]:
    """orig_output that is not the maximum: another cell of the window, no cell at all, or what B2 made of it."""
    names = {"another": integers, "nowhere": all_of(99.0), "ties": ties}
    for op, (name, fill), (where, geometry) in itertools.product(MAX_POOLS[1:], names.items(), POOLS.items()):
        spec = make(f"wrong-maximum-{name}-{where}", op, geometry, ties, "wrong-maximum", second=integers)
        rng = np.random.default_rng(zlib.crc32(spec.name.encode()))
        y = np.asarray(fill(rng, spec.inputs["orig_output"].shape)).astype(spec.dtype)
        yield with_orig_output(spec, y)
    for op, name in itertools.product(MAX_POOLS[1:], ("B2-height", "B2-three-axes")):
        spec = make(f"wrong-maximum-{name}", op, WINDOWS[name], distinct, "wrong-maximum", second=integers)
        yield with_orig_output(spec, shifted_max_pool(spec.geometry, spec.inputs["orig_input"]))


def shifted_max_pool(geometry: Geometry, x: Array) -> Array:
    """MaxPool3D as Eigen computes it where the grid falls short (B2): the whole grid moved by half of what is left."""
    shifts = [max(0, -total) // 2 for total in geometry.totals]
    moved = np.roll(x, [-shift for shift in shifts], axis=(1, 2, 3))
    return max_pool(geometry, moved)


def with_orig_output(spec: Spec, y: Array) -> Spec:
    spec = replace(spec, inputs=spec.inputs | {"orig_output": y}, backends=("eigen",))
    return replace(spec, tags=(spec.tags - {"B4"}) | value_tags(spec))


def enuspace_cases() -> Iterator[Spec]:
    """The "Using Method" pictures of enuSpace that TensorFlow accepts: the numbers 1..32 in [2, 2, 2, 2, 2]."""
    picture = Geometry((2, 2, 2), (2, 2, 2), (4, 3, 2), batch=2, channels=2, out_channels=2)
    for op in ("Conv3D", "MaxPool3D"):
        yield make("enuspace", op, picture, counting, "enuspace")
    yield make("enuspace", "AvgPool3D", replace(picture, window=(4, 3, 2)), counting, "enuspace")
    numbers = np.arange(1.0, 33.0)
    y = numbers.reshape(2, 16) @ numbers.reshape(16, 2)  # the Conv3D above: one output voxel, two channels
    for op in CONVS[1:]:
        yield make("enuspace", op, picture, counting, "enuspace", second=lambda rng, shape: y.reshape(shape))


def all_cases() -> list[Spec]:
    lists = (
        random_cases,
        dtype_cases,
        layout_cases,
        convolution_cases,
        window_cases,
        line_cases,
        tie_cases,
        special_value_cases,
        empty_cases,
        wrong_maximum_cases,
        enuspace_cases,
    )
    specs = [spec for make_list in lists for spec in make_list()]
    names = [spec.name for spec in specs]
    if len(set(names)) != len(names):
        raise ValueError(f"two cases have one name: {sorted({n for n in names if names.count(n) > 1})}")
    return specs
