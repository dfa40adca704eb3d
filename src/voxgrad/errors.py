# SPDX-License-Identifier: Apache-2.0
"""Errors are data: a fault names its code, op, argument, what was wanted, what came and what to do.

The same object becomes a Python exception, a line on the terminal and a mark on a pin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

CODES: dict[str, str] = {
    "VG001": "A call without an argument that it needs, with one that the op does not have, or by position.",
    "VG002": "An argument of the wrong Python type.",
    "VG003": "A value outside the list of allowed ones.",
    "VG004": "A list of the wrong length.",
    "VG005": "A number that does not fit a 32-bit integer.",
    "VG006": "A window, stride or dilation that is not positive.",
    "VG007": "A window, stride or dilation over the batch or the channels.",
    "VG010": "A tensor of the wrong rank.",
    "VG011": "An element type that the op does not take, or that differs from its neighbour's.",
    "VG012": "A shape that does not follow from the other arguments.",
    "VG013": "Channel counts that do not fit together.",
    "VG014": "A vector of sizes that is no shape.",
    "VG015": "A shape with more elements than can be counted in 63 bits.",
    "VG016": "A window that is too large for its input.",
    "VG017": "An empty tensor where the op needs elements.",
    "VG020": "A result larger than the memory limit.",
    "VG021": "A run with more operations than are allowed, or that took too long.",
    "VG030": "An object that is no array, or arrays of different kinds in one call.",
    "VG031": "An array that carries its own gradient.",
    "VG032": "An array on a device or in a form that has no kernel here.",
    "VG033": "An output buffer that does not fit the result.",
    "VG040": "A run that was cancelled.",
    "VG041": "A variable that was read before it had a value.",
    "VG042": "A queue or a reader that has nothing left, or is closed.",
    "VG043": "A value for which the op has no result: an index out of range, an integer division by zero.",
    "VG044": "A page's own check that failed: Assert or CheckNumerics.",
    "VG050": "A name that does not exist.",
    "VG051": "A file that cannot be read or written.",
    "VG052": "A text that is no value; the message points at the character.",
    "VG053": "A page file, or another document, that breaks its format; the message names the place.",
    "VG054": "A part of an imported document that could not be kept.",
    "VG055": "A save of a page that has changed since it was opened.",
    "VG056": "A file that a page may not touch: outside of its folder, hidden, or behind a link.",
    "VG060": "A name that another block has already.",
    "VG061": "A name that no block or page can have.",
    "VG062": "Blocks that wait for each other in a ring.",
    "VG063": "A wire from an output that the block does not have.",
    "VG064": "A gradient through an op that has none.",
    "VG065": "A fetch from a branch that was not taken.",
    "VG066": "A block that failed while it ran.",
    "VG067": "A fetch or a feed that does not fit the page.",
    "VG068": "A worker process that died; the next run has a new one.",
    "VG069": "A block that cannot be bypassed: it has no input of the type of its one output.",
    "VG070": "A file format whose library is not installed.",
    "VG071": "Worker processes that died too often.",
    "VG072": "A block that needs a whole volume at once, on a page that runs chunk by chunk.",
    "VG073": "A disk that is full.",
    "VG074": "An output that another run is writing.",
    "VG075": "A record of a chunked run that is damaged.",
    "VG080": "A warning: a gradient that is not the one of the block on the page that it belongs to.",
    "VG081": "A warning: a gradient or a product that is zero everywhere, and why.",
    "VG082": "A warning: a constant that holds NaN or an infinity, or a block that makes NaN of finite constants.",
    "VG083": "A warning: a block whose results nobody uses.",
    "VG084": "A warning: a result that does not depend on what it is computed from.",
    "VG085": "A warning: a page that stands here as a block has a newer version in the library.",
    "VG090": "A block of a package that is not installed, or that does not load.",
    "VG091": "A block of a package that breaks its own declaration, or whose rule or function failed.",
}
"""Every code with its meaning; the documentation has a page made from this table."""


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What steers a terminal or the order of what is read, and halves of characters."""


def visible(text: str) -> str:
    """A text of unknown origin as it can be shown: control characters other than line ends and tabs as `\\x1b`."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a call. `where` shows the place in a text or a file, over one or more lines."""

    code: str
    op: str
    argument: str
    wanted: str
    got: str
    remedy: str = ""
    where: str = ""

    def __str__(self) -> str:
        text = f"{self.code} {self.op}: {self.argument} must {self.wanted}; got {self.got}."
        text = f"{text} {self.remedy}" if self.remedy else text
        return visible("\n    ".join([text, *self.where.splitlines()]))

    def as_dict(self) -> dict[str, str]:
        """The fault as plain data, for JSON."""
        return asdict(self)


_TOLD = re.compile(r"(VG[0-9]{3}) (.+?): (.*?) must (.+?); got (.+?)\.(?=\s|\x1b|$)(?: (.+))?")
"""A fault as a line of a message."""


class VoxgradError(Exception):
    """Base of all errors of this package. `faults` holds every fault that was found.

    Frameworks make errors anew from their text, `type(error)(f"in layer conv: {error}")`: then the text stands as it
    is, and `faults` has what can be read from it.
    """

    def __init__(self, faults: Fault | Iterable[Fault] | str = ()):
        if isinstance(faults, str):
            self.faults: tuple[Fault, ...] = tuple(
                Fault(*(part or "" for part in told.groups())) for told in _TOLD.finditer(faults)
            )
            super().__init__(faults)
            return
        self.faults = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Whatever a subclass is made from, its text, its faults and its notes are what travels.
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[VoxgradError], args: tuple[Any, ...]) -> VoxgradError:
    return kind.__new__(kind, *args)


class InvalidArgumentError(VoxgradError, ValueError):
    """The call cannot mean anything."""


class InvalidTypeError(InvalidArgumentError, TypeError):
    """The call is malformed before its values matter: a missing argument, text for a number."""


class ResourceExhaustedError(InvalidArgumentError, MemoryError):
    """The result would not fit into the memory that this process may use."""


class UnimplementedError(VoxgradError, NotImplementedError):
    """The call means something that no kernel offers."""


class FailedPreconditionError(VoxgradError):
    """The session is not in a state in which the op can run: a variable without a value."""


class OutOfRangeError(VoxgradError):
    """A queue or a reader has nothing left to give."""


class CancelledError(VoxgradError):
    """The run was stopped before it had finished."""


_CLASS_OF_CODE: dict[str, type[VoxgradError]] = {
    "VG001": InvalidTypeError,
    "VG002": InvalidTypeError,
    "VG020": ResourceExhaustedError,
    "VG032": UnimplementedError,
    "VG040": CancelledError,
    "VG041": FailedPreconditionError,
    "VG042": OutOfRangeError,
}


_MOST_LETTERS = 1000


class Faults:
    """Collects the faults of one call, so that all of them are reported together."""

    def __init__(self, op: str):
        self.op = op
        self.found: list[Fault] = []
        self.expected: dict[Fault, Any] = {}
        """The shape or type that a fault wanted, as a value, where there is one: what a repair is made from."""
        self._unimplemented: set[Fault] = set()

    def add(
        self,
        code: str,
        argument: str,
        *,
        wanted: str,
        got: object,
        remedy: str = "",
        unimplemented: bool = False,
        expected: Any = None,
    ) -> None:
        """Note a fault; `unimplemented` marks one that is a missing feature rather than a mistake."""
        fault = Fault(code, self.op, argument, _cut(wanted), show(got), remedy)
        self.found.append(fault)
        if expected is not None:
            self.expected[fault] = expected
        if unimplemented:
            self._unimplemented.add(fault)

    def __bool__(self) -> bool:
        return bool(self.found)

    def error(self) -> VoxgradError:
        """The exception for what was found: a mistake outweighs a missing feature, else the first fault decides."""
        first = self.found[0]
        kind = _CLASS_OF_CODE.get(first.code, InvalidArgumentError)
        if self._unimplemented.issuperset(self.found):
            kind = UnimplementedError
        return kind(self.found)

    def raise_if_any(self) -> None:
        """Raise everything found so far, if there is anything."""
        if self.found:
            raise self.error()


def _cut(text: str) -> str:
    """What is wanted may name sizes and values of others, as many as there are."""
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."


def show(value: object, depth: int = 0) -> str:
    """A value as messages show it: shapes without blanks, long things cut, whatever it is."""
    if isinstance(value, (tuple, list)):
        if depth > 4:
            return "[...]"
        items = [show(item, depth + 1) for item in value[:12]] + (["..."] if len(value) > 12 else [])
        return f"[{','.join(items)}]"
    text = value if isinstance(value, str) else safe_repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def safe_repr(value: object) -> str:
    """The repr of anything: a foreign class may fail when it is asked for it."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} without a repr: {type(error).__name__}>"
