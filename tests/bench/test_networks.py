# SPDX-License-Identifier: Apache-2.0
"""The benchmark of whole networks: converted they are whole and train as before; a wrong loss would be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the networks are torch's")

import voxgrad.torch as vt  # noqa: E402
from bench import networks  # noqa: E402
from bench.network_models import NETWORKS  # noqa: E402

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
STEPS = 3


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of few features on few cells."""
    for name, network in NETWORKS.items():
        _, (batch, channels, *sizes) = network.small
        features = [channels, 16] if name == "video_decoder" else [16, 32]
        shape = (batch, channels, *(min(size, 16) for size in sizes))
        monkeypatch.setitem(NETWORKS, name, replace(network, small=(features, shape)))


def losses(name: str, **engine: Any) -> list[float]:
    trainer = networks.Trainer(networks.Task(name, "cpu", "float32"), networks.Engine(compiled=False, **engine))
    if engine["ours"]:
        left = [line for line in vt.report(trainer.model).left if line.why != "no kernel here"]
        assert not left and vt.report(trainer.model).converted
    return [trainer.step() for _ in range(STEPS)]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_converted_network_trains_as_before(name: str, small: None) -> None:
    wanted = losses(name, ours=False, channels_last=False)
    assert wanted[-1] < wanted[0]
    # torch 2.13's own gradient of GroupNorm crashes in this decoder, channels last.
    for last in (False, True) if name != "video_decoder" else (False,):
        assert networks.differs(losses(name, ours=True, channels_last=last), wanted, 1e-4) == ""


def test_a_wrong_loss_is_told() -> None:
    assert networks.differs([1.0, 0.5], [1.0, 0.5], 1e-3) == ""
    assert networks.differs([1.0, 0.6], [1.0, 0.5], 1e-3) == "the loss of step 2 is off by 0.1"


def test_a_network_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The names that there are stand in the message."""
    monkeypatch.setattr("sys.argv", ["run bench networks", "--network", "nnunet"])
    with pytest.raises(SystemExit):
        networks.main()
    assert "must be one of plain_unet, residual_unet" in capsys.readouterr().err
