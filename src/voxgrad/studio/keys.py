# SPDX-License-Identifier: Apache-2.0
"""Who may use the studio: browsers that were let in once, and programs that can read a private file.

An address opens the studio once. What it leaves in the browser is a secret of its own, so that nothing that is seen in
an address, a history or the list of processes opens the studio again, and no cookie tells an address.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import html
import os
import secrets
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

MOST_SESSIONS = 64
"""Browsers that are remembered; the one that came first goes first."""
MOST_TICKETS = 64
OPENING_SECONDS = 300.0
"""How long a browser may take to follow the file that it was started with."""
TOKEN_FILE = "token"
REDIRECT = "open-"


def new_secret() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


class Keys:
    """The secrets of one studio. Those of browsers are kept as digests, so that looking one up tells nothing."""

    def __init__(self) -> None:
        self.program = new_secret()
        self.on_used: Callable[[], None] = lambda: None
        """Called when a browser comes with an address that has been used."""
        self._tickets: OrderedDict[bytes, float] = OrderedDict()
        self._used: OrderedDict[bytes, None] = OrderedDict()
        self._sessions: OrderedDict[bytes, None] = OrderedDict()

    def ticket(self, seconds: float = float("inf")) -> str:
        """A secret for an address, good for one browser and so long."""
        made = new_secret()
        self._tickets[_digest(made)] = time.monotonic() + seconds
        _trim(self._tickets, MOST_TICKETS)
        return made

    def unused(self, ticket: str) -> bool:
        """True while nobody has come with this ticket."""
        return _digest(ticket) in self._tickets

    def redeem(self, ticket: str) -> str | None:
        """The secret of a new session for a ticket that is good; the ticket is not any more."""
        digest = _digest(ticket)
        if digest in self._used:
            self.on_used()
        if self._tickets.pop(digest, 0.0) < time.monotonic():
            return None
        self._used[digest] = None
        _trim(self._used, MOST_TICKETS)
        made = new_secret()
        self._sessions[_digest(made)] = None
        _trim(self._sessions, MOST_SESSIONS)
        return made

    def is_session(self, secret: str) -> bool:
        """True for the secret of a browser that was let in."""
        return _digest(secret) in self._sessions

    def is_program(self, secret: str) -> bool:
        """True for the secret that programs send."""
        return hmac.compare_digest(secret.encode(), self.program.encode())


def _trim(kept: OrderedDict[bytes, float] | OrderedDict[bytes, None], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def write_private(path: Path, text: str) -> None:
    """A file that nobody else can read, in the place of one that was there."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(temporary, path)


@contextlib.contextmanager
def redirect(folder: Path, address: str) -> Iterator[str]:
    """A private file that sends a browser to an address, whose secret then stands in no list of processes."""
    path = folder / f"{REDIRECT}{secrets.token_hex(8)}.html"
    write_private(path, moved_page(address))
    try:
        yield path.as_uri()
    finally:
        path.unlink(missing_ok=True)


def moved_page(address: str) -> str:
    """A page that leads on by itself. It has no script, and leaves no step in the history."""
    place = html.escape(address, quote=True)
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Voxgrad studio</title>
<meta http-equiv="refresh" content="0;url={place}"><p><a href="{place}">Open the studio</a></p>
"""
