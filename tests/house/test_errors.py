# SPDX-License-Identifier: Apache-2.0
"""Errors are data, and stay so wherever other programs carry them: pickled, copied, grouped, made anew from text."""

import copy
import pickle
import traceback

import pytest

import voxgrad as vg
from voxgrad import errors
from voxgrad.errors import Fault, VoxgradError
from voxgrad.formats.text import TextError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, VoxgradError)]
FAULT = Fault("VG012", "MaxPool3D", "grad", "have 2.5 parts", "[2,1.5]", "Do this. Then that.")


def caught(kind: type[VoxgradError]) -> VoxgradError:
    try:
        raise kind([FAULT, Fault("VG001", "Conv3D", "filter", "be given", "no value", where="a line\n ^")])
    except VoxgradError as error:
        return error


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_made_anew_from_its_text_says_the_same(kind: type[VoxgradError]) -> None:
    error = caught(kind)
    again = kind(str(error))
    assert str(again) == str(error)
    assert [one.code for one in again.faults] == ["VG012", "VG001"]
    first = again.faults[0]
    assert (first.op, first.argument, first.wanted, first.got) == ("MaxPool3D", "grad", "have 2.5 parts", "[2,1.5]")
    assert first.remedy == FAULT.remedy


@pytest.mark.parametrize("kind", KINDS)
def test_a_framework_may_put_words_around_the_text(kind: type[VoxgradError]) -> None:
    """Keras colours the text of an error and says which layer was called."""
    told = f"Exception encountered when calling Pool.call().\n\n\x1b[1m{caught(kind)}\x1b[0m\n\nArguments received: x"
    again = kind(told)
    assert str(again) == told
    assert [one.code for one in again.faults] == ["VG012", "VG001"]
    assert str(kind("plain words")) == "plain words"
    assert kind("plain words").faults == kind().faults == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("carry", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_is_the_same_after_a_copy(kind: type[VoxgradError], carry) -> None:  # type: ignore[no-untyped-def]
    error = caught(kind)
    error.add_note("while reading scan.nii")
    again = carry(error)
    assert type(again) is kind
    assert (str(again), again.args, again.faults, again.__notes__) == (
        str(error), error.args, error.faults, ["while reading scan.nii"],
    )  # fmt: skip
    assert carry(kind("only words")).args == ("only words",)


@pytest.mark.parametrize("error", [TextError(FAULT, "1,x", 2), TextError("VG052 words")])
def test_errors_that_are_made_from_other_things_travel_too(error: VoxgradError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_errors_stand_in_groups_and_tracebacks() -> None:
    group = ExceptionGroup("several", [caught(vg.InvalidArgumentError), ValueError("other")])
    ours, others = group.split(VoxgradError)
    assert ours is not None and others is not None
    told = "".join(traceback.format_exception(pickle.loads(pickle.dumps(ours))))
    assert str(FAULT) in told


def test_a_failing_block_keeps_the_words_of_an_error_without_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    page = vg.Page()
    vg.ops.Relu(page, [1.0], name="r")

    def fail(*_: object) -> None:
        raise vg.InvalidArgumentError("only words")

    monkeypatch.setattr("voxgrad.graph.run.evaluate", fail)
    with pytest.raises(vg.InvalidArgumentError, match="only words"):
        vg.ClientSession(page).run("r")
