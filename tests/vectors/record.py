# SPDX-License-Identifier: Apache-2.0
"""Run the calls of cases.py on TensorFlow and write manifest.json and data.npz beside this file.

    python -m tests.vectors.record        (from the repository root, with tensorflow-cpu 2.21 installed)

Back end "eigen": eager ops without oneDNN. Back end "xla": the same op in tf.function(jit_compile=True).
Arrays go to TensorFlow as tf.constant: tf.raw_ops.MaxPool3DGrad silently computes in float32 when it is given NumPy
arrays of bfloat16, because its T has a default.
"""

import datetime
import hashlib
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from .cases import Spec, all_cases, backend_tags

tf.get_logger().setLevel("ERROR")  # every case is a function of its own: "retracing" is what we want

Array = npt.NDArray[Any]

HERE = Path(__file__).parent
DATA = "data.npz"


def run_eigen(spec: Spec) -> Array:
    tensors = {name: tf.constant(array) for name, array in spec.inputs.items()}
    return np.asarray(getattr(tf.raw_ops, spec.op)(**tensors, **spec.attrs).numpy())


def run_xla(spec: Spec) -> Array:
    """The sizes (integer inputs) are constants of the compiled function: XLA needs them at compile time."""
    op = getattr(tf.raw_ops, spec.op)
    sizes = {name: array for name, array in spec.inputs.items() if array.dtype.kind == "i"}
    floats = {name: tf.constant(array) for name, array in spec.inputs.items() if name not in sizes}

    def call(**tensors: tf.Tensor) -> tf.Tensor:
        constants = {name: tf.constant(array) for name, array in sizes.items()}
        return op(**tensors, **constants, **spec.attrs)

    return np.asarray(tf.function(call, jit_compile=True)(**floats).numpy())


RUN = {"eigen": run_eigen, "xla": run_xla}


class Pools:
    """Collects arrays into one flat pool per dtype; equal arrays are stored once."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Array]] = {}
        self._known: dict[tuple[str, bytes], int] = {}
        self._length: Counter[str] = Counter()

    def add(self, array: Array) -> dict[str, Any]:
        """The manifest entry of the array: its dtype, its shape and where it starts in the pool of its dtype."""
        dtype, flat = array.dtype.name, np.ascontiguousarray(array).ravel()
        key = (dtype, flat.tobytes())
        if key not in self._known:
            self._known[key] = self._length[dtype]
            self._parts.setdefault(dtype, []).append(flat)
            self._length[dtype] += flat.size
        return {"dtype": dtype, "shape": list(array.shape), "at": self._known[key]}

    def save(self, path: Path) -> None:
        """Write the pools, bfloat16 as the uint16 of its bits, so that the file needs no pickle."""
        pools = {dtype: np.concatenate(parts) for dtype, parts in self._parts.items()}
        if "bfloat16" in pools:
            pools["bfloat16"] = pools["bfloat16"].view(np.uint16)
        np.savez_compressed(path, allow_pickle=False, **pools)


def record(spec: Spec, backend: str, pools: Pools) -> dict[str, Any]:
    try:
        output = RUN[backend](spec)
    except Exception as error:
        raise RuntimeError(f"{spec.name} on {backend}: {str(error)[:400]}") from error
    return {
        "id": f"{spec.name}/{backend}",
        "op": spec.op,
        "backend": backend,
        "tags": sorted(backend_tags(spec, backend)),
        "attrs": spec.attrs,
        "inputs": {name: pools.add(array) for name, array in spec.inputs.items()},
        "output": pools.add(output),
    }


def write_manifest(path: Path, header: dict[str, Any], cases: list[dict[str, Any]]) -> None:
    """One case a line, so that a re-recording can be read as a diff."""
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    head = json.dumps(header, indent=1).removesuffix("\n}")
    path.write_text(f'{head},\n "cases": [\n{lines}\n]\n}}\n', encoding="utf-8")


def summary(cases: list[dict[str, Any]]) -> str:
    per_op = Counter((case["op"], case["backend"]) for case in cases)
    per_tag = Counter((tag, case["backend"]) for case in cases for tag in case["tags"])
    rows = [f"{name:24} {backend:6} {count:4}" for (name, backend), count in sorted((per_op + per_tag).items())]
    return "\n".join([*rows, f"{len(cases)} cases"])


def main() -> None:
    pools = Pools()
    cases = [record(spec, backend, pools) for spec in all_cases() for backend in spec.backends]
    pools.save(HERE / DATA)
    header = {
        "about": "Outputs of TensorFlow's 3-D ops; see README.md",
        "tensorflow": tf.__version__,
        "numpy": np.__version__,
        "python": sys.version.split()[0],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "data": DATA,
        "sha256": hashlib.sha256((HERE / DATA).read_bytes()).hexdigest(),
    }
    write_manifest(HERE / "manifest.json", header, cases)
    print(summary(cases))


if __name__ == "__main__":
    main()
