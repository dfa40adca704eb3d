# SPDX-License-Identifier: Apache-2.0
"""Events to all clients that listen. A client that does not keep up is let go; it can come back."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel
from starlette.websockets import WebSocket, WebSocketDisconnect

QUEUE = 20_000


class Hub:
    """All open WebSockets. Publishing belongs to the event loop."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[str | None]] = set()

    def publish(self, event: BaseModel) -> None:
        """Send an event to everybody."""
        if not self._queues:
            return
        text = event.model_dump_json()
        for queue in list(self._queues):
            try:
                queue.put_nowait(text)
            except asyncio.QueueFull:
                self._queues.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)

    async def serve(self, socket: WebSocket, hello: BaseModel) -> None:
        """Send events to one client until it goes."""
        await socket.accept()
        queue: asyncio.Queue[str | None] = asyncio.Queue(QUEUE)
        queue.put_nowait(hello.model_dump_json())
        self._queues.add(queue)
        reader = asyncio.ensure_future(_until_gone(socket))
        writer = asyncio.ensure_future(_write(socket, queue))
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._queues.discard(queue)
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)

    def close(self) -> None:
        """Let all clients go."""
        for queue in list(self._queues):
            queue.put_nowait(None)


async def _until_gone(socket: WebSocket) -> None:
    """Clients say nothing here; what they send is read so that their leaving is seen."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return


async def _write(socket: WebSocket, queue: asyncio.Queue[str | None]) -> None:
    try:
        while (text := await queue.get()) is not None:
            await socket.send_text(text)
        await socket.close(1013)
    except (WebSocketDisconnect, RuntimeError):
        return
