# SPDX-License-Identifier: Apache-2.0
"""A longer run than the tests': `python -m tests.parity.differential --calls 100 --seeds 1 2 3 [OP ...]`.

Prints what differs without an explanation, how often each known difference occurred, and entries of the list of known
differences that explained nothing.
"""

from __future__ import annotations

import argparse
import sys
import time

from .child import TensorFlow
from .coverage import table
from .known import stale
from .run import CALLS, PARTS, SEED, Report


def main() -> int:
    """Run what was asked for; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.differential")
    parser.add_argument("ops", nargs="*", help="names of ops; all where none is given")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[SEED])
    parser.add_argument("--part", choices=tuple(PARTS), nargs="+", default=list(PARTS))
    parser.add_argument("--coverage", action="store_true", help="what the calls reached, op by op")
    asked = parser.parse_args()
    tensorflow, total, started = TensorFlow(), Report(), time.monotonic()
    for seed in asked.seeds:
        for part in asked.part:
            run, ops, share = PARTS[part]
            for name in asked.ops or ops:
                if name not in ops:
                    continue
                report = run(tensorflow, name, seed, max(1, asked.calls // share))
                total.add(report)
                for found in report.found:
                    print(f"--- {found}\n", flush=True)
    tensorflow.close()
    for reason, count in total.explained.most_common():
        print(f"{count:6}  {reason}")
    if not asked.ops:
        for entry in stale(total.explained):
            print(f" stale  {entry}")
    if asked.coverage:
        print(table(total.reached))
    print(f"seeds {asked.seeds}: {total.calls} calls, {total.accepted} accepted by TensorFlow, {len(total.found)} "
          f"unexplained differences, {time.monotonic() - started:.0f} s")  # fmt: skip
    return 1 if total.found else 0


if __name__ == "__main__":
    sys.exit(main())
