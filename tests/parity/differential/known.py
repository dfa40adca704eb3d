# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow 2.21 does differently on a CPU, and why that is its own affair: data, each with its reason.

An entry that explains nothing in a long run is stale: `python -m tests.parity.differential` says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from voxgrad.catalog.registry import OPS

Job = dict[str, Any]


def _arrays(job: Job) -> Iterator[Any]:
    for value in job["call"].values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, (np.ndarray, np.generic)) and one.dtype.name in _LIMITS:
                yield np.asarray(one)


_LIMITS = {name: ml_dtypes.finfo(name.replace("complex64", "float32").replace("complex128", "float64"))
           for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")}  # fmt: skip


def _parts(array: Any) -> Any:
    return np.stack([array.real, array.imag]).astype(np.float64) if array.dtype.kind == "c" else array.astype(float)


def extreme(job: Job) -> bool:
    """An input is infinite, NaN, or so large or small that its square leaves the type."""
    for array in _arrays(job):
        size, limit = np.abs(_parts(array)), _LIMITS[array.dtype.name]
        high, low = float(limit.max) ** 0.5, float(limit.tiny) ** 0.5
        if (~np.isfinite(size) | (size > high) | ((size < low) & (size > 0))).any():
            return True
    return False


def denormal(job: Job) -> bool:
    """An input lies between 0 and the smallest normal number."""
    return any(
        bool(((size := np.abs(_parts(array))) < float(_LIMITS[array.dtype.name].tiny))[size > 0].any())
        for array in _arrays(job)
    )


def special(job: Job) -> bool:
    """An input is infinite, NaN or near the largest number."""
    return any(
        bool((~np.isfinite(parts) | (np.abs(parts) > 0.4 * float(_LIMITS[array.dtype.name].max))).any())
        for array in _arrays(job)
        for parts in [_parts(array)]
    )


def is_complex(job: Job) -> bool:
    """An input holds complex numbers."""
    return any(array.dtype.kind == "c" for array in _arrays(job))


def empty(job: Job, ours: Any, theirs: Any) -> bool:
    """TensorFlow's result has no elements."""
    return all(np.size(one) == 0 for one in theirs.get("outputs", [1]))


def dilated(job: Job) -> bool:
    """A convolution with holes."""
    return any(one != 1 for one in job["call"].get("dilations", ()))


def other_output(job: Job, ours: Any, theirs: Any) -> bool:
    """The orig_output of a max-pool gradient is not the pool of its orig_input."""
    import voxgrad as vg

    call = job["call"]
    attrs = {attr.name: call[attr.name] for attr in OPS["MaxPool"].attrs}
    data, given = (call[name].astype(np.float64) for name in ("orig_input", "orig_output"))
    return not np.array_equal(vg.raw_ops.MaxPool(input=data, **attrs), given, equal_nan=True)


Condition = Callable[[Job, dict[str, Any], dict[str, Any]], bool]


def when(*tests: Callable[[Job], bool]) -> Condition:
    """All of these hold for the call."""
    return lambda job, ours, theirs: all(test(job) for test in tests)


ALWAYS: Condition = when()


@dataclass(frozen=True)
class Known:
    """Ops (a pattern), how a difference begins, words that it holds, a condition; the reason."""

    ops: str
    kind: str
    reason: str
    says: str = ""
    condition: Condition = ALWAYS


_ADDING = "|".join(
    name for name, op in OPS.items()
    if op.problem is not None
    or op.kernel.startswith(("windows2d", "matrix", "reductions", "sparse", "nn", "batch_norm"))
)  # fmt: skip

KNOWN = (
    # What its CPU does not have
    Known(".*", "accepted", "Its CPU kernels have one layout, no holes and no groups in gradients.",
          r"only supports? ?(the )?N|dilation rates|dilated rates|grouped convolutions|is_training=False only support"),
    Known("Conv3D.*", "accepted", "Its CPU kernels have no groups in three dimensions.",
          "must match last dimension of input|must have the same number of channels"),
    Known("Conv2DBackpropFilter", "accepted", "Its CPU kernel has no groups and does not say so.",
          "filter_size does not have enough elements"),
    Known("MaxPool3D(Grad)?", "accepted", "Its declaration leaves out float64, integers and mixed types.",
          "not in the list of allowed values|cannot compute"),
    Known("Depthwise.*Backprop.*", "accepted|value", "Its gradients take holes for none.",
          condition=when(dilated)),
    Known("ComplexAbs", "accepted", "Real, Imag and Angle have no kernel for another precision there either.",
          "Signature mismatch"),
    Known(".*", "accepted|script", "It ends its process on a check that a user cannot see.", "aborted the process"),
    # What it does not look at
    Known(".*", "refused", "It does not look at indices where nothing is copied.", "VG043|VG003", empty),
    Known("SqrtGrad|RsqrtGrad|ReciprocalGrad|InvGrad|SigmoidGrad|TanhGrad", "refused|gradient refused",
          "Its kernels broadcast, which its shape functions deny: a graph gets the shape of y.", "VG012|VG001"),
    Known("AvgPoolGrad", "refused", "It does not compare the gradient with the pool, and reads past it.",
          "VG012|VG007"),
    Known("MaxPoolGrad", "value", "It pools again instead of looking at orig_output.", condition=other_output),
    Known("DepthwiseConv2dNative.*", "accepted", "Its kernels have equal strides only.", "equal length strides"),
    Known("Depthwise.*", "refused", "It does not look at the length of dilations, nor at those of other axes.",
          "dilations"),
    Known("Depthwise.*|Conv2D.*", "refused", "A filter without taps sums nothing; Conv3D refuses it there too.",
          "VG017"),
    Known("FusedBatchNorm.*", "refused", "It does not look at statistics that it does not use.", "VG013|VG012"),
    Known("Const", "refused", "Its Python cuts fractions off before the op sees them.", "fraction|VG0"),
    Known("BroadcastArgs|BroadcastGradientArgs", "refused", "It takes a negative size for a size.", "VG0"),
    Known("SparseReshape|SparseTensorDenseMatMul", "refused", "It computes with places outside the tensor.", "inside"),
    Known("Scatter(Update|Add|Sub|Mul|Div|NdUpdate|NdAdd|NdSub)", "step s0", "It takes a scalar variable for one row.",
          "without rows"),
    Known("TensorArray.*", "script", "It does not compare the shapes of tensors without elements.", "of one shape"),
    Known("Save|Restore|SaveV2|RestoreV2", "step s ", "Not here: Save keeps numbers, no texts.", "hold numbers"),
    # Numbers
    Known("Round", "value", "It rounds integers to 0.",
          condition=lambda job, ours, theirs: np.asarray(job["call"]["x"]).dtype.kind == "i"),
    Known("Erf", "value", "Erf of an infinite or huge float64 is NaN there.", condition=when(special)),
    Known("Polygamma|Zeta|Digamma|Lgamma|Igamma|Igammac|IgammaGradA|Betainc", "value",
          "Series of special functions at the ends of the range.", condition=when(special)),
    Known("Cast", "value", "Floats that do not fit an integer: each of its vector paths gives something else.",
          condition=lambda job, ours, theirs: np.asarray(ours["outputs"][0]).dtype.kind in "iu"),
    Known(".*", "value", "Complex arithmetic at infinities and beyond the square root of the range: Eigen's formulas "
          "overflow where C's do not.", condition=when(is_complex, extreme)),
    Known(".*", "value", "A complex result that overflows: which of its parts are NaN.", condition=lambda job, ours,
          theirs: is_complex(job) and not all(np.isfinite(one).all() for one in ours["outputs"])),
    Known(".*", "value|type", "It takes numbers below the smallest normal one for 0 where a vector unit computes.",
          condition=when(denormal)),
    Known(_ADDING, "value", "Infinities and overflow: what meets first decides between infinity and NaN; its products "
          "multiply padding too.", condition=when(special)),
    Known("LRN|LRNGrad", "value", "It computes half in half, where squares of 256 overflow.",
          condition=lambda job, ours, theirs: any(array.dtype.name == "float16" for array in _arrays(job))),
    Known("ClipByValue", "value", "It clips complex numbers part by part, or by whatever its vector unit compares.",
          condition=when(is_complex)),
    Known("TopK|TopKV2", "value", "Without sorted the order is open.",
          condition=lambda job, ours, theirs: not job["call"]["sorted"]),
    Known("TopK|TopKV2", "value", "NaN is compared with others: no order.",
          condition=lambda job, ours, theirs: any(bool(np.isnan(_parts(one)).any()) for one in _arrays(job))),
    Known("FusedBatchNorm(V2|V3)?", "value", "Outside of training it leaves its reserves as they were in memory.",
          "output [345]", lambda job, ours, theirs: not job["call"]["is_training"]),
    Known("SparseSegment(Mean|SqrtN)(Grad)?", "value|first|second",
          "It leaves rows that nobody chose as they were in memory."),
    # Gradients
    Known("Cumprod|SegmentProd|UnsortedSegmentProd|Prod", "first|second", "It forgets a conjugate.",
          condition=when(is_complex)),
    Known("FusedBatchNormGrad.*", "second", "It derives through the statistics of x; here that part goes to the "
          "reserves, which carry it to x where they come from FusedBatchNorm."),
    Known("SparseToDense", "first", "The gradient of one value is a vector of one there.",
          condition=lambda job, ours, theirs: np.ndim(job["call"]["sparse_values"]) == 0),
    Known("ArgMax", "accepted", "It reads four bytes of a dimension of two.", "Expected dimension",
          lambda job, ours, theirs: np.asarray(job["call"]["dimension"]).dtype.itemsize == 2),
    Known("ShardedFilename|ShardedFilespec", "value", "Its text ends at a zero byte.",
          condition=lambda job, ours, theirs: b"\0" in job["call"]["basename"].item()),
)  # fmt: skip


def explain(job: Job, ours: dict[str, Any], theirs: dict[str, Any], found: str) -> str:
    """The reason that explains a difference; empty where none does."""
    for known in KNOWN:
        fits = re.fullmatch(known.ops, job["op"]) and re.match(known.kind, found)
        if fits and (not known.says or re.search(known.says, found)) and known.condition(job, ours, theirs):
            return _name(known)
    return ""


def stale(explained: Counter[str]) -> list[str]:
    """Entries that explained nothing."""
    return [_name(known) for known in KNOWN if not explained[_name(known)]]


def _name(known: Known) -> str:
    return f"{known.ops[:40]}: {known.reason}"
