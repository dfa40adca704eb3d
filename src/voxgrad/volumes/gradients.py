# SPDX-License-Identifier: Apache-2.0
"""A loss over a whole volume and its exact gradients with respect to filters, chunk by chunk.

The gradients are blocks of the page like any others, so each chunk brings its part of every sum, and the parts are
added in a fixed tree in float64. Nothing is blended or left out at the borders: the numbers are those of the whole
volume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.errors import Faults
from voxgrad.graph.block import Output
from voxgrad.graph.gradients import gradients
from voxgrad.graph.page import Page
from voxgrad.volumes.executors import Executor
from voxgrad.volumes.layout import flat
from voxgrad.volumes.run import CHUNKS, Progress, page_of, run_page

Array = np.ndarray[Any, Any]


@checked
def value_and_gradients(
    page: Page | str | Path,
    loss: Output | str,
    wrt: Sequence[Output | str],
    volumes: Mapping[str, Any] | None = None,
    *,
    feeds: Mapping[Any, Any] | None = None,
    chunks: Sequence[int] = CHUNKS,
    workers: int | Executor | None = None,
    client: Any = None,
    device: str = "cpu",
    progress: Progress | None = None,
    folder: str | Path | None = None,
) -> tuple[Array, list[Array]]:
    """The value of a loss over whole volumes, and its gradients with respect to filters, biases, any small tensor.

        loss, (dw, db) = vg.volumes.value_and_gradients(page, "loss", ["w", "b"], {"x": "scan.zarr", "t":
        "target.zarr"}, feeds={"w": w, "b": b}, chunks=(64, 64, 64), workers=4)

    `loss` is a Sum or a Mean over an expression per voxel, or made of such sums by constant factors and additions;
    `wrt` are variables, constants or placeholders. `feeds` gives them values, as a fit does in every step; variables
    without one have what the page starts them with. The other arguments are those of `run_page`; a Dask cluster needs a
    `folder` that all its workers see.
    """
    names = [one.path if isinstance(one, Output) else one for one in (loss, *wrt)]
    copy = flat(page_of(page))
    exposed = {name: output.path for name, output in copy.outputs.items()}
    target, *sources = (copy.output(exposed.get(name, name)) for name in names)
    _check_number(target)
    found = gradients([target], sources)
    faults = Faults("value_and_gradients")
    for name, grad in zip(names[1:], found, strict=True):
        if grad is None:
            faults.add("VG064", name, wanted="be something that the loss depends on", got="no path to it")
    faults.raise_if_any()
    wanted = [target.path, *(grad.path for grad in found if grad is not None)]
    values = run_page(
        copy, volumes, {}, wanted, feeds=feeds, chunks=chunks, workers=workers, client=client, device=device,
        progress=progress, folder=folder,
    )  # fmt: skip
    return values[wanted[0]], [values[name] for name in wanted[1:]]


def _check_number(loss: Output) -> None:
    if loss.shape is not None and len(loss.shape):
        faults = Faults("value_and_gradients")
        remedy = "Put a Sum or a Mean over all of its axes behind it."
        faults.add("VG010", loss.path, wanted="be one number", got=f"shape {list(loss.shape)}", remedy=remedy)
        raise faults.error()
