# SPDX-License-Identifier: Apache-2.0
"""Random numbers. With seeds they are TensorFlow's own: the same Philox generator, drawn from in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import known
from voxgrad.catalog.gradients import unbroadcast
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Shape
from voxgrad.catalog.shapes import (
    broadcasting,
    counted,
    has_rank,
    like,
    scalar_value,
    shaped,
    stated_shape,
    text,
    unknown,
)
from voxgrad.errors import Faults

SEEDS = (
    Attr("seed", "int", "With seed2: the start of the sequence; both 0 for a start that differs every time.", 0),
    Attr("seed2", "int", "The second half of the seed.", 0),
)
RUNS = (
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
        (Attr("dtype", "type", "The type of the numbers.", choices=dtypes.FLOATING), *SEEDS),
        (Output("output", "dtype", "The numbers.", "shape"),), {"T": dtypes.INDEX, "dtype": dtypes.FLOATING},
        infer=shaped(_shape_rule), kernel=f"random.{kernel}", stateful=True, laws=RUNS, **more,
    )  # fmt: skip


def _multinomial_rule(call: Call, faults: Faults) -> Shape | None:
    count = counted(call, "num_samples", faults)
    if not has_rank(call, "logits", 2, faults):
        return None
    return (call.inputs["logits"].shape[0], unknown(call, "num_samples") if count is None else count)


def _behind_rule(call: Call, faults: Faults) -> Shape | None:
    """Numbers of every parameter: its shape behind the stated one."""
    shape, own = stated_shape(call, "shape", faults), call.inputs[call.op.inputs[1].name].shape
    return None if shape is None or own is None else (*shape, *own)


def _truncated_rule(call: Call, faults: Faults) -> Shape | None:
    shape = stated_shape(call, "shape", faults)
    if shape is not None and not shape:
        faults.add("VG014", "shape", wanted="have a size at least", got="none")
    for item in call.op.inputs[1:]:
        own = call.inputs[item.name].shape
        if own is not None and len(own) > 1:
            faults.add("VG010", item.name, wanted="be a scalar or a vector", got=text(own))
    return shape


def _gamma_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    alpha, numbers = node.inputs[1], node.outputs[0]
    slope = build.Mul(dys[0], build.RandomGammaGrad(alpha, numbers))
    return None, unbroadcast(build, (alpha, numbers), (slope, None))[0]


def _parameter(name: str, doc: str) -> Input:
    return Input(name, "dtype", doc, "[] or [rows]")


_SMALL = (dtypes.HALF, dtypes.FLOAT32, dtypes.FLOAT64)
_ONE_THREAD = Law("order", "Rows draw one after the other, as in TensorFlow on one thread; on several, TensorFlow "
                  "gives other numbers from the second row on.")  # fmt: skip

OPS = (
    _floats("RandomStandardNormal", "Normal random numbers with mean 0 and deviation 1.", "normal",
            aliases=("RandomNormal", "RandomNormal_ex")),
    _floats("RandomUniform", "Random numbers in [0, 1).", "uniform"),
    _floats("TruncatedNormal", "Normal random numbers, drawn again where they lie more than 2 from 0.",
            "truncated_normal"),
    Op("RandomUniformInt", "random", "Random integers in [minval, maxval).",
       (_SHAPE, Input("minval", "Tout", "The smallest.", "[]", host=True),
        Input("maxval", "Tout", "Above the largest.", "[]", host=True)),
       SEEDS, (Output("output", "Tout", "The numbers.", "shape"),), {"T": dtypes.INDEX, "Tout": dtypes.INDEX},
       infer=shaped(_int_rule), kernel="random.uniform_int", stateful=True, laws=RUNS),
    Op("RandomShuffle", "random", "The rows of a tensor in random order.", (Input("value", "T", "The rows."),), SEEDS,
       (Output("output", "T", "The shuffled rows.", "shape of value"),), {"T": dtypes.ALL}, infer=like("value"),
       kernel="random.shuffle", stateful=True, laws=RUNS),
    Op("Multinomial", "random", "Random classes, by the logarithms of how likely they are.",
       (Input("logits", "T", "The logarithms, not normalised.", "[batch, classes]"),
        Input("num_samples", dtypes.INT32, "How many are drawn for each row.", "[]", host=True)),
       (*SEEDS, Attr("output_dtype", "type", "The type of the classes.", dtypes.INT64, choices=dtypes.INDEX)),
       (Output("output", "output_dtype", "The classes.", "[batch, num_samples]"),),
       {"T": dtypes.REAL, "output_dtype": dtypes.INDEX}, infer=shaped(_multinomial_rule),
       kernel="distributions.multinomial", stateful=True, laws=(*RUNS, _ONE_THREAD)),
    Op("RandomGamma", "random", "Random numbers of gamma distributions.",
       (Input("shape", "S", "The shape of the numbers of each distribution.", "[rank]", host=True),
        Input("alpha", "T", "The shape parameters of the distributions.")), SEEDS,
       (Output("output", "T", "The numbers.", "shape, then the shape of alpha"),), {"S": dtypes.INDEX, "T": _SMALL},
       infer=shaped(_behind_rule), kernel="distributions.gamma", gradient=_gamma_gradient, stateful=True, laws=RUNS),
    Op("RandomGammaGrad", "random", "How numbers of a gamma distribution move with its parameter.",
       (Input("alpha", "T", "The shape parameters."), Input("sample", "T", "The numbers.")),
       outputs=(Output("output", "T", "The derivatives of the numbers by alpha.", "the broadcast shape"),),
       types={"T": (dtypes.FLOAT32, dtypes.FLOAT64)}, infer=broadcasting("alpha", "sample"),
       kernel="special.random_gamma_grad"),
    Op("RandomPoisson", "random", "Random counts of Poisson distributions.",
       (Input("shape", "S", "The shape of the numbers of each distribution.", "[rank]", host=True),
        Input("rate", "dtype", "The means of the distributions.")), SEEDS,
       (Output("output", "dtype", "The numbers.", "shape, then the shape of rate"),),
       {"S": dtypes.INDEX, "dtype": _SMALL}, infer=shaped(_behind_rule), kernel="distributions.poisson",
       stateful=True, laws=RUNS, deprecated="Replaced by RandomPoissonV2"),
    Op("ParameterizedTruncatedNormal", "random", "Normal random numbers between bounds.",
       (_SHAPE, _parameter("means", "The means."), _parameter("stdevs", "The deviations, above 0."),
        _parameter("minvals", "The lower bounds."), _parameter("maxvals", "The upper bounds.")), SEEDS,
       (Output("output", "dtype", "The numbers.", "shape"),), {"dtype": dtypes.FLOATING, "T": dtypes.INDEX},
       infer=shaped(_truncated_rule), kernel="distributions.truncated", stateful=True,
       laws=(*RUNS, _ONE_THREAD, Law("rows", "Parameters that are vectors have an entry for each shape[0]."))),
)  # fmt: skip
