# SPDX-License-Identifier: Apache-2.0
"""Runs a case on TensorFlow: its outputs, and the gradients that it asks for. For the recorder and the live test."""

from __future__ import annotations

import os
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from .cases import Array, Case
from .sessions import Step


def _tensor(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensor(one) for one in value]
    return tf.constant(value.tolist(), tf.string, shape=value.shape) if value.dtype == object else tf.constant(value)


def weights(shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """What the outputs are multiplied with before they are summed for a gradient."""
    made: Array = np.cos(np.arange(int(np.prod(shape)))).reshape(shape).astype(dtype)
    return made


def weighted(output: Any) -> Any:
    """The weighted sum of an output, as a real number."""
    product = output * weights(output.shape, output.dtype.as_numpy_dtype)
    return tf.reduce_sum(tf.math.real(product) if output.dtype.is_complex else product)


def run_old(op: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """An op that TensorFlow 2 runs only in graphs of old versions."""
    with tf.Graph().as_default() as graph:
        for name, value in inputs.items():
            tf.constant(value, name=name)
        made = graph.as_graph_def()
        node = made.node.add(name="made", op=op, input=list(inputs))
        for name, kind in attrs.items():
            node.attr[name].type = kind
        made.versions.producer = 1
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        tf.import_graph_def(made, name="")
        return session.run("made:0")


OLD = {"AdjustContrast": "images"}
"""Such ops, and the input whose type is T."""


def run(case: Case) -> tuple[list[Any], dict[str, Any]]:
    """Outputs in order (a list for a list of tensors), and gradients by input."""
    if case.op in OLD:
        kind = tf.as_dtype(case.inputs[OLD[case.op]].dtype).as_datatype_enum
        return [run_old(case.op, case.inputs, {"T": kind})], {}
    inputs = {name: _tensor(value) for name, value in case.inputs.items()}
    with tf.GradientTape() as tape:
        tape.watch([inputs[name] for name in case.gradient])
        outputs = getattr(tf.raw_ops, case.op)(**inputs, **case.attrs)
        flat = _outputs(outputs)
        first = flat[0] if isinstance(flat[0], list) else flat[:1]
        total = sum(weighted(one) for one in first if one.dtype.is_floating or one.dtype.is_complex)
    gradients = {}
    if case.gradient:
        found = tape.gradient(
            total, [inputs[name] for name in case.gradient], unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        gradients = {name: _numpy(value) for name, value in zip(case.gradient, found, strict=True)}
    return [_numpy(one) for one in flat[: case.outputs]], gradients


def _outputs(outputs: Any) -> list[Any]:
    if isinstance(outputs, list):
        return [outputs]
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def _numpy(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_numpy(one) for one in value]
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    return np.asarray(value.numpy(), dtype=object) if value.dtype == tf.string else value.numpy()


def run_step(step: Step) -> list[dict[str, Array]]:
    """What every variable holds after one and after two steps, and the result `out` of each."""
    ops = tf.raw_ops
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        refs, first = {}, []
        by_handle = step.op.startswith("Resource")
        for name, value in step.variables.items():
            if by_handle:
                refs[name] = ops.VarHandleOp(shape=value.shape, dtype=value.dtype, shared_name=name)
                first.append(ops.AssignVariableOp(resource=refs[name], value=tf.constant(value)))
            else:
                refs[name] = ops.VariableV2(shape=value.shape, dtype=value.dtype, name=name)
                first.append(ops.Assign(ref=refs[name], value=tf.constant(value)))
        values = {name: ops.ReadVariableOp(resource=ref, dtype=step.variables[name].dtype) if by_handle else ref
                  for name, ref in refs.items()}  # fmt: skip
        inputs = {name: tf.constant(value) for name, value in step.inputs.items()}
        stepped = getattr(ops, step.op)(**refs, **inputs, **step.attrs)
        session.run(first)
        found = []
        for _ in range(2):
            out = session.run(stepped)
            found.append({name: session.run(value) for name, value in values.items()})
            if out is not None:
                found[-1]["out"] = out
        return [{name: np.asarray(value) for name, value in one.items()} for one in found]
