# SPDX-License-Identifier: Apache-2.0
"""The version, where both the package and its build read it."""

__version__ = "0.1.0"
