# SPDX-License-Identifier: Apache-2.0
"""Every path of the GPU kernels, on both sides of every edge of its condition: the share of a day of `sweep`."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

from tests.cuda import sweep  # noqa: E402
from voxgrad.catalog import dtypes, geometry  # noqa: E402
from voxgrad.catalog.geometry import Axis  # noqa: E402
from voxgrad.kernels.cuda import dispatch, launch, paths, pool_avg, tune  # noqa: E402
from voxgrad.kernels.cuda.conv_common import Config  # noqa: E402

# torch and Triton are installed by `python3 run test --parity`. NumPy warns inside the interpreter.
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

SHORT = geometry.axis(3, 3, 1, 1, geometry.SAME)


def case_of(kernel: str, axes: Any, channels: int = 4, forced: Any = None, kind: str = "float32", **more: Any) -> Any:
    """A pool as a case."""
    made = sweep._problem(kernel, kind, True, 1, (channels, channels, 1), axes, **more)
    return sweep.Case(made, kind, forced or {}, None, "", (0, 0))


@pytest.mark.slow
def test_the_share_of_today(device: str, capsys: Any) -> None:
    """Cases that together enter every path and lie beyond every edge, another choice every day."""
    seed = int(os.environ.get("VOXGRAD_SWEEP_SEED", sweep.today()))
    with capsys.disabled():
        print(f" seed {seed}", end=" ", flush=True)
    failures, seen, _ = sweep.run_share((seed, sweep.covering(seed), 1, device))
    assert not failures, "\n".join(failures)
    assert not sweep.Coverage(seen).missing()


@pytest.mark.parametrize("kernel", ["max_pool_grad", "avg_pool_grad"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_gradients_of_a_part_of_a_volume(kernel: str, at: int, device: str) -> None:
    """A chunk has other numbers of windows than of cells, and windows with cells outside of it: they share, too."""
    whole = geometry.axis(12, 3, 1, 1, geometry.SAME)
    cells, windows = ((0, 7), (0, 6)) if kernel == "max_pool_grad" else ((2, 6), (1, 7))
    axes = [geometry.part(whole, cells, windows) if index == at else SHORT for index in range(3)]
    assert sweep.check(case_of(kernel, axes), device)[0] == ""


@pytest.mark.parametrize("at", [0, 1, 2])
def test_gradients_of_windows_that_start_late(at: int, device: str) -> None:
    """The first cell belongs to no window; in a part of a volume with a stride longer than the window that is so."""
    late = geometry.part(geometry.axis(9, 1, 2, 1, geometry.VALID), (1, 6), (1, 3))
    axes = [late if index == at else geometry.axis(4, 3, 2, 1, geometry.SAME) for index in range(3)]
    assert late.before == -1
    assert sweep.check(case_of("avg_pool_grad", axes), device)[0] == ""
    for near in (False, True):
        case = case_of("max_pool_grad", axes, near_ties=near)
        assert sweep.check(case, device)[0] == ""
        assert sweep.check(replace(case, odd="not the maximum"), device)[0] == ""


def test_overreaching_windows_of_a_part_of_a_volume(device: str) -> None:
    """A window longer than a chunk, but not than the volume, is as long as it says."""
    whole = geometry.axis(12, 5, 2, 1, geometry.SAME, overreach=True)
    part = geometry.part(whole, (4, 8), geometry.output_box(whole, 4, 8))
    for kernel in ("avg_pool_grad", "max_pool_grad"):
        assert sweep.check(case_of(kernel, (part, SHORT, SHORT)), device)[0] == ""


def test_filter_gradients_of_few_channels_in_planes_that_are_no_whole_boxes() -> None:
    """Rows of taps as channels are read in boxes of one plane: a box over several is no reason to try that."""
    axes = (Axis(64, 64, 1), Axis(4, 4, 3, before=1), Axis(8, 8, 7, before=3))
    made = sweep._problem("conv3d_filter", "bfloat16", True, 8, (4, 128, 1), axes)
    assert tune.operations(made) > tune.TINY
    kinds = [choice.config.kind for choice in tune.candidates(made, torch.bfloat16) if choice.config]
    assert kinds and "unfold" not in kinds
    with pytest.raises(ValueError, match="planes of outputs in whole boxes"):
        sweep.ask(sweep.Case(made, "bfloat16", {}, Config(64, 64, 64, kind="unfold"), "", (0, 0)))


def test_a_call_can_be_asked_and_forced(device: str) -> None:
    """Which path it takes, which could, and any of them on request."""
    made = case_of("max_pool_grad", (SHORT, SHORT, SHORT)).problem
    tensors = [torch.zeros(shape, device=device) for shape in sweep._shapes(made)]
    (first, *_) = dispatch.asked(made, *tensors)
    assert (str(first), first.may) == ("max_pool_grad stages", ["stages", "winners"])
    assert "max_pool_grad stages" in dispatch.describe(made, *tensors)
    with paths.forced({"max_pool_grad": "winners", "gather": "tiles"}):
        assert str(next(iter(dispatch.asked(made, *tensors)))) == "max_pool_grad winners"
    with pytest.raises(KeyError), paths.forced({"max_pool_grad": "wishes"}):
        pass


def test_a_wrong_condition_is_found(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the sweep would say of a path that is taken where it gives wrong numbers, and of one nobody enters."""
    case = case_of("avg_pool_grad", (geometry.axis(5, 2, 2, 1, geometry.SAME), SHORT, SHORT))
    wrong = replace(pool_avg.SPREAD["repeat"], needs=())
    monkeypatch.setattr(pool_avg.SPREAD, "paths", (wrong, *pool_avg.SPREAD.paths[1:]))
    assert "wrong" in sweep.check(case, device)[0]
    assert "path: engine: voxgrad" in sweep.Coverage().missing()


def test_memory_is_poisoned(device: str) -> None:
    """Results and what kernels keep in between."""
    like = torch.zeros(1, device=device)
    assert launch.empty(like, (3, 4)).isnan().all() and torch.empty(3, device=device).isnan().all()
    assert like.new_empty(3).isnan().all() and (torch.empty(3, dtype=torch.uint8, device=device) == 255).all()


def test_without_a_gpu_the_command_says_so() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    made = subprocess.run([sys.executable, "-m", "tests.cuda.sweep", "--gpu"], capture_output=True, text=True)
    assert made.returncode == 1 and "needs a GPU" in made.stderr and "Traceback" not in made.stderr


def test_every_type_is_swept() -> None:
    """The types of the family, and an integer for the one op that takes them."""
    kinds = {sweep.draw(1, index).kind for index in range(400)}
    assert {dtypes.named(kind) for kind in kinds} >= {dtypes.HALF, dtypes.BFLOAT16, dtypes.FLOAT32, dtypes.FLOAT64}
    assert "int32" in kinds
