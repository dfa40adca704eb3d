# SPDX-License-Identifier: Apache-2.0
"""`voxgrad check`: everything that is wrong with a page, without running it."""

from __future__ import annotations

import argparse
import json
import sys

from voxgrad.cli import exits
from voxgrad.cli.pages import add_page, open_page, save_page
from voxgrad.graph.page import Page

DESCRIPTION = """\
Say everything that is wrong with a page, without running it; exit with 1 if there is something.
Warnings are what is allowed and most likely not meant; they do not count.

  voxgrad check page.vox.json                        problems, and how to fix them
  voxgrad check page.vox.json --fix -o fixed.vox.json    carry out the first fix of every problem
  voxgrad check page.vox.json --shapes               the type and shape of every output
"""
_MAX_ROUNDS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad check`."""
    add_page(parser)
    parser.add_argument("--fix", action="store_true", help="carry out the fixes that are known")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the fixed page goes (default: the page itself)")
    parser.add_argument("--shapes", action="store_true", help="list types and shapes")
    parser.add_argument("--json", action="store_true", help="problems as JSON")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Check, and fix where asked."""
    page = open_page(arguments)
    if arguments.fix:
        for title in fix_all(page):
            print(f"fixed: {title}", file=sys.stderr)
        save_page(page, arguments)
    problems, warnings = page.problems(), page.warnings()
    if arguments.json:
        told = {"problems": [one.as_dict() for one in problems], "warnings": [one.as_dict() for one in warnings]}
        print(json.dumps(told, indent=1))
        return exits.WRONG if problems else exits.OK
    for problem in (*problems, *warnings):
        print(f"warning: {problem}" if problem in warnings else problem)
        for fix in problem.fixes:
            print(f"    fix: {fix.title}")
    if arguments.shapes:
        print("\n".join(shapes(page)))
    if not problems:
        clean = f"no problems, {len(warnings)} to look at" if warnings else "no problems"
        print(f"{page.name}: {len(page)} blocks, {len(page.wires)} wires, {clean}; {costs(page)}")
    return exits.WRONG if problems else exits.OK


def fix_all(page: Page) -> list[str]:
    """Carry out the first fix of the first problem or warning that has one, until none is left; their titles."""
    done: list[str] = []
    for _ in range(_MAX_ROUNDS):
        found = (*page.problems(), *page.warnings())
        fix = next((problem.fix for problem in found if problem.fix is not None), None)
        if fix is None:
            break
        page.apply(fix)
        done.append(fix.title)
    return done


def shapes(page: Page) -> list[str]:
    """One line per output."""
    lines = []
    for block in page.blocks:
        for output in block.outputs:
            shape = "[...]" if output.shape is None else f"[{','.join(map(str, output.shape))}]"
            lines.append(f"{output.path}: {output.dtype or 'unknown type'} {shape}")
    return lines


def costs(page: Page) -> str:
    """What a run will need, in words."""
    estimate = page.estimate()
    flops = f"{estimate.flops:.3g}" if isinstance(estimate.flops, int) else str(estimate.flops)
    flops = flops if len(flops) < 60 else "an unknown number of"
    return f"about {estimate.peak_bytes / 2**20:.3g} MiB at most, {flops} floating-point operations"
