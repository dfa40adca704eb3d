# SPDX-License-Identifier: Apache-2.0
"""The explainer of an op as one HTML file: all that can be chosen was computed before, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from importlib.resources import files
from typing import Any

from voxgrad.catalog.model import Op
from voxgrad.formats.explainer.packing import all_lessons

_PAGE = """\
<!doctype html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{script_hash}'; \
style-src '{style_hash}'; base-uri 'none'; form-action 'none'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header class="page-head"><h1 id="title">{title}</h1><button type="button" id="language" lang="ko"></button>\
<button type="button" id="theme"></button><p id="note">{summary}</p></header>
<main id="explain"></main>
<script type="application/json" id="words">{words}</script>
<script type="application/json" id="lessons">{lessons}</script>
<script type="module">{script}</script>
</body>
</html>
"""
"""Scripts and styles other than these are refused by the browser, and so is every request."""


def explainer_html(op: Op) -> str:
    """The explainer of an op as a file that stands alone."""
    script, style = (_file("view.js") + _file("page.js"), _file("view.css") + _file("page.css"))
    return _PAGE.format(
        title=html.escape(f"{op.name} on a small grid"), summary=html.escape(op.summary), style=style, script=script,
        script_hash=_hash(script), style_hash=_hash(style), words=_data(words()), lessons=_data(all_lessons(op)),
    )  # fmt: skip


@cache
def words() -> dict[str, Any]:
    """All texts of the explainer, by language."""
    found: dict[str, Any] = json.loads(_file("words.json"))
    return found


def _file(name: str) -> str:
    return files("voxgrad.formats.explainer").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(data: Any) -> str:
    """Data inside of a script element, where no text can end it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
