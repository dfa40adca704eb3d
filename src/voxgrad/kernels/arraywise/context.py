# SPDX-License-Identifier: Apache-2.0
"""What an op may know beside its inputs: the session's state, the block's name, the files it may touch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Op
from voxgrad.errors import FailedPreconditionError, Fault, UnimplementedError
from voxgrad.kernels.arraywise.files import Files

Windowed = Callable[..., Any]
"""Runs an op of the 3-D family on arguments by name; the call as inference saw it may come with them."""


class _Dead:
    """The value on a branch that is not taken."""

    def __repr__(self) -> str:
        return "DEAD"

    def __reduce__(self) -> str:
        return "DEAD"


DEAD = _Dead()


@dataclass(slots=True)
class State:
    """What a session keeps between runs, by name: variables, queues and readers, random generators, counters."""

    variables: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    generators: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    def copy(self) -> State:
        """A state of the same things, which changes by itself."""
        return State(dict(self.variables), dict(self.resources), dict(self.generators), dict(self.counters))


@dataclass(frozen=True, slots=True)
class Ref:
    """A variable of a session. Whoever reads `value` gets what it holds at that time."""

    state: State
    name: str

    @property
    def ready(self) -> bool:
        """True once it was assigned."""
        return self.name in self.state.variables

    @property
    def value(self) -> Any:
        """What it holds; reading it before the first assignment is an error."""
        try:
            return self.state.variables[self.name]
        except KeyError:
            remedy = "Run its Assign block first, or give the variable an initial value."
            fault = Fault("VG041", "Variable", self.name, "have a value before it is read", "none", remedy)
            raise FailedPreconditionError(fault) from None

    def assign(self, value: Any) -> Ref:
        """Set it and return it."""
        self.state.variables[self.name] = value
        return self


@dataclass(frozen=True, slots=True)
class Handle(Ref):
    """A variable that travels as a handle: nobody reads its value but the ops that take handles."""

    holds: DType
    stated: tuple[int | None, ...] | None


def value_of(value: Any) -> Any:
    """The value of a variable, or the value itself."""
    return value.value if type(value) is Ref else value


def _to_terminal(line: str) -> None:
    sys.stderr.write(line + "\n")


@dataclass(slots=True)
class Context:
    """Where an op runs.

    `files` are those that may be read and written; none without it. `place` puts a fresh NumPy array
    where the session's arrays live. `windowed` runs the 3-D ops that the 2-D ones stand on. `log` takes the lines that
    Print writes. `passed_limit(size)` is the limit that so many bytes pass, or None: for
    results whose size only the data tell.
    `open_volume(files, name, axes)` opens a volume in one of the files.
    """

    state: State = field(default_factory=State)
    block: str = ""
    files: Files = field(default_factory=Files)
    cancel: Any = None
    place: Callable[[Any], Any] | None = None
    windowed: Windowed | None = None
    log: Callable[[str], None] = _to_terminal
    passed_limit: Callable[[int], int | None] = lambda size: 2**33 if size > 2**33 else None
    open_volume: Callable[[Files, str, str], Any] | None = None

    def run_windowed(self, op: Op, arguments: Mapping[str, Any], known: Call | None = None) -> Any:
        """The result of an op of the 3-D family."""
        if self.windowed is None:
            fault = Fault("VG032", op.name, "op", "have a kernel here", "none", "Set Context.windowed.")
            raise UnimplementedError(fault)
        return self.windowed(op, arguments) if known is None else self.windowed(op, arguments, known=known)
