# SPDX-License-Identifier: Apache-2.0
"""Array libraries: which one an array is from, its types, and how to make an array like another."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import Any

import array_api_compat
import numpy as np

from voxgrad.catalog.dtypes import DType, named
from voxgrad.kernels.element_types import dtype_of, numpy_type

Array = Any


def _numpy_in_the_words_of_the_standard() -> Any:
    """`array_api_compat.numpy`. It takes over all that NumPy lists, and so would load NumPy's tools for Fortran and for
    tests as well, which takes longer than all the rest: while it is loaded, NumPy does not list them.
    """
    listed, names = np.__all__, np.__dir__
    fewer = [name for name in listed if name not in ("f2py", "testing")]
    vars(np).update(__all__=fewer, __dir__=lambda: [*vars(np)])
    try:
        return importlib.import_module("array_api_compat.numpy")
    finally:
        vars(np).update(__all__=listed, __dir__=names)


numpy_namespace = _numpy_in_the_words_of_the_standard()


def is_numpy(array: Any) -> bool:
    """True for arrays of NumPy."""
    return isinstance(array, (np.ndarray, np.generic))


def is_torch(array: Any) -> bool:
    """True for tensors of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def namespace_of(array: Array) -> Any:
    """The functions of the library of an array, in the words of the array API standard."""
    return numpy_namespace if is_numpy(array) else array_api_compat.array_namespace(array)


def element_type(array: Array) -> DType:
    """The element type of an array of any library."""
    if is_numpy(array):
        from voxgrad.catalog.dtypes import STRING

        return dtype_of(array.dtype) or STRING
    found = named(str(array.dtype).rpartition(".")[2])
    assert found is not None, array.dtype
    return found


def native_type(xp: Any, dtype: DType) -> Any:
    """The type object of a library for an element type."""
    if xp is numpy_namespace:
        return numpy_type(dtype)
    return getattr(xp, "float16" if dtype.name == "half" else dtype.name)


def cast(array: Array, dtype: DType) -> Array:
    """The array in another type, itself where it has it already."""
    xp = namespace_of(array)
    wanted = native_type(xp, dtype)
    if array.dtype == wanted:
        return array
    return array.astype(wanted) if is_numpy(array) else xp.astype(array, wanted)


def array_like(values: Any, dtype: DType, like: Array | None) -> Array:
    """A fresh array of these values in the library and on the device of another."""
    made = np.asarray(values, dtype=numpy_type(dtype))
    return made if like is None or is_numpy(like) else moved_to(made, like)


def moved_to(array: np.ndarray[Any, Any], like: Array) -> Array:
    """A NumPy array as one of the library and on the device of another; texts are NumPy's everywhere."""
    if is_numpy(like) or array.dtype == object:
        return array
    if not is_torch(like):
        return array_api_compat.array_namespace(like).asarray(array)
    torch = sys.modules["torch"]
    dense = np.ascontiguousarray(array).copy()
    if dtype_of(array.dtype) is named("bfloat16"):
        made = torch.from_numpy(dense.view(np.int16)).view(torch.bfloat16)
    else:
        made = torch.from_numpy(dense)
    return made.reshape(array.shape).to(like.device)  # what is dense has one dimension at least


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """Any array on the host, as NumPy."""
    if not is_torch(array):
        return np.asarray(array)
    torch = sys.modules["torch"]
    plain = array.detach().cpu()
    if plain.dtype is torch.bfloat16:
        bits: np.ndarray[Any, Any] = plain.view(torch.int16).numpy()
        return bits.view(numpy_type(named("bfloat16")))  # type: ignore[arg-type]
    found: np.ndarray[Any, Any] = plain.numpy()
    return found


def integers(array: Any) -> list[int]:
    """The elements of a small integer array, as Python numbers."""
    return [int(item) for item in to_numpy(array).ravel().tolist()]


def integer(array: Any) -> int:
    """The one element of an integer array."""
    return int(to_numpy(array).reshape(()).item()) if not isinstance(array, int) else array


def first_array(values: Iterable[Any]) -> Array | None:
    """The first array among inputs, looking into lists; one that is not NumPy goes before."""
    found = None
    for value in values:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if is_numpy(one):
                found = one if found is None else found
            elif array_api_compat.is_array_api_obj(one):
                return one
    return found
