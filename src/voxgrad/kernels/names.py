# SPDX-License-Identifier: Apache-2.0
"""What the kernels of the 3-D family are called: in the native library, among the paths on a GPU, in torch.ops."""

from __future__ import annotations

import re

KERNELS = {
    "Conv3D": "conv3d",
    "Conv3DBackpropInputV2": "conv3d_input",
    "Conv3DBackpropFilterV2": "conv3d_filter",
    "AvgPool3D": "avg_pool",
    "AvgPool3DGrad": "avg_pool_grad",
    "MaxPool3D": "max_pool",
    "MaxPool3DGrad": "max_pool_grad",
    "MaxPool3DGradGrad": "max_pool_grad_grad",
}
"""The ops with kernels of their own; the reference computes any other."""


def kernel_name(op: str) -> str:
    """The name of an op's kernel, by the op's name.

    >>> kernel_name("Conv3DBackpropInputV2"), kernel_name("SumPool3DGrad")
    ('conv3d_input', 'sum_pool3d_grad')
    """
    return KERNELS.get(op) or re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", op).lower()
