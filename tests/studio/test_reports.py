# SPDX-License-Identifier: Apache-2.0
"""A run of the studio as a report."""

from __future__ import annotations

from tests.formats.test_run_report import harmless
from tests.studio.documents import pool_page
from tests.studio.serving import Server


def test_a_run_is_exported_as_a_report(server: Server) -> None:
    document = pool_page(400)
    first, again = server.run(document, "report"), server.run(document, "report")
    answer = server.client.post("/api/export", json={"document": document, "format": "report", "run": first["id"]})
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-disposition"].startswith("attachment")
    found = harmless(answer.text)
    assert "MaxPool3D" in found.text and "415, 416, 431, 432" in found.text and "done" in found.text
    assert "output = 415, 416, 431, 432" in found.pictures[0]
    rows = answer.text.split("<tr>")
    assert " ms</td>" in rows[-1] or " us</td>" in rows[-1]
    kept = server.client.post("/api/export", json={"document": document, "format": "report", "run": again["id"]}).text
    assert ">cached<" in kept and '<td rowspan="1" class="number"></td>' in kept
    refused = server.client.post("/api/export", json={"document": document, "format": "report"})
    assert refused.status_code in (404, 422) and "have run" in refused.json()["error"]["message"]
