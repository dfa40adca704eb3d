# SPDX-License-Identifier: Apache-2.0
"""Wrong calls: TensorFlow's verdict on each was recorded; here none crashes, hangs, or returns numbers."""

import json
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.grouped import grouped
from tests.kernels.oracle import run, run_poisoned, truth
from tests.vectors.load import BAD_CALLS, numpy_dtype
from voxgrad.errors import CODES

CALLS = json.loads(BAD_CALLS.read_text())["calls"]

# Refused by TensorFlow's CPU kernels for want of a kernel, or crashed there, and right here.
WIDER = {
    "NCDHW (no CPU kernel)",
    "dilation > 1 (no CPU kernel)",
    "dtype without a CPU kernel",
    "ksize INT_MAX",
    "zero-size output (B8: uninitialised memory)",
}
# Calls that say the same thing in another type: TensorFlow takes them from NumPy but not from its own tensors.
SAME_MEANING = {("Conv3DBackpropFilterV2", "dtype of the size vector"), ("AvgPool3DGrad", "dtype of the size vector")}
# T and TInput may differ in the declaration of MaxPool3DGrad; MaxPool3DGradGrad is declared for integers.
WIDER_TYPES = {("MaxPool3DGrad", "dtypes of the tensors differ"), ("MaxPool3DGradGrad", "dtype not allowed by the op")}


def arguments(recorded: dict[str, Any]) -> dict[str, Any]:
    return {name: _argument(value) for name, value in recorded.items()}


def _argument(value: Any) -> Any:
    if not (isinstance(value, dict) and "dtype" in value):
        return value
    kind = numpy_dtype(value["dtype"])
    if "values" in value:
        return np.array(value["values"]).astype(kind).reshape(value["shape"])
    return np.ones(value["shape"], kind)


@grouped("call", CALLS, by=lambda call: call["op"], name=lambda call: call["why"])
def test_verdict(call: dict[str, Any]) -> None:
    given = arguments(call["kwargs"])
    try:
        result = run(call["op"], given)
    except vg.VoxgradError as error:
        assert isinstance(error, (vg.InvalidArgumentError, vg.UnimplementedError))
        _check_faults(error, call["op"])
        if call["tensorflow"].get("error") == "UnimplementedError":
            assert isinstance(error, vg.UnimplementedError)
        if call["tensorflow"].get("error") == "TypeError":
            assert isinstance(error, TypeError)
        return
    key = (call["op"], call["why"])
    if call["tensorflow"]["verdict"] != "accepted":
        assert call["why"] in WIDER or key in SAME_MEANING or key in WIDER_TYPES, f"TensorFlow refuses it: {call}"
    truth(call["op"], given).check(run_poisoned(call["op"], given), label=call["why"])
    assert result.shape == truth(call["op"], given).value.shape


def _check_faults(error: vg.VoxgradError, op: str) -> None:
    for fault in error.faults:
        assert fault.code in CODES
        assert fault.op == op
        assert fault.argument and fault.wanted and fault.got
        assert str(fault).startswith(f"{fault.code} {op}: {fault.argument} must ")


def test_all_faults_of_a_call_come_together() -> None:
    with pytest.raises(vg.InvalidArgumentError) as caught:
        vg.raw_ops.AvgPool3D(
            input=np.ones((2, 2), np.float32),
            ksize=[1, 0, 2, 2, 1],
            strides=[1, 1],
            padding="same",
            data_format="NDHWC",
        )
    assert {fault.argument for fault in caught.value.faults} == {"input", "ksize[1]", "strides", "padding"}


def test_message_names_everything() -> None:
    x, y = np.ones((2, 2, 2, 2, 2), np.float32), np.ones((2, 1, 1, 1, 2), np.float32)
    with pytest.raises(vg.InvalidArgumentError) as caught:
        vg.raw_ops.MaxPool3DGradGrad(
            orig_input=x, orig_output=y, grad=y, ksize=[1, 4, 3, 2, 1], strides=[1, 4, 3, 2, 1], padding="SAME"
        )
    wanted = "VG012 MaxPool3DGradGrad: grad must have the shape of orig_input, [2,2,2,2,2]; got [2,1,1,1,2]."
    assert str(caught.value) == wanted
    assert caught.value.faults[0].as_dict()["code"] == "VG012"


def test_a_window_that_does_not_fit_is_told_with_all_its_cells() -> None:
    """Two taps three cells apart span four cells."""
    x, w = np.ones((1, 9, 9, 2, 1), np.float32), np.ones((1, 1, 2, 1, 1), np.float32)
    with pytest.raises(vg.InvalidArgumentError, match=r"VG016 Conv3D: input must .* 4 cells in width; got 2 cells"):
        vg.raw_ops.Conv3D(input=x, filter=w, strides=[1] * 5, padding="VALID", dilations=[1, 1, 1, 3, 1])


def test_names_of_arguments() -> None:
    with pytest.raises(TypeError, match="VG001 MaxPool3D: arguments must be given by name"):
        vg.raw_ops.MaxPool3D(np.ones((1, 1, 1, 1, 1)), [1] * 5, [1] * 5, "SAME")
    with pytest.raises(vg.InvalidArgumentError, match="VG001 MaxPool3D: kszie must be one of input, ksize"):
        vg.raw_ops.MaxPool3D(input=np.ones((1, 1, 1, 1, 1)), ksize=[1] * 5, kszie=1, strides=[1] * 5, padding="SAME")
    with pytest.raises(vg.InvalidArgumentError, match="strides must be given"):
        vg.raw_ops.MaxPool3D(input=np.ones((1, 1, 1, 1, 1)), ksize=[1] * 5, padding="SAME")


def test_sizes_beyond_the_limit_are_refused_with_their_bytes() -> None:
    g = np.ones((1, 1, 1, 1, 1), np.float32)
    huge = [1, 100_000, 100_000, 1, 1]
    with pytest.raises(vg.ResourceExhaustedError, match="40,000,000,000 bytes") as caught:
        vg.raw_ops.AvgPool3DGrad(orig_input_shape=huge, grad=g, ksize=huge, strides=huge, padding="SAME")
    assert isinstance(caught.value, MemoryError)
    with vg.limits(bytes=16), pytest.raises(vg.ResourceExhaustedError, match="at most 16 bytes"):
        vg.raw_ops.AvgPool3DGrad(
            orig_input_shape=[1, 5, 1, 1, 1], grad=g, ksize=[1, 5, 1, 1, 1], strides=[1, 5, 1, 1, 1], padding="SAME"
        )
