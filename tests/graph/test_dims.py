# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes agree with the integers they stand for."""

from __future__ import annotations

import doctest
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxgrad.catalog import dims, geometry
from voxgrad.catalog.dims import Dim, differ, shapes_differ

NAMES = ("D", "N")


def expressions() -> st.SearchStrategy[str]:
    """Arithmetic as window rules write it: sums, differences, products, division by a positive number."""
    leaves = st.sampled_from([*NAMES, "1", "2", "3", "5"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda part: f"({part[0]}{part[1]}{part[2]})"),
            st.tuples(inner, st.integers(1, 5)).map(lambda part: f"({part[0]}//{part[1]})"),
            inner.map(lambda part: f"(-{part})"),
        ),
        max_leaves=8,
    )


@settings(max_examples=300, deadline=None)
@given(text=expressions(), values=st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES}))
def test_a_dim_is_the_integer_it_stands_for(text: str, values: dict[str, int]) -> None:
    symbolic = eval(text, {name: Dim(name) for name in NAMES})
    number = eval(text, dict(values))
    found = symbolic.at(values) if isinstance(symbolic, Dim) else symbolic
    assert found == number
    assert not differ(symbolic, number), "a value that is taken must not be called certainly different"
    if symbolic < 0:
        assert number < 0
    if symbolic >= 0:
        assert number >= 0


D, N, C = Dim("D"), Dim("N"), Dim("C")
HALF_LESS = -D // 2


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (-(-D // 2), "ceil(D/2)"),
        (-(HALF_LESS // 2), "ceil(D/4)"),
        (D // 2, "floor(D/2)"),
        (D - 2, "D-2"),
        (2 * D + 1, "2*D+1"),
        (N * D * 4, "4*D*N"),
        (N * D // N, "D"),
        (D // C, "floor(D/C)"),
        (1 + N, "N+1"),
    ],
)
def test_dims_are_written_as_people_write_them(dim: Any, text: str) -> None:
    assert str(dim) == text


def test_plain_numbers_come_back_as_int() -> None:
    assert D - D == 0 and type(D - D) is int
    assert (D * 0) == 0 and D // D == 1
    assert (4 * D) // (2 * D) == 2


def test_equality_and_hash_follow_the_normal_form() -> None:
    assert (D + N) + 1 == 1 + (N + D)
    assert len({D * N, N * D, Dim("D") * N}) == 1
    assert D != 3 and D != N
    assert pickle.loads(pickle.dumps(-(-D // 2))) == -(-D // 2)


def test_only_certain_differences_count() -> None:
    assert differ(D, D + 1) and differ(D, -1) and differ(2, 3)
    assert not differ(D, 3) and not differ(D, N) and not differ(D // 2, 0)
    assert shapes_differ((N, 2), (N, 3)) and shapes_differ((N,), (N, 3))
    assert not shapes_differ((N, 2), (D, 2)) and not shapes_differ(None, (1,))


@pytest.mark.parametrize("padding", geometry.PADDINGS)
@pytest.mark.parametrize(("window", "stride", "dilation"), [(1, 1, 1), (2, 2, 1), (3, 2, 1), (3, 1, 2), (2, 5, 1)])
def test_window_rule_with_a_symbol(padding: str, window: int, stride: int, dilation: int) -> None:
    out: Any = geometry.output_size(D, window, stride, dilation, padding)  # type: ignore[arg-type]
    for size in range(geometry.reach(window, dilation), 40):
        assert out.at({"D": size}) == geometry.output_size(size, window, stride, dilation, padding)


def test_documentation_runs() -> None:
    assert doctest.testmod(dims).failed == 0
