# SPDX-License-Identifier: Apache-2.0
"""The guard around the whole studio, for HTTP and WebSockets alike. Nothing behind it is reached without its leave.

It is plain ASGI and stands outermost, so that no route, present or future, can be outside of it. Whole strings are
compared, never parts; what is not allowed is refused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from voxgrad.studio.keys import Keys, moved_page

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "img-src 'self' data: blob:; form-action 'none'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
READS = ("GET", "HEAD")
WRITES = ("POST", "PUT", "DELETE")
CONTENT_TYPES = ("application/json", "application/octet-stream")

BODY_LIMIT = 32 * 2**20
IMPORT_LIMIT = 2**30
"""Bytes of a request: of a document, and of a file that is brought in."""

MOST_SOCKETS = 32
"""Windows that listen at one time."""
BODY_SECONDS = 30.0
"""How long a body may pause on its way."""

HINT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Voxgrad studio</title>
<h1>This browser was not let in yet</h1>
<p>Open the newest address that <code>voxgrad studio</code> printed; it ends in <code>?t=...</code> and is good for one
browser. Where it was used already, the studio has printed a new one just now.</p>
<p>If you came here from another page: <a href="/">open the studio</a>.</p>"""


class Refusal(Exception):  # noqa: N818 - an answer, not a defect
    """A request that goes no further."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Guard:
    """Wraps an ASGI application that listens on one port of the loopback device."""

    def __init__(self, app: App, keys: Keys, port: int):
        self.app = app
        self.keys = keys
        self.sockets = 0
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self.origins = frozenset(f"http://{host}" for host in self.hosts)
        # Cookies ignore ports: the name keeps two studios on one machine apart.
        self.cookie = f"voxgrad_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = _headers(scope)
            self._check_place(headers)
            _check_method(scope, headers)
            if (ticket := _ticket(scope)) is not None:
                await self._enter(send, headers, *ticket)
                return
            self._check_token(headers)
            limit = IMPORT_LIMIT if scope["path"] == "/api/import" else BODY_LIMIT
            _check_length(headers, limit)
        except Refusal as refusal:
            await _refuse(scope, send, refusal)
            return
        body = _Body(receive, send, limit)
        await self.app(scope, body.receive, body.send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = _headers(scope)
            self._check_place(headers)
            if "origin" not in headers:
                raise Refusal(403, "A WebSocket must say where it comes from.")
            _check_site(headers)
            self._check_token(headers)
            if self.sockets >= MOST_SOCKETS:
                raise Refusal(503, f"At most {MOST_SOCKETS} windows listen at one time.")
        except Refusal:
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        self.sockets += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.sockets -= 1

    def _check_place(self, headers: dict[str, str]) -> None:
        """The request was meant for this server, and comes from its own page or from no page."""
        if headers.get("host") not in self.hosts:
            raise Refusal(421, "This server answers on 127.0.0.1 and localhost only.")
        if "origin" in headers and headers["origin"] not in self.origins:
            raise Refusal(403, "Requests from other origins are refused.")

    def _check_token(self, headers: dict[str, str]) -> None:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        known = self.keys.is_program(bearer.strip()) if scheme.lower() == "bearer" else self._is_known(headers)
        if not known:
            raise Refusal(401, "The token is missing or wrong. Open the address that the studio printed.")

    def _is_known(self, headers: dict[str, str]) -> bool:
        """True for a browser that was let in."""
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return morsel is not None and self.keys.is_session(morsel.value)

    async def _enter(self, send: Send, headers: dict[str, str], ticket: str, rest: str) -> None:
        """Let a browser in that comes with a good address, once. Who is in already needs no address."""
        given = [HTML]
        if not self._is_known(headers):
            session = self.keys.redeem(ticket)
            if session is None:
                raise Refusal(401, "The address was used, or is wrong. Open the newest that the studio printed.")
            cookie = f"{self.cookie}={session}; Path=/; HttpOnly; SameSite=Strict"
            given.append((b"set-cookie", cookie.encode()))
        # A redirection would still count as the other site's request where a link or a file led here, and browsers send
        # strict cookies with their own only.
        await _answer(send, 200, moved_page(f"/?{rest}" if rest else "/").encode(), given)


def _ticket(scope: Scope) -> tuple[str, str] | None:
    """The ticket of an address `/?t=TICKET`, and what else it asks for."""
    if scope["path"] != "/" or scope["method"] != "GET":
        return None
    query = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
    given = [value for name, value in query if name == "t"]
    rest = urlencode([(name, value) for name, value in query if name != "t"])
    return (given[0], rest) if len(given) == 1 else None


def _headers(scope: Scope) -> dict[str, str]:
    """The headers by name; one that decides something must not come twice."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization", "content-length", "content-type", "cookie"):
            raise Refusal(400, f"The header {key} came twice.")
        found[key] = value.decode("latin-1")
    return found


def _check_method(scope: Scope, headers: dict[str, str]) -> None:
    if scope["path"] == "/api" or scope["path"].startswith("/api/"):
        _check_site(headers)
    if scope["method"] in READS:
        return
    if scope["method"] not in WRITES:
        raise Refusal(405, "The method is not known here.")
    if "authorization" in headers and _is_bare(headers):
        # A program that has nothing to say need not say how it says it; no other site can send this header.
        return
    # Browsers send forms and beacons of other sites without asking, but never with these types.
    if headers.get("content-type", "").partition(";")[0].strip().lower() not in CONTENT_TYPES:
        raise Refusal(415, f"A write must be of type {' or '.join(CONTENT_TYPES)}.")


def _is_bare(headers: dict[str, str]) -> bool:
    """True for a request without a body."""
    return not {"content-type", "transfer-encoding"} & headers.keys() and headers.get("content-length", "0") == "0"


def _check_site(headers: dict[str, str]) -> None:
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Refusal(403, "Requests from other sites are refused.")


def _check_length(headers: dict[str, str], limit: int) -> None:
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        raise Refusal(400, "The content-length is no number.")
    if int(length) > limit:
        raise Refusal(413, f"A request may have {limit:,} bytes here.")


class _Body:
    """Counts what comes in. Past the limit the client gets its answer and the application an ended request."""

    def __init__(self, receive: Receive, send: Send, limit: int):
        self._receive = receive
        self._send = send
        self._limit = limit
        self._taken = 0
        self._whole = False
        self._started = False
        self._refused = False

    async def receive(self) -> Message:
        """The next message, unless there were too many bytes already, or none for too long."""
        if self._refused:
            return {"type": "http.disconnect"}
        if self._whole:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), BODY_SECONDS)
        except TimeoutError:
            return await self._refuse(408, "The request did not come to its end.")
        self._whole = not message.get("more_body", False)
        self._taken += len(message.get("body", b""))
        if self._taken <= self._limit:
            return message
        return await self._refuse(413, f"A request may have {self._limit:,} bytes here.")

    async def _refuse(self, status: int, reason: str) -> Message:
        self._refused = True
        if not self._started:
            await _answer(self._send, status, _error(reason), [JSON, (b"connection", b"close")])
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Pass an answer on, unless the guard has given its own."""
        if not self._refused:
            self._started = True
            await self._send(message)


JSON = (b"content-type", b"application/json")
HTML = (b"content-type", b"text/html; charset=utf-8")


def _error(reason: str) -> bytes:
    return json.dumps({"error": {"message": reason, "faults": []}}).encode()


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    if refusal.status == 401 and scope["path"] == "/":
        await _answer(send, 401, HINT.encode(), [HTML])
    else:
        await _answer(send, refusal.status, _error(refusal.reason), [JSON])


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    """Adds the protective headers to every answer; answers of the API are kept by nobody unless they say so."""

    async def protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), *HEADERS]
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await send(message)

    return protected
