# SPDX-License-Identifier: Apache-2.0
"""The commands that work on single ops."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from voxgrad.catalog.registry import FAMILY
from voxgrad.cli import main

WINDOW = ["--ksize", "1,2,2,2,1", "--strides", "{1,2,2,2,1}", "--padding", "VALID"]


@pytest.fixture
def volume(tmp_path: Path) -> str:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4, 1))
    return str(path)


def test_ops_lists_the_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    printed = capsys.readouterr().out
    for op in FAMILY:
        assert op.name in printed


def test_ops_shows_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "AvgPool3DGrad"]) == 0
    printed = capsys.readouterr().out
    for part in (
        "orig_input_shape",
        "Example:",
        "Args:",
        "Returns:",
        "bfloat16",
        "Edges:",
        "voxgrad apply AvgPool3DGrad",
    ):
        assert part in printed


def test_ops_finds_by_a_part_and_suggests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "avgpool3d"]) == 0
    assert "AvgPool3DGrad" in capsys.readouterr().out
    assert main(["ops", "MaxPol3D"]) == 1
    assert "Did you mean MaxPool3D" in capsys.readouterr().err


def test_ops_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "MaxPool3D", "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert [attr["name"] for attr in data["attrs"]] == ["ksize", "strides", "padding", "data_format"]


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    for part in ("version", "features", "threads", "in use", "numpy"):
        assert part in printed
    assert main(["doctor", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) >= {"voxgrad", "machine", "kernels", "packages"}


def test_apply_writes_what_the_op_says(volume: str, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    assert main(["apply", "MaxPool3D", "--input", volume, *WINDOW, "--output", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out).ravel(), [21, 23, 29, 31, 53, 55, 61, 63])


def test_apply_takes_host_vectors_and_attrs_as_text(volume: str, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    given = ["--orig_input_shape", "1;8;8;8;1;", "--grad", volume, *WINDOW, "--attrs", "data_format_ = NDHWC;"]
    assert main(["apply", "AvgPool3DGrad", *given, "--output", str(out)]) == 0
    with np.load(out) as file:
        dx = file["output"]
    assert dx.shape == (1, 8, 8, 8, 1)
    np.testing.assert_array_equal(dx[0, ::2, ::2, ::2, 0].ravel(), np.arange(64) / 8)


def test_apply_takes_inputs_in_order_and_prints(volume: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "--input",
        volume,
        "--filter",
        "{{{{{2}}}}}",
        "--strides",
        "1,2,2,2,1",
        "--padding",
        "SAME",
        "--dtype",
        "DT_FLOAT",
    ]
    assert main(["apply", "Conv3D", *given]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("output: float32 [1,2,2,2,1]\n")
    rows = [line.split()[1:] for line in printed.splitlines()[1:]]
    assert [float(number) for row in rows for number in row] == [0, 4, 16, 20, 64, 68, 80, 84]


def test_apply_shows_and_writes_several_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["apply", "TopKV2", "--input", "{3.0f,9.0f,5.0f}", "--k", "2"]
    assert main(given) == 0
    assert capsys.readouterr().out == "values: float32 [2]\n  [:] 9  5\nindices: int32 [2]\n  [:] 1  2\n"
    assert main([*given, "--output", str(tmp_path / "out.npz")]) == 0
    with np.load(tmp_path / "out.npz") as file:
        assert file["indices"].tolist() == [1, 2]
    assert main([*given, "--output", str(tmp_path / "out.npy")]) == 3
    assert main(["apply", "Split", "--axis", "0", "--value", "{1,2,3,4}", "--num_split", "2"]) == 0
    assert "output_1: int32 [2]" in capsys.readouterr().out


def test_apply_converts_and_keeps_bfloat16(volume: str, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    given = ["--input", volume, *WINDOW, "--output", str(out)]
    assert main(["apply", "MaxPool3D", *given, "--dtype", "bfloat16"]) == 0
    assert np.load(out).view(ml_dtypes.bfloat16).astype(float).max() == 63
    again = tmp_path / "again.npy"
    assert main(["apply", "MaxPool3D", "--input", str(out), *WINDOW, "--output", str(again)]) == 0
    assert np.load(again).view(ml_dtypes.bfloat16).astype(float).tolist() == [[[[[63.0]]]]]


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_apply_reads_and_writes_nifti(tmp_path: Path, suffix: str) -> None:
    nibabel = pytest.importorskip("nibabel")
    source, out = str(tmp_path / f"a{suffix}"), str(tmp_path / f"b{suffix}")
    data = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)
    nibabel.save(nibabel.Nifti1Image(data, np.diag([1.0, 2.0, 3.0, 1.0])), source)
    assert main(["apply", "MaxPool3D", "--input", source, *WINDOW, "--output", out]) == 0
    made = nibabel.load(out)
    np.testing.assert_array_equal(made.get_fdata(), data[1::2, 1::2, 1::2])
    np.testing.assert_allclose(made.affine @ [0, 0, 0, 1], [0.5, 1.0, 1.5, 1.0])


def test_apply_reports_all_texts_that_are_wrong(volume: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--input", volume, "--ksize", "1,2,,2,1", "--strides", "1,2,2,2,1", "--padding", "same"]
    assert main(["apply", "MaxPool3D", *given]) == 1
    printed = capsys.readouterr().err
    assert printed.count("VG052") == 2
    assert "    1,2,,2,1\n        ^" in printed.replace("error: ", "")


def test_apply_reports_a_wrong_call(volume: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "MaxPool3D", "--input", volume, "--ksize", "1,2,2,2,1"]) == 1
    printed = capsys.readouterr().err
    assert "VG001" in printed
    assert "strides" in printed
    assert "padding" in printed


@pytest.mark.parametrize(
    "name", ["missing.npy", "text.npy", "cut.npy", "pickled.npy", "bomb.npz", "other.tif", "huge.npy"]
)
def test_apply_refuses_bad_files(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "whole.npy", np.zeros(1000))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:-8])
    (tmp_path / "huge.npy").write_bytes((tmp_path / "whole.npy").read_bytes().replace(b"(1000,), ", b"(99999999,)"))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", (tmp_path / "huge.npy").read_bytes()[:128] + bytes(10**7))
    (tmp_path / "other.tif").write_text("x")
    assert main(["apply", "MaxPool3D", "--input", str(tmp_path / name), *WINDOW]) in (1, 3)
    printed = capsys.readouterr().err
    assert "VG051" in printed
    assert name in printed


def test_module_and_pipe() -> None:
    """`python -m voxgrad` works, and a closed pipe is no error."""
    command = [sys.executable, "-m", "voxgrad", "ops"]
    assert "MaxPool3DGradGrad" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 0


@pytest.mark.parametrize("line", [["nonsense"], ["ops", "--nonsense"], ["apply", "MaxPool3D", "--nonsense", "1"]])
def test_wrong_command_lines_exit_with_2(line: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(line)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "line", [[], ["--help"], ["ops", "--help"], ["doctor", "--help"], ["apply", "Conv3D", "--help"]]
)
def test_help_teaches(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert main(line) == 0
    except SystemExit as stop:
        assert stop.code == 0
    assert "exit codes:" in capsys.readouterr().out
