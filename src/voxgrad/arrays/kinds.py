# SPDX-License-Identifier: Apache-2.0
"""Kinds of arrays. A framework is recognised only where the caller has already imported it.

A kind turns its arrays into NumPy views of host memory, on a GPU into torch's tensors, and wraps results again. What it
cannot take, it gives a reason for: one predicate answers both "can it run?" and "why not?".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.errors import Faults
from voxgrad.kernels.element_types import NUMBERS
from voxgrad.kernels.element_types import dtype_of as dtype_of
from voxgrad.kernels.element_types import numpy_type as numpy_type
from voxgrad.loading import LOADING


class Unfit(ValueError):  # noqa: N818 - a reason, made into a fault by whoever asked
    """Why a value is no array of the type that was asked for, as the parts of a fault."""

    def __init__(self, code: str, wanted: str, got: str, remedy: str = ""):
        super().__init__(f"must {wanted}; got {got}")
        self.code, self.wanted, self.got, self.remedy = code, wanted, got, remedy

    def tell(self, faults: Faults, argument: str) -> None:
        """Note it as a fault of an argument."""
        faults.add(self.code, argument, wanted=self.wanted, got=self.got, remedy=self.remedy)


@dataclass(frozen=True, slots=True)
class Kind:
    """How arrays of one library come in and go out."""

    name: str
    matches: Callable[[Any], bool]
    refuse: Callable[[Any, str], Unfit | None]
    """Why an array, of this name, cannot be taken."""
    view: Callable[[Any], Any]
    """The array as NumPy, or as a torch tensor on a GPU, without a copy wherever its memory allows."""
    wrap: Callable[[Any], Any]
    """A fresh result, NumPy's or torch's, as this kind."""


def is_masked(array: Any) -> bool:
    """True for an array with a mask. NumPy would load that part of it at the first mention, in the middle of a call."""
    return is_instance(array, "numpy.ma", "MaskedArray")


def _numpy_refuses(array: Any, name: str) -> Unfit | None:
    if is_masked(array):
        remedy = f"Pass {name}.filled(...), so that masked cells have a value."
        return Unfit("VG030", "be a plain array", "a masked array", remedy)
    if dtype_of(array.dtype) is None and array.dtype.kind not in "SUO":
        return Unfit("VG011", "hold numbers", f"dtype {array.dtype}")
    return None


NUMPY = Kind(
    "numpy",
    matches=lambda array: isinstance(array, (np.ndarray, np.generic)),
    refuse=_numpy_refuses,
    view=np.asarray,
    wrap=lambda result: result,
)


def _torch_refuses(tensor: Any, name: str) -> Unfit | None:
    torch = _loaded("torch")
    if tensor.requires_grad and torch.is_grad_enabled():
        remedy = f"Use voxgrad.torch, which differentiates, or pass {name}.detach(), or call it under torch.no_grad()."
        return Unfit("VG031", "not require a gradient", "a tensor with requires_grad=True", remedy)
    if type(tensor).__name__ in ("FakeTensor", "FunctionalTensor"):
        return Unfit("VG032", "hold values", f"a {type(tensor).__name__}", "Call it outside of tracing.")
    if tensor.device.type not in ("cpu", "cuda"):
        return Unfit("VG032", "be on the CPU", f"a tensor on {tensor.device}", f"Pass {name}.cpu().")
    if tensor.layout is not torch.strided:
        return Unfit("VG032", "be a dense tensor", f"layout {tensor.layout}", f"Pass {name}.to_dense().")
    if tensor.is_conj() or tensor.is_neg():
        remedy = f"Pass {name}.resolve_conj().resolve_neg()."
        return Unfit("VG032", "be a dense tensor", "a view that conjugates or negates", remedy)
    if str(tensor.dtype).removeprefix("torch.") not in _TORCH_NAMES:
        return Unfit("VG011", "hold numbers", str(tensor.dtype))
    return None


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


def _torch_wrap(result: Any) -> Any:
    torch = _loaded("torch")
    if not isinstance(result, np.ndarray):
        return result
    if result.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(result.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(result)


TORCH = Kind("torch", lambda array: is_instance(array, "torch", "Tensor"), _torch_refuses, _torch_view, _torch_wrap)


def _jax_refuses(array: Any, name: str) -> Unfit | None:
    if isinstance(array, _loaded("jax").core.Tracer):
        return Unfit("VG032", "hold values", "a traced JAX array", "Call it outside of jit, grad and vmap.")
    if not is_on_gpu(array) and (devices := {device.platform for device in array.devices()}) != {"cpu"}:
        return Unfit("VG032", "be on the CPU", f"an array on {', '.join(sorted(devices))}")
    if dtypes.named(array.dtype.name) is None:
        return Unfit("VG011", "hold numbers", f"dtype {array.dtype}")
    return None


def is_on_gpu(array: Any) -> bool:
    """Does an array of torch, CuPy or JAX live on a GPU? False for every other value."""
    module = type(array).__module__.partition(".")[0]
    if module == "torch" and "torch" in sys.modules:
        return bool(getattr(array, "is_cuda", False))
    if module in ("jax", "jaxlib") and not isinstance(array, sys.modules["jax"].core.Tracer):
        return any(device.platform in ("gpu", "cuda") for device in array.devices())
    return module == "cupy"


def _shared(array: Any) -> Any:
    """An array on a GPU as a torch tensor that shares its memory."""
    with LOADING:
        import torch
    return torch.utils.dlpack.from_dlpack(array)


JAX = Kind(
    "jax",
    lambda array: is_instance(array, "jax", "Array"),
    _jax_refuses,
    view=lambda array: _shared(array) if is_on_gpu(array) else np.asarray(array),
    wrap=lambda result: (
        _loaded("jax").numpy.asarray(result)
        if isinstance(result, np.ndarray)
        else _loaded("jax").dlpack.from_dlpack(result.contiguous())
    ),
)


def _cupy_refuses(array: Any, name: str) -> Unfit | None:
    try:
        with LOADING:
            import torch  # noqa: F401 - asked for here, where its absence can be told
    except ImportError:
        return Unfit("VG032", "find torch for the GPU kernels", "no torch", "Install voxgrad[cuda].")
    return None if dtypes.named(array.dtype.name) else Unfit("VG011", "hold numbers", f"dtype {array.dtype}")


CUPY = Kind(
    "cupy",
    lambda array: is_instance(array, "cupy", "ndarray"),
    _cupy_refuses,
    view=_shared,
    wrap=lambda result: _loaded("cupy").from_dlpack(result.contiguous()),
)

KINDS = (NUMPY, TORCH, JAX, CUPY)


def kind_of(array: Any) -> Kind | None:
    """The kind of an array, or None for what is no array."""
    return next((kind for kind in KINDS if kind.matches(array)), None)


def _loaded(name: str) -> Any:
    module: ModuleType | None = sys.modules.get(name)
    return module


def is_instance(array: Any, module: str, class_name: str) -> bool:
    """True for an instance of a class whose module the caller has imported."""
    loaded = _loaded(module)
    # A module that is being imported may not have its class yet.
    cls = getattr(loaded, class_name, None)
    return cls is not None and isinstance(array, cls)
