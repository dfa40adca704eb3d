# SPDX-License-Identifier: Apache-2.0
"""Random calls of every op here and in TensorFlow: results, refusals, first and second derivatives, sessions.

`run test --parity` has a new seed every day, pytest alone the same calls every time. VOXGRAD_SEED sets one,
VOXGRAD_PARITY_CALLS asks for more calls per op. For a long run:
`python -m tests.parity.differential --calls 100 --seeds 1 2 3`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from voxgrad.catalog.registry import OPS

from .differential.child import TensorFlow
from .differential.run import CALLS, PARTS, SEED
from .differential.scripts import FAMILIES

pytestmark = [pytest.mark.parity, pytest.mark.differential, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def tensorflow() -> Iterator[TensorFlow]:
    pytest.importorskip("tensorflow")
    print(f"seed {SEED}: VOXGRAD_SEED={SEED} repeats it")
    made = TensorFlow()
    yield made
    made.close()


def test_every_op_takes_part() -> None:
    """Volume is this package's own; Abort and Placeholder only end a run; handles of a session do not pass from step to
    step of a script there; LMDB is removed from TensorFlow.
    """
    covered = {name for _, ops, _ in PARTS.values() for name in ops} | set(FAMILIES)
    handles = {"GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor", "DeleteSessionTensor"}
    assert set(OPS) - covered == {"Volume", "LMDBReader", *handles}


@pytest.mark.parametrize(("part", "op"), [(part, op) for part, (_, ops, _) in PARTS.items() for op in ops])
def test_the_same_as_tensorflow(tensorflow: TensorFlow, part: str, op: str) -> None:
    run, _, share = PARTS[part]
    report = run(tensorflow, op, SEED, max(1, CALLS // share))
    assert not report.found, f"seed {SEED}: {len(report.found)} of {report.calls} differ\n" + "\n\n".join(report.found)
