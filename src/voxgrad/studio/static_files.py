# SPDX-License-Identifier: Apache-2.0
"""The built front end. A request names a file of a fixed list; it is never made into a path."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.responses import Response

FOLDER = Path(__file__).with_name("static")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}
MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Voxgrad studio</title>
<h1>The studio's page was not built</h1><p>Build it with <code>npm ci --ignore-scripts &amp;&amp; npm run build</code>
in <code>web/</code>. The API under <code>/api</code> works.</p>"""


class StaticFiles:
    """The files that lie in the folder when the studio starts."""

    def __init__(self, folder: Path = FOLDER):
        self._files = {
            f"/{path.relative_to(folder).as_posix()}": path
            for path in (folder.rglob("*") if folder.is_dir() else ())
            if path.is_file() and not path.is_symlink() and path.suffix in TYPES
        }

    def get(self, name: str, known: str | None) -> Response | None:
        """A file as an answer; `known` is the ETag that the client has."""
        path = self._files.get("/index.html" if name == "/" else name)
        if path is None:
            return Response(MISSING, media_type="text/html") if name == "/" else None
        data = path.read_bytes()
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if known == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=TYPES[path.suffix])
