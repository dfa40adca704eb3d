# SPDX-License-Identifier: Apache-2.0
"""`voxgrad apply`: one op on array files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad import raw_ops
from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog import registry
from voxgrad.catalog.describe import shown_default, type_names
from voxgrad.catalog.model import Input, Op
from voxgrad.catalog.semantics import SEMANTICS, semantics
from voxgrad.cli import chunked, exits
from voxgrad.cli.show import describe, tell_lost, tell_type
from voxgrad.errors import Fault, Faults, InvalidArgumentError, VoxgradError
from voxgrad.formats.tensor_files import bad_file, is_array_file, write_npz
from voxgrad.formats.text import parse_attr, parse_attrs, parse_ints, parse_type, parse_value
from voxgrad.volumes.grids import space_of_call
from voxgrad.volumes.space import NOWHERE, Space
from voxgrad.volumes.stores import (
    Store,
    fitted,
    is_volume_name,
    open_volume,
    read_file,
    read_type,
    result_type,
    write_file,
)

TAKES_REST = True
"""The arguments depend on the op, so they are parsed here, after its name is known."""

DESCRIPTION = """\
Run one op on arrays in files and write the result.

  voxgrad apply MaxPool3D --input scan.nii.gz --ksize 1,2,2,2,1 --strides 1,2,2,2,1 --padding SAME --output half.nii.gz
  voxgrad apply AvgPool3DGrad --orig_input_shape 1,4,4,4,2 --grad g.npy --ksize 1,2,2,2,1 --strides 1,2,2,2,1 \\
      --padding SAME --output dx.npy
  voxgrad apply MaxPool3D --help        the arguments of an op

Files are .npy and .npz (file.npz:name where it holds several) and, with their libraries, NIfTI, Zarr, OME-Zarr, TIFF,
HDF5 (file.h5:/name), NRRD, MetaImage and DICOM, which come as [N, D, H, W, C].
Values are typed as 1,2,2,2,1 or {1,2,2,2,1}, SAME, true, DT_FLOAT.
"""
_SHAPED = "1,4,4,4,2, or a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The first argument; the others come from the declaration of the op."""
    parser.add_argument("op", nargs="?", metavar="OP", help="the op, as in `voxgrad ops`")
    parser.set_defaults(parser=parser)


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Parse the arguments of the op, run it, write the result."""
    if arguments.op is None:
        arguments.parser.print_help()
        return exits.OK if {"-h", "--help"} & set(rest) else exits.USAGE
    op = registry.find(arguments.op)
    given = make_parser(op).parse_args(rest)
    if chunked.is_asked_for(given):
        with semantics(given.semantics):
            chunked.go(chunked.op_job(op, given, _sources(op, given)), given, None)
        return exits.OK
    sources = _sources(op, given)
    values = read_arguments(op, given, sources)
    start = time.perf_counter()
    with semantics(given.semantics):
        result = raw_ops.make_function(op)(**values)
    took = time.perf_counter() - start
    results = named_results(op, result)
    if given.output is None:
        print("\n".join(line for name, value in results.items() for line in describe(name, value)))
    elif len(results) == 1:
        space = space_of_call(op, values, {name: [_space(text) for text in texts] for name, texts in sources.items()})
        array, kind = next(iter(results.values())), _written_type(op, given, sources)
        write_file(given.output, array if kind is None else fitted(array, kind, given.output), space)
        tell_lost(given.output, space)
    elif given.output.endswith(".npz"):
        write_npz(Path(given.output), results)
    else:
        raise bad_file(given.output, f"end in .npz: {op.name} has {len(results)} results", given.output)
    if given.output is not None and sys.stderr.isatty():
        print(f"{given.output}: computed in {took * 1e3:.1f} ms", file=sys.stderr)
    return exits.OK


def named_results(op: Op, result: Any) -> dict[str, Any]:
    """The results of a call by the names of the outputs; members of a list are numbered."""
    parts = (result,) if len(op.outputs) == 1 else tuple(result or ())
    named: dict[str, Any] = {}
    for item, part in zip(op.outputs, parts, strict=True):
        named |= {f"{item.name}_{at}": one for at, one in enumerate(part)} if item.many else {item.name: part}
    return {name: np.asarray(value) for name, value in named.items()}


def make_parser(op: Op) -> argparse.ArgumentParser:
    """The parser for one op, with its documentation as help."""
    parser = argparse.ArgumentParser(
        f"voxgrad apply {op.name}",
        description=op.summary,
        epilog=exits.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inputs = parser.add_argument_group("inputs (files; or --input FILE several times, in this order)")
    for item in op.inputs:
        if item.name != "input":
            metavar = "SIZES" if item.host else "FILE"
            inputs.add_argument(f"--{item.name}", metavar=metavar, help=_escaped(_input_help(op, item)))
    inputs.add_argument("--input", action="append", default=[], metavar="FILE", help=_first_help(op))
    attrs = parser.add_argument_group("attributes")
    for attr in op.attrs:
        default = "required" if attr.required else f"default {shown_default(attr)}"
        text = f"{attr.doc} ({' or '.join(map(str, attr.choices)) or attr.kind}; {default})"
        attrs.add_argument(f"--{attr.name}", metavar="TEXT", help=_escaped(text))
    attrs.add_argument("--attrs", metavar="TEXT", default="", help="several at once: 'data_format_ = NDHWC;'")
    parser.add_argument("--output", metavar="FILE", help="where the result goes; without it, it is printed")
    parser.add_argument("--dtype", metavar="TYPE", help="convert the tensor inputs to this type first")
    parser.add_argument("--output-dtype", metavar="TYPE", help="the type to write, into which every value must fit")
    parser.add_argument("--semantics", choices=list(SEMANTICS), default="documented")
    chunked.add_arguments(parser, device=True)
    return parser


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _input_help(op: Op, item: Input) -> str:
    if item.host:
        return f"{item.doc} ({_SHAPED})"
    return f"{item.doc} ({item.shape or 'any shape'}; {type_names(op, item)})"


def _first_help(op: Op) -> str:
    named = next((item for item in op.inputs if item.name == "input"), None)
    return _escaped(_input_help(op, named)) if named else "the inputs that were not named, in order"


def read_arguments(op: Op, given: argparse.Namespace, sources: dict[str, list[str]]) -> dict[str, Any]:
    """The arguments of the call: files read, texts parsed. What cannot be read is reported together."""
    faults: list[Fault] = []
    values = _read(faults, parse_attrs, op, given.attrs) or {}
    for attr in op.attrs:
        text = getattr(given, attr.name)
        if text is not None:
            values[attr.name] = _read(faults, parse_attr, attr, text, op.name)
    for item in op.inputs:
        if item.name in sources:
            read = [_read(faults, _read_input, op, item, text, given.dtype) for text in sources[item.name]]
            values[item.name] = read if item.many else read[0]
    if faults:
        raise InvalidArgumentError(faults)
    return values


def _read(faults: list[Fault], parse: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return parse(*arguments)
    except VoxgradError as error:
        faults += error.faults
        return None


def _sources(op: Op, given: argparse.Namespace) -> dict[str, list[str]]:
    """Which file or text each input comes from: named ones first, the rest from --input in order."""
    named = {item.name: [text] for item in op.inputs if item.name != "input" and (text := getattr(given, item.name))}
    rest = list(given.input)
    for item in op.inputs:
        if item.name in named or not rest:
            continue
        named[item.name], rest = (rest, []) if item.many else (rest[:1], rest[1:])
    if rest:
        faults = Faults(op.name)
        faults.add("VG001", "--input", wanted=f"be given for {len(op.inputs)} inputs at most", got=f"{rest[0]} too")
        raise faults.error()
    return named


def _read_input(op: Op, item: Input, text: str, dtype: str | None) -> Any:
    is_file = is_volume_name(text)
    if item.host and not is_file:
        values = list(parse_ints(text, item.name, op.name))
        # One number without a list around it is a scalar, where the op can mean one.
        scalar = len(values) == 1 and text.strip().lstrip("+-").isdecimal() and item.shape[:2] in ("", "[]")
        return values[0] if scalar else values
    if item.host:
        return read_file(text)
    if not is_file and text[:1] in "{[-+.0123456789":
        return parse_value(text, parse_type(dtype) if dtype else None, item.name, op.name)
    source = read_file(text) if is_array_file(text) else open_volume(text)
    stored = source.dtype
    kind = numpy_type(parse_type(dtype, "--dtype", op.name)) if dtype else _type_for(op, item, stored)
    if dtype is None:
        tell_type(text, stored, kind)
    return source.astype(kind).read() if isinstance(source, Store) else source.astype(kind, copy=False)


def _type_for(op: Op, item: Input, stored: Any) -> Any:
    """As a chunked run reads it; ordinary ops say themselves what they do not take."""
    return read_type(op, item, stored) if op.problem is not None or item.layout == "data" else stored


def _written_type(op: Op, given: argparse.Namespace, sources: dict[str, list[str]]) -> Any:
    """The type of the result's file: what was asked for, else that of integers whose maxima they are."""
    if given.output_dtype is not None:
        return np.dtype(numpy_type(parse_type(given.output_dtype, "--output-dtype", op.name)))
    if given.dtype is not None or op.problem is None or any(not is_volume_name(one) for [one] in sources.values()):
        return None
    return result_type(op, {item.name: open_volume(sources[item.name][0]).dtype for item in op.inputs if not item.host})


def _space(text: str) -> Space:
    """Where the voxels of an input lie; arrays and values as text do not say."""
    is_text = not Path(text).exists() and not is_volume_name(text)
    return NOWHERE if is_text or is_array_file(text) else open_volume(text).space
