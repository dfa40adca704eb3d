# SPDX-License-Identifier: Apache-2.0
"""Candidates for losses over many classes."""

from __future__ import annotations

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Spec
from voxgrad.catalog.random import RUNS, SEEDS
from voxgrad.catalog.shapes import has_rank, specs, text, unknown
from voxgrad.errors import Faults

_NO_SEEDS = tuple(Attr(name, "int", "Without effect: nothing is drawn.", 0) for name in ("seed", "seed2"))
_TRUE = Input("true_classes", dtypes.INT64, "The true classes of each example.", "[batch, num_true]")
_NUM_TRUE = Attr("num_true", "int", "How many true classes an example has.")


def _check_classes(call: Call, faults: Faults) -> None:
    if has_rank(call, "true_classes", 2, faults):
        shape, count = call.inputs["true_classes"].shape, call.attrs.get("num_true")
        if count is not None and differ(shape[1], count):
            faults.add("VG012", "true_classes", wanted=f"have {count} classes per example, num_true", got=text(shape))


def _sampler_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    _check_classes(call, faults)
    for name, least in (("num_true", 1), ("num_sampled", 1), ("range_max", 1), ("num_shards", 1), ("shard", 0)):
        if call.attrs.get(name, least) < least:
            faults.add("VG003", name, wanted=f"be {least} or more", got=call.attrs[name])
    count, most = call.attrs["num_sampled"], call.attrs.get("range_max")
    if most is not None and call.attrs["unique"] and count > most:
        faults.add("VG003", "num_sampled", wanted=f"be at most range_max, {most}, where unique", got=count)
    if max(count, most or 0) >= 2**31 - (call.op.name in _COUNTED):
        faults.add("VG005", "range_max", wanted="be a 32-bit integer, as num_sampled", got=max(count, most or 0))
    return None if faults else specs(call, (count,), call.inputs["true_classes"].shape, (count,))


def _sampler(
    name: str, summary: str, kernel: str, *more: Attr, laws: tuple[Law, ...] = (), after: tuple[Attr, ...] = SEEDS
) -> Op:
    return Op(
        name, "candidate_sampling", summary, (_TRUE,),
        (_NUM_TRUE, Attr("num_sampled", "int", "How many candidates there are."),
         Attr("unique", "bool", "Whether every candidate comes once."), *more, *after),
        (Output("sampled_candidates", dtypes.INT64, "The candidates.", "[num_sampled]"),
         Output("true_expected_count", dtypes.FLOAT32, "How often each true class is expected among the candidates.",
                "shape of true_classes"),
         Output("sampled_expected_count", dtypes.FLOAT32, "How often each candidate is expected among them.",
                "[num_sampled]")),
        infer=_sampler_infer, kernel=f"candidate_sampling.{kernel}", stateful=True, laws=(*RUNS, *laws),
    )  # fmt: skip


def _hits_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "sampled_candidates", 1, faults)
    _check_classes(call, faults)
    hits = unknown(call, "hits")
    return None if faults else specs(call, (hits,), (hits,), (hits,))


_RANGE = Attr("range_max", "int", "How many classes there are.")
_COUNTED = ("LearnedUnigramCandidateSampler",)
"""Samplers with a number for each class."""

OPS = (
    _sampler("AllCandidateSampler", "All classes as candidates.", "all", after=_NO_SEEDS),
    _sampler("UniformCandidateSampler", "Random candidates, all classes as likely.", "uniform", _RANGE),
    _sampler("LogUniformCandidateSampler", "Random candidates, the less likely the later the class comes.",
             "log_uniform", _RANGE,
             laws=(Law("probability", "Class k has log((k + 2) / (k + 1)) / log(range_max + 1)."),)),
    _sampler("LearnedUnigramCandidateSampler", "Random candidates, the likelier the more often they were true classes.",
             "learned", _RANGE, laws=(Law("counts", "Every class counts as seen once before the first run."),)),
    _sampler("FixedUnigramCandidateSampler", "Random candidates by weights of classes.", "fixed", _RANGE,
             Attr("vocab_file", "string", "A file whose lines end in a comma and a weight, one per class.", ""),
             Attr("distortion", "float", "The power to which weights are raised.", 1.0),
             Attr("num_reserved_ids", "int", "Classes in front, which have the weight 0.", 0),
             Attr("num_shards", "int", "Weights are dealt to so many shards, one after the other.", 1),
             Attr("shard", "int", "Which of them is sampled.", 0),
             Attr("unigrams", "floats", "The weights, where there is no file.", ()),
             laws=(Law("file", "vocab_file is read once in a session, from the folders of the page."),)),
    Op("ComputeAccidentalHits", "candidate_sampling", "Which sampled candidates are true classes after all.",
       (_TRUE, Input("sampled_candidates", dtypes.INT64, "The sampled classes.", "[num_sampled]")),
       (_NUM_TRUE, *_NO_SEEDS),
       (Output("indices", dtypes.INT32, "The example of each hit.", "[hits]"),
        Output("ids", dtypes.INT64, "The place of the hit in sampled_candidates.", "[hits]"),
        Output("weights", dtypes.FLOAT32, "The lowest number, to be added to the logit of the hit.", "[hits]")),
       infer=_hits_infer, kernel="candidate_sampling.hits",
       laws=(Law("twice", "Of a candidate that was sampled twice the last place counts."),)),
)  # fmt: skip
