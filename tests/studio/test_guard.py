# SPDX-License-Identifier: Apache-2.0
"""The security checklist, point by point, against a studio that listens on a real port."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.studio.documents import pool_page
from tests.studio.serving import Server, environment, http_client, http_get
from voxgrad.studio.app import api

JSON = {"content-type": "application/json"}


def ask(server: Server, method: str = "GET", path: str = "/api/pages", **headers: str | None) -> httpx.Response:
    """A request with just these headers, as an attacker would make it; the token and the Host are friendly."""
    sent = {"host": server.host, "authorization": f"Bearer {server.token}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    with http_client(timeout=20) as client:
        return client.request(method, server.base + path, headers={k: v for k, v in sent.items() if v is not None})


def test_it_listens_on_the_loopback_device_only(server: Server) -> None:
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    places = [one[1] for one in listening if one[3] == "0A" and int(one[1].partition(":")[2], 16) == server.port]
    assert places == [f"0100007F:{server.port:04X}"]


def test_secrets_have_256_bits_and_are_new_at_every_start(server: Server, tmp_path: Path) -> None:
    other = Server(tmp_path)
    private = tmp_path / ".voxgrad" / "token"
    assert private.stat().st_mode & 0o777 == 0o600 and private.parent.stat().st_mode & 0o777 == 0o700
    other.stop()
    assert not private.exists()
    assert len({server.token, server.ticket, other.token, other.ticket}) == 4
    assert {len(one) for one in (server.token, server.ticket, other.token, other.ticket)} == {43}


def entered(server: Server) -> str:
    """The cookie of a browser that was let in."""
    answer = http_get(server.post("address")["address"])
    return answer.headers["set-cookie"].partition(";")[0]


def test_the_address_gives_a_strict_cookie_of_its_own(server: Server) -> None:
    ticket = server.post("address")["address"].partition("?t=")[2]
    with http_client(base_url=server.base) as browser:
        answer = browser.get(f"/?t={ticket}&page=7%22%3E")
        # The page leads on by itself: a redirection would come without the strict cookie where a link led here.
        assert answer.status_code == 200 and 'content="0;url=/?page=7%22%3E"' in answer.text
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"voxgrad_{server.port}=") and "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert ticket not in cookie and server.token not in cookie and ticket not in answer.text
        assert browser.get("/api/pages").status_code == 200
        assert browser.get("/").status_code == 200
        # Who is in may come with the address again; nobody else can.
        again = browser.get(f"/?t={ticket}")
        assert again.status_code == 200 and "set-cookie" not in again.headers
    assert http_get(f"{server.base}/?t={ticket}").status_code == 401
    other = http_get(server.post("address")["address"]).headers["set-cookie"]
    assert other.partition(";")[0] != cookie.partition(";")[0]


def test_no_secret_does_the_work_of_another(server: Server) -> None:
    ticket = server.post("address")["address"].partition("?t=")[2]
    session = entered(server).partition("=")[2]
    for wrong in (server.token, session):
        assert http_get(f"{server.base}/?t={wrong}").status_code == 401
    for wrong in (ticket, session):
        assert ask(server, authorization=f"Bearer {wrong}").status_code == 401
    for wrong in (ticket, server.token):
        cookie = f"voxgrad_{server.port}={wrong}"
        assert ask(server, authorization=None, cookie=cookie).status_code == 401
    assert httpx.head(f"{server.base}/?t={ticket}", verify=False).status_code == 401
    assert http_get(f"{server.base}/?t={ticket}").status_code == 200


def test_whoever_comes_with_a_used_address_finds_a_new_one_on_the_terminal(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert http_get(f"{server.base}/?t=wrong").status_code == 401
    assert http_get(server.address).status_code == 200
    for _ in range(3):
        assert http_get(server.address).status_code == 401
    assert server.process.stdout is not None
    new = server.process.stdout.readline().strip()
    assert new != server.address and http_get(new).status_code == 200
    server.process.send_signal(2)
    assert server.process.stdout.read() == ""
    server.stop()


def test_no_secret_stands_on_a_command_line(tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.part\ncat "${{1#file://}}" >> {seen}.part\n'
                       f'stat -c %a "${{1#file://}}" >> {seen}.part\nmv {seen}.part {seen}\n')  # fmt: skip
    browser.chmod(0o755)
    command = [sys.executable, "-m", "voxgrad", "studio", str(tmp_path / "project"), "--port", "0"]
    studio = subprocess.Popen(command, env=environment() | {"BROWSER": str(browser)}, stdout=subprocess.PIPE, text=True)
    assert studio.stdout is not None
    printed = studio.stdout.readline().strip()
    for _ in range(600):
        if seen.exists():
            break
        time.sleep(0.1)
    asked, *page, mode = seen.read_text().splitlines()
    assert asked.startswith("file:///") and "t=" not in asked and mode == "600"
    address = re.search(r"url=(http://[^\"]*)", "".join(page))
    assert address is not None and address[1] != printed
    assert http_get(address[1]).status_code == 200
    studio.send_signal(2)
    studio.wait(20)
    studio.stdout.close()
    assert not list((tmp_path / "project" / ".voxgrad").glob("*.html"))


@pytest.mark.parametrize("token", [None, "", "Bearer", "Bearer wrong", "Basic abc"])
def test_no_token_no_answer(server: Server, token: str | None) -> None:
    assert ask(server, authorization=token).status_code == 401
    assert ask(server, path="/", authorization=token).status_code == 401
    assert ask(server, path="/?t=wrong", authorization=token).status_code == 401
    assert ask(server, path=f"/api/pages?t={server.token}", authorization=token).status_code == 401


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "evil.example:{port}", "127.0.0.1.evil.example:{port}",
     "localhost:{port}.evil.example", "0.0.0.0:{port}", "LOCALHOST:{port}", "127.0.0.1:{port}@evil.example", ""],
)  # fmt: skip
def test_other_hosts_are_misdirected(server: Server, host: str) -> None:
    assert ask(server, host=host.format(port=server.port)).status_code in (421, 400)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
def test_our_hosts_are_answered(server: Server, host: str) -> None:
    assert ask(server, host=host.format(port=server.port)).status_code == 200


HOSTILE_ORIGINS = [
    "null", "http://evil.example", "http://127.0.0.1", "https://127.0.0.1:{port}", "http://127.0.0.1:1",
    "http://127.0.0.1:{port}.evil.example", "http://evil.example:{port}", "file://", "", "http://localhost:{port}/",
]  # fmt: skip


@pytest.mark.parametrize("origin", HOSTILE_ORIGINS)
def test_other_origins_are_refused_whatever_the_method(server: Server, origin: str) -> None:
    value = origin.format(port=server.port)
    for method in ("GET", "POST", "PUT", "DELETE"):
        assert ask(server, method, origin=value, content_type="application/json").status_code == 403
    # A page of another site that is rebound to us sends its own Host and an equal Origin.
    assert ask(server, host="evil.example", origin="http://evil.example").status_code == 421


def test_our_origin_is_answered_and_cors_is_never_offered(server: Server) -> None:
    answer = ask(server, origin=server.base)
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]
    preflight = ask(server, "OPTIONS", origin=server.base, access_control_request_method="PUT")
    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_fetch_metadata(server: Server, site: str, status: int) -> None:
    assert ask(server, sec_fetch_site=site).status_code == status


def test_a_link_from_another_site_may_open_the_page(server: Server) -> None:
    assert ask(server, path="/", sec_fetch_site="cross-site").status_code == 200


FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]


@pytest.mark.parametrize("kind", FORMS)
def test_writes_of_forms_are_refused(server: Server, kind: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert ask(server, method, "/api/pages/x", content_type=kind).status_code == 415


def test_a_write_without_a_body_needs_a_type_unless_it_comes_from_a_program(server: Server) -> None:
    cookie = entered(server)
    assert ask(server, "DELETE", "/api/pages/x", authorization=None, cookie=cookie).status_code == 415
    assert ask(server, "POST", "/api/gallery/x/open", authorization=None, cookie=cookie).status_code == 415
    assert ask(server, "DELETE", "/api/pages/x").status_code == 404
    assert ask(server, "DELETE", "/api/pages/x", authorization="Bearer wrong", cookie=cookie).status_code == 401


def test_headers_that_decide_must_not_come_twice(server: Server) -> None:
    lines = (f"Origin: {server.base}", "Origin: http://evil.example", f"Authorization: Bearer {server.token}")
    assert raw_answer(server, "GET /api/pages HTTP/1.1", *lines).startswith(b"HTTP/1.1 400")


def test_every_answer_carries_the_protective_headers(server: Server) -> None:
    for answer in (ask(server), ask(server, authorization=None), ask(server, path="/"), ask(server, path="/api/none")):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'")
        assert "unsafe" not in policy and "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert "server" not in answer.headers
    for path in ("/docs", "/redoc", "/openapi.json", "/api/docs", "/api/openapi.json"):
        assert ask(server, path=path).status_code == 404


def raw_answer(server: Server, *lines: str) -> bytes:
    """The start of the answer to a request that no library would send."""
    with socket.create_connection(("127.0.0.1", server.port), 20) as raw:
        raw.sendall("\r\n".join([*lines, f"Host: {server.host}", "", ""]).encode("latin-1"))
        return raw.recv(64)


def test_a_strange_token_is_a_wrong_one(server: Server) -> None:
    assert raw_answer(server, "GET /api/pages HTTP/1.1", "Authorization: Bearer \xff\xfe").startswith(b"HTTP/1.1 401")


def test_over_long_bodies_are_refused_declared_or_not(server: Server) -> None:
    token = f"Authorization: Bearer {server.token}"
    lines = ("POST /api/pages HTTP/1.1", token, "Content-Type: application/json", f"Content-Length: {33 * 2**20}")
    assert raw_answer(server, *lines).startswith(b"HTTP/1.1 413")

    def endless() -> Iterator[bytes]:
        yield b'{"name": "'
        for _ in range(40):
            yield b"x" * 2**20

    with http_client(timeout=30) as client:
        headers = JSON | {"authorization": f"Bearer {server.token}"}
        try:
            status = client.post(f"{server.base}/api/pages", content=endless(), headers=headers).status_code
        except httpx.WriteError:
            status = 413  # the server had answered and closed before all was sent
    assert status == 413
    assert ask(server).status_code == 200


def test_deep_json_is_refused(server: Server) -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    for body in (json.dumps({"document": {"name": "x", "semantics": "documented", "blocks": deep}}), "[" * 100_000):
        answer = server.client.post("/api/analyse", content=body)
        assert 400 <= answer.status_code < 500, answer.text


def test_unknown_fields_are_refused(server: Server) -> None:
    assert server.client.post("/api/pages", json={"name": "a", "path": "/etc"}).status_code == 422
    document = pool_page() | {"code": "import os"}
    assert server.client.post("/api/analyse", json={"document": document}).status_code == 422


# Every route


def routes(found: list[BaseRoute], prefix: str = "") -> list[tuple[str, str]]:
    """Methods and paths of everything that the application answers to."""
    listed = []
    for route in found:
        if isinstance(route, Route):
            listed += [(method, prefix + route.path) for method in sorted(route.methods or ())]
        elif isinstance(route, WebSocketRoute):
            listed.append(("WS", prefix + route.path))
        else:
            assert isinstance(route, Mount)
            listed += routes(list(route.routes), prefix + route.path)
    return listed


ROUTES = [
    *routes(list(api.routes)),
    ("GET", "/"),
    ("GET", "/assets/index.js"),
    ("GET", "/api/unknown"),
    ("WS", "/other"),
]


def test_the_list_of_routes_is_whole() -> None:
    assert len(ROUTES) > 35 and ("WS", "/api/events") in ROUTES and ("PUT", "/api/pages/{page}/draft") in ROUTES


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_refuses_those_without_a_token(server: Server, method: str, path: str) -> None:
    if method == "WS":
        with pytest.raises(InvalidStatus), connect(f"ws://{server.host}{path}", origin=server.base):
            pass
        return
    answer = ask(server, method, path, authorization=None, content_type="application/json")
    assert answer.status_code == 401
    assert ask(server, method, path, host="evil.example", content_type="application/json").status_code == 421
    assert ask(server, method, path, origin="null", content_type="application/json").status_code == 403


# The WebSocket


def opens(server: Server, origin: str | None, headers: dict[str, str], host: str = "") -> bool:
    """True if a WebSocket is accepted."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
        lines = [
            "GET /api/events HTTP/1.1", f"Host: {host or server.host}", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            *([f"Origin: {origin}"] if origin is not None else []),
            *(f"{name}: {value}" for name, value in headers.items()),
        ]  # fmt: skip
        raw.sendall("\r\n".join([*lines, "", ""]).encode())
        return raw.recv(64).startswith(b"HTTP/1.1 101")


def test_a_websocket_needs_origin_and_token(server: Server) -> None:
    bearer = {"Authorization": f"Bearer {server.token}"}
    cookie = {"Cookie": entered(server)}
    assert opens(server, server.base, bearer) and opens(server, server.base, cookie)
    assert opens(server, f"http://localhost:{server.port}", cookie, f"localhost:{server.port}")
    assert not opens(server, None, bearer)
    assert not opens(server, server.base, {})
    assert not opens(server, server.base, {"Cookie": f"voxgrad_1={cookie['Cookie'].partition('=')[2]}"})
    assert not opens(server, server.base, {"Authorization": "Bearer wrong"} | cookie)
    assert not opens(server, server.base, bearer | {"Sec-Fetch-Site": "cross-site"})
    assert not opens(server, "http://evil.example", bearer, "evil.example")
    for origin in HOSTILE_ORIGINS:
        assert not opens(server, origin.format(port=server.port), cookie), origin


# Names are ids, files stay inside


TRAVERSALS = [
    "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/x", "C:%5Cwindows", "%5C%5Chost%5Cshare", "/etc/passwd",
    "a%00b", "x" * 3000, "pool.vox.json", "~", "file:///etc/passwd",
]  # fmt: skip


@pytest.mark.parametrize("name", TRAVERSALS)
def test_names_are_never_paths(server: Server, name: str) -> None:
    for path in (
        f"/api/pages/{name}",
        f"/api/pages/{name}/export?format=json",
        f"/api/tensors/{name}",
        f"/api/runs/{name}",
    ):
        assert ask(server, path=path).status_code in (404, 405, 422)
    for path in (f"/api/pages/{name}/snapshots", f"/api/gallery/{name}/open"):
        answer = server.client.post(path, json={"name": "x"})
        assert answer.status_code in (404, 405, 422)
    assert ask(server, path=f"/{name}").status_code == 404


def test_symbolic_links_are_not_followed(server: Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret.vox.json"
    secret.write_text(json.dumps(pool_page()))
    (server.folder / "link.vox.json").symlink_to(secret)
    (server.folder / "folder").symlink_to(tmp_path)
    listed = [page["file"] for page in server.get("pages")["pages"]]
    assert not [file for file in listed if "link" in file or "folder" in file]


def test_a_document_cannot_name_files_outside(server: Server) -> None:
    document = pool_page()
    for file in (
        "../../secret.data/0123456789abcdef.npy",
        "/etc/passwd",
        "x.data/0123456789abcdef.npy",
        "C:x.data/0.npy",
    ):
        tensor = {"dtype": "float32", "shape": [1], "file": file, "sha256": "0" * 64}
        document["blocks"][0]["attrs"]["value"] = {"tensor": tensor}
        assert server.client.post("/api/analyse", json={"document": document}).status_code == 422


def test_opening_and_running_a_page_makes_no_outgoing_connection(server: Server) -> None:
    server.run(pool_page())
    inodes = {
        link.readlink().name[8:-1]
        for link in Path(f"/proc/{server.process.pid}/fd").iterdir()
        if link.is_symlink() and str(link.readlink()).startswith("socket:")
    }
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            entry = line.split()
            if entry[9] in inodes:
                assert int(entry[1].partition(":")[2], 16) == server.port, f"{table}: {line}"
