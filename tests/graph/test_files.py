# SPDX-License-Identifier: Apache-2.0
"""A page from a stranger touches the files in `files/` beside it, and what a person has allowed; nothing else."""

import gzip
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.kernels.arraywise.files import Files, NotAllowed
from voxgrad.volumes.stores import create_volume

SECRETS = {".bashrc": "alias ls=ls", ".git/hooks/pre-commit": "#!/bin/sh", "conftest.py": "# tests", "page.py": "x"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder that a stranger's page was put into, with a link to everything in its `files`."""
    for name, text in SECRETS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "mine.txt").write_text("mine")
    (tmp_path / "files" / ".hidden").write_text("hidden")
    (tmp_path / "files" / "link").symlink_to(tmp_path)
    (tmp_path / "files" / "conftest.py").symlink_to(tmp_path / "conftest.py")
    return tmp_path


Build = Callable[[vg.Page, str], Any]
BLOCKS: dict[str, Build] = {
    "ReadFile": lambda page, name: vg.ops.ReadFile(page, name, name="block"),
    "WriteFile": lambda page, name: vg.ops.WriteFile(page, name, "overwritten", name="block"),
    "Save": lambda page, name: vg.ops.Save(page, name, ["w"], [np.ones(2, np.float32)], name="block"),
    "SaveV2": lambda page, name: vg.ops.SaveV2(page, name, ["w"], [""], [np.ones(2, np.float32)], name="block"),
    "Restore": lambda page, name: vg.ops.Restore(page, name, "w", dt="float32", name="block"),
    "RestoreV2": lambda page, name: vg.ops.RestoreV2(page, name, ["w"], [""], dtypes=["float32"], name="block"),
    "MatchingFiles": lambda page, name: vg.ops.MatchingFiles(page, name, name="block"),
    "Volume": lambda page, name: vg.ops.Volume(page, path=name, name="block"),
}
OUTSIDE = ["../.bashrc", "../conftest.py", "../.git/hooks/pre-commit", "a/../../page.py", "/etc/passwd", "..", "/", "",
           ".hidden", "./.hidden", "x/.y/z", "a" * 2000, "/".join("a" * 40), "a\0b", "a\nb", "\x1b[2J", "\u202etxt.exe",
           "a\\..\\b", "nul", "x/CON.txt", "com1", "/dev/zero", "/proc/self/environ"]  # fmt: skip
LINKS = ["link/page.py", "link/.bashrc", "conftest.py"]


def stranger(folder: Path, op: str, name: str) -> Path:
    page = vg.Page("stranger")
    BLOCKS[op](page, name)
    page.execute(["block"])
    page.save(folder / "stranger.vox.json")
    return folder / "stranger.vox.json"


@pytest.mark.parametrize("op", BLOCKS)
def test_a_loaded_page_stays_in_its_folder(home: Path, op: str) -> None:
    for name in OUTSIDE + ([] if op == "MatchingFiles" else LINKS):
        with pytest.raises(vg.VoxgradError, match="VG056") as caught:
            vg.ClientSession(vg.Page.load(stranger(home, op, name))).run(targets=["block"])
        assert "--allow-files" in caught.value.faults[0].remedy
    assert {name: (home / name).read_text() for name in SECRETS} == SECRETS
    assert (home / "files" / "conftest.py").is_symlink()


@pytest.mark.parametrize("name", ["../.bashrc", "../conftest.py", "link/.git/hooks/pre-commit", "conftest.py"])
def test_the_command_line_stays_there_too(home: Path, name: str) -> None:
    command = [sys.executable, "-m", "voxgrad", "run", str(stranger(home, "WriteFile", name))]
    told = subprocess.run(command, capture_output=True, text=True, cwd=home)
    assert told.returncode == 3 and "VG056" in told.stderr
    assert {name: (home / name).read_text() for name in SECRETS} == SECRETS
    if name == "../conftest.py":
        told = subprocess.run([*command, "--allow-files", str(home)], capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
        assert (home / "conftest.py").read_text() == "overwritten"


def test_names_that_lie_beside_the_page_are_looked_up_in_files(home: Path) -> None:
    page = vg.Page.load(stranger(home, "WriteFile", "page.py"))
    vg.ClientSession(page).run(targets=["block"])
    assert (home / "files" / "page.py").read_text() == "overwritten"
    assert (home / "page.py").read_text() == "x"


def test_patterns_find_no_hidden_files_and_no_links(home: Path) -> None:
    (home / "files" / "a" / "b").mkdir(parents=True)
    for name in ("a/1.bin", "a/b/2.bin", "a/b/.3.bin"):
        (home / "files" / name).write_text("")
    found = {
        pattern: vg.ClientSession(vg.Page.load(stranger(home, "MatchingFiles", pattern))).run("block").tolist()
        for pattern in ("*", "link/*", "a/*.bin", "**/*.bin", "**", "*/*/?.bin", "**/b/**", "[am]*", "none/*")
    }
    assert found == {
        "*": [b"mine.txt"], "link/*": [], "a/*.bin": [b"a/1.bin"], "**/*.bin": [b"a/1.bin", b"a/b/2.bin"],
        "**": [b"a/1.bin", b"a/b/2.bin", b"mine.txt"], "*/*/?.bin": [b"a/b/2.bin"], "**/b/**": [b"a/b/2.bin"],
        "[am]*": [b"mine.txt"], "none/*": [],
    }  # fmt: skip


def test_files_that_is_a_link_is_refused(home: Path) -> None:
    shutil.rmtree(home / "files")
    (home / "elsewhere").mkdir()
    (home / "elsewhere" / "secret.txt").write_text("secret")
    for target in ("elsewhere", "nowhere"):
        (home / "files").symlink_to(home / target)
        for op in ("ReadFile", "WriteFile"):
            with pytest.raises(vg.VoxgradError, match=r"VG056.*link"):
                vg.ClientSession(vg.Page.load(stranger(home, op, "secret.txt"))).run(targets=["block"])
        (home / "files").unlink()
    assert (home / "elsewhere" / "secret.txt").read_text() == "secret"
    assert not (home / "nowhere").exists()


def test_links_inside_a_zarr_are_refused(home: Path) -> None:
    pytest.importorskip("zarr")
    path = home / "files" / "scan.zarr"
    data = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4, 1)
    create_volume(path, data.shape, data.dtype, (1, 2, 4, 4, 1)).write((slice(None),) * 5, data)
    page = vg.Page.load(stranger(home, "Volume", "scan.zarr"))
    np.testing.assert_array_equal(vg.ClientSession(page).run("block"), data)
    chunk = next(one for one in sorted(path.rglob("*")) if one.is_file() and one.name != "zarr.json")
    shutil.move(chunk, home / "chunk")
    chunk.symlink_to(home / "chunk")
    with pytest.raises(vg.VoxgradError, match=r"VG056.*link"):
        vg.ClientSession(vg.Page.load(stranger(home, "Volume", "scan.zarr"))).run("block")


def test_pipes_do_not_hang(home: Path) -> None:
    os.mkfifo(home / "files" / "pipe.npy")
    for op in ("ReadFile", "Restore", "Volume"):
        with pytest.raises(vg.VoxgradError, match="VG056"):
            vg.ClientSession(vg.Page.load(stranger(home, op, "pipe.npy"))).run("block")


@pytest.mark.parametrize("op", BLOCKS)
@pytest.mark.parametrize("name", ["a" * 300, "mine.txt/x", "\xff" * 200, "a", "a/b"])
def test_names_that_no_file_can_have_are_errors(home: Path, op: str, name: str) -> None:
    (home / "files" / "a").mkdir()
    page = vg.Page.load(stranger(home, op, name))
    if op == "MatchingFiles":
        assert vg.ClientSession(page).run("block").size == 0
    elif (op, name) not in (("WriteFile", "a/b"), ("Save", "a/b"), ("SaveV2", "a/b"), ("SaveV2", "a")):
        with pytest.raises(vg.VoxgradError, match="VG05"):
            vg.ClientSession(page).run(targets=["block"])


def test_a_person_can_allow_more(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("data")
    (other / "in.txt").write_text("in")
    (other / ".key").write_text("key")
    for name in ("in.txt", str(other / "in.txt")):
        page = vg.Page.load(stranger(home, "ReadFile", name))
        with pytest.raises(vg.VoxgradError, match="VG05"):
            vg.ClientSession(page).run("block")
        assert vg.ClientSession(page, allow_files=other).run("block").item() == b"in"
    for name in (str(other / ".key"), str(other / "../.bashrc"), str(home / ".bashrc")):
        with pytest.raises(vg.VoxgradError, match="VG056"):
            vg.ClientSession(vg.Page.load(stranger(home, "ReadFile", name)), allow_files=[other]).run("block")
    # The page's own folder comes first, and new files are made there.
    assert Files.beside(home / "p.vox.json").allowing(other).find("new", write=True).path == home / "files" / "new"


def test_a_page_made_in_a_program_touches_nothing_until_it_is_allowed(home: Path) -> None:
    page = vg.Page("made")
    vg.ops.WriteFile(page, "out.txt", "text", name="block")
    with pytest.raises(vg.VoxgradError, match=r"VG056.*a page without one"):
        vg.ClientSession(page).run(targets=["block"])
    vg.ClientSession(page, allow_files=home / "new").run(targets=["block"])
    assert (home / "new" / "out.txt").read_text() == "text"


def test_what_is_granted_for_reading_is_not_written(home: Path) -> None:
    files = Files(home / "files", Files().allowing(home / "conftest.py").granted)
    read_only = Files.from_data([files.as_data()[0], [[path, False] for path, _ in files.as_data()[1]]])
    assert files.find("../conftest.py", write=True).path == home / "conftest.py"
    with read_only.find("../conftest.py").open() as file:
        assert file.read() == b"# tests"
    with pytest.raises(NotAllowed):
        read_only.find("../conftest.py", write=True)


@pytest.mark.parametrize("encoding", ["GZIP", "ZLIB"])
def test_readers_unpack_no_more_than_may_be_held(home: Path, encoding: str) -> None:
    pack = gzip.compress if encoding == "GZIP" else zlib.compress
    page = vg.Page("reader")
    reader = vg.ops.FixedLengthRecordReaderV2(page, record_bytes=4, encoding=encoding)
    queue = vg.ops.FIFOQueueV2(page, component_types=["string"])
    put = vg.ops.QueueEnqueueV2(page, queue, ["records"])
    _, value = vg.ops.ReaderReadV2(page, reader, queue)
    page.run_after(value.block, put)
    session = vg.ClientSession(page, allow_files=home / "files")

    def read(data: bytes) -> bytes:
        (home / "files" / "records").write_bytes(data)
        session.forget()
        with vg.limits(bytes=2**20):
            return bytes(session.run(value).item())

    assert read(pack(b"abcdefgh")) == b"abcd"
    if encoding == "GZIP":
        assert read(pack(b"ab") + pack(b"cdef") + bytes(8)) == b"abcd"
    with pytest.raises(vg.ResourceExhaustedError, match=r"VG020.*1,048,576 bytes"):
        read(pack(bytes(2**26)))
    with pytest.raises(vg.VoxgradError, match=r"VG020"):
        read(bytes(2**20 + 1))
    for broken in (pack(b"abcdefgh")[:-6], b"nothing"):
        with pytest.raises(vg.VoxgradError, match=f"VG053.*{encoding}"):
            read(broken)


def test_names_of_saved_tensors_are_free(home: Path) -> None:
    page = vg.Page("save")
    names = ["allow_pickle", "file", "a", "a.npy"]
    tensors = [np.full(2, at, np.float32) for at in range(4)]
    vg.ops.Save(page, "model.npz", names, tensors, name="save")
    back = [vg.ops.Restore(page, "model.npz", name, dt="float32") for name in names]
    vg.ops.Save(page, "twice", ["a", "a"], tensors[:2], name="twice")
    session = vg.ClientSession(page, allow_files=home / "files")
    session.run(targets=["save"])
    for found, wanted in zip(session.run(back), tensors, strict=True):
        np.testing.assert_array_equal(found, wanted)
    with np.load(home / "files" / "model.npz") as archive:
        assert sorted(archive.files) == sorted(names)
    with pytest.raises(vg.VoxgradError, match=r"VG003.*once"):
        session.run(targets=["twice"])
