# SPDX-License-Identifier: Apache-2.0
"""The guard around the whole studio, for HTTP and WebSockets alike. Nothing behind it is reached without its leave.

It is plain ASGI and stands outermost, so that no route, present or future, can be outside of it. Whole strings are
compared, never parts; what is not allowed is refused.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

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

HINT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Voxgrad studio</title>
<h1>This studio needs its token</h1>
<p>Open the address that <code>voxgrad studio</code> printed when it started; it ends in <code>?t=...</code></p>"""


def new_token() -> str:
    """A token of 256 random bits."""
    return secrets.token_urlsafe(32)


class Refusal(Exception):  # noqa: N818 - an answer, not a defect
    """A request that goes no further."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Guard:
    """Wraps an ASGI application that listens on one port of the loopback device."""

    def __init__(self, app: App, token: str, port: int):
        self.app = app
        self.token = token
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
            if (entrance := self._entrance(scope)) is not None:
                await _answer(send, 303, b"", entrance)
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
        except Refusal:
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        await self.app(scope, receive, send)

    def _check_place(self, headers: dict[str, str]) -> None:
        """The request was meant for this server, and comes from its own page or from no page."""
        if headers.get("host") not in self.hosts:
            raise Refusal(421, "This server answers on 127.0.0.1 and localhost only.")
        if "origin" in headers and headers["origin"] not in self.origins:
            raise Refusal(403, "Requests from other origins are refused.")

    def _check_token(self, headers: dict[str, str]) -> None:
        given = ""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            given = bearer.strip()
        elif "cookie" in headers:
            try:
                morsel = SimpleCookie(headers["cookie"]).get(self.cookie)
            except CookieError:
                morsel = None
            given = morsel.value if morsel is not None else ""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise Refusal(401, "The token is missing or wrong. Open the address that the studio printed.")

    def _entrance(self, scope: Scope) -> list[tuple[bytes, bytes]] | None:
        """The answer to `/?t=TOKEN`: the token moves into a cookie and out of the address."""
        if scope["path"] != "/" or scope["method"] not in READS:
            return None
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        given = [value for name, value in query if name == "t"]
        if len(given) != 1:
            return None
        if not hmac.compare_digest(given[0].encode(), self.token.encode()):
            raise Refusal(401, "The token is wrong. Open the address that the studio printed.")
        rest = urlencode([(name, value) for name, value in query if name != "t"])
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        return [(b"location", f"/?{rest}".encode() if rest else b"/"), (b"set-cookie", cookie.encode())]


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
        self._started = False
        self._refused = False

    async def receive(self) -> Message:
        """The next message, unless there were too many bytes already."""
        if self._refused:
            return {"type": "http.disconnect"}
        message = await self._receive()
        self._taken += len(message.get("body", b""))
        if self._taken <= self._limit:
            return message
        self._refused = True
        if not self._started:
            await _answer(self._send, 413, _error(f"A request may have {self._limit:,} bytes here."), [JSON])
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
