# SPDX-License-Identifier: Apache-2.0
"""Where the tensors of a session live."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.errors import Fault, InvalidArgumentError, UnimplementedError
from voxgrad.kernels.arraywise.namespace import moved_to, to_numpy

Place = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Device:
    """A place for tensors; `place` is None where NumPy arrays stay as they are."""

    name: str
    place: Place | None = None

    def put(self, array: Any) -> Any:
        """A NumPy array, where the session's tensors live; text and small integers stay at home."""
        stays = self.place is None or array.dtype == object or array.dtype.kind in "iu"
        return array if stays or self.place is None else self.place(array)

    def to_host(self, value: Any) -> Any:
        """A tensor as NumPy; what is no tensor stays as it is."""
        return to_numpy(value) if hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic)) else value


def device_named(name: str) -> Device:
    """The device with this name: `cpu`, `cuda`, `cuda:1`; enuSpace's and TensorFlow's `/cpu:0`, `/gpu:0` too."""
    match = re.fullmatch(r"/?(?:device:)?(cpu|gpu|cuda)(?::(\d+))?", str(name).lower())
    if match is None:
        raise InvalidArgumentError(Fault("VG003", "ClientSession", "device", "be 'cpu' or 'cuda'", repr(name)))
    if match[1] == "cpu":
        return Device("cpu")
    return _cuda(int(match[2] or 0))


def _cuda(index: int) -> Device:
    try:
        import torch
    except ImportError:
        raise _missing("torch is not installed", "Install voxgrad[cuda].") from None
    if index >= torch.cuda.device_count():
        raise _missing(f"{torch.cuda.device_count()} CUDA devices", "Use device='cpu'.")
    like = torch.empty((), device=f"cuda:{index}")
    return Device(f"cuda:{index}", lambda array: moved_to(array, like))


def _missing(got: str, remedy: str) -> UnimplementedError:
    return UnimplementedError(Fault("VG032", "ClientSession", "device", "be there", got, remedy))
