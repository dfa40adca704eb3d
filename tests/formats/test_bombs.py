# SPDX-License-Identifier: Apache-2.0
"""Small files that state large things: opening, checking and drawing a page costs what its file holds."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.catalog.dims import Dim
from voxgrad.formats import page_file
from voxgrad.formats.enuspace import import_page
from voxgrad.formats.graphdef.convert import convert
from voxgrad.formats.picture import draw_svg

Document = dict[str, Any]
SECONDS = 5.0
"""Of the processor; each of these took minutes, or all memory."""


def document(blocks: list[Document], **more: Any) -> Document:
    return {"format": page_file.FORMAT, "version": page_file.VERSION, "name": "p", "blocks": blocks, **more}


def checked(data: Document | str) -> list[str]:
    """What `voxgrad check` finds."""
    try:
        page = page_file.loads(data if isinstance(data, str) else json.dumps(data))
    except vg.VoxgradError as error:
        return [fault.code for fault in error.faults]
    page.warnings()
    page.infer().as_dict()
    return [problem.code for problem in page.problems()]


def open_shape(name: str, *shape: Any) -> Document:
    return {"name": name, "op": "Placeholder", "attrs": {"dtype": "float32", "shape": list(shape)}}


def pages(level: int, uses: int) -> Document:
    if not level:
        return {"name": "p", "blocks": [{"name": "a", "op": "Const", "attrs": {"value": 1.0, "dtype": "float32"}}]}
    blocks = [{"name": f"u{at}", "page": "inner"} for at in range(uses)]
    return {"name": "p", "blocks": blocks, "pages": {"inner": pages(level - 1, uses)}}


def doubled(first: Document, count: int) -> list[Document]:
    """Each block is the one before it, twice."""
    return [first] + [
        {"name": f"c{at + 1}", "op": "ConcatV2",
         "inputs": {"values": [{"from": f"c{at}.output"}] * 2, "axis": [{"value": 0}]}} for at in range(count)
    ]  # fmt: skip


def squared(first: Document, count: int) -> list[Document]:
    """Each block is the one before it, as often as that is long."""
    made = [first]
    for at in range(count):
        made.append({"name": f"s{at}", "op": "Shape", "inputs": {"input": [{"from": f"c{at}.output"}]}})
        inputs = {"input": [{"from": f"c{at}.output"}], "multiples": [{"from": f"s{at}.output"}]}
        made.append({"name": f"c{at + 1}", "op": "Tile", "inputs": inputs})
    return made


def product_of_sums(rank: int) -> list[Document]:
    """A tensor each of whose sizes is a sum of two, made flat: 2**rank terms."""
    made = [open_shape("c0", *(f"A{at}" for at in range(rank)))]
    for at in range(rank):
        made.append(open_shape(f"q{at}", *(f"B{at}" if axis == at else None for axis in range(rank))))
        inputs = {"values": [{"from": f"c{at}.output"}, {"from": f"q{at}.output"}], "axis": [{"value": at}]}
        made.append({"name": f"c{at + 1}", "op": "ConcatV2", "inputs": inputs})
    flat = {"tensor": [{"from": f"c{rank}.output"}], "shape": [{"value": [-1]}]}
    return [*made, {"name": "flat", "op": "Reshape", "inputs": flat}]


BOMBS: dict[str, Callable[[], tuple[Document | str, set[str]]]] = {
    "pages of pages": lambda: (document([]) | pages(8, 6), {"VG021"}),
    "pages of many uses": lambda: (document([]) | pages(2, 400), {"VG021"}),
    "endless lists": lambda: (
        document([{"name": f"u{at}", "op": "Unpack", "attrs": {"num": 10**9}, "inputs": {"value": [{"value": 1.0}]}}
                  for at in range(100)]), {"VG003"}),
    "a long name of scopes": lambda: (document([{"name": "/".join("a" * 100_000), "op": "NoOp"}]), {"VG061"}),
    "a rank of 100,000": lambda: (
        document([open_shape("x", *[2] * 100_000)]
                 + [{"name": f"a{at}", "op": "AddV2", "inputs": {"x": [{"from": "x.output"}], "y": [{"value": [1, 2]}]}}
                    for at in range(1000)]), {"VG015"}),
    "sizes that double": lambda: (document(doubled(open_shape("c0", 2), 300)), {"VG015"}),
    "symbols that double": lambda: (document(doubled(open_shape("c0", "N"), 300)), set()),
    "values that double": lambda: (
        document(doubled({"name": "c0", "op": "Const", "attrs": {"value": [1, 2], "dtype": "int32"}}, 40)), set()),
    "sizes that are squared": lambda: (document(squared(open_shape("c0", 2), 60)), {"VG015"}),
    "symbols that are squared": lambda: (document(squared(open_shape("c0", "N"), 60)), set()),
    "a product of sums": lambda: (document(product_of_sums(24)), set()),
    "long numbers": lambda: (
        document([{"name": "s", "op": "Split", "attrs": {"num_split": int("9" * 4000)}},
                  {"name": "a", "op": "Relu", "inputs": {"features": [{"from": f"s.output[{'9' * 5000}]"}]}},
                  {"name": "b", "op": "Relu", "inputs": {"features": [{"from": f"s.{'9' * 5000}"}]}}]), {"VG050"}),
    "long texts": lambda: (
        document([{"name": "c", "op": "Const", "attrs": {"value": "x" * 4_000_000, "dtype": "string"}},
                  {"name": "d", "op": "X" * 1_000_000}]), {"VG050"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_page_cannot_state_endless_work(name: str) -> None:
    data, codes = BOMBS[name]()
    begun = time.process_time()
    assert set(checked(data)) == codes
    assert time.process_time() - begun < SECONDS


def rings(count: int) -> list[Document]:
    """A ring of all blocks, and a wire from each to some other."""
    names = [[f"b{at * 7919 % count}", f"b{(at + 1) % count}"] for at in range(count)]
    return [
        {"name": f"b{at}", "op": "AddN", "inputs": {"inputs": [{"from": f"{one}.sum"} for one in both]}}
        for at, both in enumerate(names)
    ]


GROWING: dict[str, Callable[[int], Document | str]] = {
    "unknown entries": lambda n: document([{"name": f"b{at}", "op": "NoOp", "zz": 1} for at in range(n)]),
    "wires from nowhere": lambda n: document(
        [{"name": f"b{at}", "op": "Relu", "inputs": {"features": [{"from": f"no{at}.y"}]}} for at in range(n)]),
    "missing wires": lambda n: document([{"name": f"b{at}", "op": "Relu"} for at in range(n)]),
    "a key twice": lambda n: "{" + ",".join(f'"k{at}":1' for at in range(8 * n)) + f',"k{8 * n - 1}":2}}',
    "unknown ops": lambda n: document([{"name": f"b{at}", "op": f"Unknown{at}"} for at in range(n)]),
    "names of scopes": lambda n: document(
        [{"name": name, "op": "NoOp"} for at in range(n) for name in (f"s{at}/x", f"s{at}")]),
    "one waits for all": lambda n: document(
        [{"name": f"b{at}", "op": "NoOp"} for at in range(n)]
        + [{"name": "last", "op": "NoOp", "control": [f"b{at}" for at in range(n)]}]),
    "rings": lambda n: document(rings(n)),
    "wires to one pin": lambda n: document(
        [open_shape("x", "N"), {"name": "a", "op": "AddN", "inputs": {"inputs": [{"from": "x.output"}] * n}}]),
    "unknown outputs": lambda n: document(
        [{"name": "u", "op": "Mystery"},
         {"name": "a", "op": "AddN", "inputs": {"inputs": [{"from": f"u.o{at}"} for at in range(n)]}}]),
}  # fmt: skip


def steps(work: Callable[[], Any]) -> int:
    """How many calls some work makes, of Python's functions and of C's."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    work()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", GROWING)
def test_work_grows_with_the_file(name: str) -> None:
    make = GROWING[name]
    small, large = make(300), make(1200)
    assert steps(lambda: checked(large)) < 5 * steps(lambda: checked(small))
    begun = time.process_time()
    checked(make(8000))
    assert time.process_time() - begun < SECONDS


def test_drawing_grows_with_the_page() -> None:
    def chain(count: int) -> vg.Page:
        page = vg.Page("chain")
        last = page.add("Placeholder", attrs={"dtype": "float32", "shape": [None]}).output(0)
        for _ in range(count):
            last = page.add("Relu", {"features": last}).output(0)
        return page

    small, large = chain(100), chain(400)
    assert steps(lambda: draw_svg(large)) < 6 * steps(lambda: draw_svg(small))


def test_a_long_symbolic_size_is_a_symbol() -> None:
    size: Any = 1
    for at in range(40):
        size = size * (Dim(f"a{at}") + Dim(f"b{at}"))
    assert len(str(size)) < 10_000
    other: Any = Dim("x")
    for at in range(100):
        other = (other + Dim(f"y{at}")) // 3
    assert len(str(other)) < 10_000
    assert hash(other) and other == other + 0


def varint(number: int) -> bytes:
    made = b""
    while number >= 0x80:
        made, number = made + bytes([number & 0x7F | 0x80]), number >> 7
    return made + bytes([number])


def field(key: int, data: bytes | int) -> bytes:
    if isinstance(data, int):
        return varint(key << 3) + varint(data)
    return varint(key << 3 | 2) + varint(len(data)) + data


def constant(name: str, count: int, *values: float) -> bytes:
    sizes = field(2, field(2, field(1, count)))
    given = b"".join(field(5, np.float32(value).tobytes()) for value in values)
    tensor = field(1, 1) + sizes + given
    attrs = b"".join(
        field(5, field(1, key) + field(2, value))
        for key, value in ((b"dtype", field(6, 1)), (b"value", field(8, tensor)))
    )
    return field(1, field(1, name.encode()) + field(2, b"Const") + attrs)


@pytest.mark.parametrize("values", [(), (1.0,), (1.0, 2.0)])
def test_a_graph_of_few_bytes_cannot_fill_the_memory(values: tuple[float, ...]) -> None:
    begun = time.process_time()
    tracemalloc.start()
    with pytest.raises(vg.VoxgradError, match="VG053"):
        convert(constant("c", 2**28, *values), "g.pb", "g")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    with pytest.raises(vg.VoxgradError, match="VG053"):
        convert(b"".join(constant(f"c{at}", 2**20, *values) for at in range(2000)), "g.pb", "g")
    assert time.process_time() - begun < SECONDS
    page, _ = convert(constant("c", 1000, *values), "g.pb", "g")
    filled = np.full(1000, values[-1] if values else 0.0, np.float32)
    filled[: len(values)] = values
    np.testing.assert_array_equal(page["c"].attrs["value"], filled)


def test_a_graph_of_unknown_nodes_is_read_in_time() -> None:
    def graph(count: int) -> bytes:
        return b"".join(
            field(1, field(1, b"n%d" % at) + field(2, b"Unknown%d" % at) + field(3, b"^n%d" % max(0, at - 1)))
            for at in range(count)
        )

    small, large = graph(300), graph(1200)
    assert steps(lambda: convert(large, "g", "g")) < 5 * steps(lambda: convert(small, "g", "g"))
    begun = time.process_time()
    page, report = convert(graph(8000), "g.pb", "g")
    assert len(report.lost) == 8000
    assert len(page.problems()) >= 8000
    assert time.process_time() - begun < SECONDS


def sheet(path: Path, count: int) -> Path:
    uses = "".join(f'<use id="b{at}" href="#Mystery{at}" type="tensorflow"/>' for at in range(count))
    gadgets = "".join(f'<use id="g{at}" href="#Trend" type="other"/>' for at in range(count))
    links = "".join(
        f'<pg-link id="l{at}" from-id="b{at}" param-from="y" to-id="g{at}" param-to="x"/>' for at in range(count)
    )
    texts = "<text>" + "a<x/>" * count + "</text>"
    path.write_text(f"<svg>{uses}{gadgets}{links}{texts}</svg>")
    return path


def test_a_sheet_of_many_blocks_is_read_in_time(tmp_path: Path) -> None:
    small, large = sheet(tmp_path / "a.svg", 200), sheet(tmp_path / "b.svg", 800)
    assert steps(lambda: import_page(large)) < 5 * steps(lambda: import_page(small))
    begun = time.process_time()
    found = import_page(sheet(tmp_path / "c.svg", 4000))
    found.page.problems()
    assert time.process_time() - begun < 2 * SECONDS
