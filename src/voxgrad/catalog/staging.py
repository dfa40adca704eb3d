# SPDX-License-Identifier: Apache-2.0
"""Where values wait between runs: stages, maps by key, barriers, accumulators of gradients, tensors by a handle."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Spec
from voxgrad.catalog.shapes import fixed, has_rank, specs, unknown
from voxgrad.errors import Faults

_INT32, _INT64, _STRING = dtypes.INT32, dtypes.INT64, dtypes.STRING
_SHARED = (Attr("container", "string", "A name space for shared ones.", ""),
           Attr("shared_name", "string", "Those of one such name are one and the same.", ""))  # fmt: skip
_STAGE = (Attr("capacity", "int", "How many entries fit; 0 for any number.", 0),
          Attr("memory_limit", "int", "How many bytes fit; 0 for any number.", 0), *_SHARED)  # fmt: skip
_TYPES = Attr("dtypes", "types", "The types of the parts of an entry.")
_NOW = Law("now", "What would wait for another is an error at once: nobody else acts during a run.")
_LIFE = Law("life", "It keeps what it holds from run to run.")
_VALUES = Output("values", "dtypes", "The parts of the entry.", many=True, mixed=True, count="dtypes")
_SIZE = Output("size", _INT32, "The number.", "[]")
_KEY = Input("key", _INT64, "The key.", "[]")
_INDICES = Input("indices", _INT32, "Which parts, in order.", "[n]")


def _nothing(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    return ()


def _checked_limits(call: Call, faults: Faults) -> None:
    for name in ("capacity", "memory_limit"):
        if call.attrs.get(name, 0) < 0:
            faults.add("VG003", name, wanted="be 0 or more", got=call.attrs[name])


def _staged(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    """The outputs of an op of stages and maps: parts of an entry, a key, a number."""
    _checked_limits(call, faults)
    parts = tuple(Spec(dtype) for dtype in call.attrs.get("dtypes", ()))
    if any(item.many for item in call.op.outputs) and not parts:
        faults.add("VG004", "dtypes", wanted="name a type at least", got="none")
    made = [parts if item.many else Spec(item.type, ()) for item in call.op.outputs]  # type: ignore[arg-type]
    return None if faults else tuple(made)


def _stage(name: str, summary: str, kernel: str, inputs: tuple[Input, ...] = (), outputs: tuple[Output, ...] = (),
           stated: bool = True) -> Op:  # fmt: skip
    types = {"dtypes": dtypes.ALL} | (
        {"fake_dtypes": dtypes.ALL} if any(i.type == "fake_dtypes" for i in inputs) else {}
    )
    return Op(
        name, "data_flow", summary, inputs, (_TYPES, *_STAGE) if stated else _STAGE, outputs, types, infer=_staged,
        kernel=f"staging.{kernel}", stateful=True, laws=(_NOW, _LIFE),
    )  # fmt: skip


STAGES = (
    _stage("Stage", "Put an entry at the end of a stage.", "stage",
           (Input("values", "dtypes", "The parts of the entry.", many=True, mixed=True),), stated=False),
    _stage("Unstage", "Take the first entry of a stage.", "unstage", (), (_VALUES,)),
    _stage("StagePeek", "Look at an entry of a stage.", "stage_peek",
           (Input("index", _INT32, "Which entry, from the first on.", "[]"),), (_VALUES,)),
    _stage("StageSize", "How many entries a stage holds.", "stage_size", (), (_SIZE,)),
    _stage("StageClear", "Remove all entries of a stage.", "stage_clear"),
)  # fmt: skip


def _map_ops(prefix: str, order: str) -> tuple[Op, ...]:
    given = Input("values", "fake_dtypes", "These parts of the entry.", many=True, mixed=True)
    key = Output("key", _INT64, "Its key.", "[]")
    return (
        _stage(f"{prefix}Stage", "Put parts of an entry under a key; it is complete when all parts are there.",
               "map_stage", (_KEY, _INDICES, given)),
        _stage(f"{prefix}Peek", "Look at parts of the entry under a key.", "map_peek", (_KEY, _INDICES), (_VALUES,)),
        _stage(f"{prefix}Unstage", "Take parts of the entry under a key; without parts it is gone.", "map_unstage",
               (_KEY, _INDICES), (_VALUES,)),
        _stage(f"{prefix}UnstageNoKey", f"Take parts of {order}.", "map_unstage_any", (_INDICES,), (key, _VALUES)),
        _stage(f"{prefix}Size", "How many complete entries there are.", "map_size", (), (_SIZE,)),
        _stage(f"{prefix}IncompleteSize", "How many incomplete entries there are.", "map_incomplete_size", (),
               (_SIZE,)),
        _stage(f"{prefix}Clear", "Remove all entries.", "map_clear"),
    )  # fmt: skip


MAPS = (*_map_ops("Map", "any complete entry"), *_map_ops("OrderedMap", "the complete entry with the lowest key"))

_BARRIER = Input("handle", _STRING, "The barrier.", ref=True)


def _take_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    rows = (unknown(call, "entries"),)
    parts = tuple(Spec(dtype) for dtype in call.attrs.get("component_types", ()))
    return Spec(_INT64, rows), Spec(_STRING, rows), parts


def _insert_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    has_rank(call, "keys", 1, faults)
    has_rank(call, "values", 1, faults, at_least=True)
    return None if faults else ()


def _about(name: str, summary: str, kernel: str, handle: Input, *outputs: Output, inputs: tuple[Input, ...] = (),
           attrs: tuple[Attr, ...] = (), types: Any = None, infer: Any = None) -> Op:  # fmt: skip
    """An op on a barrier or an accumulator."""
    return Op(
        name, "data_flow", summary, (handle, *inputs), attrs, outputs, types or {},
        infer=infer or (fixed(*(() for _ in outputs)) if outputs else _nothing), kernel=f"staging.{kernel}",
        stateful=True, laws=(_NOW,),
    )  # fmt: skip


BARRIERS = (
    Op("Barrier", "data_flow", "Gathers the parts of entries by their keys; complete entries leave in order.", (),
       (Attr("component_types", "types", "The types of the parts."),
        Attr("shapes", "shapes", "Their shapes; empty for any.", ()),
        Attr("capacity", "int", "How many entries fit; negative for any number.", -1), *_SHARED),
       (Output("handle", _STRING, "The barrier.", "[2]", ref=True),), infer=fixed((2,)), kernel="staging.barrier",
       stateful=True, laws=(_LIFE,)),
    _about("BarrierInsertMany", "Give several entries one of their parts.", "barrier_insert", _BARRIER,
           inputs=(Input("keys", _STRING, "The keys of the entries.", "[n]"),
                   Input("values", "T", "The part of each.", "[n, ...]")),
           attrs=(Attr("component_index", "int", "Which part."),), types={"T": dtypes.ALL}, infer=_insert_infer),
    _about("BarrierTakeMany", "Take complete entries, in the order in which their keys first came.", "barrier_take",
           _BARRIER, Output("indices", _INT64, "Which insertion brought their keys, from -2**63 on.", "[n]"),
           Output("keys", _STRING, "Their keys.", "[n]"),
           Output("values", "component_types", "Their parts, stacked.", many=True, mixed=True, count="component_types"),
           inputs=(Input("num_elements", _INT32, "How many.", "[]"),),
           attrs=(Attr("component_types", "types", "The types of the parts."),
                  Attr("allow_small_batch", "bool", "A closed barrier may give fewer.", False),
                  Attr("wait_for_incomplete", "bool", "Nothing waits here.", False),
                  Attr("timeout_ms", "int", "Nothing waits here.", -1)),
           types={"component_types": dtypes.ALL}, infer=_take_infer),
    _about("BarrierClose", "No new keys from now on.", "barrier_close", _BARRIER,
           attrs=(Attr("cancel_pending_enqueues", "bool", "No parts for known keys either.", False),)),
    _about("BarrierReadySize", "How many complete entries wait.", "barrier_ready_size", _BARRIER, _SIZE),
    _about("BarrierIncompleteSize", "How many entries lack parts.", "barrier_incomplete_size", _BARRIER, _SIZE),
)  # fmt: skip

_ACCUMULATOR = Input("handle", _STRING, "The accumulator.", ref=True)
_STEP = Input("local_step", _INT64, "The step for which it was computed; older than the accumulator's it is dropped.",
              "[]")  # fmt: skip
_REQUIRED = Input("num_required", _INT32, "How many gradients at least, 1 or more.", "[]")
_DTYPE = Attr("dtype", "type", "The type of the gradients.", choices=dtypes.NUMBER)
_NUMBERS = {"dtype": dtypes.NUMBER}


def _accumulator(name: str, summary: str, kernel: str) -> Op:
    return Op(
        name, "data_flow", summary, (),
        (_DTYPE, Attr("shape", "shape", "Their shape; None for any."), *_SHARED,
         Attr("reduction_type", "string", "The mean or the sum.", "MEAN", choices=("MEAN", "SUM"))),
        (Output("handle", _STRING, "The accumulator.", "[2]", ref=True),), _NUMBERS, infer=fixed((2,)),
        kernel=f"staging.{kernel}", stateful=True, laws=(_LIFE,),
    )  # fmt: skip


def _average_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    return specs(call, None)


def _rows_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    rows = unknown(call, "rows")
    return specs(call, (rows,), None, (unknown(call, "rank"),))


def _apply_rows_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    has_rank(call, "gradient_indices", 1, faults)
    has_rank(call, "gradient_values", 1, faults, at_least=True)
    return None if faults else ()


ACCUMULATORS = (
    _accumulator("ConditionalAccumulator", "Gathers gradients until enough are there.", "accumulator"),
    _about("AccumulatorApplyGradient", "Give an accumulator a gradient.", "accumulate", _ACCUMULATOR,
           inputs=(_STEP, Input("gradient", "dtype", "The gradient.")), types=_NUMBERS),
    _about("AccumulatorTakeGradient", "The mean or sum of what was gathered; the accumulator begins its next step.",
           "take_gradient", _ACCUMULATOR, Output("average", "dtype", "The mean or sum."), inputs=(_REQUIRED,),
           attrs=(_DTYPE,), types=_NUMBERS, infer=_average_infer),
    _about("AccumulatorNumAccumulated", "How many gradients were gathered.", "num_accumulated", _ACCUMULATOR,
           Output("num_accumulated", _INT32, "The number.", "[]")),
    _about("AccumulatorSetGlobalStep", "Set the step of an accumulator.", "set_global_step", _ACCUMULATOR,
           inputs=(Input("new_global_step", _INT64, "The step.", "[]"),)),
    _accumulator("SparseConditionalAccumulator", "Gathers gradients of rows until enough are there.",
                 "sparse_accumulator"),
    _about("SparseAccumulatorApplyGradient", "Give an accumulator a gradient of rows.", "accumulate_rows", _ACCUMULATOR,
           inputs=(_STEP, Input("gradient_indices", _INT64, "The rows, in order, each once.", "[n]"),
                   Input("gradient_values", "dtype", "Their gradients.", "[n, ...]"),
                   Input("gradient_shape", _INT64, "The shape of the whole gradient.", "[rank]")),
           attrs=(Attr("has_known_shape", "bool", "gradient_shape is to be looked at."),), types=_NUMBERS,
           infer=_apply_rows_infer),
    _about("SparseAccumulatorTakeGradient",
           "The mean or sum of what was gathered, row by row; the accumulator begins its next step.", "take_rows",
           _ACCUMULATOR, Output("indices", _INT64, "The rows.", "[n]"),
           Output("values", "dtype", "Of each row the mean of its own gradients, or their sum.", "[n, ...]"),
           Output("shape", _INT64, "The shape of the whole; -1 for a number of rows that is open.", "[rank]"),
           inputs=(_REQUIRED,), attrs=(_DTYPE,), types=_NUMBERS, infer=_rows_infer),
)  # fmt: skip

_TENSOR = Input("handle", _STRING, "The handle of a tensor.", "[]")
_ANY = {"T": dtypes.ALL}


def _held(name: str, summary: str, kernel: str, inputs: tuple[Input, ...], outputs: tuple[Output, ...] = (),
          attrs: tuple[Attr, ...] = (), types: Any = None, infer: Any = None) -> Op:  # fmt: skip
    return Op(name, "data_flow", summary, inputs, attrs, outputs, types or {}, infer=infer or fixed(()),
              kernel=f"staging.{kernel}", stateful=True, laws=(_LIFE,))  # fmt: skip


HANDLES = (
    _held("GetSessionHandle", "Keep a tensor in the session; its handle finds it in later runs.", "keep_tensor",
          (Input("value", "T", "The tensor."),), (Output("handle", _STRING, "Its handle.", "[]"),), types=_ANY),
    _held("GetSessionHandleV2", "Keep a tensor in the session; its handle is a resource.", "keep_tensor",
          (Input("value", "T", "The tensor."),), (Output("handle", dtypes.RESOURCE, "Its handle.", "[]"),), types=_ANY),
    _held("GetSessionTensor", "The tensor behind a handle.", "kept_tensor", (_TENSOR,),
          (Output("value", "dtype", "The tensor."),), (Attr("dtype", "type", "Its type."),), {"dtype": dtypes.ALL},
          _average_infer),
    _held("DeleteSessionTensor", "Forget the tensor behind a handle.", "forget_tensor", (_TENSOR,), infer=_nothing),
)  # fmt: skip

OPS = (*STAGES, *MAPS, *BARRIERS, *ACCUMULATORS, *HANDLES)
