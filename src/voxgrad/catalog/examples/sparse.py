# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: positions, values and a shape."""

_A = "a_indices=[[0, 0], [1, 2]], a_values=[1.0, 2.0], a_shape=[2, 3]"
_B = "b_indices=[[0, 1], [1, 2]], b_values=[5.0, -7.0], b_shape=[2, 3]"
_SP = "sp_indices=[[0, 0], [0, 2], [1, 1]], sp_values=[1.0, 2.0, 3.0], sp_shape=[2, 3]"
_INPUT = "input_indices=[[0, 0], [0, 2], [1, 1]], input_values=[1.0, 2.0, 3.0], input_shape=[2, 3]"
_PLAIN = "indices=[[0, 0], [0, 2], [1, 1]], values=[1.0, 2.0, 3.0], shape=[2, 3]"
_SPARSE = "sparse_indices=[[0, 0], [1, 2]], sparse_values=[1.0, 2.0], sparse_shape=[2, 3]"

EXAMPLES = {
    "SparseToDense": (
        "dense[sparse_indices[i]] = sparse_values[i], else default_value",
        "SparseToDense(sparse_indices=[[0, 1], [1, 2]], output_shape=[2, 3], sparse_values=[5, 7], default_value=0)",
    ),
    "SparseTensorDenseMatMul": (
        "product[i, j] = sum over the stored k of a[i, k] * b[k, j]",
        f"SparseTensorDenseMatMul({_A}, b=[[1.0], [10.0], [100.0]])",
    ),
    "SparseReorder": (
        "",
        "SparseReorder(input_indices=[[1, 0], [0, 2]], input_values=[1.0, 2.0], input_shape=[2, 3])",
    ),
    "SparseReshape": ("", "SparseReshape(input_indices=[[0, 1], [1, 2]], input_shape=[2, 3], new_shape=[3, 2])"),
    "SerializeSparse": (
        "",
        f"""
        texts = SerializeSparse({_SPARSE})
        rows = ExpandDims(input=texts, axis=0)
        DeserializeManySparse(serialized_sparse=rows, dtype="float32")
        """,
    ),
    "SerializeManySparse": (
        "",
        f"""
        texts = SerializeManySparse({_SPARSE})
        DeserializeManySparse(serialized_sparse=texts, dtype="float32")
        """,
    ),
    "DeserializeManySparse": (
        "",
        f"""
        texts = SerializeManySparse({_SPARSE})
        DeserializeManySparse(serialized_sparse=texts, dtype="float32")
        """,
    ),
    "SparseCross": (
        "",
        """
        SparseCross(indices=[[[0, 0], [1, 0]], [[0, 0], [0, 1]]], values=[["a", "b"], ["x", "y"]],
                    shapes=[[2, 1], [2, 2]], dense_inputs=[], hashed_output=False, num_buckets=0, hash_key=0,
                    out_type="string", internal_type="string")
        """,
    ),
    "AddSparseToTensorsMap": (
        "",
        f"""
        number = AddSparseToTensorsMap({_SPARSE}, shared_name="kept")
        numbers = ExpandDims(input=number, axis=0)
        TakeManySparseFromTensorsMap(sparse_handles=numbers, dtype="float32", shared_name="kept")
        """,
    ),
    "AddManySparseToTensorsMap": (
        "",
        f"""
        numbers = AddManySparseToTensorsMap({_SPARSE}, shared_name="kept")
        TakeManySparseFromTensorsMap(sparse_handles=numbers, dtype="float32", shared_name="kept")
        """,
    ),
    "TakeManySparseFromTensorsMap": (
        "",
        f"""
        numbers = AddManySparseToTensorsMap({_SPARSE}, shared_name="kept")
        TakeManySparseFromTensorsMap(sparse_handles=numbers, dtype="float32", shared_name="kept")
        """,
    ),
    "SparseAdd": ("sum = a + b, without what is smaller than thresh", f"SparseAdd({_A}, {_B}, thresh=0.0)"),
    "SparseAddGrad": (
        "",
        """
        SparseAddGrad(backprop_val_grad=[1.0, 2.0, 3.0], a_indices=[[0, 0], [1, 2]], b_indices=[[0, 1], [1, 2]],
                      sum_indices=[[0, 0], [0, 1], [1, 2]])
        """,
    ),
    "SparseConcat": (
        "",
        """
        SparseConcat(indices=[[[0, 0]], [[0, 1]]], values=[[1.0], [2.0]], shapes=[[1, 2], [1, 2]], concat_dim=1)
        """,
    ),
    "SparseSplit": ("", f"SparseSplit(split_dim=0, {_PLAIN}, num_split=2)"),
    "SparseSlice": ("", f"SparseSlice({_PLAIN}, start=[0, 1], size=[2, 2])"),
    "SparseSliceGrad": (
        "",
        """
        SparseSliceGrad(backprop_val_grad=[10.0, 20.0], input_indices=[[0, 0], [0, 2], [1, 1]], input_start=[0, 1],
                        output_indices=[[0, 1], [1, 0]])
        """,
    ),
    "SparseReduceSum": ("output = sum over reduction_axes", f"SparseReduceSum({_INPUT}, reduction_axes=1)"),
    "SparseReduceSumSparse": ("output = sum over reduction_axes", f"SparseReduceSumSparse({_INPUT}, reduction_axes=1)"),
    "SparseReduceMax": ("output = maximum over reduction_axes", f"SparseReduceMax({_INPUT}, reduction_axes=1)"),
    "SparseReduceMaxSparse": (
        "output = maximum over reduction_axes",
        f"SparseReduceMaxSparse({_INPUT}, reduction_axes=1)",
    ),
    "SparseSoftmax": ("output[i] = exp(value[i]) / sum over the stored j of exp(value[j])", f"SparseSoftmax({_SP})"),
    "SparseDenseCwiseAdd": ("output = sparse + dense", f"SparseDenseCwiseAdd({_SP}, dense=[10.0, 20.0, 30.0])"),
    "SparseDenseCwiseMul": ("output = sparse * dense", f"SparseDenseCwiseMul({_SP}, dense=[10.0, 20.0, 30.0])"),
    "SparseDenseCwiseDiv": ("output = sparse / dense", f"SparseDenseCwiseDiv({_SP}, dense=[10.0, 20.0, 30.0])"),
    "SparseTensorDenseAdd": (
        "output = a + b",
        f"SparseTensorDenseAdd({_A}, b=[[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]])",
    ),
    "SparseSparseMaximum": ("output = max(a, b)", f"SparseSparseMaximum({_A}, {_B})"),
    "SparseSparseMinimum": ("output = min(a, b)", f"SparseSparseMinimum({_A}, {_B})"),
    "SparseFillEmptyRows": (
        "",
        "SparseFillEmptyRows(indices=[[0, 1], [2, 0]], values=[5, 7], dense_shape=[3, 2], default_value=-1)",
    ),
    "SparseFillEmptyRowsGrad": (
        "",
        "SparseFillEmptyRowsGrad(reverse_index_map=[0, 2], grad_values=[1.0, 10.0, 2.0])",
    ),
}
