# SPDX-License-Identifier: Apache-2.0
"""What is given to a run, checked against the page before anything runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from voxgrad.arrays.kinds import Unfit
from voxgrad.arrays.limits import check_repeated, check_size
from voxgrad.catalog.dims import Dim, all_known, shapes_differ
from voxgrad.catalog.model import Spec
from voxgrad.catalog.shapes import memory_of
from voxgrad.errors import Fault, Faults, InvalidArgumentError, show
from voxgrad.graph.block import Block, Output
from voxgrad.graph.infer import Inference
from voxgrad.graph.page import Page
from voxgrad.graph.values import Array, to_array

Feeds = Mapping[Any, Any]
"""Values by Output, by block or by name."""


def feed_arrays(page: Page, feeds: Feeds) -> dict[Output, Array]:
    """Feeds as arrays; all that is wrong with them is told at once."""
    faults = Faults("ClientSession")
    values: dict[Output, Array] = {}
    sizes: dict[str, tuple[int, str]] = {}
    inference = page.infer()
    for which, value in feeds.items():
        with collected(faults):
            output = page.output(which)
            spec = inference.spec(output)
            try:
                array = to_array(value, spec.dtype, output.block.name)
            except Unfit as error:
                error.tell(faults, output.block.name)
                continue
            values[output] = array
            check_repeated("ClientSession", output.block.name, array, faults)
            check_feed(output, array, spec, sizes, faults)
    faults.raise_if_any()
    return values


def too_large(blocks: Sequence[Block], inference: Inference) -> list[Fault]:
    """Results that the machine cannot hold, seen before anything is allocated."""
    found: list[Fault] = []
    for block in blocks:
        specs = [spec for spec in inference.specs.get(block, ()) if spec.dtype and all_known(spec.shape)]
        faults = Faults(block.op_name or block.uses)
        check_size(block.op_name, sum(map(memory_of, specs)), faults)
        found.extend(replace(fault, argument=block.name) for fault in faults.found)
    return found


def unfed(blocks: Sequence[Block], fed: Mapping[Output, Any]) -> list[Fault]:
    """Placeholders that a run needs and was not given."""
    return [
        Fault(
            "VG001", "Placeholder", block.name, "be fed a value", "none", f"Give it in feeds: {{'{block.name}': ...}}."
        )
        for block in blocks
        if block.op_name == "Placeholder" and block.outputs[0] not in fed
    ]


def check_feed(output: Output, array: Array, spec: Spec, sizes: dict[str, tuple[int, str]], faults: Faults) -> None:
    """A feed fits the shape of its output; one symbol means one size in all feeds."""
    name = output.block.name
    if shapes_differ(array.shape, spec.shape):
        wanted = f"be fed a value of shape {show(list(spec.shape or ()))}"
        faults.add("VG067", name, wanted=wanted, got=show(list(array.shape)))
        return
    for size, dim in zip(array.shape, spec.shape or (), strict=False):
        if not isinstance(dim, Dim):
            continue
        if str(dim) in dim.names:
            known, where = sizes.setdefault(str(dim), (size, name))
            if known != size:
                faults.add("VG067", name, wanted=f"have {dim} = {known}, as {where} has", got=show(list(array.shape)))


@contextlib.contextmanager
def collected(faults: Faults) -> Iterator[None]:
    """Faults of what is tried here join the others."""
    try:
        yield
    except InvalidArgumentError as error:
        faults.found.extend(error.faults)
