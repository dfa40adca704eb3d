# SPDX-License-Identifier: Apache-2.0
"""Names under which older programs look for the same functions."""

from voxgrad.compat import v1 as v1
