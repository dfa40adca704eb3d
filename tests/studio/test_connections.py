# SPDX-License-Identifier: Apache-2.0
"""Connections that keep the studio waiting do not keep others from it."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Iterator

import pytest

from tests.studio.serving import Server, http_client, http_get
from voxgrad.studio import connections, guard

HALF_OPEN = 1500


@pytest.fixture
def many_files(server: Server) -> Iterator[None]:
    """Room for many sockets in this process, which plays the attacker; the studio has what systems usually give."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    own = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (min(1024, own[0]), own[1]))
    if before[1] != resource.RLIM_INFINITY and before[1] < HALF_OPEN + 200:
        pytest.skip(f"a process may have {before[1]} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], HALF_OPEN + 200), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, own)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: "])
def test_half_open_connections_make_room(server: Server, many_files: None, said: bytes) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(HALF_OPEN):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
            # The studio may have closed it already to make room.
            with contextlib.suppress(OSError):
                one.sendall(said)
        began = time.monotonic()
        answer = http_get(f"{server.base}/api/info", headers={"authorization": f"Bearer {server.token}"}, timeout=30)
        took = time.monotonic() - began
    assert answer.status_code == 200 and took < 2, took


def test_a_request_that_drips_is_given_up_and_one_that_works_is_not(server: Server) -> None:
    with (
        http_client(base_url=server.base, headers={"authorization": f"Bearer {server.token}"}) as client,
        socket.create_connection(("127.0.0.1", server.port), 20) as dripping,
    ):
        assert client.get("/api/info").status_code == 200
        began, text = time.monotonic(), b"GET /" + b"a" * 1000
        with contextlib.suppress(OSError):
            for at in range(len(text)):
                dripping.sendall(text[at : at + 1])
                time.sleep(0.25)
                if at % 8 == 0:
                    # A connection that is used stays.
                    assert client.get("/api/info").status_code == 200
        assert connections.REQUEST_SECONDS - 1 < time.monotonic() - began < connections.REQUEST_SECONDS + 10


def test_headers_have_an_end(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 20) as one:
        told = b""
        with contextlib.suppress(OSError):
            one.sendall(b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 2**18)
            told = one.recv(64)
        assert told in (b"",) or told.startswith(b"HTTP/1.1 400")


def test_sockets_are_counted(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(guard.MOST_SOCKETS):
            stack.callback(server.listen().close)
        with pytest.raises(Exception, match=r"403"):
            server.listen()
        assert server.get("info")
    for _ in range(50):
        with contextlib.suppress(Exception):
            server.listen().close()
            return
        time.sleep(0.1)
    pytest.fail("sockets that left still count")
