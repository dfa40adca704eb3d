# SPDX-License-Identifier: Apache-2.0
"""Where values wait between runs. Nothing here waits itself: one thread runs a page, so what would wait never ends."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from typing import Any, TypeVar

import numpy as np

from voxgrad.catalog.dtypes import INT32, INT64
from voxgrad.kernels.arraywise.core import text_array
from voxgrad.kernels.arraywise.data_flow import fits, resource_name
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, element_type, integer, integers, moved_to, to_numpy

Entry = dict[int, Array]
Made = TypeVar("Made")


def _own(run: Run, kind: type[Made]) -> Made:
    """What this block and those of its shared name have in common, made at its first use."""
    known, name = run.context.state.resources, f"{kind.__name__}/{resource_name(run)}"
    if name not in known:
        known[name] = kind(run)  # type: ignore[call-arg]
    found: Made = known[name]
    return found


def _handle(run: Run, value: Any, kind: type[Made], what: str) -> Made:
    """The barrier or accumulator that came by a wire."""
    if not isinstance(value, kind):
        run.fail("handle", wanted=f"be {what}", got="something else", code="VG011")
    return value


def _bytes(entry: list[Array]) -> int:
    return sum(sum(map(len, to_numpy(one).flat)) if to_numpy(one).dtype == object else one.nbytes for one in entry)


class _Bounded:
    """A number of entries and of bytes that must not be passed."""

    def __init__(self, run: Run):
        self.capacity, self.limit = run.attrs["capacity"], run.attrs["memory_limit"]

    def check_room(self, run: Run, parts: list[Array], held: list[list[Array]], counted: bool = True) -> None:
        """Fail where an entry more does not fit."""
        if counted and self.capacity and len(held) >= self.capacity:
            run.fail("values", wanted="find room", got=f"a full stage of {self.capacity}", code="VG042")
        total = _bytes(parts) + sum(map(_bytes, held)) if self.limit else 0
        if total > self.limit:
            run.fail("values", wanted=f"fit into {self.limit:,} bytes with the others", got=f"{total:,}", code="VG042")


class Stage(_Bounded):
    """Entries, first in, first out."""

    def __init__(self, run: Run):
        super().__init__(run)
        self.entries: deque[list[Array]] = deque()

    def get(self, run: Run, index: int) -> list[Array]:
        """An entry, counted from the first."""
        if not 0 <= index < len(self.entries):
            run.fail("index", wanted=f"name one of {len(self.entries)} entries", got=index, code="VG042")
        return self.entries[index]


def _typed(run: Run, parts: list[Array]) -> tuple[Array, ...]:
    """Parts of an entry, of the types that the block states."""
    stated = run.attrs["dtypes"]
    types = [element_type(part) for part in parts]
    if list(stated) != types:
        run.fail("dtypes", wanted=f"be {', '.join(map(str, types))}", got=", ".join(map(str, stated)), code="VG011")
    return tuple(parts)


@kernel()
def stage(run: Run, values: list[Array]) -> tuple[()]:
    """Put an entry."""
    found = _own(run, Stage)
    found.check_room(run, values, list(found.entries))
    found.entries.append(list(values))
    return ()


@kernel()
def unstage(run: Run) -> Any:
    """Take the first entry."""
    found = _own(run, Stage)
    made = _typed(run, found.get(run, 0))
    found.entries.popleft()
    return made


@kernel()
def stage_peek(run: Run, index: Array) -> Any:
    """Look at an entry."""
    return _typed(run, _own(run, Stage).get(run, integer(index)))


@kernel()
def stage_size(run: Run) -> Array:
    """How many entries."""
    return run.make(len(_own(run, Stage).entries), INT32)


@kernel()
def stage_clear(run: Run) -> tuple[()]:
    """Remove all."""
    _own(run, Stage).entries.clear()
    return ()


class Map(_Bounded):
    """Entries by key; what lacks parts is kept apart."""

    def __init__(self, run: Run):
        super().__init__(run)
        self.parts = len(run.attrs["dtypes"])
        self.ready: dict[int, Entry] = {}
        self.incomplete: dict[int, Entry] = {}

    def put(self, run: Run, key: int, places: list[int], values: list[Array]) -> None:
        """Give an entry some of its parts."""
        if len(places) != len(values):
            run.fail("indices", wanted=f"name {len(values)} parts, as values are", got=places, code="VG012")
        if any(right <= left for left, right in itertools.pairwise(places)):
            run.fail("indices", wanted="be in order, each once", got=places)
        if any(not 0 <= place < self.parts for place in places):
            run.fail("indices", wanted=f"be in [0, {self.parts})", got=places)
        whole = len(places) == self.parts
        held = [list(entry.values()) for entry in (*self.ready.values(), *self.incomplete.values())]
        self.check_room(run, values, held[: len(self.ready)] if whole and not self.limit else held, counted=whole)
        entry = {} if whole else dict(self.incomplete.get(key, {}))
        for place, value in zip(places, values, strict=True):
            if place in entry:
                run.fail("indices", wanted=f"name parts that the entry of key {key} lacks", got=place)
            entry[place] = value
        if len(entry) < self.parts:
            self.incomplete[key] = entry
            return
        if not whole and self.capacity and len(self.ready) >= self.capacity:
            run.fail("values", wanted="find room", got=f"a full map of {self.capacity}", code="VG042")
        if not whole:
            self.incomplete.pop(key, None)
        self.ready.setdefault(key, entry)

    def get(self, run: Run, key: int, places: list[int]) -> tuple[Array, ...]:
        """Parts of a complete entry."""
        if key not in self.ready:
            run.fail("key", wanted="be that of a complete entry", got=key, code="VG042")
        entry = self.ready[key]
        if any(place not in entry for place in places):
            run.fail("indices", wanted=f"name parts that are there, of {sorted(entry)}", got=places)
        return _typed(run, [entry[place] for place in places])

    def take(self, run: Run, key: int, places: list[int]) -> tuple[Array, ...]:
        """Parts of a complete entry, which it then lacks."""
        made = self.get(run, key, places)
        left = {place: part for place, part in self.ready[key].items() if place not in places}
        if left:
            self.ready[key] = left
        else:
            del self.ready[key]
        return made


class OrderedMap(Map):
    """A map of its own under the same name."""


def _map(run: Run) -> Map:
    return _own(run, OrderedMap if run.op.name.startswith("Ordered") else Map)


@kernel()
def map_stage(run: Run, key: Array, indices: Array, values: list[Array]) -> tuple[()]:
    """Put parts."""
    _map(run).put(run, integer(key), integers(indices), list(values))
    return ()


@kernel()
def map_peek(run: Run, key: Array, indices: Array) -> Any:
    """Look at parts."""
    return _map(run).get(run, integer(key), integers(indices))


@kernel()
def map_unstage(run: Run, key: Array, indices: Array) -> Any:
    """Take parts."""
    return _map(run).take(run, integer(key), integers(indices))


@kernel()
def map_unstage_any(run: Run, indices: Array) -> Any:
    """Take parts of the entry with the lowest key."""
    found = _map(run)
    if not found.ready:
        run.fail("indices", wanted="find a complete entry", got="none", code="VG042")
    key = min(found.ready)
    return run.make(key, INT64), found.take(run, key, integers(indices))


@kernel()
def map_size(run: Run) -> Array:
    """How many complete entries."""
    return run.make(len(_map(run).ready), INT32)


@kernel()
def map_incomplete_size(run: Run) -> Array:
    """How many incomplete entries."""
    return run.make(len(_map(run).incomplete), INT32)


@kernel()
def map_clear(run: Run) -> tuple[()]:
    """Remove all."""
    found = _map(run)
    found.ready.clear()
    found.incomplete.clear()
    return ()


class Barrier:
    """Entries by key; complete ones leave in the order in which their keys first came."""

    def __init__(self, run: Run):
        self.types, self.shapes = run.attrs["component_types"], run.attrs["shapes"]
        if self.shapes and len(self.shapes) != len(self.types):
            run.fail("shapes", wanted=f"hold {len(self.types)}, as component_types", got=len(self.shapes), code="VG004")
        self.closed = self.cancelled = False
        self.count, self.completed = -(2**63), itertools.count()
        self.incomplete: dict[bytes, tuple[int, Entry]] = {}
        self.ready: list[tuple[int, int, bytes, Entry]] = []

    def check(self, run: Run, component: int, keys: Array, values: Array) -> None:
        """The values are that part of these entries."""
        if not 0 <= component < len(self.types):
            run.fail("component_index", wanted=f"be in [0, {len(self.types)})", got=component)
        if element_type(values) != self.types[component]:
            wanted = f"be of type {self.types[component]}"
            run.fail("values", wanted=wanted, got=element_type(values).name, code="VG011")
        if values.shape[0] and not math.prod(values.shape):
            run.fail("values", wanted="have elements", got=list(values.shape), code="VG012")
        if values.shape[0] != keys.shape[0]:
            run.fail("values", wanted=f"have {keys.shape[0]} rows, one per key", got=list(values.shape), code="VG012")
        if self.shapes and not fits(values.shape[1:], self.shapes[component]):
            wanted = f"have rows of shape {list(self.shapes[component])}"
            run.fail("values", wanted=wanted, got=list(values.shape[1:]), code="VG012")
        if self.cancelled:
            run.fail("handle", wanted="take entries", got="a barrier that was cancelled", code="VG042")

    def insert(self, run: Run, component: int, key: bytes, part: Array) -> None:
        """Give an entry a part."""
        if self.closed and key not in self.incomplete:
            run.fail("keys", wanted="be those of entries that a closed barrier still takes", got=key, code="VG042")
        number, entry = self.incomplete.setdefault(key, (self.count, {}))
        if component in entry:
            run.fail("keys", wanted="be those of entries that lack this part", got=key)
        entry[component] = part
        if len(entry) == len(self.types):
            del self.incomplete[key]
            heapq.heappush(self.ready, (number, next(self.completed), key, entry))


_BARRIER = "a Barrier"


@kernel()
def barrier(run: Run) -> Barrier:
    """The barrier of this block."""
    return _own(run, Barrier)


@kernel()
def barrier_insert(run: Run, handle: Any, keys: Array, values: Array) -> tuple[()]:
    """Give several entries a part."""
    found, component = _handle(run, handle, Barrier, _BARRIER), run.attrs["component_index"]
    found.check(run, component, keys, values)
    known = set(found.incomplete)
    named = to_numpy(keys).tolist()
    for row, key in enumerate(named):
        found.insert(run, component, key, values[row : row + 1])
    found.count += not known.issuperset(named)  # what came together has one number
    return ()


@kernel()
def barrier_take(run: Run, handle: Any, num_elements: Array) -> Any:
    """Take complete entries."""
    found, count = _handle(run, handle, Barrier, _BARRIER), integer(num_elements)
    if count < 0:
        run.fail("num_elements", wanted="be 0 or more", got=count, code="VG003")
    if tuple(run.attrs["component_types"]) != tuple(found.types):
        wanted = f"be {', '.join(map(str, found.types))}"
        run.fail("component_types", wanted=wanted, got=", ".join(map(str, run.attrs["component_types"])), code="VG011")
    small = run.attrs["allow_small_batch"]
    if found.closed and not found.ready and (small or not found.incomplete):
        run.fail("handle", wanted="have entries, or be open for more", got="a closed barrier without any", code="VG042")
    if len(found.ready) < count:
        if not (found.closed and small and found.ready):
            run.fail("num_elements", wanted=f"be at most {len(found.ready)}, as are ready", got=count, code="VG042")
        count = len(found.ready)
    taken = [heapq.heappop(found.ready) for _ in range(count)]
    parts = tuple(
        _stacked(run, found, place, [entry[place] for *_, entry in taken]) for place in range(len(found.types))
    )
    return run.make([number for number, *_ in taken], INT64), text_array([key for _, _, key, _ in taken]), parts


def _stacked(run: Run, found: Barrier, place: int, parts: list[Array]) -> Array:
    if not parts:
        shape = found.shapes[place] if found.shapes else ()
        return run.make(np.zeros([0, *(size or 0 for size in shape)]), found.types[place])
    if len({tuple(part.shape) for part in parts}) > 1:
        run.fail("num_elements", wanted="name entries of one shape", got="several shapes", code="VG012")
    return moved_to(np.concatenate([to_numpy(part) for part in parts]), parts[0])


@kernel()
def barrier_close(run: Run, handle: Any) -> tuple[()]:
    """No new keys."""
    found = _handle(run, handle, Barrier, _BARRIER)
    cancel = run.attrs["cancel_pending_enqueues"]
    if found.closed and (found.cancelled or not cancel):
        run.fail("handle", wanted="be open", got="a barrier that is closed already", code="VG042")
    found.closed = True
    if cancel:
        found.cancelled = True
        found.incomplete.clear()
    return ()


@kernel()
def barrier_ready_size(run: Run, handle: Any) -> Array:
    """How many are complete."""
    return run.make(len(_handle(run, handle, Barrier, _BARRIER).ready), INT32)


@kernel()
def barrier_incomplete_size(run: Run, handle: Any) -> Array:
    """How many lack parts."""
    return run.make(len(_handle(run, handle, Barrier, _BARRIER).incomplete), INT32)


class Accumulator:
    """Gathers gradients of a step; those of an older one are dropped."""

    def __init__(self, run: Run):
        self.holds, self.stated = run.attrs["dtype"], run.attrs["shape"]
        self.mean = run.attrs["reduction_type"] == "MEAN"
        self.step = self.count = 0
        self.total: Any = None

    def wants(self, run: Run, argument: str, step: int, gradient: Array) -> bool:
        """Whether a gradient is of this step; one of another type is an error."""
        if element_type(gradient) != self.holds:
            run.fail(argument, wanted=f"be of type {self.holds}", got=element_type(gradient).name, code="VG011")
        return step >= self.step

    def add(self, run: Run, gradient: Array) -> None:
        """Gather a gradient."""
        shape = tuple(gradient.shape)
        if self.stated is not None and not fits(shape, self.stated):
            run.fail("gradient", wanted=f"have the shape {list(self.stated)}", got=list(shape), code="VG012")
        if self.count and shape != tuple(self.total.shape):
            run.fail(
                "gradient", wanted=f"have the shape of others, {list(self.total.shape)}", got=list(shape), code="VG012"
            )
        self.total = self.total + gradient if self.count else gradient
        self.count += 1

    def begin_next(self, run: Run, required: int) -> Any:
        """What was gathered, and how often, if it is enough; the next step begins."""
        if required < 1:
            run.fail("num_required", wanted="be 1 or more", got=required, code="VG003")
        if run.attrs["dtype"] != self.holds:
            run.fail("dtype", wanted=f"be {self.holds}", got=run.attrs["dtype"].name, code="VG011")
        if self.count < required:
            run.fail("num_required", wanted=f"be at most {self.count}, as were gathered", got=required, code="VG042")
        total, count = self.total, self.count
        self.total, self.count, self.step = None, 0, self.step + 1
        return total, count


class SparseAccumulator(Accumulator):
    """Gathers gradients of rows, and how often each was given."""

    def add_rows(self, run: Run, rows: Array, values: Array, shape: Array | None) -> None:
        """Gather a gradient of rows."""
        self._check(run, values, None if shape is None else integers(shape))
        total: dict[int, tuple[Any, int]] = self.total or {}
        added = dict(total)
        for row, value in zip(integers(rows), to_numpy(values), strict=True):
            if row < 0 or (self.stated and self.stated[0] not in (None, -1) and row >= self.stated[0]):
                run.fail("gradient_indices", wanted="be rows of the gradient", got=row)
            before, count = added.get(row, (np.zeros_like(value), 0))
            added[row] = (before + value, count + 1)
        self.total, self.count = added, self.count + 1

    def _check(self, run: Run, values: Array, shape: list[int] | None) -> None:
        inner = [next(iter(self.total.values()))[0].shape] if self.total else []
        if shape is not None and self.stated is not None and not fits(shape, self.stated):
            run.fail("gradient_shape", wanted=f"be {list(self.stated)}", got=shape, code="VG012")
        if self.stated is not None and not fits(values.shape[1:], self.stated[1:]):
            inner = [tuple(self.stated[1:])]
        elif all(tuple(one) == tuple(values.shape[1:]) for one in inner):
            return
        run.fail(
            "gradient_values", wanted=f"have rows of shape {list(inner[0])}", got=list(values.shape[1:]), code="VG012"
        )


@kernel()
def accumulator(run: Run) -> Accumulator:
    """The accumulator of this block."""
    return _own(run, Accumulator)


@kernel()
def sparse_accumulator(run: Run) -> SparseAccumulator:
    """The accumulator of rows of this block."""
    return _own(run, SparseAccumulator)


_DENSE, _ROWS = "a ConditionalAccumulator", "a SparseConditionalAccumulator"


@kernel()
def accumulate(run: Run, handle: Any, local_step: Array, gradient: Array) -> tuple[()]:
    """Give it a gradient."""
    found = _handle(run, handle, Accumulator, _DENSE)
    if isinstance(found, SparseAccumulator):
        run.fail("handle", wanted=f"be {_DENSE}", got=_ROWS, code="VG011")
    if found.wants(run, "gradient", integer(local_step), gradient):
        found.add(run, gradient)
    return ()


@kernel()
def accumulate_rows(run: Run, handle: Any, local_step: Array, rows: Array, values: Array, shape: Array) -> tuple[()]:
    """Give it a gradient of rows."""
    found = _handle(run, handle, SparseAccumulator, _ROWS)
    if rows.shape[0] != values.shape[0]:
        wanted = f"have {rows.shape[0]} rows, one per index"
        run.fail("gradient_values", wanted=wanted, got=list(values.shape), code="VG012")
    if found.wants(run, "gradient_values", integer(local_step), values):
        found.add_rows(run, rows, values, shape if run.attrs["has_known_shape"] else None)
    return ()


@kernel()
def take_gradient(run: Run, handle: Any, num_required: Array) -> Array:
    """The mean or sum."""
    found = _handle(run, handle, Accumulator, _DENSE)
    if isinstance(found, SparseAccumulator):
        run.fail("handle", wanted=f"be {_DENSE}", got=_ROWS, code="VG011")
    total, count = found.begin_next(run, integer(num_required))
    return total / run.make(count, found.holds) if found.mean else total


@kernel()
def take_rows(run: Run, handle: Any, num_required: Array) -> Any:
    """The mean or sum of each row that was given."""
    found = _handle(run, handle, SparseAccumulator, _ROWS)
    total, _ = found.begin_next(run, integer(num_required))
    rows = sorted(total)
    values = [value / np.asarray(count, value.dtype) if found.mean else value for value, count in map(total.get, rows)]
    made = np.stack(values) if rows else np.zeros([0, *(size or 0 for size in (found.stated or (0,))[1:])])
    first = found.stated[0] if found.stated and found.stated[0] is not None else -1
    return run.make(rows, INT64), run.make(made, found.holds), run.make([first, *made.shape[1:]], INT64)


@kernel()
def num_accumulated(run: Run, handle: Any) -> Array:
    """How many gradients."""
    return run.make(_handle(run, handle, Accumulator, "an accumulator").count, INT32)


@kernel()
def set_global_step(run: Run, handle: Any, new_global_step: Array) -> tuple[()]:
    """Set the step."""
    _handle(run, handle, Accumulator, "an accumulator").step = integer(new_global_step)
    return ()


@kernel()
def keep_tensor(run: Run, value: Array) -> Array:
    """A handle under which the session keeps a tensor."""
    state = run.context.state
    number = state.counters["session tensors"] = state.counters.get("session tensors", 0) + 1
    name = f"{run.context.block};{number}"
    state.resources[f"tensor/{name}"] = value
    return text_array(name)


def _kept(run: Run, handle: Array) -> str:
    name = f"tensor/{to_numpy(handle).reshape(()).item().decode('utf-8', 'replace')}"
    if name not in run.context.state.resources:
        run.fail("handle", wanted="be that of a tensor which the session keeps", got=name.removeprefix("tensor/"))
    return name


@kernel()
def kept_tensor(run: Run, handle: Array) -> Array:
    """The tensor behind a handle."""
    value = run.context.state.resources[_kept(run, handle)]
    if element_type(value) != run.attrs["dtype"]:
        run.fail("dtype", wanted=f"be {element_type(value)}", got=run.attrs["dtype"].name, code="VG011")
    return value


@kernel()
def forget_tensor(run: Run, handle: Array) -> tuple[()]:
    """Forget a tensor."""
    del run.context.state.resources[_kept(run, handle)]
    return ()
