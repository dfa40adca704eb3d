# SPDX-License-Identifier: Apache-2.0
"""Packages of blocks, installed into a folder without pip: their modules, and the metadata that pip would write."""

from __future__ import annotations

import shutil
import textwrap
import tomllib
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parents[2] / "examples" / "block_package"


def install_template(folder: Path) -> Path:
    """The template, as its pyproject.toml says."""
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())
    points = project["project"]["entry-points"]["voxgrad.blocks"]
    for module in (TEMPLATE / project["tool"]["setuptools"]["packages"]["find"]["where"][0]).iterdir():
        shutil.copytree(module, folder / module.name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    write_metadata(folder, project["project"]["name"], project["project"]["version"], points)
    return folder


def install(folder: Path, name: str, code: str, compute: str = "") -> Path:
    """A package of one module that declares `OPS`, and one that computes."""
    module = name.replace("-", "_")
    head = "from voxgrad.blocks import *\n"
    (folder / f"{module}.py").write_text(head + textwrap.dedent(code))
    (folder / f"{module}_compute.py").write_text(textwrap.dedent(compute))
    write_metadata(folder, name, "0.1", {"all": f"{module}:OPS"})
    return folder


def write_metadata(folder: Path, name: str, version: str, points: dict[str, str]) -> None:
    """What pip leaves beside a package."""
    place = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "\n".join(f"{key} = {value}" for key, value in points.items())
    (place / "entry_points.txt").write_text(f"[voxgrad.blocks]\n{lines}\n")
