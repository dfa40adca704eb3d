# SPDX-License-Identifier: Apache-2.0
"""What a declaration cannot say: which values of an argument go with the others. By op, by argument.

A hint draws one argument (`""`: several at once) and may ask for others. Arguments without a hint come from the
declaration alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.tensor_proto import tensor_bytes

from .draw import Draw, Shape
from .examples import EXAMPLES
from .images import IMAGES
from .patches import PATCHES
from .quantised import QUANTISED
from .rounding import ROUNDING
from .windows import WINDOWS

Hint = Callable[[Draw], Any]
HINTS: dict[str, dict[str, Hint]] = {}
INT64 = dtypes.INT64


def hint(*ops: str, **arguments: Hint) -> None:
    """Hints for arguments of ops."""
    for op in ops:
        HINTS.setdefault(op, {}).update(arguments)


def of_type(name: str, shape: Callable[[Draw], Shape], style: str = "") -> Hint:
    """An input of its declared type with a shape of its own."""
    return lambda d: d.array(d.type(d.op.input(name)), shape(d), style)


def sh(d: Draw, name: str) -> Shape:
    """The shape of an argument."""
    return tuple(np.shape(d[name]))


def _factors(d: Draw, size: int) -> list[int]:
    made, rest = [], size
    for _ in range(d.integer(0, 2)):
        fit = [k for k in range(1, rest + 1) if rest % k == 0] if rest else [0, 1, 2]
        made.append(d.pick(*fit))
        rest = rest // made[-1] if made[-1] else 0
    made.append(rest)
    d.random.shuffle(made)
    if made and d.chance(0.4):
        made[d.integer(0, len(made) - 1)] = -1
    return made


def _ones(d: Draw) -> Shape:
    return tuple(d.pick(1, 1, d.size()) for _ in range(d.integer(0, 4)))


def _grown(d: Draw) -> list[int]:
    """A shape to which the input broadcasts."""
    own = [d.pick(1, d.size()) if size == 1 else size for size in sh(d, "input")]
    return [*d.shape(0, 2), *own]


def _pair_of_shapes(d: Draw) -> dict[str, Any]:
    base = d.shape(0, 4)
    made = []
    for _ in range(2):
        kept = base[d.integer(0, len(base)) :] if d.chance(0.4) else base
        made.append(d.vector([d.pick(1, size, size) for size in kept], "T"))
    return {"s0": made[0], "s1": made[1]}


# core and array
hint("PlaceholderWithDefault", shape=lambda d: [d.pick(None, size) for size in sh(d, "input")])
hint("Const", value=lambda d: d.array(d["dtype"], d.shape()), dtype=lambda d: d.pick(*dtypes.ALL[:-1]))
hint("Reshape", shape=lambda d: d.vector(_factors(d, d["tensor"].size), "Tshape"))
hint("ExpandDims", axis=lambda d: d.number(d.axis(d["input"].ndim + 1), "Tdim").reshape(d.pick((), (), (1,))))
hint("Squeeze", input=of_type("input", _ones),
     axis=lambda d: d.random.sample([i - d.pick(0, d["input"].ndim) for i, s in enumerate(sh(d, "input")) if s == 1],
                                    d.integer(0, sum(s == 1 for s in sh(d, "input")))))  # fmt: skip
hint("Transpose", "ConjugateTranspose",
     perm=lambda d: d.vector(d.random.sample(range(d["x"].ndim), d["x"].ndim), "Tperm"))  # fmt: skip
hint("BroadcastTo", shape=lambda d: d.vector(_grown(d), "Tidx"))
hint("BroadcastArgs", "BroadcastGradientArgs", **{"": _pair_of_shapes})
hint("Fill", dims=lambda d: d.vector(d.shape(), "index_type"))
hint("InvertPermutation", x=lambda d: d.vector(d.random.sample(range(5), 5)[: d.pick(5, 5, 4)], "T"))
hint("Bitcast", input=of_type("input", lambda d: (*d.shape(0, 2), d.pick(1, 2, 2, 4, 8))))
hint("Diag", diagonal=of_type("diagonal", lambda d: d.shape(1, 2)))
hint("DiagPart", input=of_type("input", lambda d: d.shape(1, 2) * 2))
hint("MatrixBandPart", num_lower=lambda d: d.number(d.integer(-1, sh(d, "input")[-2]), "Tindex"),
     num_upper=lambda d: d.number(d.integer(-1, sh(d, "input")[-1]), "Tindex"))  # fmt: skip


def _slice(d: Draw) -> dict[str, Any]:
    shape = sh(d, "input")
    begin = [d.integer(0, size) for size in shape]
    size = [d.pick(-1, d.integer(0, total - first)) for first, total in zip(begin, shape, strict=True)]
    return {"begin": d.vector(begin, "Index"), "size": d.vector(size, "Index")}


def _bounds(d: Draw, shape: Shape) -> dict[str, Any]:
    count = d.integer(0, len(shape) + d.pick(0, 0, 1))
    sizes = [*shape, 1, 1][:count]
    kind = OPS["StridedSlice"].types["Index"]
    d.types.setdefault("Index", d.pick(*[one for one in kind if one in d.op.types["Index"]]))
    made = {
        "begin": d.vector([d.integer(-size - 1, size + 1) for size in sizes], "Index"),
        "end": d.vector([d.integer(-size - 1, size + 1) for size in sizes], "Index"),
        "strides": d.vector([d.pick(1, 1, 2, 3, -1, -2) for _ in sizes], "Index"),
    }
    bits = max(0, 2**count - 1)
    masks = {name: d.pick(0, d.integer(0, bits)) for name in ("begin_mask", "end_mask")}
    for name in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask"):
        masks[name] = d.pick(0, 0, 2 ** d.integer(0, max(0, count - 1))) if count else 0
    return made | masks


def _strided_grad(d: Draw) -> dict[str, Any]:
    import voxgrad as vg

    shape = d.shape(0, 3)
    made = _bounds(d, shape)
    try:
        cut = vg.raw_ops.StridedSlice(input=np.zeros(shape, np.float32), **made).shape
    except vg.VoxgradError:
        cut = shape
    return {**made, "shape": d.vector(shape, "Index"), "dy": d.array(d.type("T"), cut)}


hint("Slice", **{"": _slice})
hint("StridedSlice", **{"": lambda d: _bounds(d, sh(d, "input"))})
hint("StridedSliceGrad", **{"": _strided_grad})


def _divided(d: Draw) -> dict[str, Any]:
    rank, parts = d.integer(1, 3), d.integer(1, 4)
    axis = d.axis(rank)
    shape = [d.size() for _ in range(rank)]
    shape[axis] = parts * d.integer(0, 3)
    return {"num_split": parts, "axis": d.number(axis), "value": d.array(d.type("T"), shape)}


def _divided_unevenly(d: Draw) -> dict[str, Any]:
    parts = [d.integer(0, 3) for _ in range(d.integer(1, 4))]
    rank = d.integer(1, 3)
    axis = d.axis(rank)
    shape = [d.size() for _ in range(rank)]
    shape[axis] = sum(parts)
    if d.chance(0.3):
        parts[d.integer(0, len(parts) - 1)] = -1
    return {"num_split": len(parts), "axis": d.number(axis), "value": d.array(d.type("T"), shape),
            "size_splits": d.vector(parts, "Tlen")}  # fmt: skip


def _joined(axis_name: str, type_: Any) -> Hint:
    def draw(d: Draw) -> dict[str, Any]:
        rank = d.integer(1, 3)
        axis, base = d.axis(rank), [d.size() for _ in range(rank)]
        values = []
        for _ in range(d.integer(2, 3)):
            shape = list(base)
            shape[axis] = d.size()
            values.append(d.array(d.type("T"), shape))
        return {axis_name: d.number(axis, type_), "values": values}

    return draw


def _offsets(d: Draw) -> dict[str, Any]:
    rank = d.integer(1, 4)
    axis, base = d.axis(rank), [d.size() for _ in range(rank)]
    shapes = []
    for _ in range(d.integer(2, 3)):
        base = list(base)
        base[axis] = d.size()
        shapes.append(d.vector(base, "shape_type"))
    return {"concat_dim": d.number(axis), "shape": shapes}


hint("Split", **{"": _divided})
hint("SplitV", **{"": _divided_unevenly})
hint("Unpack", value=of_type("value", lambda d: d.shape(1, 3)), axis=lambda d: d.axis(d["value"].ndim),
     num=lambda d: sh(d, "value")[d["axis"]])  # fmt: skip
hint("Concat", **{"": _joined("concat_dim", dtypes.INT32)})
hint("ConcatV2", **{"": _joined("axis", "Tidx")})
hint("ConcatOffset", **{"": _offsets})
hint("Pack", axis=lambda d: d.axis(d["values"][0].ndim + 1))
hint("Tile", multiples=lambda d: d.ints(0, 3, (d["input"].ndim,), "Tmultiples"))
hint("Pad", "PadV2", paddings=lambda d: d.ints(0, 2, (d["input"].ndim, 2), "Tpaddings"))


def _mirror(d: Draw) -> Any:
    off = 1 if d["mode"] == "REFLECT" else 0
    pads = [[d.integer(0, min(2, max(0, size - off))) for _ in range(2)] for size in sh(d, "input")]
    return d.vector([p for pair in pads for p in pair], "Tpaddings").reshape(-1, 2)


def _mirror_grad(d: Draw) -> dict[str, Any]:
    rank, off = d.integer(0, 3), 1 if d["mode"] == "REFLECT" else 0
    pads = [[d.integer(0, 2), d.integer(0, 2)] for _ in range(rank)]
    shape = [max(pair) + off + sum(pair) + d.integer(0, 2) for pair in pads]
    return {"paddings": d.vector([p for pair in pads for p in pair], "Tpaddings").reshape(-1, 2),
            "input": d.array(d.type("T"), shape)}  # fmt: skip


hint("MirrorPad", paddings=_mirror)
hint("MirrorPadGrad", **{"": _mirror_grad})
hint("ReverseV2", axis=lambda d: d.vector([i - d.pick(0, d["tensor"].ndim) for i in d.random.sample(
    range(d["tensor"].ndim), d.integer(0, d["tensor"].ndim))], "Tidx"))  # fmt: skip


def _sequences(d: Draw) -> dict[str, Any]:
    shape = tuple(max(1, d.size()) for _ in range(d.integer(2, 4)))
    seq, batch = d.random.sample(range(len(shape)), 2)
    return {"input": d.array(d.type("T"), shape), "seq_dim": seq, "batch_dim": batch,
            "seq_lengths": d.ints(0, shape[seq], (shape[batch],), "Tlen")}  # fmt: skip


hint("ReverseSequence", **{"": _sequences})


def _gather(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    batch = d.integer(0, min(axis % len(shape), 2))
    ids = (*shape[:batch], *d.shape(0, 2))
    return {"params": d.array(d.type("Tparams"), shape), "axis": d.number(axis, "Taxis"),
            "batch_dims": batch - d.pick(0, 0, len(ids)) if batch else 0,
            "indices": d.ints(0, shape[axis] - 1, ids, "Tindices")}  # fmt: skip


def _target(d: Draw) -> Shape:
    """A shape to scatter into; most have cells."""
    return tuple(max(size, 1) if d.chance(0.95) else size for size in d.shape(1, 4))


def _places(d: Draw, shape: Shape) -> Any:
    depth = d.integer(0 if d.chance(0.2) else 1, len(shape))
    outer = d.shape(1, 2) if d.chance(0.7) else (d.size(),)
    columns = [d.ints(0, shape[i] - 1, (*outer, 1), "Tindices") for i in range(depth)]
    return np.concatenate(columns, axis=-1) if columns else d.ints(0, 0, (*outer, 0), "Tindices")


def _scatter(d: Draw, shape: Shape) -> dict[str, Any]:
    places = _places(d, shape)
    updates = d.array(d.type("T"), (*places.shape[:-1], *shape[places.shape[-1] :]))
    return {"indices": places, "updates": updates}


def _scatter_into(name: str) -> Hint:
    return lambda d: {name: d.array(d.type("T"), shape := _target(d)), **_scatter(d, shape)}


def _scatter_nd(d: Draw) -> dict[str, Any]:
    shape = _target(d)
    return {"shape": d.vector(shape, "Tindices"), **_scatter(d, shape)}


hint("Gather", params=of_type("params", lambda d: d.shape(1, 3)),
     indices=lambda d: d.ints(0, sh(d, "params")[0] - 1, d.shape(0, 2), "Tindices"))  # fmt: skip
hint("GatherV2", **{"": _gather})
hint("GatherNd", params=of_type("params", lambda d: d.shape(1, 3)), indices=lambda d: _places(d, sh(d, "params")))
hint("ScatterNd", **{"": _scatter_nd})
hint("TensorScatterUpdate", "TensorScatterAdd", **{"": _scatter_into("tensor")})
hint("ScatterNdNonAliasingAdd", **{"": _scatter_into("input")})
hint("OneHot", indices=lambda d: d.ints(-1, 4, d.shape(0, 3), "TI"), depth=lambda d: d.number(d.integer(0, 4)),
     axis=lambda d: d.integer(-1, d["indices"].ndim))  # fmt: skip
hint("ListDiff", x=lambda d: d.array(d.type("T"), (d.integer(0, 6),), "ties"),
     y=lambda d: d.array(d.type("T"), (d.integer(0, 4),), "ties"))  # fmt: skip
hint("Unique", "UniqueWithCounts", x=of_type("x", lambda d: (d.integer(0, 8),), "ties"))


def _range(d: Draw) -> dict[str, Any]:
    start, step, count = d.integer(-5, 5), d.pick(1, 2, 3, -1, -2), d.integer(0, 5)
    frac = d.pick(0, 0.25, 0.5) if d.type("Tidx").kind == "float" else 0
    if d.type("Tidx").kind == "uint":
        start, step = abs(start), abs(step)
    stop = start + step * count - d.pick(0, 0, step // abs(step))
    return {"start": d.number(start + frac, "Tidx"), "limit": d.number(max(0, stop) if step > 0 and
            d.type("Tidx").kind == "uint" else stop, "Tidx"), "delta": d.number(step + frac / 2, "Tidx")}  # fmt: skip


hint("Range", **{"": _range})
hint("LinSpace", num=lambda d: d.number(d.integer(1, 6), "Tidx"))


def _partition(d: Draw) -> dict[str, Any]:
    outer, count = d.shape(0, 2), d.integer(1, 4)
    return {"partitions": d.ints(0, count - 1, outer), "num_partitions": count,
            "data": d.array(d.type("T"), (*outer, *d.shape(0, 2)))}  # fmt: skip


def _stitch(d: Draw) -> dict[str, Any]:
    inner = d.shape(0, 2)
    ids = [d.ints(0, 5, d.shape(0, 2)) for _ in range(d.integer(1, 3))]
    return {"indices": ids, "data": [d.array(d.type("T"), (*one.shape, *inner)) for one in ids]}


hint("DynamicPartition", **{"": _partition})
hint("DynamicStitch", **{"": _stitch})


def _blocks(d: Draw) -> dict[str, Any]:
    block, last = d.integer(2, 3), d["data_format"] == "NHWC"
    space = [block * d.integer(0, 2), block * d.integer(1, 2)] if d.op.name == "SpaceToDepth" else [d.size(), d.size()]
    deep = d.integer(1, 2) * (block * block if d.op.name == "DepthToSpace" else 1)
    shape = (d.integer(1, 2), *space, deep) if last else (d.integer(1, 2), deep, *space)
    return {"block_size": block, "input": d.array(d.type("T"), shape)}


def _to_batch(d: Draw) -> dict[str, Any]:
    nd = d.op.name == "SpaceToBatchND"
    count, size = (d.integer(0, 3) if nd else 2), d.integer(2, 3)
    blocks = [d.integer(1, 3) for _ in range(count)] if nd else [size] * 2
    pads = [[d.integer(0, 2), d.integer(0, 2)] for _ in blocks]
    space = [b * d.integer(1, 3) - sum(p) for b, p in zip(blocks, pads, strict=True)]
    for index, value in enumerate(space):
        space[index] = value if value >= 0 else value + blocks[index] * 4
    rest = d.shape(0, 2) if nd else (d.integer(1, 2),)
    made = {"input": d.array(d.type("T"), (d.integer(1, 2), *space, *rest)),
            "paddings": d.vector([p for pair in pads for p in pair], "Tpaddings").reshape(-1, 2)}  # fmt: skip
    return made | ({"block_shape": d.vector(blocks, "Tblock_shape")} if nd else {"block_size": size})


def _from_batch(d: Draw) -> dict[str, Any]:
    nd = d.op.name == "BatchToSpaceND"
    count, size = (d.integer(0, 3) if nd else 2), d.integer(2, 3)
    blocks = [d.integer(1, 3) for _ in range(count)] if nd else [size] * 2
    space = [d.integer(1, 3) for _ in blocks]
    crops = [[d.integer(0, min(2, b * s // 2)), d.integer(0, min(1, b * s // 2))]
             for b, s in zip(blocks, space, strict=True)]  # fmt: skip
    batch = math.prod(blocks) * d.integer(1, 2)
    rest = d.shape(0, 2) if nd else (d.integer(1, 2),)
    made = {
        "input": d.array(d.type("T"), (batch, *space, *rest)),
        "crops": d.vector([p for pair in crops for p in pair], "Tcrops" if nd else "Tidx").reshape(-1, 2),
    }
    return made | ({"block_shape": d.vector(blocks, "Tblock_shape")} if nd else {"block_size": size})  # fmt: skip


hint("SpaceToDepth", "DepthToSpace", **{"": _blocks})
hint("SpaceToBatchND", "SpaceToBatch", **{"": _to_batch})
hint("BatchToSpaceND", "BatchToSpace", **{"": _from_batch})

# math
hint("Cast", DstT=lambda d: d.pick(*[one for one in dtypes.ALL if one.itemsize]))
hint("Select", condition=lambda d: d.array(dtypes.BOOL, d.pick(sh(d, "x"), sh(d, "x"), sh(d, "x")[:1], ())),
     x=of_type("x", lambda d: d.sizes.setdefault("base", d.shape())),
     y=of_type("y", lambda d: d.sizes.setdefault("base", d.shape())))  # fmt: skip
hint(
    "ClipByValue",
    t=of_type("t", lambda d: d.sizes.setdefault("base", d.shape())),
    **{name: lambda d: d.array(d.type("T"), d.pick((), sh(d, "t"))) for name in ("clip_value_min", "clip_value_max")},
)
hint("ApproximateEqual", y=of_type("y", lambda d: sh(d, "x") if d.chance(0.9) else d.shape()))
hint("Cross", a=of_type("a", lambda d: (*d.sizes.setdefault("...", d.shape(0, 2)), 3)))
_WIDE = {"T": lambda d: dtypes.COMPLEX64 if d.type("T").itemsize == 4 else dtypes.COMPLEX128}
hint("Complex", Tout=_WIDE["T"])
hint("Real", "Imag", "ComplexAbs", "Angle",
     Tout=lambda d: dtypes.FLOAT32 if d.type("T").itemsize == 8 else dtypes.FLOAT64)  # fmt: skip
hint("Pow", y=lambda d: d.array(d.type("T"), d.shape_of(d.op.input("y")),
                                "positive" if d.type("T").kind != "float" and d.chance(0.8) else ""))  # fmt: skip
for name in ("Div", "RealDiv", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod"):
    hint(
        name,
        y=lambda d: d.array(
            d.type("T"),
            d.shape_of(d.op.input("y")),
            "positive" if d.type("T").kind in ("int", "uint") and d.chance(0.7) else "",
        ),
    )
for name in ("Reciprocal", "Inv"):
    hint(name, x=lambda d: d.array(d.type("T"), d.shape(), "positive" if d.type("T").kind == "int" and
                                   d.chance(0.7) else ""))  # fmt: skip
for name in ("Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad", "Polygamma", "Zeta", "Betainc"):
    for index, item in enumerate(OPS[name].inputs):
        style = "unit" if (name, index) == ("Betainc", 2) else "positive"
        hint(name, **{item.name: lambda d, item=item, style=style: d.array(
            d.type("T"), d.shape_of(item), style if d.chance(0.7) else "")})  # fmt: skip
hint("Erfinv", "Ndtri", x=lambda d: d.array(d.type("T"), d.shape(), "unit" if d.chance(0.7) else ""))


def _product(a: str, b: str, ta: str, tb: str, types: tuple[str, str] = ("T", "T")) -> Hint:
    def draw(d: Draw) -> dict[str, Any]:
        m, k, n = d.size(), d.size(), d.size()
        left = (k, m) if d[ta] else (m, k)
        right = (n, k) if d[tb] else (k, n)
        if a == "x":
            outer = d.shape(0, 2)
            other = outer if d.op.name == "BatchMatMul" or d.chance(0.5) else tuple(d.pick(1, s) for s in outer)
            left, right = (*outer, *left), (*other, *right)
        return {a: d.array(d.type(types[0]), left), b: d.array(d.type(types[1]), right)}

    return draw


hint("MatMul", **{"": _product("a", "b", "transpose_a", "transpose_b")})
hint("BatchMatMul", "BatchMatMulV2", **{"": _product("x", "y", "adj_x", "adj_y")})


def _chosen(d: Draw) -> dict[str, Any]:
    count = d.integer(0, 5)
    ids = np.sort(d.ints(0, 3, (count,), "Tsegmentids"))
    if "data" in {item.name for item in d.op.inputs}:
        data = d.array(d.type("T"), (d.integer(1, 5), *d.shape(0, 2)))
        return {"data": data, "segment_ids": ids, "indices": d.ints(0, len(data) - 1, (count,), "Tidx")}
    rows = d.integer(1, 5)
    return {"grad": d.array(d.type("T"), (int(ids.max(initial=0)) + 1 + d.pick(0, 0, 1), *d.shape(0, 2))),
            "segment_ids": ids, "output_dim0": d.number(rows),
            "indices": d.ints(0, rows - 1, (count,), "Tidx")}  # fmt: skip


hint("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad",
     **{"": _chosen})  # fmt: skip
hint("Bincount", arr=lambda d: d.ints(0, 6, d.shape(0, 2)), size=lambda d: d.number(d.integer(0, 6)))
hint("Sum", "Prod", "Mean", "Max", "Min", "All", "Any", axis=lambda d: d.vector(
    [i - d.pick(0, d["input"].ndim) for i in d.random.sample(range(d["input"].ndim), d.integer(0, d["input"].ndim))],
    "Tidx") if d.chance(0.8) or not d["input"].ndim else d.number(d.axis(d["input"].ndim), "Tidx"))  # fmt: skip
hint("ArgMax", "ArgMin", input=of_type("input", lambda d: d.shape(1, 3)),
     dimension=lambda d: d.number(d.axis(d["input"].ndim), "Tidx"))  # fmt: skip
hint("Cumsum", "Cumprod", x=of_type("x", lambda d: d.shape(1, 3)),
     axis=lambda d: d.number(d.axis(d["x"].ndim), "Tidx"))  # fmt: skip
hint(*(f"Segment{kind}" for kind in ("Sum", "Mean", "Prod", "Max", "Min")),
     segment_ids=lambda d: np.sort(d.ints(0, 4, (d.size("n"),), "Tindices")))  # fmt: skip


def _unsorted(d: Draw) -> dict[str, Any]:
    outer, count = d.shape(0, 2), d.integer(0, 4)
    return {"segment_ids": d.ints(-1, count - 1, outer, "Tindices"), "num_segments": d.number(count, "Tnumsegments"),
            "data": d.array(d.type("T"), (*outer, *d.shape(0, 2)))}  # fmt: skip


hint(*(f"UnsortedSegment{kind}" for kind in ("Sum", "Prod", "Max", "Min")), **{"": _unsorted})

# nn
hint("SparseSoftmaxCrossEntropyWithLogits", features=of_type("features", lambda d: (d.size("rows"), d.integer(1, 4))),
     labels=lambda d: d.ints(0, sh(d, "features")[1] - 1, (d.size("rows"),), "Tlabels"))  # fmt: skip
hint("SoftmaxCrossEntropyWithLogits", labels=of_type("labels", lambda d: d.pick(
    sh(d, "features"), sh(d, "features"), (1, sh(d, "features")[1])), "unit"))  # fmt: skip


def _channels(d: Draw) -> int:
    value = d.array(d.type("T"), d.shape(2, 5))
    d.made["value"] = value
    return int(value.shape[1 if d.op.name == "BiasAdd" and d["data_format"] == "NCHW" else -1])


hint("BiasAdd", "BiasAddV1", **{"": lambda d: {"bias": d.array(d.type("T"), (_channels(d),))}})
hint("BiasAddGrad", out_backprop=of_type("out_backprop", lambda d: d.shape(2, 5)))
_LRN = {"depth_radius": lambda d: d.integer(0, 3), "bias": lambda d: d.pick(1.0, 0.5, 2.0),
        "alpha": lambda d: d.pick(1.0, 0.5, 0.1), "beta": lambda d: d.pick(0.5, 0.75, 1.0)}  # fmt: skip
hint("LRN", **_LRN)
hint("LRNGrad", **_LRN, input_image=of_type("input_image", lambda d: sh(d, "input_grads")),
     output_image=of_type("output_image", lambda d: sh(d, "input_grads")))  # fmt: skip
hint("InTopK", targets=lambda d: d.ints(0, max(0, sh(d, "predictions")[1] - 1), sh(d, "predictions")[:1], "T"))
hint("TopK", k=lambda d: d.integer(0, sh(d, "input")[-1]))
hint("TopKV2", k=lambda d: d.number(d.integer(0, sh(d, "input")[-1]), "Tk"))


def _batch_norm(d: Draw) -> dict[str, Any]:
    layout, channels = d["data_format"], d.integer(1, 4)
    rank = len(layout)
    shape = [d.integer(1, 2), *(d.integer(1, 4) for _ in range(rank - 2))]
    shape.insert(1 if layout[1] == "C" else rank - 1, channels)
    made: dict[str, Any] = {}
    for item in d.op.inputs:
        own = shape if item.name in ("x", "y_backprop") else [channels]
        style = "positive" if item.name in ("variance", "reserve_space_2") else d.pick("normal", "integers")
        made[item.name] = d.array(d.type(item), own, style)
    if "reserve_space_1" in made and d["is_training"] and d.smooth:
        # Only the statistics of x have a second derivative that means something.
        over = tuple(axis for axis in range(rank) if axis != (1 if layout[1] == "C" else rank - 1))
        wide = made["x"].astype(np.float64)
        for name, value in (("reserve_space_1", wide.mean(over)), ("reserve_space_2", wide.var(over))):
            made[name] = value.astype(made[name].dtype)
    if "mean" in made and d["is_training"] and d["exponential_avg_factor"] == 1.0:
        for name in ("mean", "variance"):
            made[name] = made[name][:0] if d.chance(0.7) else made[name]
    return made


for name in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
    hint(name, exponential_avg_factor=lambda d: d.pick(1.0, 1.0, 0.5, 0.9), epsilon=lambda d: d.pick(1e-4, 1e-2),
         **{"": _batch_norm})  # fmt: skip
    hint(name.replace("Norm", "NormGrad"), epsilon=lambda d: d.pick(1e-4, 1e-2), **{"": _batch_norm})

# sparse


def _sparse(d: Draw) -> dict[str, Any]:
    rank, count = d.integer(1, 3), d.integer(0, 4)
    shape = [d.integer(1, 4) for _ in range(rank)]
    places = sorted({tuple(d.integer(0, size - 1) for size in shape) for _ in range(count)})
    made = d.vector([i for place in places for i in place], "Tindices").reshape(len(places), rank)
    if rank == 1 and d.chance(0.4):
        made = made[:, 0]
    values = d.array(d.type("T"), d.pick((len(places),), (len(places),), ()))
    return {"sparse_indices": made, "output_shape": d.vector(shape, "Tindices"), "sparse_values": values}


def _sparse_product(d: Draw) -> dict[str, Any]:
    m, k, n, count = d.integer(1, 4), d.integer(1, 4), d.size(), d.integer(0, 5)
    shape = (k, m) if d["adjoint_a"] else (m, k)
    places = np.stack([d.ints(0, size - 1, (count,), "Tindices") for size in shape], axis=1)
    return {"a_indices": places, "a_values": d.array(d.type("T"), (count,)), "a_shape": d.vector(shape, INT64),
            "b": d.array(d.type("T"), (n, k) if d["adjoint_b"] else (k, n))}  # fmt: skip


def _entries(d: Draw) -> dict[str, Any]:
    shape, count = [d.integer(1, 4) for _ in range(d.integer(1, 3))], d.integer(0, 5)
    places = np.stack([d.ints(0, size - 1, (count,), INT64) for size in shape], axis=1)
    made: dict[str, Any] = {"input_indices": places, "input_shape": d.vector(shape, INT64)}
    if d.op.name == "SparseReorder":
        return {**made, "input_values": d.array(d.type("T"), (count,))}
    return {**made, "new_shape": d.vector(_factors(d, math.prod(shape)), INT64)}


hint("SparseToDense", **{"": _sparse})
hint("SparseTensorDenseMatMul", **{"": _sparse_product})
hint("SparseReorder", "SparseReshape", **{"": _entries})


def _entry(d: Draw, prefix: str = "", shape: Sequence[int] | None = None, name: str = "shape", index: Any = INT64,
           kind: Any = "T") -> dict[str, Any]:  # fmt: skip
    """A sparse tensor: places in order, each once, where most calls want them so."""
    shape = [d.integer(1, 4) for _ in range(d.integer(1, 3))] if shape is None else shape
    drawn = [tuple(d.integer(0, size - 1) for size in shape) for _ in range(d.integer(0, 6))] if 0 not in shape else []
    places = sorted(set(drawn)) if d.chance(0.9) else drawn
    made = d.vector([i for place in places for i in place], index).reshape(len(places), len(shape))
    values = d.array(d.type(kind) if isinstance(kind, str) else kind, (len(places),))
    return {f"{prefix}indices": made, f"{prefix}values": values, f"{prefix}{name}": d.vector(shape, index)}


def _two(d: Draw) -> dict[str, Any]:
    shape = [d.integer(1, 3) for _ in range(d.integer(1, 3))]
    made = _entry(d, "a_", shape) | _entry(d, "b_", shape)
    if d.op.name != "SparseAdd":
        return made
    real = {dtypes.COMPLEX64: dtypes.FLOAT32, dtypes.COMPLEX128: dtypes.FLOAT64}.get(d.type("T"), d.type("T"))
    return made | {"thresh": d.number(d.pick(0, 0, 1, 2), real)}


def _sum_grad(d: Draw) -> dict[str, Any]:
    shape = [d.integer(1, 3) for _ in range(d.integer(1, 2))]
    a, b = (_entry(d, "", shape)["indices"] for _ in range(2))
    total = np.array(sorted({tuple(one) for one in (*a.tolist(), *b.tolist())}), np.int64).reshape(-1, len(shape))
    total = total[[d.chance(0.8) for _ in total]]
    return {
        "a_indices": a,
        "b_indices": b,
        "sum_indices": total,
        "backprop_val_grad": d.array(d.type("T"), total.shape[:1]),
    }


def _several(d: Draw) -> dict[str, Any]:
    base = [d.integer(1, 3) for _ in range(d.integer(1, 3))]
    axis, parts = d.axis(len(base)), []
    for _ in range(d.integer(2, 3)):
        base = list(base)
        base[axis] = d.integer(1, 3)
        parts.append(_entry(d, "", base))
    return {"concat_dim": axis, "indices": [one["indices"] for one in parts], "shapes": [one["shape"] for one in parts],
            "values": [one["values"] for one in parts]}  # fmt: skip


def _parts(d: Draw) -> dict[str, Any]:
    made = _entry(d)
    axis = d.integer(0, len(made["shape"]) - 1)
    return made | {"split_dim": d.number(axis, INT64), "num_split": d.integer(1, int(made["shape"][axis]))}


def _box(d: Draw) -> dict[str, Any]:
    made = _entry(d)
    shape = made["shape"].tolist()
    start, size = ([d.integer(0, one) for one in shape] for _ in range(2))
    return made | {"start": d.vector(start, INT64), "size": d.vector(size, INT64)}


def _box_grad(d: Draw) -> dict[str, Any]:
    import voxgrad as vg

    shape = [d.integer(1, 4) for _ in range(d.integer(1, 3))]
    places = np.array(sorted({tuple(d.integer(0, size - 1) for size in shape) for _ in range(5)}), np.int64)
    start, size = ([d.integer(0, one) for one in shape] for _ in range(2))
    kept = vg.raw_ops.SparseSlice(indices=places, values=places[:, 0], shape=shape, start=start, size=size)[0]
    return {"input_indices": places, "input_start": d.vector(start, INT64), "output_indices": kept,
            "backprop_val_grad": d.array(d.type("T"), kept.shape[:1])}  # fmt: skip


def _sparse_axes(d: Draw) -> dict[str, Any]:
    made = _entry(d, "input_")
    rank = len(made["input_shape"])
    over = d.random.sample(range(rank), d.integer(0, rank))
    return made | {"reduction_axes": d.vector([axis - d.pick(0, rank) for axis in over])}


def _to_dense_shape(d: Draw) -> dict[str, Any]:
    made = _entry(d, "sp_")
    shape = made["sp_shape"].tolist()
    own = [d.pick(size, size, 1) for size in shape][d.integer(0, len(shape)) if d.chance(0.3) else 0 :]
    whole = d.type("T").kind in ("int", "uint") and d.op.name.endswith("Div")
    return made | {"dense": d.array(d.type("T"), own, "positive" if whole else "")}


def _fill_grad(d: Draw) -> dict[str, Any]:
    count = d.integer(0, 6)
    return {"grad_values": d.array(d.type("T"), (count,)),
            "reverse_index_map": d.vector(d.random.sample(range(count), d.integer(0, count)), INT64)}  # fmt: skip


def _dense_sum(d: Draw) -> dict[str, Any]:
    made = _entry(d, "a_", index="Tindices")
    return made | {"b": d.array(d.type("T"), made["a_shape"].tolist())}


def _crossed(d: Draw) -> dict[str, Any]:
    rows, out = d.integer(1, 3), d.pick(INT64, dtypes.STRING)
    sparse = [_entry(d, "", [rows, d.integer(1, 3)], kind=d.pick(INT64, dtypes.STRING)) for _ in range(d.integer(0, 2))]
    dense = [d.array(d.pick(INT64, dtypes.STRING), (rows, d.integer(1, 2))) for _ in range(d.integer(not sparse, 2))]
    return {"indices": [one["indices"] for one in sparse], "values": [one["values"] for one in sparse],
            "shapes": [one["shape"] for one in sparse], "dense_inputs": dense, "out_type": out,
            "num_buckets": d.pick(0, 7, 1000), "hash_key": d.pick(0, 5, 956888297470),
            "internal_type": INT64 if d.chance(0.9) else dtypes.STRING}  # fmt: skip


def _sparse_texts(d: Draw) -> dict[str, Any]:
    """Texts of sparse tensors, of one rank most times."""
    kind, rank = d.pick(*[one for one in d.op.types["dtype"] if one is not dtypes.RESOURCE]), d.integer(0, 3)
    rows = []
    for _ in range(d.integer(1, 4)):
        made = _entry(d, "", [d.integer(1, 4) for _ in range(rank if d.chance(0.95) else rank + 1)], kind=kind)
        if d.chance(0.05):
            made["values"] = made["values"][:-1]
        kinds = (INT64, kind if d.chance(0.95) else dtypes.FLOAT32, INT64)
        rows.append([tensor_bytes(one, type_) for one, type_ in zip(made.values(), kinds, strict=True)])
    return {"serialized_sparse": np.array(rows, object), "dtype": kind}


def _tensor_text(d: Draw) -> dict[str, Any]:
    kind = d.pick(*[one for one in d.op.types["out_type"] if one is not dtypes.RESOURCE])
    whole = tensor_bytes(d.array(kind, d.shape()), kind, listed=d.chance(0.5))
    cut = whole if d.chance(0.8) else whole[: d.integer(0, len(whole))]
    return {"serialized": np.array(cut, object), "out_type": kind}


hint("SerializeSparse", "SerializeManySparse", **{"": lambda d: _entry(d, "sparse_")})
hint("DeserializeManySparse", **{"": _sparse_texts})
hint("ParseTensor", **{"": _tensor_text})
hint("ComputeAccidentalHits", num_true=lambda d: d.size("num_true"),
     true_classes=lambda d: d.ints(-2, 6, (d.size(), d["num_true"]), INT64),
     sampled_candidates=lambda d: d.ints(-2, 6, (d.integer(0, 6),), INT64))  # fmt: skip
hint("SparseCross", **{"": _crossed})
hint("SparseMatMul", **{"": _product("a", "b", "transpose_a", "transpose_b", ("Ta", "Tb"))})
hint("StringToHashBucketStrong", key=lambda d: [d.pick(0, 5, -7, 2**40), 3])
hint("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong",
     num_buckets=lambda d: d.pick(1, 10, 2**40))  # fmt: skip
hint("StringSplit", delimiter=lambda d: d.texts(b"", b" ", b",;", b"a", b"b-", shape=()))
hint("SparseAdd", "SparseSparseMaximum", "SparseSparseMinimum", **{"": _two})
hint("SparseAddGrad", **{"": _sum_grad})
hint("SparseConcat", **{"": _several})
hint("SparseSplit", **{"": _parts})
hint("SparseSlice", **{"": _box})
hint("SparseSliceGrad", **{"": _box_grad})
hint("SparseReduceSum", "SparseReduceSumSparse", "SparseReduceMax", "SparseReduceMaxSparse", **{"": _sparse_axes})
hint("SparseSoftmax", **{"": lambda d: _entry(d, "sp_", [d.integer(1, 4) for _ in range(d.integer(2, 3))])})
hint("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv", **{"": _to_dense_shape})
hint("SparseTensorDenseAdd", **{"": _dense_sum})
hint("SparseFillEmptyRows", **{"": lambda d: _entry(d, name="dense_shape")})
hint("SparseFillEmptyRowsGrad", **{"": _fill_grad})

# texts
_NUMBERS = (b"0", b"12", b"-7", b"3.5", b"1e3", b"nan", b"-inf", b" 4 ", b"+5", b"1e-40", b"4294967295", b"-0", b".5")
hint("StringToNumber", string_tensor=lambda d: d.texts(*(_NUMBERS if d.chance(0.7) else ())))
hint("DecodeRaw", bytes=lambda d: d.texts(*d.pick((b"12345678", b"abcdefgh"), (b"0123456789abcdef",), (b"ab",), (b"",),
                                                  (b"1234", b"12345678"))))  # fmt: skip
_ROWS = (b"1,2,3", b"4,5,6", b",,", b"-1,-2,", b"NA,2,3", b'"7",8,9')
_ODD_ROWS = (*_ROWS, b"1.5,x,7", b'"a",2,"c,d"', b"1,2", b'a"b,2,3', b'"a"b,2,3', b'1,2,"3', b"1,2,3\n", b'"x""y",2,3',
             b"\n1,\r2,3", b"\xff,2,3", b'"a\nb",2,3', b'"NA",2,3', b"1,2,3,", b" 1, 2 ,3")  # fmt: skip
hint("DecodeCSV", records=lambda d: d.texts(*(_ROWS if d.chance(0.7) else _ODD_ROWS)),
     na_value=lambda d: d.pick("", "NA"), field_delim=lambda d: "," if d.chance(0.9) else ";",
     select_cols=lambda d: d.pick([], [], [0, 2], [1]),
     record_defaults=lambda d: [d.array(d.type("OUT_TYPE", fresh=True), d.pick((1,), (1,), (0,), ()), "integers")
                                for _ in range(len(d["select_cols"]) or 3)])  # fmt: skip
hint("AsString", precision=lambda d: d.pick(-1, -1, 0, 3), width=lambda d: d.pick(-1, -1, 8), fill=lambda d: d.pick(
    "", "", "0", " ", "-"), scientific=lambda d: d.chance(0.2), shortest=lambda d: d.chance(0.2))  # fmt: skip
hint("StringJoin", inputs=lambda d: [d.texts(shape=d.pick(d.sizes.setdefault("base", d.shape(0, 2)), ()))
                                     for _ in range(d.integer(1, 3))])  # fmt: skip
hint("ReduceJoin", inputs=lambda d: d.texts(shape=d.shape(0, 3)), reduction_indices=lambda d: d.vector(
    d.random.sample(range(d["inputs"].ndim), d.integer(0, d["inputs"].ndim))))  # fmt: skip


def _cut(d: Draw) -> dict[str, Any]:
    texts = d.texts(b"abcdef", b"\xc3\xa9t\xc3\xa9s!!", b"\xf0\x9f\x98\x80abcd", b"a\xffbcdef", shape=d.shape(0, 2))
    shape = d.pick(texts.shape, ())
    return {"input": texts, "pos": d.ints(-4, 3, shape, "T"), "len": d.ints(0, 4, shape, "T")}


hint("Substr", **{"": _cut})
hint("DecodeBase64", input=lambda d: d.texts(b"YWJj", b"YWI=", b"YWI", b"YQ", b"_-8", b"", *(
    (b"Y", b"+/8=") if d.chance(0.3) else ())))  # fmt: skip
hint("ShardedFilename", "ShardedFilespec", shard=lambda d: d.number(d.integer(0, 3)),
     num_shards=lambda d: d.number(d.integer(3, 9)))  # fmt: skip
hint("CheckNumerics", tensor=lambda d: d.array(d.type("T"), d.shape(), d.pick("normal", "normal", "special")),
     message=lambda d: "here")  # fmt: skip


def _edits(d: Draw) -> dict[str, Any]:
    rank, made = d.integer(2, 3), dict[str, Any]()
    for name in ("hypothesis", "truth"):
        shape = [d.integer(1, 3) for _ in range(rank - 1)] + [d.integer(1, 5)]
        places = sorted({tuple(d.integer(0, size - 1) for size in shape) for _ in range(d.integer(0, 9))})
        made |= {f"{name}_indices": np.array(places, np.int64).reshape(-1, rank),
                 f"{name}_shape": d.vector(shape, INT64),
                 f"{name}_values": d.array(d.type("T"), (len(places),), "ties")}  # fmt: skip
    return made


hint("EditDistance", **{"": _edits})
hint("ParallelConcat", values=lambda d: [d.array(d.type("T"), (1, *d.sizes.setdefault("row", d.shape(0, 2))))
                                         for _ in range(d.integer(1, 3))],
     shape=lambda d: [len(d["values"]), *d["values"][0].shape[1:]])  # fmt: skip
hint("ScalarSummary", tags=lambda d: d.texts(b"a", b"b/c", b""), values=lambda d: d.array(d.type("T"), sh(d, "tags")))
hint("HistogramSummary", tag=lambda d: d.texts(b"h", b"", shape=()), values=lambda d: d.array(
    d.type("T"), d.shape(), d.pick("normal", "wide", "integers", "")))  # fmt: skip
hint("MergeSummary", inputs=lambda d: [d.texts(
    b"", b"\n\x08\n\x01a\x15\x00\x00\x80?", b"\n\x08\n\x01b\x15\x00\x00\x80?", *((b"a", b"\n\xff") if d.chance(0.2)
                                                                                  else ()), shape=d.shape(0, 1))
                                       for _ in range(d.integer(1, 3))])  # fmt: skip
hint("TensorSummary", labels=lambda d: [])
for name, drawn in (WINDOWS | IMAGES | PATCHES | ROUNDING | QUANTISED | EXAMPLES).items():
    hint(name, **drawn)
for name in list(HINTS):
    declared = {item.name for item in OPS[name].parameters}
    HINTS[name] = {argument: one for argument, one in HINTS[name].items() if argument in declared or not argument}
