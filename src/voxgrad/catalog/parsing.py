# SPDX-License-Identifier: Apache-2.0
"""Examples in TensorFlow's messages: features by name, as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import check_same, has_rank, like, text, unknown
from voxgrad.errors import Faults

VALUES = (dtypes.FLOAT32, dtypes.INT64, dtypes.STRING)
"""What features hold."""
_I64 = dtypes.INT64
_LAWS = (
    Law("features", "They hold float32, int64 or string; the last of several of one name counts."),
    Law("missing", "A dense feature that is missing has its default; with an empty default it is an error."),
)


def _keys(name: str, doc: str, number: str) -> Input:
    return Input(name, dtypes.STRING, doc, "[]", many=True, least=0, number=number)


def _defaults(name: str, type_: str) -> Input:
    doc = "What dense features are where they are missing; an empty tensor where they must be there."
    return Input(name, type_, doc, many=True, mixed=True, least=0)


def _sparse_outputs(prefix: str, keys: str, types: str, what: str) -> tuple[Output, Output, Output]:
    return (Output(f"{prefix}_indices", _I64, f"The places of values of {what}.", many=True, count=keys),
            Output(f"{prefix}_values", types, "The values.", many=True, mixed=True, count=types),
            Output(f"{prefix}_shapes", _I64, "The shapes.", many=True, count=keys))  # fmt: skip


def open_shape(shape: Sequence[Any]) -> tuple[Any, ...]:
    """A stated shape with None for sizes that are open, or have a name."""
    return tuple(None if size in (None, -1) or isinstance(size, str) else size for size in shape)


def _checked_types(call: Call, name: str, keys: str, faults: Faults) -> tuple[DType, ...]:
    types: tuple[DType, ...] = call.attrs.get(name, ())
    if len(types) != len(call.inputs[keys]):
        faults.add("VG004", name, wanted=f"have one type for each of {len(call.inputs[keys])} {keys}", got=len(types))
    if any(one not in VALUES for one in types):
        listed = ", ".join(one.name for one in VALUES)
        faults.add("VG011", name, wanted=f"hold {listed}", got=", ".join(one.name for one in types))
    return types


def _checked_shapes(call: Call, name: str, keys: str, faults: Faults) -> list[Shape]:
    """The stated shapes of dense features, None for open sizes."""
    shapes = call.attrs.get(name, ())
    if len(shapes) != len(call.inputs[keys]):
        faults.add("VG004", name, wanted=f"have one shape for each of {len(call.inputs[keys])} {keys}", got=len(shapes))
    made = []
    for index, shape in enumerate(shapes):
        sizes = None if shape is None else open_shape(shape)
        if sizes is None or None in sizes[1:] or any(size is not None and size < 0 for size in sizes):
            wanted = "state every size, but for the first" if name == "dense_shapes" else "state every size"
            faults.add("VG014", f"{name}[{index}]", wanted=wanted, got=text(shape))
        elif sizes and sizes[0] is None and name != "dense_shapes":
            faults.add("VG014", f"{name}[{index}]", wanted="state every size", got=text(shape))
        made.append(sizes or ())
    return made


def _check_defaults(call: Call, name: str, keys: str, shapes: list[Shape], faults: Faults) -> None:
    given = call.inputs[name]
    if len(given) != len(call.inputs[keys]):
        faults.add("VG004", name, wanted=f"have one tensor for each of {len(call.inputs[keys])} {keys}", got=len(given))
        return
    for index, (spec, shape) in enumerate(zip(given, shapes, strict=False)):
        if shape and shape[0] is None:
            if spec.shape is not None and any(size != 1 for size in spec.shape if isinstance(size, int)):
                wanted = "hold one value, to fill up rows"
                faults.add("VG012", f"{name}[{index}]", wanted=wanted, got=text(spec.shape))
        elif spec.shape is not None and 0 not in spec.shape:
            check_same(f"{name}[{index}]", spec.shape, shape, "the shape that is stated for it", faults)


def _sparse_specs(call: Call, keys: str, types: Sequence[DType], rank: int) -> tuple[Any, Any, Any]:
    counts = [unknown(call, f"{keys}[{index}]") for index in range(len(call.inputs[keys]))]
    return (tuple(Spec(_I64, (count, rank)) for count in counts),
            tuple(Spec(dtype, (count,)) for dtype, count in zip(types, counts, strict=False)),
            tuple(Spec(_I64, (rank,)) for _ in counts))  # fmt: skip


def _single(call: Call, *names: str, faults: Faults) -> None:
    """Note keys that are not one text each; whether as scalars, ParseExample does not mind."""
    for name in names:
        for index, spec in enumerate(call.inputs[name]):
            if call.op.name != "ParseExample":
                check_same(f"{name}[{index}]", spec.shape, (), "one text", faults)
            if spec.shape is not None and any(known(size) and size != 1 for size in spec.shape):
                faults.add("VG012", f"{name}[{index}]", wanted="hold one text", got=text(spec.shape))


def _parse_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    has_rank(call, "serialized", 1, faults)
    has_rank(call, "names", 1, faults)
    _single(call, "sparse_keys", "dense_keys", faults=faults)
    types = _checked_types(call, "sparse_types", "sparse_keys", faults)
    shapes = _checked_shapes(call, "dense_shapes", "dense_keys", faults)
    _check_defaults(call, "dense_defaults", "dense_keys", shapes, faults)
    if faults:
        return None
    batch = (call.inputs["serialized"].shape or (unknown(call, "batch"),))[0]
    dense = tuple(
        Spec(spec.dtype, (batch, *(unknown(call, f"dense[{index}]") if size is None else size for size in shape)))
        for index, (spec, shape) in enumerate(zip(call.inputs["dense_defaults"], shapes, strict=True))
    )
    return (*_sparse_specs(call, "sparse_keys", types, 2), dense)


def _sequence_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    has_rank(call, "feature_list_dense_missing_assumed_empty", 1, faults)
    _single(call, "context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys", "feature_list_dense_keys",
            faults=faults)  # fmt: skip
    types = [_checked_types(call, name, keys, faults) for name, keys in (
        ("context_sparse_types", "context_sparse_keys"), ("feature_list_sparse_types", "feature_list_sparse_keys"),
        ("feature_list_dense_types", "feature_list_dense_keys"))]  # fmt: skip
    own, listed = (_checked_shapes(call, f"{name}_shapes", f"{name}_keys", faults) for name in (
        "context_dense", "feature_list_dense"))  # fmt: skip
    _check_defaults(call, "context_dense_defaults", "context_dense_keys", own, faults)
    if faults:
        return None
    dense = tuple(Spec(spec.dtype, shape) for spec, shape in zip(
        call.inputs["context_dense_defaults"], own, strict=True))  # fmt: skip
    rows = tuple(Spec(dtype, (unknown(call, f"steps[{index}]"), *shape)) for index, (dtype, shape) in enumerate(
        zip(types[2], listed, strict=True)))  # fmt: skip
    return (*_sparse_specs(call, "context_sparse_keys", types[0], 1), dense,
            *_sparse_specs(call, "feature_list_sparse_keys", types[1], 2), rows)  # fmt: skip


_SPARSE_TYPES, _DENSE_SHAPES = "The types of the sparse features.", "The shapes of the dense features."

OPS = (
    Op("DecodeJSONExample", "parsing", "Examples in JSON as the bytes of Example messages.",
       (Input("json_examples", dtypes.STRING, "The examples in JSON."),),
       outputs=(Output("binary_examples", dtypes.STRING, "Their bytes.", "shape of json_examples"),),
       infer=like("json_examples"), kernel="parsing.decode_json"),
    Op("ParseExample", "parsing", "The features of Example messages as tensors, one row for each example.",
       (Input("serialized", dtypes.STRING, "The bytes of the examples.", "[batch]"),
        Input("names", dtypes.STRING, "How errors call the examples; may be empty.", "[batch] or [0]"),
        _keys("sparse_keys", "The features that have any number of values.", "Nsparse"),
        _keys("dense_keys", "The features that have a shape.", "Ndense"), _defaults("dense_defaults", "Tdense")),
       (Attr("sparse_types", "types", _SPARSE_TYPES),
        Attr("dense_shapes", "shapes", f"{_DENSE_SHAPES} The first size may be open; rows are filled up then.")),
       (*_sparse_outputs("sparse", "sparse_keys", "sparse_types", "each sparse feature: example and number"),
        Output("dense_values", "Tdense", "The dense features.", many=True, mixed=True, count="dense_defaults")),
       {"Tdense": VALUES, "sparse_types": VALUES}, infer=_parse_infer, kernel="parsing.parse", laws=_LAWS),
    Op("ParseSingleSequenceExample", "parsing", "The features of a SequenceExample message as tensors.",
       (Input("serialized", dtypes.STRING, "The bytes of the example.", "[]"),
        Input("feature_list_dense_missing_assumed_empty", dtypes.STRING, "Dense lists that may be missing.", "[n]"),
        _keys("context_sparse_keys", "Features of the whole that have any number of values.", "Ncontext_sparse"),
        _keys("context_dense_keys", "Features of the whole that have a shape.", "Ncontext_dense"),
        _keys("feature_list_sparse_keys", "Lists of features of any number of values.", "Nfeature_list_sparse"),
        _keys("feature_list_dense_keys", "Lists of features of a shape.", "Nfeature_list_dense"),
        _defaults("context_dense_defaults", "Tcontext_dense"),
        Input("debug_name", dtypes.STRING, "How errors call the example.", "[]")),
       (Attr("context_sparse_types", "types", _SPARSE_TYPES, ()),
        Attr("feature_list_dense_types", "types", "The types of the dense lists.", ()),
        Attr("context_dense_shapes", "shapes", _DENSE_SHAPES, ()),
        Attr("feature_list_sparse_types", "types", "The types of the sparse lists.", ()),
        Attr("feature_list_dense_shapes", "shapes", "The shapes of the features in dense lists.", ())),
       (*_sparse_outputs("context_sparse", "context_sparse_keys", "context_sparse_types", "each sparse feature"),
        Output("context_dense_values", "Tcontext_dense", "The dense features.", many=True, mixed=True,
               count="context_dense_defaults"),
        *_sparse_outputs("feature_list_sparse", "feature_list_sparse_keys", "feature_list_sparse_types",
                         "each sparse list: step and number"),
        Output("feature_list_dense_values", "feature_list_dense_types", "The dense lists.", many=True, mixed=True,
               count="feature_list_dense_types")),
       {"Tcontext_dense": VALUES, "context_sparse_types": VALUES, "feature_list_sparse_types": VALUES,
        "feature_list_dense_types": VALUES}, infer=_sequence_infer, kernel="parsing.parse_sequence", laws=_LAWS),
)  # fmt: skip
