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

from voxgrad.arrays.kinds import KINDS, NUMPY, TORCH, Unfit, dtype_of, is_masked, kind_of, numpy_type
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Input, Op
from voxgrad.errors import Faults, show
from voxgrad.kernels.element_types import NUMBERS

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
MAX_NESTING = 64
"""Lists in lists; deeper ones are a mistake, or a list that holds itself."""
_PLAIN = frozenset(numpy_type(dtype) for dtype in NUMBERS)
_PYTHON = (list, tuple, int, float, complex, str, bytes)


def too_deep() -> Unfit:
    """Why a list of lists of lists is none."""
    return Unfit("VG002", "be nested lists of equal lengths", f"a list in itself, or more than {MAX_NESTING} deep")


def written(op: Op, item: Input, value: Any, bound: dict[str, DType], faults: Faults) -> Array | None:
    """What was written for an input of a call, beside inputs that have given types to type variables; None if unfit.

    It binds its own type variable where nothing else has.
    """
    name = None if item.mixed or not isinstance(item.type, str) else item.type
    asked = item.type if isinstance(item.type, DType) else bound.get(name or "")
    try:
        array = _preferred(value, op.type_defaults.get(name or "")) if asked is None else None
        array = to_array(value, asked, item.name) if array is None else array
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
                attrs[attr.name] = to_array(attrs[attr.name], dtype if isinstance(dtype, DType) else None, attr.name)
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


def has_type(value: Any) -> bool:
    """True for an array; numbers, also NumPy's single ones, lists and texts take the type of what stands beside."""
    return kind_of(value) is not None and not isinstance(value, np.generic)


def taken(value: Any, name: str) -> Any:
    """An array as ops take it: NumPy of either byte order, texts as bytes, or a torch tensor. Raises Unfit."""
    if type(value) is np.ndarray and value.dtype in _PLAIN:
        return value
    kind = kind_of(value)
    assert kind is not None
    why = kind.refuse(value, name)
    if why is not None:
        raise why
    found = value if kind is TORCH else kind.view(value)
    if TORCH.matches(found):
        return found
    found = np.asarray(found)
    return texts(found, None) if found.dtype.kind in "SUO" else found


def native(array: Any) -> Any:
    """The array in the byte order of the machine, itself where it has that."""
    swapped = isinstance(array, np.ndarray) and not array.dtype.isnative
    return array.astype(array.dtype.newbyteorder("=")) if swapped else array


def to_array(value: Any, dtype: DType | None = None, name: str = "value") -> Array:
    """A NumPy array of what was given, in the type that is asked for; raises Unfit. Tensors come to the host.

    An array may change its type only where every element stays the same number, floats their precision aside.
    """
    if kind_of(value) is None:
        return _of_python(value, dtype)
    found = taken(value, name)
    if TORCH.matches(found):
        found = TORCH.view(found.cpu())
    found = np.asarray(native(found))
    if dtype is None or numpy_type(dtype) == found.dtype:
        return found
    if found.dtype == object:
        return texts(found, dtype)
    return _fitted(found, dtype, exact=not isinstance(value, np.generic))


def _of_python(value: Any, dtype: DType | None) -> Array:
    leaf, depth = value, 0
    while isinstance(leaf, (list, tuple)) and leaf:
        leaf, depth = leaf[0], depth + 1
        if depth > MAX_NESTING:
            raise too_deep()
    if not isinstance(value, _PYTHON) or _is_foreign(leaf):
        got = type(value if not isinstance(value, _PYTHON) else leaf)
        raise Unfit("VG030", PLAIN, f"{got.__module__}.{got.__qualname__}", _remedy(got))
    if kind_of(leaf) not in (None, NUMPY):
        value = _hosted(value)
    try:
        found = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise Unfit("VG002", "be nested lists of equal lengths", str(error).splitlines()[0]) from None
    if found.dtype.kind in "SUO":
        return _odd(value, found, leaf, dtype)
    if dtype is None:
        dtype = dtype_of(found.dtype) if kind_of(leaf) is not None else _default(found)
    if dtype is None:
        raise Unfit("VG011", "hold numbers", f"dtype {found.dtype}")
    return _fitted(found, dtype)


def _hosted(value: Any) -> Any:
    """Lists of tensors as lists of NumPy arrays."""
    if isinstance(value, (list, tuple)):
        return [_hosted(one) for one in value]
    return to_array(value) if has_type(value) else value


def _is_foreign(leaf: Any) -> bool:
    """An array of a library that is not known here, or one with a mask, inside of lists."""
    return is_masked(leaf) or (hasattr(leaf, "__array__") and not any(kind.matches(leaf) for kind in KINDS))


def _remedy(kind: type) -> str:
    if kind.__module__.partition(".")[0] == "dask":
        return "Compute it first: x.compute()."
    if hasattr(kind, "__array__") or hasattr(kind, "__array_interface__"):
        return "Load it first: numpy.asarray(x)."
    return "Load it first: numpy.from_dlpack(x)." if hasattr(kind, "__dlpack__") else ""


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
