# SPDX-License-Identifier: Apache-2.0
"""Times the family on this CPU, beside its peers, in one run: `python3 run bench cpu --peers`.

Every result is compared with the reference before it is timed; a wrong one is reported and not timed. Engines take
turns, in processes of their own, until the ratio of ours to the best peer is known to a few per cent; without peers,
types do so. Ceilings are measured in the same run; "at most" is the ratio of a kernel whose units never idle. Results
go to bench/results/ as JSON.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import sys
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from bench.ceilings import ceilings
from bench.engines import ENGINES, HELD, Server
from bench.rows import Row, drawn, listed, work
from voxgrad import __version__, raw_ops, reference
from voxgrad.arrays.plan import make_plan
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.kernels import cpu
from voxgrad.testing import assert_close, terms_of

RESULTS = Path(__file__).parent / "results"
OURS = "voxgrad"


def limit_seconds(row: Row, call: dict[str, Any], ceiling: dict[str, float]) -> tuple[float, float]:
    """The time that matrix products and copies of the same size would take; and the least that the units need."""
    flop, moved = work(row, call)
    name = "float64" if row.dtype == "float64" else "float32"
    least = flop / ceiling.get(f"{name}_units", math.inf) / 1e9
    return max(flop / ceiling[name] / 1e9, moved / ceiling["copy"] / 1e9), least


def check(row: Row, call: dict[str, Any], result: Any, truth: Any, strict: bool) -> str:
    """Empty where the result is right, else what is wrong with it. Peers may sum in low precision."""
    if isinstance(result, str):
        return result
    problem = make_plan(OPS[row.op], call).problem
    if result.shape != truth.shape:
        return f"wrong: shape {list(result.shape)} instead of {list(truth.shape)}"
    try:
        if strict:
            assert_close(result, truth, terms=terms_of(problem))
            return ""
        worst = float(np.abs(result.astype(np.float64) - truth).max(initial=0)) / max(1e-30, float(np.abs(truth).max()))
        bound = 0.1 if row.dtype in ("half", "bfloat16") else 1e-3
        return "" if worst <= bound else f"wrong by {worst:.2g} of the largest element"
    except AssertionError as error:
        return f"wrong: {str(error).splitlines()[0][:60]}"


def race(servers: dict[str, Server], seconds: float) -> dict[str, list[float]]:
    """Times of all engines, taken in turns; one that is far behind takes part in every fourth only."""
    times: dict[str, list[float]] = {}
    for name, server in servers.items():
        server.ask("time", 0.0)
        answer = server.ask("time", 0.0)
        times[name] = answer if isinstance(answer, list) else []
    for turn in range(12):
        best = min(min(values) for name, values in times.items() if values)
        for name, server in servers.items():
            if times[name] and (name == OURS or turn % 4 == 0 or min(times[name]) < 3 * best):
                times[name] += server.ask("time", seconds)
        if turn >= 4 and _settled(times):
            break
    return times


def _settled(times: dict[str, list[float]]) -> bool:
    """True where the lower quartile of the two that matter has stopped moving."""
    close = sorted((values for values in times.values() if values), key=min)[:2]
    return all(statistics.quantiles(values, n=4)[0] < 1.06 * min(values) for values in close if len(values) > 3)


def typical(values: list[float]) -> float:
    """The lower quartile: other load on the machine only ever adds."""
    return statistics.quantiles(values, n=4)[0] if len(values) > 3 else min(values)


def refusals(row: Row, call: dict[str, Any], servers: dict[str, Server]) -> dict[str, str]:
    """Engines that cannot run a row or give a wrong result, with what is wrong; the others are ready to be timed."""
    plan = make_plan(OPS[row.op], call)
    truth = reference.evaluate(plan.problem, *plan.tensors.values())
    found = {}
    for name, server in servers.items():
        ready = server.ask("row", row)
        found[name] = check(row, call, server.ask("check") if ready is True else ready, truth, strict=name == OURS)
    return {name: wrong for name, wrong in found.items() if wrong}


def measure(row: Row, servers: dict[str, Server], ceiling: dict[str, float], seconds: float) -> dict[str, Any]:
    """One row: checked, then timed."""
    call = row.call()
    refused = refusals(row, call, servers)
    if OURS in refused:
        return {"op": row.op, "row": row.label, "error": refused[OURS]}
    able = {name: server for name, server in servers.items() if name not in refused}
    times = {name: typical(values) for name, values in race(able, seconds).items() if values}
    peers = {name: value for name, value in times.items() if name != OURS}
    best = min(peers, key=lambda name: peers[name]) if peers else None
    problem = make_plan(OPS[row.op], call).problem
    limit, least = limit_seconds(row, call, ceiling)
    return {
        "op": row.op,
        "row": row.label,
        "dtype": row.dtype,
        "source": row.source,
        "ms": {name: value * 1e3 for name, value in times.items()},
        "best_peer": best,
        "ratio": peers[best] / times[OURS] if best else None,
        "most": peers[best] / least if best and least else None,
        "of_limit": limit / times[OURS],
        "scratch_bytes": cpu.prepare(problem).scratch_bytes() if cpu.computes(row.op) else 0,
        "refused": refused,
    }


def line(result: dict[str, Any]) -> str:
    """A result as a line of the table."""
    if "error" in result:
        return f"{result['op']:24} {result['row']:34} {result['error']}"
    ratio = f"{result['ratio']:6.2f}x {result['best_peer']}" if result["ratio"] else ""
    ratio += f" (at most {result['most']:.2f}x)" if result["most"] else ""
    peer = f"{result['ms'][result['best_peer']]:9.3f}" if result["best_peer"] else " " * 9
    return (
        f"{result['op']:24} {result['row']:34} {result['ms'][OURS]:9.3f} {peer} {result['of_limit']:6.0%} "
        f"{result['scratch_bytes'] / 2**20:6.1f} {ratio}"
    )


def _mean(results: list[dict[str, Any]], name: str) -> float:
    return statistics.geometric_mean(result[name] for result in results)


def summary(results: list[dict[str, Any]]) -> list[str]:
    """Means of the ratios per op and type, the worst row, and the mean that units never idle would give."""
    lines = []
    for op in FAMILY:
        for dtype in dict.fromkeys(result.get("dtype") for result in results):
            mine = [
                result
                for result in results
                if result["op"] == op.name and result.get("dtype") == dtype and result.get("ratio")
            ]
            if mine:
                worst = min(mine, key=lambda result: result["ratio"])
                lines.append(
                    f"{op.name:24} {dtype:9} {_mean(mine, 'ratio'):5.2f}x over {len(mine)} rows, "
                    f"worst {worst['ratio']:.2f}x ({worst['row']})"
                    + (f"; at most {_mean(mine, 'most'):.2f}x" if worst["most"] else "")
                )
    return lines


def alike(rows: list[Row]) -> list[dict[str, Row]]:
    """Rows that differ in nothing but the type, by type; those of one type alone are left out."""
    groups: dict[Row, dict[str, Row]] = {}
    for row in rows:
        groups.setdefault(replace(row, dtype=""), {})[row.dtype] = row
    return [group for group in groups.values() if len(group) > 1]


def measure_types(
    group: dict[str, Row], servers: dict[str, Server], ceiling: dict[str, float], seconds: float
) -> list[dict[str, Any]]:
    """Ours in several types: checked, then timed by turns, as the speed of a machine changes with what else it does."""
    calls = {dtype: row.call() for dtype, row in group.items()}
    for dtype, row in group.items():
        if wrong := refusals(row, calls[dtype], {OURS: servers[dtype]}):
            return [{"op": row.op, "row": row.label, "error": wrong[OURS]}]
    times = {dtype: typical(values) for dtype, values in race({name: servers[name] for name in group}, seconds).items()}
    return [
        {
            "op": row.op,
            "row": row.label,
            "dtype": dtype,
            "ms": times[dtype] * 1e3,
            "of_limit": limit_seconds(row, calls[dtype], ceiling)[0] / times[dtype],
            "of_float32": times[dtype] / times["float32"] if "float32" in times else None,
        }
        for dtype, row in group.items()
    ]


def types(rows: list[Row], seconds: float) -> dict[str, Any]:
    """Every type beside the others, and what share of the time of float32 it takes."""
    groups = alike(rows)
    servers = {dtype: Server(OURS, cpu.get_num_threads()) for dtype in dict.fromkeys(row.dtype for row in rows)}
    ceiling = ceilings(cpu.get_num_threads(), cpu.isa_name())
    results = []
    for group in groups:
        for result in measure_types(group, servers, ceiling, seconds):
            results.append(result)
            tail = f"{result['ms']:9.3f} ms {result['of_limit']:6.0%}" if "ms" in result else result["error"]
            share = f" {result['of_float32']:6.2f} of float32" if result.get("of_float32") else ""
            print(f"{result['op']:24} {result['row']:34} {tail}{share}", flush=True)
    for server in servers.values():
        server.close()
    return {"ceilings": ceiling, "rows": results}


def growth(seconds: float) -> list[dict[str, Any]]:
    """Time per voxel as the volume and the channels grow."""
    results = []
    server = Server(OURS, cpu.get_num_threads())
    for op in FAMILY:
        step = (2, 2, 2) if "Pool" in op.name else (1, 1, 1)
        for channels in (8, 32):
            cells = {}
            for side in (16, 32, 64, 96):
                server.ask("row", Row(op.name, 1, (side,) * 3, channels, channels, (3, 3, 3), step))
                server.ask("time", 0.0)
                cells[side] = typical(server.ask("time", seconds)) / side**3 * 1e9
            shown = "  ".join(f"{side}: {cell:7.2f}" for side, cell in cells.items())
            print(f"{op.name:24} {channels:3} channels, ns per voxel at side {shown}", flush=True)
            results.append({"op": op.name, "channels": channels, "ns_per_voxel": cells})
    server.close()
    return results


def scaling(rows: list[Row], seconds: float) -> list[dict[str, Any]]:
    """How much faster two threads are than one."""
    results = []
    servers = {f"{threads} threads": Server(OURS, threads) for threads in (1, 2)}
    for row in rows:
        for server in servers.values():
            server.ask("row", row)
        one, two = (typical(values) for values in race(servers, seconds).values())
        print(f"{row.op:24} {row.label:34} {one * 1e3:9.3f} ms  {two * 1e3:9.3f} ms {one / two:6.2f}x", flush=True)
        results.append({"op": row.op, "row": row.label, "ms": [one * 1e3, two * 1e3], "ratio": one / two})
    for server in servers.values():
        server.close()
    return results


def calls() -> list[dict[str, Any]]:
    """Microseconds of a call on arrays so small that the call itself is what is timed."""
    results = []
    for op in FAMILY:
        row = Row(op.name, 2, (2, 2, 2), 2, 2, (2, 2, 2), (1, 1, 1))
        function, arguments = getattr(raw_ops, op.name), row.call()
        times = []
        for _ in range(60):
            start = time.perf_counter()
            for _ in range(300):
                function(**arguments)
            times.append((time.perf_counter() - start) / 300 * 1e6)
        print(f"{op.name:24} {typical(times):6.2f} us", flush=True)
        results.append({"op": op.name, "row": row.label, "us": typical(times)})
    return results


def machine() -> dict[str, Any]:
    """Where and with what this ran."""
    name = platform.processor()
    for text in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if text.startswith("model name"):
            name = text.split(":", 1)[1].strip()
            break
    versions = {}
    for package in ("numpy", "torch", "tensorflow-cpu", "jax"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": name,
        "isa": cpu.isa_name(),
        "threads": cpu.get_num_threads(),
        "voxgrad": __version__,
        "versions": versions,
    }


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python3 run bench cpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", action="store_true", help="beside torch, TensorFlow and JAX (installs them)")
    parser.add_argument("--engines", default="", help="only these peers, comma-separated: " + ", ".join(ENGINES))
    parser.add_argument(
        "--rows", default="", help="only rows whose op or label contains one of these words, comma-separated"
    )
    parser.add_argument("--types", default="float32", help="element types, comma-separated; 'all' for every one")
    parser.add_argument("--isa", choices=list(HELD), help="hold every engine to this instruction set")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random rows instead of the listed ones")
    parser.add_argument("--seed", type=int, default=1, help="of the random rows")
    parser.add_argument("--seconds", type=float, default=0.15, help="per engine and turn")
    parser.add_argument("--growth", action="store_true", help="time per voxel over size and channels instead")
    parser.add_argument("--scaling", action="store_true", help="one thread against two instead")
    parser.add_argument("--calls", action="store_true", help="the cost of a call on tiny arrays instead")
    parser.add_argument("--save", type=Path, help="where to write the JSON (default: bench/results/cpu-<kind>.json)")
    return parser.parse_args()


def chosen_rows(chosen: argparse.Namespace) -> list[Row]:
    """The rows that were asked for."""
    types = ["float32", "half", "bfloat16", "float64"] if chosen.types == "all" else chosen.types.split(",")
    rows = list(drawn(chosen.random, chosen.seed)) if chosen.random else list(listed(types))
    words = [word for word in chosen.rows.split(",") if word]
    return [row for row in rows if not words or any(word in f"{row.op} {row.label}" for word in words)]


def compare(chosen: argparse.Namespace) -> dict[str, Any]:
    """All rows beside the peers: the table, and what goes into the file."""
    names = chosen.engines.split(",") if chosen.engines else [name for name in ENGINES if name != OURS]
    servers = {name: Server(name, cpu.get_num_threads()) for name in [OURS, *(names if chosen.peers else [])]}
    ceiling = ceilings(cpu.get_num_threads(), cpu.isa_name())
    print("ceilings (GFLOP/s, GB/s): " + ", ".join(f"{name} {value:.0f}" for name, value in ceiling.items()))
    print(f"{'op':24} {'row':34} {'ours ms':>9} {'peer ms':>9} {'limit':>6} {'MiB':>6}  ratio and best peer")
    results = []
    for row in chosen_rows(chosen):
        results.append(measure(row, servers, ceiling, chosen.seconds))
        print(line(results[-1]), flush=True)
    for server in servers.values():
        server.close()
    print("\n".join(summary(results)))
    return {"ceilings": ceiling, "rows": results}


def main() -> int:
    """Run the benchmark."""
    chosen = options()
    if chosen.isa:
        os.environ.update(HELD[chosen.isa])
        cpu.use_isa(chosen.isa)
    about = machine()
    print(f"{about['cpu']}, {about['isa']}, {about['threads']} threads")
    if chosen.growth:
        kind, found = "growth", {"rows": growth(chosen.seconds)}
    elif chosen.calls:
        kind, found = "calls", {"rows": calls()}
    elif chosen.scaling:
        kind, found = "scaling", {"rows": scaling(chosen_rows(chosen), chosen.seconds)}
    elif alike(chosen_rows(chosen)) and not chosen.peers:
        kind, found = "types", types(chosen_rows(chosen), chosen.seconds)
    else:
        kind, found = "random" if chosen.random else "list", compare(chosen)
    target = chosen.save or RESULTS / f"cpu-{kind}{'-' + chosen.isa if chosen.isa else ''}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"machine": about, **found}, indent=1) + "\n")
    return 1 if any("error" in result for result in found["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
