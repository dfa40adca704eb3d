# SPDX-License-Identifier: Apache-2.0
"""A call of the windowed family, validated and made canonical. Behind it nothing sees a string option."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from voxgrad.catalog import attributes, geometry
from voxgrad.catalog.dims import Dim, shapes_differ
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.model import Attr, Call, Input, Map, Op, Side, Spec
from voxgrad.catalog.once import once
from voxgrad.errors import Faults

DATA_FORMATS = ("NDHWC", "NCDHW")
PADDING = Attr(
    "padding", "string",
    "SAME gives out = ceil(size / stride), with what is missing around the data; VALID keeps windows inside it; or, "
    "which TensorFlow has not, cells before and behind each axis: 1:1,0:1,2:2, 1,0,2 (on both sides) or 1 (on all).",
    choices=geometry.PADDINGS, also=geometry.explicit,
)  # fmt: skip
FILTER_SHAPE = "[depth, height, width, in_channels, out_channels]"
MAX_ELEMENTS = 2**63 - 1


@dataclass(frozen=True)
class Problem:
    """All that a kernel needs to know: integers and flags.

    `dtype` is the type to compute in (it differs from the output's only where a gradient mixes types). The data is
    [N, D, H, W, C] where `channels_last`, else [N, C, D, H, W]. `near_ties` gives a max-pool gradient to every cell
    within 1e-5 of the maximum (quirk B4) instead of the first.
    """

    op: str
    map: Map = field(compare=False)  # the op has no other
    dtype: DType
    output_dtype: DType
    output_shape: tuple[int, ...]
    channels_last: bool
    batch: int
    in_channels: int
    out_channels: int
    groups: int
    axes: tuple[Axis, Axis, Axis]
    near_ties: bool = False

    @property
    def output_bytes(self) -> int:
        """Bytes of the result."""
        return math.prod(self.output_shape) * self.output_dtype.itemsize

    @once
    def input_extent(self) -> tuple[int, ...]:
        """Shape of the large side: what a forward op reads."""
        return _join(self.batch, tuple(axis.size for axis in self.axes), self.in_channels, self.channels_last)

    @once
    def output_extent(self) -> tuple[int, ...]:
        """Shape of the small side: what a forward op writes."""
        return _join(self.batch, tuple(axis.out for axis in self.axes), self.out_channels, self.channels_last)

    @property
    def filter_shape(self) -> tuple[int, ...]:
        """Shape of the filter of a convolution."""
        return (*(axis.window for axis in self.axes), self.in_channels // self.groups, self.out_channels)

    def extent(self, side: Side) -> tuple[int, ...]:
        """Shape of a tensor on a side."""
        if side is Side.TAPS:
            return self.filter_shape
        return self.input_extent if side is Side.CELLS else self.output_extent

    def part(self, axes: tuple[Axis, Axis, Axis], batch: int | None = None) -> Problem:
        """The same on other axes, such as those of a part of the volume, and on as many images."""
        made = replace(self, axes=axes, batch=self.batch if batch is None else batch)
        return replace(made, output_shape=made.extent(made.map.output))

    @property
    def window_operations(self) -> int:
        """Operations of one window of one image."""
        taps = math.prod(axis.window for axis in self.axes)
        if self.map.has_taps:
            return 2 * taps * (self.in_channels // self.groups) * self.out_channels
        return taps * self.in_channels


Volume = tuple[int, tuple[int, ...], int]
"""Batch, spatial sizes and channels of a rank-5 tensor, whatever its layout."""


def parse(op: Op, specs: Mapping[str, Spec], attrs: Mapping[str, Any], semantics: str) -> Problem:
    """The one door: a call as it came, to a problem, or an error that lists everything wrong with it."""
    faults = Faults(op.name)
    values = attributes.canonical(op, attrs, faults)
    check_types(op, specs, faults)
    problem = solve(Call(op, specs, values, semantics), faults)
    faults.raise_if_any()
    assert isinstance(problem, Problem)
    return problem


def solve(call: Call, faults: Faults | None = None) -> Any:
    """The problem of a call, the same object for whoever asks; what is wrong is noted for who asks first.

    None where the call is wrong or not enough is known of it; with symbols where sizes are symbols.
    """
    if not call.solved:
        assert call.op.problem is not None
        call.solved.append(call.op.problem(call, Faults(call.op.name) if faults is None else faults))
    return call.solved[0]


def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    """The result before it is computed: its shape may hold symbols, and every check is made that can be decided."""
    output = call.op.outputs[0]
    dtype = next((call.inputs[item.name].dtype for item in call.op.inputs if item.type == output.type), None)
    # Shapes do not depend on types: where one is open, any allowed one will do.
    typed = {
        item.name: spec if spec.dtype is not None else Spec(call.op.allowed(item.type)[0], spec.shape, spec.value)
        for item in call.op.inputs
        if (spec := call.inputs[item.name])
    }
    before = len(faults.found)
    is_typed = all(spec is call.inputs[name] for name, spec in typed.items())
    problem = solve(call if is_typed else replace(call, inputs=typed), faults)
    if len(faults.found) > before:
        return None
    return (Spec(dtype, problem.output_shape if isinstance(problem, Problem) else _promised_shape(call)),)


def _promised_shape(call: Call) -> tuple[Any, ...]:
    """The shape of an input on the side of the result, or what is stated of it, where the inputs do not tell it all."""
    for item in call.op.inputs:
        if item.side is call.op.map.output:
            shape = call.inputs[item.name].value if item.host else call.inputs[item.name].shape
            if shape is not None and len(shape) == 5:
                return tuple(shape)
    return tuple(Dim(f"{call.block or call.op.name}[{index}]") for index in range(5))


def check_types(op: Op, specs: Mapping[str, Any], faults: Faults) -> None:
    """Every tensor has an allowed type, and those of one type variable agree."""
    bound: dict[str, tuple[str, DType]] = {}
    for item in op.inputs:
        for name, dtype in _named_types(item, specs[item.name]):
            allowed, dtype = op.allowed(item.type), op.taken(item.type, dtype)
            if dtype not in allowed:
                listed = ", ".join(one.name for one in allowed)
                faults.add("VG011", name, wanted=f"be of type {listed}", got=dtype.name)
            elif isinstance(item.type, str) and not item.mixed:
                first, wanted = bound.setdefault(item.type, (name, dtype))
                if wanted != dtype:
                    remedy = f"Cast it, e.g. with {name}.astype(...), or cast {first}."
                    words = f"have the type of {first}, {wanted}"
                    faults.add("VG011", name, wanted=words, got=dtype.name, remedy=remedy, expected=wanted)


def _named_types(item: Input, given: Any) -> list[tuple[str, DType]]:
    """The known types of an input, or of each entry of a list."""
    if not item.many:
        return [(item.name, given.dtype)] if given.dtype is not None else []
    return [(f"{item.name}[{index}]", spec.dtype) for index, spec in enumerate(given) if spec.dtype is not None]


def is_channels_last(call: Call) -> bool:
    """The layout of the call's data."""
    return bool(call.attrs.get("data_format", DATA_FORMATS[0]) == DATA_FORMATS[0])


def spatial_attr(call: Call, name: str, faults: Faults, *, pool: bool) -> tuple[int, int, int] | None:
    """Depth, height and width of `ksize`, `strides` or `dilations`; batch and channels must be 1."""
    values = call.attrs.get(name)
    if values is None:
        return None
    last = is_channels_last(call)
    inner = values[1:4] if last else values[2:5]
    channel = 4 if last else 1
    fine = True
    for index, what in ((0, "batch"), (channel, "channel")):
        if values[index] != 1:
            remedy = f"Entry {index} is the {what} entry of {call.attrs.get('data_format', DATA_FORMATS[0])}."
            place, wanted = f"{name}[{index}]", f"be 1 ({what})"
            faults.add("VG007", place, wanted=wanted, got=values[index], remedy=remedy, unimplemented=pool)
            fine = False
    for index, value in enumerate(values):
        if index not in (0, channel) and value < 1:
            faults.add("VG006", f"{name}[{index}]", wanted="be at least 1", got=value)
            fine = False
    return (inner[0], inner[1], inner[2]) if fine else None


def volume(call: Call, name: str, faults: Faults) -> Volume | None:
    """A rank-5 tensor input, split into batch, spatial sizes and channels."""
    shape: tuple[int, ...] | None = call.inputs[name].shape
    if shape is None:
        return None
    if len(shape) != 5:
        wanted = f"have rank 5, {call.op.input(name).shape}"
        faults.add("VG010", name, wanted=wanted, got=f"rank {len(shape)}, shape {list(shape)}")
        return None
    return _split(shape, is_channels_last(call))


def filter_shape(call: Call, name: str, faults: Faults) -> tuple[int, ...] | None:
    """The shape of a rank-5 filter input."""
    shape: tuple[int, ...] | None = call.inputs[name].shape
    if shape is not None and len(shape) != 5:
        faults.add("VG010", name, wanted=f"have rank 5, {FILTER_SHAPE}", got=f"rank {len(shape)}, shape {list(shape)}")
        return None
    return shape


def sizes(call: Call, name: str, faults: Faults) -> tuple[int, ...] | None:
    """A host vector that states the shape of the result: five sizes, none negative, a countable product."""
    spec = call.inputs[name]
    if spec.shape is not None and len(spec.shape) != 1:
        got = f"rank {len(spec.shape)}, shape {list(spec.shape)}"
        faults.add("VG014", name, wanted="be a vector of 5 sizes", got=got)
        return None
    values: tuple[int, ...] | None = spec.value
    if values is None:
        if spec.shape is not None and isinstance(spec.shape[0], int) and spec.shape[0] != 5:
            faults.add("VG014", name, wanted="hold 5 sizes", got=f"{spec.shape[0]}")
        return None
    if len(values) != 5:
        faults.add("VG014", name, wanted="hold 5 sizes", got=f"{len(values)}: {list(values)[:12]}")
        return None
    for index, value in enumerate(values):
        if value < 0:
            faults.add("VG014", f"{name}[{index}]", wanted="be 0 or more", got=value)
            return None
    if math.prod(values) > MAX_ELEMENTS:
        got = f"{list(values)}, {math.prod(values)} elements"
        faults.add("VG015", name, wanted="state fewer than 2**63 elements", got=got)
        return None
    return tuple(values)


def stated_volume(call: Call, name: str, faults: Faults) -> Volume | None:
    """The volume whose shape a host vector states."""
    stated = sizes(call, name, faults)
    return None if stated is None else _split(stated, is_channels_last(call))


def window_axes(
    call: Call,
    sized: tuple[str, Volume],
    windows: tuple[str, tuple[int, ...]],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    faults: Faults,
    **quirks: bool,
) -> tuple[Axis, Axis, Axis] | None:
    """The three axes of a problem; a VALID window that does not fit is a fault of the tensor named in `sized`."""
    padding = call.attrs.get("padding")
    if padding is None:
        return None
    name, (_, spatial, _) = sized
    stated, axes = geometry.paddings(padding), []
    for index, size in enumerate(spatial):
        made = geometry.axis(size, windows[1][index], strides[index], dilations[index], stated[index], **quirks)
        if made.out < 0:
            what, spread = geometry.AXES[index], geometry.reach(made.window, made.dilation)
            wanted = f"be at least as large as the window under {padding} padding, {spread} cells in {what}"
            remedy = f"Use a smaller {windows[0]} or padding='SAME'."
            faults.add("VG016", name, wanted=wanted, got=f"{size} cells", remedy=remedy)
            return None
        axes.append(made)
    return axes[0], axes[1], axes[2]


def same_shape(call: Call, name: str, wanted: tuple[int, ...], why: str, faults: Faults) -> None:
    """A tensor must have exactly the shape that follows from the other arguments."""
    shape = call.inputs[name].shape
    if shape is not None and len(shape) == 5 and tuple(shape) != wanted and shapes_differ(shape, wanted):
        faults.add("VG012", name, wanted=f"have {why}, {_text(wanted)}", got=_text(shape), expected=wanted)


def finished(problem: Problem, faults: Faults, stated: Sequence[int] | None = None) -> Problem:
    """The problem with its output shape, as stated or that of the side to which it maps: fewer than 2**63 elements."""
    made = replace(problem, output_shape=tuple(stated or problem.extent(problem.map.output)))
    if math.prod(made.output_shape) > MAX_ELEMENTS:
        faults.add("VG015", "output", wanted="have fewer than 2**63 elements", got=_text(made.output_shape))
    return made


def _split(shape: tuple[int, ...], channels_last: bool) -> Volume:
    return (shape[0], tuple(shape[1:4]), shape[4]) if channels_last else (shape[0], tuple(shape[2:5]), shape[1])


def _join(batch: int, spatial: tuple[int, ...], channels: int, channels_last: bool) -> tuple[int, ...]:
    return (batch, *spatial, channels) if channels_last else (batch, channels, *spatial)


def _text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
