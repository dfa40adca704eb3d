# SPDX-License-Identifier: Apache-2.0
"""Max pooling and its gradient together, positions kept in between, beside torch: `python3 run bench pairs --peers`.

Ours keeps a byte per window, torch an int64. Both run in this process by turns; results are compared first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cpu import RESULTS, machine, typical
from bench.rows import POOL_SHAPES, POOL_WINDOWS, Row
from voxgrad.arrays.positions import Positions
from voxgrad.catalog.registry import OPS

Pair = Callable[[], Any]


def ours(row: Row, call: dict[str, Any]) -> Pair:
    """The pool and its gradient as a session runs them."""
    kept = Positions()
    attrs = {name: call[name] for name in ("ksize", "strides", "padding")}

    def run() -> Any:
        x = call["orig_input"]
        y = kept.execute(OPS["MaxPool3D"], {"input": x, **attrs})
        return kept.execute(OPS[row.op], {"orig_input": x, "orig_output": y, "grad": call["grad"], **attrs})

    return run


def torchs(row: Row, call: dict[str, Any]) -> Pair:
    """The same in torch, channels last: what it finds in the forward pass it uses in the backward pass."""
    from bench.torch_peer import torch_call

    run, back = torch_call(row, call, last=True)
    return lambda: back(run())


def race(runs: list[Pair], seconds: float) -> list[float]:
    """Seconds of each, by turns."""
    times: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()
    for _ in range(6):
        for run, mine in zip(runs, times, strict=True):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                start = time.perf_counter()
                run()
                mine.append(time.perf_counter() - start)
    return [typical(values) for values in times]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python3 run bench pairs", description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="beside torch (installs it)")
    parser.add_argument("--seconds", type=float, default=0.1, help="per engine and turn")
    chosen = parser.parse_args()
    rows = []
    for batch, spatial, channels in POOL_SHAPES:
        for window, stride in POOL_WINDOWS:
            row = Row("MaxPool3DGrad", batch, spatial, channels, channels, window, stride)
            call = row.call()
            runs = [ours(row, call)] + ([torchs(row, call)] if chosen.peers else [])
            if len(runs) == 2:
                np.testing.assert_allclose(runs[0](), runs[1](), rtol=1e-5, atol=1e-5)
            times = race(runs, chosen.seconds)
            ratio = times[-1] / times[0]
            shown = "  ".join(f"{value * 1e3:8.3f} ms" for value in times)
            print(f"{row.label:34} {shown} {ratio:6.2f}x", flush=True)
            rows.append({"row": row.label, "ms": [value * 1e3 for value in times], "ratio": ratio})
    print(f"geometric mean {statistics.geometric_mean(row['ratio'] for row in rows):.2f}x")
    target = RESULTS / "cpu-pairs.json"
    target.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
