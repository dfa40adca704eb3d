# SPDX-License-Identifier: Apache-2.0
"""Record TensorFlow's answers to cases.py and sessions.py, and its declarations of the same ops.

    python -m tests.vectors.catalogue.record        (from the repository root, with tensorflow-cpu 2.21 installed)

Writes manifest.json, data.npz and declarations.json beside this file. What TensorFlow has no CPU kernel for is left
out and counted.
"""

from __future__ import annotations

import datetime
import hashlib
import inspect
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .tensorflow_run import run, run_step, tf  # isort: skip - sets TensorFlow's environment before its first import
from google.protobuf import json_format
from tensorflow.python.framework import op_def_registry

from voxgrad.catalog.registry import OPS

from .cases import Array, Case, all_cases, attribute
from .sessions import Step, all_steps

HERE = Path(__file__).parent
MISSING = (tf.errors.NotFoundError, tf.errors.UnimplementedError)


class Pools:
    """Collects arrays into one flat pool per dtype; equal arrays are stored once. Texts stay in the manifest."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Array]] = {}
        self._known: dict[tuple[str, bytes], int] = {}
        self._length: Counter[str] = Counter()

    def add(self, array: Any) -> Any:
        """The manifest entry of an array, or a list of them."""
        if isinstance(array, list):
            return [self.add(one) for one in array]
        if array.dtype == object:
            return {"text": [one.decode("latin-1") for one in array.ravel().tolist()], "shape": list(array.shape)}
        flat = np.ascontiguousarray(array).ravel()
        key = (array.dtype.name, flat.tobytes())
        if key not in self._known:
            self._known[key] = self._length[array.dtype.name]
            self._parts.setdefault(array.dtype.name, []).append(flat)
            self._length[array.dtype.name] += flat.size
        return [array.dtype.name, list(array.shape), self._known[key]]

    def save(self, path: Path) -> None:
        """Write the pools, bfloat16 as the uint16 of its bits, so that the file needs no pickle."""
        pools = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        if "bfloat16" in pools:
            pools["bfloat16"] = pools["bfloat16"].view(np.uint16)
        np.savez_compressed(path, **pools)  # type: ignore[arg-type]


def record_case(case: Case, pools: Pools, left_out: Counter[str]) -> dict[str, Any] | None:
    try:
        outputs, gradients = run(case)
    except MISSING:
        left_out[case.op] += 1
        return None
    made: dict[str, Any] = {"op": case.op, "inputs": {name: pools.add(value) for name, value in case.inputs.items()}}
    if case.attrs:
        made["attrs"] = {name: attribute(value) for name, value in case.attrs.items()}
    made["outputs"] = [pools.add(output) for output in outputs]
    if gradients:
        made["gradients"] = {name: pools.add(value) for name, value in gradients.items()}
    return made


def record_step(step: Step, pools: Pools) -> dict[str, Any]:
    return {
        "op": step.op,
        "variables": {name: pools.add(value) for name, value in step.variables.items()},
        "inputs": {name: pools.add(value) for name, value in step.inputs.items()},
        "attrs": step.attrs,
        "after": [{name: pools.add(value) for name, value in after.items()} for after in run_step(step)],
    }


def declaration(name: str) -> dict[str, Any]:
    """An op as TensorFlow declares it: its definition, and the signature of its raw op."""
    made = json_format.MessageToDict(op_def_registry.get(name))
    function = getattr(tf.raw_ops, name, None)
    if function is not None:
        made["signature"] = {
            key: None if one.default is inspect.Parameter.empty else repr(one.default)
            for key, one in inspect.signature(function).parameters.items()
        }
    return made


def main() -> None:
    pools, left_out = Pools(), Counter[str]()
    cases = [made for case in all_cases() if (made := record_case(case, pools, left_out)) is not None]
    steps = [record_step(step, pools) for step in all_steps()]
    pools.save(HERE / "data.npz")
    header = {
        "about": "TensorFlow's answers to the calls of cases.py and sessions.py",
        "tensorflow": tf.__version__,
        "numpy": np.__version__,
        "python": sys.version.split()[0],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "data": "data.npz",
        "sha256": hashlib.sha256((HERE / "data.npz").read_bytes()).hexdigest(),
        "without_cpu_kernel": dict(sorted(left_out.items())),
    }
    lines = [",\n".join(json.dumps(one, separators=(",", ":")) for one in part) for part in (cases, steps)]
    head = json.dumps(header, indent=1).removesuffix("\n}")
    text = f'{head},\n "cases": [\n{lines[0]}\n],\n "steps": [\n{lines[1]}\n]\n}}\n'
    (HERE / "manifest.json").write_text(text, encoding="utf-8")
    declared = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(declaration(name), separators=(',', ':'))}"
        for name in sorted(OPS)
        if not OPS[name].own
    )
    (HERE / "declarations.json").write_text("{\n" + declared + "\n}\n", encoding="utf-8")
    print(f"{len(cases)} cases, {len(steps)} steps, {sum(left_out.values())} without a CPU kernel")


if __name__ == "__main__":
    main()
