# SPDX-License-Identifier: Apache-2.0
"""What is allowed and most likely not meant: shapes fit, the page runs, and its numbers mean nothing.

A max-pool gradient compares the cells of orig_input with orig_output, so that it answers for any orig_output
(docs/decisions/0002). It is the gradient of a pool only where orig_output is the pool of orig_input. Values are looked
at where they follow from constants; what is fed or read from files is left to the person.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from voxgrad.catalog import registry
from voxgrad.catalog.model import Op, Side
from voxgrad.errors import show
from voxgrad.graph.block import Block, Output, outermost
from voxgrad.graph.fixes import Fixes, as_the_pool, computed_pool, finite, ones_instead, removed, rewire
from voxgrad.graph.idle import idle
from voxgrad.graph.infer import Inference
from voxgrad.graph.known import MOST_LOOKED_AT, Known
from voxgrad.graph.meant import exchanged
from voxgrad.graph.order import needs, order
from voxgrad.graph.problems import PinProblem


def warnings_of(inference: Inference) -> list[PinProblem]:
    """The warnings of a page, in the order of its blocks; a block that is wrong, or whose pool is, has none."""
    return _Look(inference).warnings()


def left_out(inference: Inference) -> set[Block]:
    """Blocks without any wire that miss something: a run of the whole page does not wait for them."""
    wrong = {problem.block for problem in inference.problems()}
    named = _named(inference)
    return {
        block
        for block in inference.store.blocks.values()
        if block.name in wrong and block not in named and not block.readers and not needs(block)
    }


def _named(inference: Inference) -> set[Block]:
    """Blocks that the page itself names."""
    store = inference.store
    outputs = {output.block for output in store.outputs.values()}
    return outputs | {*store.targets, *store.initializers, *store.inputs}


class _Look:
    """One look at a page."""

    def __init__(self, inference: Inference):
        self.inference = inference
        self.wrong = {outermost(problem.block, inference.store.blocks) for problem in inference.problems()}
        self.blocks = list(inference.store.blocks.values())
        self.gradients = [block for block in self.blocks if is_gradient(block) and block.name not in self.wrong]
        right = [block for block in self.blocks if block.name not in self.wrong]
        self.known = Known(inference, self.gradients, right)
        self.used = _used(inference)

    def warnings(self) -> list[PinProblem]:
        found: list[PinProblem] = []
        zero: set[Block] = set()
        for block in self.blocks:
            inner = warnings_of(self.inference.inner[block]) if block in self.inference.inner else []
            found += [replace(one, block=f"{block.name}/{one.block}", fixes=()) for one in inner]
            if block.name in self.wrong:
                continue
            if block in self.gradients:
                found += self._other_forward(block) or list(self._all_zero(block, zero))
            else:
                found += self._idle(block)
            found += [*self._not_finite(block), *self._no_number(block), *self._unused(block)]
        return found

    def _warn(self, block: Block, pin: str, code: str, wanted: str, got: str, remedy: str, fixes: Fixes) -> PinProblem:
        return PinProblem(block.name, pin, block.op_name, code, wanted, got, remedy, tuple(fixes))

    # VG080: the gradient of something else

    def _other_forward(self, block: Block) -> list[PinProblem]:
        assert block.op is not None
        pool = forward_of(block.op)
        if pool is None:
            return self._other_end(block)
        told = self._other_maxima(block, pool) if block.op.maxima else None
        if told is not None:
            got, fixes = told
            wanted, remedy = f"be the {pool.name} of orig_input", "As it is, the result is not a gradient of that pool."
            return [self._warn(block, block.op.maxima, "VG080", wanted, got, remedy, fixes)]
        return [] if block.op.maxima else self._other_attributes(block, pool)

    def _other_end(self, block: Block) -> list[PinProblem]:
        """A gradient that takes the input of its forward block where its output is meant, or the other way round."""
        told = exchanged(block)
        if told is None or told[3].name in self.wrong:
            return []
        pin, taken, end, forward, source = told
        got, remedy = f"{taken.path}, its other end", "As it is, the result is not its gradient."
        fix = rewire(f"Wire {pin} to {source.path}", source, block, pin)
        return [self._warn(block, pin, "VG080", f"be {source.path}, what {forward.name} {end}", got, remedy, [fix])]

    def _other_maxima(self, block: Block, pool: Op) -> tuple[str, Fixes] | None:
        """What is given as the maxima and is not, with the repairs."""
        assert block.op is not None
        inputs, outputs = (block.sources.get(name, []) for name in (block.op.inputs[0].name, block.op.maxima))
        if len(inputs) != 1 or len(outputs) != 1 or not isinstance(y := outputs[0], Output):
            return None
        if y.block.name in self.wrong:
            return None
        computed = computed_pool(self.inference, block)
        if y.block.op is pool:
            if y.block.sources.get(pool.inputs[0].name) != inputs:
                return f"{y.block.name}, the pool of another input", computed
            differ = self._different(block, y.block, pool)
            told = f"{y.block.name}, which has {_listed(differ)}"
            return (told, [as_the_pool(block, y.block, differ), *computed]) if differ else None
        got = self._other_values(block, pool)
        return (got, computed) if got else None

    def _attrs(self, block: Block, pool: Op) -> dict[str, Any]:
        """The attributes of a pool, or those that a gradient of it has."""
        given = self.inference.calls[block].attrs
        return {attr.name: given[attr.name] for attr in pool.attrs if attr.name in given}

    def _different(self, block: Block, forward: Block, pool: Op) -> dict[str, Any]:
        """The attributes in which a gradient is not what its forward block is, with what that has."""
        own, other = self._attrs(block, pool), self._attrs(forward, pool)
        return {name: other[name] for name in own if name in other and other[name] != own[name]}

    def _other_values(self, block: Block, pool: Op) -> str:
        """Where the values given as maxima are not, where both they and the input of the pool are known."""
        assert block.op is not None
        given, stated = (self.known.input(block, name) for name in (block.op.inputs[0].name, block.op.maxima))
        if given is None or stated is None:
            return ""
        made = self.known.run(pool, {pool.inputs[0].name: given, **self._attrs(block, pool)})
        if made is None or made[0].shape != stated.shape:
            return ""  # a wrong shape is told elsewhere
        differ = np.argwhere(~((made[0] == stated) | ((made[0] != made[0]) & (stated != stated))))
        if not len(differ):
            return ""
        at = tuple(differ[0].tolist())
        return f"{stated[at]} at {show(list(at))}, where the pool is {made[0][at]}"

    def _other_attributes(self, block: Block, pool: Op) -> list[PinProblem]:
        """A gradient that is told the shape of an input which the page pools, or convolves, in another way only."""
        assert block.op is not None
        inputs = _differentiated(block)
        forwards = [
            other for other in self.blocks
            if other.op is pool and other.name not in self.wrong
            and all(other.sources.get(name) == [source] for name, source in inputs.items())
        ]  # fmt: skip
        if len(inputs) < len(pool.inputs) or not forwards:
            return []
        differ = [self._different(block, other, pool) for other in forwards]
        if not all(differ):
            return []
        name, fix = next(iter(differ[0])), as_the_pool(block, forwards[0], differ[0])
        got = f"{show(self._attrs(block, pool)[name])}, where {forwards[0].name} has {_listed(differ[0])}"
        wanted = f"be that of the {pool.name} that this gradient belongs to"
        return [self._warn(block, name, "VG080", wanted, got, "As it is, it is not the gradient of that block.", [fix])]

    # VG081: nothing but zeros

    def _all_zero(self, block: Block, zero: set[Block]) -> Iterator[PinProblem]:
        made = self.known.value(Output(block, 0))
        if made is None or made.size == 0 or made.any():
            return
        zero.add(block)
        pins = [item.name for item in block.inputs if not item.host]
        values = {name: self.known.input(block, name) for name in pins}
        nothing = [name for name, value in values.items() if value is not None and value.size and not value.any()]
        for name in nothing:
            source = block.sources[name][0]
            if isinstance(source, Output) and (source.block in zero or source.block.op_name == "ZerosLike"):
                return  # told where it begins, or meant: the gradient of a gradient of a pool is made so
        why = f"zero everywhere, because {nothing[0]} is" if nothing else _why_zero(values)
        fixes = ones_instead(self.inference, block, nothing[0]) if nothing else []
        yield self._warn(
            block, nothing[0] if nothing else "", "VG081", "be a gradient of something", why,
            "Nothing that reads it will ever change.", fixes,
        )  # fmt: skip

    # VG081, VG084: the same whatever comes in

    def _idle(self, block: Block) -> list[PinProblem]:
        told = idle(self.inference, block, self.known.input)
        return (
            []
            if told is None
            else [self._warn(block, told.pin, told.code, told.wanted, told.got, told.remedy, told.fixes)]
        )

    # VG082: not a number

    def _no_number(self, block: Block) -> Iterator[PinProblem]:
        """NaN that begins here: all that comes in is finite."""
        made = self.known.value(Output(block, 0)) if block.op is not None and block.op.inputs else None
        if made is None or made.dtype.kind not in "fV" or made.astype(np.float64).size == 0:
            return
        bad = np.argwhere(np.isnan(made.astype(np.float64)))
        values = {item.name: self.known.input(block, item.name) for item in block.inputs}
        known = [one.astype(np.float64) for one in values.values() if one is not None and one.dtype.kind in "fViu"]
        if not len(bad) or not all(np.isfinite(one).all() for one in known):
            return
        at = tuple(bad[0].tolist())
        there = [f"{name} is {one[at]}" for name, one in values.items() if one is not None and one.shape == made.shape]
        got = f"nan at {show(list(at))}, {len(bad)} of {made.size}"
        remedy = f"There, {' and '.join(there)}." if there else "All that comes in is finite."
        yield self._warn(block, "", "VG082", "have a result for its constants", got, remedy, [])

    def _not_finite(self, block: Block) -> Iterator[PinProblem]:
        call = self.inference.calls.get(block)
        value = call.attrs.get("value") if call is not None and call.op.name == "Const" else None
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fV" or value.size > MOST_LOOKED_AT:
            return
        if block.readers and all(reader.op_name in _ASK_FOR_NAN for reader in block.readers):
            return
        wide = value if value.dtype.kind != "V" else value.astype(np.float32)
        bad = np.argwhere(~np.isfinite(wide))
        if len(bad):
            at = tuple(bad[0].tolist())
            got = f"{wide[at]} at {show(list(at))}, {len(bad)} of {value.size}"
            remedy = "Whatever is computed from it is not a number either."
            yield self._warn(block, "value", "VG082", "be finite", got, remedy, finite(block, value))

    # VG083: for nobody

    def _unused(self, block: Block) -> Iterator[PinProblem]:
        if block not in self.used:
            wanted, remedy = "feed another block, or be an output of the page", "Wire it, or take it away."
            yield self._warn(block, "", "VG083", wanted, "nothing that reads it", remedy, [removed(block)])


_ASK_FOR_NAN = ("IsNan", "IsInf", "IsFinite", "MulNoNan", "CheckNumerics")


def _listed(differ: dict[str, Any]) -> str:
    return ", ".join(f"{name} {show(value)}" for name, value in differ.items())


def is_gradient(block: Block) -> bool:
    """Blocks that compute a gradient: of the windowed families, or by the name of their op."""
    return block.op is not None and (bool(block.op.of) or block.op.name.endswith("Grad")) and bool(block.op.inputs)


def forward_of(op: Op) -> Op | None:
    """The pool or convolution that a windowed gradient belongs to."""
    return registry.OPS[op.of] if op.of else None


def _differentiated(block: Block) -> dict[str, Output]:
    """The inputs of the forward block that a gradient is one of, as far as its wires tell.

    A tensor on the side of the cells or taps is what the forward block reads; a stated shape comes from its Shape.
    """
    op = block.op
    assert op is not None
    forward, found = registry.OPS[op.of], {}
    for item in op.inputs:
        sources = block.sources.get(item.name, [])
        source = sources[0] if len(sources) == 1 and isinstance(sources[0], Output) else None
        if item.host and source is not None and source.block.op_name == "Shape":
            behind = source.block.sources.get("input", [])
            source = behind[0] if len(behind) == 1 and isinstance(behind[0], Output) else None
        elif item.host:
            continue
        read = next((one for one in forward.inputs if one.side is item.side and item.side is not Side.WINDOWS), None)
        if source is not None and read is not None:
            found[read.name] = source
    return found


def _why_zero(values: dict[str, Any]) -> str:
    features = values.get("features")
    if features is not None and features.size and not (features > 0).any():
        return "zero everywhere, because no element of features is above 0"
    return "zero everywhere, for the constants that it is computed from"


def _used(inference: Inference) -> set[Block]:
    """All blocks that something comes of. On a page inside another that is what its outputs need; on the page itself
    every result is shown, and only a source that nobody reads is of no use."""
    shown = {one.output.block for display in inference.store.displays for one in display.of}
    blocks, named = list(inference.store.blocks.values()), _named(inference) | shown
    if inference.is_inner:
        effects = [block for block in blocks if block.uses or block.op is None or block.op.stateful]
        return set(order([*named, *effects]).blocks)
    wired = any(block.readers for block in blocks)
    return {block for block in blocks if not wired or block in named or block.readers or not _is_source(block)}


def _is_source(block: Block) -> bool:
    """A block that only gives: a constant, a placeholder, a volume."""
    return block.op is not None and not block.op.inputs and bool(block.op.outputs) and not block.op.stateful
