# SPDX-License-Identifier: Apache-2.0
"""The texts of pins, as values and attributes of ops."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import dtype_of, numpy_type
from voxgrad.catalog import dtypes, registry
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Attr, Op
from voxgrad.errors import VoxgradError, show
from voxgrad.formats.enuspace import dialect
from voxgrad.formats.enuspace.library import Symbol, input_of
from voxgrad.formats.enuspace.sheet import Node, PinText, array_of
from voxgrad.formats.report import CHANGED, LOST, NOTED, Report
from voxgrad.formats.text import TextError, parse_attr, parse_type, parse_value, split_attrs
from voxgrad.formats.text.values import Array
from voxgrad.graph.block import Block, Output, Value
from voxgrad.graph.problems import Fix

_VECTOR = re.compile(r"\[\w+\]")
_BAD_CHARACTERS = str.maketrans({":": "_", "/": "_", "^": "_"})
_WINDOWS_PATH = re.compile(rb"(?:[A-Za-z]:[\\/]|\\\\|\.{1,2}\\).*")
"""With a drive, on another computer, or from a folder on."""


def block_name(node: Node) -> str:
    """The name of the block that a node becomes."""
    return node.id.translate(_BAD_CHARACTERS).strip() or "block"


class Values:
    """Reads the texts of pins; what cannot be read is told in the report."""

    def __init__(self, data: bytes, report: Report):
        self.data = data
        self.report = report
        self.files: dict[str, list[str]] = {}
        """Per block, the files of another machine that its texts name."""

    def text(self, node: Node, symbol: Symbol, pin: str) -> str:
        """The text of a pin, or its default in the library where the page does not have the pin."""
        return node.pins[pin].value if pin in node.pins else symbol.defaults.get(pin, "")

    def attributes(self, node: Node, symbol: Symbol, op_name: str) -> dict[str, Any]:
        """The attributes of a block, from its value pins and its attrs pin."""
        op = registry.OPS.get(op_name)
        found: dict[str, Any] = {}
        attr_names = {attr.name for attr in op.attrs} if op is not None else set()
        for pin in (*symbol.values, *(pin for pin in symbol.inputs if pin in attr_names)):
            text = self.text(node, symbol, pin)
            if text.strip() and not (op is not None and any(item.name == pin for item in op.inputs)):
                self._attribute(node, op, pin, text, found)
        attrs = self.text(node, symbol, "attrs")
        try:
            assignments = [(item.key, item.value) for item in split_attrs(attrs, op_name)]
        except TextError as error:
            told = f"is read as it was there, and what is no key = value; is passed over:\n{error}"
            self.report.add(CHANGED, f"{node.id}.attrs", told)
            assignments = dialect.settings(attrs)
        for name, text in assignments:
            key = dialect.key_of(name)
            if text.strip() and key not in found:
                self._attribute(node, op, key, text, found)
        return found

    def _attribute(self, node: Node, op: Op | None, key: str, text: str, found: dict[str, Any]) -> None:
        if op is None:
            found[key] = text
            return
        attr = next((attr for attr in op.attrs if attr.name == key), None)
        if attr is None:
            self.report.add(NOTED, f"{node.id}.{key}", f"{op.name} has no such attribute; {text!r} was left out")
            return
        try:
            value = parse_attr(attr, self._repaired(node, op, attr, text), op.name)
        except TextError as error:
            self.report.add(LOST, f"{node.id}.{key}", f"cannot be read:\n{error}")
            return
        self._tell_misread(node, op, attr, text, value)
        if attr.required or value != attr.default:
            found[key] = value.name if isinstance(value, DType) else _plain(value)

    def _tell_misread(self, node: Node, op: Op, attr: Attr, text: str, value: Any) -> None:
        """A text that the original took for something else is kept as written, with a fix to what it ran with."""
        place, plain = f"{node.id}.{attr.name}", text.strip()
        ran = dialect.ran_with(op, attr, text, value)
        if ran != value:
            edit = {"do": "set_attr", "block": block_name(node), "attr": attr.name, "value": ran}
            fix = Fix(f"Set {attr.name} to {show(ran)}, as it ran there", (edit,))
            self.report.add(CHANGED, place, f"{plain} is kept; the original read it as {show(ran)}", (fix,))
        elif dialect.is_cut(attr, text):
            self.report.add(CHANGED, place, f"{plain} is {show(value)}, as the original read it")
        elif attr.kind not in ("string", "strings"):
            self._tell_hex(place, text)

    def _tell_hex(self, place: str, text: str, stored: PinText | None = None, array: Array | None = None) -> None:
        known = stored is not None and stored.type in ("float", "double")
        if dialect.has_hex(text) and not known and (array is None or array.dtype != object):
            told = "hexadecimal numbers are read as such; the original knew them in lists of float and double alone"
            self.report.add(CHANGED, place, told)

    def _repaired(self, node: Node, op: Op, attr: Attr, text: str) -> str:
        """The library ships 3-D blocks with the data format of 2-D ones, which TensorFlow refuses."""
        repairs = {"NHWC": "NDHWC", "NCHW": "NCDHW"}
        plain = text.strip()
        if attr.name == "data_format" and "NDHWC" in attr.choices and plain in repairs:
            self.report.add(
                CHANGED, f"{node.id}.data_format", f"{plain} is no format of {op.name}: now {repairs[plain]}"
            )
            return repairs[plain]
        return dialect.spelled(attr, text)

    def input_name(self, block: Block, symbol: Symbol | None, pin: str) -> str:
        """The name of the op's input behind a pin."""
        return pin if block.op is None or symbol is None else input_of(block.op, symbol, pin)

    def typed(self, node: Node, symbol: Symbol, pin: str, op: Op | None, name: str) -> Value | None:
        """The value typed on an input pin without a wire, in the type that its way of writing has."""
        stored = node.pins.get(pin)
        text = self.text(node, symbol, pin)
        declared = next((item for item in op.inputs if item.name == name), None) if op is not None else None
        if not text.strip() or (op is not None and declared is None):
            return None
        allowed = op.allowed(declared.type) if op is not None and declared is not None else ()
        forced = dtypes.STRING if set(allowed) == {dtypes.STRING} else None
        try:
            if stored is not None and stored.type not in ("", "string"):
                array = array_of(stored, self.data)
            else:
                array = parse_value(text, forced, pin, node.symbol)
            self._tell_hex(f"{node.id}.{pin}", text, stored, array)
        except TextError as error:
            self.report.add(LOST, f"{node.id}.{pin}", f"cannot be read:\n{error}")
            return None
        if declared is not None and forced is not None and array.ndim == 0 and _VECTOR.fullmatch(declared.shape):
            array = self._listed(f"{node.id}.{pin}", array)
        return self._value(node.id, pin, self._allowed(f"{node.id}.{pin}", array, allowed))

    def _listed(self, place: str, text: Array) -> Array:
        """A list of texts was typed without braces, as one name or as names between semicolons."""
        names = text.item().removesuffix(b";").split(b";")
        self.report.add(CHANGED, place, f"is a list of {len(names)} now: the op takes no single text")
        return np.array([*map(bytes.strip, names)], dtype=object)

    def _allowed(self, place: str, array: Array, allowed: Sequence[DType]) -> Array:
        """A number in the nearest type that the op takes, where it does not take the one that the text stands for."""
        dtype = type_of(array)
        if not allowed or dtype in allowed:
            return array
        nearest = next((one for one in allowed if one.kind == dtype.kind and one.itemsize >= dtype.itemsize), None)
        if nearest is None:
            return array
        self.report.add(CHANGED, place, f"is {nearest} now: the op takes no {dtype}")
        return array.astype(numpy_type(nearest))

    def _value(self, block: str, pin: str, array: Array) -> Value:
        array = self._local(block, pin, array)
        dtype = type_of(array)
        plain = array.item() if array.ndim == 0 and dtype.kind in ("int", "uint", "float", "bool") else array
        return Value(plain, dtype.name)

    def _local(self, block: str, pin: str, array: Array) -> Array:
        """Files of the machine where a page was made are looked for in `files/` beside the page."""
        if array.dtype != object or not any(_WINDOWS_PATH.fullmatch(item) for item in array.ravel()):
            return array
        names = [re.split(rb"[\\/]+", item)[-1] if _WINDOWS_PATH.fullmatch(item) else item for item in array.ravel()]
        made = np.empty(len(names), dtype=object)
        made[:] = names
        shown = [name.decode("utf-8", "replace") for name in names]
        self.files.setdefault(block, []).extend(shown)
        text = f"a path of another machine is now {', '.join(shown)}, in files/ beside the page"
        self.report.add(CHANGED, f"{block}.{pin}", text)
        return made.reshape(array.shape)

    def constant(self, node: Node, pin: str) -> tuple[Array, DType] | None:
        """The value of a Const, Tensor or Input block."""
        stored = node.pins.get(pin)
        named = node.pins["dtype"].value.strip() if "dtype" in node.pins else ""
        if stored is None or (not stored.value and stored.binary_at is None):
            self.report.add(LOST, node.id, "has no value")
            return None
        try:
            array = self._constant(node, stored, parse_type(named, "dtype", node.symbol) if named else None)
            self._tell_hex(f"{node.id}.{pin}", stored.value, stored, array)
        except TextError as error:
            self.report.add(LOST, f"{node.id}.{pin}", f"cannot be read:\n{error}")
            return None
        array = self._local(node.id, pin, array)
        return array, type_of(array)

    def _constant(self, node: Node, stored: PinText, dtype: DType | None) -> Array:
        typed = stored.type in ("", "string") and stored.binary_at is None
        if typed and (dtype is not None or node.symbol != "Const"):
            return parse_value(stored.value, dtype, stored.name, node.symbol)
        return array_of(stored, self.data, dtype)

    def with_first_type(self, node: Node, attrs: dict[str, Any]) -> dict[str, Any]:
        """The attributes of a Variable; a type or a shape that it does not say is that of its first value."""
        if attrs.keys() >= {"dtype", "shape"}:
            return attrs
        first = self.first_value(node, attrs)
        return attrs if first is None else {"dtype": first.dtype, "shape": list(first.value.shape)} | attrs

    def first_value(self, node: Node, attrs: Mapping[str, Any]) -> Value | None:
        """The value that a Variable starts with, from the text or the array on its initvalues pin."""
        stored = node.pins.get("initvalues")
        if stored is None or (not stored.value.strip() and stored.binary_at is None):
            self.report.add(LOST, node.id, "has no first value")
            return None
        dtype = dtypes.named(str(attrs.get("dtype", "")))
        try:
            typed = stored.type in ("", "string") and stored.binary_at is None
            array = parse_value(stored.value, dtype) if typed else array_of(stored, self.data, dtype)
            self._tell_hex(f"{node.id}.initvalues", stored.value, stored, array)
        except TextError as error:
            self.report.add(LOST, f"{node.id}.initvalues", f"cannot be read:\n{error}")
            return None
        shape = attrs.get("shape")
        sizes = [size for size in shape or () if isinstance(size, int) and size >= 0]
        if shape is not None and len(sizes) == len(shape) and array.size == math.prod(sizes):
            # The original gave the values the shape of the variable, however they were nested.
            array = array.reshape(sizes)
        return Value(array, type_of(array).name)

    def chosen_output(self, node: Node, found: list[Any]) -> list[Any]:
        """The Output block: an output of an operation, by number."""
        text = node.pins["index"].value.strip() if "index" in node.pins else "0"
        if len(found) != 1 or not text.isdecimal():
            return found[:1]
        block = found[0].block if isinstance(found[0], Output) else found[0]
        try:
            return [block.output(int(text))] if int(text) < len(block.output_names) else found
        except VoxgradError:
            return found


def type_of(array: Array) -> DType:
    """The element type of an array; text is an array of bytes."""
    return dtype_of(array.dtype) or dtypes.STRING


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        return value.name
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
