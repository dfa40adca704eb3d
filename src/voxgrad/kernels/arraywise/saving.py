# SPDX-License-Identifier: Apache-2.0
"""Tensors saved to files and restored: TensorFlow's checkpoints of both versions, and .npz archives."""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from voxgrad.catalog.dtypes import DType
from voxgrad.errors import VoxgradError
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.files import Files
from voxgrad.kernels.arraywise.io import allowed, contents, put, room, text_of
from voxgrad.kernels.arraywise.namespace import Array, to_numpy
from voxgrad.kernels.element_types import numpy_type
from voxgrad.kernels.saved_tensors import (
    Key,
    Part,
    Saved,
    archived,
    data_name,
    index_name,
    read_v1,
    read_v2,
    v1_bytes,
    write_archive,
    write_v2,
)

_ARCHIVE = b"PK"
"""What archives begin with; a checkpoint of the first version begins with its list of tensors."""


def _texts(values: Array) -> list[str]:
    return [one.decode() for one in to_numpy(values).ravel().tolist()]


def _keys(run: Run, argument: str, names: list[str], parts: list[str], data: list[Array]) -> list[Key]:
    """What tensors are saved under: their names, and what is stated of parts of them."""
    keys = []
    for name, text, tensor in zip(names, parts, data, strict=True):
        if text and (part := _part(run, argument, text)).sizes != tuple(tensor.shape):
            run.fail(argument, wanted=f"state the shape of {name}, {list(tensor.shape)}", got=list(part.sizes))
        keys.append(Key(name, text))
    return keys


def _part(run: Run, argument: str, text: str) -> Part:
    try:
        return Part.of(text)
    except ValueError:
        run.fail(argument, wanted="state sizes and a slice of them, as in '4 10 0,2:-'", got=repr(text))


def _is_archive(name: str) -> bool:
    return name.endswith(".npz")


def _check(run: Run, name: str, tensors: Sequence[tuple[Key, Any]]) -> None:
    """Every tensor must be saved once, as a whole or in parts of one shape, in a type that the file can hold."""
    counts = Counter(key for key, _ in tensors)
    wholes = {key.name: Part.of(key.part).whole if key.part else None for key, _ in tensors}
    for key, array in tensors:
        if array.dtype == object and _is_archive(name):
            remedy = "Give the file another name than .npz: a checkpoint holds texts."
            run.fail("data", wanted="hold numbers to be saved", got=f"text in {key.name}", code="VG011", remedy=remedy)
        if counts[key] > 1 or "\0" in key.name or not key.name:
            run.fail("tensor_names", wanted="name every tensor once, without NUL", got=repr(key.name), code="VG003")
        if (Part.of(key.part).whole if key.part else None) != wholes[key.name]:
            wanted = f"state one shape for all parts of {key.name}"
            run.fail("tensor_names", wanted=wanted, got=f"{key.part or 'a whole tensor'} beside others", code="VG003")


def _save(run: Run, name: str, keys: list[Key], data: list[Array], version: int) -> tuple[()]:
    _write(run, name, [(key, to_numpy(one)) for key, one in zip(keys, data, strict=True)], version)
    return ()


def _write(run: Run, name: str, tensors: Sequence[tuple[Key, Any]], version: int) -> None:
    """An archive where the name says so, else a checkpoint: of the second version, the table that makes it one last."""
    _check(run, name, tensors)
    if _is_archive(name):
        put(run, name, lambda file: write_archive(file, tensors))
    elif version == 1:
        put(run, name, lambda file: file.write(v1_bytes(tensors)))
    else:
        with allowed(run, "prefix", "written") as files:
            # No file has this name itself, but it is what was typed.
            files.find(name, write=True).checked()
        made = list[bytes]()
        put(run, data_name(name), lambda file: made.append(write_v2(tensors, file)))
        put(run, index_name(name), lambda file: file.write(made[0]))


@contextlib.contextmanager
def _opened(run: Run, name: str, version: int) -> Iterator[Saved]:
    """What a file, or those that begin with a name, hold; where both are there, what this version of ops writes."""
    try:
        if _is_there(run, index_name(name)) and (version == 2 or not _is_there(run, name)):
            yield read_v2(name, contents(run, index_name(name), "file_pattern"), lambda one: _file(run, one))
            return
        with _file(run, name) as file:
            if file.read(len(_ARCHIVE)) == _ARCHIVE:
                with zipfile.ZipFile(file) as archive:
                    yield archived(archive)
                return
        yield read_v1(contents(run, name, "file_pattern"), name)
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, TokenError) as error:
        if isinstance(error, VoxgradError):
            raise
        run.fail("file_pattern", wanted="be a file of saved tensors", got=f"{name}: {error}", code="VG053")


def _is_there(run: Run, name: str) -> bool:
    with allowed(run, "file_pattern", "read") as files:
        return os.path.lexists(files.find(name).path)


def _file(run: Run, name: str) -> IO[bytes]:
    with allowed(run, "file_pattern", "read") as files:
        return files.find(name).open()


def _whole(run: Run, saved: Saved, key: Key, dtype: DType) -> Any:
    """A tensor, or a part that was saved as one, as a NumPy array."""
    room(run, key.name, saved[key].size)
    array, wanted = saved[key].load(), numpy_type(dtype)
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        # NumPy's file format has no name for bfloat16.
        array = array.view(wanted)
    if array.dtype != wanted:
        got = "texts" if array.dtype == object else array.dtype
        run.fail("dt", wanted=f"be the type of {key.name}, {got}", got=dtype.name, code="VG011")
    return array


def _restored(run: Run, saved: Saved, name: str, asked: tuple[str, str], dtype: DType) -> Array:
    """A tensor, or the part of it that a text asks for, beside the argument that it came in."""
    text, argument = asked
    wanted = _part(run, argument, text) if text else None
    if Key(name) in saved:
        whole = _whole(run, saved, Key(name), dtype)
        if wanted is not None and wanted.whole != whole.shape:
            run.fail(argument, wanted=f"state the shape of {name}, {list(whole.shape)}", got=text)
        return run.make(whole if wanted is None else whole[wanted.slices], dtype)
    parts = {key: _part(run, "file_pattern", key.part) for key in saved if key.name == name}
    if not parts:
        known = ", ".join(dict.fromkeys(key.name for key in saved)) or "none"
        run.fail("tensor_name", wanted=f"be one of {known}", got=name, code="VG050")
    sizes = next(iter(parts.values())).whole
    return run.make(_joined(run, saved, parts, wanted or Part(sizes, (None,) * len(sizes)), (argument, dtype)), dtype)


def _joined(run: Run, saved: Saved, parts: dict[Key, Part], wanted: Part, asked: tuple[str, DType]) -> Any:
    """A part of a tensor from the parts that were saved."""
    argument, dtype = asked
    kind = numpy_type(dtype)
    run.room(argument, wanted.sizes, np.empty(0, kind))
    made, there = np.empty(wanted.sizes, kind), np.zeros(wanted.sizes, bool)
    for key, part in parts.items():
        if part.whole != wanted.whole:
            run.fail(argument, wanted=f"state the shape of the tensor, {list(part.whole)}", got=list(wanted.whole))
        low = [max(one, two) for one, two in zip(part.starts, wanted.starts, strict=True)]
        high = [min(one + a, two + b) for one, a, two, b in zip(
            part.starts, part.sizes, wanted.starts, wanted.sizes, strict=True)]  # fmt: skip
        if all(one < two for one, two in zip(low, high, strict=True)):
            here, own = (tuple(slice(one - begin, two - begin) for one, two, begin in zip(low, high, at, strict=True))
                         for at in (wanted.starts, part.starts))  # fmt: skip
            made[here] = _whole(run, saved, key, dtype)[own]
            there[here] = True
    if not there.all():
        run.fail(argument, wanted="lie in the parts that were saved", got=f"{int((~there).sum())} cells outside")
    return made


@kernel()
def save(run: Run, filename: Array, names: Array, data: list[Array]) -> tuple[()]:
    """Write tensors to a file."""
    return _save(run, text_of(filename), [Key(one) for one in _texts(names)], data, 1)


@kernel()
def save_slices(run: Run, filename: Array, names: Array, parts: Array, data: list[Array]) -> tuple[()]:
    """Write tensors, or parts of them, to a file."""
    return _save(run, text_of(filename), _keys(run, "shapes_and_slices", _texts(names), _texts(parts), data), data, 1)


@kernel()
def save_v2(run: Run, prefix: Array, names: Array, slices: Array, tensors: list[Array]) -> tuple[()]:
    """Write tensors, or parts of them, to files that begin with a name."""
    keys = _keys(run, "shape_and_slices", _texts(names), _texts(slices), tensors)
    return _save(run, text_of(prefix), keys, tensors, 2)


@kernel()
def restore(run: Run, pattern: Array, name: Array) -> Array:
    """Read a tensor from a file."""
    with _opened(run, text_of(pattern), 1) as saved:
        return _restored(run, saved, text_of(name), ("", "tensor_name"), run.attrs["dt"])


@kernel()
def restore_slice(run: Run, pattern: Array, name: Array, part: Array) -> Array:
    """Read a tensor, or a part of it, from a file that may hold it in parts."""
    with _opened(run, text_of(pattern), 1) as saved:
        return _restored(run, saved, text_of(name), (text_of(part), "shape_and_slice"), run.attrs["dt"])


@kernel()
def restore_v2(run: Run, prefix: Array, names: Array, slices: Array) -> Any:
    """Read tensors from a file."""
    asked = list(zip(_texts(names), _texts(slices), run.attrs["dtypes"], strict=True))
    with _opened(run, text_of(prefix), 2) as saved:
        return tuple(_restored(run, saved, name, (text, "shape_and_slices"), dtype) for name, text, dtype in asked)


@kernel()
def merge_checkpoints(run: Run, prefixes: Array, destination: Array) -> tuple[()]:
    """Put the tensors of several files into one, in place of them."""
    tensors, merged, target, size = list[tuple[Key, Any]](), list[str](), text_of(destination), 0
    for name in _texts(prefixes):
        if run.attrs["allow_missing_files"] and not (_is_there(run, index_name(name)) or _is_there(run, name)):
            continue
        merged.append(name)
        with _opened(run, name, 2) as saved:
            for key, held in saved.items():
                size += held.size
                room(run, key.name, size)
                tensors.append((key, held.load()))
    if not merged:
        run.fail("checkpoint_prefixes", wanted="name files that are there", got="none", code="VG051")
    counts = Counter(key for key, _ in tensors)
    twice = next((key.name for key, count in counts.items() if count > 1), None)
    if twice is not None:
        run.fail("checkpoint_prefixes", wanted="hold every tensor once", got=f"{twice} twice")
    _write(run, target, tensors, 2)
    with allowed(run, "checkpoint_prefixes", "deleted") as files:
        for name in dict.fromkeys(merged):
            if name != target:
                _remove(files, name, run.attrs["delete_old_dirs"])
    return ()


def _remove(files: Files, name: str, empty_folders: bool) -> None:
    """Delete what was saved under a name."""
    index = files.find(index_name(name), write=True)
    if os.path.lexists(index.path):
        # The table last: as long as it is there, the rest can be found.
        of_bytes = sorted(files.matching(f"{name}.data-*-of-*"))
        places = [*(files.find(one, write=True) for one in of_bytes), index]
    else:
        places = [files.find(name, write=True)]
    for place in places:
        place.remove()
    if empty_folders:
        places[-1].remove_empty_folder()
