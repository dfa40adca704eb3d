# SPDX-License-Identifier: Apache-2.0
"""Builds the source distribution and the wheel, installs each into an empty environment, and uses it there.

python3 run package [--keep]

What is used: the examples of the README, `voxgrad doctor`, and every card of the studio's gallery. Then the same from
sources with a compiler that does not work: the package must install and compute all the same, and say what it lacks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "package"
EXAMPLES = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
GALLERY = """
import tempfile, pathlib
import voxgrad as vg
from voxgrad.kernels.arraywise.files import Files
from voxgrad.studio import gallery
assert len(gallery.cards()) >= 10, "the package brings no examples"
for card in gallery.cards():
    page = gallery.page(card.id)
    wrong = page.problems()
    assert bool(wrong) == card.id.endswith("_mistake"), (card.id, wrong)
    if not wrong:
        gallery.bring_files(page, Files.beside(pathlib.Path(tempfile.mkdtemp()) / "page.vox.json"))
        vg.ClientSession(page).run(list(page.outputs.values()), targets=list(page.targets))
print(len(gallery.cards()), "cards")
"""


def say(text: str) -> None:
    """A line about what is done."""
    sys.stdout.write(f"[package] {text}\n")
    sys.stdout.flush()


def run(command: list[str], **variables: str) -> str:
    """What a command prints; its failure ends everything."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=PLACE, env=clean | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]}\nended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def empty_environment(name: str, distribution: Path, **variables: str) -> Path:
    """The Python of a new environment that holds the distribution, the studio and what reads the demo's scan."""
    folder = PLACE / name
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run([str(python), "-m", "pip", "install", "-q", f"{distribution}[studio,nifti]"], **variables)
    return python


def use(python: Path, native: bool) -> None:
    """What a person does first."""
    code = "\n".join(EXAMPLES.findall((ROOT / "README.md").read_text()))
    run([str(python), "-W", "ignore" if not native else "error", "-c", code])
    told = run([str(python), "-W", "ignore", "-m", "voxgrad", "doctor"])
    kernels = run([str(python), "-W", "ignore", "-c", "from voxgrad.kernels import cpu; print(cpu.isa_name())"]).strip()
    assert (kernels != "none") == native, f"kernels: {kernels}\n{told}"
    if native:
        say(f"kernels {kernels}, {run([str(python), '-c', GALLERY]).strip()}")


def main() -> None:
    """All of it."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    objects = {"VOXGRAD_BUILD_CACHE": str(ROOT / "build")}
    say("building the source distribution, and from it the wheel")
    run([sys.executable, "-m", "build", "--outdir", str(PLACE / "dist"), str(ROOT)], **objects)
    (source,), (wheel,) = (PLACE / "dist").glob("*.tar.gz"), (PLACE / "dist").glob("*.whl")
    for name, distribution in (("wheel", wheel), ("sdist", source)):
        say(f"{distribution.name}, {distribution.stat().st_size / 2**20:.1f} MiB, into an empty environment")
        use(empty_environment(name, distribution, **objects), native=True)
    say("the sources with a compiler that does not work")
    use(empty_environment("no-compiler", source, CXX="/bin/false"), native=False)
    if "--keep" not in sys.argv[1:]:
        shutil.rmtree(PLACE)
    say("all of them work")


if __name__ == "__main__":
    main()
