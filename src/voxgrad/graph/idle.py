# SPDX-License-Identifier: Apache-2.0
"""Blocks whose result is the same whatever comes in: products with zeros, choices that are always the same, a softmax
over one class, a step of length 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.catalog.dims import known
from voxgrad.graph.block import Block, Output, Value
from voxgrad.graph.fixes import Fixes, bypassed, ones_instead, replaced, without_the_old
from voxgrad.graph.infer import Inference
from voxgrad.graph.problems import Fix

_PRODUCTS = {
    "Mul": ("x", "y"), "MulNoNan": ("x", "y"), "MatMul": ("a", "b"), "BatchMatMul": ("x", "y"),
    "BatchMatMulV2": ("x", "y"), "Conv2D": ("filter",), "Conv3D": ("filter",),
}  # fmt: skip
_CHOICES = {"Select": ("x", "y"), "SelectV2": ("t", "e")}
_CLASSES = {
    "Softmax": ("logits", "1 everywhere"), "LogSoftmax": ("logits", "0 everywhere"),
    "SoftmaxCrossEntropyWithLogits": ("features", "a loss of 0"),
    "SparseSoftmaxCrossEntropyWithLogits": ("features", "a loss of 0"),
}  # fmt: skip
_MADE_OF_ONE_NUMBER = ("Const", "Fill", "ZerosLike", "OnesLike")
_STEP = 0.01


@dataclass(frozen=True, slots=True)
class Idle:
    """What is told of such a block."""

    code: str
    pin: str
    wanted: str
    got: str
    remedy: str
    fixes: Fixes = ()


def idle(inference: Inference, block: Block, known_input: Any) -> Idle | None:
    """Why the result of a block does not depend on what it is computed from; None for one that does."""
    name = block.op_name
    if name in _PRODUCTS:
        return _product(inference, block, known_input)
    if name in _CHOICES:
        return _choice(inference, block, known_input)
    if name in _CLASSES:
        return _one_class(inference, block)
    if name in ("MaxPool3D", "AvgPool3D"):
        return _one_voxel(inference, block)
    return _no_step(block, known_input) if name.startswith("Apply") else None


def _stated(block: Block, pin: str, known_input: Any) -> np.ndarray[Any, Any] | None:
    """The value of a pin that a person has put there: typed, or one of the blocks that only hold a value."""
    sources = block.sources.get(pin, [])
    if len(sources) != 1:
        return None
    if isinstance(sources[0], Output) and sources[0].block.op_name not in _MADE_OF_ONE_NUMBER:
        return None
    value: np.ndarray[Any, Any] | None = known_input(block, pin)
    return value if value is not None and value.size else None


def _product(inference: Inference, block: Block, known_input: Any) -> Idle | None:
    for pin in _PRODUCTS[block.op_name]:
        value = _stated(block, pin, known_input)
        if value is not None and value.dtype.kind in "fiuV" and not value.astype(bool).any():
            remedy = "Whatever else comes in, the result is zero: what lies before it is computed in vain."
            fixes = ones_instead(inference, block, pin)
            return Idle("VG081", pin, "hold something besides zeros", "zeros only", remedy, fixes)
    return None


def _choice(inference: Inference, block: Block, known_input: Any) -> Idle | None:
    value = _stated(block, "condition", known_input)
    if value is None or value.dtype.kind != "b" or (value.any() and not value.all()):
        return None
    taken, left = _CHOICES[block.op_name][:: 1 if value.all() else -1]
    got = f"{'true' if value.all() else 'false'} everywhere"
    fixes = bypassed(inference, block, taken)
    return Idle("VG084", "condition", "differ from place to place", got, f"{left} is never taken.", fixes)


def _one_class(inference: Inference, block: Block) -> Idle | None:
    pin, result = _CLASSES[block.op_name]
    call = inference.calls.get(block)
    spec = call.inputs.get(pin) if call is not None else None
    shape = None if spec is None or isinstance(spec, Sequence) else spec.shape
    if not shape or not known(shape[-1]) or shape[-1] != 1:
        return None
    fixes = replaced(block, "Sigmoid", pin) if block.op_name == "Softmax" else ()
    remedy = f"Over a single class the result is {result}; a sigmoid tells one class from the rest."
    return Idle("VG084", pin, "have several classes on its last axis", f"1 of shape {list(shape)}", remedy, fixes)


def _one_voxel(inference: Inference, block: Block) -> Idle | None:
    attrs = inference.calls[block].attrs if block in inference.calls else {}
    ksize, strides = (list(attrs.get(name) or [0]) for name in ("ksize", "strides"))
    if any(one != 1 for one in (*ksize, *strides)):
        return None
    inner = slice(1, 4) if attrs.get("data_format") == "NDHWC" else slice(2, 5)
    wider = [2 if at in range(5)[inner] else 1 for at in range(5)]
    edit = {"do": "set_attr", "block": block.name, "attr": "ksize", "value": wider}
    fixes = (Fix(f"Set ksize to [{','.join(map(str, wider))}]", (edit,)),)
    return Idle("VG084", "ksize", "span several voxels", "1 on all axes", "The result is the input.", fixes)


def _no_step(block: Block, known_input: Any) -> Idle | None:
    for pin in ("alpha", "lr"):
        value = _stated(block, pin, known_input) if block.sources.get(pin) else None
        if value is not None and value.dtype.kind in "fV" and not value.astype(bool).any():
            source = block.sources[pin][0]
            dtype = source.dtype if isinstance(source, Value) and source.dtype else value.dtype.name
            edit = {"do": "set_value", "block": block.name, "pin": pin, "value": _STEP, "dtype": dtype}
            fixes = (Fix(f"Set {pin} to {_STEP}", (edit, *without_the_old(block, pin))),)
            return Idle("VG084", pin, "be other than 0", "0", "The variable stays as it is: nothing is learnt.", fixes)
    return None
