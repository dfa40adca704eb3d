# SPDX-License-Identifier: Apache-2.0
"""What is known of a page without running it, as messages: types and shapes of pins, problems, costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from voxgrad.catalog import registry
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Input, Op, Output, Spec
from voxgrad.errors import Fault
from voxgrad.formats.constants import Writer
from voxgrad.formats.op_page import op_page
from voxgrad.formats.text.forms import forms_of
from voxgrad.graph.block import Block
from voxgrad.graph.data import plain
from voxgrad.graph.infer import Inference
from voxgrad.graph.lint import left_out
from voxgrad.graph.order import order
from voxgrad.graph.page import Page
from voxgrad.graph.problems import PinProblem
from voxgrad.studio import messages
from voxgrad.studio.limits import RunLimits
from voxgrad.volumes.grids import lattices
from voxgrad.volumes.orientation import placed_axes


def fault_data(fault: Fault) -> messages.FaultData:
    """A fault as a message."""
    return messages.FaultData(**fault.as_dict())


def analyse(page: Page, limits: RunLimits, newer: Sequence[PinProblem] = ()) -> messages.Analysis:
    """Everything that an editor shows after an edit; `newer` says what the library has newer versions of."""
    start = time.perf_counter()
    inference = page.infer()
    pins: dict[str, dict[str, messages.PinData]] = {}
    _pins(inference, "", pins)
    estimate = page.estimate()
    idle = {block.name for block in left_out(inference)}
    found = page.problems()
    problems = [_problem(one) for one in found if one.block not in idle]
    problems += [_limit_problem(page, one) for one in limits.faults(estimate, estimate.blocks)]
    costs = {
        name: messages.BlockCost(bytes=_amount(cost.bytes), flops=_amount(cost.flops))
        for name, cost in estimate.blocks.items()
    }
    return messages.Analysis(
        pins=pins,
        problems=problems,
        warnings=[_problem(one) for one in (*(one for one in found if one.block in idle), *page.warnings(), *newer)],
        estimate=messages.EstimateData(blocks=costs, peak_bytes=estimate.peak_bytes, flops=_amount(estimate.flops)),
        order=[block.name for block in order(page.blocks).blocks],
        seconds=time.perf_counter() - start,
    )


def places(page: Page) -> messages.Places:
    """Where the results of a page lie in space."""
    found = {path: asdict(placed_axes(lattice)) for path, lattice in lattices(page).items()}
    return messages.Places(places={path: messages.Place(**told) for path, told in found.items()})


def _amount(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _pins(inference: Inference, prefix: str, found: dict[str, dict[str, messages.PinData]]) -> None:
    for block in inference.store.blocks.values():
        found[prefix + block.name] = _pins_of(inference, block)
        if block in inference.inner:
            _pins(inference.inner[block], f"{prefix}{block.name}/", found)


def _pins_of(inference: Inference, block: Block) -> dict[str, messages.PinData]:
    pins = {}
    for pin in block.inputs:
        specs = inference.input_specs(block, pin.name)
        for at, spec in enumerate(specs):
            pins[f"{pin.name}[{at}]" if pin.many else pin.name] = pin_data(spec, "input")
    specs = inference.specs.get(block, ())
    for name, spec in zip(block.output_names, specs, strict=False):
        # An op may give an output the name of an input; the result is what is shown then.
        pins[name] = pin_data(spec, "output")
    return pins


def pin_data(spec: Spec, direction: Any) -> messages.PinData:
    """What is known of one tensor."""
    dtype = spec.dtype.name if spec.dtype is not None else None
    shape = None if spec.shape is None else [_size(one) for one in spec.shape]
    # A size that nobody has named is open: conv[0], which tells such sizes apart, is no name for a person.
    told = ["?" if "[" in str(one) else str(one) for one in shape or ()]
    sizes = "[...]" if shape is None else f"[{','.join(told)}]"
    return messages.PinData(dtype=dtype, shape=shape, text=f"{dtype or '?'} {sizes}", direction=direction)


def _size(size: Any) -> int | str:
    return size if isinstance(size, int) else "?" if size is None else str(size)


def _problem(problem: PinProblem) -> messages.ProblemData:
    data = problem.as_dict()
    fixes = [
        messages.FixData(
            title=fix.title, edits=[{key: plain_json(value) for key, value in edit.items()} for edit in fix.edits]
        )
        for fix in problem.fixes
    ]
    return messages.ProblemData(**(data | {"fixes": fixes}), message=str(problem.fault))


def plain_json(value: Any) -> Any:
    """A value of an edit or a declaration as JSON has it; tensors keep their type."""
    if isinstance(value, Mapping):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item) for item in value]
    return Writer(None).encode(plain(value))


def _limit_problem(page: Page, fault: Fault) -> messages.ProblemData:
    block = fault.argument if fault.argument in page else ""
    return messages.ProblemData(
        block=block, pin="", op=page.block(block).op_name if block else "", code=fault.code, wanted=fault.wanted,
        got=fault.got, remedy=fault.remedy, message=str(fault), fixes=[],
    )  # fmt: skip


def ops() -> messages.Ops:
    """All declarations, for palette, property panel and documentation."""
    return messages.Ops(ops=[op_data(op) for op in registry.everything()])


def op_data(op: Op) -> messages.OpData:
    """One declaration."""
    return messages.OpData(
        name=op.name,
        group=op.group,
        package=op.package,
        summary=op.summary,
        doc=op.doc,
        laws=[messages.OpLaw(name=law.name, text=law.text) for law in op.laws],
        example=op.example,
        inputs=[
            messages.OpInput(
                name=item.name, types=_types(op, item), type_var=_variable(item), shape=item.shape, host=item.host,
                many=item.many, doc=item.doc, layout=item.layout,
            )
            for item in op.inputs
        ],
        attrs=[
            messages.OpAttr(
                name=attr.name, kind=attr.kind, default=None if attr.required else plain_json(attr.default),
                required=attr.required, choices=[plain_json(one) for one in attr.choices], length=attr.length,
                doc=attr.doc,
            )
            for attr in op.attrs
        ],
        outputs=[
            messages.OpOutput(
                name=item.name, types=_types(op, item), type_var=_variable(item), shape=item.shape, many=item.many,
                doc=item.doc, layout=item.layout, count=item.count,
            )
            for item in op.outputs
        ],
        aliases=list(op.aliases),
        differentiable=op.gradient is not None,
        stateful=op.stateful,
        family=op in registry.FAMILY,
    )  # fmt: skip


def op_help(op: Op, theme: str) -> messages.OpHelp:
    """The page of an op; its example runs for it."""
    page = op_page(op)
    return messages.OpHelp(
        formula=page.formula, block_svg=page.block_picture(theme), code=page.code,
        results=[messages.OpResult(path=one.path, spec=one.spec, text=one.text) for one in page.results],
        example_svg=page.example_picture(theme), slopes=list(page.slopes), gradient_svg=page.gradient_picture(theme),
        forms={item.name: list(forms_of(item)) for item in op.parameters}, differences=list(page.differences),
        deprecated=op.deprecated,
    )  # fmt: skip


def _types(op: Op, item: Input | Output) -> list[str]:
    return [dtype.name for dtype in op.allowed(item.type)]


def _variable(item: Input | Output) -> str | None:
    return None if isinstance(item.type, DType) else item.type


def needed(page: Page, roots: Sequence[str]) -> list[str]:
    """The names of the blocks that a run of these blocks executes, in order."""
    return [block.name for block in order([page.block(name) for name in roots]).blocks]
