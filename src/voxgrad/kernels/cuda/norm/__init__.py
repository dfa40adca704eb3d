# SPDX-License-Identifier: Apache-2.0
"""Norms over volumes with the activation behind them, in two passes over the data each way.

`plain` says what is computed, `kernels` has the Triton functions, `passes` plans and launches them. Importing this
package imports nothing heavy.
"""
