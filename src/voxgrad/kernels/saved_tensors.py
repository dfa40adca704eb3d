# SPDX-License-Identifier: Apache-2.0
"""Files of named tensors: TensorFlow's checkpoints of both versions, and NumPy's .npz archives.

A tensor may be kept in parts. `V1` is one table with the tensors in it; `V2` is a table `PREFIX.index` beside files of
bytes, `PREFIX.data-00000-of-00001`. What is read comes from strangers: sizes are held against the bytes that are there.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.kernels.crc32c import crc32c, masked, sealed
from voxgrad.kernels.element_types import dtype_of, numpy_type
from voxgrad.kernels.tables import table_bytes, table_entries
from voxgrad.kernels.tensor_proto import listed, listed_bytes, shape, type_of
from voxgrad.kernels.wire import Message, broken, field_of, fixed32_of, number_of, parse, read_varint, varint

Array = np.ndarray[Any, Any]
Span = tuple[int, int]


class Key(NamedTuple):
    """The name of a tensor, and which part of it is meant: its sizes and slices, as in `4 10 0,2:-`; empty for all."""

    name: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a tensor: the shape of the whole, and first cell and number of cells along each axis; None for all."""

    whole: tuple[int, ...]
    spans: tuple[Span | None, ...]

    @staticmethod
    def of(text: str) -> Part:
        """From sizes and slices as people write them; raises ValueError."""
        *sizes, slices = text.split(" ")
        whole = tuple(int(size) for size in sizes)
        spans = [None if one == "-" else tuple(map(int, one.split(","))) for one in slices.split(":")]
        if len(spans) != len(whole) or min(whole) < 0 or any(one is not None and len(one) != 2 for one in spans):
            raise ValueError(text)
        for span, size in zip(spans, whole, strict=True):
            if span is not None and not (span[0] >= 0 < span[1] and sum(span) <= size):
                raise ValueError(text)
        return Part(whole, tuple(spans))  # type: ignore[arg-type]

    @property
    def text(self) -> str:
        """As people write it."""
        spans = ":".join("-" if one is None else f"{one[0]},{one[1]}" for one in self.spans)
        return " ".join([*map(str, self.whole), spans])

    @property
    def starts(self) -> tuple[int, ...]:
        """The first cell along every axis."""
        return tuple(0 if one is None else one[0] for one in self.spans)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The cells along every axis."""
        return tuple(size if one is None else one[1] for one, size in zip(self.spans, self.whole, strict=True))

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where it lies."""
        return tuple(slice(start, start + size) for start, size in zip(self.starts, self.sizes, strict=True))


class Held(NamedTuple):
    """A tensor in a file: how many bytes it takes, and what reads it."""

    size: int
    load: Callable[[], Array]


Saved = dict[Key, Held]
Opener = Callable[[str], IO[bytes]]


def typed(array: Array) -> DType:
    """The element type of an array that is saved."""
    found = dtypes.STRING if array.dtype == object else dtype_of(array.dtype)
    assert found is not None, "an array of a page has a type"
    return found


# NumPy's archives

_SLICED = " | "
"""Between the name of a tensor and the part of it that an entry of an archive holds."""


def write_archive(file: IO[bytes], tensors: Sequence[tuple[Key, Array]]) -> None:
    """An .npz archive. NumPy's own writer takes the names as arguments and stumbles over some of them."""
    with zipfile.ZipFile(file, "w") as archive:
        for key, array in tensors:
            with archive.open(f"{_SLICED.join(filter(None, key))}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def archived(archive: zipfile.ZipFile) -> Saved:
    """What an archive holds."""
    found = {}
    for info in archive.infolist():
        name, _, part = info.filename.removesuffix(".npy").partition(_SLICED)
        found[Key(name, part)] = Held(info.file_size, lambda info=info: _array(archive.read(info)))  # type: ignore[misc]
    return found


def _array(data: bytes) -> Array:
    """The array in the bytes of an .npy file; what the header declares is not believed before it is there."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"an .npy file of version {version}")
    sizes, fortran, dtype = read(stream)
    if dtype.hasobject or math.prod(sizes) * dtype.itemsize != len(data) - stream.tell():
        raise ValueError(f"{len(data):,} bytes for {dtype} {list(sizes)}")
    flat = np.frombuffer(data, dtype, offset=stream.tell())
    return flat.reshape(sizes[::-1]).T if fortran else flat.reshape(sizes)


# What both versions of TensorFlow's have


def _slice_bytes(spans: Sequence[Span | None]) -> bytes:
    """A TensorSliceProto."""
    return b"".join(
        field_of(1, b"" if one is None else number_of(1, one[0]) + number_of(2, one[1], always=True)) for one in spans
    )


def _spans(message: Message) -> tuple[Span | None, ...]:
    return tuple(
        (extent.signed(1), extent.signed(2)) if 2 in extent.numbers else None for extent in message.messages(1)
    )


def _slice_key(name: str, spans: Sequence[Span | None]) -> bytes:
    """The key of a part: it sorts by name, then by where the part lies."""
    escaped = name.encode().replace(b"\xff", b"\xff\0").replace(b"\0", b"\0\xff")
    ends = b"".join(_in_order(number) for one in spans for number in (one or (0, -1)))
    return b"\0" + escaped + b"\0\1" + _counted(len(spans)) + ends


def _counted(number: int) -> bytes:
    """A number of cells whose bytes sort as the numbers do."""
    data = number.to_bytes(-(-number.bit_length() // 8), "big")
    return bytes([len(data)]) + data


def _in_order(number: int) -> bytes:
    """A number with a sign whose bytes sort as the numbers do: how many there are is told by the first bits."""
    length = (number if number >= 0 else ~number).bit_length() // 7 + 1
    head = ((1 << length) - 1) << (7 * length)
    return ((number & ((1 << 8 * length) - 1)) ^ head).to_bytes(length, "big")


def _sizes(message: Message) -> tuple[int, ...]:
    found = shape(message)
    if found is None or any(size is None for size in found) or len(found) > 32:
        raise broken(message.source, "a tensor of open shape")
    return tuple(size for size in found if size is not None)


def _type(number: int, source: str) -> DType:
    """The type of a tensor that files can hold."""
    found = type_of(number, source)
    if not found.itemsize and found != dtypes.STRING:
        raise broken(source, f"a tensor of {found}")
    return found


def _shape_bytes(sizes: Sequence[int]) -> bytes:
    return b"".join(field_of(2, number_of(1, size)) for size in sizes)


def _part_of(whole: tuple[int, ...], spans: tuple[Span | None, ...], source: str) -> Part:
    """A part that a file states; a tensor without axes has one that states nothing."""
    try:
        return Part.of(Part(whole, spans).text) if spans or whole else Part((), ())
    except ValueError:
        raise broken(source, f"a part of a tensor of shape {list(whole)} that lies outside of it") from None


def _by_name(tensors: Sequence[tuple[Key, Array]]) -> dict[str, list[tuple[Part, Array]]]:
    """The parts of every tensor; a whole one is a part, too."""
    found: dict[str, list[tuple[Part, Array]]] = {}
    for key, array in tensors:
        part = Part.of(key.part) if key.part else Part(array.shape, (None,) * array.ndim)
        found.setdefault(key.name, []).append((part, array))
    return found


# Version 1: one table


def v1_bytes(tensors: Sequence[tuple[Key, Array]]) -> bytes:
    """A checkpoint of the first version, as TensorFlow's Save and SaveSlices write it."""
    heads, entries = b"", {}
    for name, parts in sorted(_by_name(tensors).items(), key=lambda one: one[0].encode()):
        whole, named = parts[0][0].whole, field_of(1, name.encode())
        heads += field_of(1, named + field_of(2, _shape_bytes(whole)) + number_of(3, typed(parts[0][1]).enum)
                          + b"".join(field_of(4, _slice_bytes(part.spans)) for part, _ in parts))  # fmt: skip
        for part, array in parts:
            data = named + field_of(2, _slice_bytes(part.spans)) + field_of(3, listed_bytes(array, typed(array)))
            entries[_slice_key(name, part.spans)] = field_of(2, data)
    head = field_of(1, heads + field_of(2, number_of(1, 1)))
    return table_bytes([(b"", head), *sorted(entries.items())])


def read_v1(data: bytes, source: str) -> Saved:
    """What a checkpoint of the first version holds."""
    entries = table_entries(data, source)
    key, head = next(entries, (b"-", b""))
    if key:
        raise broken(source, "a table that does not begin with a list of tensors")
    known = {one.text(1): (_type(one.number(3), source), _sizes(one.message(2)))
             for one in parse(head, source).message(1).messages(1)}  # fmt: skip
    found: Saved = {}
    for _, value in entries:
        entry = parse(value, source).message(2)
        name, spans = entry.text(1), _spans(entry.message(2))
        if name not in known:
            raise broken(source, f"{name}, which the list of tensors does not name")
        dtype, whole = known[name]
        part = _part_of(whole, spans, source)
        held = Held(math.prod(part.sizes) * max(dtype.itemsize, 1), partial(_listed, entry, dtype, part.sizes))
        found[Key(name, part.text if any(spans) else "")] = held
    return found


def _listed(entry: Message, dtype: DType, sizes: tuple[int, ...]) -> Array:
    """The elements of an entry, one by one."""
    values = listed(entry.message(3), dtype)
    if len(values) != math.prod(sizes):
        raise broken(entry.source, f"{len(values)} elements for a tensor of shape {list(sizes)}")
    return values.reshape(sizes)


# Version 2: a table, and the bytes beside it

_HEAD = number_of(1, 1) + field_of(3, number_of(1, 1))
"""One file of bytes, the lowest byte first, of the only version that there is."""


def index_name(prefix: str) -> str:
    """The name of the table."""
    return f"{prefix}.index"


def data_name(prefix: str, number: int = 0, count: int = 1) -> str:
    """The name of a file of bytes."""
    return f"{prefix}.data-{number:05d}-of-{count:05d}"


def write_v2(tensors: Sequence[tuple[Key, Array]], data: IO[bytes]) -> bytes:
    """Write the bytes of a checkpoint of the second version; returns its table."""
    entries, at = {b"": _HEAD}, 0
    for key, array in tensors:
        content, checksum = _content(array)
        data.write(content)
        name, spans = key.name.encode(), Part.of(key.part).spans if key.part else ()
        place = number_of(4, at) + number_of(5, len(content)) + fixed32_of(6, checksum)
        entry = number_of(1, typed(array).enum) + field_of(2, _shape_bytes(array.shape)) + place
        entries[_slice_key(key.name, spans) if spans else name] = entry
        if spans:
            head = number_of(1, typed(array).enum) + field_of(2, _shape_bytes(Part.of(key.part).whole))
            entries[name] = entries.get(name, head) + field_of(7, _slice_bytes(spans))
        at += len(content)
    return table_bytes(sorted(entries.items()))


def _content(array: Array) -> tuple[bytes, int]:
    """The bytes of a tensor, and their checksum as it is stored."""
    if array.dtype != object:
        data = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()
        return data, masked(crc32c(data))
    texts = array.ravel().tolist()
    seal = sealed(_lengths(texts))
    letters = b"".join(texts)
    data = b"".join(varint(len(one)) for one in texts) + seal + letters
    return data, masked(crc32c(letters, crc32c(seal, crc32c(_lengths(texts)))))


def _lengths(texts: Sequence[bytes]) -> bytes:
    """What the checksum of lengths is taken of."""
    return b"".join(struct.pack("<I" if len(one) < 2**32 else "<Q", len(one)) for one in texts)


def read_v2(prefix: str, index: bytes, opener: Opener) -> Saved:
    """What a checkpoint of the second version holds; its bytes are read when they are asked for."""
    source, entries = index_name(prefix), {}
    for key, value in table_entries(index, index_name(prefix)):
        entries[key] = parse(value, source)
    head = entries.pop(b"", None)
    if head is None or not head.number(1) or head.number(2):
        raise broken(source, "a table that is no list of tensors, or one of a machine with the highest byte first")
    found: Saved = {}
    for key, entry in entries.items():
        if key.startswith(b"\0"):
            continue
        name = _named(key, source)
        parts = [_part_of(_sizes(entry.message(2)), _spans(one), source) for one in entry.messages(7)]
        for part in parts:
            own = entries.get(_slice_key(name, part.spans))
            if own is None or _sizes(own.message(2)) != part.sizes:
                raise broken(source, f"no part {part.text} of {name}")
            found[Key(name, part.text)] = _held(own, prefix, head.number(1), opener)
        if not parts:
            found[Key(name)] = _held(entry, prefix, head.number(1), opener)
    return found


def _named(key: bytes, source: str) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise broken(source, f"a name that is no text, {key[:20]!r}") from None


def _held(entry: Message, prefix: str, count: int, opener: Opener) -> Held:
    dtype, sizes = _type(entry.number(1), entry.source), _sizes(entry.message(2))
    size, number, least = entry.number(5), entry.number(3), math.prod(sizes) * max(dtype.itemsize, 1)
    if number >= count or size < least or (size > least and dtype != dtypes.STRING):
        raise broken(entry.source, f"{size:,} bytes in file {number} of {count} for {dtype} {list(sizes)}")
    return Held(size, partial(_bytes_of, entry, dtype, sizes, partial(opener, data_name(prefix, number, count))))


def _bytes_of(entry: Message, dtype: DType, sizes: tuple[int, ...], opened: Callable[[], IO[bytes]]) -> Array:
    """A tensor from a file of bytes."""
    with opened() as file:
        file.seek(entry.number(4))
        data = file.read(entry.number(5))
    if len(data) != entry.number(5):
        raise broken(entry.source, "a tensor beyond the end of its file")
    (stored,) = struct.unpack("<I", entry.chunk(6)) if len(entry.chunk(6)) == 4 else (-1,)
    if dtype == dtypes.STRING:
        texts, checksum = _texts(data, math.prod(sizes), entry.source)
    else:
        texts, checksum = None, masked(crc32c(data))
    if checksum != stored:
        raise broken(entry.source, "a damaged tensor: its checksum is another")
    if texts is not None:
        return texts.reshape(sizes)
    if dtype == dtypes.BOOL and data and max(data) > 1:
        raise broken(entry.source, f"a byte {max(data)} for True or False")
    wanted = numpy_type(dtype)
    return np.frombuffer(data, wanted.newbyteorder("<")).astype(wanted).reshape(sizes)


def _texts(data: bytes, count: int, source: str) -> tuple[Array, int]:
    """Texts: their lengths, a checksum of these, then their letters; with the checksum of it all."""
    lengths, at = list[int](), 0
    for _ in range(count):
        length, at = read_varint(data, at, source)
        lengths.append(length)
    seal, letters = data[at : at + 4], data[at + 4 :]
    if sum(lengths) != len(letters):
        raise broken(source, f"{len(letters)} letters for texts of {sum(lengths)}")
    found, at = np.empty(count, dtype=object), 0
    for number, length in enumerate(lengths):
        found[number] = letters[at : at + length]
        at += length
    told = _lengths(found.tolist())
    if sealed(told) != seal:
        raise broken(source, "damaged lengths of texts: their checksum is another")
    return found, masked(crc32c(letters, crc32c(seal, crc32c(told))))
