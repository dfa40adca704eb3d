# SPDX-License-Identifier: Apache-2.0
"""Builds the native library with nothing but a C++20 compiler and the standard library.

    python3 native/build.py [--sanitize] [--output PATH]

Objects are kept under build/native/ by the hash of what went into them, so a rebuild compiles only what changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LIBRARY = "libvoxgrad.dylib" if sys.platform == "darwin" else "voxgrad.dll" if os.name == "nt" else "libvoxgrad.so"
PLACE = ROOT.parent / "src" / "voxgrad" / "kernels" / LIBRARY

COMMON = [
    "-std=c++20",
    "-O3",
    "-fPIC",
    "-fvisibility=default",
    "-fno-math-errno",
    "-ffp-contract=fast",
    "-pthread",
    "-Wall",
    "-Wextra",
]
ISA = {
    "isa_avx2.cpp": ["-mavx2", "-mfma", "-mf16c"],
    "isa_avx512.cpp": [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mf16c",
        "-mprefer-vector-width=512",
    ],
}
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"]


def compiler() -> str | None:
    """The C++ compiler of this machine, or None."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        if name and shutil.which(name):
            return name
    return None


def sources() -> list[Path]:
    """The files to compile here: the x86 instruction sets only on x86."""
    wanted = sorted((ROOT / "src").glob("*.cpp"))
    if platform.machine().lower() not in ("x86_64", "amd64"):
        wanted = [path for path in wanted if path.name not in ISA]
    return wanted


def flags_of(name: str) -> list[str]:
    """Flags of one source file: its instruction set; kernels are hidden, so that two builds in a process keep apart."""
    return (["-fvisibility=hidden"] if name.startswith("isa_") else []) + ISA.get(name, [])


def compile_one(cxx: str, source: Path, flags: list[str], cache: Path) -> Path:
    """Compile one file to an object, unless one made from the same text and flags is there already."""
    digest = hashlib.sha256(" ".join([cxx, *flags, source.name]).encode())
    headers = sorted((ROOT / "include").rglob("*.h")) + sorted((ROOT / "src").rglob("*.hpp"))
    for path in [source, *headers]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    target = cache / f"{source.stem}-{digest.hexdigest()[:16]}.o"
    if not target.exists():
        part = target.with_suffix(f".{os.getpid()}.part")
        subprocess.run([cxx, *flags, "-c", str(source), "-o", str(part)], check=True)
        part.replace(target)
    return target


def build(output: Path = PLACE, sanitize: bool = False) -> Path:
    """Compile and link the library to `output`; raises RuntimeError where there is no compiler."""
    cxx = compiler()
    if cxx is None:
        raise RuntimeError("no C++ compiler found (looked for $CXX, g++, clang++, c++)")
    cache = ROOT.parent / "build" / ("native-sanitize" if sanitize else "native")
    cache.mkdir(parents=True, exist_ok=True)
    extra = SANITIZE if sanitize else []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(compile_one, cxx, path, COMMON + extra + flags_of(path.name), cache) for path in sources()]
        objects = [str(job.result()) for job in jobs]
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(f".{os.getpid()}.part")
    static = [] if sys.platform == "darwin" or sanitize else ["-static-libstdc++", "-static-libgcc"]
    subprocess.run([cxx, "-shared", "-pthread", *extra, *static, *objects, "-o", str(part)], check=True)
    part.replace(output)
    return output


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Build the native kernels.")
    parser.add_argument("--sanitize", action="store_true", help="with AddressSanitizer and UBSan")
    parser.add_argument("--output", type=Path, default=PLACE, help="where to put the library")
    options = parser.parse_args()
    print(build(options.output, options.sanitize))


if __name__ == "__main__":
    main()
