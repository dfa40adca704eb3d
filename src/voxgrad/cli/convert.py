# SPDX-License-Identifier: Apache-2.0
"""`voxgrad convert`: a volume in another format, in parts, with its place in space."""

from __future__ import annotations

import argparse
import sys

from voxgrad.cli import exits
from voxgrad.cli.chunked import INNER, parse_chunks, parse_inner, show
from voxgrad.cli.show import tell_lost
from voxgrad.volumes.conversion import convert
from voxgrad.volumes.stores import SUFFIXES, open_volume

DESCRIPTION = f"""\
Write a volume in another format: the same voxels, at the same places, in the same type.

  voxgrad convert series/ scan.nii.gz
  voxgrad convert scan.ome.zarr:1 half.nrrd
  voxgrad convert scan.nii.gz scan.zarr --chunks 64,64,64 --output-dtype int16

Volumes end in {", ".join(SUFFIXES)}. Packed files (.npz, .nii.gz) are written whole, others part by part; the same
command goes on where it was stopped.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad convert`."""
    parser.add_argument("input", metavar="INPUT", help="a volume; name:member for one inside a file")
    parser.add_argument("output", metavar="OUTPUT", help="the new file")
    parser.add_argument("--axes", help="the dimensions of the input in their order, where the file does not say: zyx")
    parser.add_argument("--chunks", metavar="D,H,W", default="128,128,128", help="a part (default: %(default)s)")
    parser.add_argument("--inner-chunks", metavar="D,H,W", help=INNER)
    parser.add_argument("--output-dtype", help="the type to write, into which every value must fit")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Convert, and say where the result has no place."""
    chunks = parse_chunks(arguments.chunks, "convert")
    source = open_volume(arguments.input, axes=arguments.axes)
    bar = show if sys.stderr.isatty() else None
    inner = parse_inner(arguments.inner_chunks, "convert")
    made = convert(
        source, arguments.output, chunks=chunks, output_dtype=arguments.output_dtype, inner_chunks=inner, progress=bar
    )
    if bar:
        sys.stderr.write("\n")
    tell_lost(made.name, made.space)
    return exits.OK
