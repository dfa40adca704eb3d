# SPDX-License-Identifier: Apache-2.0
"""Random numbers. With seeds they are TensorFlow's own: the same Philox generator, drawn from in the same order."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import known
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Shape
from voxgrad.catalog.shapes import has_rank, like, scalar_value, shaped, stated_shape
from voxgrad.errors import Faults

_SEEDS = (
    Attr("seed", "int", "With seed2: the start of the sequence; both 0 for a start that differs every time.", 0),
    Attr("seed2", "int", "The second half of the seed.", 0),
)
_LAWS = (
    Law("seeds", "The same seeds give the same numbers in every session, those of TensorFlow on the CPU."),
    Law("runs", "Every run goes on where the last one stopped."),
)
_SHAPE = Input("shape", "T", "The shape of the result.", "[rank]", host=True)


def _shape_rule(call: Call, faults: Faults) -> Shape | None:
    return stated_shape(call, "shape", faults)


def _int_rule(call: Call, faults: Faults) -> Shape | None:
    low, high = (scalar_value(call.inputs[name]) for name in ("minval", "maxval"))
    for name in ("minval", "maxval"):
        has_rank(call, name, 0, faults)
    if known(low) and known(high) and low >= high:
        faults.add("VG003", "maxval", wanted=f"be above minval {low}", got=high)
    return stated_shape(call, "shape", faults)


def _floats(name: str, summary: str, kernel: str, **more: Any) -> Op:
    return Op(
        name, "random", summary, (_SHAPE,),
        (Attr("dtype", "type", "The type of the numbers.", choices=dtypes.FLOATING), *_SEEDS),
        (Output("output", "dtype", "The numbers.", "shape"),), {"T": dtypes.INDEX, "dtype": dtypes.FLOATING},
        infer=shaped(_shape_rule), kernel=f"random.{kernel}", stateful=True, laws=_LAWS, **more,
    )  # fmt: skip


OPS = (
    _floats("RandomStandardNormal", "Normal random numbers with mean 0 and deviation 1.", "normal",
            aliases=("RandomNormal", "RandomNormal_ex")),
    _floats("RandomUniform", "Random numbers in [0, 1).", "uniform"),
    _floats("TruncatedNormal", "Normal random numbers, drawn again where they lie more than 2 from 0.",
            "truncated_normal"),
    Op("RandomUniformInt", "random", "Random integers in [minval, maxval).",
       (_SHAPE, Input("minval", "Tout", "The smallest.", "[]", host=True),
        Input("maxval", "Tout", "Above the largest.", "[]", host=True)),
       _SEEDS, (Output("output", "Tout", "The numbers.", "shape"),), {"T": dtypes.INDEX, "Tout": dtypes.INDEX},
       infer=shaped(_int_rule), kernel="random.uniform_int", stateful=True, laws=_LAWS),
    Op("RandomShuffle", "random", "The rows of a tensor in random order.", (Input("value", "T", "The rows."),), _SEEDS,
       (Output("output", "T", "The shuffled rows.", "shape of value"),), {"T": dtypes.ALL}, infer=like("value"),
       kernel="random.shuffle", stateful=True, laws=_LAWS),
)  # fmt: skip
