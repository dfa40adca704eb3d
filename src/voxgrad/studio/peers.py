# SPDX-License-Identifier: Apache-2.0
"""Other frameworks run the same page, block by block, so that results and times can be compared. In workers only."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import DType
from voxgrad.errors import CancelledError, Fault, InvalidArgumentError, UnimplementedError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.cache import Cache
from voxgrad.graph.infer import Inference
from voxgrad.graph.page import Page
from voxgrad.graph.plan import Plan, Step, make_plan
from voxgrad.graph.report import Progress
from voxgrad.graph.session import ClientSession
from voxgrad.graph.values import spec_of, to_array
from voxgrad.studio.tensors import Array


class PeerSession:
    """Runs a page as `ClientSession` does, with the kernels of another framework and without a cache."""

    def __init__(
        self,
        page: Page,
        engine: str,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        on_values: Callable[[str, list[Array | None]], None] | None = None,
        log: Callable[[str], None] | None = None,
    ):
        self.page = page
        self.engine = _ENGINES[engine]()
        self.on_progress = on_progress
        self.on_values = on_values
        self._cancelled = False

    def continue_from(self, earlier: PeerSession) -> None:
        """Nothing is kept between runs."""

    def cancel(self) -> None:
        """Stop behind the block that runs."""
        self._cancelled = True

    def loop(
        self,
        count: int,
        fetches: Sequence[Output],
        feeds: Mapping[str, Any] | Callable[[int], Mapping[str, Any]],
        targets: Sequence[Block],
    ) -> list[Array]:
        """Run the targets as often as asked; what the last run gave for the fetches."""
        self._cancelled = False
        results: list[Array] = []
        for cycle in range(count):
            results = self._run(feeds(cycle) if callable(feeds) else feeds, fetches, targets)
        return results

    def _run(self, feeds: Mapping[str, Any], fetches: Sequence[Output], targets: Sequence[Block]) -> list[Array]:
        known = {self.page.output(name): to_array(value, self.page.output(name).dtype) for name, value in feeds.items()}
        inference = self.page.infer()
        if known:
            inference = Inference(self.page.store, {output: spec_of(value) for output, value in known.items()})
            inference.update()
        plan = make_plan(inference, fetches, targets, list(known), "cpu")
        _refuse_unfed(plan)
        values: list[Any] = [None] * plan.slots
        for output, slot in plan.feeds.items():
            values[slot] = self.engine.put(known[output])
        for slot, (array, _) in plan.constants.items():
            values[slot] = self.engine.put(array)
        for index in range(len(plan.steps)):
            self._tell(plan, index, "queued")
        for index, step in enumerate(plan.steps):
            self._step(plan, index, step, values)
        return [self._fetched(output, values[slot]) for output, slot in zip(fetches, plan.fetches, strict=True)]

    def _fetched(self, output: Output, value: Any) -> Array:
        array: Array | None = self.engine.get(value)
        if array is None:
            wanted, got = "be fetched as an array", f"what {self.engine.name} does not hand out"
            raise InvalidArgumentError(Fault("VG067", "studio", output.path, wanted, got))
        return array

    def _step(self, plan: Plan, index: int, step: Step, values: list[Any]) -> None:
        if self._cancelled:
            raise CancelledError(Fault("VG040", step.op.name, step.name, "run to its end", "a request to stop"))
        self._tell(plan, index, "started")
        inputs = [values[slot] if isinstance(slot, int) else [values[one] for one in slot] for slot in step.inputs]
        start = time.perf_counter()
        try:
            results = self.engine.compute(step, inputs, plan)
        except UnimplementedError as error:
            self._tell(plan, index, "failed", 0.0, str(error))
            raise
        except Exception as error:
            fault = Fault("VG066", step.op.name, step.name, "run", f"{type(error).__name__}: {str(error)[:300]}")
            self._tell(plan, index, "failed", 0.0, str(fault))
            raise InvalidArgumentError(fault) from error
        took = time.perf_counter() - start
        for slot, result in zip(step.flat_outputs, results, strict=True):
            values[slot] = result
        if self.on_values is not None:
            self.on_values(step.name, [self.engine.get(values[slot]) for slot in step.flat_outputs])
        for slot in step.frees:
            values[slot] = None
        self._tell(plan, index, "done", took, f"{self.engine.name} keeps nothing")

    def _tell(self, plan: Plan, index: int, state: str, seconds: float = 0.0, message: str = "") -> None:
        if self.on_progress is not None:
            self.on_progress(Progress(plan.steps[index].name, state, index, len(plan.steps), seconds, message))


def _refuse_unfed(plan: Plan) -> None:
    missing = [step.name for step in plan.steps if step.op.name == "Placeholder"]
    if missing:
        raise InvalidArgumentError(Fault("VG001", "Placeholder", name, "be fed a value", "none") for name in missing)


class TensorFlowEngine:
    """`tf.raw_ops`, eagerly: the op of the same name with the same arguments."""

    name = "TensorFlow"

    def __init__(self) -> None:
        import tensorflow

        self._tf: Any = tensorflow

    def put(self, array: Array) -> Any:
        """An array as a tensor."""
        return self._tf.constant(array)

    def get(self, value: Any) -> Array | None:
        """A tensor as an array."""
        return np.asarray(value.numpy()) if hasattr(value, "numpy") else None

    def compute(self, step: Step, inputs: list[Any], plan: Plan) -> list[Any]:
        """The results of a block."""
        op = step.op
        if op.name == "Const":
            return [self.put(to_array(step.attrs["value"], step.attrs.get("dtype")))]
        function = getattr(self._tf.raw_ops, op.name, None)
        if function is None or op.stateful:
            got = "a block with state" if op.stateful else "an op that TensorFlow 2 does not have"
            raise UnimplementedError(Fault("VG032", op.name, step.name, "run in TensorFlow without a graph", got))
        arguments = {item.name: value for item, value in zip(op.inputs, inputs, strict=True)}
        arguments |= {name: self._attribute(value) for name, value in step.attrs.items()}
        result = function(**arguments)
        if len(step.flat_outputs) == 1 and not isinstance(result, (list, tuple)):
            return [result]
        return [one for part in result for one in (part if isinstance(part, list) else [part])]

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, DType):
            return self._tf.dtypes.as_dtype(value.enum)
        if isinstance(value, tuple):
            return [self._attribute(one) for one in value]
        return value


class TorchEngine:
    """torch on the CPU: its own convolutions and pools, and its array functions for the rest."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        from voxgrad.kernels.arraywise import Context
        from voxgrad.kernels.arraywise.namespace import moved_to

        self._like = torch.empty(())
        self._move = moved_to
        self._context = Context(place=self.put)

    def put(self, array: Array) -> Any:
        """An array as a tensor; text and small integers stay in NumPy."""
        return array if array.dtype == object or array.dtype.kind in "iu" else self._move(array, self._like)

    def get(self, value: Any) -> Array | None:
        """A tensor as an array."""
        from voxgrad.kernels.arraywise import value_of
        from voxgrad.kernels.arraywise.namespace import to_numpy

        held = value_of(value)
        if isinstance(held, np.ndarray):
            return held
        return np.asarray(to_numpy(held)) if hasattr(held, "dtype") else None

    def compute(self, step: Step, inputs: list[Any], plan: Plan) -> list[Any]:
        """The results of a block."""
        from voxgrad.catalog.problem import Problem
        from voxgrad.errors import Faults
        from voxgrad.kernels.arraywise import evaluate
        from voxgrad.studio import torch_peer

        if step.windowed and step.op.map.of in torch_peer.FORWARD:
            # The call was found right before; its shapes are those of the tensors now.
            call = _call_of(step, inputs)
            problem = step.op.problem(call, Faults(step.op.name)) if step.op.problem is not None else None
            assert isinstance(problem, Problem)
            tensors = [value for item, value in zip(step.op.inputs, inputs, strict=True) if not item.host]
            return [torch_peer.compute(problem, *tensors)]
        self._context.block = step.name
        results = evaluate(step.op, inputs, step.attrs, self._context)
        return [one for part in results for one in (part if isinstance(part, (tuple, list)) else (part,))]


def _call_of(step: Step, inputs: list[Any]) -> Any:
    from voxgrad.catalog.model import Call
    from voxgrad.kernels.arraywise.namespace import to_numpy

    specs = {
        item.name: spec_of(np.asarray(to_numpy(value))) for item, value in zip(step.op.inputs, inputs, strict=True)
    }
    return Call(step.op, specs, step.attrs, "documented", step.name)


_ENGINES: dict[str, Callable[[], Any]] = {"tensorflow": TensorFlowEngine, "torch": TorchEngine}


PEERS = tuple(_ENGINES)
ENGINE_NAMES = ("cpu", "cuda", *PEERS)


def check_engines(names: Sequence[str], argument: str) -> None:
    """Raise for a name of no engine, or of no device."""
    for name in names:
        if name not in ENGINE_NAMES and not re.fullmatch(r"cuda:\d{1,2}", name):
            wanted = f"be of {', '.join(ENGINE_NAMES)}, cuda:1"
            raise InvalidArgumentError(Fault("VG003", "sweep", argument, wanted, repr(name[:80])))


def open_session(page: Page, engine: str, *, cache: Cache | bool | None = None, **hooks: Any) -> ClientSession | PeerSession:
    """A session of an engine: Voxgrad's own on a device, or another framework's."""
    if engine not in PEERS:
        return ClientSession(page, engine, cache=cache, **hooks)
    try:
        return PeerSession(page, engine, **hooks)
    except ImportError:
        remedy = f"pip install {engine}"
        raise UnimplementedError(Fault("VG032", "studio", "engine", "be installed", engine, remedy)) from None


def load(engine: str) -> None:
    """Import the framework; before the limits of the worker count, for they take gigabytes of addresses."""
    _ENGINES[engine]()
