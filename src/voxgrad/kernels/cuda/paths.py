# SPDX-License-Identifier: Apache-2.0
"""Paths: the ways in which the GPU kernels run a problem, each with a name and a condition, as data.

A fork is a place where one of several paths is taken: the first that is possible and worth it. Whoever plans a launch
asks the fork, so there is no second list. `heard` tells what was asked on the way to a plan, and `forced` takes a path
wherever it is possible, worth it or not. Plans are kept by the problem object: both are for objects that are new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Need:
    """A part of a condition, in words and as a question to what the fork is asked about."""

    words: str
    holds: Callable[..., bool]
    huge: bool = False
    """Do only problems with 2**31 numbers and more break it?"""


Needs = tuple[Need, ...]


def met(needs: Needs, *case: Any) -> bool:
    """Do all of them hold?"""
    return all(need.holds(*case) for need in needs)


@dataclass(frozen=True, slots=True)
class Path:
    """A way to do something: possible where its needs are met, taken where it is also worth it."""

    name: str
    needs: Needs = ()
    worth: Needs = ()
    make: Callable[..., Any] = bool
    """What plans it, where that is a function of its own."""
    device: bool = False
    """Can only a GPU run it?"""

    @property
    def condition(self) -> str:
        """When it is taken, in words."""
        needs, worth = (", ".join(need.words for need in needs) for needs in (self.needs, self.worth))
        return (needs or "any") + (f"; worth it with {worth}" if worth else "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a fork was asked about, and which path it took."""

    fork: Fork
    case: tuple[Any, ...]
    path: Path

    @property
    def may(self) -> list[str]:
        """The paths that could run it."""
        return [path.name for path in self.fork.may(*self.case)]

    def __str__(self) -> str:
        return f"{self.fork.name} {self.path.name}"


_forced: ContextVar[Mapping[str, str]] = ContextVar("forced", default={})  # noqa: B039 - nobody changes it
_heard: ContextVar[list[Answer] | None] = ContextVar("heard", default=None)
FORKS: dict[str, Fork] = {}
"""All forks by name. The modules that plan launches declare them."""


class Fork:
    """Paths that do the same, the best first. Of whatever comes here, one of them is possible and worth it."""

    def __init__(self, name: str, about: str, *paths: Path):
        self.name, self.about, self.paths = name, about, paths
        FORKS[name] = self

    def __getitem__(self, name: str) -> Path:
        return {path.name: path for path in self.paths}[name]

    def may(self, *case: Any) -> list[Path]:
        """All that could run it."""
        return [path for path in self.paths if met(path.needs, *case)]

    def taken(self, *case: Any) -> Path:
        """The path that runs it."""
        heard, wanted = _heard.get(), _forced.get().get(self.name)
        before = len(heard or ())
        possible = self.may(*case)
        path = next((path for path in possible if path.name == wanted), None)
        path = path or next(path for path in possible if met(path.worth, *case))
        if heard is not None:
            heard[before:] = [Answer(self, case, path)]  # without what was asked only to answer this
        return path

    def given(self, name: str, *case: Any) -> Path:
        """The path of this name, which was chosen by measuring; an error where it is not possible."""
        path, heard = self[name], _heard.get()
        for need in path.needs:
            if not need.holds(*case):
                raise ValueError(f"{self.name} {name} needs {need.words}")
        if heard is not None:
            heard.append(Answer(self, case, path))
        return path

    def takes(self, name: str, *case: Any) -> bool:
        """Is it this path that runs it?"""
        return self.taken(*case).name == name


@contextmanager
def forced(choice: Mapping[str, str]) -> Iterator[None]:
    """Take these paths, by the names of forks, where they are possible; the others as ever."""
    for fork, path in choice.items():
        FORKS[fork][path]
    token = _forced.set(choice)
    try:
        yield
    finally:
        _forced.reset(token)


def forced_at(fork: str) -> str | None:
    """The path that is forced at a fork."""
    return _forced.get().get(fork)


@contextmanager
def heard() -> Iterator[list[Answer]]:
    """What forks answer meanwhile, in order."""
    answers: list[Answer] = []
    token = _heard.set(answers)
    try:
        yield answers
    finally:
        _heard.reset(token)


ADDRESSES = Fork(
    "addresses", "how places in a plane of a pool, or in a tensor of a convolution, are counted",
    Path("narrow", (Need("fewer than 2**31 numbers", lambda count: count < 2**31, huge=True),)),
    Path("wide"),
)  # fmt: skip
