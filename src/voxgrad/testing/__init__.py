# SPDX-License-Identifier: Apache-2.0
"""Testing as a product: the comparisons and random calls that this package tests itself with.

`assert_close` compares with a float64 truth and prints the worst elements; `check_adjoint` and `check_gradients`
hold an op to its declaration; `draw_call` makes random valid calls, from a seed or from hypothesis
(`voxgrad.testing.strategies`).
"""

from voxgrad.testing.calls import Chooser as Chooser
from voxgrad.testing.calls import SeededChooser as SeededChooser
from voxgrad.testing.calls import draw_call as draw_call
from voxgrad.testing.compare import assert_close as assert_close
from voxgrad.testing.compare import terms_of as terms_of
from voxgrad.testing.derivatives import check_adjoint as check_adjoint
from voxgrad.testing.derivatives import check_gradients as check_gradients
