# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a page, as data: the pin, the code, what was wanted, what came, and edits that repair it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voxgrad.errors import Fault


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair that `page.apply` carries out: a title for people, and edits as `voxgrad.graph.edits` describes them."""

    title: str
    edits: tuple[Mapping[str, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        """The fix as plain data."""
        return {"title": self.title, "edits": [dict(edit) for edit in self.edits]}


@dataclass(frozen=True, slots=True)
class PinProblem:
    """One thing that is wrong with a pin or an attribute of a block, or with the block itself where `pin` is empty."""

    block: str
    pin: str
    op: str
    code: str
    wanted: str
    got: str
    remedy: str = ""
    fixes: tuple[Fix, ...] = ()

    @property
    def fix(self) -> Fix | None:
        """The first and best repair, if there is one."""
        return self.fixes[0] if self.fixes else None

    @property
    def fault(self) -> Fault:
        """The problem as the fault that an error carries; the block stands before the pin."""
        where = f"{self.block}.{self.pin}" if self.pin else self.block
        return Fault(self.code, self.op, where, self.wanted, self.got, self.remedy)

    def as_dict(self) -> dict[str, Any]:
        """The problem as plain data, for JSON."""
        return {
            "block": self.block, "pin": self.pin, "op": self.op, "code": self.code, "wanted": self.wanted,
            "got": self.got, "remedy": self.remedy, "fixes": [fix.as_dict() for fix in self.fixes],
        }  # fmt: skip

    def __str__(self) -> str:
        return str(self.fault)
