# SPDX-License-Identifier: Apache-2.0
"""`tf.compat.v1`'s place for the raw ops: the very same functions."""

from voxgrad import raw_ops as raw_ops
