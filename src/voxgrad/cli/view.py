# SPDX-License-Identifier: Apache-2.0
"""`voxgrad view`: a volume, or any file with an array in it, in the studio's viewer."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from voxgrad.cli import exits
from voxgrad.cli.studio import add_serving, opened, serve_studio
from voxgrad.formats.tensor_files import bad_file
from voxgrad.graph.page import Page
from voxgrad.volumes.stores import SUFFIXES, open_volume, split_name

DESCRIPTION = f"""\
Look at a volume in the browser: slices, planes, in three dimensions, numbers, a histogram.

  voxgrad view scan.nii.gz
  voxgrad view run.h5:/t0/density
  voxgrad view series/                 a folder of DICOM files

It is a page with one block on it: add others to see what they do to the volume. Page and results lie in a folder that
is gone when the viewer is stopped; export what you want to keep. The volume is read, and never written to.

Volumes end in {", ".join(SUFFIXES)}.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad view`."""
    parser.add_argument("path", metavar="FILE", help="a volume; name:member for one inside a file")
    parser.add_argument("--axes", help="its dimensions in their order, where the file does not say: zyx, tczyx")
    add_serving(parser)


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Serve a page with the volume on it until stopped."""
    place, member = split_name(arguments.path)
    if not isinstance(place, Path):
        remedy = f"Copy it here first: voxgrad convert {arguments.path} copy.zarr"
        raise bad_file(arguments.path, "lie on this machine", "an address", remedy)
    open_volume(arguments.path, axes=arguments.axes)  # what is wrong with it is said here, not in the browser
    file = place.resolve()
    page = Page(file.name.partition(".")[0] or "volume")
    page.add("Volume", attrs={"path": f"{file}:{member}" if member else str(file), "axes": arguments.axes or ""},
             name="volume", position=(0.0, 0.0))  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="voxgrad-view-") as folder:
        studio = opened(Path(folder), arguments, shown=file)
        serve_studio(studio, arguments, view=studio.pages.add(page).id)
    return exits.OK
