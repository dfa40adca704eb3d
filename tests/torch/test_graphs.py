# SPDX-License-Identifier: Apache-2.0
"""`vt.graphed`: which calls are replayed and which run the model. tests/cuda/test_on_gpu.py tests the replays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

torch = pytest.importorskip("torch", reason="voxgrad.torch needs torch")

from torch import func, nn  # noqa: E402

import voxgrad as vg  # noqa: E402
import voxgrad.torch as vt  # noqa: E402
from voxgrad.torch import graphs  # noqa: E402

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


class Stand:
    """In place of a recording, which needs a GPU."""

    def __init__(self, model: Any, inputs: Any):
        pass

    def record(self, model: Any) -> None:
        """Nothing."""

    def __call__(self, inputs: Any) -> Any:
        """An answer that no model gives."""
        return "replayed"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(graphs, "_Recording", Stand)
    monkeypatch.setattr(graphs, "_refuse", lambda *_: None)
    monkeypatch.setattr(graphs, "warm_up", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return vt.graphed(nn.Sequential(nn.Conv3d(1, 2, 3), nn.InstanceNorm3d(2)), X)


X = torch.randn(1, 1, 4, 4, 4)


def low(run: Any) -> Any:
    with patch.object(torch, "is_autocast_enabled", lambda *_: True):
        return run(X), run.why_not(X)


def halved(run: Any) -> Any:
    run.model.double()
    return run(X.double()), run.why_not(X)


def frozen(run: Any) -> Any:
    run.model[0].weight.requires_grad_(False)
    return run(X), run.why_not(X)


def quiet(run: Any) -> Any:
    with torch.no_grad():
        return run(X), run.why_not(X)


def mapped(run: Any) -> Any:
    words: list[str] = []
    made = func.jvp(lambda x: (words.append(run.why_not(x)), run(x))[1], (X,), (X,))[0]
    return made, words[0]


OTHERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "shape": (lambda run: (run(X.repeat(2, 1, 1, 1, 1)), run.why_not(X.repeat(2, 1, 1, 1, 1))), "the inputs"),
    "strides": (lambda run: (run(X.mT), run.why_not(X.mT)), "the inputs"),
    "input gradient": (
        lambda run: (run(X.clone().requires_grad_()), run.why_not(X.clone().requires_grad_())),
        "the in",
    ),
    "mode": (lambda run: (run.model.eval()(X), run.why_not(X)), "the model is in another mode"),
    "part of it": (lambda run: (run.model[1].eval() and run(X), run.why_not(X)), "the model is in another mode"),
    "autocast": (low, "autocast"),
    "type": (halved, "its layers"),
    "frozen": (frozen, "its layers"),
    "no gradients": (quiet, "gradients"),
    "transform": (mapped, "a transform"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_calls_of_another_kind_run_the_model(name: str, run: Any) -> None:
    call, words = OTHERS[name]
    assert run(X) == "replayed" and run.why_not(X) == ""
    made, why = call(run)
    assert isinstance(made, torch.Tensor) and why.startswith(words), why


def test_what_changes_in_place_is_replayed(run: Any) -> None:
    """Optimisers and loaded weights; calls of a kind that was added."""
    run.model.load_state_dict({key: value + 1 for key, value in run.model.state_dict().items()})
    torch.optim.SGD(run.model.parameters(), 0.1).step()
    assert run(X) == "replayed"
    run.model.eval()
    run.add(X)
    assert run(X) == "replayed" and run.model.train() and run(X) == "replayed"


def test_what_cannot_be_recorded_is_refused() -> None:
    for wrong, words in (
        (lambda: vt.graphed(nn.Conv3d(1, 1, 1), X), r"VG032 graphed: inputs\[0\] must be a plain tensor on a GPU; got"),
        (lambda: vt.graphed(nn.Conv3d(1, 1, 1)), "VG001 graphed: inputs"),
        (lambda: vt.graphed(lambda x: x, X), "VG002 graphed: model must be an nn.Module"),
    ):
        with pytest.raises(vg.InvalidArgumentError, match=words):
            wrong()
