# SPDX-License-Identifier: Apache-2.0
"""Files that a page may touch: readers, records, whole files."""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from voxgrad.catalog.dtypes import INT64
from voxgrad.catalog.io import box_sizes
from voxgrad.errors import Faults, VoxgradError
from voxgrad.kernels.arraywise import lmdb
from voxgrad.kernels.arraywise.core import text_array
from voxgrad.kernels.arraywise.data_flow import Queue, resource_name
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.files import Files, NotAllowed
from voxgrad.kernels.arraywise.namespace import Array, integer, to_numpy
from voxgrad.kernels.element_types import numpy_type
from voxgrad.kernels.records import Damaged, records
from voxgrad.kernels.wire import field_of, number_of, parse


def text_of(value: Array) -> str:
    """The one text of a tensor."""
    found = to_numpy(value).reshape(()).item()
    return found.decode() if isinstance(found, bytes) else str(found)


@contextlib.contextmanager
def allowed(run: Run, argument: str, does: str) -> Iterator[Files]:
    """The files that a block may touch; what it may not touch, or what the system refuses, becomes its fault."""
    try:
        yield run.context.files
    except NotAllowed as error:
        raise error.error(run.op.name, argument) from None
    except OSError as error:
        got = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        run.fail(argument, wanted=f"be a file that can be {does}", got=got, code="VG051")


def contents(run: Run, name: str, argument: str = "filename") -> bytes:
    """All bytes of a file, as long as they fit into the memory that the session allows."""
    with allowed(run, argument, "read") as files, files.find(name).open() as file:
        room(run, name, os.fstat(file.fileno()).st_size)
        return file.read()


def room(run: Run, name: str, size: int) -> None:
    """Fail before so many bytes of a file are held that the session does not allow it."""
    limit = run.context.passed_limit(size)
    if limit is not None:
        wanted, got = f"hold at most {limit:,} bytes, unpacked", f"{size:,} or more in {name}"
        run.fail("filename", wanted=wanted, got=got, code="VG020", remedy="vg.limits(bytes=...) sets the limit.")


def put(run: Run, name: str, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a file: complete, or as it was before."""
    with allowed(run, "filename", "written") as files:
        files.find(name, write=True).replace(write)


Record = tuple[bytes, bytes]


_WINDOWS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS + 16}
_IN, _OUT = 2**14, 2**22
"""Bytes that are unpacked at a time: a stream is looked at in pieces, so that many short ones cost what they hold."""
_ZEROS = re.compile(rb"\0*")


def _unpacked(run: Run, name: str, encoding: str) -> bytes:
    """The bytes of a file that may be packed, one stream after the other; no more is unpacked than may be held."""
    packed = contents(run, name)
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
                room(run, name, 2 * len(found))
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
    lines = contents(run, name).split(b"\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, 1):
        if number > attrs["skip_header_lines"]:
            yield f"{name}:{number}".encode(), line.removesuffix(b"\r")


def _whole(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    yield name.encode(), contents(run, name)


def _names(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    yield name.encode(), name.encode()


def _tf_records(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    try:
        for at, record in records(_unpacked(run, name, attrs["compression_type"])):
            yield f"{name}:{at}".encode(), record
    except Damaged as error:
        run.fail("queue_handle", wanted="name complete TFRecord files", got=f"{name}, {error}", code="VG053")


def _entries(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    """The entries of an LMDB database: a file, or data.mdb in a folder of the name."""
    with allowed(run, "queue_handle", "read") as files:
        name = name if files.find(name).path.is_file() else f"{name}/data.mdb"
    try:
        yield from lmdb.entries(contents(run, name, "queue_handle"))
    except lmdb.Broken as error:
        run.fail("queue_handle", wanted="name LMDB databases", got=f"{name}: {error}", code="VG053")


_RECORDS: dict[str, Callable[[Run, Any, str], Iterator[Record]]] = {
    "FixedLengthRecordReaderV2": _fixed_records, "TextLineReaderV2": _lines, "WholeFileReaderV2": _whole,
    "IdentityReaderV2": _names, "TFRecordReaderV2": _tf_records, "LMDBReader": _entries,
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
        self.produced = self.finished = self.started = 0
        self.file = ""

    def read(self, run: Run, queue: Queue, most: int) -> list[Record]:
        """Up to `most` records of one file, at least one."""
        while True:
            if self.records is None:
                self.file = text_of(queue.take(run)[0])
                self.started += 1
                self.records = _RECORDS[self.kind](run, self.attrs, self.file)
            found: list[Record] = []
            size = 0
            for record in self.records:
                found.append(record)
                # Records may overlap: many large ones of a small file.
                size += len(record[1])
                room(run, "one tensor", size)
                if len(found) == most:
                    break
            else:
                self._finish()
            if found:
                self.produced += len(found)
                if self.records is not None and self.kind in _ONE_RECORD:
                    self._finish()
                return found

    def _finish(self) -> None:
        self.records = None
        self.finished = self.started

    def state(self) -> bytes:
        """Where it stands, as TensorFlow's message ReaderBaseState."""
        counts = (self.started, self.finished, self.produced)
        made = b"".join(number_of(key, count) for key, count in enumerate(counts, 1))
        return made + (field_of(4, self.file.encode()) if self.file else b"")

    def restore(self, run: Run, data: bytes) -> None:
        """Stand where a message says."""
        try:
            message = parse(data, run.op.name)
            counts, file = [message.signed(key) for key in (1, 2, 3)], message.text(4)
        except VoxgradError as error:
            run.fail("state", wanted="be what ReaderSerializeState gave", got=error.faults[0].got, code="VG053")
        if min(counts) < 0 or counts[0] != counts[1]:
            run.fail("state", wanted="tell as many finished files as started ones", got=counts)
        self.records = None
        self.started, self.finished, self.produced = counts
        self.file = file


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


def _with_state(run: Run, handle: Reader) -> Reader:
    if handle.kind not in _ONE_RECORD:
        remedy = "Use WholeFileReader or IdentityReader, as in TensorFlow."
        wanted = "be a reader whose state is a count of files"
        run.fail("reader_handle", wanted=wanted, got=handle.kind, code="VG032", remedy=remedy)
    return handle


@kernel()
def serialize_state(run: Run, handle: Reader) -> Array:
    """Where a reader stands."""
    return text_array(np.array(_with_state(run, handle).state(), dtype=object))


@kernel()
def restore_state(run: Run, handle: Reader, state: Array) -> tuple[()]:
    """Have a reader stand where it stood."""
    _with_state(run, handle).restore(run, to_numpy(state).reshape(()).item())
    return ()


class _Shuffled:
    """The records of all files, over and over, in random order: one of a buffer at a time."""

    def __init__(self, run: Run):
        self._epoch, self._chance = 0, random.Random(run.attrs["file_random_seed"])
        self._coming: Iterator[bytes] = iter(())
        self._held: list[bytes] = []
        self._size = 0

    def _files(self, run: Run) -> list[str]:
        with allowed(run, "file_pattern", "listed") as files:
            found = [name for one in run.attrs["file_pattern"].split(",") for name in sorted(files.matching(one))]
        if not found:
            wanted, got = "be the pattern of files that are there", run.attrs["file_pattern"]
            run.fail("file_pattern", wanted=wanted, got=got, code="VG051")
        random.Random(f"{run.attrs['file_random_seed']}/{self._epoch}").shuffle(found)
        shift = int(run.attrs["file_shuffle_shift_ratio"] * len(found))
        return found[shift:] + found[:shift]

    def _records(self, run: Run) -> Iterator[bytes]:
        for name in self._files(run):
            for _, record in _tf_records(run, run.attrs, name):
                yield record

    def take(self, run: Run) -> bytes:
        """The next record; files are listed again when all of theirs were given."""
        self._fill(run)
        if not self._held:
            self._epoch += 1
            self._coming = self._records(run)
            self._fill(run)
        if not self._held:
            wanted, got = "be the pattern of files with records", run.attrs["file_pattern"]
            run.fail("file_pattern", wanted=wanted, got=got, code="VG053")
        at = self._chance.randrange(len(self._held))
        self._held[at], self._held[-1] = self._held[-1], self._held[at]
        self._size -= len(self._held[-1])
        return self._held.pop()

    def _fill(self, run: Run) -> None:
        while len(self._held) < run.attrs["file_buffer_size"] and (record := next(self._coming, None)) is not None:
            self._held.append(record)
            self._size += len(record)
            room(run, "the buffer", self._size)


@kernel()
def record_input(run: Run) -> Array:
    """Records of files in random order."""
    known, name = run.context.state.resources, f"{run.context.block}:records"
    source = known.setdefault(name, _Shuffled(run))
    made, size = np.empty(run.attrs["batch_size"], dtype=object), 0
    for index in range(len(made)):
        made[index] = source.take(run)
        size += len(made[index])
        room(run, "one tensor", size)
    return made


@kernel()
def immutable_const(run: Run) -> Array:
    """A tensor from the bytes of a file."""
    dtype, shape, name = run.attrs["dtype"], run.attrs["shape"], run.attrs["memory_region_name"]
    data, count = contents(run, name, "memory_region_name"), math.prod(shape)
    if len(data) < count * dtype.itemsize:
        wanted, got = f"hold {count * dtype.itemsize:,} bytes", f"{len(data):,} in {name}"
        run.fail("memory_region_name", wanted=wanted, got=got, code="VG053")
    flat = np.frombuffer(data, numpy_type(dtype).newbyteorder("<"), count)
    return run.make(flat.astype(numpy_type(dtype)).reshape(shape), dtype)


@kernel()
def read_file(run: Run, filename: Array) -> Array:
    """The bytes of a file."""
    return text_array(np.array(contents(run, text_of(filename)), dtype=object))


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
def write_file(run: Run, filename: Array, data: Array) -> tuple[()]:
    """Write bytes to a file."""
    written = to_numpy(data).reshape(()).item()
    put(run, text_of(filename), lambda file: file.write(written))
    return ()


@kernel()
def matching_files(run: Run, pattern: Array) -> Array:
    """The files that match; one that matches two patterns comes twice."""
    patterns = [one.decode() if isinstance(one, bytes) else str(one) for one in to_numpy(pattern).ravel().tolist()]
    with allowed(run, "pattern", "listed") as files:
        found = [name for one in patterns for name in files.matching(one)]
    return text_array(np.array(sorted(found), dtype=object))


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
