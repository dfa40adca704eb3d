# SPDX-License-Identifier: Apache-2.0
"""The eight ops as `torch.ops.voxgrad.*`: schemas, kernels, shapes for tracing, gradients, autocast.

Every gradient is again one of the eight, so autograd, `torch.compile` and `torch.func` may go to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

from voxgrad.arrays.execute import execute
from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog import problem as door
from voxgrad.catalog.model import Spec
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS

Sizes = Sequence[int]
_CONV = "int[3] strides, int[3] dilations, str padding, bool channels_last, str semantics"
_POOL = "int[3] ksize, int[3] strides, str padding, bool channels_last, str semantics"
SCHEMAS = {
    "conv3d": f"(Tensor input, Tensor filter, {_CONV}) -> Tensor",
    "conv3d_input": f"(SymInt[5] input_sizes, Tensor filter, Tensor out_backprop, {_CONV}) -> Tensor",
    "conv3d_filter": f"(Tensor input, SymInt[5] filter_sizes, Tensor out_backprop, {_CONV}) -> Tensor",
    "avg_pool": f"(Tensor input, {_POOL}) -> Tensor",
    "avg_pool_grad": f"(SymInt[5] orig_input_shape, Tensor grad, {_POOL}) -> Tensor",
    "max_pool": f"(Tensor input, {_POOL}) -> Tensor",
    "max_pool_grad": f"(Tensor orig_input, Tensor orig_output, Tensor grad, {_POOL}) -> Tensor",
    "max_pool_grad_grad": f"(Tensor orig_input, Tensor orig_output, Tensor grad, {_POOL}) -> Tensor",
}
DECLARED = {op.kernel: op for op in OPS.values() if op.kernel in SCHEMAS}

_torch: Any = torch.library
_library = _torch.Library("voxgrad", "DEF")


def _wide(values: Sizes, channels_last: bool) -> list[int]:
    return [1, *values, 1] if channels_last else [1, 1, *values]


def _attrs(name: str, attrs: tuple[Any, ...]) -> dict[str, Any]:
    first, second, padding, last, _ = attrs
    names = ("strides", "dilations") if name.startswith("conv") else ("ksize", "strides")
    made = {key: _wide(value, last) for key, value in zip(names, (first, second), strict=True)}
    return made | {"padding": padding, "data_format": "NDHWC" if last else "NCDHW"}


@lru_cache(maxsize=4096)
def _problem(name: str, given: tuple[Any, ...], attrs: tuple[Any, ...]) -> Problem:
    """The problem of a call; `given` holds shape and type of a tensor, or the sizes of a host vector."""
    op = DECLARED[name]
    specs = {}
    for item, value in zip(op.inputs, given, strict=True):
        if item.host:
            specs[item.name] = Spec(dtypes.INT64 if name == "conv3d_input" else dtypes.INT32, (5,), value)
        else:
            shape, dtype = value
            specs[item.name] = Spec(dtypes.named(str(dtype).removeprefix("torch.")), shape)
    return door.parse(op, specs, _attrs(name, attrs), attrs[4])


def _on_cuda(name: str) -> Callable[..., torch.Tensor]:
    """The kernel of an op for CUDA tensors."""
    inputs = len(DECLARED[name].inputs)

    def kernel(*arguments: Any) -> torch.Tensor:
        from voxgrad.kernels.cuda import dispatch

        given = tuple(
            (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else tuple(value)
            for value in arguments[:inputs]
        )
        attrs = tuple(tuple(value) if isinstance(value, list) else value for value in arguments[inputs:])
        tensors = [value for value in arguments[:inputs] if isinstance(value, torch.Tensor)]
        return dispatch.run(_problem(name, given, attrs), *tensors)

    return kernel


def _on_cpu(name: str) -> Callable[..., torch.Tensor]:
    """The kernel of an op for CPU tensors: the native library."""
    op = DECLARED[name]

    def kernel(*arguments: Any) -> torch.Tensor:
        from voxgrad.catalog.semantics import semantics

        attrs = arguments[len(op.inputs) :]
        named = {item.name: value for item, value in zip(op.inputs, arguments, strict=False)}
        named = {key: value if isinstance(value, torch.Tensor) else list(value) for key, value in named.items()}
        with semantics(attrs[4]), torch.no_grad():
            result: torch.Tensor = execute(op, named | _attrs(name, attrs))
        return result

    return kernel


def _forward_shape(
    x: torch.Tensor, window: Sizes, strides: Sizes, dilations: Sizes, padding: str, last: bool, channels: Any
) -> Any:
    """The output shape of a forward op, for sizes that may be symbols."""
    spatial = x.shape[1:4] if last else x.shape[2:5]
    made = [
        geometry.output_size(size, k, s, d, padding)
        for size, k, s, d in zip(spatial, window, strides, dilations, strict=True)
    ]
    return (x.shape[0], *made, channels) if last else (x.shape[0], channels, *made)


def _fake_pool(x: torch.Tensor, ksize: Sizes, strides: Sizes, padding: str, last: bool, semantics: str) -> torch.Tensor:
    return x.new_empty(_forward_shape(x, ksize, strides, (1, 1, 1), padding, last, x.shape[4 if last else 1]))


def _fake_conv(
    x: torch.Tensor, w: torch.Tensor, strides: Sizes, dilations: Sizes, padding: str, last: bool, semantics: str
) -> torch.Tensor:
    return x.new_empty(_forward_shape(x, w.shape[:3], strides, dilations, padding, last, w.shape[4]))


def _fake_filter(x: torch.Tensor, sizes: Sizes, dy: torch.Tensor, *attrs: Any) -> torch.Tensor:
    """On a GPU with channels last the filter gradient lies in memory as torch's channels_last_3d weights do."""
    if dy.device.type != "cuda" or not attrs[3]:
        return dy.new_empty(sizes)
    return dy.new_empty((sizes[4], *sizes[:4])).permute(1, 2, 3, 4, 0)


FAKES: dict[str, Callable[..., torch.Tensor]] = {
    "conv3d": _fake_conv,
    "conv3d_input": lambda sizes, w, dy, *_: dy.new_empty(sizes),
    "conv3d_filter": _fake_filter,
    "avg_pool": _fake_pool,
    "avg_pool_grad": lambda sizes, dy, *_: dy.new_empty(sizes),
    "max_pool": _fake_pool,
    "max_pool_grad": lambda x, y, dy, *_: dy.new_empty(x.shape),
    "max_pool_grad_grad": lambda x, y, g, *_: g.new_empty(y.shape),
}

call: Any = torch.ops.voxgrad


def _saved(name: str) -> Callable[..., None]:
    """What the gradient of an op needs: its attributes, its tensors, and the output of a max-pool."""
    count = len(DECLARED[name].inputs)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.attrs = inputs[count:]
        tensors = [value for value in inputs[:count] if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*tensors, *([output] if name == "max_pool" else []))

    return setup


Gradients = tuple[Any, ...]


def _conv_back(ctx: Any, g: torch.Tensor) -> Gradients:
    x, w = ctx.saved_tensors
    dx = call.conv3d_input(x.shape, w, g, *ctx.attrs) if ctx.needs_input_grad[0] else None
    dw = call.conv3d_filter(x, w.shape, g, *ctx.attrs) if ctx.needs_input_grad[1] else None
    return dx, dw, *[None] * 5


def _input_back(ctx: Any, g: torch.Tensor) -> Gradients:
    w, dy = ctx.saved_tensors
    dw = call.conv3d_filter(g, w.shape, dy, *ctx.attrs) if ctx.needs_input_grad[1] else None
    ddy = call.conv3d(g, w, *ctx.attrs) if ctx.needs_input_grad[2] else None
    return None, dw, ddy, *[None] * 5


def _filter_back(ctx: Any, g: torch.Tensor) -> Gradients:
    x, dy = ctx.saved_tensors
    dx = call.conv3d_input(x.shape, g, dy, *ctx.attrs) if ctx.needs_input_grad[0] else None
    ddy = call.conv3d(x, g, *ctx.attrs) if ctx.needs_input_grad[2] else None
    return dx, None, ddy, *[None] * 5


def _avg_back(ctx: Any, g: torch.Tensor) -> Gradients:
    (x,) = ctx.saved_tensors
    return call.avg_pool_grad(x.shape, g, *ctx.attrs), *[None] * 5


def _avg_grad_back(ctx: Any, g: torch.Tensor) -> Gradients:
    return None, call.avg_pool(g, *ctx.attrs), *[None] * 5


def _max_back(ctx: Any, g: torch.Tensor) -> Gradients:
    x, y = ctx.saved_tensors
    return call.max_pool_grad(x, y, g, *ctx.attrs), *[None] * 5


def _max_grad_back(ctx: Any, g: torch.Tensor) -> Gradients:
    x, y, _ = ctx.saved_tensors
    return None, None, call.max_pool_grad_grad(x, y, g, *ctx.attrs), *[None] * 5


def _max_grad_grad_back(ctx: Any, g: torch.Tensor) -> Gradients:
    x, y, _ = ctx.saved_tensors
    return None, None, call.max_pool_grad(x, y, g, *ctx.attrs), *[None] * 5


GRADIENTS: dict[str, Callable[..., Gradients]] = {
    "conv3d": _conv_back,
    "conv3d_input": _input_back,
    "conv3d_filter": _filter_back,
    "avg_pool": _avg_back,
    "avg_pool_grad": _avg_grad_back,
    "max_pool": _max_back,
    "max_pool_grad": _max_grad_back,
    "max_pool_grad_grad": _max_grad_grad_back,
}


def _autocast(name: str, device: str) -> Callable[..., torch.Tensor]:
    """Convolutions run in autocast's type, like torch's own."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA) | torch._C.DispatchKeySet(
        torch._C.DispatchKey.AutocastCPU
    )

    def kernel(*arguments: Any) -> torch.Tensor:
        dtype = torch.get_autocast_dtype(device)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            cast = [
                value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype is not torch.float64 else value
                for value in arguments
            ]
            result: torch.Tensor = getattr(call, name)(*cast)
        return result

    return kernel


def _register() -> None:
    for name, schema in SCHEMAS.items():
        _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
        _library.impl(name, _on_cuda(name), "CUDA")
        _library.impl(name, _on_cpu(name), "CPU")
        _torch.register_fake(f"voxgrad::{name}", FAKES[name], lib=_library)
        _torch.register_autograd(f"voxgrad::{name}", GRADIENTS[name], setup_context=_saved(name), lib=_library)
        if name.startswith("conv"):
            _library.impl(name, _autocast(name, "cuda"), "AutocastCUDA")
            _library.impl(name, _autocast(name, "cpu"), "AutocastCPU")


_register()
