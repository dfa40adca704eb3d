# SPDX-License-Identifier: Apache-2.0
"""Ordinary ops on whatever array library their inputs come from, NumPy and torch alike.

    (z,) = evaluate(find("AddV2"), [x, y], {}, Context())

One input per declared input: a list for a `many` input, a `Ref` for a `ref` input. One result per declared output: a
tuple for a `many` output. A variable travels as a `Ref`; `evaluate` reads it for every input that wants its value, at
that time, and `value_of` does the same for a result. `DEAD` is what Switch sends down the branch not taken.
"""

from voxgrad.kernels.arraywise.context import DEAD as DEAD
from voxgrad.kernels.arraywise.context import Context as Context
from voxgrad.kernels.arraywise.context import Ref as Ref
from voxgrad.kernels.arraywise.context import State as State
from voxgrad.kernels.arraywise.context import value_of as value_of
from voxgrad.kernels.arraywise.evaluation import evaluate as evaluate
