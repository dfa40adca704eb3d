# SPDX-License-Identifier: Apache-2.0
"""Numbers, lists and texts that people write, as arrays: one rule, TensorFlow's, for raw ops, pages and feeds.

A value takes the type that is asked for, where that type holds it: whole numbers any number type in whose range they
are, fractions floats and complex numbers, complex numbers complex types only, True and False every number type. A
number is no bool and no text. (TensorFlow lets integers wrap around; that is refused here.) Where no type is asked for
it is bool, int32 (int64 where that is too small), float32, complex128 or string; single numbers of NumPy keep their
type. An array has a type, and keeps it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.arrays.kinds import KINDS, NUMPY, TORCH, dtype_of, is_masked, kind_of, numpy_type, torch_refuses
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Input, Op
from voxgrad.errors import Faults, show

Array = np.ndarray[Any, Any]

_DEFAULTS = {"b": dtypes.BOOL, "i": dtypes.INT32, "u": dtypes.INT32, "f": dtypes.FLOAT32, "c": dtypes.COMPLEX128}
_HOLDS = {
    "bool": ("bool", "int", "uint", "float", "complex"),
    "int": ("int", "uint", "float", "complex"),
    "uint": ("int", "uint", "float", "complex"),
    "float": ("float", "complex"),
    "complex": ("complex",),
}
"""Into which kinds of types numbers of one kind go without a loss that counts."""
PLAIN = "be an array, a torch or JAX tensor, or nested lists"
_PYTHON = (list, tuple, int, float, complex, str, bytes)


class Unfit(ValueError):  # noqa: N818 - a reason, made into a fault by whoever asked
    """Why a value is no array of the type that was asked for, as the parts of a fault."""

    def __init__(self, code: str, wanted: str, got: str, remedy: str = ""):
        super().__init__(f"must {wanted}; got {got}")
        self.code, self.wanted, self.got, self.remedy = code, wanted, got, remedy

    def tell(self, faults: Faults, argument: str) -> None:
        """Note it as a fault of an argument."""
        faults.add(self.code, argument, wanted=self.wanted, got=self.got, remedy=self.remedy)


def written(op: Op, item: Input, value: Any, bound: dict[str, DType], faults: Faults) -> Array | None:
    """What was written for an input of a call, beside inputs that have given types to type variables; None if unfit.

    It binds its own type variable where nothing else has.
    """
    name = None if item.mixed or not isinstance(item.type, str) else item.type
    asked = item.type if isinstance(item.type, DType) else bound.get(name or "")
    try:
        array = _preferred(value, op.type_defaults.get(name or "")) if asked is None else None
        array = to_array(value, asked) if array is None else array
    except Unfit as error:
        error.tell(faults, item.name)
        return None
    if name is not None:
        bound.setdefault(name, type_of(array))
    return array


def make_arrays(op: Op, attrs: dict[str, Any], faults: Faults) -> None:
    """Tensors among attributes become arrays of the type that stands beside them; what is unfit is left out."""
    dtype = attrs.get("dtype")
    for attr in op.attrs:
        if attr.kind == "tensor" and attr.name in attrs:
            try:
                attrs[attr.name] = to_array(attrs[attr.name], dtype if isinstance(dtype, DType) else None)
            except Unfit as error:
                del attrs[attr.name]
                error.tell(faults, attr.name)


def _preferred(value: Any, dtype: DType | None) -> Array | None:
    """The value in the type that the op's declaration prefers, where that holds it."""
    try:
        return to_array(value, dtype) if dtype is not None and not hasattr(value, "dtype") else None
    except Unfit:
        return None


def type_of(array: Any) -> DType:
    """The element type of an array of NumPy or torch; what is no number is text."""
    if isinstance(array, (np.ndarray, np.generic)):
        return dtype_of(array.dtype) or dtypes.STRING
    return dtypes.named(str(array.dtype).rpartition(".")[2]) or dtypes.STRING


def to_array(value: Any, dtype: DType | None = None) -> Array:
    """A NumPy array of what was given, in the type that is asked for; raises Unfit.

    An array may change its type only where every element stays the same number, floats their precision aside.
    """
    if type(value) is np.ndarray and value.dtype.isnative and dtype is not None and numpy_type(dtype) == value.dtype:
        return value
    kind = kind_of(value)
    if kind is None:
        return _of_python(value, dtype)
    faults = Faults("")
    if refuses(kind, value, "value", faults):
        fault = faults.found[0]
        raise Unfit(fault.code, fault.wanted, fault.got, fault.remedy)
    found = np.asarray(kind.view(value))
    if found.dtype.kind in "SUO":
        return texts(found, dtype)
    if dtype is None:
        return found.astype(found.dtype.newbyteorder("="), copy=False)
    return _fitted(found, dtype, exact=not isinstance(value, np.generic))


def refuses(kind: Any, value: Any, name: str, faults: Faults) -> bool:
    """Notes why an array cannot be taken, by the rules of its kind; text can, and tensors on any device."""
    if kind is NUMPY and not is_masked(value) and value.dtype.kind in "SUO":
        return False
    return torch_refuses(value, name, faults) if kind is TORCH else bool(kind.refuse(value, name, faults))


def _of_python(value: Any, dtype: DType | None) -> Array:
    leaf = value
    while isinstance(leaf, (list, tuple)) and leaf and leaf is not leaf[0]:
        leaf = leaf[0]
    if not isinstance(value, _PYTHON) or _is_foreign(leaf):
        got = type(value if not isinstance(value, _PYTHON) else leaf)
        raise Unfit("VG030", PLAIN, f"{got.__module__}.{got.__qualname__}", _remedy(got))
    try:
        found = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise Unfit("VG002", "be nested lists of equal lengths", str(error).splitlines()[0]) from None
    if found.dtype.kind in "SUO":
        return _odd(value, found, leaf, dtype)
    if dtype is None:
        dtype = dtype_of(found.dtype) if isinstance(leaf, (np.ndarray, np.generic)) else _default(found)
    if dtype is None:
        raise Unfit("VG011", "hold numbers", f"dtype {found.dtype}")
    return _fitted(found, dtype)


def _is_foreign(leaf: Any) -> bool:
    """An array of a library that is not known here, or one with a mask, inside of lists."""
    return is_masked(leaf) or (hasattr(leaf, "__array__") and not any(kind.matches(leaf) for kind in KINDS))


def _remedy(kind: type) -> str:
    return "Compute it first: x.compute()." if kind.__module__.partition(".")[0] == "dask" else ""


def _odd(value: Any, found: Array, leaf: Any, dtype: DType | None) -> Array:
    """Text; or integers that NumPy has no type for, which only a float can hold."""
    flat = found.ravel().tolist()
    if found.dtype == object and all(isinstance(one, (int, float)) for one in flat):
        if dtype is None or dtype.kind not in ("float", "complex"):
            raise Unfit("VG011", f"hold values of type {dtype or dtypes.INT64}", show(value))
        try:
            return _fitted(found.astype(np.float64), dtype)
        except OverflowError:
            raise Unfit("VG011", f"hold values of type {dtype}", show(value)) from None
    if found.dtype == object and not all(isinstance(one, (str, bytes)) for one in flat):
        odd = next((one for one in flat if not isinstance(one, (str, bytes, int, float, complex))), leaf)
        raise Unfit("VG030", PLAIN, f"a list with {type(odd).__module__}.{type(odd).__qualname__}")
    return texts(np.asarray(value, dtype=object), dtype)


def texts(found: Array, dtype: DType | None) -> Array:
    """Text is an array of bytes objects."""
    if dtype not in (None, dtypes.STRING):
        raise Unfit("VG011", f"hold values of type {dtype}", show(found.ravel()[:3].tolist()))
    flat = [one.encode() if isinstance(one, str) else one for one in found.ravel().tolist()]
    if not all(isinstance(one, bytes) for one in flat):
        odd = next(one for one in flat if not isinstance(one, bytes))
        raise Unfit("VG011", "hold numbers or text", f"{type(odd).__name__} {show(odd)}")
    made = np.empty(found.shape, dtype=object)
    made.ravel()[:] = flat
    return made


def _default(found: Array) -> DType:
    if found.size == 0:
        return dtypes.FLOAT32
    kind = found.dtype.kind
    if kind in "iu" and not (found.min() >= -(2**31) and found.max() < 2**31):
        return dtypes.INT64
    if kind == "f" and np.any(np.isfinite(found) & (np.abs(found) > np.finfo(np.float32).max)):
        remedy = "Give it as an array of float64."
        raise Unfit("VG011", "hold values of type float32", show(found.ravel()[:3].tolist()), remedy)
    return _DEFAULTS[kind]


def _fitted(found: Array, dtype: DType, *, exact: bool = False) -> Array:
    """The numbers in another type. `exact`: whole floats may become integers, and 0 and 1 bools."""
    wanted, own = numpy_type(dtype), dtype_of(found.dtype)
    if wanted == found.dtype:
        return found
    holds = own is not None and dtype.kind in _HOLDS[own.kind]
    if dtype.kind in ("string", "resource") or (found.size and not holds and not (exact and own is not None)):
        shown = found.ravel()[:3].tolist() if found.ndim else found.item()
        raise Unfit("VG011", f"hold values of type {dtype}", show(shown))
    if found.size and own is not None and dtype.kind in ("int", "uint", "bool") and own.kind != "bool":
        _check_range(found, dtype)
    if found.size and own is not None and own.kind == "complex" and dtype.kind != "complex":
        raise Unfit("VG011", f"hold values of type {dtype}", "complex numbers")
    with np.errstate(over="ignore", invalid="ignore"):
        return found.astype(wanted)


def _check_range(found: Array, dtype: DType) -> None:
    """Every number is one of the integer type."""
    low, high = (0, 1) if dtype.kind == "bool" else (np.iinfo(numpy_type(dtype)).min, np.iinfo(numpy_type(dtype)).max)
    numbers = found.astype(np.float64) if found.dtype.kind not in "iu" else found
    if numbers.dtype.kind == "f" and not np.all(numbers == np.floor(numbers)):
        raise Unfit("VG011", f"hold values of type {dtype}", "a fraction")
    if numbers.min() < low or numbers.max() > high:
        worst = numbers.max() if numbers.max() > high else numbers.min()
        raise Unfit("VG011", f"hold values of type {dtype}, {low} to {high}", str(worst))
