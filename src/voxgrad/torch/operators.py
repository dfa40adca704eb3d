# SPDX-License-Identifier: Apache-2.0
"""The family as `torch.ops.voxgrad.*`: schemas, kernels, shapes for tracing, autocast, made from the catalogue.

Every gradient is again one of the family, so autograd, `torch.compile` and `torch.func` may go to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from voxgrad.arrays.execute import execute
from voxgrad.arrays.fast import MISS
from voxgrad.arrays.gpu import kept
from voxgrad.catalog import problem as door
from voxgrad.catalog.model import Op, Side
from voxgrad.catalog.registry import FAMILY
from voxgrad.catalog.semantics import semantics
from voxgrad.kernels.names import kernel_name
from voxgrad.torch import rules
from voxgrad.torch.maxima import NAN_WINS, declared, with_nan
from voxgrad.torch.rules import call as call
from voxgrad.torch.rules import operator

_torch: Any = torch.library
library = _torch.Library("voxgrad", "DEF")


def _schema(op: Op) -> str:
    """The signature of an operator."""
    inputs = [f"SymInt[5] {item.name}" if item.host else f"Tensor {item.name}" for item in op.inputs]
    kinds = {"channels_last": "bool"} | {attr.name: "int[3]" for attr in op.attrs if attr.kind == "ints"}
    attrs = [f"{kinds.get(name, 'str')} {name}" for name in rules.attr_names(op)]
    return f"{kernel_name(op.name)}({', '.join((*inputs, *attrs))}) -> Tensor"


def _named(op: Op, arguments: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The inputs and attributes of a call as the op has them, and its semantics."""
    count = len(op.inputs)
    inputs = {item.name: value for item, value in zip(op.inputs, arguments, strict=False)}
    given = dict(zip(rules.attr_names(op), arguments[count:], strict=True))
    last = given.pop("channels_last")
    rule = given.pop("semantics")
    attrs = {
        name: ([1, *value, 1] if last else [1, 1, *value]) if op.attr(name).kind == "ints" else value
        for name, value in given.items()
    }
    return inputs, attrs | {"data_format": "NDHWC" if last else "NCDHW"}, rule


def _kernel(op: Op) -> Callable[..., torch.Tensor]:
    """The kernel of an op for tensors on the CPU or a GPU."""
    calls = kept(op)

    def kernel(*arguments: Any) -> torch.Tensor:
        inputs, attrs, rule = _named(op, arguments)
        # Parameters are tensors like others here: what is computed below autograd has no gradient to lose.
        plain = {k: v.detach() if isinstance(v, torch.Tensor) else list(v) for k, v in inputs.items()}
        with semantics(declared(rule)):
            result = calls.call(plain | attrs)
            made: torch.Tensor = execute(op, plain | attrs) if result is MISS else result
        if rule == NAN_WINS and op.selects:
            return with_nan(op, [*plain.values()], arguments[len(plain) : -1], made)
        return made

    return kernel


def _fake(op: Op) -> Callable[..., torch.Tensor]:
    """What an op returns, without values: the checks and the shape of the catalogue, for sizes that may be symbols."""

    def fake(*arguments: Any) -> torch.Tensor:
        inputs, attrs, rule = _named(op, arguments)
        specs = {item.name: rules.spec(op, item.name, inputs[item.name]) for item in op.inputs}
        shape = door.parse(op, specs, attrs, declared(rule)).output_shape
        like: torch.Tensor = next(inputs[item.name] for item in reversed(op.inputs) if not item.host)
        if op.map.output is not Side.TAPS or like.device.type != "cuda" or attrs["data_format"] == "NCDHW":
            return like.new_empty(shape)
        # On a GPU with channels last the filter gradient lies in memory as torch's channels_last_3d weights do.
        return like.new_empty((shape[4], *shape[:4])).permute(1, 2, 3, 4, 0)

    return fake


def _autocast(op: Op, device: str) -> Callable[..., torch.Tensor]:
    """The op in the type that autocast has torch's own in: convolutions in its type, pools on a CPU in float32."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA) | torch._C.DispatchKeySet(
        torch._C.DispatchKey.AutocastCPU
    )

    def kernel(*arguments: Any) -> torch.Tensor:
        dtype = torch.get_autocast_dtype(device) if op.map.has_taps else torch.float32
        with torch._C._ExcludeDispatchKeyGuard(keys):
            cast = [
                value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype in _CAST else value
                for value in arguments
            ]
            result: torch.Tensor = operator(op)(*cast)
        return result

    return kernel


_CAST = (torch.float16, torch.bfloat16, torch.float32)


def _register(op: Op) -> None:
    name = kernel_name(op.name)
    library.define(_schema(op), tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    for device in ("CPU", "CUDA"):
        library.impl(name, _kernel(op), device)
        if op.map.has_taps or device == "CPU":
            library.impl(name, _autocast(op, device.lower()), f"Autocast{device}")
    library.impl(name, rules.autograd(op), "Autograd", with_keyset=True)
    _torch.register_fake(f"voxgrad::{name}", _fake(op), lib=library)
    _torch.register_vmap(f"voxgrad::{name}", rules.batched(op), lib=library)


for _op in FAMILY:
    _register(_op)
