# SPDX-License-Identifier: Apache-2.0
"""Parsers that go wrong in every way, for a child process."""

import ctypes
import os
import sys
import time
from typing import Any

import numpy as np

from voxgrad.errors import Fault, UnimplementedError


def parts() -> tuple[Any, ...]:
    print("a library that talks")
    return {"sizes": [1, 2]}, np.arange(6, dtype=">i2").reshape(2, 3), b"\0\n", np.zeros((2, 0), "float16")


def echo(value: Any) -> Any:
    return value


def crash() -> None:
    ctypes.string_at(0)


def leave() -> None:
    print("went away", file=sys.stderr)
    sys.stderr.flush()
    os._exit(7)


def hang() -> None:
    time.sleep(600)


def spin() -> None:
    while True:
        pass


def swell() -> None:
    bytearray(2**40)


def swell_slowly() -> None:
    held = [bytearray(2**24)]
    while True:
        held.append(held[-1] * 2)


def refuse() -> None:
    raise UnimplementedError(Fault("VG032", "parser", "input", "be here", "elsewhere"))


def stumble() -> None:
    raise KeyError("offset")


def strange() -> object:
    return object()


def recurse() -> None:
    recurse()
