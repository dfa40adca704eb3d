# SPDX-License-Identifier: Apache-2.0
"""Symbolic gradients: blocks that compute derivatives, added to the page from the declarations, to any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from voxgrad.arguments import checked
from voxgrad.catalog import packages, registry
from voxgrad.errors import Fault, Faults, InvalidArgumentError, UnimplementedError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.build import add_block, results_of
from voxgrad.graph.modes import MUTED
from voxgrad.graph.order import order
from voxgrad.graph.page import Page

DIFFERENTIABLE = ("float", "complex")
"""Kinds of element types that carry a gradient; integers stop it."""


@checked
def gradients(ys: Output | Sequence[Output], xs: Output | Sequence[Output], grad_ys: Any = None) -> list[Output | None]:
    """Add the blocks that compute the sum over ys of d(ys)/d(xs), one output per x; None where no path leads there.

        (dx,) = vg.gradients([y], [x])
        (ddx,) = vg.gradients([dx], [x], grad_ys=[v])        # any order

    `grad_ys` are the gradients to start from, outputs or arrays; ones where they are not given. The new blocks stand in
    a scope `gradients`, those of one block in `gradients/<block>_grad`; for a block that stands for a page, that is one
    block, of a page of inner gradients. Where a path meets an op that has no gradient nothing is added, and the error
    names the block.
    """
    targets = [ys] if isinstance(ys, Output) else list(ys)
    sources = [xs] if isinstance(xs, Output) else list(xs)
    if not targets:
        raise InvalidArgumentError(Fault("VG001", "gradients", "ys", "hold at least one output", "none"))
    page = targets[0].block.page
    for output in (*targets, *sources):
        page.output(output)
    given = [None] * len(targets) if grad_ys is None else grad_ys
    seeds = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(seeds) != len(targets):
        raise InvalidArgumentError(
            Fault("VG004", "gradients", "grad_ys", f"have {len(targets)} entries, as ys", str(len(seeds)))
        )
    before, pages = len(page.blocks), set(page.pages)
    try:
        found = _Backward(page, targets, sources).go(seeds)
    except Exception:
        page.remove(*page.blocks[before:])
        page.forget(*(page.pages.keys() - pages))
        raise
    # Rules make the gradients of all inputs of a block; those that nobody asked for are not left for people to read.
    needed = set(order([output.block for output in found if output is not None]).blocks)
    page.remove(*(block for block in page.blocks[before:] if block not in needed))
    page.forget(*(page.pages.keys() - pages - {block.uses for block in page.blocks}))
    return found


@dataclass(frozen=True, slots=True)
class _Node:
    """A block as the gradient of its op sees it; lists of tensors are lists."""

    inputs: list[Any]
    outputs: list[Any]
    attrs: dict[str, Any]


class Builder:
    """`build.<Op>(*inputs, **attrs)` puts a block into a scope, `build.<package>.<Op>(...)` one of a package."""

    def __init__(self, scope: Page, package: str = ""):
        self._scope = scope
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if not self._package and name not in registry.OPS and name in packages.names():
            return Builder(self._scope, name)
        op = registry.find(f"{self._package}.{name}" if self._package else name)

        def build(*inputs: Any, **attrs: Any) -> Any:
            return add_block(self._scope, op, inputs, attrs, None)

        return build


class _Backward:
    """One walk from ys back to xs."""

    def __init__(self, page: Page, ys: list[Output], xs: list[Output]):
        self.page = page
        self.ys = ys
        self.xs = xs
        self.scope = page.sub("gradients", unique=True)
        self.grads: dict[Output, list[Output]] = {}
        found = order([y.block for y in ys])
        if found.cycles:
            names = " <- ".join(block.name for block in found.cycles[0])
            raise InvalidArgumentError(Fault("VG062", "gradients", "ys", "not depend on themselves", names))
        self.blocks = found.blocks
        self.between = self._find_between()

    def _find_between(self) -> set[Block]:
        """The blocks through which xs reach further: those that read an x, or read from such a block."""
        wanted = set(self.xs)
        between: set[Block] = set()
        for block in self.blocks:
            if any(source in wanted or source.block in between for source in _sources(block)):
                if block.mode == MUTED:
                    remedy = "Let it work again, or bypass it."
                    raise InvalidArgumentError(
                        Fault("VG064", "gradients", block.name, "run, for a gradient through it", "muted", remedy)
                    )
                between.add(block)
        return between

    def go(self, seeds: list[Any]) -> list[Output | None]:
        """All gradients that xs need."""
        for index, (y, seed) in enumerate(zip(self.ys, seeds, strict=True)):
            self._add(y, self._seed(index, y, seed))
        for block in reversed(self.blocks):
            if block in self.between and any(output in self.grads for output in block.outputs):
                self._back_through(block)
        return [self._total(x) for x in self.xs]

    def _seed(self, index: int, y: Output, seed: Any) -> Output:
        name = f"grad_ys_{index}"
        if y.dtype is not None and y.dtype.kind not in DIFFERENTIABLE:
            raise InvalidArgumentError(Fault("VG011", "gradients", y.path, "be of a floating type", y.dtype.name))
        if isinstance(seed, Output):
            return self.page.output(seed)
        if seed is None:
            made: Output = add_block(self.scope, registry.find("OnesLike"), (y,), {}, name)
        else:
            made = add_block(self.scope, registry.find("Const"), (seed, y.dtype), {}, name)
        return made

    def _add(self, output: Output, grad: Output) -> None:
        self.grads.setdefault(output, []).append(grad)

    def _total(self, output: Output) -> Output | None:
        """The gradient of an output: all that flowed back to it, summed once."""
        found = self.grads.get(output)
        if found is None:
            return None
        if len(found) > 1:
            name = f"{output.block.name.replace('/', '_')}_sum" + (f"_{output.index}" if output.index else "")
            self.grads[output] = found = [add_block(self.scope, registry.find("AddN"), (found,), {}, name)]
        return found[0]

    def _back_through(self, block: Block) -> None:
        if block.used_page is not None:
            self._back_through_page(block)
            return
        rule = block.op.gradient if block.op is not None else None
        if rule is None or block.op is None:
            raise _no_gradient(block)
        node = node_of(block)
        dys = [_each(outputs, self._total) for outputs in node.outputs]
        build = Builder(self.scope.sub(f"{block.name}_grad"))
        try:
            dxs = rule(build, node, dys)
        except LookupError as error:
            raise UnimplementedError(
                Fault("VG064", block.op.name, block.name, "have a gradient", str(error))
            ) from error
        for inputs, made in zip(node.inputs, dxs, strict=True):
            pairs = (
                zip(inputs, made, strict=True) if isinstance(inputs, list) and made is not None else [(inputs, made)]
            )
            for source, grad in pairs:
                if isinstance(source, Output) and isinstance(grad, Output) and _carries(source):
                    self._add(source, grad)

    def _back_through_page(self, block: Block) -> None:
        """The gradient of a page that is used as a block is another such block, of its inner gradients."""
        from voxgrad.graph.page_gradients import page_gradient

        wanted = {
            pin: sources[0]
            for pin, sources in block.sources.items()
            for one in sources[:1]
            if isinstance(one, Output) and _carries(one) and (one in self.xs or one.block in self.between)
        }
        dys = [self._total(output) for output in block.outputs]
        for pin, grad in page_gradient(self.scope, block, dys, list(wanted)).items():
            source = wanted[pin]
            assert isinstance(source, Output)
            self._add(source, grad)


def node_of(block: Block) -> _Node:
    """A block as the gradient of its op sees it."""
    return _Node(*_operands(block), dict(_attrs(block)))


def _sources(block: Block) -> list[Output]:
    return [one for sources in block.sources.values() for one in sources if isinstance(one, Output)]


def _carries(source: Output) -> bool:
    dtype = source.dtype
    return dtype is None or dtype.kind in DIFFERENTIABLE


def _each(outputs: Any, function: Callable[[Output], Any]) -> Any:
    return [function(one) for one in outputs] if isinstance(outputs, list) else function(outputs)


def _operands(block: Block) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs in the order of the declaration; typed values as they are."""
    assert block.op is not None
    inputs = []
    for item in block.op.inputs:
        values = [one if isinstance(one, Output) else one.value for one in block.sources.get(item.name, ())]
        if not values and not item.many:
            raise InvalidArgumentError(
                Fault("VG001", block.op.name, f"{block.name}.{item.name}", "be connected", "nothing")
            )
        inputs.append(values if item.many else values[0])
    made = results_of(block, block.op)
    return inputs, list(made) if isinstance(made, tuple) else [made]


def _attrs(block: Block) -> dict[str, Any]:
    """The attributes of a block, defaults included."""
    call = block.page.infer().calls.get(block)
    return dict(call.attrs) if call is not None else {}


def _no_gradient(block: Block) -> UnimplementedError:
    faults = Faults(block.op_name or block.uses)
    remedy = "Put a StopGradient before it if no gradient should flow here."
    faults.add("VG064", block.name, wanted="be an op with a gradient", got=block.op_name or block.uses, remedy=remedy)
    return UnimplementedError(faults.found)
