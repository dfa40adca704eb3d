# SPDX-License-Identifier: Apache-2.0
"""Foreign bytes are parsed in a child process: `isolated(function, path, about=path)`. It may crash, hang or be killed.

The child gets a limit of time, of memory and of what it may write; whatever becomes of it there, the caller has the
result or an error that names the file. What comes back is data (JSON, bytes and arrays of numbers), never pickle: a
file that takes over its parser must not take over the process that asked.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from voxgrad import errors
from voxgrad.arrays.limits import current_limit, limits
from voxgrad.catalog import dtypes
from voxgrad.errors import Fault, VoxgradError
from voxgrad.kernels.element_types import NUMBERS, dtype_of, numpy_type

SECONDS = 30.0
MEMORY = 2**31
ROOM = 2**29
"""Addresses that libraries take when they are loaded, beyond what a file may make them take."""
_QUIET = {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "VOXGRAD_NUM_THREADS": "1"}


def isolated(
    function: Callable[..., Any], *arguments: Any, about: str | Path, seconds: float = SECONDS, memory: int = MEMORY
) -> Any:
    """What `function(*arguments)` returns, computed in a child process with limits; errors name `about`, the file.

    The function is found by its name in its module, arguments are JSON. It returns JSON, bytes or an array of numbers,
    or a tuple of such parts. Blocks until then: a server calls it in a thread.
    """
    memory = min(memory, current_limit())
    task = {"module": function.__module__, "function": function.__qualname__, "arguments": arguments,
            "about": str(about), "seconds": seconds, "memory": memory}  # fmt: skip
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(task).encode())
        asked.seek(0)
        code = _ran(asked, told, said, seconds)
        if code != 0:
            raise _dead(code, str(about), seconds, said)
        told.seek(0)
        return _answer(told, str(about))


def _ran(asked: IO[bytes], told: IO[bytes], said: IO[bytes], seconds: float) -> int | None:
    """The exit code of the child, None where it had to be killed."""
    # As the caller finds modules, so does the child; but not in the folder where it happens to stand.
    path = os.pathsep.join(entry for entry in sys.path if entry)
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "voxgrad.isolation"], stdin=asked, stdout=told, stderr=said,
        env=os.environ | _QUIET | {"PYTHONPATH": path},
    )  # fmt: skip
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        child.kill()
        child.wait()


def _dead(code: int | None, about: str, seconds: float, said: IO[bytes]) -> VoxgradError:
    if code is None or code == -getattr(signal, "SIGXCPU", 0):
        return errors.InvalidArgumentError(Fault("VG021", "file", about, f"be read within {seconds:g} s", "no end"))
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - 2000))
    last = said.read().decode(errors="replace").strip().rpartition("\n")[2]
    with contextlib.suppress(ValueError):
        last = f"{signal.Signals(-code).name} {last}".strip()
    return VoxgradError(Fault("VG051", "file", about, "be read", f"a crash: {last or code}", "The file is damaged."))


def _answer(told: IO[bytes], about: str) -> Any:
    """The result in what the child has written, or the error there."""
    try:
        head = json.loads(told.readline())
        if "faults" in head:
            kind = getattr(errors, head["error"], VoxgradError)
            raise kind([Fault(**fault) for fault in head["faults"]])
        parts = tuple(_part(told, part) for part in head["parts"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, VoxgradError):
            raise
        raise VoxgradError(Fault("VG051", "file", about, "be read", "an answer of its parser that is none")) from None
    return parts if head["several"] else parts[0]


def _part(told: IO[bytes], part: Any) -> Any:
    if part["kind"] == "json":
        return part["data"]
    data = told.read(part["size"])
    if part["kind"] == "bytes":
        return data
    dtype = dtypes.named(part["dtype"])
    if dtype not in NUMBERS:
        raise ValueError(part["dtype"])
    return np.frombuffer(bytearray(data), numpy_type(dtype)).reshape(part["shape"])


def confine(memory: int | None, *, seconds: float | None = None) -> None:
    """Hold this process to so much more memory and time than it has had; where the system has such limits."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * os.sysconf("SC_PAGE_SIZE") + memory + ROOM
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if seconds is not None:
            most = math.ceil(seconds) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def main() -> None:
    """The child: take the task, answer it."""
    # What libraries print must not get into the answer.
    told = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    task = json.load(sys.stdin)
    confine(task["memory"], seconds=task["seconds"])
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (task["memory"] + ROOM, task["memory"] + ROOM))
    for part in _done(task):
        told.write(part)
    told.flush()


def _done(task: dict[str, Any]) -> list[Any]:
    """The answer: a line of JSON, and the bytes behind it."""
    fault = Fault("VG020", "file", task["about"], f"need at most {task['memory']:,} bytes", "more")
    try:
        with limits(bytes=task["memory"]):
            found: Any = importlib.import_module(task["module"])
            for name in task["function"].split("."):
                found = getattr(found, name)
            return _packed(found(*task["arguments"]))
    except VoxgradError as error:
        return [_line({"error": type(error).__name__, "faults": [fault.as_dict() for fault in error.faults]})]
    except MemoryError:
        return [_line({"error": "ResourceExhaustedError", "faults": [fault.as_dict()]})]
    except Exception as error:
        fault = Fault("VG051", "file", task["about"], "be read", f"{type(error).__name__}: {str(error)[:200]}")
        return [_line({"error": "VoxgradError", "faults": [fault.as_dict()]})]


def _line(head: dict[str, Any]) -> bytes:
    return json.dumps(head).encode() + b"\n"


def _packed(result: Any) -> list[Any]:
    parts: list[dict[str, Any]] = []
    buffers: list[Any] = []
    several = isinstance(result, tuple)
    for part in result if several else (result,):
        if isinstance(part, np.ndarray):
            own = dtype_of(part.dtype)
            if own is None:
                raise TypeError(f"an array of {part.dtype}")
            plain = np.ascontiguousarray(part, numpy_type(own))
            parts.append({"kind": "array", "dtype": own.name, "shape": part.shape, "size": plain.nbytes})
            buffers.append(plain.reshape(-1).view(np.uint8))
        elif isinstance(part, bytes):
            parts.append({"kind": "bytes", "size": len(part)})
            buffers.append(part)
        else:
            parts.append({"kind": "json", "data": part})
    return [_line({"parts": parts, "several": several}), *buffers]


if __name__ == "__main__":
    main()
