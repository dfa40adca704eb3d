# SPDX-License-Identifier: Apache-2.0
"""Voxgrad: TensorFlow's 3-D convolution and pooling operators and every gradient of them.

import voxgrad as vg
dx = vg.raw_ops.AvgPool3DGrad(orig_input_shape=[1, 4, 4, 4, 2], grad=g, ksize=[1, 2, 2, 2, 1],
                              strides=[1, 2, 2, 2, 1], padding="SAME")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from voxgrad import compat as compat
from voxgrad import errors as errors
from voxgrad import out_ops as out_ops
from voxgrad import raw_ops as raw_ops
from voxgrad._version import __version__ as __version__
from voxgrad.arrays.explain import explain as explain
from voxgrad.arrays.limits import limits as limits
from voxgrad.arrays.memory import release_memory as release_memory
from voxgrad.catalog.semantics import semantics as semantics
from voxgrad.errors import CancelledError as CancelledError
from voxgrad.errors import InvalidArgumentError as InvalidArgumentError
from voxgrad.errors import ResourceExhaustedError as ResourceExhaustedError
from voxgrad.errors import UnimplementedError as UnimplementedError
from voxgrad.errors import VoxgradError as VoxgradError
from voxgrad.kernels.cpu import get_num_threads as get_num_threads
from voxgrad.kernels.cpu import set_num_threads as set_num_threads
from voxgrad.loading import LOADING

if TYPE_CHECKING:
    from voxgrad import blocks as blocks
    from voxgrad import nn as nn
    from voxgrad import ops as ops
    from voxgrad import volumes as volumes
    from voxgrad.formats.library import Library as Library
    from voxgrad.graph.check_gradients import check_gradients as check_gradients
    from voxgrad.graph.gradients import gradients as gradients
    from voxgrad.graph.page import Page as Page
    from voxgrad.graph.session import ClientSession as ClientSession
    from voxgrad.volumes.stores import open_volume as open_volume

_LATER = {
    "Library": "formats.library",
    "Page": "graph.page",
    "ClientSession": "graph.session",
    "gradients": "graph.gradients",
    "check_gradients": "graph.check_gradients",
    "open_volume": "volumes.stores",
    "blocks": "",
    "nn": "",
    "ops": "",
    "volumes": "",
}
"""What a plain call of a raw op does not need is loaded when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'voxgrad' has no attribute {name!r}")
    module = _LATER[name]
    with LOADING:
        found = getattr(import_module(f"voxgrad.{module}"), name) if module else import_module(f"voxgrad.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
