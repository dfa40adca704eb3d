# SPDX-License-Identifier: Apache-2.0
"""Locks that neither the collector nor a fork can turn into a trap.

A finalizer or a signal handler may use what its own thread has just locked, so a thread may lock twice. A child that
was forked has none of the other threads, so what they held at that moment is free there.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def make_lock() -> threading.RLock:
    """A lock for one thread at a time, which may take it again."""
    lock = threading.RLock()
    _made.add(lock)
    return lock


def _free_what_others_held() -> None:
    """In a child, which has one thread."""
    for lock in list(_made):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_what_others_held)
