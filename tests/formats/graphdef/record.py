# SPDX-License-Identifier: Apache-2.0
"""Records example pages as GraphDef files, with TensorFlow: `python -m tests.formats.graphdef.record`."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

from examples.make_pages import FOLDER
from voxgrad.formats.page_file import load
from voxgrad.formats.script import write_script

PAGES = ("unet_block", "second_order", "xor")


def main() -> None:
    for name in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.py"
            write_script(load(FOLDER / f"{name}.vox.json"), path, "tensorflow")
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            script = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(script)
            Path(__file__).with_name(f"{name}.pb").write_bytes(
                script.graph.as_graph_def().SerializeToString(deterministic=True)
            )


if __name__ == "__main__":
    main()
