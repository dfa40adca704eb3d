# SPDX-License-Identifier: Apache-2.0
"""Exit codes, and the one place where an error becomes a line on the terminal and a code."""

from __future__ import annotations

import json
import sys

from voxgrad.errors import CancelledError, VoxgradError

OK = 0
WRONG = 1
USAGE = 2
FILE = 3
MISSING = 4
CANCELLED = 130

EPILOG = """exit codes:
  0    done
  1    the page or the call is wrong; every fault is listed on standard error
  2    the command line is wrong
  3    a file could not be read or written, or is not what it should be
  4    an optional package is missing; the message says which
  130  stopped by the user
"""

_FILE_CODES = ("VG051", "VG053", "VG056")


class MissingPackage(Exception):  # noqa: N818 - a state of the installation, not a fault of the call
    """An optional package that a command needs."""


def report(error: VoxgradError, as_json: bool = False) -> int:
    """Print the faults of an error; the exit code for it."""
    if as_json:
        print(json.dumps({"faults": [fault.as_dict() for fault in error.faults]}, indent=1), file=sys.stdout)
    else:
        for fault in error.faults:
            print(f"error: {fault}", file=sys.stderr)
    return code_of(error)


def code_of(error: VoxgradError) -> int:
    """The exit code for an error."""
    if isinstance(error, CancelledError):
        return CANCELLED
    code = error.faults[0].code if error.faults else ""
    return FILE if code in _FILE_CODES else MISSING if code == "VG070" else WRONG
