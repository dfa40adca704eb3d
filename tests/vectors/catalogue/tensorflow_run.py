# SPDX-License-Identifier: Apache-2.0
"""Runs a case on TensorFlow: its outputs, and the gradients that it asks for. For the recorder and the live test."""

from __future__ import annotations

import os
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"  # some random ops give other numbers on several
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from voxgrad.catalog.model import Input, Op
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.element_types import dtype_of

from .cases import Array, Case
from .sessions import Step


def tensor(value: Any, item: Input | None = None, op: Op | None = None) -> Any:
    """A constant; of quantised integers where an input of an op takes these."""
    if isinstance(value, list):
        return [tensor(one, item, op) for one in value]
    if value.dtype == object:
        return tf.constant(value.tolist(), tf.string, shape=value.shape)
    own = dtype_of(value.dtype)
    wanted = own if item is None or op is None or own is None else op.taken(item.type, own)
    made = tf.constant(value)
    return made if wanted is own else tf.bitcast(made, tf.dtypes.as_dtype(wanted.enum))


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


def raw_op(name: str) -> Any:
    """The function of an op, or of another that stands for one that TensorFlow has not any more."""
    return _REPLACED.get(name) or getattr(tf.raw_ops, name)


def _random_poisson(**given: Any) -> Any:
    """RandomPoissonV2 with numbers of the type of the rates, which is the same kernel."""
    return tf.raw_ops.RandomPoissonV2(dtype=given["rate"].dtype, **given)


def _quantized_conv(**given: Any) -> Any:
    """TensorFlow's build has no kernel: the same by QuantizedMatMul, on the cells of each window beside each other."""
    images, taps, ends = given["input"], given["filter"], [given[f"{end}_input"] for end in ("min", "max")]
    kinds = images.dtype, taps.dtype, tf.as_dtype(given.get("out_type", tf.qint32))
    if kinds != (tf.quint8, tf.quint8, tf.qint32) or any(one != 1 for one in given.get("dilations", [1])):
        raise tf.errors.UnimplementedError(None, None, "no such kernel")
    if given["padding"] not in ("SAME", "VALID") or {
        len(given[name]) for name in ("strides", "dilations") if name in given
    } != {4}:
        raise tf.errors.InvalidArgumentError(None, None, "attributes of another op")
    window, strides = [int(size) for size in taps.shape[:2]], given["strides"]
    plain = tf.bitcast(images, tf.uint8)
    if given["padding"] == "SAME":
        if not given["min_input"] <= 0 <= given["max_input"]:
            raise tf.errors.UnimplementedError(None, None, "no integer stands for 0")
        zero = tf.raw_ops.QuantizeV2(input=[0.0], min_range=ends[0], max_range=ends[1], T=tf.quint8, mode="MIN_FIRST",
                                     ensure_minimum_range=0.0).output  # fmt: skip
        plain = _padded(plain, window, strides[1:3], tf.bitcast(zero, tf.uint8)[0])
    cells = tf.image.extract_patches(plain, [1, *window, 1], strides, [1, 1, 1, 1], "VALID")
    rows = tf.reshape(tf.bitcast(cells, tf.quint8), [-1, cells.shape[3]])
    made = tf.raw_ops.QuantizedMatMul(
        a=rows, b=tf.reshape(taps, [-1, taps.shape[3]]), min_a=ends[0], max_a=ends[1], min_b=given["min_filter"],
        max_b=given["max_filter"])  # fmt: skip
    shape = [*cells.shape[:3], taps.shape[3]]
    return (tf.bitcast(tf.reshape(tf.bitcast(made.out, tf.int32), shape), tf.qint32), made.min_out, made.max_out)


def _padded(images: Any, window: list[int], strides: list[int], value: Any) -> Any:
    """Images with the cells around them that SAME reads."""
    around = [[0, 0]]
    for size, taps, step in zip(images.shape[1:3], window, strides, strict=True):
        total = max((-(-size // step) - 1) * step + taps - size, 0)
        around.append([total // 2, total - total // 2])
    return tf.pad(images, [*around, [0, 0]], constant_values=value)


_REPLACED = {"RandomPoisson": _random_poisson, "QuantizedConv2D": _quantized_conv}


def run(case: Case) -> tuple[list[Any], dict[str, Any]]:
    """Outputs in order (a list for a list of tensors), and gradients by input."""
    if case.op in OLD:
        kind = tf.as_dtype(case.inputs[OLD[case.op]].dtype).as_datatype_enum
        return [run_old(case.op, case.inputs, {"T": kind})], {}
    op = OPS[case.op]
    inputs = {name: tensor(value, op.input(name), op) for name, value in case.inputs.items()}
    with tf.GradientTape() as tape:
        tape.watch([inputs[name] for name in case.gradient])
        outputs = raw_op(case.op)(**inputs, **case.attrs)
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
    return np.asarray(value.numpy(), dtype=object) if value.dtype == tf.string else plain(value.numpy())


def plain(array: Array) -> Array:
    """Quantised integers, which TensorFlow gives as records of one field, as integers."""
    return array if array.dtype.names is None else array.view(array.dtype[0])


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
