# SPDX-License-Identifier: Apache-2.0
"""Read the recorded TensorFlow outputs. Needs numpy and ml_dtypes, never TensorFlow."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

HERE = Path(__file__).parent
MANIFEST = HERE / "manifest.json"
BAD_CALLS = HERE / "bad_calls.json"


@dataclass(frozen=True)
class Case:
    """One call and TensorFlow's answer. `backend` is "eigen" (semantics tf_cpu) or "xla" (documented)."""

    id: str
    op: str
    backend: str
    tags: frozenset[str]
    attrs: dict[str, Any]
    inputs: dict[str, Array]
    output: Array


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of a manifest name: NumPy's own names, and "bfloat16"."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def load_pools(path: Path, sha256: str) -> dict[str, Array]:
    """The data file after its checksum was verified: one flat read-only array per dtype name."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise ValueError(f"{path} is not the recorded file: sha256 {found}, the manifest says {sha256}")
    with np.load(path, allow_pickle=False) as archive:
        pools = {name: archive[name].view(numpy_dtype(name)) for name in archive.files}
    for pool in pools.values():
        pool.flags.writeable = False
    return pools


def take(pools: dict[str, Array], entry: dict[str, Any]) -> Array:
    """The array that a manifest entry {"dtype", "shape", "at"} stands for: a read-only view of its pool."""
    shape = tuple(entry["shape"])
    start, count = entry["at"], int(np.prod(shape, dtype=np.int64))
    view: Array = pools[entry["dtype"]][start : start + count].reshape(shape)
    return view


@cache
def _cases() -> tuple[Case, ...]:
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    pools = load_pools(HERE / manifest["data"], manifest["sha256"])
    return tuple(
        Case(
            id=entry["id"],
            op=entry["op"],
            backend=entry["backend"],
            tags=frozenset(entry["tags"]),
            attrs=entry["attrs"],
            inputs={name: take(pools, array) for name, array in entry["inputs"].items()},
            output=take(pools, entry["output"]),
        )
        for entry in manifest["cases"]
    )


def load_cases() -> list[Case]:
    """All recorded cases, in manifest order. Arrays are read-only views; copy before writing."""
    return list(_cases())
