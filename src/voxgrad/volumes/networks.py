# SPDX-License-Identifier: Apache-2.0
"""A network over a volume that does not fit: exactly what it gives for the whole, or blended from windows.

Exactly: the network becomes a page, which runs chunk by chunk as any other (`run`). By windows, for models that were
trained to be used so: `blending`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voxgrad.arguments import checked
from voxgrad.errors import Fault, Faults, InvalidArgumentError
from voxgrad.graph.page import Page
from voxgrad.volumes.executors import Executor, executor_for
from voxgrad.volumes.job import Job, opened
from voxgrad.volumes.run import CHUNKS, Progress, page_of, run_in
from voxgrad.volumes.stores import Store
from voxgrad.volumes.trial import chunks_within


@checked
def predict(
    model: Any,
    volume: Any,
    output: str | Path,
    *,
    memory: int | str | None = None,
    chunks: Sequence[int] | None = None,
    workers: int | Executor | None = None,
    client: Any = None,
    device: str = "cpu",
    progress: Progress | None = None,
    window: Sequence[int] | None = None,
    overlap: float = 0.25,
    blend: str = "constant",
    mirror: Sequence[int] = (),
) -> Store:
    """What a network gives for a whole volume, written to a file; returns the opened result.

        vg.volumes.predict(model, "scan.nii.gz", "labels.nii", memory="2 GiB")

    `model` is a torch module, which sees [N, C, D, H, W] and is used in evaluation, or a page with one placeholder and
    one output (or their file). The result is that of the whole volume at once, norms and all: parts are pulled through
    the network with all that their windows touch, and statistics are taken over the whole volume. `memory` is the limit
    of a worker; `chunks` cuts the largest result of every pass instead. The same call again goes on where this one
    stopped. `workers`, `client` and `progress` as in `run_page`.

    With `window` the module itself is run on windows of that size (depth, height, width), as models are that were
    trained on such: they overlap by a share of `overlap`, `blend` weighs them ("constant", or "gaussian" as MONAI
    does), and `mirror` names axes (0, 1, 2) along which the volume is turned too, in every combination, as nnU-Net
    does. The module runs where its weights are; `memory` is then for what is held of the result.
    """
    if window is not None:
        from voxgrad.volumes.blending import Windows, blended

        how = Windows(tuple(window), overlap, blend, tuple(mirror))
        return blended(model, opened(volume), str(output), how, memory, progress)
    _check_exact(overlap, blend, mirror)
    job = _job(model, opened(volume), output, chunks or CHUNKS, device)
    executor = executor_for(workers, client, device)
    if memory is not None and chunks is None:
        # A trial of every pass of a network takes longer than it saves.
        job.chunks, _ = chunks_within(job, memory, None, None)
    return run_in(job, None, executor, progress)[job.names["y"]]  # type: ignore[no-any-return]


def _check_exact(overlap: float, blend: str, mirror: Sequence[int]) -> None:
    """Options of windows say nothing without windows."""
    faults = Faults("predict")
    for name, value, usual in (("overlap", overlap, 0.25), ("blend", blend, "constant"), ("mirror", tuple(mirror), ())):
        if value != usual:
            remedy = "Without window the result is exact, and nothing is blended."
            faults.add("VG003", name, wanted="be given with window", got=value, remedy=remedy)
    faults.raise_if_any()


def _job(model: Any, volume: Store, output: str | Path, chunks: Sequence[int], device: str) -> Job:
    if isinstance(model, (Page, str, Path)):
        page = page_of(model)
        source, target = _ends(page)
        job = Job.make(page, {source: volume}, {}, {target: output}, [], chunks, device)
        job.names["y"] = job.names[target]
        return job
    if not hasattr(model, "named_parameters"):
        got = type(model).__name__
        raise InvalidArgumentError(Fault("VG030", "predict", "model", "be a torch module or a page", got))
    from voxgrad.formats.torch_module import page_of_module

    network = page_of_module(model, volume.shape)
    return Job.make(network.page, {"x": volume}, network.feeds, {"y": output}, [], chunks, device)


def _ends(page: Page) -> tuple[str, str]:
    """The one placeholder of a page and its one output."""
    sources = [block.name for block in page.blocks if block.op_name == "Placeholder"]
    targets = list(page.outputs)
    if len(sources) != 1 or len(targets) != 1:
        wanted, got = "have one placeholder and one output", f"{sources} and {targets}"
        remedy = "vg.volumes.run_page takes others, by name."
        raise InvalidArgumentError(Fault("VG067", "predict", page.name, wanted, got, remedy))
    return sources[0], targets[0]
