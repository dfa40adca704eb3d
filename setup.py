# SPDX-License-Identifier: Apache-2.0
"""Builds the native library into the wheel; without a compiler the package installs all the same."""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "native"))
import build as native


class BuildWithKernels(build_py):
    """build_py, after the kernels."""

    def run(self) -> None:
        """Build both."""
        try:
            if os.environ.get("VOXGRAD_KERNELS") != "built":  # by the script `run`
                native.build(sets=native.runnable() if self.editable_mode else tuple(native.ISA))
        except RuntimeError as error:
            self.warn(f"{error}; installing without native kernels (slow, same results)")
        super().run()
        if not self.editable_mode:
            self._add_examples()

    def _add_examples(self) -> None:
        """The example pages, for the studio's gallery; a clone has them where they are."""
        source = Path(__file__).parent / "examples"
        target = Path(self.build_lib) / "voxgrad" / "examples"
        for path in [*source.glob("*.vox.json"), *source.glob("*.data/*.npy"), *source.glob("files/*")]:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


class BinaryDistribution(Distribution):
    """The library is for one platform, but for every Python."""

    def has_ext_modules(self) -> bool:
        """True where the library is or can be built."""
        return native.PLACE.exists() or native.compiler() is not None


try:
    from setuptools.command.bdist_wheel import bdist_wheel

    class PlatformWheel(bdist_wheel):
        """py3-none-<platform>: nothing here depends on Python's own ABI."""

        def get_tag(self) -> tuple[str, str, str]:
            """The tag without Python's version."""
            return "py3", "none", super().get_tag()[2]

    commands = {"build_py": BuildWithKernels, "bdist_wheel": PlatformWheel}
except ImportError:
    commands = {"build_py": BuildWithKernels}

setup(cmdclass=commands, distclass=BinaryDistribution)
