# SPDX-License-Identifier: Apache-2.0
"""Pages: blocks, pins, wires, live inference, sessions and symbolic gradients."""
