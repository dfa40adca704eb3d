# SPDX-License-Identifier: Apache-2.0
"""Candidates for losses over many classes."""

from __future__ import annotations

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Spec
from voxgrad.catalog.shapes import has_rank, specs, text, unknown
from voxgrad.errors import Faults

_SEEDS = tuple(Attr(name, "int", "Without effect: nothing is drawn.", 0) for name in ("seed", "seed2"))


def _hits_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "sampled_candidates", 1, faults)
    if has_rank(call, "true_classes", 2, faults):
        shape, count = call.inputs["true_classes"].shape, call.attrs.get("num_true")
        if count is not None and differ(shape[1], count):
            faults.add("VG012", "true_classes", wanted=f"have {count} classes per example, num_true", got=text(shape))
    hits = unknown(call, "hits")
    return None if faults else specs(call, (hits,), (hits,), (hits,))


OPS = (
    Op("ComputeAccidentalHits", "candidate_sampling", "Which sampled candidates are true classes after all.",
       (Input("true_classes", dtypes.INT64, "The true classes of each example.", "[batch, num_true]"),
        Input("sampled_candidates", dtypes.INT64, "The sampled classes.", "[num_sampled]")),
       (Attr("num_true", "int", "How many true classes an example has."), *_SEEDS),
       (Output("indices", dtypes.INT32, "The example of each hit.", "[hits]"),
        Output("ids", dtypes.INT64, "The place of the hit in sampled_candidates.", "[hits]"),
        Output("weights", dtypes.FLOAT32, "The lowest number, to be added to the logit of the hit.", "[hits]")),
       infer=_hits_infer, kernel="candidate_sampling.hits",
       laws=(Law("twice", "Of a candidate that was sampled twice the last place counts."),)),
)  # fmt: skip
