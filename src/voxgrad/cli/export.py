# SPDX-License-Identifier: Apache-2.0
"""`voxgrad export`: a page as a program, or as a TensorFlow graph."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxgrad.cli import exits
from voxgrad.cli.pages import add_page, open_page
from voxgrad.formats.graphdef import export_graph
from voxgrad.formats.script import TARGETS, export_script, write_script
from voxgrad.formats.tensor_files import bad_file, replace_file

DESCRIPTION = """\
Write a page as a Python script that runs by itself, or as a TensorFlow graph.

  voxgrad export page.vox.json -o page.py                    with voxgrad
  voxgrad export page.vox.json --to tensorflow -o page_tf.py with tf.raw_ops
  voxgrad export page.vox.json --to graphdef -o page.pb      a GraphDef, for tf.import_graph_def

The script has a function run(cycles=1, feeds=None). Large constants go into a .npz file beside it.
"""

GRAPH = "graphdef"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad export`."""
    add_page(parser)
    parser.add_argument("--to", choices=[*TARGETS, GRAPH], default=TARGETS[0], help=f"default {TARGETS[0]}")
    parser.add_argument("-o", "--output", metavar="FILE", help="where it goes; without it, it is printed")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Write the script or the graph, or print the script."""
    page = open_page(arguments)
    if arguments.to == GRAPH:
        if not arguments.output:
            raise bad_file("-o", "name a file: a graph is no text", "nothing")
        replace_file(Path(arguments.output), export_graph(page))
    elif arguments.output:
        write_script(page, Path(arguments.output), arguments.to)
    else:
        print(export_script(page, arguments.to).text, end="")
    return exits.OK
