# SPDX-License-Identifier: Apache-2.0
"""The page file: what is kept, what is refused and where the error points, and what a crash leaves."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxgrad.errors import VoxgradError
from voxgrad.formats import json_text, page_file
from voxgrad.formats.migrations import VERSION, migrate
from voxgrad.graph.page import Page

SAMPLES = Path(__file__).with_name("pages")


def make_page(large: bool = True) -> Page:
    """A page that uses everything a file can hold."""
    page = Page("everything", "tf_cpu")
    values = np.arange(32, dtype=np.float32).reshape(2, 2, 2, 2, 2) / 10
    x = page.add("Const", attrs={"value": values, "dtype": "float32"}, name="x", position=(10.0, 20.456))
    odd = np.array([math.nan, math.inf, -math.inf, -0.0, 1e300, 5e-324])
    page.add("Const", attrs={"value": odd}, name="scope/odd")
    page.add("Const", attrs={"value": np.array([1.5, 0.1], ml_dtypes.bfloat16)}, name="bf16")
    page.add("Const", attrs={"value": np.array([1 + 2j, 3 - 0j])}, name="complex")
    page.add("Const", attrs={"value": np.array([b"text", b"\xff\x00"], dtype=object)}, name="strings")
    page.add("Const", attrs={"value": np.array([[True], [False]])}, name="bools")
    page.add("Const", attrs={"value": np.array(2**63 - 1)}, name="scalar")
    page.add("Const", attrs={"value": np.zeros((0, 3), np.int8)}, name="empty")
    if large:
        page.add("Const", attrs={"value": np.random.default_rng(1).normal(size=(20, 20, 20))}, name="large")
    window = {"padding": "VALID", "ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1]}
    pool = page.add("MaxPool3D", {"input": x}, window, name="pool")
    page.add("Unknown", {"b": [pool, 0.5], "a": math.inf}, {"z": "text", "a": [1, [2, None]], "m": -math.inf}, name="u")
    page.run_after("u", "pool")
    page.expose({"y": pool})
    page.execute(["u"])
    page.start_with(["pool", "x"])
    inner = Page("inner")
    inner.add("Placeholder", attrs={"dtype": "float32", "shape": ["N", None, 3]}, name="p")
    page.define("inner", inner)
    page.use("inner", {"p": pool}, name="used")
    page.notes.append({"text": "a note", "position": [1, 2]})
    return page


def same(one: Any, other: Any) -> bool:
    """Equality of page data, where arrays are equal if type, shape and bits are."""
    if isinstance(one, np.ndarray):
        if not isinstance(other, np.ndarray) or one.dtype != other.dtype or one.shape != other.shape:
            return False
        return one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return isinstance(other, dict) and set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other) and isinstance(other, type(one))


def test_everything_comes_back(tmp_path: Path) -> None:
    page = make_page()
    page.save(tmp_path / "a.vox.json")
    data = page.to_dict()
    data["blocks"][0]["position"] = [10.0, 20.46]
    assert same(Page.load(tmp_path / "a.vox.json").to_dict(), data)
    assert same(page_file.loads(page_file.dumps(page)).to_dict(), data)


def test_the_text_is_canonical(tmp_path: Path) -> None:
    first, second = tmp_path / "a.vox.json", tmp_path / "b.vox.json"
    make_page().save(first)
    Page.load(first).save(second)
    assert first.read_text().replace("a.data/", "b.data/") == second.read_text()
    # Attributes stand in the order of the declaration, whatever the order in which they were given.
    assert '{"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}' in first.read_text()


def test_names_do_not_depend_on_the_order_of_blocks() -> None:
    blocks = [{"name": "w/value", "op": "Identity"}, {"name": "w", "op": "Identity"}, {"name": "w_1", "op": "Identity"}]
    page = page_file.loads(json.dumps(document(blocks, targets=["w"])))
    assert [block.name for block in page] == ["w/value", "w", "w_1"]


def test_a_small_change_is_a_small_diff(tmp_path: Path) -> None:
    page = make_page()
    before = page_file.dumps(page).splitlines()
    page.set_attr("pool", "padding", "SAME")
    after = page_file.dumps(page).splitlines()
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_large_constants_stand_beside_the_page(tmp_path: Path) -> None:
    page = make_page()
    page.save(tmp_path / "a.vox.json")
    (file,) = (tmp_path / "a.data").iterdir()
    np.testing.assert_array_equal(np.load(file), page["large"].attrs["value"])
    page.set_attr("large", "value", np.zeros(5000))
    page.save(tmp_path / "a.vox.json")
    (file,) = (tmp_path / "a.data").iterdir()
    assert np.load(file).shape == (5000,)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(VoxgradError, match=r"a.vox.json:\d+: /blocks/8/attrs/value/tensor/file must have the checksum"):
        Page.load(tmp_path / "a.vox.json")
    file.unlink()
    with pytest.raises(VoxgradError, match="which is not there"):
        Page.load(tmp_path / "a.vox.json")


@pytest.mark.parametrize(
    "name",
    ["../secret.npy", "/etc/passwd", "a.data/../../x.npy", "..data/0123456789abcdef.npy", 5, None,
     "C:a.data/0123456789abcdef.npy", "a.data\\0123456789abcdef.npy",
     "\x00.data/0123456789abcdef.npy", "x/a.data/0123456789abcdef.npy"],
)  # fmt: skip
def test_nothing_outside_the_folder_is_read(tmp_path: Path, name: Any) -> None:
    tensor = {"dtype": "float32", "shape": [2], "file": name, "sha256": "0" * 64}
    text = json.dumps(document([{"name": "x", "op": "Const", "attrs": {"value": {"tensor": tensor}}}]))
    with pytest.raises(VoxgradError, match=r"be FOLDER\.data/CHECKSUM\.npy"):
        page_file.loads(text, "p", tmp_path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    make_page().save(outside / "a.vox.json")
    (inside / "a.data").symlink_to(outside / "a.data")
    (inside / "a.vox.json").write_text((outside / "a.vox.json").read_text())
    with pytest.raises(VoxgradError, match="be a file in the folder of the page"):
        Page.load(inside / "a.vox.json")


def document(blocks: Any = (), **others: Any) -> dict[str, Any]:
    head = {"format": "voxgrad-page", "version": 1, "name": "p", "semantics": "documented"}
    return head | {"blocks": list(blocks) if isinstance(blocks, tuple) else blocks} | others


X = {"name": "x", "op": "Identity"}
BAD = {
    "no object": ([], "the document"),
    "no page": ({"a": 1}, "/format"),
    "old version": (document(version=0), "/version"),
    "new version": (document(version=99), "newer voxgrad"),
    "version as text": (document(version="1"), "/version"),
    "unknown entry": (document(script="import os"), "/script"),
    "no list": (document({"a": 1}), "/blocks"),
    "no block": (document([5]), "/blocks/0"),
    "no name": (document([{"op": "Identity"}]), "/blocks/0"),
    "op and page": (document([{"name": "x", "op": "Identity", "page": "p"}]), "/blocks/0"),
    "unknown entry of a block": (document([X | {"result": 1}]), "/blocks/0/result"),
    "twice": (document([X, X]), "/blocks/1/name"),
    "pin no list": (document([X | {"inputs": {"input": {"from": "x.output"}}}]), "/blocks/0/inputs/input"),
    "wire to nothing": (document([X | {"inputs": {"input": [{"from": "y.output"}]}}]), "/blocks/0/inputs/input/0/from"),
    "wire and value": (
        document([X | {"inputs": {"input": [{"from": "x.output", "value": 1}]}}]),
        "/blocks/0/inputs/input/0",
    ),
    "object as value": (document([X | {"attrs": {"a": {"b": 1}}}]), "/blocks/0/attrs/a"),
    "code as value": (document([X | {"attrs": {"a": {"__reduce__": 1}}}]), "/blocks/0/attrs/a"),
    "position": (document([X | {"position": [1]}]), "/blocks/0/position"),
    "control": (document([X | {"control": ["y"]}]), "/blocks/0/control/0"),
    "target": (document([X], targets=["y"]), "/targets/0"),
    "output": (document([X], outputs={"o": "x"}), "/outputs/o"),
    "semantics": (document([X], semantics="other"), "semantics"),
    "name": (document([X], name=""), "name"),
    "page in page": (
        document([X], pages={"p": {"name": "q", "semantics": "documented", "blocks": 1}}),
        "/pages/p/blocks",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_pages_name_the_place(name: str) -> None:
    data, place = BAD[name]
    with pytest.raises(VoxgradError) as caught:
        page_file.loads(json.dumps(data, indent=1), "bad.vox.json")
    assert place in str(caught.value)
    assert "bad.vox.json" in str(caught.value)


@pytest.mark.parametrize(
    ("tensor", "place"),
    [
        (5, "/tensor"),
        ({"dtype": "float32"}, "/shape"),
        ({"dtype": "float32", "shape": [2**40], "values": []}, "/shape"),
        (
            {"dtype": "float32", "shape": [2**30, 2**30, 2**30], "values": [1]},
            "list of 1237940039285380274899124224 values",
        ),
        ({"dtype": "float32", "shape": [-1], "values": []}, "/shape"),
        ({"dtype": "float32", "shape": [True], "values": [1]}, "/shape"),
        ({"dtype": "float32", "shape": [1] * 33, "values": [1]}, "/shape"),
        ({"dtype": "object", "shape": [1], "values": [1]}, "/dtype"),
        ({"dtype": "resource", "shape": [1], "values": [1]}, "/dtype"),
        ({"dtype": "float32", "shape": [2], "values": [1]}, "/values"),
        ({"dtype": "float32", "shape": [1], "values": ["x"]}, "/values/0"),
        ({"dtype": "int8", "shape": [1], "values": [300]}, "/values/0"),
        ({"dtype": "int8", "shape": [1], "values": [1.5]}, "/values/0"),
        ({"dtype": "bool", "shape": [1], "values": [1]}, "/values/0"),
        ({"dtype": "complex64", "shape": [1], "values": [[1]]}, "/values/0"),
        ({"dtype": "string", "shape": [1], "values": [{"base64": "?"}]}, "/values/0"),
        ({"dtype": "float32", "shape": [1], "values": [1], "base64": ""}, "/tensor"),
        ({"dtype": "float32", "shape": [1], "base64": "AAA"}, "/base64"),
        ({"dtype": "float32", "shape": [1], "base64": "AAAA"}, "/base64"),
        ({"dtype": "float32", "shape": [1], "values": [1], "pickle": ""}, "/pickle"),
    ],
)
def test_bad_tensors_name_the_place(tensor: Any, place: str) -> None:
    with pytest.raises(VoxgradError) as caught:
        page_file.loads(json.dumps(document([X | {"attrs": {"value": {"tensor": tensor}}}])))
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a": 1,}', '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, '{"a":' * 100_000, "9" * 5000, "\ud800"],
)
def test_bad_json(text: str) -> None:
    with pytest.raises(VoxgradError) as caught:
        page_file.loads(text.encode("utf-8", "surrogatepass"), "bad.vox.json")
    assert caught.value.faults[0].code == "VG053"
    assert caught.value.faults[0].op.startswith("bad.vox.json")


def test_the_line_is_shown() -> None:
    text = page_file.dumps(make_page(large=False)).replace('"pool.output"', '"pol.output"', 1)
    with pytest.raises(VoxgradError) as caught:
        page_file.loads(text, "p.vox.json")
    line, caret = caught.value.faults[0].where.splitlines()
    assert line[caret.index("^") :].startswith('"pol.output"')
    number = int(caught.value.faults[0].op.partition(":")[2])
    assert '"pol.output"' in text.splitlines()[number - 1]


def test_every_truncation_is_refused() -> None:
    text = page_file.dumps(make_page(large=False)).rstrip()
    for cut in range(0, len(text), 37):
        with pytest.raises(VoxgradError):
            page_file.loads(text[:cut])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_pages_are_read_or_refused(data: st.DataObject) -> None:
    """Bytes changed at random: a page or an error that names the file comes out, and nothing else."""
    raw = bytearray(page_file.dumps(make_page(large=False)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        page_file.loads(bytes(raw), "p.vox.json")
    except VoxgradError as error:
        assert "p.vox.json" in str(error)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["name", "op", "page", "blocks", "inputs", "attrs", "from", "value", "tensor", "dtype", "shape",
                         "values", "file", "outputs", "targets", "pages", "position", "control", "x"]),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(json_values, json_values)
def test_any_json_is_read_or_refused(blocks: Any, pages: Any) -> None:
    try:
        page_file.loads(
            json.dumps(document([X, *blocks] if isinstance(blocks, list) else blocks, pages=pages)), "p.vox.json"
        )
    except VoxgradError as error:
        assert "p.vox.json" in str(error)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(VoxgradError):
        page_file.loads(data)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for name in ("none.vox.json", "."):
        with pytest.raises(VoxgradError, match="VG051"):
            Page.load(tmp_path / name)
    with pytest.raises(VoxgradError, match="VG051"):
        make_page().save(tmp_path / "no" / "such" / "a.vox.json")
    with pytest.raises(VoxgradError, match="VG051"):
        Page.load("a\0b")


def test_a_thousand_blocks_load_and_infer() -> None:
    page = Page("long")
    last = page.add("Placeholder", attrs={"dtype": "float32", "shape": ["N", 8, 8, 8, 1]}, name="x")
    window = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    for _ in range(333):
        pool = page.add("MaxPool3D", {"input": last}, window, position=(1.0, 2.0))
        last = page.add("Add", {"x": pool, "y": page.add("Relu", {"features": pool})})
    text = page_file.dumps(page)
    assert page_file.loads(text).problems() == []


def test_frozen_versions_still_load() -> None:
    """Samples of released versions: never edited, only added to."""
    page = Page.load(SAMPLES / "v1.vox.json")
    assert [block.name for block in page] == ["x", "scope/half", "pool", "total", "large", "inner"]
    assert page["x"].attrs["value"].dtype == np.float32
    assert page["large"].attrs["value"].shape == (11, 10, 10)
    assert page["total"].sources["inputs"][1].path == "scope/half.z"  # type: ignore[union-attr]
    assert [block.name for block in page.targets] == ["total"]
    assert page.semantics == "tf_cpu"


def test_migrations_go_step_by_step() -> None:
    steps = {
        1: lambda data: data | {"semantics": "documented"},
        2: lambda data: data | {"blocks": [*data["blocks"], "added"]},
    }
    made = migrate({"version": 1, "blocks": []}, steps, version=3)
    assert made == {"version": 3, "blocks": ["added"], "semantics": "documented"}
    assert migrate({"version": VERSION}) == {"version": VERSION}


def test_the_schema_describes_what_is_written() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(page_file.SCHEMA.read_text()))
    validator.validate(json.loads(page_file.dumps(make_page())))
    validator.validate(json.loads((SAMPLES / "v1.vox.json").read_text()))
    for name in ("unknown entry", "no block", "op and page", "unknown entry of a block", "wire and value", "position"):
        assert not validator.is_valid(BAD[name][0]), name


def test_a_document_larger_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(json_text, "MAX_BYTES", 1000)
    (tmp_path / "a.vox.json").write_text("[" + "1," * 1000 + "1]")
    with pytest.raises(VoxgradError, match="at most 1,000 bytes"):
        Page.load(tmp_path / "a.vox.json")


KILLED = """
import sys, numpy as np
from voxgrad.graph.page import Page
from voxgrad.formats import page_file
page = Page("killed")
page.add("Const", attrs={"value": np.zeros(20000)}, name="c")
print("ready", flush=True)
number = 0
while True:
    number += 1
    page["c"].attrs["value"] = np.full(20000, float(number))
    page.name = f"killed {number}"
    page_file.save(page, sys.argv[1])
"""


def test_a_killed_save_leaves_a_whole_page(tmp_path: Path) -> None:
    """SIGKILL at random moments of a loop of saves: the page and its constants are always one of the saved ones."""
    target = tmp_path / "a.vox.json"
    seen = set()
    for attempt in range(8):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(target)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.02 + random.Random(attempt).random() * 0.05)
            os.kill(process.pid, signal.SIGKILL)
        if not seen and not target.exists():  # killed before the first was there
            continue
        page = Page.load(target)
        number = float(page.name.removeprefix("killed "))
        assert np.all(page["c"].attrs["value"] == number)
        seen.add(number)
    assert seen
