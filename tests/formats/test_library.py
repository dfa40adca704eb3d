# SPDX-License-Identifier: Apache-2.0
"""Pages that are kept to be used as blocks: copied where they are used, told where there is a newer version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.cli import main
from voxgrad.formats import page_file
from voxgrad.formats.library import version_of

X = np.array([[1.0, 2.0]], np.float32)


def scaled(factor: float = 2.0) -> vg.Page:
    page = vg.Page("scaled")
    x = vg.ops.Placeholder(page, dtype="float32", shape=["N", 2], name="x")
    vg.ops.Mul(page, x, factor, name="y")
    return page


def user(library: vg.Library) -> vg.Page:
    page = vg.Page("user")
    x = vg.ops.Const(page, X, name="x")
    layer = page.use(library.page("scaled"), {"x": x}, name="layer")
    vg.ops.Neg(page, layer.output("y"), name="out")
    return page


def test_a_page_is_kept_and_used_as_a_block(tmp_path: Path) -> None:
    library = vg.Library(tmp_path / "library")
    assert library.entries() == []
    kept = library.keep(scaled())
    assert (kept.name, list(kept.inputs), list(kept.outputs)) == ("scaled", ["x"], ["y"])
    page = user(library)
    assert vg.ClientSession(page).run("out").tolist() == [[-2.0, -4.0]]
    assert str(page["layer"].output("y").shape) == "(1, 2)" and page.problems() == []
    (tmp_path / "library" / "scaled.vox.json").unlink()
    again = page_file.loads(page_file.dumps(page))
    assert vg.ClientSession(again).run("out").tolist() == [[-2.0, -4.0]], "a page needs no library"
    origin = again.pages["scaled"].origin
    assert origin is not None and (origin.name, origin.version) == ("scaled", kept.version)
    with pytest.raises(vg.InvalidArgumentError, match="VG050 Library: name must be one of none"):
        library.page("scaled")


def test_a_newer_version_is_told_and_put_in_place_by_one_edit(tmp_path: Path) -> None:
    library = vg.Library(tmp_path)
    library.keep(scaled())
    page = user(library)
    assert library.newer(page) == []
    newer = scaled(3.0)
    newer.expose({"was": newer["x"].output(0), "y": newer["y"].output(0)})
    with pytest.raises(vg.InvalidArgumentError, match="VG060"):
        library.keep(newer)
    library.keep(newer, replace=True)
    (found,) = library.newer(page)
    assert found.code == "VG085" and found.block == "layer" and found.fix is not None
    assert found.fix.title == "Update scaled from the library"
    before = page.to_dict()
    page.apply(found.fix)
    assert vg.ClientSession(page).run("out").tolist() == [[-3.0, -6.0]], "wires follow their pins by name"
    assert library.newer(page) == [] and page.problems() == []
    assert vg.Page.from_dict(before).to_dict() == before


def test_what_was_changed_in_a_page_is_not_lost_silently(tmp_path: Path) -> None:
    library = vg.Library(tmp_path)
    library.keep(scaled())
    page = user(library)
    page.pages["scaled"].set_value("y", "y", 5.0)
    assert library.newer(page) == [], "only the page was changed"
    library.keep(scaled(3.0), replace=True)
    (found,) = library.newer(page)
    assert found.fix is not None and "changed in it here is lost" in found.fix.title
    page.pages["scaled"].set_value("y", "y", 3.0)


def test_large_constants_travel_along(tmp_path: Path) -> None:
    library, inner = vg.Library(tmp_path / "library"), vg.Page("large")
    table = np.arange(20000, dtype=np.float32)
    x = vg.ops.Placeholder(inner, dtype="float32", shape=[20000], name="x")
    vg.ops.Mul(inner, x, table, name="y")
    library.keep(inner)
    assert (tmp_path / "library" / "large.data").is_dir()
    page = vg.Page("user")
    page.use(library.page("large"), {"x": vg.ops.OnesLike(page, vg.ops.Const(page, table))}, name="layer")
    page.save(tmp_path / "user.vox.json")
    for path in (tmp_path / "library" / "large.data").iterdir():
        path.unlink()
    assert (vg.ClientSession(vg.Page.load(tmp_path / "user.vox.json")).run("layer.y") == table).all()


def test_where_blocks_stand_is_no_other_version(tmp_path: Path) -> None:
    library, page = vg.Library(tmp_path), scaled()
    before = library.keep(page)
    using = user(library)
    page.move("y", 300, 40)
    page.notes.append({"text": "What it does.", "position": [0, 0]})
    after = library.keep(page)
    assert after.version == before.version and after.about == "What it does."
    assert library.newer(using) == []


def test_pins_that_are_gone_lose_their_wires_alone(tmp_path: Path) -> None:
    library = vg.Library(tmp_path)
    library.keep(scaled())
    page = user(library)
    other = vg.Page("scaled")
    vg.ops.Neg(other, vg.ops.Placeholder(other, dtype="float32", name="z"), name="w")
    library.keep(other, replace=True)
    page.apply(library.newer(page)[0].fix)
    assert page["layer"].sources == {} and page["out"].sources == {}
    assert page["layer"].input_names == ("z",) and page["layer"].output_names == ("w",)


def test_folders_stand_behind_each_other(tmp_path: Path) -> None:
    own, shared = vg.Library(tmp_path / "own"), vg.Library(tmp_path / "shared")
    shared.keep(scaled(7.0))
    shared.keep(scaled(5.0), "other")
    both = vg.Library(tmp_path / "own", tmp_path / "shared")
    both.keep(scaled(2.0))
    assert [one.name for one in both.entries()] == ["other", "scaled"]
    assert version_of(both.page("scaled")) == version_of(own.page("scaled")) != version_of(shared.page("scaled"))
    (tmp_path / "own" / "broken.vox.json").write_text("{")
    (broken,) = (one for one in both.entries() if one.error)
    assert broken.name == "broken" and "VG053" in broken.error
    for name in ("../up", ".hidden", "a/b", "", "a:b", " x"):
        with pytest.raises(vg.InvalidArgumentError, match="VG061"):
            both.keep(scaled(), name or " ")


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    scaled().save(tmp_path / "elsewhere" / "scaled.vox.json")
    (tmp_path / "library").symlink_to(tmp_path / "elsewhere")
    found = vg.Library.beside(tmp_path)
    assert found.entries() == []
    with pytest.raises(vg.VoxgradError, match="VG056"):
        found.keep(scaled(3.0), replace=True)
    named = vg.Library(tmp_path / "own")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "scaled.vox.json").symlink_to(tmp_path / "elsewhere" / "scaled.vox.json")
    assert named.entries() == []
    with pytest.raises(vg.VoxgradError, match="VG056"):
        named.keep(scaled(3.0), replace=True)
    assert version_of(vg.Page.load(tmp_path / "elsewhere" / "scaled.vox.json")) == version_of(scaled())


def test_the_command_keeps_adds_and_updates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scaled().save(tmp_path / "scaled.vox.json")
    vg.Page("empty").save(tmp_path / "page.vox.json")
    folder = ["--folder", str(tmp_path / "library")]
    assert main(["library", "keep", str(tmp_path / "scaled.vox.json"), *folder]) == 0
    assert main(["library", "add", str(tmp_path / "page.vox.json"), "scaled", *folder]) == 0
    vg.Library(tmp_path / "library").keep(scaled(3.0), replace=True)
    assert main(["library", "update", str(tmp_path / "page.vox.json"), *folder]) == 0
    assert main(["library", "list", *folder]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1:3] == ["scaled", "Update scaled from the library"] and said[3].endswith(": x -> y")
    page = vg.Page.load(tmp_path / "page.vox.json")
    assert version_of(page.pages["scaled"]) == version_of(scaled(3.0))
