# SPDX-License-Identifier: Apache-2.0
"""Answers a job with TensorFlow. A job is a dict: `op`, `call`, and what is asked of it.

`kind` is "run" (results), "graph" (would a graph take it?), "wide" (results with floats in float64), "gradient" (of the
weighted sum of the results, and of the weighted sum of that), "script" (steps in a session), "wide script" or
"kernels" (which types those of the CPU take).
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels as registered

from tests.vectors.catalogue.tensorflow_run import OLD, _numpy, plain, raw_op, run_old, tensor, weighted
from voxgrad.catalog.dtypes import COMPLEX128, FLOAT32, FLOAT64, INT32, DType
from voxgrad.catalog.model import Input, Op, Side
from voxgrad.catalog.registry import OPS

from .scripts import Step, Wire
from .session import write_files

tf.config.threading.set_inter_op_parallelism_threads(2)

_SINGLE = {"float16": FLOAT32, "bfloat16": FLOAT32}
_DOUBLE = {"float16": FLOAT64, "bfloat16": FLOAT64, "float32": FLOAT64, "complex64": COMPLEX128}


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """The answer, or the class and the words of the error."""
    try:
        return KINDS[job["kind"]](job)
    except Exception as error:
        return {"error": _words(error)}


def _words(error: Exception) -> str:
    """The class and what it says, without where in its own sources."""
    lines = [
        line for line in str(error).splitlines() if not re.match(r"\s*(File|Node:|Detected at|Graph exec|$)", line)
    ]
    return f"{type(error).__name__}: " + re.sub(r"\{\{.*?\}\} ?", "", " ".join(lines))[:400]


def _attr(value: Any) -> Any:
    if isinstance(value, DType):
        return tf.dtypes.as_dtype(value.enum)
    return [_attr(one) for one in value] if isinstance(value, (list, tuple)) else value


GRAPH_ONLY = ("Const", "NoOp", "ControlTrigger", "Switch", "Merge", "NextIteration", "LoopCond", "ParallelConcat")
"""Ops that TensorFlow does not run at once."""


def arguments(op: str, call: dict[str, Any]) -> dict[str, Any]:
    """Tensors and attributes as tf.raw_ops takes them."""
    inputs = {item.name: item for item in OPS[op].inputs}
    return {name: _input(OPS[op], inputs[name], value) if name in inputs else _attr(value)
            for name, value in call.items()}  # fmt: skip


def _input(op: Op, item: Input, value: Any) -> Any:
    """A tensor; NumPy's int64 where sizes are int32 is what tf.raw_ops makes of such an array, an int32."""
    if isinstance(value, list):
        return [_input(op, item, one) for one in value]
    wide = item.host and item.type is INT32 and value.dtype == np.int64
    return tf.constant(value, tf.int32) if wide else tensor(value, item, op)


def _listed(outputs: Any) -> list[Any]:
    if outputs is None:
        return []
    if isinstance(outputs, list):
        return [outputs]
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def _run(job: dict[str, Any]) -> dict[str, Any]:
    if job["op"] == "TopK":
        # Removed from TensorFlow; TopKV2 is the same op with k as a tensor.
        call = {name: np.asarray(value, np.int32) if name == "k" else value for name, value in job["call"].items()}
        job = {**job, "op": "TopKV2", "call": call}
    if job["op"] in OLD:
        kind = tf.as_dtype(job["call"][OLD[job["op"]]].dtype).as_datatype_enum
        return {"outputs": [run_old(job["op"], job["call"], {"T": kind})]}
    if job["op"] in GRAPH_ONLY:
        return _graph(job)
    if job["op"] in ONE_IMAGE and job["call"]["input"].ndim == 4 and len(job["call"]["input"]) > 1:
        return _image_by_image(job)
    try:
        made = raw_op(job["op"])(**arguments(job["op"], job["call"]))
    except tf.errors.OpError as error:
        if re.search(ONE_LAYOUT, str(error)) and job["call"].get("data_format") in _CHANNELS_LAST:
            return _channels_last(job)
        raise
    return {"outputs": [_numpy(one) for one in _listed(made)]}


ONE_IMAGE = ("FusedPadConv2D", "FusedResizeAndPadConv2D")
"""Ops that keep lines of one image and take them for the next."""


def _image_by_image(job: dict[str, Any]) -> dict[str, Any]:
    images = job["call"]["input"]
    calls = [job["call"] | {"input": images[at : at + 1]} for at in range(len(images))]
    return {"outputs": [np.concatenate([_run({**job, "call": call})["outputs"][0] for call in calls])]}


ONE_LAYOUT = r"only support(s|ed)? ?(the |for )?N"
"""How kernels refuse tensors with their channels in front."""
_CHANNELS_LAST = {"NCHW": "NHWC", "NCDHW": "NDHWC"}


def _channels_last(job: dict[str, Any]) -> dict[str, Any]:
    """The same call with its channels behind, as the CPU has it, and its results turned back."""
    op, layout = OPS[job["op"]], job["call"]["data_format"]
    rank = len(layout)
    order = [0, *range(2, rank), 1]
    call = {**job["call"], "data_format": _CHANNELS_LAST[layout]}
    for item in op.inputs:
        value = call[item.name]
        if item.layout == "data" and value.ndim == rank:
            call[item.name] = value.transpose(order)
        elif item.host and item.side is Side.CELLS and value.shape == (rank,):
            call[item.name] = value[order]
    for attr in op.attrs:
        if attr.kind == "ints" and len(call[attr.name]) in (rank, 2 * rank):
            # One number per dimension, or two: cells before and behind.
            call[attr.name] = np.reshape(call[attr.name], (rank, -1))[order].ravel().tolist()
    made = _run({**job, "call": call})["outputs"]
    back = [0, rank - 1, *range(1, rank - 1)]
    return {"outputs": [one.transpose(back) if item.layout == "data" and one.ndim == rank else one
                        for item, one in zip(op.outputs, made, strict=True)]}  # fmt: skip


def _widened(value: Any, to: dict[str, DType] = _DOUBLE) -> Any:
    """Arrays and element types of floats in another precision."""
    if isinstance(value, list):
        return [_widened(one, to) for one in value]
    if isinstance(value, DType):
        return to.get(value.name.replace("half", "float16"), value)
    if not isinstance(value, np.ndarray) or value.dtype.name not in to:
        return value
    return value.astype(to[value.dtype.name].name)


def _wide(job: dict[str, Any]) -> dict[str, Any]:
    """In double precision, or in single where there is no such kernel."""
    made: dict[str, Any] = {}
    for to in (_DOUBLE, _SINGLE):
        made = answer({**job, "kind": "run", "call": {name: _widened(one, to) for name, one in job["call"].items()}})
        if "error" not in made:
            break
    return made


def _wide_script(job: dict[str, Any]) -> dict[str, Any]:
    def widened(step: Step) -> Step:
        inputs, attrs = ({name: _widened(value) for name, value in one.items()} for one in (step.inputs, step.attrs))
        return replace(step, inputs=inputs, attrs=attrs)

    return _script({**job, "steps": [widened(step) for step in job["steps"]]})


def _graph(job: dict[str, Any]) -> dict[str, Any]:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        given = arguments(job["op"], job["call"])
        if job["op"] == "Const":
            given["value"] = tf.make_tensor_proto(job["call"]["value"], given["dtype"])
        made = raw_op(job["op"])(**given)
        if isinstance(made, tf.Operation):
            return {"outputs": session.run([made])[:0]}
        # One by one: what a Switch does not send cannot be fetched.
        found = [[_fetched(session, one) for one in entry] if isinstance(entry, list) else _fetched(session, entry)
                 for entry in _listed(made)]  # fmt: skip
        return {"outputs": found}


def _fetched(session: Any, wanted: Any) -> Any:
    try:
        value = session.run(wanted)
    except tf.errors.InvalidArgumentError as error:
        if "Retval[0] does not have value" in str(error):
            return None
        raise
    return np.asarray(value, object) if wanted.dtype.base_dtype == tf.string else plain(np.asarray(value))


def _flat(entries: list[Any]) -> list[Any]:
    return [one for entry in entries for one in (entry if isinstance(entry, list) else [entry])]


def _differentiable(one: Any) -> bool:
    return bool(one.dtype.is_floating or one.dtype.is_complex)


def _gradient(job: dict[str, Any]) -> dict[str, Any]:
    given = arguments(job["op"], job["call"])
    sources = [one for one in _flat([given[item.name] for item in OPS[job["op"]].inputs]) if _differentiable(one)]
    with tf.GradientTape() as second:
        second.watch(sources)
        with tf.GradientTape() as first:
            first.watch(sources)
            outputs = _flat(_listed(getattr(tf.raw_ops, job["op"])(**given)))
            chosen = [one for one in outputs[: job["outputs"]] if _differentiable(one)]
            total = sum(weighted(one) for one in chosen)
        found = [None if one is None else tf.convert_to_tensor(one) for one in first.gradient(total, sources)]
        kept = [one for one in found if one is not None]
        again = sum(weighted(one) for one in kept) if job["order"] > 1 and kept else None
    made = {"first": [None if one is None else _numpy(one) for one in found]}
    if again is not None:
        try:
            deeper = second.gradient(again, sources)
            made["second"] = [None if one is None else _numpy(tf.convert_to_tensor(one)) for one in deeper]
        except Exception as error:
            made["second_error"] = _words(error)  # type: ignore[assignment]
    return made


def _wired(value: Any, made: dict[str, Any]) -> Any:
    if isinstance(value, Wire):
        return made[value.step][value.index]
    return [_wired(one, made) for one in value] if isinstance(value, list) else tensor(value)


def _script(job: dict[str, Any]) -> dict[str, Any]:
    """The steps of a script in one session, one after the other, or all in one run."""
    folder = f"{job['folder']}/{job['kind']}{job['patience']}"
    write_files(folder, job["files"])
    os.chdir(folder)
    answers: list[dict[str, Any]] = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made: dict[str, Any] = {}
        before: list[Any] = []
        shown: list[Any] = []
        for step in job["steps"]:
            try:
                with tf.control_dependencies(before if job["one_run"] else []):
                    inputs = {name: _wired(value, made) for name, value in step.inputs.items()}
                    attrs = {name: _attr(value) for name, value in step.attrs.items()}
                    outputs = raw_op(step.op)(**inputs, **attrs, name=step.name)
                flat = _flat(_listed(outputs)) if not isinstance(outputs, tf.Operation) else [outputs]
                made[step.name] = flat
                before = [flat[0] if isinstance(flat[0], tf.Operation) else flat[0].op]
                if step.shown and job["one_run"]:
                    shown.append(flat)
                elif step.shown:
                    ran = [_session_run(session, flat, job["patience"]) for _ in range(step.times)]
                    answers.append({"outputs": ran[-1]})
            except Exception as error:
                answers.append({"error": _words(error)})
                if job["one_run"]:
                    return {"steps": answers}
        if job["one_run"]:
            found = session.run(shown)
            answers = [{"outputs": [np.asarray(one) for one in flat if one is not None]} for flat in found]
    return {"steps": answers}


def _session_run(session: Any, tensors: list[Any], patience: int) -> list[Any]:
    options = tf.compat.v1.RunOptions(timeout_in_ms=patience)
    if isinstance(tensors[0], tf.Operation):
        session.run(tensors, options=options)
        return []
    made = []
    if any(one.op.type == "RefSwitch" for one in tensors):
        return [_fetched(session, one) for one in tensors]
    for one, value in zip(tensors, session.run(tensors, options=options), strict=True):
        made.append(np.asarray(value, object) if one.dtype.base_dtype == tf.string else np.asarray(value))
    if tensors[0].op.type == "MatchingFiles":
        made = [np.array([name.removeprefix(b"./") for name in made[0]], object)]
    return made


def _kernels(job: dict[str, Any]) -> dict[str, Any]:
    """By type variable the numbers of the types that each kernel takes."""
    found = registered.get_registered_kernels_for_op(job["op"]).kernel
    limits = [{one.name: list(one.allowed_values.list.type) for one in kernel.constraint}
              for kernel in found if kernel.device_type in ("CPU", "DEFAULT")]  # fmt: skip
    return {"outputs": limits}


KINDS: dict[str, Any] = {"run": _run, "wide": _wide, "graph": _graph, "gradient": _gradient, "script": _script,
                         "wide script": _wide_script, "kernels": _kernels}  # fmt: skip
