# SPDX-License-Identifier: Apache-2.0
"""What came in and goes out: arrays of every kind, the plan of a call, and its execution."""
