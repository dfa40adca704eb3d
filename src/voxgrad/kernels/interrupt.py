# SPDX-License-Identifier: Apache-2.0
"""Work that a signal may interrupt: it runs in another thread while the main thread waits for it.

Python runs signal handlers in the main thread, between two of its instructions, so inside a long call of a C library
Ctrl-C waits until the call is over. A thread that waits for a lock takes signals at once, and may go on waiting or,
where a handler raises, leave: then the work is told to stop, and whatever it still does nobody looks at. Only the end
of the program waits for it, since a library that is taken down in the middle of a call, as OpenBLAS, may hang for ever.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import NoReturn, TypeVar

T = TypeVar("T")

LONG = 0.02
"""Seconds from which work is worth another thread, which costs it up to a tenth on many cores."""

PATIENCE = 0.05
"""Seconds that an interrupt waits for the work to stop before it leaves it alone."""

_LOOKS_UP = 0.05
"""Seconds of one wait: where a signal does not end a wait, as on Windows, the next instruction takes it."""


_left: list[_thread.LockType] = []
"""Held by work that went on when its caller left."""


def is_possible() -> bool:
    """True in the main thread, which is the one that takes signals."""
    return _thread.get_ident() == threading.main_thread().ident


def watched(work: Callable[[], T], stop: Callable[[], None], patience: float = PATIENCE) -> Callable[[], T]:
    """Do `work` in another thread and wait; what comes back returns its result, or raises its error, when called.

    An exception that a signal handler raises ends the waiting: `stop` is called, the work has `patience` seconds to
    end, and the exception goes on its way.
    """
    ended = _thread.allocate_lock()
    ended.acquire()
    found: list[Callable[[], T]] = []
    context = copy_context()

    def body() -> None:
        try:
            result = context.run(work)
            found.append(lambda: result)
        except BaseException as error:
            found.append(_raising(error))
        finally:
            ended.release()

    try:
        try:
            _thread.start_new_thread(body, ())
        except RuntimeError:  # no thread to be had: at the end of the program, or past a limit of the system
            return _done(work)
        while not ended.acquire(timeout=_LOOKS_UP):
            pass
    except BaseException:
        stop()
        end = time.monotonic() + patience
        while not (is_over := ended.acquire(timeout=_LOOKS_UP)) and time.monotonic() < end:
            pass
        if not is_over:
            _left[:] = [ended, *(one for one in _left if one.locked())]
        raise
    return found[0]


def _done(work: Callable[[], T]) -> Callable[[], T]:
    result = work()
    return lambda: result


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def again() -> NoReturn:
        raise error

    return again


@atexit.register
def _wait_for_the_left() -> None:
    """At the end of the program. Who interrupts that as well means it: then nothing is taken down."""
    try:
        for ended in _left:
            while not ended.acquire(timeout=_LOOKS_UP):
                pass
    except KeyboardInterrupt:
        os._exit(130)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_left.clear)  # threads do not live on in a child
