# SPDX-License-Identifier: Apache-2.0
"""The family in PyTorch: functions and modules with TensorFlow's padding, differentiable to any order.

import voxgrad.torch as vt
y = vt.max_pool3d(x, 3, 2)                      # NCDHW, SAME, deterministic gradients
layer = vt.Conv3dSame(32, 64, 3, stride=2)      # the weights of nn.Conv3d, the padding of TensorFlow
"""

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
from voxgrad.torch.modules import AvgPool3dSame, Conv3dSame, MaxPool3dSame, from_torch

__all__ = [
    "AvgPool3dSame", "Conv3dSame", "MaxPool3dSame", "adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d",
    "conv3d", "conv3d_transpose", "from_torch", "max_pool3d", "max_pool3d_with_argmax", "max_unpool3d",
]  # fmt: skip
