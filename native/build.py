# SPDX-License-Identifier: Apache-2.0
"""Builds the native library with nothing but a C++20 compiler and the standard library.

    python3 native/build.py [--kind address | thread | emulated] [--output PATH]

Objects are kept under build/native/ by the hash of what went into them, so a rebuild compiles only what
reads a file that changed; VOXGRAD_BUILD_CACHE names another folder than build/, for builds of copies.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LIBRARY = "libvoxgrad.dylib" if sys.platform == "darwin" else "voxgrad.dll" if os.name == "nt" else "libvoxgrad.so"
PLACE = ROOT.parent / "src" / "voxgrad" / "kernels" / LIBRARY

COMMON = [
    "-std=c++20",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-ffp-contract=fast",
    "-pthread",
    "-Wall",
    "-Wextra",
]
ISA = {  # in the order of VG_ISA_..., voxgrad.h
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mf16c",
        "-mprefer-vector-width=512",
        "-Wno-maybe-uninitialized",  # GCC 12 warns about its own avx512fintrin.h
        "-Wno-uninitialized",
    ],
}
VECTOR_BYTES = {"baseline": 16, "avx2": 32, "avx512": 64}
_INCLUDE = re.compile(rb'^[ \t]*#include "([^"]+)"', re.MULTILINE)
_SEEN = ["-fno-omit-frame-pointer", "-g", "-O1"]
KINDS = {
    "": [],
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", *_SEEN],
    "thread": ["-fsanitize=thread", *_SEEN],
    "emulated": [],
}
"""Libraries to test with: with AddressSanitizer and UBSan, with ThreadSanitizer, with AVX-512 on any machine."""
UNHURRIED = ["--param=ggc-min-heapsize=1048576"]
"""g++ collects its garbage once there is a gigabyte of it, and no unit makes so much: each takes 200 MB more and a
twentieth less time, for the same code. So it is no part of what objects are known by."""
EMULATED = ["-O1", "-mavx2", "-mfma", "-mf16c", "-Wno-psabi", "-include", str(ROOT / "src" / "emulated" / "avx512.hpp")]


def compiler() -> str | None:
    """The C++ compiler of this machine, or None."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        if name and shutil.which(name):
            return name
    return None


def runnable() -> list[str]:
    """The instruction sets of this machine; all of them where it does not tell."""
    try:
        flags = set(re.findall(r"^flags\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[0].split())
    except (OSError, IndexError):
        return list(ISA)
    return [isa for isa, options in ISA.items() if {o[2:] for o in options if o.startswith("-mavx")} <= flags]


def needed() -> list[str]:
    """Of these the widest: enough to run here, if not to test."""
    return runnable()[-1:]


def soonest() -> list[str]:
    """Of these the one that is there first: AVX-512 takes half as long again as AVX2, and its convolutions with it."""
    return ["avx2"] if "avx2" in runnable() else needed()


def objects(kind: str = "", sets: Sequence[str] = tuple(ISA)) -> Iterator[tuple[Path, str, list[str]]]:
    """What the library is made of: source, name of the object, flags. Every unit once for each instruction set.

    AVX-512 hands some convolutions over to AVX2: these units are lent to it where that set itself is not wanted.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        sets = ["baseline"]
    emulated = kind == "emulated"
    lent = ["avx2"] if "avx512" in sets and "avx2" not in sets else []
    listed = "".join(f" X(vg_{isa}, {number})" for number, isa in enumerate(ISA) if isa in sets)
    called = "".join(f" X(vg_{isa})" for isa in lent)
    for path in sorted((ROOT / "src").glob("*.cpp")):
        yield path, path.stem, [f"-DVG_EMULATED={emulated:d}", f"-DVG_SETS(X)={listed}", f"-DVG_LENT(X)={called}"]
    for isa, units in [(isa, "*.cpp") for isa in sets] + [(isa, "conv*.cpp") for isa in lent]:
        flags = EMULATED if emulated and isa == "avx512" else ISA[isa]
        for path in sorted((ROOT / "src" / "units").glob(units)):
            defined = [f"-DVG_NAMESPACE=vg_{isa}", f"-DVG_VECTOR_BYTES={VECTOR_BYTES[isa]}"]
            yield path, f"{path.stem}-{isa}", [*flags, *defined]


def read_with_headers(*sources: Path) -> dict[Path, bytes]:
    """Files and all that they include of ours, with what is in them."""
    found: dict[Path, bytes] = {}
    waiting = [source.resolve() for source in sources]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = path.read_bytes()
            waiting += [(path.parent / name.decode()).resolve() for name in _INCLUDE.findall(found[path])]
    return found


def compile_one(cxx: str, source: Path, name: str, flags: list[str], cache: Path) -> Path:
    """Compile one file to an object, unless one made from the same text and flags is there already."""
    included = [Path(flags[i + 1]) for i, flag in enumerate(flags) if flag == "-include"]
    digest = hashlib.sha256(" ".join([cxx, *flags]).replace(str(ROOT), "").encode())
    for path, text in sorted(read_with_headers(source, *included).items()):
        digest.update(path.name.encode() + b"\0" + text)
    target = cache / f"{name}-{digest.hexdigest()[:16]}.o"
    if not target.exists():
        part = target.with_suffix(f".{os.getpid()}.part")
        quick = UNHURRIED if sys.platform == "linux" and "clang" not in cxx else []
        call([cxx, *quick, *flags, "-c", str(source), "-o", str(part)])
        part.replace(target)
    return target


def call(command: list[str]) -> None:
    """Run the compiler; one that does not work is a RuntimeError with its last words."""
    try:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as error:
        raise RuntimeError(f"{command[0]} cannot be run: {error.strerror}") from None
    sys.stderr.write(done.stderr)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{command[0]} does not build the kernels: {said[0]}")


LONGEST = (
    "pool_max", "pool_avg", "pool_max_grads", "conv3d_filter", "pool_avg_grad", "conv_tiles_f32", "conv_tiles_f64",
    "conv3d",
)  # fmt: skip
"""The units that take longest to compile, as measured; the order of the others does not matter."""


def by_time(made: tuple[Path, str, list[str]]) -> int:
    """What takes longest to compile is begun first, so that no core waits for it at the end."""
    unit = made[0].stem
    return LONGEST.index(unit) if unit in LONGEST else len(LONGEST)


def build(output: Path = PLACE, kind: str = "", sets: Sequence[str] = tuple(ISA)) -> Path:
    """Compile and link the library to `output`; raises RuntimeError where no compiler does it."""
    cxx = compiler()
    if cxx is None:
        raise RuntimeError("no C++ compiler found (looked for $CXX, g++, clang++, c++)")
    kept = Path(os.environ.get("VOXGRAD_BUILD_CACHE") or ROOT.parent / "build")
    cache = kept / (f"native-{kind}" if KINDS[kind] else "native")
    cache.mkdir(parents=True, exist_ok=True)
    extra = KINDS[kind]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = {
            name: pool.submit(compile_one, cxx, path, name, COMMON + extra + flags, cache)
            for path, name, flags in sorted(objects(kind, sets), key=by_time)
        }
        # In the order of the list: of what several objects hold, as functions of the standard library, the first stays,
        # and that must run on every machine.
        made = [str(jobs[name].result()) for _, name, _ in objects(kind, sets)]
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(f".{os.getpid()}.part")
    static = (
        [] if sys.platform == "darwin" or kind in ("address", "thread") else ["-static-libstdc++", "-static-libgcc"]
    )
    call([cxx, "-shared", "-pthread", *extra, *static, *made, "-o", str(part)])
    part.replace(output)
    return output


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Build the native kernels.")
    parser.add_argument("--kind", choices=KINDS, default="", help="a library to test with")
    parser.add_argument("--output", type=Path, default=PLACE, help="where to put the library")
    options = parser.parse_args()
    print(build(options.output, options.kind))


if __name__ == "__main__":
    main()
