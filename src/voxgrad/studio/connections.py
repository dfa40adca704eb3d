# SPDX-License-Identifier: Apache-2.0
"""Connections cost something before anybody is known behind them: how many there may be, and how long they may wait.

Whoever opens connections and says nothing loses them: after some seconds, or at once where another one needs the room.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
"""Connections at one time."""
REQUEST_SECONDS = 10.0
"""How long a request may take to say what it wants, its headers whole."""


class Connection(H11Protocol):
    """A connection to the studio that is closed when it keeps the studio waiting."""

    _open: OrderedDict[Connection, None] = OrderedDict()
    """All of this process, the oldest first."""
    _timer: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it in, if there is room or can be made."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._open[self] = None
        self._look()
        if len(self._open) > MOST:
            oldest = next((one for one in self._open if one.is_waiting), self)
            oldest._leave()
            oldest.transport.abort()

    @property
    def is_waiting(self) -> bool:
        """True while it has not said what it wants."""
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        """Close it where it has waited too long; else look again when that can be."""
        left = self._since + REQUEST_SECONDS - self.loop.time()
        if self.is_waiting and left <= 0:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(left if left > 0 else REQUEST_SECONDS, self._look)

    def on_response_complete(self) -> None:
        """The next request has its own time."""
        self._since = self.loop.time()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """A socket is no request any more; the guard counts sockets."""
        self._leave()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._leave()
        super().connection_lost(exc)

    def _leave(self) -> None:
        self._open.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
