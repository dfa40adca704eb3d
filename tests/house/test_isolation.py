# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to a parser in its child process, the caller has a result or an error that names the file."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.house import parsers
from voxgrad.isolation import isolated


def test_results_are_json_bytes_and_arrays() -> None:
    said, array, raw, empty = isolated(parsers.parts, about="x.bin")
    assert said == {"sizes": [1, 2]} and raw == b"\0\n"
    assert array.dtype == np.int16 and array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert empty.shape == (2, 0) and empty.dtype == np.float16
    large = "x" * 10**6
    assert isolated(parsers.echo, large, about="x.bin") == large


@pytest.mark.parametrize(
    ("function", "code", "told"),
    [
        (parsers.crash, "VG051", "SIGSEGV"),
        (parsers.leave, "VG051", "went away"),
        (parsers.swell, "VG020", "at most"),
        (parsers.swell_slowly, "VG020", "at most"),
        (parsers.refuse, "VG032", "elsewhere"),
        (parsers.stumble, "VG051", "KeyError: 'offset'"),
        (parsers.strange, "VG051", "not JSON serializable"),
        (parsers.recurse, "VG051", "RecursionError"),
    ],
)
def test_what_goes_wrong_there_is_an_error_here(function: Callable[[], Any], code: str, told: str) -> None:
    with pytest.raises(vg.VoxgradError) as caught:
        isolated(function, about="scan.h5", memory=2**28)
    assert caught.value.faults[0].code == code
    assert told in str(caught.value)
    assert code == "VG032" or "scan.h5" in str(caught.value)
    assert isinstance(
        caught.value, {"VG020": vg.ResourceExhaustedError, "VG032": vg.UnimplementedError}.get(code, Exception)
    )


@pytest.mark.parametrize("function", [parsers.hang, parsers.spin])
def test_a_parser_without_an_end_is_stopped(function: Callable[[], Any]) -> None:
    begun = time.monotonic()
    with pytest.raises(vg.VoxgradError, match=r"VG021 file: scan.h5 must be read within 1.5 s"):
        isolated(function, about="scan.h5", seconds=1.5)
    assert time.monotonic() - begun < 10


def test_many_at_a_time() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda n: isolated(parsers.echo, n, about="x"), range(4))) == [0, 1, 2, 3]
