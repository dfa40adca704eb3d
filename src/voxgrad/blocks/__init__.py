# SPDX-License-Identifier: Apache-2.0
"""Blocks of one's own: what a package imports to declare ops, and where the ops of installed packages are found.

    from voxgrad.blocks import Attr, Input, Op, Output, REAL, like      # in a package
    vg.blocks.raw_ops.boxblur.BoxBlur(x=scan, radius=2)                 # the op of an installed one, at once
    y = vg.blocks.ops.boxblur.BoxBlur(page, x, radius=2)                # and as a block

A package lists its declarations under an entry point of the group `voxgrad.blocks`; docs/blocks.md shows one from start
to end. Everything here is what the catalogue of TensorFlow's ops is made of.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from voxgrad.catalog.dims import all_known as all_known
from voxgrad.catalog.dims import known as known
from voxgrad.catalog.dtypes import ALL as ALL
from voxgrad.catalog.dtypes import BFLOAT16 as BFLOAT16
from voxgrad.catalog.dtypes import BOOL as BOOL
from voxgrad.catalog.dtypes import COMPLEX64 as COMPLEX64
from voxgrad.catalog.dtypes import COMPLEX128 as COMPLEX128
from voxgrad.catalog.dtypes import FLOAT32 as FLOAT32
from voxgrad.catalog.dtypes import FLOAT64 as FLOAT64
from voxgrad.catalog.dtypes import FLOATING as FLOATING
from voxgrad.catalog.dtypes import HALF as HALF
from voxgrad.catalog.dtypes import INDEX as INDEX
from voxgrad.catalog.dtypes import INT8 as INT8
from voxgrad.catalog.dtypes import INT16 as INT16
from voxgrad.catalog.dtypes import INT32 as INT32
from voxgrad.catalog.dtypes import INT64 as INT64
from voxgrad.catalog.dtypes import INTEGERS as INTEGERS
from voxgrad.catalog.dtypes import REAL as REAL
from voxgrad.catalog.dtypes import STRING as STRING
from voxgrad.catalog.dtypes import UINT8 as UINT8
from voxgrad.catalog.dtypes import UINT16 as UINT16
from voxgrad.catalog.dtypes import DType as DType
from voxgrad.catalog.gradients import nothing as nothing
from voxgrad.catalog.gradients import of_binary as of_binary
from voxgrad.catalog.gradients import of_unary as of_unary
from voxgrad.catalog.model import Attr as Attr
from voxgrad.catalog.model import Call as Call
from voxgrad.catalog.model import Input as Input
from voxgrad.catalog.model import Law as Law
from voxgrad.catalog.model import Node as Node
from voxgrad.catalog.model import Op as Op
from voxgrad.catalog.model import Output as Output
from voxgrad.catalog.model import Spec as Spec
from voxgrad.catalog.packages import GROUP as GROUP
from voxgrad.catalog.packages import Package as Package
from voxgrad.catalog.packages import everything as everything
from voxgrad.catalog.packages import names as names
from voxgrad.catalog.packages import package as package
from voxgrad.catalog.shapes import alike as alike
from voxgrad.catalog.shapes import axis_in as axis_in
from voxgrad.catalog.shapes import broadcasting as broadcasting
from voxgrad.catalog.shapes import fixed as fixed
from voxgrad.catalog.shapes import has_rank as has_rank
from voxgrad.catalog.shapes import like as like
from voxgrad.catalog.shapes import same_shapes as same_shapes
from voxgrad.catalog.shapes import shaped as shaped
from voxgrad.catalog.shapes import specs as specs
from voxgrad.catalog.shapes import unknown as unknown
from voxgrad.errors import Faults as Faults
from voxgrad.loading import LOADING

if TYPE_CHECKING:
    from voxgrad.blocks import ops as ops
    from voxgrad.blocks import raw_ops as raw_ops


def __getattr__(name: str) -> Any:
    """The functions are loaded when they are first asked for: a declaration needs none of them."""
    if name not in ("ops", "raw_ops"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with LOADING:
        return import_module(f"voxgrad.blocks.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), "ops", "raw_ops"})
