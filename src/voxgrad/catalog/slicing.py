# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors: cut, joined, padded, repeated, turned round, gathered and scattered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import all_known, differ, known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.gradients import nothing
from voxgrad.catalog.locality import (
    boxed,
    joined_along,
    kept,
    one_hot,
    packed,
    packed_along,
    padded,
    reversed_along,
    sliced,
    split_along,
    strided,
    strided_back,
    tiled,
    unpacked_along,
    unpadded,
    without,
)
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import (
    axis_in,
    check_same,
    check_updates,
    elements,
    has_rank,
    length,
    merged,
    scalar_value,
    shaped,
    specs,
    stated_shape,
    text,
    unknown,
    unknowns,
)  # fmt: skip
from voxgrad.catalog.slices import MASKS, cuts
from voxgrad.errors import Faults

ANY = {"T": dtypes.ALL}


def _grown(call: Call, spec: Spec, name: str, faults: Faults) -> list[tuple[Any, Any]] | None:
    """The amounts before and after every dimension that a [rank, 2] input states."""
    if spec.shape is not None and (len(spec.shape) != 2 or differ(spec.shape[1], 2)):
        faults.add("VG012", name, wanted="have the shape [rank, 2]", got=text(spec.shape))
        return None
    values = elements(spec)
    if values is None:
        return None
    if any(known(value) and value < 0 for value in values):
        faults.add("VG003", name, wanted="hold no negative amounts", got=text(values))
        return None
    return list(zip(values[::2], values[1::2], strict=True))


def _slice_rule(call: Call, faults: Faults) -> Shape | None:
    shape = call.inputs["input"].shape
    begin, size = elements(call.inputs["begin"]), elements(call.inputs["size"])
    for name in ("begin", "size"):
        has_rank(call, name, 1, faults)
        count = length(call.inputs[name])
        if shape is not None and count is not None and count != len(shape):
            faults.add("VG004", name, wanted=f"have {len(shape)} entries, one per dimension", got=count)
    if shape is None and begin is not None and size is not None and len(begin) != len(size):
        faults.add("VG004", "size", wanted=f"have {len(begin)} entries, as begin", got=len(size))
    if faults or size is None:
        rank = len(shape) if shape is not None else length(call.inputs["begin"])
        return None if rank is None else unknowns(call, rank, "size")
    made = []
    for index, count in enumerate(size):
        start = None if begin is None else begin[index]
        whole = None if shape is None else shape[index]
        made.append(_slice_size(call, index, (start, count, whole), faults))
    return tuple(made)


def _slice_size(call: Call, index: int, cut: tuple[Any, Any, Any], faults: Faults) -> Any:
    start, count, whole = cut
    to_end = known(count) and count == -1
    if (
        known(start)
        and known(whole)
        and known(count)
        and not (0 <= start <= whole and (to_end or 0 <= count <= whole - start))
    ):
        wanted = f"lie inside dimension {index} of {whole} cells"
        faults.add("VG043", f"begin[{index}], size[{index}]", wanted=wanted, got=f"{start}, {count}")
    if not to_end:
        return count
    return whole - start if whole is not None and start is not None else unknown(call, f"size[{index}]")


def _strided_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    source = call.inputs["input"]
    bounds = [elements(call.inputs[name]) for name in ("begin", "end", "strides")]
    if source.shape is None or None in bounds:
        return specs(call, None)
    made = cuts(source.shape, tuple(bounds), call.attrs, faults)  # type: ignore[arg-type]
    if made is None:
        return None
    shape = tuple(unknown(call, "size") if cut.count is None else cut.count for cut in made if not cut.shrink)
    return specs(call, shape, value=_cut_value(source, made))


def _cut_value(source: Spec, made: Sequence[Any]) -> Any:
    """The values of a slice of a known tensor: how a page takes one size out of a shape, a column out of paddings."""
    values, own = elements(source), [cut for cut in made if cut.axis is not None]
    if values is None or source.shape is None or not all(known(cut.count) and known(cut.start) for cut in own):
        return None
    places = [0]
    for cut, size in zip(own, source.shape, strict=True):
        places = [at * size + cut.start + index * cut.step for at in places for index in range(cut.count)]
    return tuple(values[at] for at in places)


def _strided_grad_rule(call: Call, faults: Faults) -> Shape | None:
    shape = stated_shape(call, "shape", faults)
    bounds = [elements(call.inputs[name]) for name in ("begin", "end", "strides")]
    if shape is None or not all_known(shape) or None in bounds:
        return shape
    made = cuts(shape, tuple(bounds), call.attrs, faults)  # type: ignore[arg-type]
    if made is not None:
        wanted = tuple(cut.count for cut in made if not cut.shrink)
        check_same("dy", call.inputs["dy"].shape, wanted, "the shape of the slice", faults)
    return shape


def _strided_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, *bounds = node.inputs
    masks = {name: node.attrs[name] for name in MASKS}
    kind = _index_type(bounds[0])
    if "int16" in str(getattr(bounds[0], "dtype", "")):
        bounds = [build.Cast(one, DstT=kind) for one in bounds]
    shape = build.Shape(x, out_type=kind)
    return build.StridedSliceGrad(shape, *bounds, dys[0], **masks), None, None, None


def _index_type(value: Any) -> DType:
    return dtypes.INT64 if "int64" in str(getattr(value, "dtype", "")) else dtypes.INT32


def _strided_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    _, *bounds, _ = node.inputs
    masks = {name: node.attrs[name] for name in MASKS}
    return None, None, None, None, build.StridedSlice(dys[0], *bounds, **masks)


def _strided_assign_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = call.inputs["ref"].shape
    bounds = [elements(call.inputs[name]) for name in ("begin", "end", "strides")]
    if shape is not None and all_known(shape) and None not in bounds:
        made = cuts(shape, tuple(bounds), call.attrs, faults)  # type: ignore[arg-type]
        wanted = None if made is None else tuple(cut.count for cut in made if not cut.shrink)
        check_same("value", call.inputs["value"].shape, wanted, "the shape of the slice", faults)
    return None if faults else specs(call, shape)


def _slice_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, begin, _ = node.inputs
    before = build.Cast(begin, DstT=dtypes.INT32)
    after = build.Sub(build.Sub(build.Shape(x), build.Shape(node.outputs[0])), before)
    return build.Pad(dys[0], build.Pack([before, after], axis=1)), None, None


def _pad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, paddings = node.inputs[:2]
    before = build.Cast(build.StridedSlice(paddings, [0, 0], [0, 0], [1, 1], begin_mask=1, end_mask=1,
                                           shrink_axis_mask=2),
                        DstT=dtypes.INT32)  # fmt: skip
    dx = build.Slice(dys[0], before, build.Shape(x))
    if len(node.inputs) == 2:
        return dx, None
    every = build.Range(0, build.Rank(x), 1)
    return dx, None, build.Sub(build.Sum(dys[0], every), build.Sum(dx, every))


def _pad_rule(call: Call, faults: Faults) -> Shape | None:
    return padded_shape(call, call.inputs["input"].shape, faults, mirrored=call.op.name == "MirrorPad")


def padded_shape(call: Call, shape: Shape | None, faults: Faults, *, mirrored: bool) -> Shape | None:
    """The shape with the cells of `paddings` around it; of mirrored ones there are no more than it has."""
    amounts = _grown(call, call.inputs["paddings"], "paddings", faults)
    if shape is None or amounts is None:
        return None if shape is None else unknowns(call, len(shape), "size")
    if len(amounts) != len(shape):
        faults.add("VG012", "paddings", wanted=f"have one row for each of {len(shape)} dimensions", got=len(amounts))
        return None
    if mirrored:
        slack = 1 if call.attrs.get("mode") == "REFLECT" else 0
        for index, (pair, size) in enumerate(zip(amounts, shape, strict=True)):
            if known(size) and any(known(one) and one > size - slack for one in pair):
                wanted = f"mirror at most {size - slack} cells of dimension {index}"
                faults.add("VG003", "paddings", wanted=wanted, got=text(pair))
    return tuple(before + size + after for (before, after), size in zip(amounts, shape, strict=True))


def _unpad_rule(call: Call, faults: Faults) -> Shape | None:
    shape = call.inputs["input"].shape
    amounts = _grown(call, call.inputs["paddings"], "paddings", faults)
    if shape is None or amounts is None:
        return None if shape is None else unknowns(call, len(shape), "size")
    edge = 1 if call.attrs.get("mode") == "REFLECT" else 0
    pairs = zip(amounts, shape, strict=False)
    if len(amounts) != len(shape) or any(size - sum(pair) < max(1, max(pair) + edge) for pair, size in pairs):
        faults.add("VG012", "paddings", wanted=f"fit a padded tensor of shape {text(shape)}", got=text(amounts))
        return None
    return tuple(size - before - after for (before, after), size in zip(amounts, shape, strict=True))


def joined(call: Call, values: Sequence[Spec], axis: Any, names: tuple[str, str], faults: Faults) -> Shape | None:
    """The shape of tensors that are put behind each other along an axis."""
    shapes = [spec.shape for spec in values]
    ranks = {len(shape) for shape in shapes if shape is not None}
    if len(ranks) > 1:
        faults.add("VG010", names[0], wanted="have one rank", got=f"ranks {sorted(ranks)}")
        return None
    if not ranks:
        return None
    rank = ranks.pop()
    if axis is None:
        return unknowns(call, rank, "size")
    at = axis_in(call, names[1], axis, rank, faults)
    if at is None:
        return None
    base: Shape | None = None
    total: Any = 0
    for index, shape in enumerate(shapes):
        rest = None if shape is None else tuple(1 if i == at else size for i, size in enumerate(shape))
        check_same(f"{names[0]}[{index}] beside axis {at}", rest, base, f"the sizes of {names[0]}[0]", faults)
        base = merged(base, rest)
        total = total + (unknown(call, "joined") if shape is None else shape[at])
    assert base is not None
    return tuple(total if index == at else size for index, size in enumerate(base))


def _concat_infer(axis_name: str) -> Any:
    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        values, axis = call.inputs["values"], scalar_value(call.inputs[axis_name])
        if len(values) < 2:
            faults.add("VG004", "values", wanted="hold two tensors or more", got=len(values))
        has_rank(call, axis_name, 0, faults)
        shape = joined(call, values, axis, ("values", axis_name), faults)
        if faults:
            return None
        parts = [elements(spec) for spec in values]
        flat = shape is not None and len(shape) == 1 and None not in parts
        value = tuple(one for part in parts for one in part or ()) if flat else None
        return specs(call, shape, value=value)

    return infer


def _concat_pieces(build: Any, values: Sequence[Any], axis: Any, dy: Any) -> list[Any]:
    sizes = build.ShapeN(list(values))
    at = build.FloorMod(build.Cast(axis, DstT=dtypes.INT32), build.Rank(values[0]))
    offsets = build.ConcatOffset(at, list(sizes))
    return [build.Slice(dy, offset, size) for offset, size in zip(offsets, sizes, strict=True)]


def _concat_v2_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    values, axis = node.inputs
    return _concat_pieces(build, values, axis, dys[0]), None


def _concat_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    axis, values = node.inputs
    return None, _concat_pieces(build, values, axis, dys[0])


def _offset_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    given, axis = call.inputs["shape"], scalar_value(call.inputs["concat_dim"])
    shapes = [elements(spec) for spec in given]
    if len(given) < 2:
        faults.add("VG004", "shape", wanted="hold two shapes or more", got=len(given))
    for index, spec in enumerate(given):
        if spec.shape is not None and len(spec.shape) != 1:
            faults.add("VG010", f"shape[{index}]", wanted="be a vector of sizes", got=f"shape {text(spec.shape)}")
    if faults:
        return None
    lengths = {length(spec) for spec in given} - {None}
    if len(lengths) > 1 or (known(axis) and lengths and not -min(lengths) <= axis < min(lengths)):
        faults.add("VG012", "shape", wanted=f"hold shapes of one rank that have axis {axis}", got=text(sorted(lengths)))
        return None
    if axis is None or None in shapes or not all(known(axis) and shape for shape in shapes):
        return (tuple(Spec(spec.dtype, spec.shape) for spec in given),)
    made, at = [], 0
    for index, (spec, shape) in enumerate(zip(given, shapes, strict=True)):
        assert shape is not None and shapes[0] is not None
        _check_beside(index, shape, shapes[0], axis % len(shape), faults)
        made.append(Spec(spec.dtype, spec.shape, tuple(at if i == axis % len(shape) else 0 for i in range(len(shape)))))
        at = at + shape[axis]
    return None if faults else (tuple(made),)


def _check_beside(index: int, shape: Shape, first: Shape, axis: int, faults: Faults) -> None:
    """Note a part that differs from the first one beside the axis along which they are joined."""
    if any(differ(a, b) for at, (a, b) in enumerate(zip(shape, first, strict=True)) if at != axis):
        wanted = f"have the sizes of shape[0], {text(first)}, beside axis {axis}"
        faults.add("VG012", f"shape[{index}]", wanted=wanted, got=text(shape))


def _split_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    shape, axis, count = call.inputs["value"].shape, scalar_value(call.inputs["axis"]), call.attrs.get("num_split")
    if count is None or count < 1:
        faults.add("VG003", "num_split", wanted="be at least 1", got=count)
        return None
    dtype = call.inputs["value"].dtype
    if shape is None or axis is None:
        return ((Spec(dtype, None if shape is None else unknowns(call, len(shape), "size")),) * count,)
    at = axis_in(call, "axis", axis, len(shape), faults)
    if at is not None and known(shape[at]) and shape[at] % count:
        faults.add("VG012", "value", wanted=f"divide into {count} parts along axis {at}", got=text(shape))
    if faults or at is None:
        return None
    return ((Spec(dtype, tuple(size // count if i == at else size for i, size in enumerate(shape))),) * count,)


def _split_v_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    shape, axis = call.inputs["value"].shape, scalar_value(call.inputs["axis"])
    sizes, count = elements(call.inputs["size_splits"]), call.attrs.get("num_split")
    if count is None or count < 1 or (sizes is not None and len(sizes) != count):
        faults.add("VG004", "size_splits", wanted=f"have num_split = {count} entries", got=text(sizes or ()))
        return None
    dtype = call.inputs["value"].dtype
    if shape is None or axis is None or sizes is None:
        return ((Spec(dtype, None if shape is None else unknowns(call, len(shape), "size")),) * count,)
    at = axis_in(call, "axis", axis, len(shape), faults)
    if at is None:
        return None
    stated = sum(size for size in sizes if size != -1)
    if any(known(size) and size < -1 for size in sizes):
        faults.add("VG003", "size_splits", wanted="be sizes, or -1 for what is left", got=text(sizes))
        return None
    if sizes == (-1,):
        # TensorFlow compares a single size with the axis before it works out what -1 stands for.
        faults.add("VG003", "size_splits", wanted="state the size of a single part", got=-1)
        return None
    if sizes.count(-1) > 1 or (known(shape[at]) and (stated > shape[at] or (-1 not in sizes and stated != shape[at]))):
        faults.add("VG012", "size_splits", wanted=f"add up to the {shape[at]} cells of axis {at}", got=text(sizes))
        return None
    parts = [shape[at] - stated if size == -1 else size for size in sizes]
    return (tuple(Spec(dtype, tuple(part if i == at else size for i, size in enumerate(shape))) for part in parts),)


def _filled(build: Any, node: Node, dys: Any) -> list[Any]:
    """The gradients of a list of outputs, zeros for those that nothing depends on."""
    return [build.ZerosLike(y) if dy is None else dy for y, dy in zip(node.outputs[0], dys, strict=True)]


def _split_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    parts = _filled(build, node, dys[0])
    return None, parts[0] if len(parts) == 1 else build.ConcatV2(parts, node.inputs[0])


def _split_v_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    parts = _filled(build, node, dys[0])
    return parts[0] if len(parts) == 1 else build.ConcatV2(parts, node.inputs[2]), None, None


def _pack_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    values, axis = call.inputs["values"], call.attrs.get("axis", 0)
    shape: Shape | None = None
    for index, spec in enumerate(values):
        check_same(f"values[{index}]", spec.shape, shape, "the shape of values[0]", faults)
        shape = merged(shape, spec.shape)
    if not values:
        faults.add("VG004", "values", wanted="hold one tensor or more", got=0)
    if faults or shape is None:
        return None if faults else specs(call, None)
    at = axis_in(call, "axis", axis, len(shape) + 1, faults)
    if at is None:
        return None
    parts = [elements(spec) for spec in values]
    value: Any = None
    if len(shape) < 2 and None not in parts:
        told = [part or () for part in parts]
        value = tuple(one for row in (told if at == 0 else zip(*told, strict=True)) for one in row)
    return specs(call, (*shape[:at], len(values), *shape[at:]), value=value)


def _unpack_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    spec, count, axis = call.inputs["value"], call.attrs.get("num"), call.attrs.get("axis", 0)
    if count is None or count < 0:
        faults.add("VG003", "num", wanted="be 0 or more", got=count)
        return None
    if spec.shape is None:
        return ((Spec(spec.dtype),) * count,)
    at = axis_in(call, "axis", axis, len(spec.shape), faults)
    if at is not None and differ(spec.shape[at], count):
        faults.add("VG012", "num", wanted=f"be the {spec.shape[at]} cells of axis {at}", got=count)
    if faults or at is None:
        return None
    rest = tuple(size for index, size in enumerate(spec.shape) if index != at)
    values = elements(spec) if len(spec.shape) == 1 else None
    return (tuple(Spec(spec.dtype, rest, None if values is None else (values[i],)) for i in range(count)),)


def _unpack_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.Pack(_filled(build, node, dys[0]), axis=node.attrs["axis"]),)


def _pack_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    parts = build.Unpack(dys[0], num=len(node.inputs[0]), axis=node.attrs["axis"])
    return (list(parts),)


def _tile_rule(call: Call, faults: Faults) -> Shape | None:
    shape, times = call.inputs["input"].shape, elements(call.inputs["multiples"])
    if shape is None or times is None:
        return None if shape is None else unknowns(call, len(shape), "size")
    if len(times) != len(shape) or any(known(one) and one < 0 for one in times):
        faults.add("VG004", "multiples", wanted=f"hold {len(shape)} counts, none negative", got=text(times))
        return None
    return tuple(size * count for size, count in zip(shape, times, strict=True))


def _tile_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, multiples = node.inputs
    shape = build.Shape(x, out_type=_index_type(multiples))
    # [m0, d0, m1, d1, ...]: the copies stand side by side in the even places.
    split = build.Reshape(build.Transpose(build.Pack([multiples, shape]), [1, 0]), [-1])
    axes = build.Range(0, build.Size(split), 2)
    return build.Reshape(build.Sum(build.Reshape(dys[0], split), axes), shape), None


def _reverse_rule(call: Call, faults: Faults) -> Shape | None:
    shape: Shape | None = call.inputs["tensor"].shape
    axes = elements(call.inputs["axis"])
    if shape is not None and axes is not None:
        found = [axis_in(call, "axis", axis, len(shape), faults) for axis in axes]
        if len(set(found)) < len(found) and None not in found:
            faults.add("VG003", "axis", wanted="name no axis twice", got=text(axes))
    return shape


def _sequence_rule(call: Call, faults: Faults) -> Shape | None:
    shape: Shape | None = call.inputs["input"].shape
    lengths = call.inputs["seq_lengths"].shape
    has_rank(call, "seq_lengths", 1, faults)
    seq, batch = call.attrs.get("seq_dim", 0), call.attrs.get("batch_dim", 0)
    if shape is not None:
        for name, axis in (("seq_dim", seq), ("batch_dim", batch)):
            if not 0 <= axis < len(shape) or seq == batch:
                faults.add("VG003", name, wanted=f"be in [0, {len(shape)}) and differ from the other", got=axis)
        if not faults and lengths is not None and differ(lengths[0], shape[batch]):
            faults.add("VG012", "seq_lengths", wanted=f"have {shape[batch]} entries", got=text(lengths))
    return shape


def _gather_v2_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    params, indices, axis = call.inputs["params"], call.inputs["indices"], scalar_value(call.inputs["axis"])
    batch = call.attrs.get("batch_dims", 0)
    has_rank(call, "axis", 0, faults)
    if params.shape is None or indices.shape is None or axis is None or faults:
        return None if faults else specs(call, None)
    at = axis_in(call, "axis", axis, len(params.shape), faults)
    lead = batch + len(indices.shape) if batch < 0 else batch
    if at is None or not 0 <= lead <= len(indices.shape) or lead > at:
        faults.add("VG003", "batch_dims", wanted="be at most axis and the rank of indices", got=batch)
        return None
    check_same("indices", tuple(indices.shape[:lead]), tuple(params.shape[:lead]), "the batch sizes of params", faults)
    _check_indices(indices, params.shape[at], faults)
    shape = (*params.shape[:at], *indices.shape[lead:], *params.shape[at + 1 :])
    return None if faults else specs(call, shape, value=_gathered(params, indices))


def _gathered(params: Spec, indices: Spec) -> Any:
    values, chosen = elements(params), elements(indices)
    if values is None or chosen is None or params.shape is None or len(params.shape) != 1 or not all_known(chosen):
        return None
    return tuple(values[index] for index in chosen)


def _check_indices(indices: Spec, size: Any, faults: Faults) -> None:
    chosen = elements(indices)
    if chosen is not None and known(size):
        bad = [index for index in chosen if known(index) and not 0 <= index < size]
        if bad:
            faults.add("VG043", "indices", wanted=f"be in [0, {size})", got=bad[0])


def _gather_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    params, indices = call.inputs["params"], call.inputs["indices"]
    if not has_rank(call, "params", 1, faults, at_least=True) or indices.shape is None:
        return None if faults else specs(call, None)
    _check_indices(indices, params.shape[0], faults)
    return None if faults else specs(call, (*indices.shape, *params.shape[1:]))


def _gather_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return _gather_params(build, node, dys[0], 0, 0), None


def _gather_v2_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    batch = node.attrs["batch_dims"]
    rank = len(getattr(node.inputs[1], "shape", None) or ())
    return _gather_params(build, node, dys[0], node.inputs[2], batch + rank if batch < 0 else batch), None, None


def _gather_params(build: Any, node: Node, dy: Any, axis: Any, batch: int) -> Any:
    """Rows of dy added up by index, in [batch, outer, n, inner] form.

    params is [B, Q, n, I] and dy [B, Q, M, I]; with the batch in front of every index, one segment sum does it all.
    """
    params, indices = node.inputs[:2]
    shape, rank = build.Shape(params), build.Rank(params)
    at = build.Reshape(build.FloorMod(build.Cast(axis, DstT=dtypes.INT32), rank), [1])
    behind = build.AddV2(at, 1)
    lots, outer, inner = (
        build.Prod(build.StridedSlice(shape, first, last, [1], end_mask=mask), [0])
        for first, last, mask in (([0], [batch], 0), ([batch], at, 0), (behind, [0], 1))
    )
    n = build.Reshape(build.StridedSlice(shape, at, behind, [1]), [])
    chosen = build.Reshape(build.Cast(indices, DstT=dtypes.INT32), build.Pack([lots, -1]))
    each = build.Shape(chosen)
    count = build.StridedSlice(each, [1], [2], [1], shrink_axis_mask=1)
    moved = build.Transpose(build.Reshape(dy, build.Pack([lots, outer, count, inner])), [0, 2, 1, 3])
    ids = build.AddV2(chosen, build.Mul(build.ExpandDims(build.Range(0, lots, 1), 1), n))
    rows = build.Reshape(moved, build.Pack([build.Mul(lots, count), outer, inner]))
    total = build.UnsortedSegmentSum(rows, build.Reshape(ids, [-1]), build.Mul(lots, n))
    spread = build.Transpose(build.Reshape(total, build.Pack([lots, n, outer, inner])), [0, 2, 1, 3])
    return build.Reshape(spread, shape)


def _gather_nd_rule(call: Call, faults: Faults) -> Shape | None:
    has_rank(call, "params", 1, faults, at_least=True)
    has_rank(call, "indices", 1, faults, at_least=True)
    params, indices = call.inputs["params"].shape, call.inputs["indices"].shape
    if params is None or indices is None or not indices or not known(indices[-1]):
        return None
    if indices[-1] > len(params):
        faults.add("VG012", "indices", wanted=f"have a last size of at most {len(params)}", got=text(indices))
        return None
    if 0 in params and all_known(indices) and 0 not in indices[:-1]:
        faults.add("VG012", "params", wanted="hold something to gather", got=text(params))
        return None
    return (*indices[:-1], *params[indices[-1] :])


def _scatter_nd_rule(call: Call, faults: Faults) -> Shape | None:
    shape = stated_shape(call, "shape", faults)
    check_updates(call, shape, faults)
    return shape


def _tensor_scatter_rule(name: str) -> Any:
    def rule(call: Call, faults: Faults) -> Shape | None:
        shape: Shape | None = call.inputs[name].shape
        check_updates(call, shape, faults)
        return shape

    return rule


def _one_hot_rule(call: Call, faults: Faults) -> Shape | None:
    shape, depth, axis = call.inputs["indices"].shape, scalar_value(call.inputs["depth"]), call.attrs.get("axis", -1)
    for name in ("depth", "on_value", "off_value"):
        has_rank(call, name, 0, faults)
    if known(depth) and depth < 0:
        faults.add("VG003", "depth", wanted="be 0 or more", got=depth)
    if shape is None:
        return None
    if not -1 <= axis <= len(shape):
        faults.add("VG003", "axis", wanted=f"be in [-1, {len(shape)}]", got=axis)
        return None
    at = len(shape) if axis == -1 else axis
    return (*shape[:at], unknown(call, "depth") if depth is None else depth, *shape[at:])


def _where_rule(call: Call, faults: Faults) -> Shape | None:
    has_rank(call, "condition", 1, faults, at_least=True)
    shape = call.inputs["condition"].shape
    return (unknown(call, "found"), unknown(call, "rank") if shape is None else len(shape))


def _unique_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "x", 1, faults)
    found = (unknown(call, "unique"),)
    shapes = (found, call.inputs["x"].shape, found)[: len(call.op.outputs)]
    return None if faults else specs(call, *shapes)


def _list_diff_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    for name in ("x", "y"):
        has_rank(call, name, 1, faults)
    left, right = (elements(call.inputs[name]) for name in ("x", "y"))
    if faults:
        return None
    if left is None or right is None or not all_known((*left, *right)):
        rest = (unknown(call, "rest"),)
        return specs(call, rest, rest)
    kept = [index for index, value in enumerate(left) if value not in right]
    values = tuple(left[index] for index in kept)
    first, second = specs(call, (len(kept),), (len(kept),))
    return Spec(first.dtype, first.shape, values), Spec(second.dtype, second.shape, tuple(kept))


def _range_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    names = ("start", "limit", "delta")
    for name in names:
        has_rank(call, name, 0, faults)
    start, limit, delta = (scalar_value(call.inputs[name]) for name in names)
    if delta == 0:
        faults.add("VG003", "delta", wanted="not be 0", got=0)
    if faults:
        return None
    if not all(isinstance(one, int) for one in (start, limit, delta)):
        counted = start == 0 and delta == 1 and limit is not None
        return specs(call, (limit if counted and not isinstance(limit, float) else unknown(call, "steps"),))
    if (limit - start) * delta < 0:
        faults.add("VG003", "limit", wanted=f"lie on the side of start {start} to which delta {delta} leads", got=limit)
        return None
    values = range(start, limit, delta)
    small = len(values) <= 64 and call.inputs["start"].dtype in dtypes.INDEX
    return specs(call, (len(values),), value=tuple(values) if small else None)


def _lin_space_rule(call: Call, faults: Faults) -> Shape | None:
    for name in ("start", "stop", "num"):
        has_rank(call, name, 0, faults)
    count = scalar_value(call.inputs["num"])
    if known(count) and count < 1:
        faults.add("VG003", "num", wanted="be at least 1", got=count)
    return (unknown(call, "num") if count is None else count,)


def _lin_space_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    first, last = (build.Cast(end, DstT=getattr(dys[0], "dtype", dtypes.FLOAT32)) for end in (0, 1))
    share = build.LinSpace(first, last, node.inputs[2])
    to_stop = build.Sum(build.Mul(dys[0], share), [0])
    return build.Sub(build.Sum(dys[0], [0]), to_stop), to_stop, None


def _partition_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    data, parts, count = call.inputs["data"], call.inputs["partitions"].shape, call.attrs.get("num_partitions")
    if count is None or count < 1:
        faults.add("VG003", "num_partitions", wanted="be at least 1", got=count)
        return None
    if data.shape is None or parts is None:
        return ((Spec(data.dtype),) * count,)
    check_same("partitions", parts, tuple(data.shape[: len(parts)]), "the first sizes of data", faults)
    rest = data.shape[len(parts) :]
    made = tuple(Spec(data.dtype, (unknown(call, f"part{index}"), *rest)) for index in range(count))
    return None if faults else (made,)


def _partition_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    data, parts = node.inputs
    shape = build.Shape(parts)
    places = build.Reshape(build.Range(0, build.Size(parts), 1), shape)
    order = build.DynamicPartition(places, parts, num_partitions=node.attrs["num_partitions"])
    whole = build.DynamicStitch(list(order), _filled(build, node, dys[0]))
    return build.Reshape(whole, build.Shape(data)), None


def _stitch_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    places, data = call.inputs["indices"], call.inputs["data"]
    if len(places) != len(data) or not places:
        faults.add("VG004", "data", wanted=f"have one tensor for each of {len(places)} indices", got=len(data))
        return None
    rest: Shape | None = None
    if len(places) != len(data):
        faults.add("VG004", "data", wanted=f"have {len(places)} entries, as indices", got=len(data))
        return None
    for index, (where, spec) in enumerate(zip(places, data, strict=True)):
        if where.shape is None or spec.shape is None:
            continue
        check_same(
            f"data[{index}]",
            tuple(spec.shape[: len(where.shape)]),
            where.shape,
            "the first sizes of its indices",
            faults,
        )
        tail = tuple(spec.shape[len(where.shape) :])
        check_same(f"data[{index}]", tail, rest, "rows of one shape", faults)
        rest = merged(rest, tail)
    known_places = [elements(spec) for spec in places]
    if faults or rest is None:
        return None if faults else specs(call, None)
    if None in known_places or not all(all_known(one) for one in known_places):
        return specs(call, (unknown(call, "rows"), *rest))
    rows = max((place for one in known_places for place in one or ()), default=-1) + 1
    return specs(call, (rows, *rest), value=_stitched(known_places, data, rows) if rest == () else None)


def _stitched(places: Sequence[Any], data: Sequence[Spec], rows: int) -> Any:
    parts = [elements(spec) for spec in data]
    if None in parts:
        return None
    made: list[Any] = [None] * rows
    for where, part in zip(places, parts, strict=True):
        for place, value in zip(where, part or (), strict=True):
            made[place] = value
    return None if None in made else tuple(made)


def _stitch_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    places = node.inputs[0]
    return [None] * len(places), [build.GatherV2(dys[0], one, 0) for one in places]


_INDEX_LAW = Law("range", "An index outside is an error.")
_LIST = Input("values", "T", "The tensors.", many=True)
_POLICY = Attr("bad_indices_policy", "string", "What a position outside does; here always an error.", "",
               choices=("", "DEFAULT", "ERROR"))  # fmt: skip
_GATHER_TYPES = (dtypes.INT16, *dtypes.INDEX)
_REVERSIBLE = tuple(dtype for dtype in dtypes.ALL if dtype is not dtypes.RESOURCE)
_MASK_DOCS = {
    "begin_mask": "Bit i: begin[i] is ignored; the slice starts at the end that it comes from.",
    "end_mask": "Bit i: end[i] is ignored; the slice goes as far as it can.",
    "ellipsis_mask": "Bit i: entry i stands for all dimensions that are not named.",
    "new_axis_mask": "Bit i: entry i makes a new dimension of size 1.",
    "shrink_axis_mask": "Bit i: entry i takes one cell and drops the dimension.",
}
_MASK_ATTRS = tuple(Attr(name, "int", _MASK_DOCS[name], 0) for name in MASKS)


def _bounds(indices: str) -> tuple[Input, ...]:
    return (
        Input("begin", indices, "The first cell of each dimension; negative counts from the end.", "[n]", host=True),
        Input("end", indices, "The cell behind the last one.", "[n]", host=True),
        Input("strides", indices, "The steps; negative goes backwards.", "[n]", host=True),
    )


_PADDINGS = Input("paddings", "Tpaddings", "Cells before and after each dimension.", "[rank, 2]", host=True)
_PAD_TYPES = {"T": dtypes.ALL, "Tpaddings": dtypes.INDEX}
_PAD_DEFAULT = {"Tpaddings": dtypes.INT32}
MODE = Attr(
    "mode", "string", "REFLECT mirrors without the edge cell, SYMMETRIC with it.", choices=("REFLECT", "SYMMETRIC")
)


def _mirror_gradient(name: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        return getattr(build, name)(dys[0], node.inputs[1], mode=node.attrs["mode"]), None

    return gradient


CUT = (
    Op("Slice", "array", "A box of a tensor.",
       (Input("input", "T", "The tensor."), Input("begin", "Index", "The first cell of each dimension.", "[rank]",
                                                  host=True),
        Input("size", "Index", "Cells of each dimension; -1 for all that follow.", "[rank]", host=True)),
       outputs=(Output("output", "T", "The box.", "size"),), types={"T": dtypes.ALL, "Index": dtypes.INDEX},
       infer=shaped(_slice_rule), kernel="slicing.slice", gradient=_slice_gradient, linear_in=("input",),
       follows=sliced, lies=boxed, moves=True, laws=(Law("range", "The box lies inside the tensor."),)),
    Op("StridedSlice", "array", "Python's x[begin:end:stride, ..., None, i], written as numbers and bit masks.",
       (Input("input", "T", "The tensor."), *_bounds("Index")), _MASK_ATTRS, (Output("output", "T", "The slice."),),
       {"T": dtypes.ALL, "Index": (dtypes.INT16, *dtypes.INDEX)}, infer=_strided_infer, kernel="slicing.strided_slice",
       gradient=_strided_gradient, linear_in=("input",), lies=strided, moves=True,
       laws=(Law("range", "Bounds outside are moved to the edge, as in Python; a shrunk index must exist."),)),
    Op("StridedSliceGrad", "array", "Gradient of StridedSlice: dy at the cells of the slice, zeros elsewhere.",
       (Input("shape", "Index", "The shape of the sliced tensor.", "[rank]", host=True), *_bounds("Index"),
        Input("dy", "T", "The gradient with respect to the slice.")), _MASK_ATTRS,
       (Output("output", "T", "The gradient with respect to the tensor.", "shape"),),
       {"T": dtypes.ALL, "Index": dtypes.INDEX}, infer=shaped(_strided_grad_rule), kernel="slicing.strided_slice_grad",
       gradient=_strided_grad_gradient, linear_in=("dy",), lies=strided_back),
    Op("StridedSliceAssign", "array", "Give the cells of a StridedSlice of a variable other values.",
       (Input("ref", "T", "The variable.", ref=True), *_bounds("Index"),
        Input("value", "T", "The values, like the slice.")), _MASK_ATTRS,
       (Output("output_ref", "T", "The variable, after the change.", "shape of ref", ref=True),),
       {"T": dtypes.ALL, "Index": dtypes.INDEX}, infer=_strided_assign_infer, kernel="slicing.strided_assign",
       stateful=True),
    Op("ResourceStridedSliceAssign", "array", "The same for the variable behind a handle.",
       (Input("ref", dtypes.RESOURCE, "The handle of the variable."), *_bounds("Index"),
        Input("value", "T", "The values, like the slice.")), _MASK_ATTRS, types={"T": dtypes.ALL,
        "Index": dtypes.INDEX}, infer=lambda call, faults: (), kernel="slicing.strided_assign_handle", stateful=True),
    Op("Split", "array", "A tensor in equal parts.",
       (Input("axis", dtypes.INT32, "The axis to split.", "[]", host=True), Input("value", "T", "The tensor.")),
       (Attr("num_split", "int", "How many parts."),),
       (Output("output", "T", "The parts.", many=True, count="num_split"),), ANY, infer=_split_infer,
       kernel="slicing.split", gradient=_split_gradient, linear_in=("value",), follows=without("axis"),
       lies=split_along, moves=True),
    Op("SplitV", "array", "A tensor in parts of stated sizes.",
       (Input("value", "T", "The tensor."), Input("size_splits", "Tlen", "The sizes; one may be -1.", "[parts]",
                                                  host=True),
        Input("axis", dtypes.INT32, "The axis to split.", "[]", host=True)),
       (Attr("num_split", "int", "How many parts."),),
       (Output("output", "T", "The parts.", many=True, count="num_split"),),
       {"T": dtypes.ALL, "Tlen": (dtypes.INT8, *dtypes.INDEX)}, {"Tlen": dtypes.INT64}, infer=_split_v_infer,
       kernel="slicing.split_v", gradient=_split_v_gradient, linear_in=("value",), follows=without("axis"),
       lies=split_along, moves=True),
    Op("Unpack", "array", "The slices of a tensor along an axis, each without it.",
       (Input("value", "T", "The tensor."),),
       (Attr("num", "int", "How many slices."), Attr("axis", "int", "The axis.", 0)),
       (Output("output", "T", "The slices.", many=True, count="num"),), ANY, infer=_unpack_infer,
       kernel="slicing.unpack", gradient=_unpack_gradient, aliases=("Unstack",), linear_in=("value",),
       lies=unpacked_along, moves=True),
)  # fmt: skip

JOINED = (
    Op("Concat", "array", "Tensors one behind the other along an axis; the older form of ConcatV2.",
       (Input("concat_dim", dtypes.INT32, "The axis.", "[]", host=True), _LIST),
       outputs=(Output("output", "T", "The joined tensor."),), types=ANY, infer=_concat_infer("concat_dim"),
       kernel="slicing.concat", gradient=_concat_gradient, follows=without("concat_dim"),
       lies=joined_along("concat_dim"), moves=True),
    Op("ConcatV2", "array", "Tensors one behind the other along an axis.",
       (_LIST, Input("axis", "Tidx", "The axis, in [-rank, rank).", "[]", host=True)),
       outputs=(Output("output", "T", "The joined tensor."),), types={"T": dtypes.ALL, "Tidx": dtypes.INDEX},
       type_defaults={"Tidx": dtypes.INT32}, infer=_concat_infer("axis"), kernel="slicing.concat_v2",
       gradient=_concat_v2_gradient, follows=without("axis"), lies=joined_along("axis"), moves=True),
    Op("ConcatOffset", "array", "Where each part of a joined tensor begins.",
       (Input("concat_dim", dtypes.INT32, "The axis.", "[]", host=True),
        Input("shape", "shape_type", "The shapes of the parts.", "[rank]", host=True, many=True)),
       outputs=(Output("offset", "shape_type", "The first cell of each part.", many=True, count="shape"),),
       types={"shape_type": dtypes.INDEX}, type_defaults={"shape_type": dtypes.INT32}, infer=_offset_infer,
       kernel="slicing.concat_offset", gradient=nothing),
    Op("Pack", "array", "Tensors of one shape, side by side along a new axis.", (_LIST,),
       (Attr("axis", "int", "Where the new axis goes.", 0),), (Output("output", "T", "The packed tensor."),), ANY,
       infer=_pack_infer, kernel="slicing.pack", gradient=_pack_gradient, aliases=("Stack",),
       follows=packed, lies=packed_along),
    Op("Tile", "array", "A tensor repeated along its dimensions.",
       (Input("input", "T", "The tensor."), Input("multiples", "Tmultiples", "Copies along each dimension.", "[rank]",
                                                  host=True)),
       outputs=(Output("output", "T", "The repeated tensor."),), types={"T": dtypes.ALL, "Tmultiples": dtypes.INDEX},
       type_defaults={"Tmultiples": dtypes.INT32}, infer=shaped(_tile_rule), kernel="slicing.tile",
       gradient=_tile_gradient, linear_in=("input",), follows=tiled),
    Op("Pad", "array", "A tensor with zeros around it.", (Input("input", "T", "The tensor."), _PADDINGS),
       outputs=(Output("output", "T", "The padded tensor."),), types=_PAD_TYPES, type_defaults=_PAD_DEFAULT,
       infer=shaped(_pad_rule), kernel="slicing.pad", gradient=_pad_gradient, linear_in=("input",),
       lies=padded(1), moves=True),
    Op("PadV2", "array", "A tensor with one value around it.",
       (Input("input", "T", "The tensor."), _PADDINGS, Input("constant_values", "T", "The value.", "[]")),
       outputs=(Output("output", "T", "The padded tensor."),), types=_PAD_TYPES, type_defaults=_PAD_DEFAULT,
       infer=shaped(_pad_rule), kernel="slicing.pad", gradient=_pad_gradient, lies=padded(1), moves=True,
       fill="constant_values"),
    Op("MirrorPad", "array", "A tensor with its mirror image around it.",
       (Input("input", "T", "The tensor."), _PADDINGS),
       (MODE,), (Output("output", "T", "The padded tensor."),), _PAD_TYPES, _PAD_DEFAULT, infer=shaped(_pad_rule),
       kernel="slicing.mirror_pad", gradient=_mirror_gradient("MirrorPadGrad"), linear_in=("input",),
       follows=unpadded, lies=padded(1)),
    Op("MirrorPadGrad", "array", "Gradient of MirrorPad: every mirrored cell added back.",
       (Input("input", "T", "The gradient with respect to the padded tensor."), _PADDINGS), (MODE,),
       (Output("output", "T", "The gradient with respect to the tensor."),), _PAD_TYPES, _PAD_DEFAULT,
       infer=shaped(_unpad_rule), kernel="slicing.mirror_pad_grad", gradient=_mirror_gradient("MirrorPad"),
       linear_in=("input",), follows=unpadded, lies=padded(-1)),
    Op("ReverseV2", "array", "A tensor turned round along axes.",
       (Input("tensor", "T", "The tensor."), Input("axis", "Tidx", "The axes.", "[axes]", host=True)),
       outputs=(Output("output", "T", "The turned tensor.", "shape of tensor"),),
       types={"T": _REVERSIBLE, "Tidx": dtypes.INDEX}, type_defaults={"Tidx": dtypes.INT32},
       infer=shaped(_reverse_rule), kernel="slicing.reverse",
       gradient=lambda build, node, dys: (build.ReverseV2(dys[0], node.inputs[1]), None), aliases=("Reverse",),
       linear_in=("tensor",), lies=reversed_along, moves=True),
    Op("ReverseSequence", "array", "The first cells of each sequence, turned round.",
       (Input("input", "T", "The sequences."), Input("seq_lengths", "Tlen", "How many cells of each to turn.",
                                                     "[batch]")),
       (Attr("seq_dim", "int", "The dimension along a sequence."),
        Attr("batch_dim", "int", "The dimension of sequences.", 0)),
       (Output("output", "T", "The turned sequences.", "shape of input"),), {"T": dtypes.ALL, "Tlen": dtypes.INDEX},
       {"Tlen": dtypes.INT64}, infer=shaped(_sequence_rule), kernel="slicing.reverse_sequence",
       gradient=lambda build, node, dys: (
           build.ReverseSequence(dys[0], node.inputs[1], seq_dim=node.attrs["seq_dim"],
                                 batch_dim=node.attrs["batch_dim"]),
           None),
       linear_in=("input",)),
)  # fmt: skip


def _scatter_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return None, build.GatherNd(dys[0], node.inputs[0]), None


def _tensor_update_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    _, indices, updates = node.inputs
    kept = build.TensorScatterUpdate(dys[0], indices, build.ZerosLike(updates))
    return kept, None, build.GatherNd(dys[0], indices)


def _tensor_add_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return dys[0], None, build.GatherNd(dys[0], node.inputs[1])


_UPDATES = (Input("indices", "Tindices", "Positions.", "[..., depth]"),
            Input("updates", "T", "The values there.", "[..., shape[depth:]]"))  # fmt: skip

GATHERED = (
    Op("Gather", "array", "Rows of a tensor by index; the older form of GatherV2.",
       (Input("params", "Tparams", "The rows."), Input("indices", "Tindices", "The chosen ones.")),
       (Attr("validate_indices", "bool", "Indices are always checked here.", True),),
       (Output("output", "Tparams", "The chosen rows.", "[indices shape, ...]"),),
       {"Tparams": dtypes.ALL, "Tindices": dtypes.INDEX}, infer=_gather_infer, kernel="slicing.gather",
       gradient=_gather_gradient, laws=(_INDEX_LAW,)),
    Op("GatherV2", "array", "Slices of a tensor by index along an axis.",
       (Input("params", "Tparams", "The slices."), Input("indices", "Tindices", "The chosen ones."),
        Input("axis", "Taxis", "The axis.", "[]", host=True)),
       (Attr("batch_dims", "int", "Leading dimensions that params and indices share.", 0),),
       (Output("output", "Tparams", "The chosen slices.", "params shape with axis replaced by the shape of indices"),),
       {"Tparams": dtypes.ALL, "Tindices": _GATHER_TYPES, "Taxis": dtypes.INDEX}, infer=_gather_v2_infer,
       kernel="slicing.gather_v2", gradient=_gather_v2_gradient, laws=(_INDEX_LAW,)),
    Op("GatherNd", "array", "Slices of a tensor by position.",
       (Input("params", "Tparams", "The tensor."), Input("indices", "Tindices", "Positions.", "[..., depth]")),
       (_POLICY,),
       (Output("output", "Tparams", "The slices there.", "[..., params.shape[depth:]]"),),
       {"Tparams": dtypes.ALL, "Tindices": _GATHER_TYPES}, infer=shaped(_gather_nd_rule), kernel="slicing.gather_nd",
       gradient=lambda build, node, dys: (
           build.ScatterNd(node.inputs[1], dys[0], build.Shape(node.inputs[0], out_type=_index_type(node.inputs[1]))),
           None),
       laws=(_INDEX_LAW,)),
    Op("ScatterNd", "array", "Values at positions of a tensor of zeros; values at one position add up.",
       (*_UPDATES, Input("shape", "Tindices", "The shape of the result.", "[rank]", host=True)), (_POLICY,),
       (Output("output", "T", "The tensor.", "shape"),), {"T": dtypes.ALL, "Tindices": _GATHER_TYPES},
       infer=shaped(_scatter_nd_rule), kernel="slicing.scatter_nd", gradient=_scatter_gradient, laws=(_INDEX_LAW,),
       linear_in=("updates",)),
    Op("ScatterNdNonAliasingAdd", "array", "A tensor with values added at positions.",
       (Input("input", "T", "The tensor."), *_UPDATES), (_POLICY,),
       (Output("output", "T", "The sum.", "shape of input"),),
       {"T": (*dtypes.NUMBER, dtypes.BOOL), "Tindices": dtypes.INDEX}, infer=shaped(_tensor_scatter_rule("input")),
       lies=kept("input"), kernel="slicing.tensor_scatter_add", gradient=_tensor_add_gradient, laws=(_INDEX_LAW,)),
    Op("TensorScatterUpdate", "array", "A tensor with other values at positions.",
       (Input("tensor", "T", "The tensor."), *_UPDATES), (_POLICY,),
       (Output("output", "T", "The new tensor.", "shape of tensor"),),
       {"T": dtypes.ALL, "Tindices": (dtypes.INT16, *dtypes.INDEX, dtypes.UINT16)},
       infer=shaped(_tensor_scatter_rule("tensor")), kernel="slicing.tensor_scatter_update", lies=kept("tensor"),
       gradient=_tensor_update_gradient, laws=(_INDEX_LAW, Law("twice",
                                                               "Of two values for one position the last stays."))),
    Op("TensorScatterAdd", "array", "A tensor with values added at positions.",
       (Input("tensor", "T", "The tensor."), *_UPDATES), (_POLICY,),
       (Output("output", "T", "The sum.", "shape of tensor"),),
       {"T": dtypes.ALL, "Tindices": dtypes.INDEX}, infer=shaped(_tensor_scatter_rule("tensor")), lies=kept("tensor"),
       kernel="slicing.tensor_scatter_add", gradient=_tensor_add_gradient, laws=(_INDEX_LAW,)),
    Op("OneHot", "array", "For every index, a row with one value on and all others off.",
       (Input("indices", "TI", "The indices."), Input("depth", dtypes.INT32, "The length of the rows.", "[]",
                                                      host=True),
        Input("on_value", "T", "The value at the index.", "[]"), Input("off_value", "T", "The value elsewhere.", "[]")),
       (Attr("axis", "int", "Where the rows lie; -1 for last.", -1),),
       (Output("output", "T", "The rows.", "indices shape with depth inserted at axis"),),
       {"T": dtypes.ALL, "TI": (dtypes.UINT8, dtypes.INT8, *dtypes.INDEX)}, {"TI": dtypes.INT64},
       infer=shaped(_one_hot_rule), kernel="slicing.one_hot", gradient=nothing, lies=one_hot,
       laws=(Law("range", "An index outside gives a row that is all off."),),
       example="print(vg.raw_ops.OneHot(indices=[2, 0], depth=2, on_value=1.0, off_value=0.0))  # [[0. 0.] [1. 0.]]"),
    Op("Where", "array", "The positions of all elements that are not zero.",
       (Input("condition", "T", "Truth values or numbers."),),
       outputs=(Output("index", dtypes.INT64, "Positions, in row-major order.", "[found, rank]"),),
       types={"T": (*dtypes.NUMBER, dtypes.BOOL)}, type_defaults={"T": dtypes.BOOL}, infer=shaped(_where_rule),
       kernel="slicing.where", gradient=nothing),
)  # fmt: skip

_OUT_IDX = Attr("out_idx", "type", "The type of positions.", dtypes.INT32, choices=dtypes.INDEX)
_LISTED = {"T": dtypes.ALL, "out_idx": dtypes.INDEX}
_UNIQUE = (Output("y", "T", "Each value once, in the order of its first place.", "[unique]"),
           Output("idx", "out_idx", "For every element its place in y.", "[n]"))  # fmt: skip

LISTS = (
    Op("Unique", "array", "The different values of a vector.", (Input("x", "T", "A vector.", "[n]"),), (_OUT_IDX,),
       _UNIQUE,
       _LISTED, infer=_unique_infer, kernel="slicing.unique"),
    Op("UniqueWithCounts", "array", "The different values of a vector, and how often each occurs.",
       (Input("x", "T", "A vector.", "[n]"),), (_OUT_IDX,),
       (*_UNIQUE, Output("count", "out_idx", "How often each occurs.", "[unique]")), _LISTED, infer=_unique_infer,
       kernel="slicing.unique_with_counts"),
    Op("ListDiff", "array", "The elements of x that are not in y.",
       (Input("x", "T", "A vector.", "[n]", host=True), Input("y", "T", "A vector.", "[m]", host=True)), (_OUT_IDX,),
       (Output("out", "T", "The rest of x, in its order.", "[rest]"),
        Output("idx", "out_idx", "Their places in x.", "[rest]")),
       _LISTED, infer=_list_diff_infer, kernel="slicing.list_diff", aliases=("SetDiff1D",)),
    Op("Range", "math", "Numbers from start up to, and without, limit.",
       (Input("start", "Tidx", "The first number.", "[]", host=True),
        Input("limit", "Tidx", "Where to stop.", "[]", host=True),
        Input("delta", "Tidx", "The step.", "[]", host=True)),
       outputs=(Output("output", "Tidx", "The numbers.", "[ceil((limit - start) / delta)]"),),
       types={"Tidx": tuple(dtype for dtype in dtypes.REAL if dtype is not dtypes.UINT8)},
       type_defaults={"Tidx": dtypes.INT32}, infer=_range_infer, kernel="slicing.range", gradient=nothing),
    Op("LinSpace", "math", "Evenly spaced numbers, both ends included.",
       (Input("start", "T", "The first number.", "[]"), Input("stop", "T", "The last number.", "[]"),
        Input("num", "Tidx", "How many.", "[]", host=True)),
       outputs=(Output("output", "T", "The numbers.", "[num]"),), types={"T": dtypes.FLOATING, "Tidx": dtypes.INDEX},
       type_defaults={"Tidx": dtypes.INT32}, infer=shaped(_lin_space_rule), kernel="slicing.lin_space",
       gradient=_lin_space_gradient),
    Op("DynamicPartition", "data_flow", "Rows of a tensor sorted into several, by a number per row.",
       (Input("data", "T", "The rows."), Input("partitions", dtypes.INT32, "For every row the tensor that gets it.")),
       (Attr("num_partitions", "int", "How many tensors."),),
       (Output("outputs", "T", "The tensors.", many=True, count="num_partitions"),), ANY, infer=_partition_infer,
       kernel="slicing.dynamic_partition", gradient=_partition_gradient, laws=(_INDEX_LAW,)),
    Op("DynamicStitch", "data_flow", "Rows of several tensors put to their places in one.",
       (Input("indices", dtypes.INT32, "For every row its place.", many=True, host=True),
        Input("data", "T", "The rows.", many=True)),
       outputs=(Output("merged", "T", "The tensor: row indices[m][i] is data[m][i].", "[largest index + 1, ...]"),),
       types=ANY, infer=_stitch_infer, kernel="slicing.dynamic_stitch", gradient=_stitch_gradient,
       laws=(Law("twice", "Of two rows for one place the last stays."), Law("gaps", "Places that get no row are 0."))),
)  # fmt: skip

OPS = (*CUT, *JOINED, *GATHERED, *LISTS)
