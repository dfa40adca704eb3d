# SPDX-License-Identifier: Apache-2.0
"""Fresh random calls against TensorFlow, torch and JAX, installed by `python3 run test --parity`.

The seed changes every day, so that time widens the coverage; a failure prints it. VOXGRAD_PARITY_SEED fixes it.
"""

import datetime
import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import voxgrad as vg
from tests.kernels.oracle import Truth, run, truth
from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, FLOAT64, HALF, DType
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.testing import SeededChooser, draw_call
from voxgrad.testing.compare import EPSILON

pytestmark = [
    pytest.mark.parity,
    # TensorFlow and JAX warn about their own future.
    pytest.mark.filterwarnings("ignore"),
]

SEED = int(os.environ.get("VOXGRAD_PARITY_SEED", datetime.date.today().toordinal()))
COUNT = int(os.environ.get("VOXGRAD_PARITY_CALLS", "60"))
CONV = [op for op in FAMILY if op.map.has_taps]
POOL = [op for op in FAMILY if not op.map.has_taps]


def calls(op: Op, dtype: DType, **options: Any) -> list[dict[str, Any]]:
    styles = ("integers", "normal", "ties")
    return [
        draw_call(
            op,
            SeededChooser(SEED * 1000 + number),
            dtype=dtype,
            style=styles[number % 3],
            **({"explicit": False} | options),
        )
        for number in range(COUNT)
    ]


def tensorflow_answer(op: Op, call: dict[str, Any]) -> np.ndarray[Any, Any]:
    import tensorflow as tf

    # NumPy bfloat16 would silently become float32 in ops whose type has a default: tensors keep it.
    given = {name: tf.constant(value) if isinstance(value, np.ndarray) else value for name, value in call.items()}
    answer: np.ndarray[Any, Any] = getattr(tf.raw_ops, op.name)(**given).numpy()
    return answer


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_tensorflow_eager_float32(op: Op) -> None:
    for call in calls(op, FLOAT32, dilate=False, group=False, formats=("NDHWC",)):
        theirs = tensorflow_answer(op, call)
        with vg.semantics("tf_cpu"):
            known, ours = truth(op.name, call), run(op.name, call)
        known.check(theirs, label=f"TensorFlow, seed {SEED}: {call}")
        known.check(ours, label=f"voxgrad, seed {SEED}: {call}")


@pytest.mark.parametrize("dtype", [HALF, BFLOAT16, FLOAT64], ids=str)
@pytest.mark.parametrize("op", CONV, ids=lambda op: op.name)
def test_tensorflow_eager_convolutions_of_other_types(op: Op, dtype: DType) -> None:
    for call in calls(op, dtype, dilate=False, group=False, formats=("NDHWC",)):
        with vg.semantics("tf_cpu"):
            known, ours = truth(op.name, call), run(op.name, call)
        known.check(ours, label=f"voxgrad, seed {SEED}: {call}")
        _check_low_precision(tensorflow_answer(op, call), known, dtype)


@pytest.mark.parametrize("op", POOL, ids=lambda op: op.name)
def test_tensorflow_eager_pools_of_bfloat16(op: Op) -> None:
    for call in calls(op, BFLOAT16, formats=("NDHWC",)):
        with vg.semantics("tf_cpu"):
            known, ours = truth(op.name, call), run(op.name, call)
        known.check(ours, label=f"voxgrad, seed {SEED}: {call}")
        _check_low_precision(tensorflow_answer(op, call), known, BFLOAT16)


def _check_low_precision(theirs: np.ndarray[Any, Any], known: Truth, dtype: DType) -> None:
    """TensorFlow sums half and bfloat16 in their own precision: its own error is 16 of their units."""
    if dtype == FLOAT64:
        known.check(theirs)
        return
    bound = 16 * EPSILON[dtype] * max(1.0, float(np.abs(known.value).max(initial=0)))
    assert np.abs(theirs.astype(np.float64) - known.value).max(initial=0) <= bound


@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize("op", CONV, ids=lambda op: op.name)
def test_tensorflow_xla_dilated_and_grouped(op: Op, layout: str) -> None:
    import tensorflow as tf

    for call in calls(op, FLOAT32, formats=(layout,))[:8]:
        sizes = {name: tuple(value) for name, value in call.items() if name.endswith("_sizes")}
        tensors = {name: tf.constant(value) for name, value in call.items() if isinstance(value, np.ndarray)}
        rest = {name: value for name, value in call.items() if name not in tensors and name not in sizes}
        # The graph knows no shapes: TensorFlow's inference takes the dilation of one axis for another's.
        unknown = [{name: tf.TensorSpec([None] * 5, tf.float32) for name in tensors}]
        compiled = tf.function(
            lambda tensors, sizes=sizes, rest=rest: getattr(tf.raw_ops, op.name)(
                **tensors, **{name: tf.constant(value, tf.int32) for name, value in sizes.items()}, **rest
            ),
            input_signature=unknown,
            jit_compile=True,
        )
        truth(op.name, call).check(compiled(tensors).numpy(), label=f"seed {SEED}: {call}")


def test_torch_convolution() -> None:
    import torch

    for call in calls(OPS["Conv3D"], FLOAT32, formats=("NCDHW",), explicit=True):
        known = truth("Conv3D", call)
        pads: list[int] = []
        for axis in reversed(known.problem.axes):
            end = axis.start(axis.out - 1) + (axis.window - 1) * axis.dilation + 1
            pads += [axis.before, max(0, end - axis.size)]
        x = torch.nn.functional.pad(torch.from_numpy(call["input"]), pads)
        w = torch.from_numpy(call["filter"]).permute(4, 3, 0, 1, 2)
        y = torch.nn.functional.conv3d(
            x, w, stride=call["strides"][2:], dilation=call["dilations"][2:], groups=known.problem.groups
        )
        known.check(y.numpy(), label=f"torch, seed {SEED}")
        known.check(run("Conv3D", call), label=f"voxgrad, seed {SEED}")


def test_torch_max_pool_and_its_gradient() -> None:
    """Ties go to the first cell in both."""
    import torch

    for call in calls(OPS["MaxPool3D"], FLOAT32, formats=("NCDHW",)):
        if call["padding"] != "VALID":
            continue
        x = torch.from_numpy(call["input"]).requires_grad_()
        y = torch.nn.functional.max_pool3d(x, call["ksize"][2:], call["strides"][2:])
        y.backward(torch.ones_like(y))
        attrs = {name: call[name] for name in ("ksize", "strides", "padding", "data_format")}
        ours = run("MaxPool3D", call)
        assert np.array_equal(ours, y.detach().numpy())
        dx = run(
            "MaxPool3DGrad", {"orig_input": call["input"], "orig_output": ours, "grad": np.ones_like(ours), **attrs}
        )
        assert np.array_equal(dx, x.grad.numpy()), f"seed {SEED}: {call}"


@pytest.mark.parametrize("dtype", [HALF, BFLOAT16, FLOAT32], ids=str)
def test_jax_convolution(dtype: DType) -> None:
    import jax

    kind = {HALF: np.float16, BFLOAT16: ml_dtypes.bfloat16, FLOAT32: np.float32}[dtype]
    for call in calls(OPS["Conv3D"], dtype, formats=("NDHWC",), explicit=True)[:20]:
        known = truth("Conv3D", call)
        pads = [
            (axis.before, max(0, axis.start(axis.out - 1) + (axis.window - 1) * axis.dilation + 1 - axis.size))
            for axis in known.problem.axes
        ]
        y = jax.lax.conv_general_dilated(
            call["input"].astype(np.float32), call["filter"].astype(np.float32), call["strides"][1:4], pads,
            rhs_dilation=call["dilations"][1:4], dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
            feature_group_count=known.problem.groups, precision=jax.lax.Precision.HIGHEST,
        )  # fmt: skip
        known.check(
            np.asarray(y)[:, : known.value.shape[1], : known.value.shape[2], : known.value.shape[3]].astype(kind)
        )
