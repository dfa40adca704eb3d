# SPDX-License-Identifier: Apache-2.0
"""What is brought in and handed out."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from tests.studio.documents import pool_page
from tests.studio.serving import Server, environment
from voxgrad.formats import page_file
from voxgrad.formats.enuspace import import_page
from voxgrad.formats.graphdef import import_graph

ROOT = Path(__file__).resolve().parents[2]


def bring(server: Server, name: str, body: bytes) -> dict:
    answer = server.client.post(
        "/api/import", params={"name": name}, content=body, headers={"content-type": "application/octet-stream"}
    )
    assert answer.status_code == 200, answer.text
    found: dict = answer.json()
    return found


def npy(array: np.ndarray, **more: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **more)
    return buffer.getvalue()


def test_a_volume_becomes_a_block_for_a_page_that_is_open(server: Server) -> None:
    pages = len(server.get("pages")["pages"])
    volume = np.arange(8000, dtype=np.float32).reshape(20, 20, 20)
    kind = {"content-type": "application/octet-stream"}
    answer = server.client.post("/api/import/blocks", params={"name": "scan.npy"}, content=npy(volume), headers=kind)
    assert answer.status_code == 200, answer.text
    (block,) = answer.json()["document"]["blocks"]
    pasted = {"do": "paste", "blocks": [block], "pages": {}, "shift": [0, 0]}
    edited = server.post("edit", {"document": pool_page(), "edits": [pasted]})
    assert edited["added"] == ["scan"] and server.run(edited["document"], "scan")["state"] == "done"
    assert len(server.get("pages")["pages"]) == pages


def test_a_file_is_a_reference_to_compare_with(server: Server) -> None:
    volume = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    kind = {"content-type": "application/octet-stream"}
    asked = {"name": "reference.npy", "like": "2,2,2"}
    kept = server.client.post("/api/import/tensor", params=asked, content=npy(volume), headers=kind).json()
    assert kept["shape"] == [2, 2, 2] and kept["dtype"] == "float32"
    other = server.client.post("/api/import/tensor", params=asked, content=npy(volume + 1), headers=kind).json()
    told = server.post("compare", {"left": {"hash": kept["hash"]}, "right": {"hash": other["hash"]}})
    assert told["max_abs"] == 1
    page = server.client.post(
        "/api/import/tensor", params={"name": "x.json"}, content=b'{"format": "voxgrad-page"}', headers=kind
    )
    assert page.status_code == 422


def test_a_graph_of_tensorflow_opens(server: Server) -> None:
    made = bring(server, "xor.pb", (ROOT / "tests/formats/graphdef/xor.pb").read_bytes())
    blocks = made["page"]["document"]["blocks"]
    assert len(blocks) == len(import_graph(ROOT / "tests/formats/graphdef/xor.pb")[0])


@pytest.mark.parametrize("kind", ["json", "svg", "png"])
def test_an_exported_page_opens_again(server: Server, kind: str) -> None:
    made = server.post("pages", {"name": f"export {kind}", "document": pool_page()})
    exported = server.client.get(f"/api/pages/{made['id']}/export", params={"format": kind})
    assert exported.headers["content-disposition"].startswith("attachment")
    again = bring(server, f"x.{'vox.json' if kind == 'json' else kind}", exported.content)
    assert again["page"]["document"]["blocks"] == made["document"]["blocks"]


def test_a_picture_that_the_browser_drew_gets_the_page(server: Server) -> None:
    drawn = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    ask = {"document": pool_page(), "format": "svg", "picture": base64.b64encode(drawn).decode()}
    answer = server.client.post("/api/export", json=ask)
    assert answer.headers["content-disposition"].startswith("attachment")
    assert bring(server, "x.svg", answer.content)["page"]["document"]["blocks"]
    for change in ({"format": "python"}, {"picture": "?"}, {"picture": base64.b64encode(b"<p>").decode()}):
        assert server.client.post("/api/export", json={**ask, **change}).status_code == 422


def test_a_script_runs_by_itself_and_gives_the_same(server: Server, tmp_path: Path) -> None:
    answer = server.client.post("/api/export", json={"document": pool_page(), "format": "python"})
    (tmp_path / "page.py").write_bytes(answer.content)
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "15" in done.stdout and "32" in done.stdout
    tensorflow = server.client.post("/api/export", json={"document": pool_page(), "format": "tensorflow"})
    assert b"tf.raw_ops" in tensorflow.content


def test_results_leave_as_npz(server: Server) -> None:
    made = server.post("pages", {"name": "results", "document": pool_page()})
    assert server.client.get(f"/api/pages/{made['id']}/export?format=npz").status_code == 404
    server.run(made["document"], made["id"])
    answer = server.client.get(f"/api/pages/{made['id']}/export?format=npz")
    with np.load(io.BytesIO(answer.content), allow_pickle=False) as found:
        assert found["pool.output"].ravel().tolist() == [15, 16, 31, 32]


def test_a_volume_becomes_a_source_block(server: Server) -> None:
    volume = np.random.default_rng(0).standard_normal((12, 13, 14)).astype(np.float32)
    found = bring(server, "my scan.npy", npy(volume))
    (block,) = found["page"]["document"]["blocks"]
    assert block["op"] == "Const" and any("[1,12,13,14,1]" in line for line in found["report"])
    page = page_file.load(server.folder / found["page"]["file"])
    assert (page.blocks[0].attrs["value"][0, ..., 0] == volume).all()


def test_a_scan_comes_in_depth_height_width_order(server: Server, tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    volume = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), tmp_path / "scan.nii.gz")
    found = bring(server, "scan.nii.gz", (tmp_path / "scan.nii.gz").read_bytes())
    value = page_file.load(server.folder / found["page"]["file"]).blocks[0].attrs["value"]
    assert value.shape == (1, 4, 3, 2, 1) and (value[0, ..., 0] == volume.T).all()


def test_a_folder_of_zarr_and_a_tiff_come_as_volumes(server: Server, tmp_path: Path) -> None:
    zarr, tifffile = pytest.importorskip("zarr"), pytest.importorskip("tifffile")
    volume = np.random.default_rng(4).standard_normal((6, 7, 8)).astype(np.float32)
    made = zarr.create_array(store=str(tmp_path / "brain.zarr"), shape=volume.shape, dtype="float32", chunks=(4, 4, 4))
    made[:] = volume
    files = [
        {"name": path.relative_to(tmp_path).as_posix(), "base64": base64.b64encode(path.read_bytes()).decode()}
        for path in (tmp_path / "brain.zarr").rglob("*")
        if path.is_file()
    ]
    found = [server.post("import", {"files": files})]
    tifffile.imwrite(tmp_path / "brain.tif", volume)
    found.append(bring(server, "brain.tif", (tmp_path / "brain.tif").read_bytes()))
    for one in found:
        value = page_file.load(server.folder / one["page"]["file"]).blocks[0].attrs["value"]
        assert value.shape == (1, 6, 7, 8, 1) and (value[0, ..., 0] == volume).all()
    for name in ("brain.zarr/../../evil", "brain.zarr//etc/passwd", "../brain.zarr/zarr.json", "brain.zarr/a\\b"):
        files[0]["name"] = name
        answer = server.client.post("/api/import", json={"files": files})
        assert answer.status_code == 422, name


SAMPLES = ROOT / "tests" / "formats" / "enuspace"


@pytest.mark.parametrize("name", ["basic", "basic_v4", "one_hot", "gradient_descent_xw_sub"])
def test_an_enuspace_page_comes_with_its_data_and_gives_its_stored_results(server: Server, name: str) -> None:
    expected = import_page(SAMPLES / f"{name}.svg").expected
    files = [
        {"name": path.name, "base64": base64.b64encode(path.read_bytes()).decode()}
        for path in (SAMPLES / f"{name}.svg", SAMPLES / f"{name}.dat")
        if path.exists()
    ]
    found = server.post("import", {"files": files})
    assert not [line for line in found["report"] if line.startswith("lost")]
    page, document = found["page"]["id"], found["page"]["document"]
    for cycle in range(60):
        run = server.run(document, page, session="keep" if cycle else "new")
        if all(
            np.allclose(value_of(server, run, block, pin), value.astype(float), atol=5e-7, rtol=0)
            for block, pins in expected.items()
            for pin, value in pins.items()
        ):
            return
    pytest.fail("no cycle gives the stored results")


def test_an_enuspace_project_comes_as_all_of_its_pages(server: Server) -> None:
    """As a browser sends a folder: every file under its path. What is no page is left out; no path leads outside."""

    def sent(names: dict[str, bytes]) -> list[dict]:
        return [{"name": name, "base64": base64.b64encode(data).decode()} for name, data in names.items()]

    def sample(name: str) -> bytes:
        return (SAMPLES / name).read_bytes()

    project = {
        "My Project/p.enup": rb'<p><page path="picture\Basic page.svg"/><page path="picture\one_hot.svg"/></p>',
        "My Project/picture/Basic page.svg": sample("basic.svg"),
        "My Project/picture/one_hot.svg": sample("one_hot.svg"),
        "My Project/picture/one_hot.dat": sample("one_hot.dat"),
        "My Project/picture/unlisted.svg": sample("basic.svg"),
        "My Project/db/data_table.db": b"SQLite",
    }
    found = server.post("import", {"files": sent(project)})
    assert [one["document"]["name"] for one in (found["page"], *found["others"])] == ["Basic page", "one_hot"]
    assert "runs: p.enup: 2 pages; run: Basic page, one_hot" in found["report"]
    two = {"a.svg": sample("basic.svg"), "../../../b.svg": sample("basic_v4.svg"), "/etc/c.svg": sample("basic.svg")}
    found = server.post("import", {"files": sent(two)})
    assert len(found["others"]) == 2
    for files in ({"p.enup": b"<p/>"}, {"p.enup": b"hello"}, {"a.svg": b"<svg/>", "b.svg": b"<svg/>"}):
        answer = server.client.post("/api/import", json={"files": sent(files)})
        assert answer.status_code == 422, files


def value_of(server: Server, run: dict, block: str, pin: str) -> np.ndarray:
    outputs = next(one["outputs"] for one in run["blocks"] if one["block"] == block)
    name = next(one["hash"] for one in outputs if one["name"] == pin)
    return load(server.client.get(f"/api/tensors/{name}").content)["tensor"].astype(float)


class Evil:
    """What pickle would run."""

    def __reduce__(self) -> tuple:
        return (Path("/tmp/voxgrad-was-here").touch, ())


def hostile_files() -> list[tuple[str, bytes]]:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 100000, 100), }"
        archive.writestr("x.npy", header.ljust(127) + b"\n" + bytes(10**6))
    laughs = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><svg>&b;</svg>'
    return [
        ("pickle.npy", npy(np.array([Evil()], dtype=object), allow_pickle=True)),
        ("bomb.npz", bomb.getvalue()),
        ("cut.npy", npy(np.zeros(100))[:200]),
        ("noise.npy", bytes(range(256)) * 10),
        ("noise.tif", b"II*\0" + bytes(range(256))),
        ("noise.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
        ("laughs.svg", laughs.encode()),
        ("noise.vox.json", b'{"format": "voxgrad-page", "version": 1, "blocks": [' + b"[" * 5000),
        (
            "huge.vox.json",
            page_json('{"tensor": {"dtype": "float32", "shape": [2147483647, 2147483647], "base64": ""}}'),
        ),
        ("page.exe", b"MZ"),
        ("model.pkl", b"\x80\x04"),
        ("../../../etc/cron.d/x.vox.json", b"{}"),
        ("", b"{}"),
    ]


def page_json(value: str) -> bytes:
    block = f'{{"name": "x", "op": "Const", "attrs": {{"value": {value}}}}}'
    head = '"format": "voxgrad-page", "version": 1, "name": "x", "semantics": "documented"'
    return f'{{{head}, "blocks": [{block}]}}'.encode()


@pytest.mark.parametrize(("name", "body"), hostile_files(), ids=[name or "nameless" for name, _ in hostile_files()])
def test_hostile_files_are_errors_and_nothing_is_executed(server: Server, name: str, body: bytes) -> None:
    before = sorted(path for path in server.folder.rglob("*") if ".voxgrad" not in path.parts)
    answer = server.client.post(
        "/api/import", params={"name": name}, content=body, headers={"content-type": "application/octet-stream"}
    )
    assert answer.status_code == 422 and answer.json()["error"]["message"], answer.text
    assert not Path("/tmp/voxgrad-was-here").exists()
    assert sorted(path for path in server.folder.rglob("*") if ".voxgrad" not in path.parts) == before
    assert not list((server.folder / ".voxgrad" / "uploads").iterdir())


def test_the_types_of_the_front_end_are_what_the_server_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "studio_types.py"), "--check"],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_engines_are_told_with_the_reason(server: Server) -> None:
    found = {engine["name"]: engine for engine in server.get("engines")["engines"]}
    assert list(found) == ["cpu", "cuda", "tensorflow", "torch"] and found["cpu"]["available"]
    for engine in found.values():
        assert bool(engine["why_not"]) != engine["available"]
        if not engine["available"]:
            run = server.run(pool_page(), engine=engine["name"])
            assert run["state"] == "failed" and run["error"]["message"]
