# SPDX-License-Identifier: Apache-2.0
"""Text: numbers in it, pieces of it, encodings."""

from __future__ import annotations

import base64
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import INT64, STRING, DType
from voxgrad.kernels.arraywise.evaluation import Run, add_kernel, kernel
from voxgrad.kernels.arraywise.hashes import fingerprint64, hash64, sip_hash
from voxgrad.kernels.arraywise.namespace import Array, element_type, integers, to_numpy
from voxgrad.kernels.element_types import numpy_type

_BASE64 = re.compile(rb"[A-Za-z0-9_-]*")


_BYTE = np.empty(0, np.uint8)
_EMPTY = sys.getsizeof(b"") + 8


def _texts_fit(run: Run, argument: str, count: int, letters: int) -> None:
    """Fail before so many texts, each an object of its own, take more memory than there is.

    An array of texts may hold one long text in a million places, which only cost a pointer each.
    """
    run.room(argument, (count * _EMPTY + letters,), _BYTE)


def _letters(texts: Any) -> int:
    return sum(map(len, texts.flat))


def _mapped(change: Callable[[Any], Any], values: Array) -> Any:
    """A text tensor with every element changed."""
    source = to_numpy(values)
    made = np.empty(source.shape, dtype=object)
    for index in np.ndindex(source.shape):
        made[index] = change(source[index])
    return made


@kernel()
def decode_raw(run: Run, texts: Array) -> Array:
    """Bytes as numbers."""
    dtype, source = run.attrs["out_type"], to_numpy(texts)
    lengths = {len(one) for one in source.ravel().tolist()}
    size = max(lengths, default=0)
    if len(lengths) > 1 or size % dtype.itemsize:
        wanted = f"have one length, a multiple of {dtype.itemsize}"
        run.fail("bytes", wanted=wanted, got=f"lengths {sorted(lengths)[:8]}", code="VG012")
    _texts_fit(run, "bytes", 0, size * source.size)
    flat = np.frombuffer(b"".join(source.ravel().tolist()), dtype=numpy_type(dtype))
    if not run.attrs["little_endian"] and dtype.itemsize > 1:
        flat = flat.byteswap()
    count = size // dtype.itemsize
    return run.make(flat.reshape(*source.shape, count).copy(), dtype)


def _number(run: Run, text: bytes, dtype: DType, argument: str) -> Any:
    digits = text.strip()
    try:
        if b"_" in digits:
            raise ValueError("Python's own underscores are no part of a number")
        if dtype.kind == "float":
            return float.fromhex(digits.decode()) if b"x" in digits.lower() else float(digits)
        value = int(digits)
    except (ValueError, OverflowError):
        run.fail(argument, wanted=f"be a number of type {dtype}", got=repr(text))
        raise
    info = np.iinfo(numpy_type(dtype))
    signed = dtype.kind == "uint" and digits.startswith(b"-")  # even -0
    if signed or not info.min <= value <= info.max:
        run.fail(argument, wanted=f"be a number of type {dtype}", got=repr(text))
    return value


@kernel()
def to_number(run: Run, texts: Array) -> Array:
    """Numbers from their text."""
    dtype = run.attrs["out_type"]
    return run.make(_mapped(lambda one: _number(run, one, dtype, "string_tensor"), texts), dtype)


@kernel()
def decode_csv(run: Run, records: Array, defaults: list[Array]) -> Any:
    """Columns of comma-separated values."""
    attrs, source = run.attrs, to_numpy(records)
    delimiter = attrs["field_delim"].encode()
    if len(delimiter) != 1 or delimiter in b'"\r\n':
        run.fail("field_delim", wanted="be one byte, no quote or line end", got=repr(attrs["field_delim"]))
    chosen = list(attrs["select_cols"]) or list(range(len(defaults)))
    if len(chosen) != len(defaults):
        run.fail("select_cols", wanted=f"name {len(defaults)} columns", got=len(chosen), code="VG004")
    if any(right <= left for left, right in itertools.pairwise([-1, *chosen])):
        run.fail("select_cols", wanted="be columns in order, from 0 on, each once", got=chosen)
    columns: list[list[Any]] = [[] for _ in defaults]
    _texts_fit(run, "records", source.size * len(defaults), _letters(source))
    for number, line in enumerate(source.ravel().tolist()):
        argument = f"records[{number}]"
        # What lies behind the last chosen column is not looked at.
        found = _fields(run, line, delimiter, argument)
        fields = list(itertools.islice(found, chosen[-1] + 1) if attrs["select_cols"] else found)
        if len(fields) != (chosen[-1] + 1 if chosen else 0):
            run.fail(argument, wanted=f"have {len(defaults)} fields", got=len(fields), code="VG004")
        for place, column in enumerate(chosen):
            columns[place].append(_field(run, fields[column], defaults[place], argument))
    return tuple(_column(run, values, default, source.shape) for values, default in zip(columns, defaults, strict=True))


def _fields(run: Run, line: bytes, delimiter: bytes, argument: str) -> Iterator[bytes]:
    """The fields of a record, after RFC 4180: one that holds quotes or ends of lines stands in quotes."""
    end, quotes = re.escape(delimiter), run.attrs["use_quote_delim"]
    plain = (rb'[^"\r\n%b]*' if quotes else rb"[^\r\n%b]*") % end
    pattern = re.compile(rb"(?:(%b)|%b)(?:%b|\Z)" % (plain, rb'"([^"]*(?:""[^"]*)*)"' if quotes else rb"()", end))
    at = 0
    while at < len(line):
        if line[at] in b"\r\n":
            at += 1
            continue
        found = pattern.match(line, at)
        if found is None:
            run.fail(argument, wanted="hold fields that are quoted as a whole or not at all", got=line[at : at + 40])
        bare, within = found.groups()
        yield within.replace(b'""', b'"') if bare is None else bare
        at = found.end()
    if line.endswith(delimiter):
        yield b""


def _field(run: Run, field: bytes, default: Array, argument: str) -> Any:
    dtype, fallback = element_type(default), to_numpy(default)
    if field in (b"", run.attrs["na_value"].encode()):
        if fallback.size == 0:
            run.fail(argument, wanted="give every field that has no default", got="an empty field")
        return fallback.reshape(-1)[0]
    return field if dtype is STRING else _number(run, field, dtype, argument)


def _column(run: Run, values: list[Any], default: Array, shape: tuple[int, ...]) -> Array:
    if element_type(default) is not STRING:
        return run.make(np.asarray(values).reshape(shape), element_type(default))
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made.reshape(shape)


def _written(run: Run, dtype: DType) -> Callable[[Any], bytes]:
    attrs = run.attrs
    fill, width = attrs["fill"], str(attrs["width"]) if attrs["width"] > 0 else ""
    kind = "e" if attrs["scientific"] else "g" if attrs["shortest"] else "f"
    precision = f".{attrs['precision']}" if attrs["precision"] >= 0 else ""

    def real(value: Any) -> str:
        # Zeros are not put before what is no number.
        padded = fill if fill != "0" or np.isfinite(value) else ""
        made: str = f"%{padded}{width}{precision}{kind}" % value
        return made

    def write(value: Any) -> bytes:
        if dtype.kind == "bool":
            return b"true" if value else b"false"
        if dtype.kind == "string":
            if not width:
                return bytes(value)
            shown = bytes(value)[: attrs["precision"]] if attrs["precision"] >= 0 else bytes(value)
            return shown.ljust(int(width)) if fill == "-" else shown.rjust(int(width))
        if dtype.kind == "complex":
            return f"({real(value.real)},{real(value.imag)})".encode()
        sign = "" if dtype.kind == "uint" and fill in (" ", "+") else fill  # a number without a sign shows none
        text: str = real(value) if dtype.kind == "float" else f"%{sign}{width}d" % value
        return text.encode()

    return write


@kernel()
def as_string(run: Run, values: Array) -> Array:
    """Numbers as text."""
    attrs, kind = run.attrs, element_type(values).kind
    for name in ("precision", "width"):
        if attrs[name] > 512:
            run.fail(name, wanted="be at most 512", got=attrs[name])
    if len(attrs["fill"]) > 1 or attrs["fill"] not in "0 +-#":
        run.fail("fill", wanted="be one of 0, +, -, # or a blank", got=repr(attrs["fill"]))
    if attrs["scientific"] and attrs["shortest"]:
        run.fail("shortest", wanted="be False beside scientific", got=True)
    if kind not in ("float", "complex", "string"):
        for name, given in (("precision", attrs["precision"] >= 0), ("scientific", attrs["scientific"]),
                            ("shortest", attrs["shortest"])):  # fmt: skip
            if given:
                run.fail(name, wanted="be left out: the input holds no floats", got=attrs[name])
    source = to_numpy(values)
    longest = max(attrs["width"], attrs["precision"], 0) + 24 * (kind != "string")
    _texts_fit(run, "input", source.size, source.size * longest + (_letters(source) if kind == "string" else 0))
    return _mapped(_written(run, element_type(values)), source)


@kernel()
def join(run: Run, inputs: list[Array]) -> Array:
    """Texts joined, element by element."""
    arrays = np.broadcast_arrays(*(to_numpy(one) for one in inputs))
    made = np.empty(arrays[0].shape if arrays else (), dtype=object)
    separator = run.attrs["separator"].encode()
    letters = sum(_letters(array) for array in arrays) + made.size * len(separator) * max(0, len(arrays) - 1)
    _texts_fit(run, "inputs", made.size, letters)
    for index in np.ndindex(made.shape):
        made[index] = separator.join(array[index] for array in arrays)
    return made


@kernel()
def reduce_join(run: Run, inputs: Array, axes: Array) -> Array:
    """Texts joined along axes, in their order."""
    source, separator = to_numpy(inputs), run.attrs["separator"].encode()
    over = [axis % source.ndim for axis in integers(axes)] if source.ndim else []
    if to_numpy(axes).size == 0 and source.ndim:
        return source
    rest = [axis for axis in range(source.ndim) if axis not in over]
    # The first axis named is joined first, so it runs fastest.
    turned = source.transpose(*rest, *reversed(over)) if source.ndim else source
    made = np.empty([source.shape[axis] for axis in rest], dtype=object)
    _texts_fit(run, "inputs", made.size, _letters(source) + source.size * len(separator))
    for index in np.ndindex(made.shape):
        made[index] = separator.join(turned[index].ravel().tolist() if over else [turned[index]])
    if run.attrs["keep_dims"]:
        return made.reshape([1 if axis in over else size for axis, size in enumerate(source.shape)])
    return made


@kernel()
def substr(run: Run, texts: Array, pos: Array, length: Array) -> Array:
    """A piece of each text."""
    arrays: list[Any] = list(np.broadcast_arrays(to_numpy(texts), to_numpy(pos), to_numpy(length)))
    made = np.empty(arrays[0].shape, dtype=object)
    bytewise = run.attrs["unit"] == "BYTE"
    pairs = zip(arrays[0].flat, arrays[2].flat, strict=True)
    letters = sum(min(len(text), int(count)) if bytewise and count >= 0 else len(text) for text, count in pairs)
    _texts_fit(run, "input", made.size, letters)
    for index in np.ndindex(made.shape):
        text, start, count = arrays[0][index], int(arrays[1][index]), int(arrays[2][index])
        whole = text if bytewise else _characters(text)
        if not -len(whole) <= start <= len(whole):
            run.fail("pos", wanted=f"be inside the {len(whole)} characters of the text", got=start)
        first = start + len(whole) if start < 0 else start
        if count < 0 and start < 0 and isinstance(whole, list):
            run.fail("len", wanted="be 0 or more beside a negative pos", got=count)
        # A negative length of bytes reaches to the end, one of characters nowhere.
        end = len(whole) if count < 0 and not isinstance(whole, list) else first + max(0, count)
        piece = whole[first:end]
        made[index] = b"".join(piece) if isinstance(piece, list) else piece
    return made


def _characters(text: bytes) -> list[bytes]:
    """The characters of UTF-8: a byte and those that continue it, whatever they are."""
    starts = [place for place, byte in enumerate(text) if byte & 0xC0 != 0x80]
    return [text[begin:end] for begin, end in itertools.pairwise([*starts, len(text)])]


@kernel()
def encode_base64(run: Run, texts: Array) -> Array:
    """Web-safe base64."""
    source = to_numpy(texts)
    _texts_fit(run, "input", source.size, _letters(source) * 4 // 3)
    filler = b"" if run.attrs["pad"] else b"="
    return _mapped(lambda one: base64.urlsafe_b64encode(one).rstrip(filler), source)


@kernel()
def decode_base64(run: Run, texts: Array) -> Array:
    """From web-safe base64."""

    def decoded(one: bytes) -> bytes:
        plain = one if len(one) % 4 else one[:-2] + one[-2:].rstrip(b"=")
        if len(plain) % 4 == 1 or not _BASE64.fullmatch(plain):
            run.fail("input", wanted="be web-safe base64", got=repr(one))
        return base64.urlsafe_b64decode(plain + b"=" * (-len(plain) % 4))

    source = to_numpy(texts)
    _texts_fit(run, "input", source.size, _letters(source) * 3 // 4)
    return _mapped(decoded, source)


def _bucketed(hashed: Callable[[Run, bytes], int]) -> Callable[..., Any]:
    def function(run: Run, texts: Array) -> Array:
        count = run.attrs["num_buckets"]
        return run.make(_mapped(lambda one: hashed(run, one) % count, texts), INT64)

    return function


add_kernel(__name__, "hash_bucket", _bucketed(lambda run, one: hash64(one)))
add_kernel(__name__, "hash_bucket_fast", _bucketed(lambda run, one: fingerprint64(one)))
add_kernel(__name__, "hash_bucket_strong", _bucketed(lambda run, one: sip_hash(one, run.attrs["key"])))


@kernel()
def split(run: Run, texts: Array, delimiter: Array) -> Any:
    """The pieces of texts."""
    marks, source = to_numpy(delimiter).reshape(()).item(), to_numpy(texts).tolist()
    _texts_fit(run, "input", 4 * (_letters(to_numpy(texts)) + len(source)), 0)
    apart = re.compile(b"[" + re.escape(marks) + b"]") if marks else None
    rows = []
    for one in source:
        pieces = [] if not one else apart.split(one) if apart else [one[at : at + 1] for at in range(len(one))]
        rows.append([piece for piece in pieces if piece or not run.attrs["skip_empty"]])
    places = [(row, at) for row, pieces in enumerate(rows) for at in range(len(pieces))]
    flat = np.empty(len(places), dtype=object)
    flat[:] = [piece for pieces in rows for piece in pieces]
    return (run.make(np.array(places, np.int64).reshape(-1, 2), INT64), flat,
            run.make([len(rows), max(map(len, rows), default=0)], INT64))  # fmt: skip
