# SPDX-License-Identifier: Apache-2.0
"""Cases in groups: all are run, and those that fail are named."""

from __future__ import annotations

import pytest

from tests.grouped import ENOUGH, grouped


def test_every_failing_case_is_named() -> None:
    tried = []

    @grouped("number", range(100), by=lambda number: number % 2)
    def check(number: int) -> None:
        tried.append(number)
        if number in (4, 6):
            pytest.fail("it is wrong")
        assert number != 8

    assert check.pytestmark[0].args == ("number", ["0", "1"])
    check(number="1")
    assert tried == list(range(1, 100, 2))
    with pytest.raises(BaseExceptionGroup, match="3 of 50 cases: number: 4, number: 6, number: 8") as caught:
        check(number="0")
    assert caught.value.subgroup(AssertionError) and tried[-1] == 98


def test_many_failures_are_enough() -> None:
    @grouped("number", range(100))
    def check(number: int) -> None:
        raise ValueError

    with pytest.raises(BaseExceptionGroup, match=f"{ENOUGH} of 100 cases"):
        check(number="all")
