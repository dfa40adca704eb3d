# SPDX-License-Identifier: Apache-2.0
"""Many small cases in one test, so that the count of tests says something; each case that fails is named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

ENOUGH = 5
"""Failures after which the rest of a group is not tried."""


def grouped(
    argument: str, cases: Iterable[Any], by: Callable[[Any], Any] = lambda case: "all", name: Callable[[Any], str] = str
) -> Callable[[Callable[..., None]], Any]:
    """In place of `pytest.mark.parametrize`: one test for every value of `by`, which runs all its cases."""
    groups: dict[str, list[Any]] = {}
    for case in cases:
        groups.setdefault(str(by(case)), []).append(case)

    def decorate(check: Callable[..., None]) -> Any:
        def test(**given: Any) -> None:
            group, failures = groups[given.pop(argument)], []
            for case in group:
                try:
                    check(**given, **{argument: case})
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"{argument}: {name(case)}")
                    failures.append(error)
                if len(failures) == ENOUGH:
                    break
            if failures:
                names = ", ".join(error.__notes__[-1] for error in failures)
                raise BaseExceptionGroup(f"{len(failures)} of {len(group)} cases: {names}", failures)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        test.__signature__ = inspect.signature(check)  # type: ignore[attr-defined]
        test.__dict__.update({key: value for key, value in vars(check).items() if key == "pytestmark"})
        return pytest.mark.parametrize(argument, list(groups))(test)

    return decorate
