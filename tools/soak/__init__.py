# SPDX-License-Identifier: Apache-2.0
"""Random use for a long time: pages, edits, kills, full disks, forks and threads."""
