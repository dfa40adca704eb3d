# SPDX-License-Identifier: Apache-2.0
"""What is changed, and which tests should notice."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.mutants import cpp_changes, python_changes
from tools.mutants.change import Change

ROOT = Path(__file__).resolve().parents[2]
ISA = os.environ.get("VOXGRAD_ISA") or "avx2"
"""The instruction set whose kernels are changed and tested."""
_OTHERS = " or ".join(sorted({"baseline", "avx2", "avx512"} - {ISA}))
_KERNEL_TESTS = ("kernels", "second_gradient", "rounding", "determinism", "properties")


def _builds_gradients(function: ast.FunctionDef) -> bool:
    """Rules of gradients, and what they share, take the builder of blocks first."""
    return bool(function.args.args) and function.args.args[0].arg == "build"


@dataclass(frozen=True)
class Area:
    """Files, and the tests that are run against a change of one, the quickest and keenest first."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    share: int
    """Of a hundred changes."""
    bar: int
    """Per cent that must be noticed."""
    more: tuple[str, ...] = ()
    """Tests that take longer, for what survived the others and is tried again."""
    only: python_changes.Wanted | None = None
    """Which functions of files in `catalog/`."""
    by_family: bool = False
    """Whether files and tests are named after convolutions and pools, and only those of the same family matter."""
    variables: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ("-m", "not parity and not slow and not browser")

    def changes(self, root: Path) -> Iterator[Change]:
        """All changes of a tree, in the order of the files and of their lines."""
        for path in sorted({found for pattern in self.files for found in root.glob(pattern)}):
            name, source = path.relative_to(root).as_posix(), path.read_bytes()
            if path.suffix == ".hpp":
                yield from cpp_changes.changes(name, source)
            else:
                only = self.only if "/catalog/" in name else None
                yield from python_changes.changes(name, source, only)


AREAS = {
    "native": Area(
        ("native/src/kernels/*.hpp",),
        ("tests/kernels/test_paths.py", "tests/kernels/test_edges_of_paths.py"),
        by_family=True,
        share=30,
        bar=95,
        more=tuple(f"tests/kernels/test_{name}.py" for name in _KERNEL_TESTS),
        variables=(("VOXGRAD_ISA", ISA),),
        options=("-m", "not parity and not slow", "-k", f"not ({_OTHERS})"),
    ),
    "triton": Area(
        ("src/voxgrad/kernels/cuda/pool_*.py", "src/voxgrad/kernels/cuda/conv_*.py"),
        ("tests/cuda/test_pools.py", "tests/cuda/test_convs.py", "tests/cuda/test_lanes.py"),
        share=15,
        bar=95,
        more=("tests/cuda/test_sweep.py",),
        by_family=True,
        variables=(("TRITON_INTERPRET", "1"),),
        options=(),
    ),
    "geometry": Area(
        ("src/voxgrad/catalog/geometry.py", "src/voxgrad/catalog/dims.py", "src/voxgrad/catalog/problem.py"),
        (
            "tests/catalogue/test_geometry.py",
            "tests/graph/test_dims.py",
            "tests/graph/test_one_problem.py",
            "tests/kernels/test_bad_calls.py",
            "tests/kernels/test_properties.py",
            "tests/volumes/test_plan.py",
            "tests/graph/test_infer.py",
            "tests/kernels/test_vectors.py",
        ),
        share=15,
        bar=95,
    ),
    "gradients": Area(
        ("src/voxgrad/catalog/*.py", "src/voxgrad/graph/gradients.py"),
        (
            "tests/graph/test_gradients.py",
            "tests/catalogue/test_gradients.py",
            "tests/kernels/test_derivatives.py",
            "tests/catalogue/test_batch_norm.py",
            "tests/catalogue/test_vectors.py",
        ),
        share=15,
        bar=95,
        more=("tests/catalogue/test_sessions.py", "tests/graph/test_session.py"),
        only=_builds_gradients,
    ),
    "edits": Area(
        tuple(f"src/voxgrad/graph/{name}.py" for name in ("edits", "nesting", "fixes", "page")),
        (
            "tests/graph/test_page.py",
            "tests/graph/test_edits.py",
            "tests/graph/test_nesting.py",
            "tests/graph/test_infer.py",
            "tests/graph/test_ops.py",
            "tests/graph/test_initializers.py",
            "tests/graph/test_session.py",
            "tests/formats/test_page_file.py",
            "tests/graph/test_displays.py",
            "tests/graph/test_lint.py",
            "tests/graph/test_modes.py",
            "tests/formats/test_library.py",
            "tests/blocks/test_packages.py",
        ),
        share=13,
        bar=90,
        options=("-m", "not parity and not slow and not browser", "-k", "not test_a_killed_save"),
    ),
    "plan": Area(
        (
            "src/voxgrad/arrays/plan.py",
            "src/voxgrad/volumes/plan.py",
            "src/voxgrad/volumes/windows.py",
            "src/voxgrad/volumes/layout.py",
        ),
        (
            "tests/volumes/test_plan.py",
            "tests/volumes/test_layout.py",
            "tests/volumes/test_costs.py",
            "tests/graph/test_one_problem.py",
            "tests/arrays/test_arrays.py",
            "tests/volumes/test_pages.py",
        ),
        share=12,
        bar=90,
        more=("tests/volumes/test_run.py",),
    ),
}
