# SPDX-License-Identifier: Apache-2.0
"""Writes pages in enuSpace's SVG dialect, as its editor saves them: UTF-16 with a byte order mark, pins as elements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from voxgrad.kernels.saved_tensors import read_v1

Array = np.ndarray[Any, Any]


class OldPage:
    """A page under construction."""

    def __init__(self, version: str = "3.0.3.0"):
        self.version = version
        self.parts: list[str] = []
        self.data = b""
        self.count = 0

    def block(self, id_: str, symbol: str, task: str = "tensorflow", **pins: Any) -> str:
        """A block; a pin is a text, or an array with its type and shape."""
        rows = [self._pin(name, value) for name, value in pins.items()]
        self.count += 1
        place = (
            f"translate({150 * (self.count % 6)}.00,{120 * (self.count // 6)}.00) rotate(0.00) scale(1.0000, 1.0000)"
        )
        head = f'<use id={quoteattr(id_)} type="{task}" transform="{place}" xlink:href="#{symbol}" x="0.00" y="0.00">'
        self.parts.append("\n\t\t".join([head, *rows]) + "\n\t</use>")
        return id_

    def _pin(self, name: str, value: Any) -> str:
        kind = "var-type" if self.version.startswith("3") else "type"
        if not isinstance(value, np.ndarray):
            return (
                f'<pg-set-pin variable="#{name}" auto="true" shape="" {kind}="string" value={quoteattr(str(value))}/>'
            )
        shape = "".join(f"[{size}]" for size in value.shape)
        type_ = {"f8": "double", "f4": "float", "i4": "int", "b1": "bool"}[value.dtype.str[1:]]
        head = f'<pg-set-pin variable="#{name}{shape}" auto="true" shape="{shape}" {kind}="{type_}"'
        if value.size > 150:
            at = len(self.data)
            self.data += value.tobytes()
            return f'{head} save-type="binary" binary-pos="{at}"/>'
        texts = [f"{item:.6f}" if value.dtype.kind == "f" else str(item) for item in value.ravel().tolist()]
        text = ";".join(texts) if self.version.startswith("3") else "{" + ",".join(texts) + "}"
        return f'{head} value="{text}"/>'

    def link(self, source: str, target: str, hidden: bool = False) -> None:
        """A line from `block.pin` to `block.pin`."""
        (from_id, from_pin), (to_id, to_pin) = (end.rsplit(".", 1) for end in (source, target))
        more = ' hidden="true"' if hidden else ""
        self.parts.append(
            f'<polyline points="0,0 1,1"><pg-link id="L{len(self.parts)}" from-id="{from_id}" param-from="{from_pin}" '
            f'to-id="{to_id}" param-to="{to_pin}"{more}></pg-link></polyline>'
        )

    def links(self, *pairs: tuple[str, str]) -> None:
        """Several lines."""
        for source, target in pairs:
            self.link(source, target)

    def session(self, fetch: Sequence[str] = (), run: Sequence[str] = (), **pins: str) -> None:
        """The ClientSession block and its lines."""
        self.block("ID_SESSION", "ClientSession", device="/cpu:0", **pins)
        for source in fetch:
            self.link(source, "ID_SESSION.fetch_outputs")
        for source in run:
            self.link(source, "ID_SESSION.run_outputs")

    def text(self) -> str:
        """The whole document."""
        head = (
            '<?xml version="1.0" encoding="UTF-16"?>\n'
            f'<svg id="ID_1" enuspace-version="{self.version}" xmlns="http://www.w3.org/2000/svg" '
            'xmlns:xlink="http://www.w3.org/1999/xlink" width="1920" height="1080">\n\t'
        )
        return head + "\n\t".join(self.parts) + "\n</svg>"

    def write(self, path: Path) -> Path:
        """The files that the editor would have written."""
        path.write_bytes(self.text().encode("utf-16"))
        if self.data:
            path.with_suffix(".dat").write_bytes(self.data)
        return path


def saved_in(path: Path) -> dict[str, Any]:
    """The tensors in a file that Save wrote: TensorFlow's checkpoint, as the original wrote it."""
    return {key.name: held.load() for key, held in read_v1(path.read_bytes(), path.name).items()}
