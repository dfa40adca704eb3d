# SPDX-License-Identifier: Apache-2.0
"""What the documents say was measured."""

from __future__ import annotations

import pytest

from bench import tables


@pytest.mark.parametrize("path", tables.DOCS)
def test_the_tables_of_the_documents_are_those_of_the_results(path: str) -> None:
    assert tables.document(path) == (tables.ROOT / path).read_text(), "run `python -m bench.tables`"


def test_a_table_is_replaced_and_what_stands_around_it_is_kept() -> None:
    text = "before\n\n| a |\n|---|\n| old |\n| old |\n\nafter\n"
    assert tables.updated(text, ("| a |", ["| new |"])) == "before\n\n| a |\n|---|\n| new |\n\nafter\n"
    with pytest.raises(ValueError, match="no table begins"):
        tables.updated(text, ("| b |", []))


def test_spans_name_both_ends() -> None:
    assert tables.span([2.0, 1.0, 1.5], 1) == "1.0 to 2.0"
    assert tables.span([1.001, 1.002], 2) == "1.00"
    assert tables.span([0.5, 0.25], percent=True) == "25% to 50%"
