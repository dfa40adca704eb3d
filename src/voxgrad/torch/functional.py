# SPDX-License-Identifier: Apache-2.0
"""The functions of `torch.nn.functional` that the family computes: torch's arguments, weights and results.

What they do not compute they refuse; `unfit` has the words, for the layers of `voxgrad.torch` too. NaN wins a maximum
here, as in torch, whatever `vg.semantics` says.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from voxgrad.arrays.limits import check_size
from voxgrad.arrays.plain import Three
from voxgrad.catalog import geometry
from voxgrad.errors import Fault, Faults, InvalidArgumentError, safe_repr, show
from voxgrad.torch import functions
from voxgrad.torch.functions import Sizes, in_layout, padding_text, public, three
from voxgrad.torch.maxima import NAN_WINS
from voxgrad.torch.operators import call


def unfit(
    *,
    padding_mode: str = "zeros",
    return_indices: bool = False,
    divisor_override: int | None = None,
    dilation: Three = 1,
    output_padding: Three = 0,
    stride: Three = 1,
) -> str:
    """The option for which there is no kernel here, "" where there is one for all of them.

    Only pools tell their dilation, and only transposed convolutions their stride.
    """
    if padding_mode != "zeros":
        return f"padding_mode={padding_mode!r}"
    if return_indices:
        return "return_indices=True"
    if divisor_override is not None:
        return f"divisor_override={divisor_override}"
    if three("dilation", dilation) != [1, 1, 1]:
        return f"dilation={dilation}"
    more, steps = three("output_padding", output_padding), three("stride", stride)
    reaching = any(each >= step > 0 for each, step in zip(more, steps, strict=True))
    return f"output_padding={output_padding}, not less than stride={stride}" if reaching else ""


def _refuse_unfit(function: str, **options: Any) -> None:
    if found := unfit(**options):
        remedy = f"torch.nn.{function} has it."
        raise InvalidArgumentError(Fault("VG003", function, "arguments", "have kernels here", found, remedy))


def _check_channels(function: str, input: torch.Tensor, weight: torch.Tensor, groups: int, transposed: bool) -> None:
    """The op itself would take other channels for groups."""
    if input.dim() not in (4, 5) or weight.dim() != 5:
        got = f"shapes {list(input.shape)} and {list(weight.shape)}"
        raise InvalidArgumentError(Fault("VG010", function, "input", "have rank 5 or 4, and its weight rank 5", got))
    if groups < 1 or weight.shape[0] % groups:
        wanted = f"be 1 or more and divide the {weight.shape[0]} channels of the first axis of weight"
        raise InvalidArgumentError(Fault("VG013", function, "groups", wanted, show(groups)))
    wanted = weight.shape[0] if transposed else weight.shape[1] * groups
    if input.shape[-4] != wanted:
        got = f"{input.shape[-4]}, shape {list(input.shape)}"
        raise InvalidArgumentError(Fault("VG013", function, "input", f"have {wanted} channels", got))


def lies_last(weight: torch.Tensor) -> bool:
    """Are the channels of a weight the last in memory, beyond doubt? One cell of one channel does not tell."""
    steps = weight.stride()
    told = steps[1] == 1 < steps[0] and steps[-1] == weight.shape[1]
    return bool(told and weight.is_contiguous(memory_format=torch.channels_last_3d))


def _as_weight_lies(
    input: torch.Tensor, weight: torch.Tensor, run: Callable[[torch.Tensor, str], torch.Tensor]
) -> torch.Tensor:
    """On a GPU data come out with their channels last where the weight lies so, as torch's do."""
    if not (input.is_cuda and input.dim() == 5 and lies_last(weight)):
        return run(input, "NCDHW")
    return run(input.permute(0, 2, 3, 4, 1).contiguous(), "NDHWC").permute(0, 4, 1, 2, 3)


@public
def conv3d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Three = 1,
    padding: str | Three = 0,
    dilation: Three = 1,
    groups: int = 1,
) -> torch.Tensor:
    """Correlation of a volume [N, C, D, H, W], or of one without N, with a weight [out, in / groups, D, H, W]."""
    _check_channels("functional.conv3d", input, weight, groups, transposed=False)
    if isinstance(padding, str):
        if padding not in ("same", "valid") or (padding == "same" and three("stride", stride) != [1, 1, 1]):
            wanted = "be 'valid', 'same' where the stride is 1, a number of cells or three of them"
            raise InvalidArgumentError(Fault("VG003", "functional.conv3d", "padding", wanted, safe_repr(padding)))
        padding = padding.upper()  # With stride 1 torch's "same" is TensorFlow's.
    taps = weight.permute(2, 3, 4, 1, 0)
    return _as_weight_lies(
        input, weight, lambda x, order: functions.conv3d(x, taps, bias, stride, padding, dilation, order)
    )


@public
def conv_transpose3d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Three = 1,
    padding: Three = 0,
    output_padding: Three = 0,
    groups: int = 1,
    dilation: Three = 1,
) -> torch.Tensor:
    """The transpose of `conv3d`, with a weight [in, out / groups, D, H, W]."""
    _check_channels("functional.conv_transpose3d", input, weight, groups, transposed=True)
    _refuse_unfit("functional.conv_transpose3d", output_padding=output_padding, stride=stride)
    taps = weight.permute(2, 3, 4, 1, 0)
    return _as_weight_lies(
        input,
        weight,
        lambda x, order: functions.conv3d_transpose(
            x, taps, bias, stride, padding, output_padding, dilation, groups, order
        ),
    )


@public
def max_pool3d(
    input: torch.Tensor,
    kernel_size: Three,
    stride: Three | None = None,
    padding: Three = 0,
    dilation: Three = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> torch.Tensor:
    """The maximum over windows. Ties go to the first cell; NaN wins, and of several the last."""
    _refuse_unfit("functional.max_pool3d", dilation=dilation, return_indices=return_indices)
    window, steps = _windows(kernel_size, stride)
    around = padding_text(_around(input, window, steps, three("padding", padding), ceil_mode))
    return in_layout(input, "NCDHW", lambda x, last: call.max_pool(x, window, steps, around, last, NAN_WINS))


@public
def avg_pool3d(
    input: torch.Tensor,
    kernel_size: Three,
    stride: Three | None = None,
    padding: Three = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> torch.Tensor:
    """The mean over windows; stated padding is counted, as zeros, unless `count_include_pad` is False."""
    _refuse_unfit("functional.avg_pool3d", divisor_override=divisor_override)
    (window, steps), cells = _windows(kernel_size, stride), three("padding", padding)
    pairs = _around(input, window, steps, cells, ceil_mode)
    if count_include_pad and any(cells):
        # Zeros that count are cells like others; what `ceil_mode` reads behind them is not counted.
        input = _padded(input, cells)
        pairs = [(0, max(0, behind - before)) for before, behind in pairs]
    around = padding_text(pairs)
    return in_layout(input, "NCDHW", lambda x, last: call.avg_pool(x, window, steps, around, last, "documented"))


def _windows(kernel_size: Three, stride: Three | None) -> tuple[list[int], list[int]]:
    window = three("kernel_size", kernel_size)
    return window, window if stride is None else three("stride", stride)


def _around(
    input: torch.Tensor, window: list[int], steps: list[int], cells: list[int], ceil_mode: bool
) -> list[tuple[int, int]]:
    """The cells of padding before and behind each axis."""
    if not ceil_mode or input.dim() not in (4, 5) or min(steps) < 1:  # the op tells what is wrong
        return [(each, each) for each in cells]
    spatial = [operator.index(size) for size in input.shape[-3:]]  # a compiled graph is for these
    behind = map(geometry.behind_ceiling, spatial, window, steps, cells)
    return list(zip(cells, behind, strict=True))


def _padded(input: torch.Tensor, cells: Sequence[int]) -> torch.Tensor:
    """A copy with zeros around it; `vg.limits` counts it."""
    if min(cells) < 0 or input.dim() not in (4, 5):
        got = f"{show(cells)} for shape {list(input.shape)}"
        raise InvalidArgumentError(Fault("VG003", "functional.avg_pool3d", "padding", "be 0 or more, of a volume", got))
    if not torch.compiler.is_compiling():
        bytes_, faults = input.element_size(), Faults("functional.avg_pool3d")
        for axis, size in enumerate(input.shape):
            bytes_ *= size + 2 * cells[axis - input.dim() + 3] if axis >= input.dim() - 3 else size
        check_size("functional.avg_pool3d", bytes_, faults, argument="input")
        faults.raise_if_any()
    return pad(input, [side for each in reversed(cells) for side in (each, each)])


@public
def adaptive_avg_pool3d(input: torch.Tensor, output_size: Sizes) -> torch.Tensor:
    """The mean over `output_size` windows, a number or three, None for as many as there are cells."""
    return functions.adaptive_avg_pool3d(input, output_size)


@public
def adaptive_max_pool3d(input: torch.Tensor, output_size: Sizes, return_indices: bool = False) -> torch.Tensor:
    """The maximum over the windows of `adaptive_avg_pool3d`; NaN wins, as in `max_pool3d`."""
    _refuse_unfit("functional.adaptive_max_pool3d", return_indices=return_indices)
    return functions.adaptive("adaptive_max_pool3d", call.max_pool, input, output_size, rule=NAN_WINS)
