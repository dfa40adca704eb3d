# SPDX-License-Identifier: Apache-2.0
"""Random calls of every op of the catalogue, valid and invalid, here and in TensorFlow. See docs/testing.md.

`draw` makes calls from declarations, with `hints` where these cannot say enough; `spoil` breaks them; `child` runs
them in TensorFlow, in a process that may die; `ours` runs them here; `compare` says whether the answers agree;
`known` lists what TensorFlow does differently, with reasons; `scripts` are the ops that need a session.
"""
