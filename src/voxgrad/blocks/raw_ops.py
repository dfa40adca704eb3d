# SPDX-License-Identifier: Apache-2.0
"""The ops of installed packages as functions that compute at once, as `vg.raw_ops` has TensorFlow's.

vg.blocks.raw_ops.boxblur.BoxBlur(x=scan, radius=2)
"""

from __future__ import annotations

from voxgrad import raw_ops
from voxgrad.blocks.functions import Functions, of_package
from voxgrad.catalog import packages
from voxgrad.loading import LOADING


def __getattr__(name: str) -> Functions:
    with LOADING:
        found = globals()[name] = of_package(name, raw_ops.make_function)
    return found


def __dir__() -> list[str]:
    return list(packages.names())
