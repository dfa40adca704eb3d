# SPDX-License-Identifier: Apache-2.0
"""Recorded TensorFlow outputs of the ordinary ops."""
