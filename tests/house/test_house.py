# SPDX-License-Identifier: Apache-2.0
"""The house rules: imports point one way, the package is light, what is generated is current, docs run."""

import ast
import functools
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from tests.grouped import grouped
from voxgrad.catalog.registry import FAMILY
from voxgrad.doors import DOORS, through
from voxgrad.errors import CODES
from voxgrad.kernels.names import KERNELS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "voxgrad"

# Rooms from left to right; a room knows those on its left. The last line may import everything.
ROOMS = [
    ["errors", "_version", "loading"],
    ["doors"],
    ["arguments"],
    ["catalog"],
    ["reference", "kernels"],
    ["arrays"],
    ["raw_ops", "out_ops", "compat", "graph", "nn", "ops", "blocks", "torch", "isolation"],
    ["formats"],
    ["volumes"],
    ["studio", "testing"],
    ["cli"],
    ["__main__"],
]
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed once for all that look at it."""
    return ast.parse(path.read_text())


def names_of(path: Path) -> set[str]:
    """What a file imports, also inside functions, by whole names."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a file imports."""
    parts = [name.split(".") for name in names_of(path)]
    return {rest[0] for first, *rest in parts if first == "voxgrad" and rest and rest[0] in RANK}


@grouped("path", sorted(PACKAGE.rglob("*.py")))
def test_imports_point_one_way(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    assert room in RANK, f"{room} is no room of the house"
    for other in imported_rooms(path) - {room}:
        beside = RANK[other] == RANK[room] == RANK["raw_ops"]
        assert RANK[other] < RANK[room] or beside, f"{room} must not know {other}"


def calls_of(path: Path, *names: str) -> list[ast.Call]:
    """The calls of functions with these names in a file."""
    calls = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
    return [one for one in calls if getattr(one.func, "attr", getattr(one.func, "id", "")) in names]


@grouped("path", sorted(PACKAGE.rglob("*.py")))
def test_modules_of_other_rooms_are_loaded_through_doors(path: Path) -> None:
    """A name in a string is an import, too: of the room's own modules, of libraries, or through a declared door."""
    room = room_of(path)
    if room in ("__init__", "doors", "isolation"):  # the package's own names; the doors; what a caller named
        return
    for call in calls_of(path, "import_module", "__import__"):
        name = ast.unparse(call.args[0])
        assert "voxgrad" not in name or name[2:].startswith(f"voxgrad.{room}."), f"{room} loads {name} behind the rules"
    for call in calls_of(path, "through"):
        assert isinstance(call.args[0], ast.Constant) or room == "arrays", "a door is named where it is used"
        if isinstance(call.args[0], ast.Constant):
            assert DOORS[call.args[0].value][0] == room


@grouped("path", sorted(PACKAGE.rglob("*.py")))
def test_locks_are_free_in_a_forked_child(path: Path) -> None:
    """Those of `arrays.locks` are; a cached_property of Python 3.11 has one that nobody can renew (`catalog.once`)."""
    assert "functools.cached_property" not in names_of(path)
    if room_of(path) not in ("loading", "studio") and path.name != "locks.py":  # a studio is not forked
        assert calls_of(path, "Lock", "RLock", "Condition", "Semaphore") == []


def test_doors_lead_to_the_right() -> None:
    for door, (room, module) in DOORS.items():
        assert RANK[module.split(".")[1]] > RANK[room], f"{door} needs no door"


def test_doors_open() -> None:
    pytest.importorskip("dask", reason="lazy arrays are Dask's")
    for door, (_, module) in DOORS.items():
        assert through(door).__name__ == module


def literals_of(path: Path) -> set[str]:
    """The texts in the code of a file, but for the names that it exports."""
    tree = tree_of(path)
    exported = [
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]  # fmt: skip
    left_out = {id(one) for value in exported for one in ast.walk(value)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {node.value for node in texts if id(node) not in left_out}


def test_only_kernels_know_their_names() -> None:
    """What an op does is declared as a map between sides: nobody need derive it from the name of a kernel."""
    names, own = set(KERNELS.values()), [PACKAGE / "kernels", ROOT / "tests/kernels", ROOT / "tests/cuda"]
    for path in (path for folder in ("src", "bench", "tools", "tests") for path in (ROOT / folder).rglob("*.py")):
        if not any(path.is_relative_to(one) for one in own) and any(f'"{name}"' in path.read_text() for name in names):
            assert literals_of(path).isdisjoint(names), path
    assert not any(op.kernel for op in FAMILY)


def test_the_package_works_without_its_native_library(tmp_path: Path) -> None:
    """Where no compiler was found, results come from the reference."""
    code = (
        "import numpy as np, voxgrad as vg\n"
        "x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2, 1)\n"
        "print(vg.raw_ops.AvgPool3D(input=x, ksize=[1, 2, 2, 2, 1], strides=[1] * 5, padding='VALID').item())\n"
    )
    variables = os.environ | {"VOXGRAD_LIBRARY": str(tmp_path / "none.so")}
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=variables)
    assert told.stdout == "3.5\n", told.stderr


def test_import_is_light() -> None:
    """Nothing but NumPy and ml_dtypes: no framework, no server, and nothing that needs one."""
    code = "import sys, voxgrad; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    heavy = {
        "torch",
        "jax",
        "dask",
        "distributed",
        "fastapi",
        "starlette",
        "uvicorn",
        "tensorflow",
        "scipy",
        "zarr",
        "nibabel",
        "rich",
    }
    assert not loaded & heavy


def test_the_first_ordinary_op_is_light() -> None:
    """array_api_compat takes over NumPy with all that it lists, but for its tools for Fortran and tests."""
    code = (
        "import sys, numpy as np, voxgrad as vg\n"
        "before = sorted(np.__all__), sorted(dir(np))\n"
        "vg.raw_ops.Neg(x=np.ones(2)), sys.modules['array_api_compat.numpy'].take\n"
        "print([name for name in ('numpy.f2py', 'numpy.testing', 'unittest') if name in sys.modules])\n"
        "print(before == (sorted(np.__all__), sorted(dir(np))), np.testing.__name__)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout == "[]\nTrue numpy.testing\n", told.stderr


def test_dependencies_are_few() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {text.split(">")[0] for text in project["dependencies"]} == {"numpy", "ml_dtypes", "array-api-compat"}


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_functions_follow_their_declaration(op) -> None:  # type: ignore[no-untyped-def]
    function = getattr(vg.raw_ops, op.name)
    signature = inspect.signature(function)
    assert list(signature.parameters) == [item.name for item in op.parameters] + ["name"]
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in signature.parameters.values())
    assert op.summary in function.__doc__
    for law in op.laws:
        assert law.name in function.__doc__
    exec(op.example, {"np": np, "vg": vg})


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_examples_print_what_they_say(op, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    exec(op.example, {"np": np, "vg": vg})
    said = op.example.rsplit("# ", 1)[1]
    assert "".join(capsys.readouterr().out.split()) == "".join(said.split())


def test_the_map_of_the_house_names_files_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`((?:src|native|web|tests|bench|tools|docs)/[\w./]+)`", text))
    assert len(named) > 60
    assert [one for one in sorted(named) if not (ROOT / one).exists()] == []
    assert [room for room in RANK if room not in text and not room.startswith("_")] == []


def test_every_code_in_use_is_in_the_catalogue() -> None:
    used = set()
    for path in PACKAGE.rglob("*.py"):
        used |= {
            word
            for word in path.read_text().replace('"', " ").replace("'", " ").split()
            if word.startswith("VG") and word[2:].isdigit()
        }
    assert used <= set(CODES), used - set(CODES)


def test_errors_survive_a_trip_between_processes() -> None:
    import pickle

    with pytest.raises(vg.InvalidArgumentError) as caught:
        vg.raw_ops.MaxPool3D(input=1, ksize=[1] * 5, strides=[1] * 5, padding="SAME")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert again.faults == caught.value.faults
