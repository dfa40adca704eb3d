# SPDX-License-Identifier: Apache-2.0
"""The functions that put blocks on pages, made from the declarations."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

import voxgrad as vg
from tests.grouped import grouped
from voxgrad import ops
from voxgrad.catalog import registry
from voxgrad.graph.block import Block, Output
from voxgrad.graph.page import Page


@grouped("name", registry.OPS)
def test_every_declared_op_has_a_function(name: str) -> None:
    function = getattr(ops, name)
    op = registry.find(name)
    names = list(inspect.signature(function).parameters)
    assert names == ["page", *(item.name for item in op.parameters), "name"]
    assert function.__doc__.startswith(op.summary.split(".")[0][:20])


def test_names_follow_the_cpp_api() -> None:
    page = Page("names")
    x = ops.Const(page.with_op_name("x"), 1.0)
    assert isinstance(x, Output) and x.name == "x:0"
    y = ops.Mul(page.sub("layer"), x, 2.0)
    assert y.name == "layer/Mul:0" and "layer/Mul/y" in page
    after = ops.Neg(page.with_control_dependencies([x, y]), y)
    assert after.block.control == [x.block, y.block]
    assert isinstance(ops.NoOp(page), Block)


def test_numbers_become_constants_of_the_right_type() -> None:
    page = Page("types")
    x = ops.Const(page, np.ones(2, np.float64))
    assert str(ops.Mul(page, x, 2).dtype) == "float64" and str(ops.Mul(page, 2, x).dtype) == "float64"
    assert str(ops.Mul(page, 2, 3).dtype) == "int32"
    with pytest.raises(vg.InvalidArgumentError, match=r"must hold values of type int32; got 3.5"):
        ops.Mul(page, 2, 3.5)
    assert str(ops.Const(page, 2**40).dtype) == "int64" and str(ops.Const(page, "text").dtype) == "string"
    assert str(ops.Const(page, [1, 2], dtype="half").dtype) == "half"
    assert str(ops.Const(page, [True]).dtype) == "bool"


def test_wrong_calls_are_told_and_add_nothing() -> None:
    page = Page("wrong")
    with pytest.raises(vg.InvalidArgumentError, match="VG001 Neg: x must be given"):
        ops.Neg(page)  # type: ignore[call-arg]
    with pytest.raises(vg.InvalidArgumentError, match="z must be one of x, name"):
        ops.Neg(page, 1.0, z=3)  # type: ignore[call-arg]
    with pytest.raises(vg.InvalidArgumentError, match="at most 1"):
        ops.Neg(page, 1.0, 2.0)  # type: ignore
    with pytest.raises(vg.InvalidArgumentError, match="VG002"):
        ops.Neg(page, [[1], [2, 3]])
    with pytest.raises(AttributeError, match=r"MaxPool3D"):
        getattr(ops, "MaxPool3")  # noqa: B009 - type checkers know that it does not exist
    assert len(page) == 0


def test_aliases_are_the_ops_they_mean() -> None:
    page = Page("aliases")
    assert ops.Multiply(page, 1.0, 2.0).block.op_name == "Mul"


def test_plain_import_stays_light() -> None:
    code = "import sys, voxgrad; print(any(name.startswith('voxgrad.graph') for name in sys.modules)); voxgrad.Page"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
