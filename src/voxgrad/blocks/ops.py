# SPDX-License-Identifier: Apache-2.0
"""The ops of installed packages as functions that put a block on a page, as `vg.ops` has TensorFlow's.

y = vg.blocks.ops.boxblur.BoxBlur(page, x, radius=2)
"""

from __future__ import annotations

from voxgrad import ops
from voxgrad.blocks.functions import Functions, of_package
from voxgrad.catalog import packages
from voxgrad.loading import LOADING


def __getattr__(name: str) -> Functions:
    with LOADING:
        found = globals()[name] = of_package(name, ops.make_function)
    return found


def __dir__() -> list[str]:
    return list(packages.names())
