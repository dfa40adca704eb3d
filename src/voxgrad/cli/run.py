# SPDX-License-Identifier: Apache-2.0
"""`voxgrad run`: run a page and show what came out."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import dtype_of
from voxgrad.catalog import dtypes
from voxgrad.cli import chunked, events, exits, modes
from voxgrad.cli.pages import add_page, open_page
from voxgrad.cli.progress import ProgressLine
from voxgrad.cli.report import reporting
from voxgrad.cli.show import describe, tell_lost
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.tensor_files import is_array_file, write_npz
from voxgrad.formats.text import parse_value
from voxgrad.formats.text.tables import is_table
from voxgrad.graph.block import Block, Output
from voxgrad.graph.lint import left_out
from voxgrad.graph.modes import silent
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.volumes.grids import space_on_page
from voxgrad.volumes.space import Space
from voxgrad.volumes.stores import is_volume_name, open_volume, read_file, write_file

Array = np.ndarray[Any, Any]
CHUNKS = (128, 128, 128)
Results = dict[str, dict[str, Array]]

DESCRIPTION = """\
Run a page: its outputs are computed, its targets executed, its variables kept over the cycles.

  voxgrad run page.vox.json                                  results for people
  voxgrad run page.vox.json --feed x=scan.nii.gz --fetch dx  feed a placeholder, compute one output
  voxgrad run train.vox.json --cycles 100 --save out.npz     a training loop
  voxgrad run train.vox.json --cycles forever --period 0.5   a cycle every half second, until Ctrl-C
  voxgrad run train.vox.json --step                          cycle by cycle, with the results of each
  voxgrad run page.vox.json --report run.html                picture, values, times and problems in one file
  voxgrad run train.vox.json --cycles 100 --events runs/a    what summary blocks make, for tensorboard --logdir runs
  voxgrad run page.vox.json --json                           {"blocks": {block: {output: {dtype, shape, values}}}}
  voxgrad run page.vox.json --volume x=scan.zarr --output y=features.zarr --fetch loss --chunks 128,128,128
                                                             a volume larger than memory, chunk by chunk
  voxgrad run page.vox.json --volume x=scan.zarr --fetch y --memory 2GiB --plan
                                                             which chunks fit, and what the run would take

Without --fetch the page's own outputs are computed, or every block where it names none. Its targets always run.
Blocks read and write files in files/ beside the page and nowhere else, unless --allow-files names more.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad run`."""
    add_page(parser)
    parser.add_argument("--feed", action="append", default=[], metavar="NAME=FILE", help="a file, or a value as text")
    parser.add_argument(
        "--fetch", action="append", default=[], metavar="NAME", help="block or block.output; repeatable"
    )
    modes.add_arguments(parser)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default cpu)")
    parser.add_argument(
        "--save", metavar="FILE", help="write the results of the last cycle: all to .npz, one to any volume"
    )
    parser.add_argument("--json", action="store_true", help="the results of the last cycle as JSON")
    parser.add_argument("--all", action="store_true", help="show every block, not only the outputs")
    parser.add_argument("--report", metavar="FILE.html", help="write a report of the run there, in one file")
    parser.add_argument("--events", metavar="FOLDER", help="write what summary blocks make there, for TensorBoard")
    parser.add_argument("--why", action="store_true", help="say for every block whether and why it ran")
    group = chunked.add_arguments(parser, device=False)
    group.add_argument(
        "--volume", action="append", default=[], metavar="NAME=FILE", help="a placeholder that is read chunk by chunk"
    )
    group.add_argument(
        "--output", action="append", default=[], metavar="[NAME=]FILE", help="where a result goes that is a volume"
    )


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Run the page and print, save or both."""
    if arguments.volume or arguments.output or chunked.is_asked_for(arguments):
        return run_over_volumes(arguments)
    page = open_page(arguments)
    idle = {block.name for block in left_out(page.infer())}
    for warning in (*page.warnings(), *(one for one in page.problems() if one.block in idle)):
        print(f"warning: {warning}", file=sys.stderr)
    wanted = [page.output(name) for name in arguments.fetch]
    for output, muted in silent(page).items() if not wanted else ():
        if output in page.outputs.values():
            print(f"warning: {output.path} is not computed: it needs {muted}, which is muted", file=sys.stderr)
    feeds = read_feeds(page, arguments.feed)
    pace = modes.Pace.of(arguments)
    every = arguments.json or arguments.all or not page.outputs
    with (
        ProgressLine(arguments.cycles or 0, False if pace is not None and pace.shows else None) as progress,
        reporting(arguments.report, page, ClientSession(page, arguments.device)) as session,
        events.logging(arguments.events, page, session),
    ):
        session.on_progress = progress
        if pace is None:
            results = run_page(session, wanted, feeds, arguments.cycles, progress, every)
        else:
            results = pace.run(
                lambda: run_page(session, wanted, feeds, every=every),
                lambda found: print(_shown(page, arguments, wanted, found)),
            )
    if arguments.save:
        _save(page, arguments, wanted, results)
    if arguments.json:
        print(json.dumps({"blocks": as_json(results)}))
    elif (not arguments.save or arguments.all) and not (pace is not None and pace.shows):
        print(_shown(page, arguments, wanted, results))
    if arguments.why:
        print("\n".join(map(str, session.report)))
    return exits.OK


def _shown(page: Page, arguments: argparse.Namespace, wanted: list[Output], results: Results) -> str:
    """Results for people: the outputs, each under its name, or every block."""
    shown = _flat(results if arguments.all else _outputs_only(page, wanted, results))
    names = {output.path: name for name, output in page.outputs.items() if name != output.block.name}
    titles = {path: f"{names[path]} ({path})" if path in names else path for path in shown}
    return "\n".join(line for path, value in shown.items() for line in describe(titles[path], value))


def _save(page: Page, arguments: argparse.Namespace, wanted: list[Output], results: Results) -> None:
    """Write the results: all of them into a .npz file, or one of them into a file of any format, at its place."""
    name = arguments.save
    if is_array_file(name) and not name.endswith(".npy"):
        write_npz(Path(name), _flat(results))
        return
    shown = _outputs_only(page, wanted, results)
    if len(_flat(shown)) != 1:
        listed = ", ".join(_flat(shown)) or "none"
        remedy = "Choose one with --fetch, or write them all with --save out.npz."
        raise InvalidArgumentError(
            Fault("VG052", "run", "--save", f"name one result, for {name} holds one", listed, remedy)
        )
    ((block, pins),) = shown.items()
    ((pin, value),) = pins.items()
    output = page.output(f"{block}.{pin}")
    space = _space_of(page, output, arguments.feed)
    write_file(name, value, space)
    tell_lost(name, space)


def _space_of(page: Page, output: Output, feeds: list[str]) -> Space:
    """Where a result lies, from the files that were fed and those of Volume blocks."""
    files = dict(_pair("--feed", text) for text in feeds)
    return space_on_page(
        page, output, {name: open_volume(file) for name, file in files.items() if is_volume_name(file)}
    )


def run_over_volumes(arguments: argparse.Namespace) -> int:
    """Run the page chunk by chunk; results go to files, sums over the volumes are shown or saved."""
    from voxgrad.volumes.job import Job

    for name, given in (("--report", arguments.report), ("--events", arguments.events)):
        if given is not None:
            wanted = "be left out of a run over volumes, which keeps no values of blocks"
            raise InvalidArgumentError(Fault("VG052", "run", name, wanted, given))
    page = open_page(arguments)
    outputs = dict(_named(page, text) for text in arguments.output)
    fetches = arguments.fetch or ([] if outputs else list(page.outputs))
    feeds = {output.path: value for output, value in read_feeds(page, arguments.feed).items()}
    volumes = dict(_pair("--volume", text) for text in arguments.volume)
    job = Job.make(page, volumes, feeds, outputs, fetches, CHUNKS, arguments.device)
    found = chunked.go(job, arguments, None)
    if found is None:
        return exits.OK
    values = {output.path: value for output, value in found.items() if output not in job.outputs}
    if arguments.save:
        if not arguments.save.endswith(".npz"):
            remedy = "Volumes go to files with --output NAME=FILE."
            raise InvalidArgumentError(Fault("VG052", "run", "--save", "be a .npz file", arguments.save, remedy))
        write_npz(Path(arguments.save), values)
    elif arguments.json:
        print(json.dumps({"outputs": {path: tensor_as_json(value) for path, value in values.items()}}))
    else:
        shown = [line for path, value in values.items() for line in describe(path, value)]
        print("\n".join([*shown, *(f"{output.path}: {path}" for output, path in job.outputs.items())]))
    return exits.OK


def _pair(argument: str, text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found:
        raise InvalidArgumentError(Fault("VG052", "run", argument, "be NAME=FILE", repr(text)))
    return name, value


def _named(page: Page, text: str) -> tuple[str, str]:
    """A result and its file; where the page has one result, its name can be left out."""
    if "=" in text or len(page.outputs) != 1:
        return _pair("--output", text)
    return next(iter(page.outputs)), text


def read_feeds(page: Page, texts: list[str]) -> dict[Output, Any]:
    """Feeds by output: the array of a file, or a value as text in the type of the placeholder."""
    feeds: dict[Output, Any] = {}
    for text in texts:
        name, found, value = text.partition("=")
        if not found:
            fault = Fault("VG052", "run", "--feed", "be NAME=FILE or NAME=VALUE", repr(text))
            raise InvalidArgumentError(fault)
        output = page.output(name)
        is_file = is_volume_name(value) or is_table(value)
        feeds[output] = read_file(value) if is_file else parse_value(value, output.dtype, name, "--feed")
    return feeds


class _Cycle:
    """The values of the blocks that ran in the current cycle; what a branch that was not taken left before is gone."""

    def __init__(self, progress: ProgressLine | None):
        self.values: dict[str, list[Array | None]] = {}
        self.progress = progress
        self.over = False
        self.told: Callable[[str, list[Array | None]], None] | None = None
        """Who else wants to know."""

    def take(self, name: str, values: list[Array | None]) -> None:
        """A block has run."""
        if self.told is not None:
            self.told(name, values)
        if self.over:
            self.values.clear()
            self.over = False
        self.values[name] = values

    def end(self, cycle: int, _: Any) -> None:
        """A cycle has ended."""
        self.over = True
        if self.progress is not None:
            self.progress.cycle = cycle + 1


def run_page(
    session: ClientSession,
    wanted: list[Output],
    feeds: dict[Output, Any],
    cycles: int = 1,
    progress: ProgressLine | None = None,
    every: bool = True,
) -> Results:
    """The results of the last cycle: of what is wanted, or of `every` block that ran."""
    page = session.page
    cycle = _Cycle(progress)
    fetches, targets = what_runs(page, wanted)
    if every and not wanted:
        cycle.told, session.on_values = session.on_values, cycle.take
    values = session.loop(cycles, fetches, feeds, targets, on_cycle=cycle.end)
    results: Results = {}
    if every and not wanted:
        started = {block.name for block in page.initializers}
        seen = cycle.values | {output.block.name: [np.asarray(value)] for output, value in feeds.items()}
        for block in page.blocks:
            if block.name in seen and block.name not in started:
                pairs = zip(block.output_names, seen[block.name], strict=False)
                results[block.name] = {pin: value for pin, value in pairs if value is not None}
    for output, value in zip(fetches, values, strict=True):
        results.setdefault(output.block.name, {}).setdefault(output.pin, value)
    return {name: pins for name, pins in results.items() if pins}


def what_runs(page: Page, wanted: list[Output]) -> tuple[list[Output], list[Block]]:
    """What a run of the page fetches and executes: what is wanted, or what the page names, else all that is wired.

    Handles of queues and readers are executed, not fetched: they have no value to show.
    """
    if not wanted and not page.outputs and not page.targets:
        idle = {*page.initializers, *left_out(page.infer())}
        return [], [block for block in page.blocks if block not in idle] or page.blocks
    without = silent(page)
    named = wanted or [one for one in page.outputs.values() if one not in without]
    handles = [one for one in named if one.dtype == dtypes.RESOURCE]
    return [one for one in named if one not in handles], [*page.targets, *(one.block for one in handles)]


def _outputs_only(page: Page, wanted: list[Output], results: Results) -> Results:
    """The outputs that the page names; without any, those that no other block reads."""
    if wanted:
        return results
    shown = list(page.outputs.values()) or [
        output for block in page.blocks if not block.readers for output in block.outputs
    ]
    found: Results = {}
    for output in shown:
        value = results.get(output.block.name, {}).get(output.pin)
        if value is not None:
            found.setdefault(output.block.name, {})[output.pin] = value
    return found or results


def _flat(results: Results) -> dict[str, Array]:
    return {f"{block}.{pin}": value for block, pins in results.items() for pin, value in pins.items()}


def as_json(results: Results) -> dict[str, Any]:
    """The results as data: type, shape and flat values in row-major order."""
    return {block: {pin: tensor_as_json(value) for pin, value in pins.items()} for block, pins in results.items()}


def tensor_as_json(array: Array) -> dict[str, Any]:
    """One tensor as data. Numbers that JSON does not have are the texts nan, inf and -inf."""
    dtype = dtype_of(array.dtype) or dtypes.STRING
    values = [_plain(item, dtype.itemsize) for item in array.ravel().tolist()]
    return {"dtype": dtype.name, "shape": list(array.shape), "values": values}


def _plain(item: Any, size: int) -> Any:
    if isinstance(item, bytes):
        return item.decode("utf-8", "backslashreplace")
    if isinstance(item, complex):
        return [_plain(item.real, size // 2), _plain(item.imag, size // 2)]
    if isinstance(item, float):
        if not math.isfinite(item):
            return str(item)
        return item if size == 8 else float(str(np.float32(item)))
    return item
