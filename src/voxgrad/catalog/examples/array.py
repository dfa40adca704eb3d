# SPDX-License-Identifier: Apache-2.0
"""Shapes, slices, joins, places, and blocks that hold or pass on a value."""

EXAMPLES = {
    "Const": ("", 'Const(value=[[1, 2], [3, 4]], dtype="int32")'),
    "Placeholder": (
        "",
        """
        x = Placeholder(dtype="float32", shape=[3])
        y = Square(x=x)
        feed(x=[1.0, 2.0, 3.0])
        """,
    ),
    "PlaceholderWithDefault": ("", "PlaceholderWithDefault(input=[1.0, 2.0], shape=[2])"),
    "Identity": ("output = input", "Identity(input=[1.0, 2.0])"),
    "IdentityN": ("output[i] = input[i]", 'IdentityN(input=[[1.0, 2.0], ["text"]])'),
    "StopGradient": (
        "output = input; gradient 0",
        """
        x = Const(value=[1.0, 2.0], dtype="float32")
        fixed = StopGradient(input=x)
        y = Mul(x=x, y=fixed)
        """,
    ),
    "PreventGradient": ("output = input", 'PreventGradient(input=[1.0, 2.0], message="not meant to be trained")'),
    "NoOp": (
        "",
        """
        first = Const(value=1, dtype="int32")
        both = NoOp(after=first)
        last = Identity(input=2, after=both)
        """,
    ),
    "Shape": ("", "Shape(input=[[1, 2, 3], [4, 5, 6]])"),
    "ShapeN": ("", "ShapeN(input=[[1, 2, 3], [[4], [5]]])"),
    "Size": ("output = product of the sizes", "Size(input=[[1, 2, 3], [4, 5, 6]])"),
    "Rank": ("", "Rank(input=[[1, 2, 3], [4, 5, 6]])"),
    "Reshape": ("", "Reshape(tensor=[1, 2, 3, 4, 5, 6], shape=[2, 3])"),
    "ExpandDims": ("", "ExpandDims(input=[1, 2, 3], axis=1)"),
    "Squeeze": ("", "Squeeze(input=[[[1], [2], [3]]])"),
    "Transpose": ("y[j, i] = x[i, j]", "Transpose(x=[[1, 2, 3], [4, 5, 6]], perm=[1, 0])"),
    "ConjugateTranspose": (
        "y[j, i] = conj(x[i, j])",
        "ConjugateTranspose(x=complex64([[1 + 2j, 3 + 0j]]), perm=[1, 0])",
    ),
    "BroadcastTo": ("", "BroadcastTo(input=[1, 2, 3], shape=[2, 3])"),
    "BroadcastArgs": ("", "BroadcastArgs(s0=[2, 1, 3], s1=[4, 1])"),
    "BroadcastGradientArgs": ("", "BroadcastGradientArgs(s0=[2, 1, 3], s1=[4, 1])"),
    "Fill": ("", "Fill(dims=[2, 3], value=7)"),
    "ZerosLike": ("y = 0", "ZerosLike(x=[[1.5, 2.5], [3.5, 4.5]])"),
    "OnesLike": ("y = 1", "OnesLike(x=[[1.5, 2.5], [3.5, 4.5]])"),
    "InvertPermutation": ("y[x[i]] = i", "InvertPermutation(x=[2, 0, 1])"),
    "Bitcast": ("", 'Bitcast(input=[1.0, -2.0], type="int32")'),
    "Diag": ("output[i, i] = diagonal[i]", "Diag(diagonal=[1, 2, 3])"),
    "DiagPart": ("diagonal[i] = input[i, i]", "DiagPart(input=[[1, 2], [3, 4]])"),
    "MatrixDiag": ("output[..., i, i] = diagonal[..., i]", "MatrixDiag(diagonal=[[1, 2], [3, 4]])"),
    "MatrixDiagPart": ("diagonal[..., i] = input[..., i, i]", "MatrixDiagPart(input=[[1, 2, 3], [4, 5, 6]])"),
    "MatrixSetDiag": (
        "output[..., i, i] = diagonal[..., i]",
        "MatrixSetDiag(input=[[1, 2], [3, 4]], diagonal=[10, 20])",
    ),
    "MatrixBandPart": (
        "band[i, j] = input[i, j] if i - j <= num_lower and j - i <= num_upper else 0",
        "MatrixBandPart(input=[[1, 2, 3], [4, 5, 6], [7, 8, 9]], num_lower=0, num_upper=1)",
    ),
    "EditDistance": (
        "",
        """
        EditDistance(hypothesis_indices=[[0, 0], [0, 1]], hypothesis_values=["a", "b"], hypothesis_shape=[1, 2],
                     truth_indices=[[0, 0], [0, 1], [0, 2], [0, 3]], truth_values=["a", "c", "b", "d"],
                     truth_shape=[1, 4])
        """,
    ),
    "ParallelConcat": ("", "ParallelConcat(values=[[[1, 2]], [[3, 4]]], shape=[2, 2])"),
    "Slice": ("output = input[begin : begin + size]", "Slice(input=[[1, 2, 3], [4, 5, 6]], begin=[0, 1], size=[2, 2])"),
    "StridedSlice": (
        "output = input[begin:end:strides]",
        "StridedSlice(input=[10, 11, 12, 13, 14], begin=[0], end=[5], strides=[2])",
    ),
    "StridedSliceGrad": (
        "output[begin:end:strides] = dy, else 0",
        "StridedSliceGrad(shape=[5], begin=[0], end=[5], strides=[2], dy=[1.0, 2.0, 3.0])",
    ),
    "StridedSliceAssign": (
        "ref[begin:end:strides] = value",
        """
        v = variable([0, 0, 0, 0])
        step = StridedSliceAssign(ref=v, begin=[0], end=[4], strides=[2], value=[7, 8])
        """,
    ),
    "ResourceStridedSliceAssign": (
        "ref[begin:end:strides] = value",
        """
        v = handle([0, 0, 0, 0])
        step = ResourceStridedSliceAssign(ref=v, begin=[0], end=[4], strides=[2], value=[7, 8])
        now = ReadVariableOp(resource=v, dtype="int32", after=step)
        """,
    ),
    "Split": ("", "Split(axis=0, value=[1, 2, 3, 4, 5, 6], num_split=3)"),
    "SplitV": ("", "SplitV(value=[1, 2, 3, 4, 5, 6], size_splits=[1, 3, 2], axis=0, num_split=3)"),
    "Unpack": ("output[i] = value[i]", "Unpack(value=[[1, 2], [3, 4]], num=2)"),
    "Concat": ("", "Concat(concat_dim=0, values=[[1, 2], [3, 4, 5]])"),
    "ConcatV2": ("", "ConcatV2(values=[[[1, 2]], [[3, 4]]], axis=1)"),
    "ConcatOffset": ("", "ConcatOffset(concat_dim=0, shape=[[2, 3], [4, 3], [1, 3]])"),
    "Pack": ("output[i] = values[i]", "Pack(values=[[1, 2], [3, 4], [5, 6]])"),
    "Tile": ("output[i] = input[i mod size]", "Tile(input=[1, 2, 3], multiples=[2])"),
    "Pad": ("", "Pad(input=[[1, 2], [3, 4]], paddings=[[0, 1], [1, 0]])"),
    "PadV2": ("", "PadV2(input=[[1, 2], [3, 4]], paddings=[[0, 1], [1, 0]], constant_values=9)"),
    "MirrorPad": ("", 'MirrorPad(input=[1, 2, 3], paddings=[[2, 1]], mode="REFLECT")'),
    "MirrorPadGrad": ("", 'MirrorPadGrad(input=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], paddings=[[2, 1]], mode="REFLECT")'),
    "ReverseV2": ("output[i] = tensor[n - 1 - i]", "ReverseV2(tensor=[[1, 2, 3], [4, 5, 6]], axis=[1])"),
    "ReverseSequence": (
        "",
        "ReverseSequence(input=[[1, 2, 3, 4], [5, 6, 7, 8]], seq_lengths=[3, 2], seq_dim=1)",
    ),
    "Gather": ("output[i] = params[indices[i]]", "Gather(params=[10, 20, 30], indices=[2, 0, 2])"),
    "GatherV2": (
        "output[i] = params[indices[i]] along axis",
        "GatherV2(params=[[1, 2, 3], [4, 5, 6]], indices=[2, 0], axis=1)",
    ),
    "GatherNd": ("output[i] = params[indices[i]]", "GatherNd(params=[[1, 2], [3, 4]], indices=[[0, 1], [1, 0]])"),
    "ScatterNd": (
        "output[indices[i]] += updates[i]",
        "ScatterNd(indices=[[1], [3], [1]], updates=[10, 20, 5], shape=[4])",
    ),
    "ScatterNdNonAliasingAdd": (
        "output = input; output[indices[i]] += updates[i]",
        "ScatterNdNonAliasingAdd(input=[1, 1, 1, 1], indices=[[1], [3]], updates=[10, 20])",
    ),
    "TensorScatterUpdate": (
        "output = tensor; output[indices[i]] = updates[i]",
        "TensorScatterUpdate(tensor=[1, 1, 1, 1], indices=[[1], [3]], updates=[10, 20])",
    ),
    "TensorScatterAdd": (
        "output = tensor; output[indices[i]] += updates[i]",
        "TensorScatterAdd(tensor=[1, 1, 1, 1], indices=[[1], [3]], updates=[10, 20])",
    ),
    "OneHot": (
        "output[i, j] = on_value if indices[i] == j else off_value",
        "OneHot(indices=[0, 2, 1], depth=3, on_value=1.0, off_value=0.0)",
    ),
    "Where": ("", "Where(condition=[[True, False], [False, True]])"),
    "Unique": ("x[i] = y[idx[i]]", "Unique(x=[5, 7, 5, 9])"),
    "UniqueWithCounts": ("x[i] = y[idx[i]]", "UniqueWithCounts(x=[5, 7, 5, 9])"),
    "ListDiff": ("", "ListDiff(x=[1, 2, 3, 4, 5], y=[2, 4])"),
    "DynamicPartition": (
        "outputs[p] = data[i] over partitions[i] == p",
        "DynamicPartition(data=[10, 20, 30, 40], partitions=[0, 1, 1, 0], num_partitions=2)",
    ),
    "DynamicStitch": (
        "merged[indices[n][i]] = data[n][i]",
        "DynamicStitch(indices=[[0, 2], [1, 3]], data=[[10, 30], [20, 40]])",
    ),
    "SpaceToDepth": ("", "SpaceToDepth(input=[[[[1], [2]], [[3], [4]]]], block_size=2)"),
    "DepthToSpace": ("", "DepthToSpace(input=[[[[1, 2, 3, 4]]]], block_size=2)"),
    "SpaceToBatchND": (
        "",
        "SpaceToBatchND(input=[[[[1], [2]], [[3], [4]]]], block_shape=[2, 2], paddings=[[0, 0], [0, 0]])",
    ),
    "BatchToSpaceND": (
        "",
        "BatchToSpaceND(input=[[[[1]]], [[[2]]], [[[3]]], [[[4]]]], block_shape=[2, 2], crops=[[0, 0], [0, 0]])",
    ),
    "SpaceToBatch": ("", "SpaceToBatch(input=[[[[1], [2]], [[3], [4]]]], paddings=[[0, 0], [0, 0]], block_size=2)"),
    "BatchToSpace": (
        "",
        "BatchToSpace(input=[[[[1]]], [[[2]]], [[[3]]], [[[4]]]], crops=[[0, 0], [0, 0]], block_size=2)",
    ),
    "Switch": (
        "output_true = data if pred, output_false = data if not",
        """
        way = Switch(data=[1.0, 2.0], pred=True)
        yes = Mul(x=way[1], y=10.0)
        no = Neg(x=way[0])
        both = Merge(inputs=[no, yes])
        """,
    ),
    "RefSwitch": (
        "",
        """
        v = variable([1.0, 2.0])
        way = RefSwitch(data=v, pred=True)
        yes = Identity(input=way[1])
        """,
    ),
    "Merge": (
        "",
        """
        way = Switch(data=[1.0, 2.0], pred=False)
        yes = Mul(x=way[1], y=10.0)
        no = Neg(x=way[0])
        both = Merge(inputs=[no, yes])
        """,
    ),
    "NextIteration": ("output = data", "NextIteration(data=[1.0, 2.0])"),
    "RefNextIteration": (
        "output = data",
        """
        v = variable([1.0, 2.0])
        next = RefNextIteration(data=v)
        """,
    ),
    "RefSelect": (
        "output = inputs[index]",
        """
        a = variable([1.0])
        b = variable([2.0])
        chosen = RefSelect(index=1, inputs=[a, b])
        """,
    ),
    "LoopCond": ("output = input", "LoopCond(input=True)"),
    "ControlTrigger": (
        "",
        """
        first = Const(value=1, dtype="int32")
        both = ControlTrigger(after=first)
        last = Identity(input=2, after=both)
        """,
    ),
    "Abort": (
        "",
        """
        way = Switch(data=1, pred=False)
        never = Identity(input=way[1])
        stop = Abort(error_msg="reached what must not be reached", after=never)
        go_on = Identity(input=way[0])
        """,
    ),
}
