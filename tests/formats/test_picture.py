# SPDX-License-Identifier: Apache-2.0
"""Pictures are complete, readable, and hold the page that they show."""

from __future__ import annotations

import base64
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.test_page_file import make_page, same
from voxgrad.errors import VoxgradError
from voxgrad.formats import json_text
from voxgrad.formats.page_file import load, loads
from voxgrad.formats.picture import draw_png, draw_svg, embedded_page, font, with_page
from voxgrad.formats.picture.layout import arrange, lay_out
from voxgrad.formats.picture.palette import THEMES
from voxgrad.graph.page import Page

SVG = "{http://www.w3.org/2000/svg}"


def pixels(data: bytes) -> np.ndarray:
    """The pixels of a PNG, by an own reading of the format."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, packed, size = 8, b"", (0, 0)
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack_from(">I", data, at + 8 + length)[0]
        if kind == b"IHDR":
            size = struct.unpack_from(">II", body)
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(size[1], 1 + 3 * size[0])
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(size[1], size[0], 3)


def test_svg_shows_everything() -> None:
    page = make_page()
    root = ElementTree.fromstring(draw_svg(page))
    texts = " ".join("".join(element.itertext()) for element in root.iter(f"{SVG}text"))
    for block in page:
        assert block.name in texts
        assert (block.op_name or block.uses) in texts
    for part in ("padding: VALID", "ksize: {1,2,2,2,1}", "a = inf", "output float32[2,1,1,1,2]", "a note"):
        assert part in texts, part
    assert len(list(root.iter(f"{SVG}path"))) == len(page.wires) + sum(len(block.control) for block in page)
    assert not list(root.iter(f"{SVG}script"))


def test_pictures_drawn_elsewhere_take_the_page_in() -> None:
    page = make_page()
    for drawn in (draw_svg(Page("bare"), embed=False).encode(), draw_png(Page("bare"), embed=False)):
        made = with_page(drawn, page, "picture")
        same(loads(embedded_page(made, "picture").decode()), page)
    assert pixels(with_page(draw_png(page, embed=False), page, "picture")).shape == pixels(draw_png(page)).shape
    for wrong in (b"", b"<svg ", b"<html><svg >", b"\x89PN"):
        with pytest.raises(VoxgradError, match="SVG or PNG"):
            with_page(wrong, page, "picture")


def test_nothing_overlaps_and_nothing_leaves_the_picture() -> None:
    drawing = lay_out(make_page())
    boxes = drawing.boxes
    for index, one in enumerate(boxes):
        assert one.x >= 0 and one.x + one.width <= drawing.width
        assert one.y >= 0 and one.y + one.height <= drawing.height
        for two in boxes[index + 1 :]:
            apart = one.x + one.width <= two.x or two.x + two.width <= one.x
            assert apart or one.y + one.height <= two.y or two.y + two.height <= one.y


def test_stored_positions_keep_their_order() -> None:
    page = make_page()
    arrange(page)
    before = {block.name: block.position for block in page}
    assert all(before.values())
    drawing = lay_out(page)
    order = sorted(drawing.boxes, key=lambda box: box.x)
    wanted = sorted((block for block in page), key=lambda block: block.position or (0, 0))
    assert [box.x for box in order] == sorted(box.x for box in order)
    assert {box.title for box in order} == {block.name for block in wanted}


def test_hostile_names_stay_text() -> None:
    page = Page('<script>alert("1")</script> & co')
    page.add(
        "Const", attrs={"value": np.array([b"</text><script>"], dtype=object), "dtype": "string"}, name="<b> & 'c'"
    )
    page.notes.append({"text": "]]><script>\x07", "position": [0, 0]})
    root = ElementTree.fromstring(draw_svg(page))
    assert not list(root.iter(f"{SVG}script"))
    assert draw_png(page)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_picture_opens_as_its_page(tmp_path: Path, suffix: str) -> None:
    page = make_page()
    path = tmp_path / f"page.{suffix}"
    path.write_bytes(draw_svg(page).encode() if suffix == "svg" else draw_png(page))
    data = page.to_dict()
    data["blocks"][0]["position"] = [10.0, 20.46]
    assert same(load(path).to_dict(), data)


def test_a_picture_without_a_page_says_so(tmp_path: Path) -> None:
    page = make_page(large=False)
    for name, data in {"a.svg": draw_svg(page, embed=False).encode(), "a.png": draw_png(page, embed=False)}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(VoxgradError, match="a picture without one"):
            load(tmp_path / name)


def test_a_bomb_in_a_picture_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = base64.b64encode(zlib.compress(bytes(10**8), 9)).decode()
    with pytest.raises(VoxgradError, match="at most"):
        embedded_page(f'<svg><metadata id="voxgrad-page">{bomb}</metadata></svg>'.encode(), "bomb.svg")
    assert json_text.MAX_BYTES < 10**8


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_pictures_are_read_or_refused(data: st.DataObject) -> None:
    page = Page("small")
    page.add("Const", attrs={"value": np.arange(4), "dtype": "int64"}, name="c")
    raw = bytearray(draw_png(page, scale=1) if data.draw(st.booleans()) else draw_svg(page).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + 1] = data.draw(st.binary(max_size=2))
    try:
        loads(embedded_page(bytes(raw), "p.png"), "p.png")
    except VoxgradError as error:
        assert "p.png" in str(error)


def test_png_has_the_pixels_of_its_page() -> None:
    page = make_page(large=False)
    for theme, palette in THEMES.items():
        picture = pixels(draw_png(page, theme))
        packed = picture.astype(np.int32) @ [65536, 256, 1]
        found = set(np.unique(packed).tolist())
        for colour in (palette.page, palette.block, palette.text, palette.types["float"], palette.wrong):
            assert int(colour[1:], 16) in found


def contrast(one: str, two: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_colours_can_be_read(theme: str) -> None:
    palette = THEMES[theme]
    for text in (palette.text, palette.muted):
        assert contrast(text, palette.block) >= 4.5
        assert contrast(text, palette.head) >= 4.5
    assert contrast(palette.note, palette.page) >= 4.5
    for colour in (*palette.types.values(), palette.wrong):
        assert contrast(colour, palette.block) >= 4.5
        assert contrast(colour, palette.page) >= 3


def test_font_draws_letters() -> None:
    rows = ["".join(".#"[bit] for bit in row) for row in font.glyph("A").astype(int)]
    assert rows == [".###.", "#...#", "#...#", "#...#", "#####", "#...#", "#...#"]
    pictures = {font.glyph(chr(code)).tobytes() for code in range(32, 127)}
    assert len(pictures) == 95
    assert font.glyph("\u2202").any()


def test_notebooks_show_the_drawing() -> None:
    page = make_page()
    assert page._repr_svg_().startswith("<svg ")
    assert re.search(r"prefers-color-scheme", page._repr_svg_())


def test_an_empty_page_is_drawn() -> None:
    assert draw_svg(Page("empty"))
    assert pixels(draw_png(Page("empty"))).size


def test_rings_are_drawn() -> None:
    page = Page("ring")
    for name in ("a", "b"):
        page.add("Identity", name=name)
    page.connect("a.output", "b", "input")
    page.connect("b.output", "a", "input")
    assert len(lay_out(page).lines) == 2
