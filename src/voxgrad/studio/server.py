# SPDX-License-Identifier: Apache-2.0
"""Starts the studio: one socket on the loopback device, one token, one guard around everything."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from voxgrad.errors import Fault, VoxgradError
from voxgrad.studio.app import ADDRESS, address, create_app
from voxgrad.studio.connections import Connection
from voxgrad.studio.guard import App, Guard
from voxgrad.studio.keys import OPENING_SECONDS, REDIRECT, TOKEN_FILE, Keys, redirect, write_private
from voxgrad.studio.studio import Studio

DEFAULT_PORT = 8741
BROWSER_SECONDS = 0.3
FILE_SECONDS = 60.0
"""How long after the start a browser is started, and how long it has to read the file that it gets."""


BACKLOG = 128
"""Connections that wait to be taken in. As many are taken in at once, before the first of them can be closed again."""


def guarded(studio: Studio, keys: Keys, port: int) -> App:
    """The whole application."""
    return Guard(create_app(studio, keys, port), keys, port)


def bind(port: int | None) -> socket.socket:
    """A listening socket: on the wanted port, or on the usual one, or on a free one."""
    for candidate in (port,) if port is not None else (DEFAULT_PORT, 0):
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((ADDRESS, candidate))
            bound.listen(BACKLOG)
        except OSError as error:
            bound.close()
            reason = error.strerror or str(error)
            continue
        return bound
    raise VoxgradError(
        Fault("VG051", "studio", f"port {port}", "be free", reason, "Leave --port out to get a free one.")
    )


def serve(studio: Studio, port: int | None, browse: bool, say: Callable[[str], None], view: str | None) -> None:
    """Run a studio until it is stopped; with the values of a page in front, where one is named to `view`."""
    bound = bind(port)
    keys = Keys()
    number = bound.getsockname()[1]
    config = uvicorn.Config(
        guarded(studio, keys, number), log_level="warning", access_log=False, server_header=False, date_header=False,
        http=Connection, ws="websockets-sansio", ws_max_size=2**16, h11_max_incomplete_event_size=2**16,
        timeout_graceful_shutdown=2, proxy_headers=False, lifespan="on", backlog=BACKLOG,
    )  # fmt: skip
    entrance = Entrance(keys, number, say, "" if view is None else f"&view={view}")
    token = studio.project.state / TOKEN_FILE
    write_private(token, keys.program)

    def ready() -> None:
        entrance.show()
        if browse:
            threading.Thread(
                target=open_browser, args=(studio.project.state, entrance.address(OPENING_SECONDS)), daemon=True
            ).start()

    try:
        asyncio.run(_Server(config, ready).serve([bound]))
    finally:
        for private in (token, *token.parent.glob(f"{REDIRECT}*.html")):
            private.unlink(missing_ok=True)


class _Server(uvicorn.Server):
    """Tells when it has begun to listen to signals: whoever reads an address can stop what is behind it."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


class Entrance:
    """The addresses of a studio. Who opens one that was used finds a new one on the terminal."""

    def __init__(self, keys: Keys, port: int, say: Callable[[str], None], more: str = ""):
        self._keys = keys
        self._port = port
        self._say = say
        self._more = more
        self._shown = ""
        keys.on_used = self.show

    def address(self, seconds: float = float("inf")) -> str:
        """An address that lets one browser in."""
        return address(self._keys.ticket(seconds), self._port) + self._more

    def show(self) -> None:
        """Print an address that is good, unless the last one that was printed still is."""
        if not self._shown or not self._keys.unused(self._shown):
            self._shown = self._keys.ticket()
            self._say(address(self._shown, self._port) + self._more)


def open_browser(folder: Path, address: str) -> None:
    """Start the browser of the person with a private file, which leads it to the address."""
    time.sleep(BROWSER_SECONDS)
    with redirect(folder, address) as place:
        webbrowser.open(place)
        time.sleep(FILE_SECONDS)
