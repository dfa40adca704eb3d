# SPDX-License-Identifier: Apache-2.0
"""What waits between blocks and runs: queues, arrays of tensors, stages, maps, barriers, accumulators, handles."""

_QUEUE = 'queue = {0}(component_types=["int32"], shapes=[[]]{1})\n'
_FILLED = _QUEUE.format("FIFOQueueV2", "") + "put = QueueEnqueueManyV2(handle=queue, components=[[7, 8, 9]])\n"
_TAKE = 'one = QueueDequeueV2(handle=queue, component_types=["int32"], after=put)'
_CLOSED = _FILLED + "close = QueueCloseV2(handle=queue, after=put)\n"

_ARRAY = """
array = TensorArrayV3(size=2, dtype="float32")
first = TensorArrayWriteV3(handle=array[0], index=0, value=[1.0, 2.0], flow_in=array[1])
second = TensorArrayWriteV3(handle=array[0], index=1, value=[3.0, 4.0], flow_in=first)
"""
_SCATTER = """
array = TensorArrayV3(size=2, dtype="float32")
put = TensorArrayScatterV3(handle=array[0], indices=[0, 1], value=[[1.0, 2.0], [3.0, 4.0]], flow_in=array[1])
"""

_STAGE = 'put = Stage(values=[[1.0, 2.0]], shared_name="kept")\n'
_STAGED = 'dtypes=["float32"], shared_name="kept", after=put'


def _map(kind: str, line: str) -> str:
    values = 'values=[[1.0], [2.0]], dtypes=["float32", "float32"], shared_name="kept"'
    return f"put = {kind}MapStage(key=7, indices=[0, 1], {values})\n{line}"


_MAPPED = 'dtypes=["float32", "float32"], shared_name="kept", after=put'
_BARRIER = """
barrier = Barrier(component_types=["float32"], shapes=[[]])
put = BarrierInsertMany(handle=barrier, keys=["a", "b"], values=[1.0, 2.0], component_index=0)
"""
_ACCUMULATOR = """
sum = ConditionalAccumulator(dtype="float32", shape=[2])
one = AccumulatorApplyGradient(handle=sum, local_step=0, gradient=[1.0, 2.0])
two = AccumulatorApplyGradient(handle=sum, local_step=0, gradient=[3.0, 6.0], after=one)
"""
_SPARSE_ACCUMULATOR = """
sum = SparseConditionalAccumulator(dtype="float32", shape=[3, 1])
one = SparseAccumulatorApplyGradient(handle=sum, local_step=0, gradient_indices=[0, 2],
                                     gradient_values=[[1.0], [2.0]], gradient_shape=[3, 1], has_known_shape=True)
mean = SparseAccumulatorTakeGradient(handle=sum, num_required=1, dtype="float32", after=one)
"""
_HANDLE = """
kept = GetSessionHandle(value=[1.0, 2.0])
GetSessionTensor(handle=kept, dtype="float32")
"""

EXAMPLES = {
    "FIFOQueueV2": ("", _FILLED + _TAKE),
    "PaddingFIFOQueueV2": (
        "",
        """
        queue = PaddingFIFOQueueV2(component_types=["int32"], shapes=[[-1]])
        one = QueueEnqueueV2(handle=queue, components=[[1]])
        two = QueueEnqueueV2(handle=queue, components=[[2, 3]], after=one)
        both = QueueDequeueManyV2(handle=queue, n=2, component_types=["int32"], after=two)
        """,
    ),
    "RandomShuffleQueueV2": (
        "",
        _QUEUE.format("RandomShuffleQueueV2", ", seed=1, seed2=2")
        + "put = QueueEnqueueManyV2(handle=queue, components=[[7, 8, 9]])\n"
        + 'all = QueueDequeueManyV2(handle=queue, n=3, component_types=["int32"], after=put)',
    ),
    "PriorityQueueV2": (
        "",
        """
        queue = PriorityQueueV2(component_types=["string"], shapes=[[]])
        put = QueueEnqueueManyV2(handle=queue, components=[int64([2, 1]), ["later", "first"]])
        one = QueueDequeueV2(handle=queue, component_types=["int64", "string"], after=put)
        """,
    ),
    "QueueEnqueueV2": (
        "",
        _QUEUE.format("FIFOQueueV2", "") + "put = QueueEnqueueV2(handle=queue, components=[7])\n" + _TAKE,
    ),
    "QueueEnqueueManyV2": ("", _FILLED + "size = QueueSizeV2(handle=queue, after=put)"),
    "QueueDequeueV2": ("", _FILLED + _TAKE),
    "QueueDequeueManyV2": (
        "",
        _FILLED + 'two = QueueDequeueManyV2(handle=queue, n=2, component_types=["int32"], after=put)',
    ),
    "QueueDequeueUpToV2": (
        "",
        _CLOSED + 'rest = QueueDequeueUpToV2(handle=queue, n=5, component_types=["int32"], after=close)',
    ),
    "QueueSizeV2": ("", _FILLED + "size = QueueSizeV2(handle=queue, after=put)"),
    "QueueCloseV2": ("", _CLOSED + "closed = QueueIsClosedV2(handle=queue, after=close)"),
    "QueueIsClosedV2": ("", _FILLED + "closed = QueueIsClosedV2(handle=queue, after=put)"),
    "TensorArrayV3": ("", _ARRAY + 'TensorArrayReadV3(handle=array[0], index=1, flow_in=second, dtype="float32")'),
    "TensorArrayWriteV3": (
        "array[index] = value",
        _ARRAY + 'TensorArrayReadV3(handle=array[0], index=1, flow_in=second, dtype="float32")',
    ),
    "TensorArrayReadV3": (
        "value = array[index]",
        _ARRAY + 'TensorArrayReadV3(handle=array[0], index=0, flow_in=second, dtype="float32")',
    ),
    "TensorArrayGatherV3": (
        "value[i] = array[indices[i]]",
        _ARRAY + 'TensorArrayGatherV3(handle=array[0], indices=[1, 0], flow_in=second, dtype="float32")',
    ),
    "TensorArrayScatterV3": (
        "array[indices[i]] = value[i]",
        _SCATTER + 'TensorArrayReadV3(handle=array[0], index=1, flow_in=put, dtype="float32")',
    ),
    "TensorArrayConcatV3": (
        "value = array[0], array[1], ... one behind the other",
        _ARRAY + 'TensorArrayConcatV3(handle=array[0], flow_in=second, dtype="float32")',
    ),
    "TensorArraySplitV3": (
        "array[i] = the next lengths[i] rows of value",
        """
        array = TensorArrayV3(size=2, dtype="float32")
        put = TensorArraySplitV3(handle=array[0], value=[1.0, 2.0, 3.0], lengths=[1, 2], flow_in=array[1])
        TensorArrayReadV3(handle=array[0], index=1, flow_in=put, dtype="float32")
        """,
    ),
    "TensorArraySizeV3": ("", _ARRAY + "TensorArraySizeV3(handle=array[0], flow_in=second)"),
    "TensorArrayCloseV3": (
        "",
        _ARRAY
        + 'last = TensorArrayReadV3(handle=array[0], index=1, flow_in=second, dtype="float32")\n'
        + "TensorArrayCloseV3(handle=array[0], after=last)",
    ),
    "TensorArrayGradV3": (
        "",
        _ARRAY
        + """
        slopes = TensorArrayGradV3(handle=array[0], flow_in=second, source="gradients")
        put = TensorArrayWriteV3(handle=slopes[0], index=0, value=[10.0, 20.0], flow_in=slopes[1])
        more = TensorArrayWriteV3(handle=slopes[0], index=0, value=[1.0, 2.0], flow_in=put)
        TensorArrayReadV3(handle=slopes[0], index=0, flow_in=more, dtype="float32")
        """,
    ),
    "Stage": ("", _STAGE + f"one = Unstage({_STAGED})"),
    "Unstage": ("", _STAGE + f"one = Unstage({_STAGED})"),
    "StagePeek": ("", _STAGE + f"look = StagePeek(index=0, {_STAGED})"),
    "StageSize": ("", _STAGE + f"size = StageSize({_STAGED})"),
    "StageClear": (
        "",
        _STAGE
        + f'clear = StageClear({_STAGED})\nsize = StageSize(dtypes=["float32"], shared_name="kept", after=clear)',
    ),
    "Barrier": (
        "",
        _BARRIER + 'both = BarrierTakeMany(handle=barrier, num_elements=2, component_types=["float32"], after=put)',
    ),
    "BarrierInsertMany": ("", _BARRIER + "ready = BarrierReadySize(handle=barrier, after=put)"),
    "BarrierTakeMany": (
        "",
        _BARRIER + 'one = BarrierTakeMany(handle=barrier, num_elements=1, component_types=["float32"], after=put)',
    ),
    "BarrierClose": (
        "",
        _BARRIER
        + """
        close = BarrierClose(handle=barrier, after=put)
        rest = BarrierTakeMany(handle=barrier, num_elements=5, component_types=["float32"], allow_small_batch=True,
                               after=close)
        """,
    ),
    "BarrierReadySize": ("", _BARRIER + "ready = BarrierReadySize(handle=barrier, after=put)"),
    "BarrierIncompleteSize": (
        "",
        """
        barrier = Barrier(component_types=["float32", "int32"], shapes=[[], []])
        put = BarrierInsertMany(handle=barrier, keys=["a", "b"], values=[1.0, 2.0], component_index=0)
        open = BarrierIncompleteSize(handle=barrier, after=put)
        """,
    ),
    "ConditionalAccumulator": (
        "average = sum of the gradients / how many",
        _ACCUMULATOR + 'mean = AccumulatorTakeGradient(handle=sum, num_required=2, dtype="float32", after=two)',
    ),
    "AccumulatorApplyGradient": ("", _ACCUMULATOR + "count = AccumulatorNumAccumulated(handle=sum, after=two)"),
    "AccumulatorTakeGradient": (
        "average = sum of the gradients / how many",
        _ACCUMULATOR + 'mean = AccumulatorTakeGradient(handle=sum, num_required=2, dtype="float32", after=two)',
    ),
    "AccumulatorNumAccumulated": ("", _ACCUMULATOR + "count = AccumulatorNumAccumulated(handle=sum, after=two)"),
    "AccumulatorSetGlobalStep": (
        "",
        """
        sum = ConditionalAccumulator(dtype="float32", shape=[2])
        step = AccumulatorSetGlobalStep(handle=sum, new_global_step=5)
        stale = AccumulatorApplyGradient(handle=sum, local_step=4, gradient=[1.0, 2.0], after=step)
        count = AccumulatorNumAccumulated(handle=sum, after=stale)
        """,
    ),
    "SparseConditionalAccumulator": ("", _SPARSE_ACCUMULATOR),
    "SparseAccumulatorApplyGradient": ("", _SPARSE_ACCUMULATOR),
    "SparseAccumulatorTakeGradient": ("", _SPARSE_ACCUMULATOR),
    "GetSessionHandle": ("", _HANDLE),
    "GetSessionHandleV2": ("", "kept = GetSessionHandleV2(value=[1.0, 2.0])\nsame = Identity(input=kept)"),
    "GetSessionTensor": ("", _HANDLE),
    "DeleteSessionTensor": (
        "",
        """
        kept = GetSessionHandle(value=[1.0, 2.0])
        tensor = GetSessionTensor(handle=kept, dtype="float32")
        DeleteSessionTensor(handle=kept, after=tensor)
        """,
    ),
}
for _kind in ("", "Ordered"):
    EXAMPLES |= {
        f"{_kind}MapStage": ("", _map(_kind, f"size = {_kind}MapSize({_MAPPED})")),
        f"{_kind}MapPeek": ("", _map(_kind, f"look = {_kind}MapPeek(key=7, indices=[0, 1], {_MAPPED})")),
        f"{_kind}MapUnstage": ("", _map(_kind, f"both = {_kind}MapUnstage(key=7, indices=[0, 1], {_MAPPED})")),
        f"{_kind}MapUnstageNoKey": ("", _map(_kind, f"both = {_kind}MapUnstageNoKey(indices=[0, 1], {_MAPPED})")),
        f"{_kind}MapSize": ("", _map(_kind, f"size = {_kind}MapSize({_MAPPED})")),
        f"{_kind}MapIncompleteSize": (
            "",
            f"""
            put = {_kind}MapStage(key=7, indices=[0], values=[[1.0]], dtypes=["float32", "float32"], shared_name="kept")
            open = {_kind}MapIncompleteSize({_MAPPED})
            """,
        ),
        f"{_kind}MapClear": (
            "",
            _map(
                _kind,
                f"clear = {_kind}MapClear({_MAPPED})\n"
                f'size = {_kind}MapSize(dtypes=["float32", "float32"], shared_name="kept", after=clear)',
            ),
        ),
    }
