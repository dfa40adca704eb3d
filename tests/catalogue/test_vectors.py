# SPDX-License-Identifier: Apache-2.0
"""Every ordinary op gives what TensorFlow gave: values, types, shapes and gradients."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from tests.catalogue.eager import call, gradients
from tests.catalogue.tolerance import allowed, distance
from tests.grouped import grouped
from tests.vectors.catalogue.load import Recorded, archive, recorded
from voxgrad.catalog.registry import OPS


def _flat(values: Any) -> list[Any]:
    return [one for value in values for one in (_flat(value) if isinstance(value, (list, tuple)) else [value])]


def by_op(*, gradient: bool = False) -> dict[str, list[Recorded]]:
    made: dict[str, list[Recorded]] = defaultdict(list)
    for one in recorded():
        if one.gradients or not gradient:
            made[one.case.op].append(one)
    return made


def check_outputs(one: Recorded, got: list[Any]) -> None:
    found, wanted = _flat(got[: len(one.outputs)]), _flat(one.outputs)
    assert len(found) == len(wanted), one.id
    for index, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{one.id} output {index}"
        gap = distance(a, b, one.case.op)
        assert gap <= allowed(one.case.op), f"{one.id} {one.case.attrs} output {index}: {gap} ulps off\n{a}\n{b}"


def test_the_recording_is_whole() -> None:
    assert archive().manifest["tensorflow"].startswith("2.21")
    assert len(recorded()) > 2000


@grouped("op", by_op(), by=lambda op: OPS[op].group)
def test_outputs(op: str) -> None:
    for one in by_op()[op]:
        inputs = [one.case.inputs[item.name] for item in OPS[op].inputs]
        check_outputs(one, call(OPS[op], inputs, one.case.attrs))


@grouped("op", by_op(gradient=True), by=lambda op: OPS[op].group)
def test_gradients(op: str) -> None:
    for one in by_op(gradient=True)[op]:
        found = gradients(one.case)
        for name, wanted in one.gradients.items():
            for a, b in zip(_flat([found[name]]), _flat([wanted]), strict=True):
                assert a.shape == b.shape, f"{one.id} {name}"
                # Sums of a few products each: a handful of roundings, relative to the largest.
                scale = np.nanmax(np.abs(b), initial=1.0)
                limit = 64 * np.finfo(b.dtype).eps * scale if op not in ("Igamma", "Igammac") else 1e-10
                np.testing.assert_allclose(a, b, rtol=0, atol=limit, err_msg=f"{one.id} {name} {one.case.attrs}")
