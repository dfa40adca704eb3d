# SPDX-License-Identifier: Apache-2.0
"""Gradients, tangents and batches of the operators for torch, all from the declarations of their ops.

A declared gradient names the op that carries a gradient back: that is backward. This op is linear in the gradient that
it carries, so its own declared gradient there is its transpose: that carries a tangent forward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from voxgrad.arrays.limits import limit_in_force, limits
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Op, Side, Spec
from voxgrad.catalog.registry import OPS
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.kernels.names import kernel_name

call: Any = torch.ops.voxgrad
_C: Any = torch._C
_torch_ad: Any = forward_ad
_OneLevel: Any = _SingleLevelFunction
_unpack_dual: Any = torch._VF._unpack_dual


def operator(op: Op) -> Any:
    """The operator of an op: `torch.ops.voxgrad` names them as their kernels."""
    return getattr(call, kernel_name(op.name))


def attr_names(op: Op) -> tuple[str, ...]:
    """The attributes of an operator: numbers first, of the spatial axes alone; the layout as a flag; the semantics."""
    numbers = [attr.name for attr in op.attrs if attr.kind == "ints"]
    words = ["channels_last" if attr.name == "data_format" else attr.name for attr in op.attrs if attr.kind != "ints"]
    return (*numbers, *words, "semantics")


def spec(op: Op, name: str, value: Any) -> Spec:
    """What is known of a tensor, or of the sizes that a host vector states."""
    if not isinstance(value, torch.Tensor):
        return Spec(None, (len(value),), tuple(value))
    dtype = dtypes.named(str(value.dtype).removeprefix("torch."))
    if dtype is None:
        raise InvalidArgumentError(Fault("VG011", op.name, name, "hold numbers", str(value.dtype)))
    return Spec(dtype, tuple(value.shape))


@dataclass(frozen=True)
class _Use:
    """An op on inputs, named and not computed: what a declared gradient reads, and what it is made of."""

    op: Op
    inputs: Sequence[Any]
    attrs: dict[str, Any]
    outputs: Sequence[Any] = ()

    def gradients(self, dy: Any) -> Sequence[_Use | None]:
        """What carries a gradient back to each input."""
        assert self.op.gradient is not None
        return self.op.gradient(_NAMES, self, (dy,))

    def run(self) -> Any:
        """The result."""
        if self.op.name == "ZerosLike":
            return torch.zeros_like(self.inputs[0])
        return operator(self.op)(*self.inputs, **self.attrs)


class _Names:
    """A builder for declared gradients that names ops instead of running them."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "Shape":
            return lambda x: x.shape
        return lambda *inputs, **attrs: _Use(OPS[name], inputs, attrs)


_NAMES = _Names()


@dataclass(frozen=True)
class _Sized:
    """Stands for a tensor of which only shape and type are asked."""

    shape: Any = None
    dtype: Any = None


def _needed(op: Op) -> tuple[bool, ...]:
    """Of an op's inputs and its output: which of them do its gradients read?"""
    marks = [_Sized() for _ in (*op.inputs, *op.outputs)]
    named = _Use(op, marks[: len(op.inputs)], {}, marks[len(op.inputs) :]).gradients(_Sized())
    read = [value for use in named if use is not None for value in use.inputs]
    return tuple(any(mark is value for value in read) for mark in marks)


def _backward(use: _Use, needs: Sequence[bool], dy: Any) -> list[Any]:
    """The gradient of every input that wants one."""
    named = use.gradients(dy)
    return [one.run() if one is not None and need else None for one, need in zip(named, needs, strict=True)]


def _tangent(use: _Use, tangents: Sequence[Any]) -> Any:
    """The tangent of the output: each input's, through the transpose of what carries gradients back to it."""
    (output,), total = use.outputs, None
    carried = _Sized(output.shape)
    for back, tangent in zip(use.gradients(carried), tangents, strict=True):
        if tangent is None or back is None or back.op.name == "ZerosLike":
            continue
        place = next(index for index, value in enumerate(back.inputs) if value is carried)
        forth = back.gradients(tangent)[place]
        assert forth is not None
        total = forth.run() if total is None else total + forth.run()
    if total is not None:
        return total
    return next(one for one in tangents if one is not None).new_zeros(output.shape, dtype=output.dtype)


class _Way(NamedTuple):
    """Where torch goes on with a call, and whether it wants gradients and tangents there."""

    keyset: Any
    reverse: bool
    forward: bool


def _may_have_tangent(value: Any) -> bool:
    """False for a plain tensor without one; the levels of torch.func and of tracing know of their own."""
    if not isinstance(value, torch.Tensor):
        return False
    if type(value) not in _PLAIN or _C._are_functorch_transforms_active():
        return True
    return _unpack_dual(value, 0)[1] is not None


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def autograd(op: Op) -> Callable[..., torch.Tensor]:
    """The kernel of an op for torch's autograd: reverse and forward mode, also under the transforms of torch.func."""
    count, names, needed = len(op.inputs), attr_names(op), _needed(op)
    overload = operator(op).default

    def below(keyset: Any, *arguments: Any) -> torch.Tensor:
        with _C._AutoDispatchBelowAutograd():
            result: torch.Tensor = overload.redispatch(keyset & _C._after_autograd_keyset, *arguments)
        return result

    def restored(ctx: Any, tensors: Iterable[Any]) -> _Use:
        saved = iter(tensors)
        values = [next(saved) if need else value for need, value in zip(needed, ctx.values, strict=True)]
        return _Use(op, values[:count], ctx.attrs, values[count:])

    # torch.func has chosen the level before an operator comes here; `Function.apply` would choose it a second time.
    class Rule(_OneLevel):
        @staticmethod
        def forward(way: _Way, *arguments: Any) -> torch.Tensor:
            # A function runs without gradients; the levels of torch.func below this one still want theirs.
            with torch.set_grad_enabled(way.reverse), _torch_ad._set_fwd_grad_enabled(way.forward):
                return below(way.keyset, *arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
            values = (*inputs[1 : count + 1], output)
            ctx.values = [
                _Sized(value.shape, value.dtype) if isinstance(value, torch.Tensor) else value for value in values
            ]
            ctx.attrs = dict(zip(names, inputs[count + 1 :], strict=True))
            ctx.limit = limit_in_force()
            saved = [value for need, value in zip(needed, values, strict=True) if need]
            ctx.save_for_backward(*saved)
            ctx.save_for_forward(*saved)
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> tuple[Any, ...]:
            if dy is None:
                return (None,) * (1 + count + len(names))
            # Gradients of a GPU are computed in a thread of torch's, which no block of the caller's surrounds.
            held = ctx.limit is not None and limit_in_force() is None
            with limits(bytes=ctx.limit) if held else nullcontext():
                made = _backward(restored(ctx, ctx.saved_tensors), ctx.needs_input_grad[1 : count + 1], dy)
            return (None, *made, *[None] * len(names))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            # torch turns forward mode off here, for all levels; only that of these tangents is done.
            with _torch_ad._set_fwd_grad_enabled(True):
                primals = (_unpack_dual(value, 0)[0] for value in ctx.saved_tensors)
                return _tangent(restored(ctx, primals), tangents[1 : count + 1])

    def kernel(keyset: Any, *arguments: Any) -> torch.Tensor:
        way = _Way(keyset, torch.is_grad_enabled(), _C._is_fwd_grad_enabled())
        wanted = way.reverse and _C._any_requires_grad(*arguments[:count])
        if wanted or (way.forward and any(map(_may_have_tangent, arguments[:count]))):
            with enable_single_level_autograd_function():
                result: torch.Tensor = Rule.apply(way, *arguments)
            return result
        return below(keyset, *arguments)

    return kernel


def batched(op: Op) -> Callable[..., tuple[torch.Tensor, int]]:
    """The rule of an op for vmap: samples become batch entries, or where each has a filter of its own, groups."""
    count, names, to = len(op.inputs), attr_names(op), op.map.output

    def rule(info: Any, dims: tuple[Any, ...], *arguments: Any) -> tuple[torch.Tensor, int]:
        attrs, size = dict(zip(names, arguments[count:], strict=True)), info.batch_size
        filters = [dim for item, dim in zip(op.inputs, dims, strict=False) if item.side is Side.TAPS]
        grouped = to is Side.TAPS or any(dim is not None for dim in filters)
        data = (4 if attrs["channels_last"] else 1) if grouped else 0
        axes = {Side.CELLS: data, Side.WINDOWS: data, Side.TAPS: 4}
        made = []
        for item, value, dim in zip(op.inputs, arguments, dims, strict=False):
            assert item.side is not None
            axis = axes[item.side]
            if item.host:
                value = [entry * size if index == axis else entry for index, entry in enumerate(value)]
            elif item.side is not Side.TAPS or grouped:
                samples = value.unsqueeze(axis) if dim is None else value.movedim(dim, axis)
                value = samples.expand(*samples.shape[:axis], size, *samples.shape[axis + 1 :]).flatten(axis, axis + 1)
            made.append(value)
        result = operator(op)(*made, **attrs)
        axis = axes[to]
        return result.unflatten(axis, (size, result.shape[axis] // size)), axis

    return rule
