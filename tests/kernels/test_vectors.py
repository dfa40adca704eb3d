# SPDX-License-Identifier: Apache-2.0
"""The reference and the kernels against recorded TensorFlow outputs."""

import numpy as np
import pytest

import voxgrad as vg
from tests.grouped import grouped
from tests.kernels.oracle import run, truth
from tests.vectors.load import Case, load_cases
from voxgrad.catalog.registry import FAMILY
from voxgrad.testing import assert_close
from voxgrad.testing.compare import EPSILON

SEMANTICS = {"eigen": "tf_cpu", "xla": "documented"}

# TensorFlow's own accidents, which no semantics promises: sentinels and NaN that depend on the channel count.
RECORDED = [case for case in load_cases() if "accident" not in case.tags]


def is_refused(case: Case) -> bool:
    """MaxPool3DGradGrad refuses empty tensors as TensorFlow's CPU kernel does; only XLA takes them."""
    return case.op == "MaxPool3DGradGrad" and any(array.size == 0 for array in case.inputs.values())


CASES = [case for case in RECORDED if not is_refused(case)]


def is_whole(case: Case) -> bool:
    """True for integers in float tensors: sums of them are exact in any order."""
    return all(
        np.isfinite(array.astype(np.float64)).all() and (array == np.round(array.astype(np.float64))).all()
        for array in case.inputs.values()
    )


def call_of(case: Case) -> dict[str, object]:
    return {**case.inputs, **case.attrs}


def test_the_vectors_cover_the_family() -> None:
    assert len(CASES) >= 400
    for op in FAMILY:
        mine = [case for case in CASES if case.op == op.name]
        assert len(mine) >= 40, op.name
        assert {case.backend for case in mine} == {"eigen", "xla"}
        assert {case.attrs["padding"] for case in mine} == {"SAME", "VALID"}


@grouped("case", filter(is_refused, RECORDED), name=lambda case: case.id)
def test_empty_second_gradients_are_refused(case: Case) -> None:
    assert case.backend == "xla"
    with pytest.raises(vg.InvalidArgumentError, match="VG017"):
        run(case.op, call_of(case))


@grouped("case", CASES, by=lambda case: f"{case.op}-{case.backend}", name=lambda case: case.id)
def test_reference_equals_tensorflow(case: Case) -> None:
    with vg.semantics(SEMANTICS[case.backend]):
        known = truth(case.op, call_of(case))
    if "low-precision-sum" in case.tags:
        # TensorFlow adds half and bfloat16 in their own precision; its error is measured in ops of that precision.
        bound = 16 * EPSILON[known.problem.output_dtype] * max(1.0, float(np.abs(known.value).max(initial=0)))
        assert np.abs(case.output.astype(np.float64) - known.value).max(initial=0) <= bound
        return
    known.check(case.output, exact=is_whole(case) and known.problem.map.of != "AvgPool3D", label=case.id)


@grouped("case", CASES, by=lambda case: f"{case.op}-{case.backend}", name=lambda case: case.id)
def test_kernels_equal_tensorflow(case: Case) -> None:
    with vg.semantics(SEMANTICS[case.backend]):
        result = run(case.op, call_of(case))
        known = truth(case.op, call_of(case))
    assert result.dtype == case.output.dtype
    exact = is_whole(case) and known.problem.map.of != "AvgPool3D"
    known.check(result, exact=exact, label=case.id)
    if exact and "low-precision-sum" not in case.tags:
        assert_close(result, case.output, label=case.id)
