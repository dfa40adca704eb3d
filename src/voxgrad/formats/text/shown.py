# SPDX-License-Identifier: Apache-2.0
"""Values as texts that could be typed: the form of a constant, with braces."""

from __future__ import annotations

from typing import Any

from voxgrad.graph.values import Array

_MOST_SHOWN = 64
_MOST_LETTERS = 24


def shown(value: Array) -> str:
    """A value as a text; of a large one its first elements."""
    if value.size > _MOST_SHOWN:
        return f"{{{', '.join(shown_element(one) for one in value.ravel()[:_MOST_SHOWN].tolist())}, ...}}"
    return _nested(value.tolist())


def _nested(value: Any) -> str:
    return f"{{{', '.join(map(_nested, value))}}}" if isinstance(value, list) else shown_element(value)


def shown_element(value: Any) -> str:
    """An element: numbers in six digits, bytes in quotes, of long ones the first."""
    if isinstance(value, bytes):
        letters = [chr(one) if 0x20 <= one < 0x7F and one not in b'"\\' else f"\\x{one:02x}" for one in value]
        return f'"{"".join(letters[:_MOST_LETTERS])}{"..." if len(letters) > _MOST_LETTERS else ""}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"{value.real:.6g}{value.imag:+.6g}j"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
