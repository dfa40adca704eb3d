# SPDX-License-Identifier: Apache-2.0
"""Displays in pictures show what a run gave: marks are measured against NumPy, pixels and texts are read back."""

from __future__ import annotations

import base64
import io
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest
from PIL import Image

import voxgrad as vg
from tests.grouped import grouped
from voxgrad.formats.picture import draw_png, draw_svg
from voxgrad.formats.picture.displays import draw_display, spoken
from voxgrad.formats.picture.marks import Mark
from voxgrad.formats.picture.palette import THEMES, style_colour
from voxgrad.formats.picture.scales import viridis, written
from voxgrad.graph.display_kinds import KINDS
from voxgrad.graph.displays import Shown
from voxgrad.graph.readings import Readings

SVG = "{http://www.w3.org/2000/svg}"
SIZE = (200.0, 160.0)


def marks(kind: str, value: Any, attrs: dict[str, Any] | None = None, size: tuple[float, float] = SIZE) -> list[Mark]:
    """The marks of a display of a value."""
    page = vg.Page("p")
    block = page.add("Placeholder", name="x")
    display = page.displays.add(kind, [block], attrs, size=size)
    readings = Readings()
    readings.take([Shown(block.output(0))], 0, np.asarray(value))
    return draw_display(display, readings)


def texts(found: list[Mark]) -> list[str]:
    return [mark.text for mark in found if mark.form == "text"]


def image(found: list[Mark]) -> np.ndarray:
    (mark,) = [mark for mark in found if mark.form == "image"]
    assert mark.pixels is not None
    return mark.pixels


def slid(value: Any, attrs: dict[str, Any] | None = None) -> list[Mark]:
    """The marks of a slider of a constant."""
    page = vg.Page("p")
    x = vg.ops.Const(page, value, name="x")
    return draw_display(page.displays.add("slider", [x], attrs, size=SIZE), Readings())


def test_a_slider_shows_where_its_number_lies() -> None:
    found = slid(np.float32(2.5), {"low": 2, "high": 4, "unit": "mm"})
    (knob,) = [mark for mark in found if mark.form == "circle"]
    track = next(mark for mark in found if mark.form == "line" and mark.style == "track")
    (left, _), (right, _) = track.points
    assert knob.points[0][0] == pytest.approx(left + (right - left) / 4)
    assert texts(found)[1:] == ["2", "4", "2.5 mm"]
    # All elements are set together, so they must be one number.
    assert any(mark.form == "circle" for mark in slid(np.full((2, 3), 0.5, np.float32)))
    for value in (np.float32([0, 1]), np.zeros(0, np.float32), np.float32("nan")):
        assert not any(mark.form == "circle" for mark in slid(value))


def test_a_slider_of_a_placeholder_shows_what_was_fed() -> None:
    found = marks("slider", np.float32(0.25))
    assert texts(found)[-1] == "0.25" and any(mark.form == "circle" for mark in found)


def trained(cycles: int) -> tuple[vg.Page, vg.ClientSession]:
    """w = [4, 1], times 0.5 in every cycle."""
    page = vg.Page("decay")
    w = vg.ops.Variable(page, shape=[2], dtype="float32", name="w")
    step = vg.ops.Assign(page, w, vg.ops.Mul(page, w, np.float32(0.5)), name="step")
    page.start_with([vg.ops.Assign(page, w, np.float32([4, 1]), name="first")])
    page.displays.add("trend", [step], {"title": "decay"}, size=(400, 200))
    session = vg.ClientSession(page)
    session.loop(cycles, ["step"])
    return page, session


def test_a_session_remembers_what_displays_show() -> None:
    page, session = trained(3)
    assert session.readings.over == {
        "step.output_ref[0]": [(0, 2.0), (1, 1.0), (2, 0.5)],
        "step.output_ref[1]": [(0, 0.5), (1, 0.25), (2, 0.125)],
    }
    assert session.readings.last["step.output_ref"].tolist() == [0.5, 0.125]
    assert "step[0]" in session._repr_svg_() and "step[0]" not in page._repr_svg_()
    session.forget()
    assert session.readings.over == {}


def test_what_a_nested_page_gives_is_shown() -> None:
    page, _ = trained(1)
    page.displays.remove("trend")
    x = vg.ops.Const(page, np.float32([3]), name="x")
    page.displays.add("value", [vg.ops.Neg(page, vg.ops.Square(page, x, name="s"), name="n")])
    page.fold(["s", "n"], "layer")
    session = vg.ClientSession(page)
    session.run("layer")
    assert session.readings.last == {"layer.n": np.float32([-9])}


@pytest.mark.parametrize("log", [False, True])
def test_curves_lie_where_their_numbers_are(log: bool) -> None:
    page, session = trained(8)
    page.displays.set_attr("trend", "log", log)
    found = draw_display(page.displays["trend"], session.readings)
    curves = [mark for mark in found if mark.form == "line" and mark.style.startswith("curve")]
    numbers = np.array([[number for _, number in curve] for curve in session.readings.over.values()])
    wanted = np.log(numbers) if log else numbers
    heights = np.array([[-y for _, y in curve.points] for curve in curves])
    # The same up to a shift and a scale.
    scaled = (heights - heights.min()) / (heights.max() - heights.min())
    np.testing.assert_allclose(scaled, (wanted - wanted.min()) / (wanted.max() - wanted.min()), atol=1e-9)
    assert {"7", "0", "step[0]", "step[1]", "2"} <= set(texts(found))
    page.displays.set_attr("trend", "span", 3)
    cut = draw_display(page.displays["trend"], session.readings)
    assert [len(one.points) for one in cut if one.form == "line" and one.style.startswith("curve")] == [3, 3]


def test_values_tables_gauges_and_lamps() -> None:
    assert "2.50 mm" in texts(marks("value", 2.5, {"format": "%.2f", "unit": "mm"}))
    assert "float32 [3]" in texts(marks("value", np.zeros(3, np.float32)))
    assert texts(marks("table", [[1, 2], [3, 4]]))[1:] == ["1", "2", "3", "4"]
    assert texts(marks("table", np.arange(99)))[-1] == "…"
    bars = [
        [mark for mark in marks("gauge", value, {"form": "bar", "high": 4.0}) if mark.form == "rect"]
        for value in (1, 9)
    ]
    widths = [[one.points[1][0] - one.points[0][0] for one in found[1:]] for found in bars]
    assert widths[0][1] / widths[0][0] == 0.25 and widths[1][1] == widths[1][0]
    lamps = [{mark.style for mark in marks("lamp", value) if mark.form == "circle"} for value in (0.6, 0.5, np.nan)]
    assert lamps == [{"lit"}, {"track"}, {"track"}]


def test_histograms_count() -> None:
    values = np.random.default_rng(3).normal(size=500)
    bars = [mark for mark in marks("histogram", values, {"bins": 10}) if mark.form == "rect"][1:]
    heights = np.array([bottom - top for mark in bars for (_, top), (_, bottom) in [mark.points]])
    counts, _ = np.histogram(values, 10)
    np.testing.assert_allclose(heights / heights.max(), counts[counts > 0] / counts.max())


def test_planes_and_volumes_are_their_values() -> None:
    volume = np.random.default_rng(1).uniform(size=(6, 8, 10))
    whole = (float(volume.min()), float(volume.max()))
    for axis, name in enumerate(("depth", "height", "width")):
        plane = np.take(volume, 2, axis=axis)
        ends = {"low": whole[0], "high": whole[1]}
        for shaped in (volume, volume[None, ..., None]):
            found = image(marks("slice", shaped, {"axis": name, "place": 2, **ends}))
            np.testing.assert_array_equal(found, viridis(plane, whole))
    heat = image(marks("heat", volume[0].reshape(-1), {"rows": 8, "scale": False}))
    np.testing.assert_array_equal(heat, viridis(volume[0], (float(volume[0].min()), float(volume[0].max()))))
    colour = np.random.default_rng(2).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    np.testing.assert_array_equal(image(marks("image", colour)), colour)
    # Seen from above, rays go along the depth.
    cube = np.zeros((9, 9, 9))
    cube[4, 2, 6] = 1.0
    seen = image(marks("volume", cube, {"tilt": 90, "turn": 0.0}))
    lit = np.argwhere((seen == viridis(np.ones(1), (0, 1))[0]).all(axis=2)).mean(axis=0) / (len(seen) - 1)
    at = (lit * 3 - 1.5 + 1) / 2 * 8
    np.testing.assert_allclose(at, [2, 6], atol=0.5)


def test_contours_run_between_low_and_high() -> None:
    """A ramp: every line is upright, at equal distances."""
    ramp = np.tile(np.arange(21.0), (15, 1))
    found = marks("heat", ramp, {"lines": 3, "scale": False})
    lines = [mark for mark in found if mark.form == "line" and mark.style == "panel"]
    (left, _), (right, _) = next(mark for mark in found if mark.form == "image").points
    columns = {round((x - left) / (right - left) * 21 - 0.5, 6) for mark in lines for x, _ in mark.points}
    assert columns == {5.0, 10.0, 15.0}


def test_terrains_and_points_are_seen_from_where_they_are_turned_to() -> None:
    bump = np.zeros((5, 5))
    bump[2, 2] = 1.0
    cells = [mark for mark in marks("surface", bump, {"tilt": 0.0, "turn": 0.0}) if mark.form == "area"]
    corners = np.array([point for mark in cells for point in mark.points])
    top = corners[corners[:, 1].argmin()]
    # From the side the bump stands in the middle, above everything else.
    assert top[0] == pytest.approx(corners[:, 0].mean()) and (corners[:, 1] > top[1] + 10).sum() > 50
    cloud = [[0, 0, 0, 1], [1, 1, 1, 2], [np.nan, 0, 0, 0]]
    dots = [mark for mark in marks("scatter", cloud, {"tilt": 90.0, "turn": 0.0}) if mark.form == "circle"]
    (x0, y0), (x1, y1) = (mark.points[0] for mark in dots)
    assert len(dots) == 2 and x1 - x0 == pytest.approx(y1 - y0) and x1 > x0


@grouped("kind", KINDS)
def test_every_kind_is_drawn_with_anything_and_with_nothing(kind: str) -> None:
    """Whatever a block gives, inside of the display's own room, as SVG that parses and as PNG that Pillow reads."""
    values = [
        None, np.float32(3), np.zeros((0, 3)), np.array([b"text", b"\x07"], object), np.full((2, 3), np.nan),
        np.array([1 + 2j]), np.arange(24, dtype=np.int64).reshape(2, 3, 4), np.ones((1, 4, 4, 4, 2), np.float16),
        np.array([True, False]), np.array([np.inf, -np.inf, 0]), np.zeros((1, 1)),
    ]  # fmt: skip
    for value in values:
        page = vg.Page("p")
        block = page.add("Placeholder", name="x")
        display = page.displays.add(kind, [block][: KINDS[kind].takes])
        readings = Readings()
        if value is not None:
            readings.take([Shown(block.output(0))], 0, value)
        for theme in THEMES:
            ElementTree.fromstring(draw_svg(page, theme, readings=readings))
        if value is None or value.ndim == 3:
            Image.open(io.BytesIO(draw_png(page, readings=readings))).load()
        assert "\n" not in spoken(display, readings)
        reach = [point for mark in draw_display(display, readings) for point in mark.points]
        assert all(-60 <= x <= display.size[0] + 60 and -60 <= y <= display.size[1] + 60 for x, y in reach)


def test_displays_stand_where_they_are_in_both_kinds_of_pictures() -> None:
    page = vg.Page("p")
    page.add("NoOp", name="a", position=(0.0, 0.0))
    page.displays.add("button", [], {"title": "Go"}, position=(300, 200), size=(120, 40))
    red = np.zeros((2, 2, 3), np.uint8)
    red[...] = (200, 10, 20)
    held = io.BytesIO()
    Image.fromarray(red).save(held, "PNG")
    page.displays.add(
        "picture", [], {"png": base64.b64encode(held.getvalue()).decode()}, position=(300, 300), size=(40, 40)
    )
    root = ElementTree.fromstring(draw_svg(page))
    box = next(one for one in root.iter(f"{SVG}rect") if "vd-track" in one.get("class", ""))
    block = next(one for one in root.iter(f"{SVG}rect") if "vg-box" in one.get("class", ""))
    assert float(box.get("x", 0)) - float(block.get("x", 0)) == 300
    assert float(box.get("y", 0)) - float(block.get("y", 0)) == 200
    drawn = np.asarray(Image.open(io.BytesIO(draw_png(page, "dark", 1))))
    x, y = round(float(box.get("x", 0))), round(float(box.get("y", 0)))
    assert drawn[y + 130, x + 10].tolist() == [200, 10, 20]
    wanted = style_colour(THEMES["dark"], "track")
    assert drawn[y + 5, x + 5].tolist() == [int(wanted[at : at + 2], 16) for at in (1, 3, 5)]


def test_numbers_are_written_as_formats_say() -> None:
    assert [written(np.float64(2.5), one) for one in ("%d", "%.3f", "%8.1e", "x %g y", "%5s|", "no", "%%", "%n")] == [
        "2", "2.500", " 2.5e+00", "x 2.5 y", "  2.5|", "2.5", "2.5", "2.5",
    ]  # fmt: skip
    assert (
        written(np.nan, "%d") == "nan" and written(b"a\xff", "%d") == "a�" and written(np.bool_(True), "%d") == "true"
    )
