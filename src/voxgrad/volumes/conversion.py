# SPDX-License-Identifier: Apache-2.0
"""A volume in another format: the same voxels at the same places."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.text import parse_type
from voxgrad.kernels.element_types import numpy_type
from voxgrad.volumes.exchange import store_of
from voxgrad.volumes.executors import Executor
from voxgrad.volumes.job import opened
from voxgrad.volumes.one_pass import Progress, sharded
from voxgrad.volumes.pyramids import boxes
from voxgrad.volumes.run import CHUNKS, apply, inner_of
from voxgrad.volumes.store import Store
from voxgrad.volumes.stores import create_volume, finish, fitted, is_packed, is_there, open_volume, save_volume


@checked
def convert(
    volume: Any,
    output: str | Path,
    *,
    chunks: Sequence[int] = CHUNKS,
    workers: int | Executor | None = 0,
    output_dtype: str | None = None,
    inner_chunks: Sequence[int] = (),
    progress: Progress | None = None,
) -> Store:
    """Write a volume to a file of another format, and open it: `vg.volumes.convert("series/", "scan.nii.gz")`.

    It keeps its type, unless `output_dtype` names another, and its place, where the format holds one. Files that are
    packed as a whole (.npz, .nii.gz, .zarr.zip) go through memory; others are written part by part, as by `apply`.
    Arrays of NumPy, Dask and xarray are written part by part too, in this process; a run that was stopped begins anew.
    """
    if isinstance(volume, (str, Path, Store)) and not is_packed(output):
        return apply(
            "Identity", {"input": opened(volume)}, output, chunks=chunks, workers=workers, output_dtype=output_dtype,
            inner_chunks=inner_chunks, progress=progress,
        )  # fmt: skip
    if is_there(output):
        remedy = "Remove it or choose another name."
        raise InvalidArgumentError(Fault("VG051", "convert", "output", "not exist yet", str(output), remedy))
    store = opened(volume) if isinstance(volume, (str, Path, Store)) else store_of(volume)
    kind = store.dtype
    if output_dtype is not None:
        kind = np.dtype(numpy_type(parse_type(output_dtype, "output_dtype", "convert")))
    if is_packed(output):
        save_volume(output, fitted(store.read(), kind, str(output)), like=store)
        return open_volume(output)
    return _copied(store, output, kind, chunks, inner_of(inner_chunks))


def _copied(
    source: Store, output: str | Path, kind: np.dtype[Any], chunks: Sequence[int], inner: Sequence[int]
) -> Store:
    """Write an array into a new file, one chunk after the other."""
    whole = (1, *chunks, source.shape[4])
    cut = [max(1, min(one, size)) for one, size in zip(whole, source.shape, strict=True)]
    parts = sharded(cut, source.shape, (0, 1, 2, 3, None), inner) if inner else {"chunks": cut}
    target = create_volume(output, source.shape, kind, like=source.space, **parts)
    for box in boxes(source.shape, cut):
        target.write(box, fitted(source.read(box), kind, str(output)))
    target.sync()
    finish(output)
    return open_volume(output)
