# SPDX-License-Identifier: Apache-2.0
"""Where `max_unpool3d` puts its values, as an operator of torch: it looks at numbers, which a traced graph has not."""

from __future__ import annotations

from typing import Any

import torch

from voxgrad.arrays.pools import refuse_place
from voxgrad.torch.operators import library
from voxgrad.torch.rules import call

_torch: Any = torch.library


def _unpool_places(indices: torch.Tensor, axis: int, cells: int) -> torch.Tensor:
    """The cells of the values of `max_unpool3d` along one axis; `cells` for those that are not taken.

    `axis` is the first of the three of windows, from behind, which become one.
    """
    wrong = (indices < -1) | (indices >= cells)
    if wrong.any():
        at = wrong.nonzero()[0].tolist()
        refuse_place(int(indices[tuple(at)]), at, cells)
    places, axis = torch.where(indices < 0, cells, indices.long()).flatten(axis, axis + 2), axis + 2
    order = torch.arange(places.shape[axis], device=places.device).reshape((-1, *[1] * (-1 - axis)))
    shape = [*places.shape]
    shape[axis] = cells + 1
    latest = places.new_zeros(shape).scatter_reduce(axis, places, order.expand_as(places), "amax")
    return places.where(latest.gather(axis, places) == order, cells)


def _fake_places(indices: torch.Tensor, axis: int, cells: int) -> torch.Tensor:
    return torch.empty_like(indices, dtype=torch.int64).flatten(axis, axis + 2)


def _mapped_places(info: Any, dims: tuple[Any, ...], indices: torch.Tensor, *rest: int) -> tuple[torch.Tensor, int]:
    return call.unpool_places(indices.movedim(dims[0], 0), *rest), 0


library.define("unpool_places(Tensor indices, int axis, SymInt cells) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
for _device in ("CPU", "CUDA"):
    library.impl("unpool_places", _unpool_places, _device)
_torch.register_fake("voxgrad::unpool_places", _fake_places, lib=library)
_torch.register_vmap("voxgrad::unpool_places", _mapped_places, lib=library)


def places(indices: torch.Tensor, axis: int, cells: int) -> torch.Tensor:
    """The cells that values go to along one axis; `cells` where later ones take their place."""
    made: torch.Tensor = call.unpool_places(indices, axis, cells)
    return made
