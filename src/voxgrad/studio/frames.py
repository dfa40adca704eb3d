# SPDX-License-Identifier: Apache-2.0
"""Messages between the server and its workers: a length in four bytes, then JSON. Never pickle."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any, BinaryIO

LIMIT = 256 * 2**20

Frame = dict[str, Any]


def packed(message: Frame) -> bytes:
    """A message as bytes."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return struct.pack("<I", len(body)) + body


def read(stream: BinaryIO) -> Frame | None:
    """The next message, None at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (length,) = struct.unpack("<I", head)
    body = stream.read(length) if length <= LIMIT else b""
    return _parsed(body) if len(body) == length else None


async def read_async(stream: asyncio.StreamReader) -> Frame | None:
    """The next message, None at the end of the stream."""
    try:
        (length,) = struct.unpack("<I", await stream.readexactly(4))
        return _parsed(await stream.readexactly(length)) if length <= LIMIT else None
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _parsed(body: bytes) -> Frame:
    found: Frame = json.loads(body)
    return found
