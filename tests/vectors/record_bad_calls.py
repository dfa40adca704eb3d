# SPDX-License-Identifier: Apache-2.0
"""Make wrong calls to TensorFlow's 3-D ops and write its verdict on each to bad_calls.json beside this file.

    python -m tests.vectors.record_bad_calls        (from the repository root, with tensorflow-cpu 2.21 installed)

Eager mode without oneDNN (Eigen kernels). The calls run one after the other in a worker process. Where that dies or
does not answer in time, the call is made again as the first one of a new process, so that no earlier call is to blame,
and what happens then is recorded.

A tensor is written {"dtype", "shape"} and stands for ones, or {"dtype", "shape", "values"}; "as": "numpy" means that
a NumPy array is passed, otherwise a tf.Tensor. All other keyword arguments are passed as they are.
"""

import datetime
import itertools
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TIMEOUT_S = 20
INT_MAX = 2**31 - 1
FATAL = ("crash", "timeout")  # verdicts after which the worker is gone

CONVS = ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
POOLS = ("AvgPool3D", "AvgPool3DGrad", "MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad")
MAX_GRADS = POOLS[3:]
OPS = CONVS + POOLS
CONV, INPUT, FILTER = CONVS

Kwargs = dict[str, Any]
Call = tuple[str, str, Kwargs]  # what is wrong with it, op, keyword arguments


# ---- calls -----------------------------------------------------------------------------------------------------------


def ones(*shape: int, dtype: str = "float32") -> Kwargs:
    return {"dtype": dtype, "shape": list(shape)}


def vector(*values: float, dtype: str = "int32") -> Kwargs:
    return {"dtype": dtype, "shape": [len(values)], "values": list(values)}


def as_numpy(tensor: Kwargs) -> Kwargs:
    return tensor | {"as": "numpy"}


X, FILTER_2, CONV_OUT, POOL_OUT = ones(1, 4, 4, 4, 2), ones(2, 2, 2, 2, 3), ones(1, 2, 2, 2, 3), ones(1, 2, 2, 2, 2)
WINDOW = [1, 2, 2, 2, 1]
TENSORS: dict[str, Kwargs] = {
    CONV: {"input": X, "filter": FILTER_2},
    INPUT: {"input_sizes": vector(1, 4, 4, 4, 2), "filter": FILTER_2, "out_backprop": CONV_OUT},
    FILTER: {"input": X, "filter_sizes": vector(2, 2, 2, 2, 3), "out_backprop": CONV_OUT},
    "AvgPool3D": {"input": X},
    "AvgPool3DGrad": {"orig_input_shape": vector(1, 4, 4, 4, 2), "grad": POOL_OUT},
    "MaxPool3D": {"input": X},
    "MaxPool3DGrad": {"orig_input": X, "orig_output": POOL_OUT, "grad": POOL_OUT},
    "MaxPool3DGradGrad": {"orig_input": X, "orig_output": POOL_OUT, "grad": X},
}
SIZES = {INPUT: "input_sizes", FILTER: "filter_sizes", "AvgPool3DGrad": "orig_input_shape"}


def good(op: str) -> Kwargs:
    """A correct call: 4 x 4 x 4 voxels of 2 channels, window 2, stride 2, SAME."""
    window = {} if op in CONVS else {"ksize": WINDOW}
    return TENSORS[op] | window | {"strides": WINDOW, "padding": "SAME"}


def bad(why: str, op: str, **changes: Any) -> Call:
    return why, op, good(op) | changes


def lists_of(op: str) -> tuple[str, ...]:
    return ("strides", "dilations") if op in CONVS else ("ksize", "strides")


def with_entry(index: int, value: int, base: int = 2) -> list[int]:
    entries = [1, base, base, base, 1]
    entries[index] = value
    return entries


def channels_first(op: str) -> Kwargs:
    """The correct call in the other layout."""
    kwargs = good(op) | {"data_format": "NCDHW"}
    for name, value in kwargs.items():
        if name in ("ksize", "strides"):
            kwargs[name] = [1, 1, 2, 2, 2]
        elif isinstance(value, dict) and "values" in value and op != FILTER:
            kwargs[name] = vector(*channel_second(value["values"]))
        elif isinstance(value, dict) and "values" not in value and name != "filter":
            kwargs[name] = ones(*channel_second(value["shape"]))
    return kwargs


def channel_second(sizes: list[int]) -> list[int]:
    return [sizes[0], sizes[4], *sizes[1:4]]


def attribute_calls() -> Iterator[Call]:
    """Wrong lengths, types and words."""
    for op in OPS:
        for attr, length in itertools.product(lists_of(op), (0, 4, 6)):
            yield bad(f"{attr} of length {length}", op, **{attr: [1] * length})
        yield bad("padding or data_format not allowed", op, padding="EXPLICIT")
        yield bad("padding or data_format not allowed", op, padding="same")
        yield bad("padding or data_format not allowed", op, data_format="NHWC")
        yield bad("value does not fit int32", op, strides=with_entry(1, 2**31))
        yield bad("unknown keyword", op, colour="red")
        yield "missing argument", op, {k: v for k, v in good(op).items() if k != "strides"}
        yield "missing argument", op, {k: v for k, v in good(op).items() if k != next(iter(good(op)))}
        yield "NCDHW (no CPU kernel)", op, channels_first(op)
    for op in (CONV, "AvgPool3D", "MaxPool3DGrad"):
        yield bad("attribute is not a list of integers", op, strides=2)
        yield bad("attribute is not a list of integers", op, strides=[1, "two", 2, 2, 1])
        yield bad("attribute is not a list of integers", op, strides=None)
        yield bad("attribute is not a list of integers", op, strides=[1, 2.5, 2, 2, 1])
        yield bad("padding or data_format not allowed", op, padding=None)
        yield bad("padding or data_format not allowed", op, padding="")
        yield bad("padding or data_format not allowed", op, padding=1)
        yield bad("padding or data_format not allowed", op, data_format="ndhwc")
        yield bad("value does not fit int32", op, strides=with_entry(3, 2**63))


def window_calls() -> Iterator[Call]:
    """Strides, windows and dilations that are not positive, not spatial or too large."""
    for op, value in itertools.product(OPS, (0, -1)):
        yield bad("spatial stride <= 0", op, strides=with_entry(2, value))
    for op, index in itertools.product(CONVS, (0, 4)):
        yield bad("stride or dilation in batch or channels", op, strides=with_entry(index, 2))
        yield bad("stride or dilation in batch or channels", op, dilations=with_entry(index, 2, base=1))
    for op, attr, index in itertools.product(POOLS, ("ksize", "strides"), (0, 4)):
        yield bad("window or stride in batch or channels", op, **{attr: with_entry(index, 2)})
    for op, value in itertools.product(POOLS, (0, -1)):
        yield bad("ksize <= 0", op, ksize=with_entry(1, value))
    for op in POOLS:
        yield bad("ksize <= 0", op, ksize=[1, -3, -3, -3, 1])
        yield bad("ksize INT_MAX", op, ksize=with_entry(1, INT_MAX))
        yield bad("value does not fit int32", op, ksize=with_entry(3, 2**31))
    for op, value in itertools.product(CONVS, (0, -1)):
        yield bad("dilation < 1", op, dilations=with_entry(3, value, base=1))
    for op in CONVS:
        yield bad("dilation > 1 (no CPU kernel)", op, strides=[1] * 5, dilations=with_entry(1, 2, base=1))
        yield bad("value does not fit int32", op, dilations=with_entry(1, 2**40, base=1))
    for op in ("AvgPool3D", "MaxPool3D"):
        yield bad("VALID, window one larger than the input", op, ksize=with_entry(2, 5), padding="VALID")
        yield bad("VALID, window much larger than the input", op, ksize=with_entry(2, 9), padding="VALID")
    for kernel in (5, 9):
        why = f"VALID, window {'one' if kernel == 5 else 'much'} larger than the input"
        yield bad(why, CONV, filter=ones(2, kernel, 2, 2, 3), padding="VALID")


def tensor_calls() -> Iterator[Call]:
    """Ranks and dtypes."""
    for op in OPS:
        for name, tensor in TENSORS[op].items():
            if "values" not in tensor:
                yield bad("rank is not 5", op, **{name: ones(*tensor["shape"][1:])})
                yield bad("rank is not 5", op, **{name: ones(*tensor["shape"], 1)})
                yield bad("rank is not 5", op, **{name: ones()})
        floats = [name for name, tensor in TENSORS[op].items() if "values" not in tensor]
        if len(floats) > 1:
            shape = TENSORS[op][floats[-1]]["shape"]
            yield bad("dtypes of the tensors differ", op, **{floats[-1]: ones(*shape, dtype="float64")})
            yield bad("dtypes of the tensors differ", op, **{floats[-1]: as_numpy(ones(*shape, dtype="float64"))})
        for dtype in ("int32", "bool", "complex64"):
            yield bad("dtype not allowed by the op", op, **all_of_dtype(op, dtype))
    for op, dtype in itertools.product(POOLS, ("float16", "float64")):
        yield bad("dtype without a CPU kernel", op, **all_of_dtype(op, dtype))
    for dtype in ("int8", "int64", "uint16"):
        yield bad("dtype without a CPU kernel", "MaxPool3DGradGrad", **all_of_dtype("MaxPool3DGradGrad", dtype))


def all_of_dtype(op: str, dtype: str) -> Kwargs:
    return {n: ones(*t["shape"], dtype=dtype) for n, t in TENSORS[op].items() if "values" not in t}


def size_vector_calls() -> Iterator[Call]:
    """input_sizes, filter_sizes and orig_input_shape."""
    for op, name in SIZES.items():
        values = TENSORS[op][name]["values"]
        wrong = {
            "size vector of wrong length": (vector(*values[1:]), vector(*values, 1), vector()),
            "size vector of wrong rank": (ones(dtype="int32"), ones(1, 5, dtype="int32")),
            "negative size": (vector(values[0], -3, *values[2:]), vector(-1, *values[1:])),
            "product of sizes passes 2**63": (vector(*[INT_MAX] * 5), vector(1, *[2**30] * 3, values[4])),
            "dtype of the size vector": (
                vector(*values, dtype="int64"),
                vector(*values, dtype="int16"),
                vector(*values, dtype="float32"),
                as_numpy(vector(*values, dtype="int64")),
                as_numpy(vector(*(v + 0.5 for v in values), dtype="float64")),
            ),
            "all sizes zero": (vector(0, 0, 0, 0, 0),),
            "one size zero": (vector(values[0], 0, *values[2:]),),
        }
        for why, tensors in wrong.items():
            yield from (bad(why, op, **{name: tensor}) for tensor in tensors)
    huge = vector(1, 2**20, 2**20, 2**20 - 1, 2)
    yield bad("sizes huge but below 2**63", "AvgPool3DGrad", orig_input_shape=huge)
    yield bad("sizes huge but below 2**63", INPUT, input_sizes=huge)


def convolution_calls() -> Iterator[Call]:
    """Channels, batches and volumes that do not belong together; zero-size filters."""
    yield bad("input channels no multiple of the filter's", CONV, input=ones(1, 4, 4, 4, 3))
    yield bad("input channels no multiple of the filter's", CONV, filter=ones(2, 2, 2, 3, 3))
    yield bad("grouped (no CPU kernel)", CONV, input=ones(1, 4, 4, 4, 4))
    for shape in ((0, 2, 2, 2, 3), (2, 2, 2, 0, 3), (2, 2, 2, 2, 0), (0, 0, 0, 0, 0)):
        yield bad("zero-size filter", CONV, filter=ones(*shape))
    yield bad("zero-size filter", CONV, input=ones(1, 4, 4, 4, 0), filter=ones(2, 2, 2, 0, 3))
    for op in CONVS[1:]:
        yield bad("out_backprop channels wrong", op, out_backprop=ones(1, 2, 2, 2, 4))
        yield bad("out_backprop batch wrong", op, out_backprop=ones(2, 2, 2, 2, 3))
        for shape in ((1, 3, 2, 2, 3), (1, 2, 1, 2, 3), (1, 4, 4, 4, 3)):
            yield bad("out_backprop spatial size wrong", op, out_backprop=ones(*shape))
    yield bad("channels of sizes and filter differ", INPUT, input_sizes=vector(1, 4, 4, 4, 3))
    yield bad("channels of sizes and filter differ", INPUT, input_sizes=vector(1, 4, 4, 4, 4))
    yield bad("channels of sizes and input differ", FILTER, filter_sizes=vector(2, 2, 2, 3, 3))
    yield bad("channels of sizes and input differ", FILTER, filter_sizes=vector(2, 2, 2, 2, 4))
    yield bad("window larger than the input, VALID", FILTER, filter_sizes=vector(9, 2, 2, 2, 3), padding="VALID")
    no_channels = {"filter": ones(2, 2, 2, 2, 0), "out_backprop": ones(1, 2, 2, 2, 0)}
    yield bad("no output channels (B8: uninitialised memory)", INPUT, **no_channels)
    fits_nothing = {"filter_sizes": vector(5, 2, 2, 2, 3), "out_backprop": ones(1, 0, 2, 2, 3), "padding": "VALID"}
    yield bad("zero-size output (B8: uninitialised memory)", FILTER, **fits_nothing)


def pool_gradient_calls() -> Iterator[Call]:
    """Gradients that do not fit their volume."""
    for shape in ((2, 2, 2, 2, 2), (1, 2, 2, 2, 3), (11, 2, 2, 2, 2), (1, 2, 2, 2, 1)):
        yield bad("batch or channels of grad wrong", "AvgPool3DGrad", grad=ones(*shape))
    for shape in ((1, 1, 2, 2, 2), (1, 2, 0, 2, 2), (1, 3, 2, 2, 2), (1, 4, 4, 4, 2), (1, 2, 2, 9, 2)):
        yield bad("spatial size of grad wrong (B9)", "AvgPool3DGrad", grad=ones(*shape))
    for op, name in itertools.product(MAX_GRADS, ("orig_input", "orig_output", "grad")):
        right = TENSORS[op][name]["shape"]
        for axis, extent in ((0, 2), (0, 11), (2, 9), (3, 1), (4, 3)):
            wrong = [*right[:axis], extent, *right[axis + 1 :]]
            yield bad("shapes do not belong together", op, **{name: ones(*wrong)})
        yield bad("empty tensor", op, **{name: ones(0, *right[1:])})
    for axis in (0, 2, 4):
        x, y = list(X["shape"]), list(POOL_OUT["shape"])
        x[axis] = y[axis] = 0
        tensors = {"orig_input": ones(*x), "orig_output": ones(*y), "grad": ones(*x)}
        yield bad("all tensors empty", "MaxPool3DGradGrad", **tensors)


def security_calls() -> Iterator[Call]:
    """The published triggers (section 5 of ops.md); most changed one argument of the calls above."""
    empty = ones(0, 0, 0, 0, 0)
    yield bad("CVE-2021-29517 all empty", CONV, input=empty, filter=empty)
    yield bad("CVE-2021-29517 empty, channels differ", CONV, input=ones(0, 4, 4, 4, 3), filter=ones(2, 2, 2, 2, 3))
    sizes = vector(1, 4, 4, 4, 5)
    yield bad("CVE-2021-29520 channels differ", INPUT, input_sizes=sizes, filter=ones(2, 2, 2, 1, 3))
    yield bad("CVE-2021-29520 channels differ", FILTER, input=ones(1, 4, 4, 4, 1), filter_sizes=vector(2, 2, 2, 5, 3))
    zero = vector(0, 0, 0, 0, 0)
    yield bad("CVE-2021-29522 all zero", INPUT, input_sizes=zero, filter=empty, out_backprop=empty)
    yield bad("CVE-2021-29522 all zero", FILTER, input=empty, filter_sizes=zero, out_backprop=empty)
    yield bad("CVE-2021-29574 empty", "MaxPool3DGradGrad", orig_input=empty, orig_output=empty, grad=empty)
    yield bad("CVE-2021-29576 batch", "MaxPool3DGradGrad", orig_input=ones(11, 4, 4, 4, 2), grad=ones(1, 4, 4, 4, 2))
    yield bad("CVE-2021-29577 batch", "AvgPool3DGrad", orig_input_shape=vector(10, 4, 4, 4, 2))
    yield bad("CVE-2021-29577 channels", "AvgPool3DGrad", orig_input_shape=vector(1, 4, 4, 4, 6))
    for op in ("AvgPool3D", "MaxPool3D"):
        yield bad("CVE-2021-41196 ksize", op, ksize=[1, 0, 0, 0, 1])
        yield bad("CVE-2021-41196 ksize", op, ksize=[-1, -2, -2, -2, -1])
    for op in MAX_GRADS:
        yield bad("CVE-2021-41206 orig_output", op, orig_output=ones(1, 1, 1, 1, 1), grad=ones(1, 1, 1, 1, 1))
    yield bad("CVE-2021-41209 zero-size filter", CONV, filter=ones(2, 0, 2, 2, 3))
    overflow = vector(10, INT_MAX, INT_MAX, INT_MAX, 2)
    yield bad("CVE-2022-35959 overflow", "AvgPool3DGrad", orig_input_shape=overflow)
    yield bad("CVE-2022-35959 negative", "AvgPool3DGrad", orig_input_shape=vector(1, -4, 4, 4, 2))
    for k in (5, 9):
        claims = {"ksize": [1, k, k, k, 1], "strides": [1] * 5, "padding": "VALID", "grad": X}
        yield bad("#94119 window larger than the input, full-size grad", "AvgPool3DGrad", **claims)


def enuspace_calls() -> Iterator[Call]:
    """The "Using Method" pictures of enuSpace that TensorFlow no longer accepts."""
    x, stride = ones(2, 2, 2, 2, 2), [1, 4, 3, 2, 1]
    yield bad("enuSpace picture", "MaxPool3D", input=x, strides=stride, data_format="NHWC")
    sizes = vector(2, 1, 1, 1, 2)
    yield bad("enuSpace picture", "AvgPool3DGrad", orig_input_shape=sizes, grad=x, ksize=stride, strides=stride)
    y = ones(2, 1, 1, 1, 2)
    yield bad("enuSpace picture", "MaxPool3DGrad", orig_input=x, orig_output=x, grad=y, strides=stride)
    attrs = {"ksize": stride, "strides": stride}
    yield bad("enuSpace picture", "MaxPool3DGradGrad", orig_input=x, orig_output=y, grad=y, **attrs)


def all_calls() -> list[Call]:
    lists = (
        attribute_calls,
        window_calls,
        tensor_calls,
        size_vector_calls,
        convolution_calls,
        pool_gradient_calls,
        security_calls,
        enuspace_calls,
    )
    return [call for make_list in lists for call in make_list()]


# ---- the worker process ----------------------------------------------------------------------------------------------


def answer_calls() -> None:
    """Read calls from standard input, one JSON line each, and answer each with TensorFlow's verdict."""
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        filled = np.ones(value["shape"]) if "values" not in value else np.array(value["values"])
        array = filled.astype(value["dtype"])
        return array if value.get("as") == "numpy" else tf.constant(array)

    print(json.dumps({"tensorflow": tf.__version__}), flush=True)
    for line in sys.stdin:
        op, kwargs = json.loads(line)
        try:
            output = getattr(tf.raw_ops, op)(**{name: decode(value) for name, value in kwargs.items()})
            verdict = {"verdict": "accepted", "dtype": output.dtype.name, "shape": output.shape.as_list()}
        except Exception as error:
            verdict = {"verdict": "error", "error": type(error).__name__, "message": first_line(str(error))}
        print(json.dumps(verdict), flush=True)


def first_line(message: str) -> str:
    """The sentence without the names of generated nodes around it."""
    line = message.strip().splitlines()[0]
    return re.sub(r"\{\{function_node .*?\}\} ?| \[Op:\w+\].*$", "", line)


class Worker:
    """A process that judges calls; replaced when it dies."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.vectors.record_bad_calls", "--worker"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.versions = json.loads(self._answers.get(timeout=300))

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._answers.put(line)
        self._answers.put("")  # it has ended

    def judge(self, op: str, kwargs: Kwargs) -> Kwargs:
        assert self._process.stdin
        self._process.stdin.write(json.dumps([op, kwargs]) + "\n")
        self._process.stdin.flush()
        try:
            answer = self._answers.get(timeout=TIMEOUT_S)
        except queue.Empty:
            self.stop()
            return {"verdict": "timeout", "seconds": TIMEOUT_S}
        if answer:
            return dict(json.loads(answer))
        return {"verdict": "crash", "signal": signal.Signals(-self._process.wait()).name}

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def judge_alone(op: str, kwargs: Kwargs) -> Kwargs:
    """The verdict of a process that has seen no other call."""
    worker = Worker()
    verdict = worker.judge(op, kwargs)
    worker.stop()
    return verdict


def main() -> None:
    worker = Worker()
    rows: list[Kwargs] = []
    for why, op, kwargs in all_calls():
        verdict = worker.judge(op, kwargs)
        if verdict["verdict"] in FATAL:
            verdict = judge_alone(op, kwargs)
            worker = Worker()
        rows.append({"why": why, "op": op, "kwargs": kwargs, "tensorflow": verdict})
    worker.stop()
    header = {
        "about": "TensorFlow's verdict on wrong calls, eager mode, Eigen CPU kernels; see record_bad_calls.py",
        **worker.versions,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    head = json.dumps(header, indent=1).removesuffix("\n}")
    lines = ",\n".join(json.dumps(row) for row in rows)
    (HERE / "bad_calls.json").write_text(f'{head},\n "calls": [\n{lines}\n]\n}}\n', encoding="utf-8")
    print(Counter(row["tensorflow"].get("error", row["tensorflow"]["verdict"]) for row in rows), len(rows))


if __name__ == "__main__":
    answer_calls() if "--worker" in sys.argv else main()
