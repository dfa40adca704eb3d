# SPDX-License-Identifier: Apache-2.0
"""Blocks that are on the page and do not do their work: bypassed ones pass an input on, muted ones do not run.

A bypassed block is an Identity of its first input that has the type of its output, for everyone who infers, runs,
differentiates, traces or exports the page; it keeps its op, its attributes and all of its wires for the day on which it
works again. A muted block is not run, and nothing that reads from it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from voxgrad.catalog import registry
from voxgrad.catalog.model import Op
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.kernels.arraywise.evaluation import find_kernel

if TYPE_CHECKING:
    from voxgrad.graph.block import Block, Output
    from voxgrad.graph.page import Page, Store

WORKING, BYPASSED, MUTED = "", "bypassed", "muted"
MODES = (WORKING, BYPASSED, MUTED)


@lru_cache(maxsize=1024)
def passing(pin: str, output: str) -> Op:
    """An Identity whose pins are called so."""
    op = registry.OPS["Identity"]
    return replace(
        op,
        inputs=(replace(op.inputs[0], name=pin),),
        outputs=(replace(op.outputs[0], name=output, shape=f"shape of {pin}"),),
        linear_in=(pin,),
        infer=lambda call, faults: (call.inputs[pin],),
    )


def passed_pins(block: Block) -> tuple[str, str] | None:
    """The input that a block passes on where it is bypassed, and its output; None where it has no such pair."""
    own = block.own
    if own.op is not None:
        outputs = own.op.outputs
        if len(outputs) != 1 or outputs[0].many:
            return None
        alike = (item.name for item in own.op.inputs if item.type == outputs[0].type and not item.host)
        pin = next(alike, None)
        return None if pin is None else (pin, outputs[0].name)
    page = block.own_page
    return None if page is None else _pins_of_page(page)


def _pins_of_page(page: Page) -> tuple[str, str] | None:
    """The same of a page that is used as a block: types are those that it has by itself."""
    if len(page.outputs) != 1:
        return None
    ((name, output),) = page.outputs.items()
    known = page.infer()
    wanted = known.spec(output).dtype
    entries = zip(page.input_names, page.input_blocks, strict=True)
    pin = next((pin for pin, entry in entries if wanted is None or known.spec(entry.output(0)).dtype is wanted), None)
    return None if pin is None else (pin, name)


def check_mode(block: Block, mode: str) -> None:
    """An error where a block cannot be in a mode."""
    if mode not in MODES:
        wanted = f"be {', '.join(map(repr, MODES[:-1]))} or {MODES[-1]!r}"
        raise InvalidArgumentError(Fault("VG003", "Page.set_mode", "mode", wanted, repr(mode)[:60]))
    if mode == BYPASSED and passed_pins(block) is None:
        raise InvalidArgumentError(cannot_pass(block, "Page.set_mode"))


def cannot_pass(block: Block, op: str) -> Fault:
    """What is wrong with a bypassed block that has nothing to pass on."""
    wanted = "have one output, and an input of its type, to be bypassed"
    return Fault("VG069", op, block.name, wanted, block.own.op_name or f"the page {block.own.uses!r}", "Mute it.")


def muted_outputs(store: Store) -> list[Output]:
    """The outputs of the muted blocks of a page."""
    return [output for block in store.blocks.values() if block.mode == MUTED for output in block.outputs]


def working(blocks: Iterable[Block]) -> list[Block]:
    """Those that are not muted."""
    return [block for block in blocks if block.mode != MUTED]


def silent(page: Page) -> dict[Output, str]:
    """The outputs that a run of the page does not give, with the name of the muted block before each of them."""
    return _silent(page, {}, "", ())


def _silent(page: Page, given: Mapping[Output, str], prefix: str, entries: Sequence[Block]) -> dict[Output, str]:
    from voxgrad.graph.block import Output
    from voxgrad.graph.order import order

    found = dict(given)
    for block in order(page.blocks).blocks:
        if block.mode == MUTED and block not in entries:
            found |= dict.fromkeys(block.outputs, prefix + block.name)
            continue
        read = [one for many in block.sources.values() for one in many if isinstance(one, Output)]
        dead = [found[one] for one in read if one in found]
        used = block.used_page
        if used is not None:
            pins = zip(used.input_names, used.input_blocks, strict=True)
            sources = {Output(entry, 0): block.sources.get(pin, [None])[0] for pin, entry in pins}
            inner = {entry: found[one] for entry, one in sources.items() if isinstance(one, Output) and one in found}
            # What is inside runs as far as it can.
            inside = _silent(used, inner, f"{prefix}{block.name}/", used.input_blocks)
            found |= {Output(block, at): inside[one] for at, one in enumerate(used.outputs.values()) if one in inside}
        elif dead and (len(dead) == len(read) or not _takes_dead(block)):
            found |= {output: dead[0] for output in block.outputs if output not in found}
    return found


def _takes_dead(block: Block) -> bool:
    """Merge has a result as long as one of its inputs has."""
    return block.op is not None and block.op.problem is None and find_kernel(block.op.kernel).dead


def refuse_muted(blocks: Iterable[Block], op: str) -> list[Fault]:
    """What stops blocks from going where nothing can be muted, one fault per muted block."""
    remedy = "Let it work again, bypass it, or remove it."
    return [
        Fault("VG054", op, block.name, "not be muted", "a muted block", remedy)
        for block in blocks
        if block.mode == MUTED
    ]
