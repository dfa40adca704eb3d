# SPDX-License-Identifier: Apache-2.0
"""The committed front end is what its source builds to, byte for byte, and loads quickly."""

from __future__ import annotations

import filecmp
import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
STATIC = ROOT / "src" / "voxgrad" / "studio" / "static"
FIRST_LOAD = 350 * 1024


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
def test_the_source_builds_to_the_committed_files(tmp_path: Path) -> None:
    if shutil.which("npm") is None or not (WEB / "node_modules" / "vite").is_dir():
        pytest.skip("the front end's tools are not installed: npm ci --ignore-scripts in web/")
    shutil.copytree(WEB, tmp_path / "web", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "web" / "node_modules").symlink_to((WEB / "node_modules").resolve())
    built = tmp_path / "src" / "voxgrad" / "studio" / "static"
    built.mkdir(parents=True)
    done = subprocess.run(["npm", "run", "build"], cwd=tmp_path / "web", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert files(built) == files(STATIC)
    _, different, unreadable = filecmp.cmpfiles(built, STATIC, files(built), shallow=False)
    assert not different + unreadable, "run npm run build in web/ and commit what it writes"


def test_the_first_load_is_small_and_names_no_other_host() -> None:
    page = (STATIC / "index.html").read_text()
    wanted = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert wanted and all(name.startswith("/") and not name.startswith("//") for name in wanted)
    assert not re.search(r"<script(?![^>]*\bsrc=)", page), "inline scripts are refused by the content security policy"
    size = sum(len(gzip.compress((STATIC / name[1:]).read_bytes(), 9)) for name in [*wanted, "/index.html"])
    assert size < FIRST_LOAD
