# SPDX-License-Identifier: Apache-2.0
"""Queues and arrays of tensors that live in a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import symbolic
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import fixed, has_rank, specs, unknown
from voxgrad.errors import Faults

_HANDLE = Input("handle", dtypes.RESOURCE, "The queue.")
_TIMEOUT = Attr("timeout_ms", "int", "Nothing waits here; a closed queue may be closed again with it.", -1)
_TYPES = Attr("component_types", "types", "The types of the parts of an entry.")
_SHAPES = Attr("shapes", "shapes", "Their shapes; empty for any.", ())
_CAPACITY = Attr("capacity", "int", "How many entries fit; negative for any number.", -1)
_SHARED = (Attr("container", "string", "A name space for shared queues.", ""),
           Attr("shared_name", "string", "Queues of one such name are one queue.", ""))  # fmt: skip
_PARTS = Input("components", "Tcomponents", "The parts of the entry.", many=True, mixed=True)
_GIVEN = Output(
    "components", "component_types", "The parts of the entry.", many=True, mixed=True, count="component_types"
)
_EMPTY = Law("empty", "An empty queue is an error at once: nobody else could fill it during a run.")
_FULL = Law("full", "A full queue is an error at once: nobody else could empty it during a run.")


def _queue(name: str, summary: str, alias: str, *attrs: Attr) -> Op:
    return Op(
        name, "data_flow", summary, (), attrs, (Output("handle", dtypes.RESOURCE, "The queue.", "[]"),),
        infer=fixed(()),
        kernel="data_flow.queue", aliases=(alias,), stateful=True,
        laws=(Law("life", "It keeps its entries from run to run."),),
    )  # fmt: skip


def _dequeue_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    return (tuple(Spec(dtype) for dtype in call.attrs.get("component_types", ())),)


def _nothing(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    return ()


def _put(name: str, summary: str, kernel: str) -> Op:
    return Op(
        name, "data_flow", summary, (_HANDLE, _PARTS), (_TIMEOUT,), types={"Tcomponents": dtypes.ALL}, infer=_nothing,
        kernel=f"data_flow.{kernel}", stateful=True, laws=(_FULL,), aliases=(name.removesuffix("V2"),),
    )  # fmt: skip


def _take(name: str, summary: str, kernel: str, *inputs: Input) -> Op:
    return Op(
        name, "data_flow", summary, (_HANDLE, *inputs), (_TYPES, _TIMEOUT), (_GIVEN,), {"component_types": dtypes.ALL},
        infer=_dequeue_infer, kernel=f"data_flow.{kernel}", stateful=True, laws=(_EMPTY,),
        aliases=(name.removesuffix("V2"),),
    )  # fmt: skip


_COUNT = Input("n", dtypes.INT32, "How many entries.", "[]")
_SEEDS = (Attr("min_after_dequeue", "int", "Entries that stay, for mixing.", 0), Attr("seed", "int", "The seed.", 0),
          Attr("seed2", "int", "Its second half.", 0))  # fmt: skip

QUEUES = (
    _queue("FIFOQueueV2", "A queue: first in, first out.", "FIFOQueue", _TYPES, _SHAPES, _CAPACITY, *_SHARED),
    _queue("PaddingFIFOQueueV2", "A queue that pads entries with zeros to one shape when several leave together.",
           "PaddingFIFOQueue", _TYPES, _SHAPES, _CAPACITY, *_SHARED),
    _queue("RandomShuffleQueueV2", "A queue whose entries leave in random order.", "RandomShuffleQueue", _TYPES,
           _SHAPES,
           _CAPACITY, *_SEEDS, *_SHARED),
    _queue("PriorityQueueV2", "A queue whose entry with the lowest first part leaves first.", "PriorityQueue",
           Attr("shapes", "shapes", "The shapes of the parts behind the priority."),
           Attr("component_types", "types", "The types of the parts behind the priority, an int64.", ()), _CAPACITY,
           *_SHARED),
    _put("QueueEnqueueV2", "Put an entry into a queue.", "enqueue"),
    _put("QueueEnqueueManyV2", "Put the slices of tensors into a queue, one entry per slice.", "enqueue_many"),
    _take("QueueDequeueV2", "Take an entry out of a queue.", "dequeue"),
    _take("QueueDequeueManyV2", "Take n entries out of a queue, stacked.", "dequeue_many", _COUNT),
    _take("QueueDequeueUpToV2", "Take up to n entries out of a queue, stacked; fewer only from a closed one.",
          "dequeue_up_to", _COUNT),
    Op("QueueSizeV2", "data_flow", "How many entries a queue holds.", (_HANDLE,),
       outputs=(Output("size", dtypes.INT32, "The number.", "[]"),), infer=fixed(()), kernel="data_flow.queue_size",
       aliases=("QueueSize",), stateful=True),
    Op("QueueCloseV2", "data_flow", "Close a queue: no entry can be put into it any more.", (_HANDLE,),
       (Attr("cancel_pending_enqueues", "bool", "Without effect here: nothing waits.", False),), infer=_nothing,
       kernel="data_flow.queue_close", aliases=("QueueClose",), stateful=True),
    Op("QueueIsClosedV2", "data_flow", "Whether a queue is closed.", (_HANDLE,),
       outputs=(Output("is_closed", dtypes.BOOL, "True if so.", "[]"),), infer=fixed(()),
       kernel="data_flow.queue_is_closed",
       aliases=("QueueIsClosed",), stateful=True),
)  # fmt: skip

_ARRAY = Input("handle", dtypes.RESOURCE, "The array of tensors.")
_FLOW = Input("flow_in", dtypes.FLOAT32, "Orders this op behind others; its value means nothing.", "[]")
_FLOW_OUT = Output("flow_out", dtypes.FLOAT32, "Orders others behind this op.", "[]")
_INDEX = Input("index", dtypes.INT32, "The place.", "[]")
_DTYPE = Attr("dtype", "type", "The type of the tensors.")
_ELEMENT = Attr("element_shape", "shape", "The shape of a tensor, where all have one.", None)
_VALUE = {"T": dtypes.ALL}
_READ = {"dtype": dtypes.ALL}


def _element(call: Call, name: str = "element_shape") -> Shape | None:
    return symbolic(call.attrs.get(name), call.block or call.op.name)


def _read_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "index", 0, faults)
    return None if faults else specs(call, None)


def _gather_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "indices", 1, faults)
    indices, element = call.inputs["indices"].shape, _element(call)
    rows = indices[0] if indices else unknown(call, "rows")
    return None if faults else specs(call, None if element is None else (rows, *element))


def _concat_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    rest = _element(call, "element_shape_except0")
    shape = None if rest is None else (unknown(call, "rows"), *rest)
    return specs(call, shape, (unknown(call, "tensors"),))


def _size_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "size", 0, faults)
    return None if faults else specs(call, (), ())


_SOURCE = "gradients"


def _grad_array(build: Any, handle: Any, flow: Any) -> Any:
    return build.TensorArrayGradV3(handle, flow, source=_SOURCE)


def _from_reading(write: str) -> Gradient:
    """What was read gets its gradient written back to the same places."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        handle, *places, flow = node.inputs
        grad, ready = _grad_array(build, handle, flow)
        dy = [dys[0], node.outputs[1]] if write == "TensorArraySplitV3" else [*places, dys[0]]
        return *([None] * (len(node.inputs) - 1)), getattr(build, write)(grad, *dy, ready)

    return gradient


def _from_writing(read: str) -> Gradient:
    """What was written gets the gradient that was written to the same places."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        handle, *rest = node.inputs
        grad, ready = _grad_array(build, handle, dys[0])
        value = rest[0] if read == "TensorArrayConcatV3" else rest[1]
        dtype = getattr(value, "dtype", dtypes.FLOAT32)
        if read == "TensorArrayConcatV3":
            return None, build.TensorArrayConcatV3(grad, ready, dtype=dtype)[0], None, dys[0]
        return None, None, getattr(build, read)(grad, rest[0], ready, dtype=dtype), dys[0]

    return gradient


def _array_op(name: str, summary: str, kernel: str, inputs: tuple[Input, ...], attrs: tuple[Attr, ...],
              outputs: tuple[Output, ...], types: Any, infer: Any, gradient: Gradient | None = None) -> Op:  # fmt: skip
    return Op(
        name, "data_flow", summary, inputs, attrs, outputs, types, infer=infer, kernel=f"data_flow.{kernel}",
        stateful=True,
        gradient=gradient, aliases=(name.removesuffix("V3"),),
    )  # fmt: skip


ARRAYS = (
    _array_op("TensorArrayV3", "An array of tensors for one run.", "tensor_array",
              (Input("size", dtypes.INT32, "How many places.", "[]"),),
              (_DTYPE, _ELEMENT, Attr("dynamic_size", "bool", "Writing behind the end makes it longer.", False),
               Attr("clear_after_read", "bool", "A tensor may be read once.", True),
               Attr("identical_element_shapes", "bool", "All tensors have one shape.", False),
               Attr("tensor_array_name", "string", "A name; the block's where empty.", "")),
              (Output("handle", dtypes.RESOURCE, "The array of tensors.", "[]"),
               Output("flow", dtypes.FLOAT32, "Orders others behind this op.", "[]")), {}, _size_infer),
    _array_op("TensorArrayWriteV3", "Write a tensor to a place.", "array_write",
              (_ARRAY, _INDEX, Input("value", "T", "The tensor."), _FLOW), (), (_FLOW_OUT,), _VALUE, fixed(()),
              _from_writing("TensorArrayReadV3")),
    _array_op("TensorArrayReadV3", "Read the tensor of a place.", "array_read", (_ARRAY, _INDEX, _FLOW), (_DTYPE,),
              (Output("value", "dtype", "The tensor."),), _READ, _read_infer, _from_reading("TensorArrayWriteV3")),
    _array_op("TensorArrayGatherV3", "Read several places into one tensor.", "array_gather",
              (_ARRAY, Input("indices", dtypes.INT32, "The places.", "[n]"), _FLOW), (_DTYPE, _ELEMENT),
              (Output("value", "dtype", "The tensors, stacked.", "[n, ...]"),), _READ, _gather_infer,
              _from_reading("TensorArrayScatterV3")),
    _array_op("TensorArrayScatterV3", "Write the slices of a tensor to places.", "array_scatter",
              (_ARRAY, Input("indices", dtypes.INT32, "The places.", "[n]"),
               Input("value", "T", "The tensors, stacked.", "[n, ...]"),
               _FLOW), (), (_FLOW_OUT,), _VALUE, fixed(()), _from_writing("TensorArrayGatherV3")),
    _array_op("TensorArrayConcatV3", "All tensors one behind the other.", "array_concat", (_ARRAY, _FLOW),
              (_DTYPE, Attr("element_shape_except0", "shape", "The shape of a tensor without its first size.", None)),
              (Output("value", "dtype", "The joined tensor."),
               Output("lengths", dtypes.INT64, "The first size of each.", "[n]")),
              _READ, _concat_infer, _from_reading("TensorArraySplitV3")),
    _array_op("TensorArraySplitV3", "A tensor cut into pieces, one per place.", "array_split",
              (_ARRAY, Input("value", "T", "The tensor."),
               Input("lengths", dtypes.INT64, "The first size of each piece.", "[n]"),
               _FLOW), (), (_FLOW_OUT,), _VALUE, fixed(()), _from_writing("TensorArrayConcatV3")),
    _array_op("TensorArraySizeV3", "How many places there are.", "array_size", (_ARRAY, _FLOW), (),
              (Output("size", dtypes.INT32, "The number.", "[]"),), {}, fixed(())),
    _array_op("TensorArrayCloseV3", "Forget the tensors.", "array_close", (_ARRAY,), (), (), {}, _nothing),
    _array_op("TensorArrayGradV3",
              "The array that gathers the gradients of another; what is written to one place adds up.",
              "array_grad", (Input("handle", dtypes.RESOURCE, "The array of tensors."), _FLOW),
              (Attr("source", "string", "Which gradients: one array per name."),),
              (Output("grad_handle", dtypes.RESOURCE, "The array of gradients.", "[]"), _FLOW_OUT), {}, fixed((), ())),
)  # fmt: skip

OPS = (*QUEUES, *ARRAYS)
