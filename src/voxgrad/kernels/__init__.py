# SPDX-License-Identifier: Apache-2.0
"""The kernels of every device. They take a problem and memory, and know nothing else."""
