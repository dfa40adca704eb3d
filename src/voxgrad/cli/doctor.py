# SPDX-License-Identifier: Apache-2.0
"""`voxgrad doctor`: what this installation can do, found out without importing anything heavy."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

from voxgrad.arrays.limits import free_memory
from voxgrad.catalog import packages
from voxgrad.cli import exits
from voxgrad.kernels import cpu

DESCRIPTION = """\
Say what this installation can do: version, CPU, threads, kernels, optional packages.

Frameworks are looked up, not imported, so this takes no time even where they are installed. Packages that bring blocks
are loaded, to say which of them can be.
"""

PACKAGES = {
    "arrays": ("numpy", "ml_dtypes", "torch", "jax", "cupy"),
    "GPU kernels": ("triton",),
    "volumes": ("nibabel", "zarr", "dask", "distributed", "tifffile", "h5py", "pydicom"),
    "studio": ("fastapi", "uvicorn", "websockets", "safetensors"),
    "comparison": ("tensorflow", "tensorflow-cpu"),
    "terminal": ("rich",),
}
_FEATURES = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_bf16",
    "amx_tile",
    "asimd",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad doctor`."""
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Print the findings."""
    found = findings()
    if arguments.json:
        print(json.dumps(found, indent=1))
        return exits.OK
    for section, items in found.items():
        if items:
            print(section)
        for name, value in items.items():
            print(f"  {name:16} {value}")
    return exits.OK


def findings() -> dict[str, dict[str, Any]]:
    """Everything worth knowing, by section."""
    from voxgrad import __version__

    with warnings.catch_warnings():
        # The report itself says when the native library is missing.
        warnings.simplefilter("ignore", RuntimeWarning)
        native = cpu.library() is not None
    return {
        "voxgrad": {
            "version": __version__,
            "python": f"{platform.python_version()} ({sys.executable})",
            "system": platform.platform(),
        },
        "machine": {
            "processor": _processor(),
            "features": " ".join(_features()) or "unknown",
            "processors": os.cpu_count(),
            "free memory": f"{free_memory() / 2**30:.1f} GiB",
        },
        "kernels": {
            "in use": f"native, {cpu.isa_name()}" if native else "NumPy reference (slow; no native library was built)",
            "could use": ", ".join(cpu.instruction_sets()) if native else "none",
            "threads": f"{cpu.get_num_threads()} (VOXGRAD_NUM_THREADS, vg.set_num_threads)",
        },
        "packages": {name: _version_of(name) for names in PACKAGES.values() for name in names if _version_of(name)},
        "packages of blocks": {one.name: _blocks(one) for one in packages.everything()},
        "not installed": {
            purpose: ", ".join(missing)
            for purpose, names in PACKAGES.items()
            if (missing := [name for name in names if not _version_of(name)])
        },
    }


def _blocks(package: packages.Package) -> str:
    listed = ", ".join(package.ops) or "no blocks"
    return f"{package.version}: " + (f"does not load: {package.error}" if package.error else listed)


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _features() -> list[str]:
    flags = (_cpuinfo("flags") or _cpuinfo("Features")).split()
    return [name for name in _FEATURES if name in flags]


def _cpuinfo(key: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
