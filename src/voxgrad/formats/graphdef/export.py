# SPDX-License-Identifier: Apache-2.0
"""A page as a TensorFlow graph: nodes under the names of the blocks, constants for typed values."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.attributes import canonical
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Input, Op
from voxgrad.errors import Faults
from voxgrad.formats.script import flattened, refuse_own
from voxgrad.graph.block import Block, Output
from voxgrad.graph.modes import refuse_muted
from voxgrad.graph.order import order
from voxgrad.graph.page import Page
from voxgrad.kernels.element_types import dtype_of, numpy_type

Array = np.ndarray[Any, Any]


def export_graph(page: Page) -> bytes:
    """The page as a serialized GraphDef. Pages inside pages are unfolded; a page with problems is refused."""
    flat = flattened(page)
    faults = Faults("export")
    faults.found.extend(problem.fault for problem in flat.problems())
    faults.found.extend(refuse_muted(flat.blocks, "export"))
    refuse_own(flat, faults)
    faults.raise_if_any()
    return b"".join(field(1, node) for block in order(flat.blocks).blocks for node in _nodes(flat, block))


def varint(number: int) -> bytes:
    """A number in base 128, lowest digits first; negative ones as 64-bit integers."""
    number &= 2**64 - 1
    digits = []
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def field(key: int, value: int | bytes) -> bytes:
    """A field of a message: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(key << 3) + varint(value)
    return varint(key << 3 | 2) + varint(len(value)) + value


def _nodes(page: Page, block: Block) -> Iterator[bytes]:
    """The node of a block, led by constants for the values that are typed on its pins."""
    assert block.op is not None
    inputs: list[str] = []
    specs = {item.name: page.infer().input_specs(block, item.name) for item in block.op.inputs}
    for item in block.op.inputs:
        for at, source in enumerate(block.sources.get(item.name, ())):
            name = f"{block.name}/{item.name}" + (f"_{at}" if item.many else "")
            if isinstance(source, Output):
                wire = f"{source.block.name}:{source.index}" if source.index else source.block.name
                own, wanted = source.dtype, _taken(block.op, item, source.dtype)
                if own is not None and wanted is not None and own is not wanted:
                    # Quantised integers are a type of their own there.
                    types = {"T": _type_attr(own), "type": _type_attr(wanted)}
                    yield _node(name, "Bitcast", [wire], types)
                    wire = name
                inputs.append(wire)
                continue
            array = page.infer().arrays[block][item.name][at]
            dtype = _taken(block.op, item, _type_of(array)) or dtypes.STRING
            yield _node(name, "Const", [], {"value": tensor_attr(array, dtype), "dtype": _type_attr(dtype)})
            inputs.append(name)
    inputs += [f"^{other.name}" for other in block.control]
    attrs = _declared_attrs(block.op, block.attrs) | _type_attrs(block.op, specs, block)
    yield _node(block.name, block.op_name, inputs, attrs)


def _node(name: str, op: str, inputs: Sequence[str], attrs: Mapping[str, bytes]) -> bytes:
    body = field(1, name.encode()) + field(2, op.encode())
    body += b"".join(field(3, one.encode()) for one in inputs)
    return body + b"".join(field(5, field(1, key.encode()) + field(2, value)) for key, value in sorted(attrs.items()))


def _declared_attrs(op: Op, given: Mapping[str, Any]) -> dict[str, bytes]:
    values = canonical(op, given, Faults(op.name))
    return {
        attr.name: _ENCODERS[attr.kind](values[attr.name])
        for attr in op.attrs
        if values.get(attr.name) is not None or attr.kind == "shape"
    }


def _type_attrs(op: Op, specs: Mapping[str, Sequence[Any]], block: Block) -> dict[str, bytes]:
    """What TensorFlow wants to be told about types and lengths, and inference knows."""
    declared = {attr.name for attr in op.attrs}
    made: dict[str, bytes] = {}
    for item in op.inputs:
        found = [op.taken(item.type, spec.dtype) for spec in specs[item.name] if spec.dtype is not None]
        if item.many and not item.mixed:
            made[item.number] = field(3, len(specs[item.name]))
        if isinstance(item.type, str) and found:
            types = field(1, b"".join(field(6, one.enum) for one in found)) if item.mixed else _type_attr(found[0])
            made.setdefault(item.type, types)
    for output, result in zip(block.outputs, op.outputs, strict=False):
        if isinstance(result.type, str) and output.dtype is not None and not result.mixed:
            made.setdefault(result.type, _type_attr(output.dtype))
    return {name: value for name, value in made.items() if name not in declared}


def _taken(op: Op, item: Input, dtype: DType | None) -> DType | None:
    return dtype if dtype is None else op.taken(item.type, dtype)


def _type_of(array: Array) -> DType:
    return dtype_of(array.dtype) or dtypes.STRING


def _type_attr(dtype: DType) -> bytes:
    return field(6, dtype.enum)


def _shape(sizes: Sequence[Any] | None) -> bytes:
    if sizes is None:
        return field(3, 1)
    # A size that is open, or that has a name, is -1 there.
    return b"".join(field(2, field(1, size if isinstance(size, int) else -1)) for size in sizes)


def tensor_attr(value: Any, dtype: DType | None = None) -> bytes:
    """An array as the value of an attribute, of the type that it has or of one that is held as it is."""
    array = np.asarray(value)
    dtype = dtype or _type_of(array)
    head = field(1, dtype.enum) + field(2, _shape(array.shape))
    if dtype == dtypes.STRING:
        return field(8, head + b"".join(field(8, one) for one in array.ravel()))
    data = np.ascontiguousarray(array, dtype=numpy_type(dtype).newbyteorder("<")).tobytes()
    return field(8, head + field(4, data))


def _list_of(key: int, items: Sequence[int | bytes]) -> bytes:
    return field(1, b"".join(field(key, one) for one in items))


_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "int": lambda value: field(3, value),
    "ints": lambda value: _list_of(3, value),
    "float": lambda value: varint(4 << 3 | 5) + struct.pack("<f", value),
    "floats": lambda value: field(1, b"".join(varint(4 << 3 | 5) + struct.pack("<f", one) for one in value)),
    "bool": lambda value: field(5, int(value)),
    "string": lambda value: field(2, value.encode()),
    "strings": lambda value: _list_of(2, [one.encode() for one in value]),
    "type": _type_attr,
    "types": lambda value: _list_of(6, [one.enum for one in value]),
    "shape": lambda value: field(7, _shape(value)),
    "shapes": lambda value: _list_of(7, [_shape(one) for one in value]),
    "tensor": tensor_attr,
}
