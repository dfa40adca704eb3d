# SPDX-License-Identifier: Apache-2.0
"""Ops on volumes that outgrow memory: the plan of windows, and runs from store to store."""
