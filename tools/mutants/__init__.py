# SPDX-License-Identifier: Apache-2.0
"""Seeded changes of the sources, each run against the tests: which of them would nobody notice?"""
