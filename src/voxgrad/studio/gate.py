# SPDX-License-Identifier: Apache-2.0
"""What stands before every run of a page: its problems, its size, the files that it wants."""

from __future__ import annotations

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import outermost
from voxgrad.graph.page import Page
from voxgrad.studio import grants, messages
from voxgrad.studio.analyse import needed
from voxgrad.studio.jobs import roots_of
from voxgrad.studio.limits import RunLimits


def allowed(page: Page, limits: RunLimits, asked: list[str] | None) -> list[str]:
    """The blocks to run, after everything that can be known before has been found right and small enough."""
    roots = roots_of(page) if asked is None else list(dict.fromkeys(page.block(name).name for name in asked))
    reached = needed(page, roots)
    used, names = set(reached), {block.name for block in page.blocks}
    wanted = [one for one in grants.wanted(page, page.files) if outermost(one.block, names) in used]
    if wanted:
        raise InvalidArgumentError(_refused(one) for one in wanted)
    faults = [one.fault for one in page.problems() if outermost(one.block, names) in used]
    faults += limits.faults(page.estimate(), reached)
    if faults:
        raise InvalidArgumentError(faults)
    return roots


def _refused(file: messages.WantedFile) -> Fault:
    wanted = "lie in files/ of the folder that is open, or in a folder that was allowed"
    remedy = "Put the file there, or allow its folder: Files of the page, in the command palette."
    return Fault("VG056", file.op, file.block, wanted, repr(file.name[:200]), remedy)
