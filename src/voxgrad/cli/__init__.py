# SPDX-License-Identifier: Apache-2.0
"""The command `voxgrad`: thin commands over the functions that Python callers use."""

from voxgrad.cli.main import main as main
