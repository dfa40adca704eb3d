# SPDX-License-Identifier: Apache-2.0
"""A module on windows that overlap, blended: MONAI's windows and weights, nnU-Net's mirrors.

Windows are done in the order of their depth. When all with one first plane are done, the planes before the next ones
are finished: they are written, and what is still open, no more than the depth of a window, is saved. A run that was
stopped goes on there, with the same bits.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from voxgrad.errors import Fault, Faults, InvalidArgumentError
from voxgrad.formats.tensor_files import replace_file
from voxgrad.volumes.costs import parse_bytes
from voxgrad.volumes.job import load_sealed, mark_of, save_sealed
from voxgrad.volumes.one_pass import Progress
from voxgrad.volumes.record import Digests, checksum, damaged, only_run, room_in
from voxgrad.volumes.store import Store, human
from voxgrad.volumes.stores import create_volume, finish, is_there, open_volume
from voxgrad.volumes.watch import folder_of

Array = np.ndarray[Any, Any]
Range = tuple[int, int]
_LEAST_WEIGHT = 1e-3
_SIGMA = 0.125


@dataclass(frozen=True)
class Windows:
    """How a volume is covered with windows, and how they are weighed."""

    size: tuple[int, ...]
    overlap: float = 0.25
    blend: str = "constant"
    mirror: tuple[int, ...] = ()

    def check(self) -> None:
        """Raise all that is wrong."""
        faults = Faults("predict")
        if len(self.size) != 3 or min(self.size, default=0) < 1:
            faults.add("VG003", "window", wanted="be depth, height, width, 1 or more each", got=list(self.size))
        if not 0 <= self.overlap < 1:
            faults.add("VG003", "overlap", wanted="be from 0 to below 1", got=self.overlap)
        if self.blend not in ("constant", "gaussian"):
            faults.add("VG003", "blend", wanted="be 'constant' or 'gaussian'", got=repr(self.blend))
        if not set(self.mirror) <= {0, 1, 2} or len(set(self.mirror)) < len(self.mirror):
            faults.add("VG003", "mirror", wanted="hold some of 0, 1, 2: depth, height, width", got=list(self.mirror))
        faults.raise_if_any()

    def starts(self, sizes: Sequence[int]) -> list[list[int]]:
        """The first cells of windows along every axis; the last ones end with the volume."""
        found = []
        for size, window in zip(sizes, self.size, strict=True):
            step = max(1, int(window * (1 - self.overlap)))
            last = max(0, size - window)
            found.append([*range(0, last, step), last])
        return found

    def weights(self) -> Array:
        """The weight of every cell of a window."""
        if self.blend == "constant":
            return np.ones(self.size, np.float32)
        depth, height, width = (self._line(window) for window in self.size)
        made = depth[:, None, None] * height[:, None] * width
        return np.asarray(np.maximum(made, np.float32(max(float(made.min()), _LEAST_WEIGHT))))

    @staticmethod
    def _line(window: int) -> Array:
        """A Gaussian around the middle of a window."""
        away = np.arange(window, dtype=np.float32) - np.float32((window - 1) / 2)
        return np.asarray(np.exp(away**2 / np.float32(-2 * (window * _SIGMA) ** 2)))


def blended(
    model: torch.nn.Module, volume: Store, output: str, how: Windows, memory: int | str | None,
    progress: Progress | None,
) -> Store:  # fmt: skip
    """The blended result of a module, in a file."""
    how.check()
    folder = folder_of(output)
    with room_in(folder), only_run(folder, [output]):
        run = _Run(model, volume, output, how, folder)
        run.begin()
        with _evaluating(model):
            run.go(None if memory is None else parse_bytes(memory), progress)
        finish(output)
    return open_volume(output)


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """The module as it is used, not trained."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


class _Run:
    """A run: its record in a folder, and what of the result is still open."""

    def __init__(self, model: torch.nn.Module, volume: Store, output: str, how: Windows, folder: Path):
        self.model, self.volume, self.output, self.how, self.folder = model, volume, output, how, folder
        weight = next(iter(model.parameters()), torch.zeros(()))
        self.device, self.dtype = weight.device, weight.dtype
        self.before = [max(0, window - size) // 2 for window, size in zip(how.size, volume.shape[1:4], strict=True)]
        self.sizes = [max(window, size) for window, size in zip(how.size, volume.shape[1:4], strict=True)]
        self.starts = how.starts(self.sizes)
        self.weights = how.weights()
        self.digests = Digests(folder)

    def begin(self) -> None:
        """Start, or make sure that this is the run that was begun."""
        file = self.folder / "blend.json"
        told = json.dumps(self._described(), sort_keys=True)
        if not file.exists():
            if is_there(self.output):
                raise _wrong("output", "not exist yet", self.output, "Remove it or choose another name.")
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(file, told.encode())
        elif file.read_text(errors="replace") != told:
            remedy = f"Finish that run with its own arguments, or remove {self.folder} and the output."
            raise _wrong("output", "belong to this very run", "the record of another one", remedy)

    def _described(self) -> dict[str, Any]:
        made = hashlib.blake2b(digest_size=16)
        for name, value in sorted(self.model.state_dict().items()):
            made.update(name.encode())
            made.update(np.ascontiguousarray(value.detach().cpu().numpy()).tobytes())
        return {"model": made.hexdigest(), "volume": mark_of(self.volume), "windows": asdict(self.how)}

    def go(self, memory: int | None, progress: Progress | None) -> None:
        """Do what is left: image by image, and in each from the first plane to the last."""
        layers = [(image, at) for image in range(self.volume.shape[0]) for at in range(len(self.starts[0]))]
        each = len(self.starts[1]) * len(self.starts[2])
        done, self.held = self._saved(), {}
        begun, first = time.monotonic(), 0
        if done:
            first = max(done)
            self.held = done[first]
            self._check_written(first)
        for number, (image, at) in enumerate(layers[first:], first):
            self._layer(image, self.starts[0][at], memory)
            last = at + 1 == len(self.starts[0])
            self._finish(number, image, self.starts[0][at], self.sizes[0] if last else self.starts[0][at + 1])
            save_sealed(self.folder / f"open-{number + 1}", {} if last else self.held)
            for name in self.folder.glob(f"open-{number}.*"):
                name.unlink()
            if progress is not None:
                progress((number + 1) * each, len(layers) * each, time.monotonic() - begun)

    def _saved(self) -> dict[int, dict[str, Array]]:
        """What earlier runs left open, by the number of layers that were done."""
        numbers = [int(one.stem.partition("-")[2]) for one in self.folder.glob("open-*.seal")]
        newest = max(numbers, default=0)
        found = load_sealed(self.folder / f"open-{newest}") if newest else None
        return {} if found is None else {newest: {name: value.copy() for name, value in found.items()}}

    def _check_written(self, layers: int) -> None:
        """All that finished layers wrote must be there."""
        known, store = self.digests.read(), open_volume(self.output)
        for number in range(layers):
            image, at = divmod(number, len(self.starts[0]))
            low, high = self._planes(at)
            found = checksum([store.read((slice(image, image + 1), slice(low, high), *[slice(None)] * 3))])
            if found not in known.get(number, set()):
                raise damaged(self.folder, f"{self.output}, changed or gone")

    def _planes(self, at: int) -> Range:
        """The planes of the volume that are finished with a layer of windows."""
        low = self.starts[0][at]
        high = self.sizes[0] if at + 1 == len(self.starts[0]) else self.starts[0][at + 1]
        size = self.volume.shape[1]
        return tuple(min(max(one - self.before[0], 0), size) for one in (low, high))  # type: ignore[return-value]

    def _layer(self, image: int, start: int, memory: int | None) -> None:
        """Add all windows whose first plane is this one."""
        for row, column in itertools.product(self.starts[1], self.starts[2]):
            corner = (start, row, column)
            made = self._predicted(self._read(image, corner))
            if not self.held:
                self._make_room(made.shape[0], memory)
            place = (slice(None), slice(None), *(slice(at, at + n) for at, n in zip(corner[1:], self.how.size[1:],
                                                                                    strict=True)))  # fmt: skip
            self.held["sum"][place] += made * self.weights
            self.held["weight"][place[1:]] += self.weights

    def _make_room(self, channels: int, memory: int | None) -> None:
        shape = (self.how.size[0], *self.sizes[1:])
        need = 4 * math.prod(shape) * (channels + 1)
        if memory is not None and need > memory:
            remedy = "Allow more, or take windows of less depth."
            raise _wrong("memory", f"be at least {human(need)} for what is open of the result", human(memory), remedy)
        self.held = {"sum": np.zeros((channels, *shape), np.float32), "weight": np.zeros(shape, np.float32)}

    def _read(self, image: int, corner: Sequence[int]) -> Array:
        """A window of the volume [C, D, H, W], with zeros where it is larger than the volume."""
        spans = []
        for at, before, window, size in zip(corner, self.before, self.how.size, self.volume.shape[1:4], strict=True):
            low = min(max(at - before, 0), size)
            spans.append((low, min(at - before + window, size)))
        part = self.volume.read((slice(image, image + 1), *(slice(*one) for one in spans), slice(None)))[0]
        around = [
            (low - (at - before), window - (high - low) - (low - (at - before)))
            for at, before, window, (low, high) in zip(corner, self.before, self.how.size, spans, strict=True)
        ]
        return np.pad(part, [*around, (0, 0)]).transpose(3, 0, 1, 2)

    def _predicted(self, part: Array) -> Array:
        """What the module gives for a window; the mean over all ways to turn it, where mirrors are asked for."""
        given = torch.from_numpy(np.ascontiguousarray(part[None])).to(self.device, self.dtype)
        ways = [
            some for count in range(len(self.how.mirror) + 1) for some in itertools.combinations(self.how.mirror, count)
        ]
        total: Any = 0
        for some in ways:
            axes = [axis + 2 for axis in some]
            made = self.model(given.flip(axes) if axes else given)
            if not isinstance(made, torch.Tensor) or tuple(made.shape[2:]) != self.how.size:
                got = list(made.shape[2:]) if isinstance(made, torch.Tensor) else type(made).__name__
                raise _wrong("model", f"give one tensor of the window's size, {list(self.how.size)}", str(got))
            total = total + (made.flip(axes) if axes else made)
        return np.asarray((total / len(ways) if len(ways) > 1 else total).float().cpu().numpy()[0])

    def _finish(self, number: int, image: int, low: int, high: int) -> None:
        """Write the planes that are finished, and move what is open to the front."""
        count = high - low
        done = self.held["sum"][:, :count] / self.held["weight"][:count]
        first, last = self._planes(number % len(self.starts[0]))
        inside = [
            slice(before, before + size) for before, size in zip(self.before, self.volume.shape[1:4], strict=True)
        ]
        from_ = first + self.before[0] - low
        planes = done[:, from_ : from_ + last - first, inside[1], inside[2]].transpose(1, 2, 3, 0)[None]
        store = self._target(done.shape[0])
        store.write((slice(image, image + 1), slice(first, last), *[slice(None)] * 3), np.ascontiguousarray(planes))
        store.sync()
        self.digests.note(number, [planes])
        for value in self.held.values():
            axis = value.ndim - 3
            kept = np.roll(value, -count, axis)
            kept[(slice(None),) * axis + (slice(max(0, self.how.size[0] - count), None),)] = 0
            value[...] = kept
        if high == self.sizes[0]:
            self.held = {}

    def _target(self, channels: int) -> Store:
        shape = (*self.volume.shape[:4], channels)
        if is_there(self.output):
            return open_volume(self.output, write=True)
        chunks = (1, *(min(64, size) for size in shape[1:4]), channels)
        return create_volume(self.output, shape, np.float32, chunks, like=self.volume.space)


def _wrong(name: str, wanted: str, got: str, remedy: str = "") -> InvalidArgumentError:
    return InvalidArgumentError(Fault("VG051", "predict", name, wanted, got, remedy))
