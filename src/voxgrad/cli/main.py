# SPDX-License-Identifier: Apache-2.0
"""The parser of the command line and the way from a command to its module."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from voxgrad.cli import exits
from voxgrad.errors import VoxgradError

COMMANDS = {
    "run": "run a page and show what came out",
    "sweep": "run a page with other values, point by point",
    "check": "say what is wrong with a page, without running it",
    "trace": "say where an element of a result comes from",
    "edit": "change a page: rename, fold, differentiate, set values, ...",
    "library": "keep pages as blocks for others, and put them there",
    "import": "bring a page or a project of enuSpace here",
    "export": "write a page as a Python script",
    "draw": "draw a page as SVG or PNG",
    "ops": "list the ops, or show the page of one",
    "apply": "run one op on array files",
    "info": "say what a volume holds, without reading it",
    "view": "look at a volume in the browser",
    "convert": "write a volume in another format",
    "watch": "show how far a chunked run is",
    "doctor": "say what this installation can do",
    "studio": "build, run and look at pages in the browser",
}
"""Every command with its line in `voxgrad --help`; the module `voxgrad.cli.<name>` adds its arguments and runs it."""

_MODULES = {"import": "import_"}

INTRODUCTION = """\
3-D convolution and pooling with all their gradients: single ops on files, and pages of wired blocks.

  voxgrad run page.vox.json                        run a page
  voxgrad ops                                      what there is
  voxgrad ops AvgPool3DGrad                        one op: arguments, types, an example, the edges
  voxgrad apply MaxPool3D --input scan.npy --ksize 1,2,2,2,1 --strides 1,2,2,2,1 --padding SAME --output half.npy
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = make_parser(next((one for one in given if not one.startswith("-")), ""))
    arguments, rest = parser.parse_known_args(given)
    if arguments.command is None:
        parser.print_help()
        return exits.OK
    module = _module(arguments.command)
    if rest and not getattr(module, "TAKES_REST", False):
        parser.error(f"unknown arguments: {' '.join(rest)} (see `voxgrad {arguments.command} --help`)")
    try:
        return _guarded(module.run, arguments, rest)
    except BrokenPipeError:
        # The reader of a pipe has seen enough; writing on at exit would raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK


def _guarded(run: object, arguments: argparse.Namespace, rest: list[str]) -> int:
    """Run a command; what it raises becomes lines on standard error and an exit code."""
    assert callable(run)
    try:
        code = run(arguments, rest)
        sys.stdout.flush()
        return int(code)
    except VoxgradError as error:
        return exits.report(error, getattr(arguments, "json", False))
    except exits.MissingPackage as error:
        print(f"error: {error}", file=sys.stderr)
        return exits.MISSING
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return exits.CANCELLED


def make_parser(command: str = "") -> argparse.ArgumentParser:
    """The parser with all commands; only the module of the one that was chosen is loaded."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("voxgrad", description=INTRODUCTION, epilog=exits.EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, line in COMMANDS.items():
        if name != command:
            commands.add_parser(name, help=line)
            continue
        module = _module(name)
        added = commands.add_parser(
            name,
            help=line,
            description=module.DESCRIPTION,
            epilog=exits.EPILOG,
            formatter_class=raw,
            add_help=not getattr(module, "TAKES_REST", False),
        )
        module.add_arguments(added)
    return parser


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"voxgrad.cli.{_MODULES.get(command, command)}")


def _version() -> str:
    from voxgrad import __version__

    return f"voxgrad {__version__}"
