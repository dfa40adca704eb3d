# SPDX-License-Identifier: Apache-2.0
"""The example of every op as a TensorFlow program, exported from its page, gives what the reference prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.grouped import grouped
from voxgrad.catalog.examples import names
from voxgrad.catalog.registry import OPS
from voxgrad.formats.script import export_script
from voxgrad.graph.example import example_page

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

NOT_THERE = {
    "AdjustContrast", "RandomPoisson", "TopK",  # deprecated: removed from new graphs
    "LMDBReader",  # its newer form is missing
    "MaxPoolGradGradWithArgmax", "QuantizedReluX",  # no kernel on the CPU
    "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor", "DeleteSessionTensor",  # only from run to run
    "RecordInput",  # reads the file before the page has written it, and ends the process
    "MatchingFiles",  # is folded into a constant before the page has written the file
    "EncodePng", "EncodeJpeg",  # other bytes of the same picture
}  # fmt: skip
"""What TensorFlow 2.21 cannot run, or gives in another form."""


def _as_numbers(value: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _agree(theirs: Any, ours: np.ndarray[Any, Any]) -> bool:
    if ours.dtype == object:
        return np.asarray(theirs, dtype=object).tolist() == ours.tolist()
    there, here = _as_numbers(theirs), _as_numbers(ours)
    return there.shape == here.shape and np.allclose(there, here, rtol=2e-5, atol=1e-6, equal_nan=True)


@grouped("name", sorted(names() - NOT_THERE), by=lambda name: OPS[name].group)
def test_tensorflow_gives_the_values_of_the_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow")
    example = example_page(OPS[name])
    assert example is not None
    values = example.run()
    shown = {f"out{at}": path for at, path in enumerate(values)}
    example.page.expose({key: example.page.output(path) for key, path in shown.items()})
    program = export_script(example.page, "tensorflow").text
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.chdir(folder)
    room: dict[str, Any] = {"__file__": str(folder / "page.py"), "__name__": "page"}
    exec(program, room)  # exported from a page of our own
    found = room["run"](1, dict(example.feeds))
    wrong = [(path, found[key], values[path]) for key, path in shown.items() if not _agree(found[key], values[path])]
    assert wrong == [], name
