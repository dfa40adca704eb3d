# SPDX-License-Identifier: Apache-2.0
"""Pages that make no sense: every one gives problems, errors of ours, or numbers; never a crash."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.catalog import registry
from voxgrad.catalog.model import Attr, Op
from voxgrad.graph.block import Output, Value
from voxgrad.graph.page import Page

PLAIN = {
    "int": 1, "ints": [1, 1], "float": 0.5, "floats": [0.5], "bool": True, "string": "SAME", "strings": ["a"],
    "type": "float32", "types": ["float32"], "shape": ["N", 2], "shapes": [["N", 2]], "tensor": [1.0, 2.0],
}  # fmt: skip
ODD: list[Any] = [
    None, True, 0, -1, 5, 2**31, 2**63, -(2**70), 0.5, math.nan, math.inf, "", "same", "NDHWC", "DT_FLOAT", "\0",
    b"\xff", "x" * 999, [], [1], [1, 2, 2, 2, 1], [0] * 5, [-1] * 5, [2**40] * 5, [1.5] * 5, ["a"], [[1, 2], [3]],
    [None, "N", -1], {}, {"a": 1}, object(), np.ones(3), np.float32(2), np.array(["a"]), np.array([object()]),
    np.ones((0, 2)), 1 + 2j, np.zeros((1, 2, 2, 2, 1), np.float32), [10**9] * 5, 10**18, [2**62, 2**62],
]  # fmt: skip
SHAPES: list[Any] = [None, [], ["N"], ["N", "M"], ["N", "H", "W", "C"], ["N", "D", "H", "W", "C"], [2, 3]]


def plain(attr: Attr) -> Any:
    if attr.choices:
        return attr.choices[0]
    return [1] * attr.length if attr.length and attr.kind == "ints" else PLAIN[attr.kind]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_inference_takes_any_shape_into_any_op(shape: Any) -> None:
    page = Page("any")
    for op in registry.OPS.values():
        inputs: dict[str, Any] = {}
        for item in op.inputs:
            dtype = op.allowed(item.type)[0]
            source = page.add("Placeholder", attrs={"dtype": dtype, "shape": shape}).output(0)
            inputs[item.name] = [source, source] if item.many else source
        page.add(op, inputs, {attr.name: plain(attr) for attr in op.attrs if attr.required})
        page.add(op, inputs)
    assert {problem.code for problem in page.problems()} <= set(vg.errors.CODES)
    page.estimate()


def add_anything(page: Page, op: Op, outputs: list[Output], rng: random.Random) -> None:
    inputs = {}
    for item in op.inputs:
        count = rng.choice([0, 1, 2, 3]) if item.many else rng.choice([0, 1, 1, 1, 1, 1, 2])
        typed = [Value(rng.choice(ODD), rng.choice(["", "int32", "no"])) for _ in range(count)]
        inputs[item.name] = [rng.choice(outputs) if outputs and rng.random() < 0.6 else one for one in typed]
    attrs = {attr.name: rng.choice(ODD) if rng.random() < 0.3 else plain(attr) for attr in op.attrs}
    outputs.extend(page.add(op, inputs, attrs).outputs[:4])


@pytest.mark.parametrize("seed", range(4))
def test_random_pages_never_crash(seed: int) -> None:
    rng = random.Random(seed)
    ops = list(registry.OPS.values())
    for _ in range(60):
        page, outputs = Page("random"), list[Output]()
        for _ in range(8):
            add_anything(page, rng.choice(ops), outputs, rng)
            problems = page.problems()
            for problem in problems:
                assert problem.code in vg.errors.CODES and str(problem) and problem.as_dict()
            fixes = [fix for problem in problems for fix in problem.fixes]
            if fixes:
                page.apply(rng.choice(fixes))
            page.estimate()
        for output in rng.sample(outputs, min(4, len(outputs))):
            try:
                with vg.limits(bytes=2**24):
                    vg.ClientSession(page, log=lambda line: None).run(output)
            except vg.VoxgradError as error:
                assert error.faults
