# SPDX-License-Identifier: Apache-2.0
"""The lane of native changes: only the units that read the changed file, for one instruction set, hardly optimised."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from tools.mutants.areas import ISA, ROOT, Area
from tools.mutants.change import Change
from tools.mutants.lanes import PASSED, Lane, run

COMPILE_LIMIT = 900.0


def _build_script() -> Any:
    spec = importlib.util.spec_from_file_location("native_build", ROOT / "native" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NativeLane(Lane):
    """Compiles and links before it tests. The other instruction sets are linked as they were built."""

    def __init__(self, folder: Path, area: Area):
        super().__init__(folder, area)
        self.native = _build_script()
        self.compiler = self.native.compiler()
        self.place = folder / "build"
        self.place.mkdir()
        self.changed = self.place / self.native.LIBRARY
        self.sources: dict[str, tuple[Path, list[str]]] = {}
        """The units that are compiled here, by the names of their objects."""
        self.objects: dict[str, Path] = {}
        for source, name, flags in self.native.objects():
            full = [*self.native.COMMON, *flags]
            if name.endswith(f"-{ISA}"):
                self.sources[name] = folder / source.relative_to(ROOT), [*full, "-O1", "-w"]
            else:
                cache = ROOT / "build" / "native"
                self.objects[name] = self.native.compile_one(self.compiler, source, name, full, cache)

    def begin(self, taken: float) -> float:
        """Compile all of it once, then as always."""
        for name in self.sources:
            self.objects[name] = self.place / f"{name}.o"
            if not self._compile(name, self.objects[name]):
                raise SystemExit(f"{name} cannot be compiled without a change")
        self._link({})
        return super().begin(taken)

    def adopt(self, other: Lane) -> None:
        """Take over the objects, too."""
        super().adopt(other)
        assert isinstance(other, NativeLane)
        self.objects = dict(other.objects)

    def _command(self, more: tuple[str, ...] = ()) -> tuple[list[str], dict[str, str]]:
        """With the changed library, once there is one."""
        arguments, variables = super()._command(more)
        return arguments, variables | ({"VOXGRAD_LIBRARY": str(self.changed)} if self.changed.exists() else {})

    def request(self, change: Change) -> dict[str, Any]:
        """The changed library."""
        return {"library": str(self.changed)}

    def build(self, change: Change) -> tuple[str, str] | None:
        """Compile the units that read the changed file; where all come out the same there is nothing to test."""
        path = (self.folder / change.path).resolve()
        made: dict[str, Path] = {}
        for name, (source, _) in self.sources.items():
            if path in self.native.read_with_headers(source.resolve()):
                made[name] = self.place / f"{name}.changed.o"
                if not self._compile(name, made[name]):
                    return "stillborn", ""
        if all(place.read_bytes() == self.objects[name].read_bytes() for name, place in made.items()):
            return "equivalent", ""
        self._link(made)
        return None

    def _compile(self, name: str, target: Path) -> bool:
        source, flags = self.sources[name]
        command = [self.compiler, *flags, "-c", str(source), "-o", str(target)]
        return run(command, self.folder, {}, COMPILE_LIMIT)[0] == PASSED

    def _link(self, changed: dict[str, Path]) -> None:
        library = self.changed if changed else self.folder / "src" / "voxgrad" / "kernels" / self.native.LIBRARY
        library.unlink(missing_ok=True)
        objects = [str(changed.get(name, place)) for name, place in self.objects.items()]
        status, output = run([self.compiler, "-shared", "-pthread", *objects, "-o", str(library)], self.folder, {}, 60)
        if status != PASSED:
            raise SystemExit(f"the library cannot be linked:\n{output}")
