# SPDX-License-Identifier: Apache-2.0
"""`voxgrad info`: what a volume holds, without reading it."""

from __future__ import annotations

import argparse
import json

from voxgrad.cli import exits
from voxgrad.errors import visible
from voxgrad.volumes.stores import SUFFIXES, Store, human, open_volume

DESCRIPTION = f"""\
Say what a volume holds, without reading it: shape, axes, voxels, type, chunks, size.

  voxgrad info scan.nii.gz
  voxgrad info run.h5:/t0/density
  voxgrad info series/                 a folder of DICOM files

Volumes end in {", ".join(SUFFIXES)}.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad info`."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a volume; name:member for one inside a file")
    parser.add_argument("--axes", help="its dimensions in their order, where the file does not say: zyx, tczyx")
    parser.add_argument("--json", action="store_true", help="the same as JSON, one line for each")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Print what the headers say."""
    for path in arguments.paths:
        store = open_volume(path, axes=arguments.axes)
        if arguments.json:
            print(json.dumps(store.as_data()))
        else:
            print(visible("\n".join(describe(store))))
    return exits.OK


def describe(store: Store) -> list[str]:
    """What is known of a volume, as lines."""
    voxels = " x ".join(f"{size:g}" for size in store.spacing)
    rows = [
        ("format", store.kind),
        ("shape", f"{' x '.join(map(str, store.shape))}  (batch, depth, height, width, channels)"),
        ("axes", f"{store.axes}, in the file"),
        ("type", str(store.dtype)),
        ("voxels", f"{voxels} {store.unit}".rstrip()),
        ("chunks", "none" if store.chunks is None else " x ".join(map(str, store.chunks))),
        ("size", human(store.nbytes)),
    ]
    if store.affine is not None:
        turned = "; ".join(" ".join(f"{value:.4g}" for value in row) for row in store.affine[:3])
        rows.append(("affine", turned))
    elif any(store.space.origin):
        rows.append(("origin", f"{' x '.join(f'{one:g}' for one in store.space.origin)} {store.unit}".rstrip()))
    if not store.space.is_known:
        rows.append(("place", f"unknown: {store.space.lost}" if store.space.lost else "unknown"))
    return [store.name, *(f"  {label:<8}{text}" for label, text in rows)]
