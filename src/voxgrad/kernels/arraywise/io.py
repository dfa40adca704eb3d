# SPDX-License-Identifier: Apache-2.0
"""Files that a page may touch: readers, saved tensors, whole files."""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from voxgrad.catalog.dtypes import INT64, DType
from voxgrad.catalog.io import box_sizes
from voxgrad.errors import Faults, VoxgradError
from voxgrad.kernels.arraywise.core import text_array
from voxgrad.kernels.arraywise.data_flow import Queue, resource_name
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.files import Files, NotAllowed
from voxgrad.kernels.arraywise.namespace import Array, integer, to_numpy
from voxgrad.kernels.element_types import numpy_type


def text_of(value: Array) -> str:
    """The one text of a tensor."""
    found = to_numpy(value).reshape(()).item()
    return found.decode() if isinstance(found, bytes) else str(found)


@contextlib.contextmanager
def _allowed(run: Run, argument: str, does: str) -> Iterator[Files]:
    """The files that a block may touch; what it may not touch, or what the system refuses, becomes its fault."""
    try:
        yield run.context.files
    except NotAllowed as error:
        raise error.error(run.op.name, argument) from None
    except OSError as error:
        got = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        run.fail(argument, wanted=f"be a file that can be {does}", got=got, code="VG051")


def _contents(run: Run, name: str) -> bytes:
    """All bytes of a file, as long as they fit into the memory that the session allows."""
    with _allowed(run, "filename", "read") as files, files.find(name).open() as file:
        _room(run, name, os.fstat(file.fileno()).st_size)
        return file.read()


def _room(run: Run, name: str, size: int) -> None:
    limit = run.context.passed_limit(size)
    if limit is not None:
        wanted, got = f"hold at most {limit:,} bytes, unpacked", f"{size:,} or more in {name}"
        run.fail("filename", wanted=wanted, got=got, code="VG020", remedy="vg.limits(bytes=...) sets the limit.")


def _replace(run: Run, name: str, write: Callable[[IO[bytes]], Any]) -> None:
    with _allowed(run, "filename", "written") as files:
        files.find(name, write=True).replace(write)


Record = tuple[bytes, bytes]


_WINDOWS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS + 16}
_IN, _OUT = 2**14, 2**22
"""Bytes that are unpacked at a time: a stream is looked at in pieces, so that many short ones cost what they hold."""
_ZEROS = re.compile(rb"\0*")


def _unpacked(run: Run, name: str, encoding: str) -> bytes:
    """The bytes of a file that may be packed, one stream after the other; no more is unpacked than may be held."""
    packed = _contents(run, name)
    if encoding not in _WINDOWS:
        return packed
    found, at = bytearray(), 0
    try:
        while at < len(packed):
            stream = zlib.decompressobj(_WINDOWS[encoding])
            while not stream.eof:
                block = packed[at : at + _IN]
                found += (part := stream.decompress(block, _OUT))
                at += len(block) - len(stream.unconsumed_tail) - len(stream.unused_data)
                # Twice: records are copies.
                _room(run, name, 2 * len(found))
                if not block and not part and not stream.eof:
                    raise zlib.error("the data are cut off")
            # GZIP files may be put one behind the other, and filled up with zeros.
            at = _ZEROS.match(packed, at).end() if encoding == "GZIP" else len(packed)  # type: ignore[union-attr]
    except zlib.error as error:
        run.fail("filename", wanted=f"be packed with {encoding}", got=f"{name}: {error}", code="VG053")
    return bytes(found)


def _fixed_records(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    size, hop = attrs["record_bytes"], attrs["hop_bytes"] or attrs["record_bytes"]
    data = _unpacked(run, name, attrs["encoding"])
    if len(data) < attrs["header_bytes"]:
        wanted = f"name files with a header of {attrs['header_bytes']} bytes"
        run.fail("queue_handle", wanted=wanted, got=f"{name}, {len(data)} bytes long", code="VG053")
    end = len(data) - attrs["footer_bytes"]
    for number, at in enumerate(range(attrs["header_bytes"], end - size + 1, hop)):
        yield f"{name}:{number}".encode(), data[at : at + size]


def _lines(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    lines = _contents(run, name).split(b"\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, 1):
        if number > attrs["skip_header_lines"]:
            yield f"{name}:{number}".encode(), line.removesuffix(b"\r")


def _whole(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    yield name.encode(), _contents(run, name)


def _names(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    yield name.encode(), name.encode()


def _tf_records(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    data = _unpacked(run, name, attrs["compression_type"])
    at = 0
    while at + 12 <= len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        if at + 16 + size > len(data):
            run.fail("queue_handle", wanted="name complete TFRecord files", got=f"{name}, cut off", code="VG053")
        yield f"{name}:{at}".encode(), data[at + 12 : at + 12 + size]
        at += 16 + size


_RECORDS: dict[str, Callable[[Run, Any, str], Iterator[Record]]] = {
    "FixedLengthRecordReaderV2": _fixed_records, "TextLineReaderV2": _lines, "WholeFileReaderV2": _whole,
    "IdentityReaderV2": _names, "TFRecordReaderV2": _tf_records,
}  # fmt: skip


_ONE_RECORD = ("WholeFileReaderV2", "IdentityReaderV2")
"""Readers that have finished a file with its only record."""


class Reader:
    """Takes names from a queue and gives the records of their files."""

    def __init__(self, run: Run):
        self.kind, self.attrs = run.op.name, dict(run.attrs)
        self.reset()

    def reset(self) -> None:
        """As it was at first."""
        self.records: Iterator[Record] | None = None
        self.produced = self.finished = 0

    def read(self, run: Run, queue: Queue, most: int) -> list[Record]:
        """Up to `most` records of one file, at least one."""
        while True:
            if self.records is None:
                self.records = _RECORDS[self.kind](run, self.attrs, text_of(queue.take(run)[0]))
            found: list[Record] = []
            size = 0
            for record in self.records:
                found.append(record)
                # Records may overlap: many large ones of a small file.
                size += len(record[1])
                _room(run, "one tensor", size)
                if len(found) == most:
                    break
            else:
                self.records = None
                self.finished += 1
            if found:
                self.produced += len(found)
                if self.records is not None and self.kind in _ONE_RECORD:
                    self.records = None
                    self.finished += 1
                return found


@kernel()
def reader(run: Run) -> Any:
    """The reader of this block, made at its first use."""
    known, name = run.context.state.resources, resource_name(run)
    if name not in known:
        known[name] = Reader(run)
    return known[name]


@kernel()
def read(run: Run, handle: Reader, queue: Queue) -> Any:
    """The next record."""
    ((key, value),) = handle.read(run, queue, 1)
    return text_array(np.array(key, dtype=object)), text_array(np.array(value, dtype=object))


@kernel()
def read_up_to(run: Run, handle: Reader, queue: Queue, num_records: Array) -> Any:
    """The next records of one file."""
    most = integer(num_records)
    if most < 0:
        run.fail("num_records", wanted="be 0 or more", got=most, code="VG003")
    found = handle.read(run, queue, most) if most else []
    keys, values = np.empty(len(found), dtype=object), np.empty(len(found), dtype=object)
    for index, (key, value) in enumerate(found):
        keys[index], values[index] = key, value
    return keys, values


@kernel()
def records_produced(run: Run, handle: Reader) -> Array:
    """How many records it gave."""
    return run.make(handle.produced, INT64)


@kernel()
def units_completed(run: Run, handle: Reader) -> Array:
    """How many files it finished."""
    return run.make(handle.finished, INT64)


@kernel()
def reset(run: Run, handle: Reader) -> tuple[()]:
    """As it was at first."""
    handle.reset()
    return ()


@kernel()
def read_file(run: Run, filename: Array) -> Array:
    """The bytes of a file."""
    return text_array(np.array(_contents(run, text_of(filename)), dtype=object))


@kernel()
def volume(run: Run) -> Any:
    """A volume of the folder, or a box of it."""
    opened = run.context.open_volume
    if opened is None:
        run.fail("path", wanted="be opened", got="a session that opens no volumes", code="VG051")
    store, faults = opened(run.context.files, run.attrs["path"], run.attrs["axes"]), Faults(run.op.name)
    box, dtype = run.attrs["box"], run.attrs["dtype"]
    sizes = box_sizes(box, store.shape[1:4], faults)
    faults.raise_if_any()
    kind = numpy_type(dtype)
    run.room("path", (store.shape[0], *sizes, store.shape[4]), np.empty(0, kind))
    spatial = [slice(first, end) for first, end in zip(box[::2], box[1::2], strict=True)] or [slice(None)] * 3
    return run.make(store.read((slice(None), *spatial, slice(None))).astype(kind, copy=False), dtype)


@kernel()
def write_file(run: Run, filename: Array, contents: Array) -> tuple[()]:
    """Write bytes to a file."""
    data = to_numpy(contents).reshape(()).item()
    _replace(run, text_of(filename), lambda file: file.write(data))
    return ()


@kernel()
def matching_files(run: Run, pattern: Array) -> Array:
    """The files that match; one that matches two patterns comes twice."""
    patterns = [one.decode() if isinstance(one, bytes) else str(one) for one in to_numpy(pattern).ravel().tolist()]
    with _allowed(run, "pattern", "listed") as files:
        found = [name for one in patterns for name in files.matching(one)]
    return text_array(np.array(sorted(found), dtype=object))


def _save(run: Run, name: str, names: Array, tensors: list[Array]) -> tuple[()]:
    keys = [one.decode() for one in to_numpy(names).ravel().tolist()]
    arrays = [to_numpy(tensor) for tensor in tensors]
    for key, array in zip(keys, arrays, strict=True):
        if array.dtype == object:
            run.fail("data", wanted="hold numbers to be saved", got=f"text in {key}", code="VG011")
        if keys.count(key) > 1 or "\0" in key:
            run.fail("tensor_names", wanted="name every tensor once, without NUL", got=repr(key), code="VG003")
    _replace(run, name, lambda file: _write_archive(file, keys, arrays))
    return ()


def _write_archive(file: IO[bytes], keys: list[str], arrays: list[Any]) -> None:
    """An .npz archive. NumPy's own writer takes the names as arguments and stumbles over some of them."""
    with zipfile.ZipFile(file, "w") as archive:
        for key, array in zip(keys, arrays, strict=True):
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _load(run: Run, name: str, keys: list[str], types: list[DType]) -> list[Array]:
    with _allowed(run, "file_pattern", "read") as files, files.find(name).open() as file:
        try:
            with zipfile.ZipFile(file) as archive:
                known = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                return [_member(run, archive, known, key, dtype) for key, dtype in zip(keys, types, strict=True)]
        except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, TokenError) as error:
            if isinstance(error, VoxgradError):
                raise
            run.fail("file_pattern", wanted="be a file that Save wrote", got=f"{name}: {error}", code="VG053")


def _member(run: Run, archive: zipfile.ZipFile, known: dict[str, zipfile.ZipInfo], key: str, dtype: DType) -> Array:
    if key not in known:
        run.fail("tensor_name", wanted=f"be one of {', '.join(known)}", got=key, code="VG050")
    _room(run, key, known[key].file_size)
    array, wanted = _array(archive.read(known[key])), numpy_type(dtype)
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        # NumPy's file format has no name for bfloat16.
        array = array.view(wanted)
    if array.dtype != wanted:
        run.fail("dt", wanted=f"be the type of {key}, {array.dtype}", got=dtype.name, code="VG011")
    return run.make(array, dtype)


def _array(data: bytes) -> Any:
    """The array in the bytes of an .npy file; what the header declares is not believed before it is there."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"an .npy file of version {version}")
    shape, fortran, dtype = read(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ValueError(f"{len(data):,} bytes for {dtype} {list(shape)}")
    flat = np.frombuffer(data, dtype, offset=stream.tell())
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


@kernel()
def save(run: Run, filename: Array, names: Array, data: list[Array]) -> tuple[()]:
    """Write tensors to a file."""
    return _save(run, text_of(filename), names, data)


@kernel()
def save_v2(run: Run, prefix: Array, names: Array, slices: Array, tensors: list[Array]) -> tuple[()]:
    """Write tensors to a file."""
    return _save(run, text_of(prefix), names, tensors)


@kernel()
def restore(run: Run, pattern: Array, name: Array) -> Array:
    """Read a tensor from a file."""
    return _load(run, text_of(pattern), [text_of(name)], [run.attrs["dt"]])[0]


@kernel()
def restore_v2(run: Run, prefix: Array, names: Array, slices: Array) -> Any:
    """Read tensors from a file."""
    keys = [one.decode() for one in to_numpy(names).ravel().tolist()]
    return tuple(_load(run, text_of(prefix), keys, list(run.attrs["dtypes"])))


@kernel()
def sharded_filename(run: Run, basename: Array, shard: Array, num_shards: Array) -> Array:
    """The name of one file of several."""
    return _named(basename, f"-{integer(shard):05d}-of-{integer(num_shards):05d}")


@kernel()
def sharded_filespec(run: Run, basename: Array, num_shards: Array) -> Array:
    """The pattern of several files."""
    return _named(basename, f"-?????-of-{integer(num_shards):05d}")


def _named(basename: Array, end: str) -> Array:
    """A name of any bytes with an end."""
    return text_array(to_numpy(basename).reshape(()).item() + end.encode())
