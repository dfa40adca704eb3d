# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes agree with the integers they stand for."""

from __future__ import annotations

import doctest
import itertools
import operator
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxgrad.catalog import dims, geometry
from voxgrad.catalog.dims import Dim, all_known, differ, known, shapes_differ, symbolic

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
        ((D // 2 + 1) // 2, "floor((D+2)/4)"),
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
    assert not differ(D, 3) and not differ(D, N) and not differ(D // 2, 0) and not differ(D // N, 0)
    assert shapes_differ((N, 2), (N, 3)) and shapes_differ((N,), (N, 3))
    assert not shapes_differ((N, 2), (D, 2)) and not shapes_differ(None, (1,))


def test_long_names_are_shortened_and_stay_apart() -> None:
    longest, long, other = "x" * 200, "x" * 201, "x" * 200 + "y"
    assert str(Dim(longest)) == longest
    assert len(str(Dim(long))) < 50 and Dim(long) == Dim(long) != Dim(other)


@pytest.mark.parametrize("padding", geometry.PADDINGS)
@pytest.mark.parametrize(("window", "stride", "dilation"), [(1, 1, 1), (2, 2, 1), (3, 2, 1), (3, 1, 2), (2, 5, 1)])
def test_window_rule_with_a_symbol(padding: str, window: int, stride: int, dilation: int) -> None:
    out: Any = geometry.output_size(D, window, stride, dilation, padding)  # type: ignore[arg-type]
    for size in range(geometry.reach(window, dilation), 40):
        assert out.at({"D": size}) == geometry.output_size(size, window, stride, dilation, padding)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge], ids=lambda one: one.__name__)
def test_comparisons_of_lines_are_certain_and_miss_nothing(compare: Any) -> None:
    """True exactly where it holds for every size."""
    for p, q, r, s in itertools.product((-1, 0, 1, 2), (-1, 0, 1), (0, 1, 2), (-2, 0, 1)):
        left, right = p * D + q, r * D + s
        assert compare(left, right) == all(compare(p * d + q, r * d + s) for d in range(9)), (left, right)
        assert differ(left, right) == (
            all(p * d + q > r * d + s for d in range(9)) or all(p * d + q < r * d + s for d in range(9))
        ), (left, right)


def at(size: Any, **values: int) -> Any:
    return size.at(values) if isinstance(size, Dim) else size


def test_division_and_remainder_by_numbers_and_symbols() -> None:
    for p, q, k, d in itertools.product((-3, -1, 1, 2, 4), (-5, -1, 0, 1, 6), (-4, -2, -1, 1, 2, 3), range(8)):
        assert at((p * D + q) // k, D=d) == (p * d + q) // k and at((p * D + q) % k, D=d) == (p * d + q) % k
    for d, n in itertools.product(range(1, 9), range(1, 6)):
        for found, wanted in [
            (D // N, d // n), (7 // D, 7 // d), (7 % D, 7 % d), (D % N, d % n),
            ((D + 1) // (N + 2), (d + 1) // (n + 2)),
            ((6 * D * N) // (2 * N), 3 * d), ((3 * D) // (2 * D), 1), ((D * N + D) // N, (d * n + d) // n),
            ((D // 2 + 3) // 2, (d // 2 + 3) // 2), ((2 * (D // 2) + 1) // 3, (2 * (d // 2) + 1) // 3),
            (D // 2 * N, d // 2 * n), (-D + N - 3, n - d - 3), (5 - D, 5 - d),
        ]:  # fmt: skip
            assert at(found, D=d, N=n) == wanted
    with pytest.raises(ZeroDivisionError):
        D // 0
    for wrong in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod):
        with pytest.raises(TypeError):
            wrong(D, "2")
        with pytest.raises(TypeError):
            wrong(2.5, D)


def test_sizes_in_part() -> None:
    assert (D * N + 1).at({"D": 2}) == 2 * N + 1 and (D // N).at({"N": 2}) == D // 2
    assert (D // 2).names == {"D"}
    assert (D // N + C).names == {"D", "N", "C"} and (2 * D + 7).constant == 7 and D.constant == 0
    assert +D == D and bool(D + 1) and not bool(D) and not bool(D - 1)
    assert known(3) and not known(D)
    assert all_known((1, 2)) and all_known(()) and not all_known((1, D)) and not all_known(None)
    assert symbolic(None, "x") is None
    assert symbolic(["N", 4, None, -1, 0], "x") == (N, 4, Dim("x[2]"), Dim("x[3]"), 0)
    assert shapes_differ((1, 2), (1, 2, 3)) and not shapes_differ((1,), None) and not shapes_differ((), ())
    assert hash(D) == hash(Dim("D")) and D != "D" and Dim("D") == pickle.loads(pickle.dumps(D))


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        ((D + 1) // 2, "ceil(D/2)"),
        ((D + N) // 2, "floor((D+N)/2)"),
        ((D + 2) // 4, "floor((D+2)/4)"),
        ((D // 2 + 1) // 2, "floor((D+2)/4)"),
        ((2 * D + 1) // 3, "floor((2*D+1)/3)"),
        (D // (N + 1), "floor(D/(N+1))"),
        (-D, "-D"),
        (3 - 2 * D, "-2*D+3"),
        (D // 2 * N, "N*floor(D/2)"),
        (D * D - N, "D*D-N"),
        (-((D + 4) // -5), "floor((D+3)/5)+1"),
    ],
)
def test_sums_and_quotients_are_written_out(dim: Any, text: str) -> None:
    assert str(dim) == repr(dim) == text


def test_documentation_runs() -> None:
    assert doctest.testmod(dims).failed == 0


def test_what_is_halved_twice_is_quartered() -> None:
    """Worked out in the test: what is made while tests are collected cannot be seen to go wrong."""
    d, n = Dim("D"), Dim("N")
    assert str((d // 2 + 1) // 2) == "floor((D+2)/4)" and (d // 2 + 1) // 2 == (d + 2) // 4
    assert str((d // 2 + n // 2) // 2) == "floor((floor(D/2)+floor(N/2))/2)"
