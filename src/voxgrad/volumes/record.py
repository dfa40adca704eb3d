# SPDX-License-Identifier: Apache-2.0
"""What a later run may believe of an earlier one: which chunks are written, and that their data is still what it was.

A chunk is recorded after its data is on the disk, with a checksum of it; a run that goes on reads the data again and
does anew what does not fit, is not there, or was never recorded. Whatever is damaged is found, never trusted.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.tensor_files import bad_file, replace_file
from voxgrad.volumes.store import is_full, no_room
from voxgrad.volumes.watch import me

Array = np.ndarray[Any, Any]


def digest(parts: Iterable[Any]) -> str:
    """A checksum of arrays, or of bytes."""
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        made.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return made.hexdigest()


def checksum(parts: Iterable[Array]) -> str:
    """CRC-32 of the data of a chunk: it finds damage, and costs a fraction of what reading the data costs."""
    made = 0
    for part in parts:
        made = zlib.crc32(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data, made)
    return f"{made:08x}"


class Digests:
    """The checksums of written chunks, in one file per process that writes them."""

    def __init__(self, folder: Path):
        self.folder = folder

    def note(self, number: int, parts: Sequence[Array], lasting: bool = True) -> None:
        """Record the data of a chunk, which is on the disk; what need not last may still be on its way there."""
        name = f"written-{me().replace(':', '-')}"
        with (self.folder / name).open("ab", buffering=0) as log:
            log.write(f"\n{number} {checksum(parts)};".encode())
            if lasting:
                os.fsync(log.fileno())

    def read(self) -> dict[int, set[str]]:
        """What was recorded of every chunk."""
        found: dict[int, set[str]] = {}
        for log in self.folder.glob("written-*"):
            for line in log.read_text(errors="replace").splitlines():
                number, _, told = line.removesuffix(";").partition(" ")
                # A line that was cut off by a crash was not recorded.
                if line.endswith(";") and number.isdecimal():
                    found.setdefault(int(number), set()).add(told)
        return found


class Done:
    """The numbers of the chunks that a run has recorded."""

    def __init__(self, folder: Path):
        self._log = folder / "done"
        self.numbers = set(self._read())

    def _read(self) -> Iterator[int]:
        if self._log.exists():
            for line in self._log.read_text(errors="replace").splitlines():
                if line.endswith(";") and line[:-1].isdecimal():
                    yield int(line[:-1])

    def record(self, numbers: Sequence[int]) -> None:
        """Remember chunks. Should the machine stop now, they are done again: their data is synced, this need not be."""
        if numbers:
            with self._log.open("a") as log:
                log.write("".join(f"\n{number};" for number in numbers))
            self.numbers.update(numbers)

    def keep(self, numbers: set[int]) -> None:
        """Forget all others."""
        if numbers != self.numbers:
            self.numbers = set(numbers)
            replace_file(self._log, "".join(f"\n{number};" for number in sorted(numbers)).encode())


@contextmanager
def only_run(folder: Path, outputs: Iterable[str]) -> Iterator[None]:
    """One run at a time for a folder and for every output. The system takes the locks from a process that dies."""
    places = [folder.with_name(f".{folder.name}.lock")]
    places += [Path(one).with_name(f".{Path(one).name}.voxgrad-lock") for one in outputs if "://" not in one]
    with ExitStack() as held:
        for place in sorted(set(places)):
            held.enter_context(_held(place))
        yield


@contextmanager
def _held(place: Path) -> Iterator[None]:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        stream = _locked(place)
    except OSError as error:
        if is_full(error):
            raise
        raise bad_file(place.parent, "be a folder that can be written to", error.strerror or error) from error
    try:
        stream.truncate(0)
        stream.write(me().encode())
        yield
    finally:
        # Windows does not take the name from a file that is open.
        with suppress(OSError):
            place.unlink()
        stream.close()


def _locked(place: Path) -> Any:
    while True:
        stream = place.open("a+b", buffering=0)
        try:
            _lock(stream.fileno())
        except OSError:
            stream.seek(0)
            holder = stream.read(200).decode("utf-8", "replace") or "another process"
            stream.close()
            remedy = f"Wait for it, or stop it; `voxgrad watch` shows how far it is. Its lock is {place}."
            fault = Fault("VG074", "volumes", "output", "be written by one run at a time", holder, remedy)
            raise InvalidArgumentError(fault) from None
        # Whoever held it before may have removed the name in between.
        if place.exists() and os.path.samestat(os.fstat(stream.fileno()), place.stat()):
            return stream
        stream.close()


def _lock(descriptor: int) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """A full disk is an error with a name; whatever else the system says goes on its way."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise no_room(folder) from error
        raise


def damaged(folder: Path, got: str) -> InvalidArgumentError:
    """The error for a record that cannot be believed."""
    remedy = f"Remove {folder} and the output, and start again."
    return InvalidArgumentError(Fault("VG075", "volumes", "record", "be what the run wrote", got, remedy))


# What tells that a file is still the same

_WHOLE = 2**23
_BLOCK = 2**16
_BLOCKS = 64
_SAMPLED_FILES = 64


def sampled(files: Sequence[Path]) -> tuple[int, str]:
    """The bytes of files, and a checksum of their names, sizes, times and, at places spread over them, contents."""
    made, total = hashlib.blake2b(digest_size=16), 0
    for file in files:
        seen = file.stat()
        total += seen.st_size
        made.update(f"{file.name} {seen.st_size} {seen.st_mtime_ns}\n".encode())
    step = max(1, -(-len(files) // _SAMPLED_FILES))
    for file in files[::step]:
        for block in _blocks(file):
            made.update(block)
    return total, made.hexdigest()


def _blocks(file: Path) -> Iterator[bytes]:
    """All of a file of some megabytes; of a larger one, blocks from its first to its last."""
    with file.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= _WHOLE:
            yield stream.read()
            return
        for at in range(_BLOCKS):
            stream.seek((size - _BLOCK) * at // (_BLOCKS - 1))
            yield stream.read(_BLOCK)


def seals(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Checksums of files of a folder."""
    return {name: digest([(folder / name).read_bytes()]) for name in names}


def check_seals(folder: Path, told: Mapping[str, str]) -> None:
    """Refuse files that are gone or were changed."""
    for name, wanted in told.items():
        try:
            found = digest([(folder / name).read_bytes()])
        except OSError:
            found = ""
        if found != wanted:
            raise damaged(folder, f"{name}, changed or gone")
