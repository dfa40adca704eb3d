# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's recorded answers for the eight 3-D ops (see README.md)."""
