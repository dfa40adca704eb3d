# SPDX-License-Identifier: Apache-2.0
"""Texts, messages and summaries."""

_EXAMPLE = """
bytes = DecodeJSONExample(json_examples=['{"features": {"feature": {"age": {"int64List": {"value": [7]}}}}}'])
"""
_SUMMARY = "bytes = {0}\n"

EXAMPLES = {
    "StringToHashBucket": ("", 'StringToHashBucket(string_tensor=["red", "green", "blue"], num_buckets=10)'),
    "StringToHashBucketFast": ("", 'StringToHashBucketFast(input=["red", "green", "blue"], num_buckets=10)'),
    "StringToHashBucketStrong": (
        "",
        'StringToHashBucketStrong(input=["red", "green", "blue"], num_buckets=10, key=[1, 2])',
    ),
    "StringSplit": ("", 'StringSplit(input=["one two", "three"], delimiter=" ")'),
    "DecodeRaw": ("", 'DecodeRaw(bytes=["\\x01\\x00\\x02\\x00"], out_type="int16")'),
    "StringToNumber": ("", 'StringToNumber(string_tensor=["1.5", "-2", "1e3"])'),
    "ParseTensor": (
        "",
        'ParseTensor(serialized="\\x08\\x03\\x12\\x04\\x12\\x02\\x08\\x02:\\x02\\x05\\x07", out_type="int32")',
    ),
    "DecodeCSV": ("", 'DecodeCSV(records=["1,red", "2,blue"], record_defaults=[[0], ["none"]])'),
    "AsString": ("", "AsString(input=[1.5, -2.25], precision=1)"),
    "StringJoin": ("", 'StringJoin(inputs=[["a", "b"], ["x", "y"]], separator="-")'),
    "ReduceJoin": ("", 'ReduceJoin(inputs=[["a", "b"], ["x", "y"]], reduction_indices=1, separator="+")'),
    "Substr": ("output = input[pos : pos + len]", 'Substr(input=["volume", "gradient"], pos=1, len=3)'),
    "EncodeBase64": ("", 'EncodeBase64(input=["voxel"], pad=True)'),
    "DecodeBase64": ("", 'DecodeBase64(input=["dm94ZWw"])'),
    "Print": ("output = input", 'Print(input=[1.0, 2.0], data=[[3]], message="seen: ")'),
    "Assert": (
        "",
        """
        small = Less(x=2, y=5)
        check = Assert(condition=small, data=["must be below 5"])
        go_on = Identity(input=2, after=check)
        """,
    ),
    "CheckNumerics": ("output = tensor", 'CheckNumerics(tensor=[1.0, 2.0], message="the loss")'),
    "ScalarSummary": ("", 'ScalarSummary(tags="loss", values=0.5)'),
    "HistogramSummary": ("", 'HistogramSummary(tag="weights", values=[1.0, 2.0, 2.0])'),
    "MergeSummary": (
        "",
        """
        one = ScalarSummary(tags="loss", values=0.5)
        two = ScalarSummary(tags="rate", values=2.0)
        MergeSummary(inputs=[one, two])
        """,
    ),
    "TensorSummary": ("", "TensorSummary(tensor=[1, 2])"),
    "DecodeJSONExample": (
        "",
        _EXAMPLE
        + """
        ParseExample(serialized=bytes, names=string([]), sparse_keys=[], dense_keys=["age"], dense_defaults=[int64([])],
                     sparse_types=[], dense_shapes=[[1]])
        """,
    ),
    "ParseExample": (
        "",
        _EXAMPLE
        + """
        ParseExample(serialized=bytes, names=string([]), sparse_keys=["age"], dense_keys=[], dense_defaults=[],
                     sparse_types=["int64"], dense_shapes=[])
        """,
    ),
    "ParseSingleSequenceExample": (
        "",
        _EXAMPLE
        + """
        one = Reshape(tensor=bytes, shape=[])
        ParseSingleSequenceExample(serialized=one, feature_list_dense_missing_assumed_empty=string([]),
                                   context_sparse_keys=[],
                                   context_dense_keys=["age"], feature_list_sparse_keys=[], feature_list_dense_keys=[],
                                   context_dense_defaults=[int64([])], debug_name="", context_dense_shapes=[[1]])
        """,
    ),
}
