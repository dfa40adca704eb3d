# SPDX-License-Identifier: Apache-2.0
"""Every recorded call as a block: inference says before a run what the run gives, with numbers and with symbols."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import voxgrad as vg
from tests.catalogue.eager import weights
from tests.grouped import grouped
from tests.vectors.catalogue.cases import Case
from tests.vectors.catalogue.load import recorded
from voxgrad.catalog.dims import Dim, shapes_differ
from voxgrad.catalog.dtypes import plain
from voxgrad.catalog.registry import OPS
from voxgrad.graph.block import Output
from voxgrad.graph.page import Page
from voxgrad.graph.values import spec_of


def by_op() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for one in recorded():
        found.setdefault(one.case.op, []).append(one.case)
    return found


CASES = by_op()


def put_on_page(page: Page, case: Case, symbolic: bool) -> tuple[list[Output], dict[str, Any]]:
    """A block with the inputs of a case: constants, or Placeholders of which only the rank is known."""
    feeds: dict[str, Any] = {}

    def entry(value: Any, host: bool) -> Output:
        array = np.asarray(value)
        spec = spec_of(array)
        if host or not symbolic:
            return page.add("Const", attrs={"value": array, "dtype": spec.dtype}).output(0)
        made = page.add("Placeholder", attrs={"dtype": spec.dtype, "shape": [None] * array.ndim})
        feeds[made.name] = array
        return made.output(0)

    op = OPS[case.op]
    inputs = {
        item.name: [entry(one, item.host) for one in case.inputs[item.name]]
        if item.many
        else entry(case.inputs[item.name], item.host)
        for item in op.inputs
    }
    return list(page.add(op, inputs, case.attrs, name="tested").outputs), feeds


def numbers_of(page: Page, feeds: dict[str, Any]) -> dict[str, int]:
    return {
        str(dim): size
        for name, array in feeds.items()
        for dim, size in zip(page[name].output(0).shape or (), array.shape, strict=True)
    }


def runnable(cases: list[Case], symbolic: bool) -> Iterator[tuple[Case, Page, list[Output], dict[str, Any], list[Any]]]:
    for case in cases:
        page = Page("case")
        outputs, feeds = put_on_page(page, case, symbolic)
        assert [str(one) for one in page.problems()] == []
        yield case, page, outputs, feeds, vg.ClientSession(page, cache=False).run(outputs, feeds)


@grouped("name", [name for name in CASES if not OPS[name].stateful], by=lambda name: OPS[name].group)
def test_inference_predicts_the_run(name: str) -> None:
    for symbolic in (False, True):
        for case, page, outputs, feeds, values in runnable(CASES[name], symbolic):
            sizes = numbers_of(page, feeds)
            for output, value in zip(outputs, values, strict=True):
                spec = output.spec
                assert plain(spec.dtype) == spec_of(value).dtype, case
                if spec.shape is None:
                    assert symbolic or OPS[name].group not in ("math", "nn"), case
                    continue
                told = tuple(size.at(sizes) if isinstance(size, Dim) else size for size in spec.shape)
                assert not shapes_differ(told, value.shape), (case, told, value.shape)
                if not symbolic and spec.value is not None:
                    assert list(np.ravel(value)) == list(np.ravel(np.array(spec.value))), case


def entries(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@grouped("name", sorted({one.case.op for one in recorded() if one.gradients}), by=lambda name: OPS[name].group)
def test_gradients_on_a_page_are_those_of_tensorflow(name: str) -> None:
    for one in [one for one in recorded() if one.case.op == name and one.gradients]:
        page = Page("case")
        put_on_page(page, one.case, symbolic=False)
        block = page["tested"]
        first = list(block.outputs) if OPS[name].outputs[0].many else [block.output(0)]
        seeds = [weights(value.shape, value.dtype) for value in vg.ClientSession(page).run(first)]
        xs = [source for pin in one.gradients for source in block.sources[pin] if isinstance(source, Output)]
        found = vg.gradients(first, xs, seeds)
        assert [str(problem) for problem in page.problems()] == []
        wanted = [array for made in one.gradients.values() for array in entries(made)]
        for grad, value in zip(found, wanted, strict=True):
            if grad is None:
                assert not np.any(value), one.id
            else:
                result = vg.ClientSession(page).run(grad)
                np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-6, err_msg=one.id)
