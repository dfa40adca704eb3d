# SPDX-License-Identifier: Apache-2.0
"""Tests that are loaded once and then run in a child for every change: most of a short run is loading.

It runs in the copy of the tree, as a pytest plugin: collects, then reads requests, one line of JSON each, and answers
with another. A child gives the functions of a changed Python file their new code (those of Triton read their text when
they are first interpreted), or takes the changed library. Tests that noticed changes of the same file go first.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

UNSURE, UNCHANGED = 76, 77
"""How children end where a function's new code does not fit it, and where the change is in no function."""


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def renew(path: str, before: bytes, after: bytes) -> int:
    """Give the functions that were made from a file the code of its new text; how many differ."""
    old, new = (list(_codes(compile(text, path, "exec", dont_inherit=True))) for text in (before, after))
    if len(old) != len(new):
        return 0
    changed = {one: other for one, other in zip(old, new, strict=True) if one != other}
    count = 0
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == path and one.__code__ in changed:
            one.__code__ = changed[one.__code__]
            count += 1
        elif type(one) is functools._lru_cache_wrapper and str(one.__module__).startswith("voxgrad.catalog"):
            one.cache_clear()
    return count


def _wanted(session: pytest.Session, request: dict[str, Any]) -> list[pytest.Item]:
    """The tests that a request asks for: `only` those of a file, or `first`; those `without` a word in their names."""
    only, without, first = request.get("only", ""), request.get("without", ""), tuple(request["first"])
    return [
        item
        for item in session.items
        if (item.nodeid.startswith(only) or item.nodeid.startswith(first))
        and not (without and without in item.nodeid.lower())
    ]


def _place(item: pytest.Item, first: list[str]) -> int:
    """Where a test comes if some come first, by the start of their names."""
    return next((at for at, name in enumerate(first) if item.nodeid.startswith(name)), len(first))


class Forks:
    """The plugin. `limit` is in seconds of processor time; ten times that may pass on the clock."""

    def __init__(self, requests: int, answers: int):
        self.requests = os.fdopen(requests)
        self.answers = os.fdopen(answers, "w")
        self.noticed: int | None = None
        """In a child: where to say which test failed."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests once."""
        for line in self.requests:
            request = json.loads(line)
            answer = {} if "nothing" in request else self._fork(session, request)
            self.answers.write(json.dumps(answer) + "\n")
            self.answers.flush()
        return True

    def _fork(self, session: pytest.Session, request: dict[str, Any]) -> dict[str, Any]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._in_child(session, request, writing)
        os.close(writing)
        end = time.monotonic() + 10 * request["limit"]
        done, status, usage = 0, 0, None
        while not done and time.monotonic() < end:
            done, status, usage = os.wait4(child, os.WNOHANG)
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if not done:
            _, status, usage = os.wait4(child, 0)
        with os.fdopen(reading) as said:
            by = said.read()
        code = os.waitstatus_to_exitcode(status)
        used = usage.ru_utime + usage.ru_stime if usage else 0.0
        return {"stalled": not done, "hung": code == -signal.SIGXCPU, "passed": code == 0,
                "unchanged": code in (UNSURE, UNCHANGED), "by": by or f"status {code}", "used": used}  # fmt: skip

    def _in_child(self, session: pytest.Session, request: dict[str, Any], writing: int) -> None:
        status = UNSURE
        try:
            os.setsid()
            limit = int(request["limit"]) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            self.noticed = writing
            if "library" in request:
                os.environ["VOXGRAD_LIBRARY"] = request["library"]
                sys.modules["voxgrad.kernels.cpu"].library.cache_clear()
            elif "path" in request:
                path = Path(request["path"])
                changed = renew(str(path), bytes.fromhex(request["before"]), path.read_bytes())
                loaded = any(getattr(one, "__file__", None) == str(path) for one in list(sys.modules.values()))
                if loaded and not changed:
                    os._exit(UNCHANGED)
            items = sorted(_wanted(session, request), key=lambda item: _place(item, request["first"]))
            for at, item in enumerate(items):
                following = items[at + 1] if at + 1 < len(items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            status = 0
        finally:
            os._exit(status)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure is enough."""
        if report.failed and self.noticed is not None:
            os.write(self.noticed, report.nodeid.encode()[:500])
            os._exit(1)


if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[3:], plugins=[Forks(int(sys.argv[1]), int(sys.argv[2]))]))
