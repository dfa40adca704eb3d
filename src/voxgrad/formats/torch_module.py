# SPDX-License-Identifier: Apache-2.0
"""A torch module as a page: its graph for one shape of volumes, as torch.export finds it, block by block.

The page sees volumes as [N, D, H, W, C], as files have them; weights are placeholders, and come along as feeds. Nothing
is computed and no volume is held: the module is walked on torch's meta device. Norms take their statistics in float64,
from one walk over their input. What has no block here is refused by name.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from voxgrad import ops
from voxgrad.catalog.geometry import missing_cells
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.torch_losses import LOSSES
from voxgrad.formats.torch_walk import Network, Value, Walk, Weight, needs, refused
from voxgrad.torch.convert import to_torch
from voxgrad.torch.functions import padding_text, three

_TYPES = {torch.float32: "float32", torch.float64: "float64"}
_BY_WINDOWS = "Give window=(96, 96, 96) to run the module itself, window by window, and blend."
_IN_TORCH = "Compute what it needs before, and give it as a volume of its own."


def page_of_module(model: torch.nn.Module, shape: Sequence[int]) -> Network:
    """The page of a module on a volume [N, D, H, W, C], as it is in evaluation."""
    module = to_torch(copy.deepcopy(model)).eval()
    return _page(type(model).__name__, module, module, [(shape, None)], _BY_WINDOWS)


def page_of_loss(
    model: torch.nn.Module, loss: Callable[..., Any], volumes: Sequence[tuple[Sequence[int], bool]]
) -> Network:
    """The page of a loss of what a module gives for the first of some volumes [N, D, H, W, C], as it is now.

    The other volumes go to the loss: `loss(model(x), *others)`. Each is told with whether it holds integers.
    """
    module = to_torch(copy.deepcopy(model))
    given = [(shape, torch.int64 if whole else None) for shape, whole in volumes]
    return _page(type(model).__name__, module, _Loss(module, copy.deepcopy(loss)), given, _IN_TORCH)


class _Loss(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, model: torch.nn.Module, loss: Callable[..., Any]):
        super().__init__()
        self.train(model.training)
        self.model = model
        self.loss = loss

    def forward(self, x: Any, *others: Any) -> Any:
        """The loss."""
        return self.loss(self.model(x), *others)


def _page(
    name: str, model: torch.nn.Module, module: torch.nn.Module, volumes: Sequence[tuple[Sequence[int], Any]],
    remedy: str,
) -> Network:  # fmt: skip
    tensors = {**dict(module.named_parameters(remove_duplicate=False)),
               **dict(module.named_buffers(remove_duplicate=False))}  # fmt: skip
    first: dict[int, str] = {}
    same = {key: first.setdefault(id(one), key) for key, one in tensors.items()}
    kinds = {one.dtype for one in tensors.values() if one.is_floating_point()} or {torch.float32}
    if len(kinds) > 1 or not kinds <= _TYPES.keys():
        wanted = "have weights of one type, float32 or float64"
        raise InvalidArgumentError(Fault("VG011", name, "model", wanted, ", ".join(sorted(map(str, kinds)))))
    (kind,) = kinds
    values = {key: one.detach().cpu().numpy() for key, one in tensors.items()}
    given = tuple(
        torch.empty([shape[0], shape[4], *shape[1:4]], dtype=own or kind, device="meta") for shape, own in volumes
    )
    walk = Walk(name, values, _TYPES[kind], same, _RULES, remedy)
    return walk.go(_exported(name, module.to("meta"), given, remedy))


def _exported(name: str, module: torch.nn.Module, given: tuple[Any, ...], remedy: str) -> Any:
    """The graph of a module, its shapes settled."""
    try:
        return torch.export.export(module, given, strict=False)
    except Exception as error:  # whatever the module itself raises, or torch cannot follow
        told = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise refused(name, f"{type(error).__name__}: {told}", remedy) from error


# Layers


def _conv3d(walk: Walk, input: Value, weight: Weight, bias: Weight | None = None, stride: Any = 1, padding: Any = 0,
            dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
    around = padding.upper() if isinstance(padding, str) else padding_text(three("padding", _one(padding)))
    steps, spread = three("stride", _one(stride)), three("dilation", _one(dilation))
    taps = walk.add("Transpose", weight, [2, 3, 4, 1, 0])
    made = walk.add(
        "Conv3D", input, taps, strides=[1, *steps, 1], padding=around, dilations=[1, *spread, 1]
    )  # fmt: skip
    return _biased(walk, made, bias)


def _one(value: Any) -> Any:
    """Torch's lists of one number, as the number."""
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _biased(walk: Walk, made: Any, bias: Weight | None) -> Any:
    return made if bias is None else walk.add("BiasAdd", made, bias)


def _conv_transpose3d(walk: Walk, input: Value, weight: Weight, bias: Weight | None = None, stride: Any = 1,
                      padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                      dilation: Any = 1) -> Any:  # fmt: skip
    steps, around, spread, more = (
        three(name, _one(value))
        for name, value in (("stride", stride), ("padding", padding), ("dilation", dilation),
                            ("output_padding", output_padding))
    )  # fmt: skip
    sizes = [
        missing_cells(0, size, tap, step, gap) - 2 * pad + extra
        for size, step, pad, gap, tap, extra in zip(
            input.shape[2:], steps, around, spread, weight.shape[2:], more, strict=True
        )
    ]
    taps = walk.add("Transpose", weight, [2, 3, 4, 1, 0])
    shape = [input.shape[0], *sizes, weight.shape[1] * groups]
    made = walk.add("Conv3DBackpropInputV2", shape, taps, input, strides=[1, *steps, 1], padding=padding_text(around),
                    dilations=[1, *spread, 1])  # fmt: skip
    return _biased(walk, made, bias)


def _windows(kernel_size: Any, stride: Any) -> dict[str, list[int]]:
    window = three("kernel_size", _one(kernel_size))
    steps = three("stride", _one(stride)) if stride not in (None, [], ()) else window
    return {"ksize": [1, *window, 1], "strides": [1, *steps, 1]}


def _max_pool3d(walk: Walk, input: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                ceil_mode: bool = False) -> Any:  # fmt: skip
    needs(three("dilation", _one(dilation)) == [1, 1, 1] and not ceil_mode, "with dilation or ceil_mode")
    around = padding_text(three("padding", _one(padding)))
    return walk.add("MaxPool3D", input, **_windows(kernel_size, stride), padding=around)


def _avg_pool3d(walk: Walk, input: Value, kernel_size: Any, stride: Any = None, padding: Any = 0,
                ceil_mode: bool = False, count_include_pad: bool = True,
                divisor_override: Any = None) -> Any:  # fmt: skip
    needs(not ceil_mode and divisor_override is None, "with ceil_mode or divisor_override")
    cells = three("padding", _one(padding))
    there = walk.there(input)
    if count_include_pad and any(cells):
        there, cells = walk.add("Pad", there, [[0, 0], *([one, one] for one in cells), [0, 0]]), [0, 0, 0]
    return walk.add("AvgPool3D", there, **_windows(kernel_size, stride), padding=padding_text(cells))


def _adaptive_avg_pool3d(walk: Walk, input: Value, output_size: Any) -> Any:
    needs(three("output_size", _one(output_size)) == [1, 1, 1], "to another size than 1")
    return walk.add("Mean", input, [1, 2, 3], keep_dims=True)


# Norms


def _statistics(walk: Walk, there: Any, axes: list[int], eps: float) -> tuple[Any, Any]:
    """The mean and 1 / sqrt(variance + eps) over axes, in float64: both sums are known after one pass."""
    wide = walk.add("Cast", there, DstT="float64")
    mean, squares = (walk.add("Mean", one, axes, keep_dims=True) for one in (wide, walk.add("Square", wide)))
    variance = walk.add("Maximum", walk.add("Sub", squares, walk.add("Square", mean)), np.float64(0))
    return mean, walk.add("Rsqrt", walk.add("AddV2", variance, np.float64(eps)))


def _scaled(walk: Walk, there: Any, mean: Any, rate: Any, weight: Weight | None, bias: Weight | None) -> Any:
    """(x - mean) * rate * weight + bias, as one factor and one summand: what torch computes too."""
    factor = rate if weight is None else walk.add("Mul", rate, walk.add("Cast", weight, DstT="float64"))
    shift = walk.add("Neg", walk.add("Mul", mean, factor))
    if bias is not None:
        shift = walk.add("AddV2", shift, walk.add("Cast", bias, DstT="float64"))
    factor, shift = (walk.add("Cast", one, DstT=walk.dtype) for one in (factor, shift))
    return walk.add("AddV2", walk.add("Mul", there, factor), shift)


def _instance_norm(walk: Walk, input: Value, weight: Weight | None = None, bias: Weight | None = None,
                   running_mean: Weight | None = None, running_var: Weight | None = None, use_input_stats: bool = True,
                   momentum: float = 0.1, eps: float = 1e-5, *_: Any) -> Any:  # fmt: skip
    if not use_input_stats:
        return _batch_norm(walk, input, weight, bias, running_mean, running_var, False, momentum, eps)
    return _scaled(walk, input.there, *_statistics(walk, input.there, [1, 2, 3], eps), weight, bias)


def _batch_norm(walk: Walk, input: Value, weight: Weight | None, bias: Weight | None, running_mean: Weight | None,
                running_var: Weight | None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
                *_: Any) -> Any:  # fmt: skip
    if running_mean is None or running_var is None or training:
        return _scaled(walk, input.there, *_statistics(walk, input.there, [0, 1, 2, 3], eps), weight, bias)
    mean, variance = (walk.add("Cast", one, DstT="float64") for one in (running_mean, running_var))
    rate = walk.add("Rsqrt", walk.add("AddV2", variance, np.float64(eps)))
    return _scaled(walk, input.there, mean, rate, weight, bias)


def _group_norm(walk: Walk, input: Value, num_groups: int, weight: Weight | None = None, bias: Weight | None = None,
                eps: float = 1e-5, *_: Any) -> Any:  # fmt: skip
    each = input.shape[1] // num_groups
    apart = walk.add("Reshape", input, [*input.sizes[:4], num_groups, each])
    copies = np.ones((1, 1, 1, 1, 1, each))
    mean, rate = (
        walk.add("Reshape", walk.add("Mul", one, walk.fed(copies, "copies")), [input.shape[0], 1, 1, 1, input.shape[1]])
        for one in _statistics(walk, apart, [1, 2, 3, 5], eps)
    )
    return _scaled(walk, input.there, mean, rate, weight, bias)


# Sizes


def _upsample_nearest3d(walk: Walk, input: Value, output_size: Any = None, scale_factors: Any = None) -> Any:
    times = _times(input, output_size, scale_factors)
    sizes = [input.shape[0], *(size * one for size, one in zip(input.shape[2:], times, strict=True)), input.shape[1]]
    windows = {"ksize": [1, *times, 1], "strides": [1, *times, 1]}
    # The transpose of a mean gives each of its cells a share.
    shares = walk.add("AvgPool3DGrad", sizes, input, **windows, padding="VALID")
    return walk.add("Mul", shares, walk.number(math.prod(times)))


def _times(input: Value, output_size: Any, scale_factors: Any) -> list[int]:
    """How many times as large a result is along depth, height and width."""
    sizes = output_size or [size * one for size, one in zip(input.shape[2:], scale_factors, strict=True)]
    times = [one / size for one, size in zip(sizes, input.shape[2:], strict=True)]
    needs(all(one == int(one) >= 1 for one in times), "to sizes that are no multiples")
    return [int(one) for one in times]


def _upsample_trilinear3d(walk: Walk, input: Value, output_size: Any = None, align_corners: bool = False,
                          scale_factors: Any = None) -> Any:  # fmt: skip
    times = _times(input, output_size, scale_factors)
    needs(not align_corners and set(times) <= {1, 2}, "with align_corners, or to more than twice the size")
    there = input.there
    taps = np.ones((1, 1, 1, 1, input.shape[1]), walk.dtype)
    for axis, one in enumerate(times, 1):
        if one == 2:
            there = _ends_repeated(walk, there, axis, input.shape[axis + 1])
            line = np.asarray([0.25, 0.75, 0.75, 0.25], walk.dtype)
            taps = taps * line.reshape([4 if at == axis - 1 else 1 for at in range(3)] + [1, 1])
    sizes = [input.shape[0], *(size * one for size, one in zip(input.shape[2:], times, strict=True)), input.shape[1]]
    around = padding_text([3 if one == 2 else 0 for one in times])
    return walk.add("Conv3DBackpropInputV2", sizes, walk.fed(taps, "filter"), there, strides=[1, *times, 1],
                    padding=around)  # fmt: skip


def _ends_repeated(walk: Walk, there: Any, axis: int, size: int) -> Any:
    """A volume with its first and its last plane once more."""
    ends = []
    for at in (0, size - 1):
        begin, count = [0] * 5, [-1] * 5
        begin[axis], count[axis] = at, 1
        ends.append(walk.add("Slice", there, begin, count))
    return walk.add("ConcatV2", [ends[0], there, ends[1]], axis)


def _pad(walk: Walk, input: Value, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    needs(mode == "constant" and min(pad) >= 0, f"in mode {mode!r}, or with less than nothing")
    amounts = [[0, 0] for _ in input.shape]
    for at in range(len(pad) // 2):
        amounts[input.axis(-1 - at)] = list(pad[2 * at : 2 * at + 2])
    return walk.add("PadV2", input, amounts, walk.number(value or 0))


def _cat(walk: Walk, tensors: Sequence[Value], dim: int = 0) -> Any:
    return walk.add("ConcatV2", [one.there for one in tensors], tensors[0].axis(dim))


def _slice(walk: Walk, input: Value, dim: int = 0, start: int | None = None, end: int | None = None,
           step: int = 1) -> Any:  # fmt: skip
    axis, size = input.axis(dim), input.shape[dim]
    span = range(size)[slice(start, end, step)]
    begin, stop, steps = [0] * len(input.shape), input.sizes, [1] * len(input.shape)
    begin[axis], stop[axis], steps[axis] = span.start, span.stop, span.step
    return walk.add("StridedSlice", input, begin, stop, steps)


def _chunk(walk: Walk, input: Value, chunks: int, dim: int = 0) -> Any:
    size = -(-input.shape[dim] // chunks)
    return _split(walk, input, size, dim)


def _split(walk: Walk, input: Value, split_size: Any, dim: int = 0) -> Any:
    size = input.shape[dim]
    parts = split_size if isinstance(split_size, (list, tuple)) else [
        min(split_size, size - at) for at in range(0, size, split_size)
    ]  # fmt: skip
    made = ops.SplitV(walk.page, input.there, list(parts), input.axis(dim), num_split=len(parts))
    shape = list(input.shape)
    found = []
    for one, part in zip(made if isinstance(made, (list, tuple)) else [made], parts, strict=True):
        shape[dim] = part
        found.append(Value(one, tuple(shape)))
    return tuple(found)


# Cell by cell


def _along(op: str) -> Callable[..., Any]:
    return lambda walk, value: walk.add(op, value)


def _pair(op: str) -> Callable[..., Any]:
    """An op of two tensors, or of a tensor and a number; the second may be scaled."""

    def rule(walk: Walk, one: Any, other: Any, alpha: float = 1) -> Any:
        left, right = (_operand(walk, each) for each in (one, other))
        right = right if alpha == 1 else walk.add("Mul", right, walk.number(alpha))
        ranks = {len(each.shape) for each in (one, other) if isinstance(each, (Value, Weight)) and each.shape}
        needs(len(ranks) < 2, f"of tensors of {' and '.join(map(str, sorted(ranks)))} dimensions")
        return walk.add(op, left, right)

    return rule


def _operand(walk: Walk, value: Any) -> Any:
    """A tensor, a number, or a weight that is laid out as volumes are."""
    if isinstance(value, (int, float)):
        return walk.number(value)
    return (
        walk.add("Transpose", value, [0, 2, 3, 4, 1]) if isinstance(value, Weight) and len(value.shape) == 5 else value
    )


def _dropout(walk: Walk, value: Value, p: float, train: bool) -> Any:
    needs(not train or p == 0, "in training: it draws for the whole volume")
    return value.there


def _same(walk: Walk, value: Value, *_: Any, **named: Any) -> Any:
    return value.there


def _leaky_relu(walk: Walk, value: Value, negative_slope: float = 0.01) -> Any:
    return walk.add("LeakyRelu", value, alpha=negative_slope)


def _prelu(walk: Walk, value: Value, weight: Weight) -> Any:
    below = walk.add("Mul", walk.add("Minimum", value, walk.number(0)), weight)
    return walk.add("AddV2", walk.add("Relu", value), below)


def _elu(walk: Walk, value: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    needs(alpha == scale == input_scale == 1, "with factors")
    return walk.add("Elu", value)


def _silu(walk: Walk, value: Value) -> Any:
    return walk.add("Mul", value, walk.add("Sigmoid", value))


def _softmax(walk: Walk, value: Value, dim: int = -1, dtype: Any = None) -> Any:
    needs(dtype is None, "in another type")
    needs(value.axis(dim) == len(value.shape) - 1, "over another axis than the channels")
    return walk.add("Softmax", value)


def _argmax(walk: Walk, value: Value, dim: int | None = None, keepdim: bool = False) -> Any:
    needs(dim is not None and keepdim, "without dim and keepdim")
    assert dim is not None
    return walk.add("ExpandDims", walk.add("ArgMax", value, value.axis(dim)), value.axis(dim))


def _getitem(walk: Walk, value: Any, at: int) -> Any:
    return value[at]


_OWN = (
    _conv3d, _conv_transpose3d, _max_pool3d, _avg_pool3d, _adaptive_avg_pool3d, _instance_norm, _batch_norm,
    _group_norm, _upsample_nearest3d, _upsample_trilinear3d, _pad, _cat, _slice, _chunk, _split, _leaky_relu, _prelu,
    _elu, _silu, _softmax, _argmax, _getitem, _dropout,
)  # fmt: skip
_RULES: dict[str, Callable[..., Any]] = {
    **{rule.__name__[1:]: rule for rule in _OWN},
    "split_with_sizes": _split, "relu": _along("Relu"), "sigmoid": _along("Sigmoid"), "tanh": _along("Tanh"),
    "exp": _along("Exp"), "neg": _along("Neg"), "abs": _along("Abs"), "add": _pair("AddV2"), "sub": _pair("Sub"),
    "mul": _pair("Mul"), "div": _pair("RealDiv"), "feature_dropout": _dropout, "contiguous": _same,
    "clone": _same, "alias": _same, **LOSSES,
}  # fmt: skip
"""What each op of torch's becomes, by its name without what it changes in place; rules of their own have that name."""
