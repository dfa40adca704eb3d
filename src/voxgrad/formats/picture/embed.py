# SPDX-License-Identifier: Apache-2.0
"""The page inside a picture: compressed, and treated as any other foreign file when it is taken out."""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Iterator

from voxgrad.errors import VoxgradError
from voxgrad.formats.json_text import MAX_BYTES, broken
from voxgrad.formats.page_file import dumps
from voxgrad.graph.page import Page

KEY = "voxgrad-page"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_METADATA = re.compile(rb'<metadata id="voxgrad-page">([A-Za-z0-9+/=\s]*)</metadata>')


def packed(page: Page) -> bytes:
    """The text of the page, compressed."""
    return zlib.compress(dumps(page).encode(), 9)


def svg_metadata(page: Page) -> str:
    """The element of an SVG that carries the page."""
    return f'<metadata id="{KEY}">{base64.b64encode(packed(page)).decode()}</metadata>'


def png_text(page: Page) -> bytes:
    """The contents of a PNG's iTXt chunk that carries the page."""
    return KEY.encode() + b"\0\1\0\0\0" + packed(page)


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """One part of a PNG file."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


_PNG_HEAD = len(PNG_SIGNATURE) + 25


def with_page(picture: bytes, page: Page, source: str) -> bytes:
    """A picture of a page that was drawn elsewhere, as the studio draws it, with the page inside."""
    if picture.startswith(PNG_SIGNATURE):
        return picture[:_PNG_HEAD] + png_chunk(b"iTXt", png_text(page)) + picture[_PNG_HEAD:]
    head, closed, rest = picture.partition(b">")
    if not closed or not head.startswith(b"<svg "):
        raise VoxgradError(broken(source, "be an SVG or PNG picture", repr(picture[:20])))
    return head + closed + svg_metadata(page).encode() + rest


def embedded_page(data: bytes, source: str) -> bytes:
    """The text of the page inside an SVG or PNG picture."""
    compressed = _from_png(data, source) if data.startswith(PNG_SIGNATURE) else _from_svg(data, source)
    if compressed is None:
        remedy = "Pictures that `voxgrad draw` makes have one; `voxgrad import` reads pages of enuSpace."
        raise VoxgradError(broken(source, "hold a page", "a picture without one", remedy=remedy))
    return _unpacked(compressed, source)


def _unpacked(compressed: bytes, source: str) -> bytes:
    """Decompress no more than a page may be large."""
    decoder = zlib.decompressobj()
    try:
        text = decoder.decompress(compressed, MAX_BYTES)
    except zlib.error as error:
        raise VoxgradError(broken(source, "hold a page", f"damaged data ({error})")) from None
    if decoder.unconsumed_tail:
        raise VoxgradError(broken(source, f"hold a page of at most {MAX_BYTES:,} bytes", "more"))
    return text


def _from_svg(data: bytes, source: str) -> bytes | None:
    found = _METADATA.search(data)
    if found is None:
        return None
    try:
        return base64.b64decode(found[1])
    except binascii.Error as error:
        raise VoxgradError(broken(source, "hold a page", f"damaged data ({error})")) from None


def _from_png(data: bytes, source: str) -> bytes | None:
    for kind, body in _chunks(data, source):
        if kind == b"iTXt" and body.startswith(KEY.encode() + b"\0"):
            head, _, rest = body.partition(b"\0")
            # Compression flag, method, then two empty texts (language, translated keyword).
            if rest[:2] != b"\1\0" or rest.count(b"\0", 2, 4) != 2:
                raise VoxgradError(broken(source, "hold a page", f"an odd chunk {head.decode('ascii', 'replace')}"))
            return rest[4:]
    return None


def _chunks(data: bytes, source: str) -> Iterator[tuple[bytes, bytes]]:
    at = len(PNG_SIGNATURE)
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if len(body) != length or data[at + 8 + length : at + 12 + length] != struct.pack(
            ">I", zlib.crc32(kind + body)
        ):
            raise VoxgradError(broken(source, "be a whole PNG file", f"a damaged chunk at byte {at}"))
        yield kind, body
        at += 12 + length
