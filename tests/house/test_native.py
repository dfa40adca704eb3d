# SPDX-License-Identifier: Apache-2.0
"""The native sources: units that can be compiled apart, and one list of what they offer."""

import ctypes
import re
from pathlib import Path

import pytest

from native import build as native

HEADER = native.ROOT / "include" / "voxgrad.h"
UNITS = {name: source for source, name, _ in native.objects() if source.parent.name == "units"}


@pytest.mark.parametrize("name", UNITS)
def test_no_unit_reads_the_kernels_of_another_family(name: str) -> None:
    read = {path.name for path in native.read_with_headers(UNITS[name])}
    own, others = ("pool", "conv") if name.startswith("pool") else ("conv", "pool")
    assert f"{own}_common.hpp" in read
    assert not [path for path in read if path.startswith(others)]


def test_an_object_is_made_again_only_where_it_reads_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.cpp").write_text('#include "shared.hpp"\n')
    (tmp_path / "two.cpp").write_text('#include "own.hpp"\n#include <vector>\n')
    (tmp_path / "own.hpp").write_text('  #include "shared.hpp"\n')
    (tmp_path / "shared.hpp").write_text("int a;\n")
    compiled = []

    def compile_nothing(command: list[str]) -> None:
        compiled.append(Path(command[-3]).name)
        Path(command[-1]).touch()

    monkeypatch.setattr(native, "call", compile_nothing)

    def build(*flags: str) -> list[str]:
        compiled.clear()
        for name in ("one", "two"):
            native.compile_one("c++", tmp_path / f"{name}.cpp", name, list(flags), tmp_path)
        return list(compiled)

    assert build() == ["one.cpp", "two.cpp"]
    assert build() == []
    (tmp_path / "own.hpp").write_text('#include "shared.hpp"\nint b;\n')
    assert build() == ["two.cpp"]
    (tmp_path / "shared.hpp").write_text("int c;\n")
    assert build() == ["one.cpp", "two.cpp"]
    assert build("-O1") == ["one.cpp", "two.cpp"]


@pytest.mark.skipif(not native.PLACE.exists(), reason="no native library was built")
def test_the_library_has_what_its_header_declares() -> None:
    declared = re.findall(r"^\w+ (vg_\w+)\(", HEADER.read_text(), re.MULTILINE)
    library = ctypes.CDLL(str(native.PLACE))
    assert len(declared) >= 27
    assert [name for name in declared if not hasattr(library, name)] == []


def test_avx512_alone_brings_the_convolutions_of_avx2_that_it_calls() -> None:
    names = {name for source, name, _ in native.objects(sets=["avx512"]) if source.parent.name == "units"}
    all_units = {name.removesuffix("-avx512") for name in UNITS if name.endswith("-avx512")}
    assert {name.removesuffix("-avx2") for name in names if name.endswith("-avx2")} == {
        unit for unit in all_units if unit.startswith("conv")
    }
    assert {name.removesuffix("-avx512") for name in names if name.endswith("-avx512")} == all_units
    assert not [name for _, name, _ in native.objects(sets=["baseline"]) if "avx" in name]


@pytest.mark.parametrize(
    ("runnable", "soonest"),
    [(["baseline"], ["baseline"]), (["baseline", "avx2"], ["avx2"]), (["baseline", "avx2", "avx512"], ["avx2"])],
)
def test_what_is_there_soonest_borrows_from_no_other_set(
    runnable: list[str], soonest: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "runnable", lambda: runnable)
    assert native.soonest() == soonest
    units = [name for source, name, _ in native.objects(sets=soonest) if source.parent.name == "units"]
    assert {name.rpartition("-")[2] for name in units} == set(soonest)
