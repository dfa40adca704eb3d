# SPDX-License-Identifier: Apache-2.0
"""The studio in a real browser: every test script of web/e2e, with Chromium. Says plainly what is missing to run them.

Frame times are measured by `node --test e2e/speed.bench.mjs` in web/, on a machine with nothing else to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parents[2] / "web"
SCRIPTS = sorted((WEB / "e2e").glob("*.test.mjs"))
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def missing() -> str:
    """What has to be installed before a browser can be used."""
    if shutil.which("node") is None:
        return "node is not installed"
    if not (WEB / "node_modules" / "playwright-core").is_dir():
        return "playwright-core is not installed: npm ci --ignore-scripts in web/"
    return "" if CHROMIUM else "Chromium is not installed: apt install chromium, or name it in CHROMIUM"


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("script", SCRIPTS, ids=[path.name.removesuffix(".test.mjs") for path in SCRIPTS])
def test_in_the_browser(script: Path) -> None:
    """One script of the browser tests."""
    done = subprocess.run(
        ["node", "--test", "--test-reporter=spec", str(script)],
        cwd=WEB,
        env=os.environ | {"PYTHON": sys.executable, "CHROMIUM": str(CHROMIUM)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
