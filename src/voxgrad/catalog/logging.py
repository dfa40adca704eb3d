# SPDX-License-Identifier: Apache-2.0
"""Checks and messages of a page while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.gradients import nothing
from voxgrad.catalog.locality import elementwise, kept
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Spec
from voxgrad.catalog.shapes import fixed, has_rank, like, same_shapes, specs
from voxgrad.errors import Faults

_SUMMARIZE = Attr("summarize", "int", "How many elements of each tensor to show; -1 for all.", 3)


def _assert_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "condition", 0, faults)
    return None if faults else ()


def _check_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    message = f"Not a number (NaN) or infinity (Inf) values detected in gradient. {node.attrs['message']}"
    return (build.CheckNumerics(dys[0], message=message),)


def _scalars_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    same_shapes(call, ("tags", "values"), faults)
    return None if faults else specs(call, ())


SUMMARY = Output("summary", dtypes.STRING, "The bytes of a Summary message.", "[]")

OPS = (
    Op("Print", "logging", "Passes a tensor on and prints others.",
       (Input("input", "T", "The tensor to pass on."),
        Input("data", "U", "The tensors to print.", many=True, mixed=True, least=0)),
       (Attr("message", "string", "Printed in front.", ""),
        Attr("first_n", "int", "Only so many times; -1 always.", -1), _SUMMARIZE),
       (Output("output", "T", "The tensor.", "shape of input"),), {"T": dtypes.ALL, "U": dtypes.ALL},
       infer=like("input"),
       kernel="logging.print", gradient=lambda build, node, dys: (dys[0], [None] * len(node.inputs[1])), stateful=True,
       lies=kept("input")),
    Op("Assert", "logging", "Ends the run with an error where a condition does not hold.",
       (Input("condition", dtypes.BOOL, "What must hold.", "[]"),
        Input("data", "T", "Shown with the error.", many=True, mixed=True)), (_SUMMARIZE,), types={"T": dtypes.ALL},
       infer=_assert_infer, kernel="logging.assert_", stateful=True),
    Op("CheckNumerics", "logging", "Passes a tensor on; NaN or an infinity in it is an error.",
       (Input("tensor", "T", "The tensor."),), (Attr("message", "string", "Starts the error."),),
       (Output("output", "T", "The tensor.", "shape of tensor"),), {"T": dtypes.FLOATING}, infer=like("tensor"),
       kernel="logging.check_numerics", gradient=_check_gradient,
       laws=(Law("nan", "The error says whether NaN, Inf or both were found."),), follows=elementwise),
    Op("ScalarSummary", "logging", "Numbers under tags, as a message that TensorBoard reads.",
       (Input("tags", dtypes.STRING, "The tags."), Input("values", "T", "A number per tag.", "shape of tags")),
       outputs=(SUMMARY,), types={"T": dtypes.REAL}, infer=_scalars_infer, kernel="summaries.scalars",
       gradient=nothing),
    Op("HistogramSummary", "logging", "How many of the numbers are how large, as a message that TensorBoard reads.",
       (Input("tag", dtypes.STRING, "The tag.", "[]"), Input("values", "T", "The numbers.")), outputs=(SUMMARY,),
       types={"T": dtypes.REAL}, type_defaults={"T": dtypes.FLOAT32}, infer=fixed(()), kernel="summaries.histogram",
       gradient=nothing, laws=(Law("nan", "A number that is not finite is an error."),)),
    Op("MergeSummary", "logging", "Several summaries as one.",
       (Input("inputs", dtypes.STRING, "Summaries.", many=True),), outputs=(SUMMARY,), infer=fixed(()),
       kernel="summaries.merged", gradient=nothing, laws=(Law("tags", "A tag that comes twice is an error."),)),
    Op("TensorSummary", "logging", "A whole tensor as a message that TensorBoard reads.",
       (Input("tensor", "T", "The tensor."),),
       (Attr("description", "string", "Without effect.", ""), Attr("labels", "strings", "Without effect.", ()),
        Attr("display_name", "string", "Without effect.", "")),
       (SUMMARY,), {"T": dtypes.ALL}, infer=fixed(()), kernel="summaries.tensor", gradient=nothing,
       laws=(Law("name", "The message names the block."),)),
)  # fmt: skip
