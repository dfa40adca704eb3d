# SPDX-License-Identifier: Apache-2.0
"""The family on NVIDIA GPUs, in Triton: one file per family. Importing this package imports nothing heavy."""
