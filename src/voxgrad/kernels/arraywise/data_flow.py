# SPDX-License-Identifier: Apache-2.0
"""Queues and arrays of tensors. Nothing here waits: one thread runs a page, so what would wait never ends."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import BOOL, FLOAT32, INT32, INT64
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, element_type, integer, integers, moved_to, to_numpy
from voxgrad.kernels.arraywise.random import Generator, Stream

Entry = tuple[Array, ...]


def fits(got: Any, wanted: Any) -> bool:
    """Whether a shape is a stated one, whose open sizes take any."""
    known = [w if isinstance(w, int) and w >= 0 else None for w in wanted]
    return len(got) == len(known) and all(w is None or g == w for g, w in zip(got, known, strict=True))


class Queue:
    """Entries of several tensors each, first in, first out."""

    def __init__(self, run: Run):
        self.types = run.attrs["component_types"]
        self.shapes = run.attrs["shapes"]
        self.capacity = run.attrs["capacity"]
        self.closed = False
        self._entries: deque[Entry] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def check(self, run: Run, entry: Entry, outer: int = 0) -> None:
        """The entry has the parts that the queue was made for, or has many such behind `outer` axes."""
        if len(entry) != len(self.types):
            run.fail("components", wanted=f"have {len(self.types)} parts", got=len(entry), code="VG004")
        for index, (part, dtype) in enumerate(zip(entry, self.types, strict=True)):
            if element_type(part) != dtype:
                run.fail(
                    f"components[{index}]", wanted=f"be of type {dtype}", got=element_type(part).name, code="VG011"
                )
            shape = self.shapes[index] if self.shapes else None
            got = list(part.shape[outer:])
            if shape is not None and not fits(got, shape):
                run.fail(f"components[{index}]", wanted=f"have the shape {list(shape)}", got=got, code="VG012")

    def put(self, run: Run, entry: Entry) -> None:
        """Add an entry."""
        if self.closed:
            run.fail("handle", wanted="be an open queue", got="a closed one", code="VG042")
        if 0 <= self.capacity <= len(self):
            run.fail("handle", wanted="have room", got=f"a full queue of {self.capacity}", code="VG042")
        self.check(run, entry)
        self.push(entry)

    def push(self, entry: Entry) -> None:
        """Store an entry."""
        self._entries.append(entry)

    def take(self, run: Run) -> Entry:
        """The next entry."""
        if not len(self):
            state = "a closed, empty queue" if self.closed else "an empty queue"
            run.fail("handle", wanted="have an entry", got=state, code="VG042")
        return self.pop()

    def pop(self) -> Entry:
        """Remove and return the next entry."""
        return self._entries.popleft()

    def stacked(self, run: Run, parts: list[Any]) -> Any:
        """Tensors of several entries as one."""
        if parts and len({tuple(part.shape) for part in parts}) > 1:
            run.fail(
                "handle", wanted="hold entries of one shape to be taken together", got="several shapes", code="VG012"
            )
        return moved_to(np.stack([to_numpy(part) for part in parts]), parts[0])


class PaddingQueue(Queue):
    """Pads entries to one shape when several leave together."""

    def stacked(self, run: Run, parts: list[Any]) -> Any:
        """Tensors of several entries, padded with zeros or empty texts, as one."""
        arrays = [to_numpy(part) for part in parts]
        shape = np.max([array.shape for array in arrays], axis=0).astype(int)
        run.room("handle", (len(arrays), *shape), arrays[0])
        made = np.full((len(arrays), *shape), b"" if arrays[0].dtype == object else 0, arrays[0].dtype)
        for index, array in enumerate(arrays):
            inside: tuple[Any, ...] = (index, *(slice(0, size) for size in array.shape))
            made[inside] = array if array.ndim else array[()]
        return moved_to(made, parts[0])


class ShuffleQueue(Queue):
    """Entries leave in random order."""

    def __init__(self, run: Run):
        super().__init__(run)
        self.least = run.attrs["min_after_dequeue"]
        self._random = Stream(Generator(run.attrs["seed"], run.attrs["seed2"]), 0)

    def take(self, run: Run) -> Entry:
        """A random entry, while enough stay for mixing."""
        if not self.closed and len(self) <= self.least:
            run.fail(
                "handle", wanted=f"keep {self.least} entries after this one", got=f"{len(self)} in all", code="VG042"
            )
        return super().take(run)

    def pop(self) -> Entry:
        """Remove and return any entry; the last one takes its place, as in TensorFlow."""
        at, last = self._random.word() % len(self._entries), self._entries.pop()
        if at == len(self._entries):
            return last
        chosen, self._entries[at] = self._entries[at], last
        return chosen


class PriorityQueue(Queue):
    """The entry with the lowest first part leaves first; equal ones in order of arrival."""

    def __init__(self, run: Run):
        super().__init__(run)
        self.types = (INT64, *self.types)
        self.shapes = ((), *self.shapes)
        self._heap: list[tuple[int, int, Entry]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, entry: Entry) -> None:
        """Store an entry by its priority."""
        self._count += 1
        heapq.heappush(self._heap, (integer(entry[0]), self._count, entry))

    def pop(self) -> Entry:
        """Remove and return the entry of the lowest priority."""
        return heapq.heappop(self._heap)[2]


_QUEUES = {"FIFOQueueV2": Queue, "PaddingFIFOQueueV2": PaddingQueue, "RandomShuffleQueueV2": ShuffleQueue,
           "PriorityQueueV2": PriorityQueue}  # fmt: skip


def resource_name(run: Run) -> str:
    """Under which name the session keeps a queue or reader."""
    shared = run.attrs["shared_name"]
    return f"{run.attrs['container']}/{shared}" if shared else run.context.block


@kernel()
def queue(run: Run) -> Any:
    """The queue of this block, made at its first use."""
    known, name = run.context.state.resources, resource_name(run)
    if name not in known:
        known[name] = _QUEUES[run.op.name](run)
    return known[name]


@kernel()
def enqueue(run: Run, handle: Queue, components: list[Array]) -> tuple[()]:
    """Put an entry."""
    handle.put(run, tuple(components))
    return ()


@kernel()
def enqueue_many(run: Run, handle: Queue, components: list[Array]) -> tuple[()]:
    """Put the slices of tensors."""
    sizes = {part.shape[0] if part.shape else None for part in components}
    if len(sizes) > 1 or None in sizes:
        wanted, got = "have one first size", [list(part.shape) for part in components]
        run.fail("components", wanted=wanted, got=got, code="VG012")
    handle.check(run, tuple(components), 1)
    for entry in zip(*components, strict=True):
        handle.put(run, tuple(np.asarray(part) if isinstance(part, np.generic) else _as_array(part) for part in entry))
    return ()


def _as_array(part: Any) -> Any:
    if hasattr(part, "shape"):
        return part
    made = np.empty((), dtype=object)
    made[()] = part
    return made


@kernel()
def dequeue(run: Run, handle: Queue) -> Any:
    """Take an entry."""
    _check_types(run, handle)
    return handle.take(run)


def _check_types(run: Run, handle: Queue) -> None:
    """What leaves a queue is named by the types that it was made for."""
    if tuple(run.attrs["component_types"]) != tuple(handle.types):
        wanted, got = (", ".join(map(str, types)) for types in (handle.types, run.attrs["component_types"]))
        run.fail("component_types", wanted=f"be those of the queue, {wanted}", got=got, code="VG011")


def _counted(run: Run, argument: str, n: Array) -> int:
    count = integer(n)
    if count < 0:
        run.fail(argument, wanted="be 0 or more", got=count, code="VG003")
    return count


def _several(run: Run, handle: Queue, count: int) -> Any:
    if not handle.shapes:
        run.fail("handle", wanted="be a queue made with shapes", got="one without", code="VG012")
    entries = [handle.take(run) for _ in range(count)]
    if not entries:
        shapes = [[0, *(0 if size in (None, -1) else size for size in shape or ())] for shape in handle.shapes]
        return tuple(run.make(np.zeros(shape), dtype) for dtype, shape in zip(handle.types, shapes, strict=True))
    return tuple(handle.stacked(run, list(parts)) for parts in zip(*entries, strict=True))


@kernel()
def dequeue_many(run: Run, handle: Queue, n: Array) -> Any:
    """Take n entries, stacked."""
    _check_types(run, handle)
    count = _counted(run, "n", n)
    if len(handle) < count:
        run.fail("handle", wanted=f"have {count} entries", got=len(handle), code="VG042")
    return _several(run, handle, count)


@kernel()
def dequeue_up_to(run: Run, handle: Queue, n: Array) -> Any:
    """Take n entries, or what a closed queue has left."""
    _check_types(run, handle)
    count = _counted(run, "n", n)
    if len(handle) < count and (not handle.closed or not len(handle)):
        run.fail("handle", wanted=f"have {count} entries, or be closed", got=len(handle), code="VG042")
    return _several(run, handle, min(count, len(handle)))


@kernel()
def queue_size(run: Run, handle: Queue) -> Array:
    """How many entries it holds."""
    return run.make(len(handle), INT32)


@kernel()
def queue_close(run: Run, handle: Queue) -> tuple[()]:
    """Close it; again only where what waits is cancelled."""
    if handle.closed and not run.attrs["cancel_pending_enqueues"]:
        run.fail("handle", wanted="be an open queue", got="a closed one", code="VG042")
    handle.closed = True
    return ()


@kernel()
def queue_is_closed(run: Run, handle: Queue) -> Array:
    """Whether it is closed."""
    return run.make(handle.closed, BOOL)


class TensorArray:
    """An array of tensors; one that gathers gradients adds up what is written to one place."""

    def __init__(self, size: int, dtype: Any, *, grows: bool = False, clears: bool = False, adds: bool = False):
        self.size, self.dtype = size, dtype
        self.grows, self.clears, self.adds = grows, clears, adds
        self.tensors: dict[int, Array] = {}
        self.read: set[int] = set()
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.gradients: dict[str, TensorArray] = {}
        self.element: Any = None
        self.alike = False

    def write(self, run: Run, index: int, value: Array) -> None:
        """Store a tensor."""
        if element_type(value) != self.dtype:
            run.fail("value", wanted=f"be of type {self.dtype}", got=element_type(value).name, code="VG011")
        if index < 0 or (index >= self.size and not self.grows):
            run.fail("index", wanted=f"be in [0, {self.size})", got=index)
        if self.element is not None and not fits(tuple(value.shape), self.element):
            run.fail("value", wanted=f"have the shape {list(self.element)}", got=list(value.shape), code="VG012")
        if self.alike:
            self.element = tuple(value.shape)
        if index in self.tensors and not self.adds:
            run.fail("index", wanted="be a place that was not written before", got=index)
        self.size = max(self.size, index + 1)
        self.shapes[index] = tuple(value.shape)
        self.tensors[index] = self.tensors[index] + value if index in self.tensors else value

    def check(self, run: Run) -> None:
        """A reader names the type that the array holds."""
        if run.attrs["dtype"] != self.dtype:
            run.fail("dtype", wanted=f"be that of the array, {self.dtype}", got=run.attrs["dtype"].name, code="VG011")

    def get(self, run: Run, index: int) -> Array:
        """The tensor of a place."""
        if not 0 <= index < self.size:
            run.fail("index", wanted=f"be in [0, {self.size})", got=index)
        if index in self.read and self.clears:
            run.fail("index", wanted="be read once, as clear_after_read says", got=index)
        if index not in self.tensors:
            if not self.adds or index not in self.shapes:
                run.fail("index", wanted="be a place that was written", got=index)
            # Nothing flowed back to this place.
            return run.make(np.zeros(self.shapes[index]), self.dtype)
        self.read.add(index)
        return self.tensors.pop(index) if self.clears else self.tensors[index]

    def gradient(self, source: str) -> TensorArray:
        """The array of gradients of that name."""
        if source not in self.gradients:
            made = TensorArray(self.size, self.dtype, adds=True)
            made.shapes = dict(self.shapes)
            self.gradients[source] = made
        return self.gradients[source]


def _flow(run: Run) -> Array:
    return run.make(0, FLOAT32)


@kernel()
def tensor_array(run: Run, size: Array) -> Any:
    """A fresh array for this run."""
    attrs = run.attrs
    made = TensorArray(integer(size), attrs["dtype"], grows=attrs["dynamic_size"], clears=attrs["clear_after_read"])
    made.element, made.alike = attrs["element_shape"], attrs["identical_element_shapes"]
    return made, _flow(run)


@kernel()
def array_write(run: Run, handle: TensorArray, index: Array, value: Array, flow: Array) -> Array:
    """Write a tensor."""
    handle.write(run, integer(index), value)
    return _flow(run)


@kernel()
def array_read(run: Run, handle: TensorArray, index: Array, flow: Array) -> Array:
    """Read a tensor."""
    handle.check(run)
    return handle.get(run, integer(index))


def _stack(run: Run, tensors: list[Array], handle: TensorArray) -> Array:
    if not tensors:
        return run.make(np.zeros((0,)), handle.dtype)
    if len({tuple(tensor.shape) for tensor in tensors}) > 1:
        run.fail("indices", wanted="name tensors of one shape", got="several shapes", code="VG012")
    return moved_to(np.stack([to_numpy(tensor) for tensor in tensors]), tensors[0])


@kernel()
def array_gather(run: Run, handle: TensorArray, indices: Array, flow: Array) -> Array:
    """Read several tensors, stacked."""
    handle.check(run)
    return _stack(run, [handle.get(run, index) for index in integers(indices)], handle)


@kernel()
def array_scatter(run: Run, handle: TensorArray, indices: Array, value: Array, flow: Array) -> Array:
    """Write the slices of a tensor."""
    for place, index in enumerate(integers(indices)):
        handle.write(run, index, _as_array(value[place]))
    return _flow(run)


@kernel()
def array_concat(run: Run, handle: TensorArray, flow: Array) -> Any:
    """All tensors one behind the other."""
    handle.check(run)
    tensors = [handle.get(run, index) for index in range(handle.size)]
    lengths = [tensor.shape[0] for tensor in tensors]
    joined = np.concatenate([to_numpy(tensor) for tensor in tensors]) if tensors else np.zeros((0,))
    like = tensors[0] if tensors else None
    return (run.make(joined, handle.dtype) if like is None else moved_to(joined, like)), run.make(lengths, INT64)


@kernel()
def array_split(run: Run, handle: TensorArray, value: Array, lengths: Array, flow: Array) -> Array:
    """A tensor cut into pieces."""
    at = 0
    for index, size in enumerate(integers(lengths)):
        handle.write(run, index, value[at : at + size])
        at += size
    if at != value.shape[0]:
        run.fail("lengths", wanted=f"add up to {value.shape[0]}", got=at, code="VG012")
    return _flow(run)


@kernel()
def array_size(run: Run, handle: TensorArray, flow: Array) -> Array:
    """How many places there are."""
    return run.make(handle.size, INT32)


@kernel()
def array_close(run: Run, handle: TensorArray) -> tuple[()]:
    """Forget the tensors."""
    handle.tensors.clear()
    return ()


@kernel()
def array_grad(run: Run, handle: TensorArray, flow: Array) -> Any:
    """The array of gradients."""
    return handle.gradient(run.attrs["source"]), _flow(run)
