# SPDX-License-Identifier: Apache-2.0
"""Which of TensorFlow's answers a call means, where TensorFlow has more than one."""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType

from voxgrad.arguments import checked
from voxgrad.errors import Fault, InvalidArgumentError

SEMANTICS = {
    "documented": "The rules that TensorFlow documents: forward and gradients agree with each other.",
    "tf_cpu": "What TensorFlow's CPU (Eigen) kernels do: the quirks B2, B3 and B4 of the difference table.",
}

_current: ContextVar[str] = ContextVar("voxgrad_semantics", default="documented")

current_semantics = _current.get
"""The semantics in force for this thread or task. The variable's own method: every call of an op asks for it."""


@checked
class semantics:  # noqa: N801 - used like a function, as a context manager
    """Select the semantics for a block of code; safe with threads and asyncio.

    >>> with semantics("tf_cpu"):
    ...     current_semantics()
    'tf_cpu'
    """

    def __init__(self, name: str):
        if name not in SEMANTICS:
            listed = " or ".join(map(repr, SEMANTICS))
            raise InvalidArgumentError(Fault("VG003", "semantics", "name", f"be {listed}", repr(name)))
        self.name = name
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> semantics:
        self._tokens.append(_current.set(self.name))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())
