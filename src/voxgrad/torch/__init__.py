# SPDX-License-Identifier: Apache-2.0
"""The family in PyTorch: functions and modules with TensorFlow's padding and with torch's, differentiable to any order.

import voxgrad.torch as vt
model = vt.from_torch(model)                    # torch's layers on the kernels of this package, with the same results
y = vt.max_pool3d(x, 3, 2)                      # NCDHW, SAME, deterministic gradients
layer = vt.Conv3dSame(32, 64, 3, stride=2)      # the weights of nn.Conv3d, the padding of TensorFlow
"""

from voxgrad.torch import functional as functional
from voxgrad.torch.convert import Line, Report, from_torch, report
from voxgrad.torch.functional import conv_transpose3d
from voxgrad.torch.functions import (
    adaptive_avg_pool3d,
    adaptive_max_pool3d,
    avg_pool3d,
    conv3d,
    conv3d_transpose,
    max_pool3d,
    max_pool3d_with_argmax,
    max_unpool3d,
)
from voxgrad.torch.graphs import Graphed, graphed, warm_up
from voxgrad.torch.modules import (
    AdaptiveAvgPool3d,
    AdaptiveMaxPool3d,
    AvgPool3d,
    AvgPool3dSame,
    Conv3d,
    Conv3dSame,
    ConvTranspose3d,
    MaxPool3d,
    MaxPool3dSame,
)

__all__ = [
    "AdaptiveAvgPool3d", "AdaptiveMaxPool3d", "AvgPool3d", "AvgPool3dSame", "Conv3d", "Conv3dSame", "ConvTranspose3d",
    "Graphed", "Line", "MaxPool3d", "MaxPool3dSame", "Report", "adaptive_avg_pool3d", "adaptive_max_pool3d",
    "avg_pool3d", "conv3d", "conv3d_transpose", "conv_transpose3d", "from_torch", "functional", "graphed",
    "max_pool3d", "max_pool3d_with_argmax", "max_unpool3d", "report", "warm_up",
]  # fmt: skip
