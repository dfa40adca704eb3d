# SPDX-License-Identifier: Apache-2.0
"""`voxgrad apply --chunks`: an op from file to file, for volumes that do not fit into memory."""

from __future__ import annotations

import argparse
import sys

from voxgrad.catalog.attributes import canonical
from voxgrad.catalog.model import Op
from voxgrad.errors import Fault, Faults, InvalidArgumentError
from voxgrad.formats.text import parse_attr, parse_attrs, parse_ints


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a chunked run asks for besides the op's own arguments."""
    group = parser.add_argument_group("volumes larger than memory (any volume in; .npy, .zarr, .nii, .tif, .h5 out)")
    group.add_argument("--chunks", metavar="D,H,W", help="compute the result in chunks of this size, from file to file")
    group.add_argument("--workers", type=int, metavar="N", help="processes to use (default: one per processor)")


def run(op: Op, given: argparse.Namespace, sources: dict[str, list[str]]) -> None:
    """Run an op chunk by chunk; the same command again goes on where this one stopped."""
    # Loaded here because it starts processes, which the other commands never do.
    from voxgrad.volumes.run import apply

    if op.problem is None or given.output is None:
        wanted = "be used with an op of the 3-D family and --output"
        raise InvalidArgumentError(Fault("VG001", op.name, "--chunks", wanted, repr(given.chunks)))
    attrs = dict(parse_attrs(op, given.attrs) or {})
    for attr in op.attrs:
        text = getattr(given, attr.name)
        if text is not None:
            attrs[attr.name] = parse_attr(attr, text, op.name)
    faults = Faults(op.name)
    for item in op.inputs:
        if item.name not in sources:
            faults.add("VG001", item.name, wanted="be given", got="no file", remedy=item.doc)
    values = canonical(op, attrs, faults)
    faults.raise_if_any()
    inputs = {
        item.name: parse_ints(sources[item.name][0], item.name, op.name) if item.host else sources[item.name][0]
        for item in op.inputs
    }
    depth, height, width = parse_ints(given.chunks, "--chunks", op.name)
    bar = show if sys.stderr.isatty() else None
    apply(op.name, inputs, given.output, chunks=(depth, height, width), workers=given.workers, progress=bar, **values)
    if bar:
        sys.stderr.write("\n")


def show(done: int, total: int, seconds: float) -> None:
    """A bar with the rate and the time that is left."""
    filled = 30 * done // max(total, 1)
    rate = done / seconds if seconds else 0.0
    left = f"{(total - done) / rate:.0f} s left" if rate else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{total} chunks  {rate:.1f}/s  {left}   ")
    sys.stderr.flush()
