# SPDX-License-Identifier: Apache-2.0
"""The lane of native changes: only the units that read the changed file, for one instruction set, hardly optimised."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.mutants.areas import ISA, ROOT, Area
from tools.mutants.change import Change
from tools.mutants.lanes import PASSED, Lane, run, verdict

COMPILE_LIMIT = 900.0


def _build_script() -> Any:
    spec = importlib.util.spec_from_file_location("native_build", ROOT / "native" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NativeLane(Lane):
    """Compiles and links before it tests, for one instruction set alone."""

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
        self.texts: dict[str, bytes] = {}
        for source, name, flags in self.native.objects(sets=[ISA]):
            full = [*self.native.COMMON, *flags]
            if name.endswith(f"-{ISA}"):
                self.sources[name] = folder / source.relative_to(ROOT), [*full, "-Og", "-w"]
            else:
                cache = ROOT / "build" / "native"
                self.objects[name] = self.native.compile_one(self.compiler, source, name, full, cache)

    def begin(self, taken: float) -> float:
        """Compile all of it, unless that was done before, then as always."""

        def compiled(name: str) -> tuple[Path, bytes]:
            source, flags = self.sources[name]
            made = self.native.compile_one(self.compiler, source, name, flags, self.place.parents[1])
            return made, self._text(name)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for name, made in zip(self.sources, pool.map(compiled, self.sources), strict=True):
                self.objects[name], self.texts[name] = made
        self._link({})
        return super().begin(taken)

    def adopt(self, other: Lane) -> None:
        """Take over the objects, too."""
        super().adopt(other)
        assert isinstance(other, NativeLane)
        self.objects, self.texts = dict(other.objects), dict(other.texts)

    def _command(self, more: tuple[str, ...] = ()) -> tuple[list[str], dict[str, str]]:
        """With the changed library, once there is one."""
        arguments, variables = super()._command(more)
        return arguments, variables | ({"VOXGRAD_LIBRARY": str(self.changed)} if self.changed.exists() else {})

    def request(self, change: Change) -> dict[str, Any]:
        """The changed library, and whose tests cannot notice."""
        return {"library": str(self.changed), "without": self.without(change)}

    def decide(self, change: Change, first: list[str], apart: bool) -> tuple[str, str]:
        """Unit after unit of those that read the file, the quickest first: most changes show before the last one."""
        made: dict[str, Path] = {}
        units = self._readers(change)
        if self._text(units[0]) == self.texts[units[0]]:
            return "equivalent", "it is not compiled for this instruction set"
        for name in units:
            place = self.place / f"{name}.changed.o"
            if not self._compile(name, place):
                return "stillborn", ""
            if place.read_bytes() == self.objects[name].read_bytes():
                continue
            made[name] = place
            self._link(made)
            if name != units[-1]:
                found = verdict(self.ask(first=first, only=self.area.tests[0], **self.request(change)))
                if found[0] in ("killed", "hung"):
                    return found
        return super().decide(change, first, apart) if made else ("equivalent", "")

    def _readers(self, change: Change) -> list[str]:
        path = (self.folder / change.path).resolve()
        units = [name for name, (source, _) in self.sources.items() if path in self._read(source)]
        return sorted(units, key=lambda name: self.objects[name].stat().st_size)

    def _read(self, source: Path) -> dict[Path, bytes]:
        files: dict[Path, bytes] = self.native.read_with_headers(source.resolve())
        return files

    def _text(self, name: str) -> bytes:
        """A unit as the compiler reads it."""
        source, flags = self.sources[name]
        return subprocess.run([self.compiler, *flags, "-E", "-P", str(source)], stdout=subprocess.PIPE).stdout

    def _compile(self, name: str, target: Path) -> bool:
        source, flags = self.sources[name]
        command = [self.compiler, *flags, "-c", str(source), "-o", str(target)]
        return run(command, self.folder, {}, COMPILE_LIMIT)[0] == PASSED

    def _link(self, changed: dict[str, Path]) -> None:
        library = self.changed if changed else self.folder / "src" / "voxgrad" / "kernels" / self.native.LIBRARY
        library.unlink(missing_ok=True)
        # Of a function that several units hold the first stays: the changed one.
        same = [place for name, place in self.objects.items() if name not in changed]
        objects = [str(place) for place in (*changed.values(), *same)]
        status, output = run([self.compiler, "-shared", "-pthread", *objects, "-o", str(library)], self.folder, {}, 60)
        if status != PASSED:
            raise SystemExit(f"the library cannot be linked:\n{output}")
