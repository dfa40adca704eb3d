# SPDX-License-Identifier: Apache-2.0
"""Fits a filter to a real scan that is treated as larger than memory: `python -m examples.fit_volume [--workers 2]`.

The scan (a brain, 24 x 96 x 128 voxels, from nibabel's test data; the small head beside this file without nibabel) gets
noise, and a 3 x 3 x 3 filter with a bias is fitted to take it off again: the mean squared error over all voxels is
lowered by conjugate gradients. No process ever holds the volume: every step reads it chunk by chunk, each chunk brings
its part of the loss and of the gradients, and the parts are added. At the end the gradient is compared with that of the
whole volume in memory, and the filter is run over the scan, from file to file.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.volumes.stores import create_volume

Array = np.ndarray[Any, Any]
CHUNKS = (8, 32, 64)


def find_scan() -> Path:
    """A real scan that came with a package, found without importing it."""
    spec = importlib.util.find_spec("nibabel")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    scan = folder / "tests" / "data" / "example4d.nii.gz"
    return scan if scan.exists() else Path(__file__).with_name("files") / "head.nii.gz"


def prepare(scan: Path, folder: Path) -> dict[str, Path]:
    """The clean and the noisy volume as files, made slab by slab."""
    source, noise = vg.open_volume(scan), np.random.default_rng(0)
    shape = (1, *source.shape[1:4], 1)
    files = {"clean": folder / "clean.npy", "noisy": folder / "noisy.npy"}
    stores = {name: create_volume(path, shape, np.float32) for name, path in files.items()}
    top = max(float(source[0, at].max()) for at in range(shape[1]))
    for at in range(shape[1]):
        index = (slice(0, 1), slice(at, at + 1), slice(None), slice(None), slice(0, 1))
        slab = source.read(index).astype(np.float32) / top
        stores["clean"].write(index, slab)
        stores["noisy"].write(index, slab + 0.1 * noise.standard_normal(slab.shape).astype(np.float32))
    return files


def make_page() -> vg.Page:
    """A filter, and how far its result is from the clean volume."""
    page = vg.Page("denoise")
    x = vg.ops.Placeholder(page, dtype="float32", shape=["N", "D", "H", "W", 1], name="noisy")
    t = vg.ops.Placeholder(page, dtype="float32", shape=["N", "D", "H", "W", 1], name="clean")
    w = vg.ops.Placeholder(page, dtype="float32", shape=[3, 3, 3, 1, 1], name="w")
    b = vg.ops.Placeholder(page, dtype="float32", shape=[1], name="b")
    y = vg.ops.BiasAdd(page, vg.ops.Conv3D(page, x, w, strides=[1] * 5, padding="SAME"), b, name="denoised")
    error = vg.ops.Square(page, vg.ops.Sub(page, y, t))
    page.expose({"denoised": y, "loss": vg.ops.Mean(page, error, [0, 1, 2, 3, 4], name="loss")})
    return page


def fit(page: vg.Page, files: dict[str, Path], steps: int, workers: Any) -> tuple[dict[str, Array], list[float]]:
    """Conjugate gradients: the loss is quadratic in filter and bias, so a second gradient tells how far to go."""

    def at(point: Array) -> tuple[float, Array]:
        loss, grads = vg.volumes.value_and_gradients(
            page, "loss", ["w", "b"], files, feeds=as_values(point), chunks=CHUNKS, workers=workers
        )
        return float(loss), np.concatenate([one.ravel() for one in grads]).astype(np.float64)

    point = np.zeros(28)
    point[13] = 1  # the filter that changes nothing
    loss, gradient = at(point)
    direction, losses = -gradient, [loss]
    for step in range(steps):
        print(f"step {step:2}: loss {losses[-1]:.6f}", flush=True)
        # Of unit length, so that the difference of two gradients is not lost in their rounding.
        unit = direction / np.linalg.norm(direction)
        curvature = at(point + unit)[1] - gradient
        point = point - (unit @ gradient) / (unit @ curvature) * unit
        loss, turned = at(point)
        direction = -turned + max(0.0, turned @ (turned - gradient) / (gradient @ gradient)) * direction
        gradient = turned
        losses.append(loss)
    return as_values(point), losses


def as_values(point: Array) -> dict[str, Array]:
    """The filter and the bias in one vector of 28 numbers."""
    return {"w": point[:27].reshape(3, 3, 3, 1, 1).astype(np.float32), "b": point[27:].astype(np.float32)}


def compare(page: vg.Page, files: dict[str, Path], values: dict[str, Array]) -> float:
    """How far the gradient over chunks is from that of the whole volume in memory, relative to its size."""
    _, (over_chunks,) = vg.volumes.value_and_gradients(
        page, "loss", ["w"], files, feeds=values, chunks=CHUNKS, workers=0
    )
    whole = vg.Page.from_dict(page.to_dict())
    (made,) = vg.gradients([whole.output("loss")], [whole.output("w")])
    feeds = {**values, **{name: np.load(path) for name, path in files.items()}}
    dense = vg.ClientSession(whole).run(made, feeds=feeds)
    # Near the minimum the gradient is a small difference of large sums: it is measured by these.
    return float(np.abs(over_chunks - dense).max() / np.abs(feeds["noisy"]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: this one")
    given = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="voxgrad-fit-") as place, vg.volumes.Workers(max(1, given.workers)) as pool:
        folder = Path(place)
        files, page = prepare(find_scan(), folder), make_page()
        feeds = {"w": np.zeros((3, 3, 3, 1, 1), np.float32), "b": np.zeros(1, np.float32)}
        print(vg.volumes.cost(vg.volumes.plan_page(page, files, ["loss"], feeds=feeds, chunks=CHUNKS)))
        values, losses = fit(page, files, given.steps, pool if given.workers else 0)
        print(f"noise left: {losses[-1] / losses[0]:.0%} of what it was, after {time.perf_counter() - start:.0f} s")
        print(f"gradient over chunks against the whole volume: {compare(page, files, values):.1e} apart")
        out = folder / "denoised.npy"
        vg.volumes.run_page(page, files, {"denoised": out}, feeds=values, chunks=CHUNKS, workers=0)
        error = np.square(np.load(out) - np.load(files["clean"])).mean()
        print(f"the filtered scan in {out.name}: mean squared error {error:.6f}")


if __name__ == "__main__":
    main()
