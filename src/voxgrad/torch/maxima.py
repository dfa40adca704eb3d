# SPDX-License-Identifier: Apache-2.0
"""Maxima as torch has them: NaN wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from voxgrad.arrays.pools import exact_type
from voxgrad.catalog.max_pool3d import MAX_POOL3D
from voxgrad.catalog.model import Op, Side
from voxgrad.torch import rules
from voxgrad.torch.rules import call, operator

NAN_WINS = "nan_wins"
"""The documented semantics, but that NaN wins a maximum as in torch: for operators alone, no semantics of its own."""


def declared(rule: str) -> str:
    """The semantics of the catalogue that the rule of an operator builds on."""
    return "documented" if rule == NAN_WINS else rule


def with_nan(op: Op, inputs: list[torch.Tensor], attrs: Sequence[Any], made: torch.Tensor) -> torch.Tensor:
    """What an op of maxima makes where NaN wins, as in torch the last one of a window; `made`: where it never does."""
    x, y = inputs[0], inputs[1] if op.of else None
    # A sum is the quickest to tell: it may be NaN without one, and then what follows changes nothing.
    if not (x if y is None else y).sum().isnan():
        return made
    last = attrs[rules.attr_names(op).index("channels_last")]
    rank = torch.where(x.isnan(), cell_numbers(x, last), 0)
    top = call.max_pool(rank, *attrs, declared(NAN_WINS))
    won = top > 0
    if y is None:
        return made.masked_fill(won, torch.nan)
    run, grad = operator(op), inputs[2]
    if op.map.output is Side.WINDOWS:
        return run(rank, top, grad.to(rank.dtype), *attrs, declared(NAN_WINS)).to(made.dtype).where(won, made)
    by_nan, by_others = grad.masked_fill(~won, 0), grad.masked_fill(won, 0)
    return run(rank, top, by_nan, *attrs, declared(NAN_WINS)) + run(x, y, by_others, *attrs, declared(NAN_WINS))


def cell_numbers(x: torch.Tensor, last: bool) -> torch.Tensor:
    """The numbers of the cells of a volume, from 1, in its shape and in a type that holds them and its own numbers."""
    spatial = x.shape[1:4] if last else x.shape[2:5]
    exact = getattr(torch, exact_type(rules.spec(MAX_POOL3D, "input", x), last).name)
    numbers = torch.arange(1, spatial.numel() + 1, dtype=exact, device=x.device)
    return numbers.reshape((*spatial, 1) if last else spatial).expand(x.shape)
