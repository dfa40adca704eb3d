# SPDX-License-Identifier: Apache-2.0
"""Kinds of arrays. A framework is recognised only where the caller has already imported it.

A kind turns its arrays into NumPy views of host memory and wraps NumPy results again. What it cannot take, it says
as a fault: one predicate answers both "can it run?" and "why not?".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from voxgrad.errors import Faults
from voxgrad.kernels.element_types import NUMBERS
from voxgrad.kernels.element_types import dtype_of as dtype_of
from voxgrad.kernels.element_types import numpy_type as numpy_type


@dataclass(frozen=True, slots=True)
class Kind:
    """How arrays of one library come in and go out."""

    name: str
    matches: Callable[[Any], bool]
    refuse: Callable[[Any, str, Faults], bool]
    """Notes why an array cannot be taken; True if it cannot."""
    view: Callable[[Any], np.ndarray[Any, Any]]
    """The array as NumPy, without a copy wherever its memory allows."""
    wrap: Callable[[np.ndarray[Any, Any], Any], Any]
    """A fresh NumPy result as this kind, like the given array."""


def _numpy_refuses(array: Any, name: str, faults: Faults) -> bool:
    if is_masked(array):
        remedy = f"Pass {name}.filled(...), so that masked cells have a value."
        faults.add("VG030", name, wanted="be a plain array", got="a masked array", remedy=remedy)
        return True
    if dtype_of(array.dtype) is None:
        faults.add("VG011", name, wanted="hold numbers", got=f"dtype {array.dtype}")
        return True
    return False


NUMPY = Kind(
    "numpy",
    matches=lambda array: isinstance(array, (np.ndarray, np.generic)),
    refuse=_numpy_refuses,
    view=np.asarray,
    wrap=lambda result, like: result,
)


def _torch_refuses(tensor: Any, name: str, faults: Faults) -> bool:
    return torch_refuses(tensor, name, faults, "cpu")


def torch_refuses(tensor: Any, name: str, faults: Faults, device: str = "") -> bool:
    """Notes why a tensor cannot be taken, on a device where that matters; True if it cannot."""
    torch = _loaded("torch")
    before = len(faults.found)
    if tensor.requires_grad and torch.is_grad_enabled():
        remedy = f"Pass {name}.detach(), or call it under torch.no_grad()."
        faults.add(
            "VG031", name, wanted="not require a gradient", got="a tensor with requires_grad=True", remedy=remedy
        )
    elif device and tensor.device.type != device:
        faults.add(
            "VG032", name, wanted="be on the CPU", got=f"a tensor on {tensor.device}", remedy=f"Pass {name}.cpu()."
        )
    elif tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        faults.add("VG032", name, wanted="be a dense tensor", got=f"layout {tensor.layout}")
    elif str(tensor.dtype).removeprefix("torch.") not in _TORCH_NAMES:
        faults.add("VG011", name, wanted="hold numbers", got=str(tensor.dtype))
    elif type(tensor).__name__ in ("FakeTensor", "FunctionalTensor"):
        faults.add(
            "VG032", name, wanted="hold values", got=f"a {type(tensor).__name__}", remedy="Call it outside of tracing."
        )
    return len(faults.found) > before


_TORCH_NAMES = {"float16", "bfloat16", *(dtype.name for dtype in NUMBERS)}


def _torch_view(tensor: Any) -> np.ndarray[Any, Any]:
    torch = _loaded("torch")
    plain = tensor.detach()
    if plain.dtype is torch.bfloat16:
        # NumPy has no bfloat16 of its own: the bits travel as integers.
        view: np.ndarray[Any, Any] = plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return view
    array: np.ndarray[Any, Any] = plain.numpy()
    return array


def _torch_wrap(result: np.ndarray[Any, Any], like: Any) -> Any:
    torch = _loaded("torch")
    if result.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(result.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(result)


TORCH = Kind("torch", lambda array: is_instance(array, "torch", "Tensor"), _torch_refuses, _torch_view, _torch_wrap)


def _jax_refuses(array: Any, name: str, faults: Faults) -> bool:
    jax = _loaded("jax")
    if isinstance(array, jax.core.Tracer):
        remedy = "Call it outside of jit, grad and vmap."
        faults.add("VG032", name, wanted="hold values", got="a traced JAX array", remedy=remedy)
        return True
    devices = {device.platform for device in array.devices()}
    if devices != {"cpu"}:
        faults.add("VG032", name, wanted="be on the CPU", got=f"an array on {', '.join(sorted(devices))}")
        return True
    return _numpy_refuses(np.asarray(array), name, faults)


JAX = Kind(
    "jax",
    lambda array: is_instance(array, "jax", "Array"),
    _jax_refuses,
    view=np.asarray,
    wrap=lambda result, like: _loaded("jax").numpy.asarray(result),
)

KINDS = (NUMPY, TORCH, JAX)


def kind_of(array: Any) -> Kind | None:
    """The kind of an array, or None for what is no array."""
    return next((kind for kind in KINDS if kind.matches(array)), None)


def _loaded(name: str) -> Any:
    module: ModuleType | None = sys.modules.get(name)
    return module


def is_masked(array: Any) -> bool:
    """True for an array with a mask. NumPy would load that part of it at the first mention, in the middle of a call."""
    return is_instance(array, "numpy.ma", "MaskedArray")


def is_instance(array: Any, module: str, class_name: str) -> bool:
    """True for an instance of a class whose module the caller has imported."""
    loaded = _loaded(module)
    # A module that is being imported may not have its class yet.
    cls = getattr(loaded, class_name, None)
    return cls is not None and isinstance(array, cls)
