# SPDX-License-Identifier: Apache-2.0
"""Files inside one folder: readers, saved tensors, whole files."""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from voxgrad.catalog.dtypes import INT64, DType
from voxgrad.catalog.io import box_sizes
from voxgrad.errors import Faults
from voxgrad.kernels.arraywise.core import text_array
from voxgrad.kernels.arraywise.data_flow import Queue, resource_name
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, integer, to_numpy
from voxgrad.kernels.element_types import numpy_type

_LARGEST = 2**31
"""Archives that unpack to more than this are refused before they are read."""


def text_of(value: Array) -> str:
    """The one text of a tensor."""
    found = to_numpy(value).reshape(()).item()
    return found.decode() if isinstance(found, bytes) else str(found)


def confined(folder: Path, name: str) -> Path | None:
    """The path of a file inside a folder, links followed; None for anything else."""
    base = folder.resolve()
    found = None if "\0" in name else (base / name).resolve()
    return found if found is not None and found.is_relative_to(base) else None


def _folder(run: Run, argument: str) -> Path:
    folder = run.context.folder
    if folder is None:
        wanted, remedy = "lie in the folder of the session", "Give the session a folder, or save the page first."
        run.fail(argument, wanted=wanted, got="a session without one", code="VG051", remedy=remedy)
    return Path(folder)


def path_in(run: Run, name: str) -> Path:
    """The path of a file inside the session's folder; anything else is refused."""
    folder = _folder(run, "filename")
    found = confined(folder, name)
    if found is None:
        run.fail("filename", wanted=f"lie inside {folder.resolve()}", got=name, code="VG051")
    return found


@contextlib.contextmanager
def _opened(run: Run, name: str) -> Iterator[IO[bytes]]:
    path = path_in(run, name)
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        run.fail("filename", wanted="be a file that can be read", got=f"{name}: {error.strerror}", code="VG051")


def _replace(run: Run, name: str, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside the wanted one, then put it in its place: complete, or as before."""
    path = path_in(run, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        run.fail("filename", wanted="be a file that can be written", got=f"{name}: {error.strerror}", code="VG051")


Record = tuple[bytes, bytes]


def _unpacked(data: bytes, encoding: str) -> bytes:
    return gzip.decompress(data) if encoding == "GZIP" else zlib.decompress(data) if encoding == "ZLIB" else data


def _fixed_records(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    size, hop = attrs["record_bytes"], attrs["hop_bytes"] or attrs["record_bytes"]
    with _opened(run, name) as file:
        data = _unpacked(file.read(), attrs["encoding"])
    end = len(data) - attrs["footer_bytes"]
    for number, at in enumerate(range(attrs["header_bytes"], end - size + 1, hop)):
        yield f"{name}:{number}".encode(), data[at : at + size]


def _lines(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    with _opened(run, name) as file:
        data = file.read()
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, 1):
        if number > attrs["skip_header_lines"]:
            yield f"{name}:{number}".encode(), line.removesuffix(b"\r")


def _whole(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    with _opened(run, name) as file:
        yield name.encode(), file.read()


def _names(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    yield name.encode(), name.encode()


def _tf_records(run: Run, attrs: Any, name: str) -> Iterator[Record]:
    with _opened(run, name) as file:
        data = _unpacked(file.read(), attrs["compression_type"])
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
            for record in self.records:
                found.append(record)
                if len(found) == most:
                    break
            else:
                self.records = None
                self.finished += 1
            if found:
                self.produced += len(found)
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
    found = handle.read(run, queue, max(1, integer(num_records)))
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
    with _opened(run, text_of(filename)) as file:
        return text_array(np.array(file.read(), dtype=object))


@kernel()
def volume(run: Run) -> Any:
    """A volume of the folder, or a box of it."""
    opened = run.context.open_volume
    folder = _folder(run, "path")
    if opened is None:
        run.fail("path", wanted="be opened", got="a session that opens no volumes", code="VG051")
    store, faults = opened(folder, run.attrs["path"], run.attrs["axes"]), Faults(run.op.name)
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
    _replace(run, text_of(filename), lambda file: _write(file, data))
    return ()


def _write(file: IO[bytes], data: bytes) -> None:
    file.write(data)


@kernel()
def matching_files(run: Run, pattern: Array) -> Array:
    """The files that match."""
    base = path_in(run, ".")
    patterns = [one.decode() if isinstance(one, bytes) else str(one) for one in to_numpy(pattern).ravel().tolist()]
    found = {str(path.relative_to(base)) for one in patterns for path in base.glob(one) if path.is_file()}
    return text_array(np.array(sorted(found), dtype=object))


def _save(run: Run, name: str, names: Array, tensors: list[Array]) -> tuple[()]:
    keys = [one.decode() for one in to_numpy(names).ravel().tolist()]
    arrays = [to_numpy(tensor) for tensor in tensors]
    for key, array in zip(keys, arrays, strict=True):
        if array.dtype == object:
            run.fail("data", wanted="hold numbers to be saved", got=f"text in {key}", code="VG011")
    _replace(run, name, lambda file: np.savez(file, **dict(zip(keys, arrays, strict=True))))
    return ()


def _load(run: Run, name: str, keys: list[str], types: list[DType]) -> list[Array]:
    with _opened(run, name) as file:
        try:
            size = sum(entry.file_size for entry in zipfile.ZipFile(file).infolist())
            if size > _LARGEST:
                run.fail("file_pattern", wanted=f"unpack to at most {_LARGEST:,} bytes", got=f"{size:,}", code="VG020")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return [_typed(run, archive, key, dtype) for key, dtype in zip(keys, types, strict=True)]
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            run.fail("file_pattern", wanted="be a file that Save wrote", got=f"{name}: {error}", code="VG053")
    return []


def _typed(run: Run, archive: Any, key: str, dtype: DType) -> Array:
    if key not in archive.files:
        run.fail("tensor_name", wanted=f"be one of {', '.join(archive.files)}", got=key, code="VG050")
    array, wanted = archive[key], numpy_type(dtype)
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        # NumPy's file format has no name for bfloat16.
        array = array.view(wanted)
    if array.dtype != wanted:
        run.fail("dt", wanted=f"be the type of {key}, {array.dtype}", got=dtype.name, code="VG011")
    return run.make(array, dtype)


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
    return text_array(f"{text_of(basename)}-{integer(shard):05d}-of-{integer(num_shards):05d}")


@kernel()
def sharded_filespec(run: Run, basename: Array, num_shards: Array) -> Array:
    """The pattern of several files."""
    return text_array(f"{text_of(basename)}-?????-of-{integer(num_shards):05d}")
