# SPDX-License-Identifier: Apache-2.0
"""Starts the studio: one socket on the loopback device, one token, one guard around everything."""

from __future__ import annotations

import asyncio
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from voxgrad.errors import Fault, VoxgradError
from voxgrad.studio.app import create_app
from voxgrad.studio.guard import App, Guard, new_token
from voxgrad.studio.limits import RunLimits
from voxgrad.studio.studio import Studio

ADDRESS = "127.0.0.1"
"""The studio is for the person at this machine; there is no option to change this."""
DEFAULT_PORT = 8741


def guarded(studio: Studio, token: str, port: int) -> App:
    """The whole application."""
    return Guard(create_app(studio, port), token, port)


def bind(port: int | None) -> socket.socket:
    """A listening socket: on the wanted port, or on the usual one, or on a free one."""
    for candidate in (port,) if port is not None else (DEFAULT_PORT, 0):
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((ADDRESS, candidate))
            bound.listen(64)
        except OSError as error:
            bound.close()
            reason = error.strerror or str(error)
            continue
        return bound
    raise VoxgradError(
        Fault("VG051", "studio", f"port {port}", "be free", reason, "Leave --port out to get a free one.")
    )


def serve(folder: Path, port: int | None, limits: RunLimits | None, browse: bool, say: Callable[[str], None]) -> None:
    """Run the studio until it is stopped."""
    bound = bind(port)
    token = new_token()
    number = bound.getsockname()[1]
    studio = Studio(folder, limits)
    config = uvicorn.Config(
        guarded(studio, token, number), log_level="warning", access_log=False, server_header=False, date_header=False,
        ws="websockets-sansio", ws_max_size=2**16, h11_max_incomplete_event_size=2**16, timeout_graceful_shutdown=2,
        proxy_headers=False, lifespan="on",
    )  # fmt: skip
    address = f"http://{ADDRESS}:{number}/?t={token}"
    say(address)
    if browse:
        threading.Timer(0.3, webbrowser.open, (address,)).start()
    asyncio.run(uvicorn.Server(config).serve([bound]))
