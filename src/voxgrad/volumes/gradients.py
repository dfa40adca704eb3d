# SPDX-License-Identifier: Apache-2.0
"""A loss over a whole volume and its exact gradients with respect to filters, chunk by chunk.

The gradients are blocks of the page like any others, so each chunk brings its part of every sum, and the parts are
added in a fixed tree in float64. Nothing is blended or left out at the borders: the numbers are those of the whole
volume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.errors import Fault, Faults, InvalidArgumentError
from voxgrad.graph.block import Output
from voxgrad.graph.gradients import gradients
from voxgrad.graph.page import Page
from voxgrad.volumes.executors import Executor
from voxgrad.volumes.job import opened
from voxgrad.volumes.layout import flat
from voxgrad.volumes.run import CHUNKS, Progress, page_of, run_page

if TYPE_CHECKING:
    from voxgrad.formats.torch_walk import Network

Array = np.ndarray[Any, Any]


@checked
def value_and_gradients(
    page: Any,
    loss: Output | str | Callable[..., Any],
    wrt: Sequence[Output | str] = (),
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

    A torch module stands for a page too, with a loss that torch computes of what it gives for the first of the volumes
    and of the others, all [N, C, D, H, W]:

        loss, grads = vg.volumes.value_and_gradients(model, torch.nn.functional.mse_loss, volumes={"x": "scan.zarr",
        "target": "target.zarr"})

    `wrt` names parameters, as `model.named_parameters()` does; without it all that require a gradient are meant. The
    module is taken as it is, in training or not. Files of integers come to the loss as int64.
    """
    if not isinstance(page, (Page, str, Path)):
        network, loss, wrt = _of_module(page, loss, wrt, volumes or {})
        page, feeds = network.page, network.feeds
        volumes = dict(zip(network.inputs, (volumes or {}).values(), strict=True))
    if not isinstance(loss, (Output, str)):
        got = type(loss).__name__
        raise InvalidArgumentError(
            Fault("VG030", "value_and_gradients", "loss", "be a result of the page, or its name", got)
        )
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


def _of_module(model: Any, loss: Any, wrt: Sequence[Any], volumes: Mapping[str, Any]) -> tuple[Network, str, list[str]]:
    """The page of a module with its loss, what the loss is called there, and its weights."""
    faults = Faults("value_and_gradients")
    if not hasattr(model, "named_parameters"):
        faults.add("VG030", "page", wanted="be a page, its file, or a torch module", got=type(model).__name__)
    elif not callable(loss):
        faults.add("VG030", "loss", wanted="be a function of what the module gives", got=type(loss).__name__)
    elif not volumes:
        faults.add("VG001", "volumes", wanted="hold what the module sees", got="none")
    faults.raise_if_any()
    from voxgrad.formats.torch_module import page_of_loss

    stores = [opened(one) for one in volumes.values()]
    network = page_of_loss(model, loss, [(store.shape, store.dtype.kind in "biu") for store in stores])
    # A weight that several layers share has one name in the graph.
    same: dict[int, str] = {}
    every = {name: (one, same.setdefault(id(one), name)) for name, one in
             model.named_parameters(remove_duplicate=False)}  # fmt: skip
    chosen = list(wrt) or [name for name, one in model.named_parameters() if one.requires_grad]
    found = []
    for name in chosen:
        if name not in every:
            faults.add("VG067", "wrt", wanted=f"name parameters of {type(model).__name__}", got=repr(name))
        elif (path := network.weights.get(f"model.{every[name][1]}")) is None:
            faults.add("VG064", str(name), wanted="be something that the loss depends on", got="no path to it")
        else:
            found.append(path)
    faults.raise_if_any()
    return network, "y", found


def _check_number(loss: Output) -> None:
    if loss.shape is not None and len(loss.shape):
        faults = Faults("value_and_gradients")
        remedy = "Put a Sum or a Mean over all of its axes behind it."
        faults.add("VG010", loss.path, wanted="be one number", got=f"shape {list(loss.shape)}", remedy=remedy)
        raise faults.error()
