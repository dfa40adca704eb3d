# SPDX-License-Identifier: Apache-2.0
"""Text: numbers in it, pieces of it, encodings. Text is bytes."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import known
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import (
    axis_in,
    broadcast,
    check_same,
    elements,
    has_rank,
    like,
    merged,
    same_shapes,
    shaped,
    specs,
    text,
    unknown,
    unknowns,
)  # fmt: skip
from voxgrad.errors import Faults

_STRING = dtypes.STRING
_RAW = (*dtypes.FLOATING, dtypes.INT8, dtypes.INT16, dtypes.INT32, dtypes.INT64, dtypes.UINT8, dtypes.UINT16,
        *dtypes.COMPLEX,
        dtypes.BOOL)  # fmt: skip
_PARSED = (dtypes.FLOAT32, dtypes.FLOAT64, dtypes.INT32, dtypes.INT64, dtypes.UINT32, dtypes.UINT64)
_CSV = (dtypes.FLOAT32, dtypes.FLOAT64, dtypes.INT32, dtypes.INT64, dtypes.STRING)


def _raw_rule(call: Call, faults: Faults) -> Shape | None:
    shape = call.inputs["bytes"].shape
    return None if shape is None else (*shape, unknown(call, "numbers"))


def _join_rule(call: Call, faults: Faults) -> Shape | None:
    shape: Shape | None = ()
    for index, spec in enumerate(call.inputs["inputs"]):
        if spec.shape is None or shape is None:
            shape = None
        elif spec.shape != ():
            if shape != ():
                check_same(f"inputs[{index}]", spec.shape, shape, "the shape of the others, or none", faults)
            shape = spec.shape if shape == () else merged(shape, spec.shape)
    return shape


def _substr_rule(call: Call, faults: Faults) -> Shape | None:
    same_shapes(call, ("pos", "len"), faults)
    return broadcast(call, ("input", "pos"), faults)


def _reduce_rule(call: Call, faults: Faults) -> Shape | None:
    shape, axes = call.inputs["inputs"].shape, elements(call.inputs["reduction_indices"])
    if shape is None:
        return None
    keep = call.attrs.get("keep_dims")
    if axes is None:
        return unknowns(call, len(shape), "size") if keep else None
    gone = {axis_in(call, "reduction_indices", axis, len(shape), faults) for axis in axes}
    if keep:
        return tuple(1 if index in gone else size for index, size in enumerate(shape))
    return tuple(size for index, size in enumerate(shape) if index not in gone)


def _csv_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    shape = call.inputs["records"].shape
    for index, spec in enumerate(call.inputs["record_defaults"]):
        if spec.shape is not None and (len(spec.shape) > 1 or any(known(size) and size > 1 for size in spec.shape)):
            wanted = "hold one value at most, in rank 1 at most"
            faults.add("VG012", f"record_defaults[{index}]", wanted=wanted, got=f"shape {text(spec.shape)}")
    if faults:
        return None
    return (tuple(Spec(spec.dtype, shape) for spec in call.inputs["record_defaults"]),)


def _split_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "input", 1, faults)
    has_rank(call, "delimiter", 0, faults)
    pieces = unknown(call, "pieces")
    return None if faults else specs(call, (pieces, 2), (pieces,), (2,))


def _buckets(name: str, argument: str, summary: str, kernel: str, *attrs: Attr) -> Op:
    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        if not 1 <= call.attrs.get("num_buckets", 1) < 2**63:
            faults.add("VG003", "num_buckets", wanted="be 1 or more, in 64 bits", got=call.attrs["num_buckets"])
        if len(call.attrs.get("key", (0, 0))) != 2:
            faults.add("VG004", "key", wanted="hold 2 integers", got=len(call.attrs["key"]))
        return None if faults else specs(call, call.inputs[argument].shape)

    return Op(
        name, "string", summary, (Input(argument, _STRING, "Texts."),),
        (Attr("num_buckets", "int", "How many buckets, 1 or more."), *attrs),
        (Output("output", dtypes.INT64, "The buckets.", f"shape of {argument}"),), infer=infer,
        kernel=f"string.{kernel}",
    )  # fmt: skip


OPS = (
    _buckets("StringToHashBucket", "string_tensor", "A bucket for each text, by an old hash; prefer the others.",
             "hash_bucket"),
    _buckets("StringToHashBucketFast", "input", "A bucket for each text, by FarmHash64.", "hash_bucket_fast"),
    _buckets("StringToHashBucketStrong", "input", "A bucket for each text, by SipHash with a key.",
             "hash_bucket_strong", Attr("key", "ints", "Two integers: who does not know them cannot aim.",
                                      wide=True)),
    Op("StringSplit", "string", "The pieces of texts, as a sparse matrix with a row per text.",
       (Input("input", _STRING, "Texts.", "[n]"),
        Input("delimiter", _STRING, "Each of its bytes separates; empty: every byte is a piece.", "[]")),
       (Attr("skip_empty", "bool", "Leave empty pieces out.", True),),
       (Output("indices", dtypes.INT64, "Text and number of each piece.", "[m, 2]"),
        Output("values", _STRING, "The pieces.", "[m]"),
        Output("shape", dtypes.INT64, "The texts, and the pieces of the one that has most.", "[2]")),
       infer=_split_infer, kernel="string.split",
       laws=(Law("empty", "An empty text has no pieces."),)),
    Op("DecodeRaw", "string", "The bytes of texts, read as numbers.",
       (Input("bytes", _STRING, "Texts of one length."),),
       (Attr("out_type", "type", "The type of the numbers.", choices=_RAW),
        Attr("little_endian", "bool", "The low byte comes first.", True)),
       (Output("output", "out_type", "The numbers.", "shape of bytes, and one more dimension"),), {"out_type": _RAW},
       infer=shaped(_raw_rule), kernel="string.decode_raw"),
    Op("StringToNumber", "string", "Numbers from their text.", (Input("string_tensor", _STRING, "Texts."),),
       (Attr("out_type", "type", "The type of the numbers.", dtypes.FLOAT32, choices=_PARSED),),
       (Output("output", "out_type", "The numbers.", "shape of string_tensor"),), {"out_type": _PARSED},
       infer=like("string_tensor"), kernel="string.to_number",
       laws=(Law("bad", "A text that is no number is an error."),)),
    Op("ParseTensor", "string", "A tensor from the bytes of a TensorProto message.",
       (Input("serialized", _STRING, "The bytes.", "[]"),),
       (Attr("out_type", "type", "The type of the tensor; the bytes must say the same."),),
       (Output("output", "out_type", "The tensor."),), {"out_type": dtypes.ALL},
       infer=lambda call, faults: specs(call, None), kernel="serialized.parse_tensor"),
    Op("DecodeCSV", "string", "Columns from lines of comma-separated values.",
       (Input("records", _STRING, "The lines."),
        Input("record_defaults", "OUT_TYPE",
              "One per column: its type, and the value of an empty field; empty where a field must be given.",
              many=True, mixed=True)),
       (Attr("field_delim", "string", "Stands between fields.", ","),
        Attr("use_quote_delim", "bool", "Double quotes enclose fields.", True),
        Attr("na_value", "string", "A text that counts as empty.", ""),
        Attr("select_cols", "ints", "The columns to take; all where empty.", ())),
       (Output("output", "OUT_TYPE", "The columns.", "shape of records", many=True, mixed=True,
               count="record_defaults"),),
       {"OUT_TYPE": _CSV}, infer=_csv_infer, kernel="string.decode_csv"),
    Op("AsString", "string", "Numbers as text.", (Input("input", "T", "Numbers."),),
       (Attr("precision", "int", "Digits behind the point; -1 for the usual 6.", -1),
        Attr("scientific", "bool", "As 1.5e+00.", False),
        Attr("shortest", "bool", "The shorter of the two forms.", False),
        Attr("width", "int", "Filled up in front to so many characters.", -1),
        Attr("fill", "string", "With what; blanks where empty.", "")),
       (Output("output", _STRING, "Their texts.", "shape of input"),),
       {"T": (*dtypes.NUMBER, dtypes.BOOL, dtypes.STRING)}, infer=like("input"), kernel="string.as_string"),
    Op("StringJoin", "string", "Texts joined, element by element.",
       (Input("inputs", _STRING, "Texts; scalars go with any shape.", many=True, least=0),),
       (Attr("separator", "string", "Stands between them.", ""),), (Output("output", _STRING, "The joined texts."),),
       infer=shaped(_join_rule), kernel="string.join"),
    Op("ReduceJoin", "string", "Texts joined along axes.",
       (Input("inputs", _STRING, "Texts."),
        Input("reduction_indices", dtypes.INT32, "The axes, in the order of joining; none for all.", "[axes] or []",
              host=True)),
       (Attr("keep_dims", "bool", "Keep joined axes with size 1.", False),
        Attr("separator", "string", "Stands between texts.", "")),
       (Output("output", _STRING, "The joined texts."),), infer=shaped(_reduce_rule), kernel="string.reduce_join"),
    Op("Substr", "string", "A piece of each text.",
       (Input("input", _STRING, "Texts."), Input("pos", "T", "Where it starts; negative counts from the end."),
        Input("len", "T", "Its length, like pos.")),
       (Attr("unit", "string", "What is counted.", "BYTE", choices=("BYTE", "UTF8_CHAR")),),
       (Output("output", _STRING, "The pieces.", "the broadcast shape"),), {"T": dtypes.INDEX},
       infer=shaped(_substr_rule),
       kernel="string.substr", laws=(Law("range",
                                         "A start outside the text is an error; a piece ends where the text does."),)),
    Op("EncodeBase64", "string", "Texts in web-safe base64.", (Input("input", _STRING, "Texts."),),
       (Attr("pad", "bool", "Fill up with = signs.", False),),
       (Output("output", _STRING, "The encoded texts.", "shape of input"),),
       infer=like("input"), kernel="string.encode_base64"),
    Op("DecodeBase64", "string", "Texts from web-safe base64.", (Input("input", _STRING, "Encoded texts."),),
       outputs=(Output("output", _STRING, "The texts.", "shape of input"),), infer=like("input"),
       kernel="string.decode_base64"),
)  # fmt: skip
