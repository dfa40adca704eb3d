# SPDX-License-Identifier: Apache-2.0
"""Groups: blocks of a page under a common title and colour, which a drawing can show as one. They change no result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import Block

if TYPE_CHECKING:
    from voxgrad.graph.page import Page

COLOURS = ("grey", "blue", "green", "yellow", "red", "purple")


@dataclass(slots=True)
class Group:
    """Blocks under a title. A block is in one group at most."""

    title: str
    blocks: list[Block] = field(default_factory=list)
    colour: str = COLOURS[0]
    collapsed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The group as a page file has it."""
        data: dict[str, Any] = {"title": self.title, "blocks": [block.name for block in self.blocks]}
        data |= {"colour": self.colour} if self.colour != COLOURS[0] else {}
        return data | ({"collapsed": True} if self.collapsed else {})


def find(page: Page, title: str) -> Group | None:
    """The group with this title."""
    return next((one for one in page.groups if one.title == title), None)


def put(page: Page, title: str, changes: Mapping[str, Any]) -> None:
    """Make or change a group: its `blocks`, `colour`, whether it is `collapsed`, and its `name`, another title."""
    if not isinstance(title, str) or not title.strip():
        raise _refused("title", "be a text", title)
    group = find(page, title) or Group(title)
    blocks = list(dict.fromkeys(page.block(one) for one in changes.get("blocks", group.blocks)))
    colour, collapsed = changes.get("colour", group.colour), changes.get("collapsed", group.collapsed)
    name = changes.get("name", title)
    if colour not in COLOURS:
        raise _refused("colour", f"be one of {', '.join(COLOURS)}", colour)
    if not isinstance(collapsed, bool):
        raise _refused("collapsed", "be true or false", collapsed)
    if not isinstance(name, str) or not name.strip() or find(page, name) not in (None, group):
        raise _refused("name", "be a title that no other group has", name)
    if not blocks:
        raise _refused("blocks", "have a block", "none")
    leave(page, blocks, group)
    group.title, group.blocks, group.colour, group.collapsed = name, blocks, colour, collapsed
    if group not in page.groups:
        page.groups.append(group)


def leave(page: Page, blocks: Iterable[Block], to: Group | None = None) -> None:
    """Take blocks out of all groups but one; groups without blocks go."""
    gone = set(blocks)
    for group in page.groups:
        if group is not to:
            group.blocks = [one for one in group.blocks if one not in gone]
    page.groups[:] = [one for one in page.groups if one.blocks or one is to]


def carry_over(origin: Page, target: Page, copies: Mapping[Block, Block]) -> None:
    """Groups whose blocks were all copied to another page come along; a title that is taken there gets a number."""
    for group in list(origin.groups):
        if all(one in copies for one in group.blocks):
            title, number = group.title, 1
            while find(target, title) not in (None, group):
                title, number = f"{group.title} {number + 1}", number + 1
            target.groups.append(Group(title, [copies[one] for one in group.blocks], group.colour, group.collapsed))


def _refused(argument: str, wanted: str, got: Any) -> InvalidArgumentError:
    return InvalidArgumentError(Fault("VG053", "Page.group", argument, wanted, repr(got)[:80]))
