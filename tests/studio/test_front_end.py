# SPDX-License-Identifier: Apache-2.0
"""The front end: what is shipped is small, ours, and what the source builds."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
STATIC = ROOT / "src" / "voxgrad" / "studio" / "static"
FIRST_LOAD = 350_000


def _first_load() -> set[Path]:
    """The page, and every file that it loads at once."""
    page = STATIC / "index.html"
    waiting = [STATIC / path.lstrip("/") for path in re.findall(r'(?:src|href)="(/[^"]+)"', page.read_text())]
    found = {page}
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        if file.suffix == ".js":
            names = re.findall(r'(?:from|import)\s*"\./([\w.-]+)"', file.read_text())
            waiting.extend(file.parent / name for name in names)
    return found


def test_the_first_load_is_small() -> None:
    files = _first_load()
    assert len(files) >= 4
    assert sum(len(gzip.compress(file.read_bytes(), 9)) for file in files) <= FIRST_LOAD


def test_the_page_has_no_inline_code_and_no_foreign_host() -> None:
    text = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|https?:", text)


def test_names_of_built_files_are_stable() -> None:
    names = {file.name for file in (STATIC / "assets").iterdir()}
    assert {"index.js", "index.css"} <= names
    assert not any(re.search(r"-[\w-]{8}\.(js|css)$", name) for name in names)
    assert not list(STATIC.rglob("*.map"))


def test_licences_of_everything_shipped_are_listed() -> None:
    text = (STATIC / "THIRD_PARTY_LICENSES.txt").read_text()
    wanted = json.loads((WEB / "package.json").read_text())["dependencies"]
    assert all(f"{name} {version}" in text for name, version in wanted.items())


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text())
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]


@pytest.fixture(scope="session")
def npm() -> str:
    """npm, where the packages of the front end are installed."""
    found = shutil.which("npm")
    if found is None:
        pytest.skip("npm is not installed: the front end is shipped built, only its own tests need it")
    if not (WEB / "node_modules" / "vite").is_dir():
        pytest.skip("the packages of the front end are not installed: npm ci --ignore-scripts in web/")
    return found


def _run(npm: str, *arguments: str) -> None:
    done = subprocess.run([npm, "run", *arguments], cwd=WEB, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_core(npm: str) -> None:
    _run(npm, "test")


@pytest.mark.slow
def test_the_source_builds_what_is_shipped(npm: str, tmp_path: Path) -> None:
    built = tmp_path / "static"
    _run(npm, "types")
    _run(npm, "bundle", "--", "--outDir", str(built))
    shipped = {file.relative_to(STATIC): file for file in STATIC.rglob("*") if file.is_file()}
    made = {file.relative_to(built): file for file in built.rglob("*") if file.is_file()}
    assert set(shipped) - set(made) == {Path("THIRD_PARTY_LICENSES.txt")}
    assert not [name for name, file in made.items() if file.read_bytes() != shipped[name].read_bytes()]
