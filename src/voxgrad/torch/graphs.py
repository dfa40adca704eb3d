# SPDX-License-Identifier: Apache-2.0
"""Whole models as CUDA graphs: `vt.graphed` records what a call launches, forward and back, and launches it at once.

A network of many layers waits for Python; a graph does not. What is replayed are the very kernels of the model, so the
results have the same bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from voxgrad.errors import FailedPreconditionError, Fault, InvalidArgumentError, UnimplementedError

_cuda: Any = torch.cuda
_pytree_any: Any = _pytree
_WARM = 3
"""Calls before one is recorded: kernels are chosen, compiled and loaded in them."""


def graphed(model: nn.Module, *inputs: torch.Tensor) -> Graphed:
    """Record calls of a model on a GPU for inputs like these: the result is called in its place, also while training.

    run = vt.graphed(model, x); loss = criterion(run(x), y); loss.backward()

    It is replayed where shapes, types, layouts, autocast, `model.train()` or `eval()` and gradients are as they were;
    any other call runs the model itself, and `run.why_not(*inputs)` says why. Parameters may change in place, as
    optimisers and `load_state_dict` change them. Gradients of a replayed call are taken once, before the next one.
    """
    return Graphed(model, inputs)


def warm_up(model: nn.Module, *inputs: torch.Tensor, measure: bool = False) -> None:
    """Have the kernels of a call on inputs like these, and of its gradients, chosen and compiled, side by side.

    With `measure` what may run a convolution is timed, and the fastest is kept for this machine. The model, its running
    statistics and the random numbers stay as they are.
    """
    _refuse(model, inputs)
    ready = _measured if measure else _compiled_together
    with _as_before(model), _without_cache():
        recording = _Recording(model, inputs)
        with ready():
            recording.call(model)
        recording.call(model)
    _cuda.synchronize()


@contextmanager
def _compiled_together() -> Iterator[None]:
    from voxgrad.kernels.cuda.launch import compiled_together

    with compiled_together():
        yield


@contextmanager
def _measured() -> Iterator[None]:
    from voxgrad.kernels.cuda import tune

    with tune.measuring():
        yield


class Graphed:
    """A model of which calls were recorded. `add` records one for inputs, modes or gradients of another kind."""

    def __init__(self, model: nn.Module, inputs: Sequence[torch.Tensor]):
        self.model = model
        self._recordings: dict[Any, _Recording] = {}
        self.add(*inputs)

    def add(self, *inputs: torch.Tensor) -> None:
        """Record a call on inputs like these, with the model, autocast and gradients as they are now."""
        _refuse(self.model, inputs)
        warm_up(self.model, *inputs)
        recording = _Recording(self.model, inputs)
        recording.record(self.model)
        self._recordings[_state(self.model, inputs)] = recording

    def why_not(self, *inputs: Any) -> str:
        """Why a call would run the model itself; "" where it is replayed."""
        state = _state(self.model, inputs)
        if state in self._recordings:
            return ""
        near = max(self._recordings, key=lambda one: sum(a == b for a, b in zip(one, state, strict=True)))
        return next(words for words, a, b in zip(_WORDS, near, state, strict=True) if a != b)

    def __call__(self, *inputs: Any) -> Any:
        """What the model makes of the inputs."""
        recording = self._recordings.get(_state(self.model, inputs))
        return self.model(*inputs) if recording is None else recording(inputs)


_WORDS = (
    "the inputs are others than was recorded for: shapes, types, strides, devices, gradients",
    "the model is in another mode: train or eval",
    "its layers, parameters or buffers are others, or want gradients otherwise",
    "autocast is on another type, or turned on or off",
    "gradients are turned on or off",
    "a transform or a forward mode of torch is at work, or a graph is being recorded",
)


def _held(layer: nn.Module) -> tuple[Any, ...]:
    """The layers, parameters and buffers of a layer, and where they are."""
    tensors = (one for one in (*layer._parameters.values(), *layer._buffers.values()) if one is not None)
    return (
        *map(id, layer._modules.values()),
        *((one.data_ptr(), one.dtype, one.requires_grad) for one in tensors),
    )


def _state(model: nn.Module, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """All that a recording is for; `_WORDS` has the parts."""
    like = tuple(
        (one.shape, one.dtype, one.stride(), one.device, one.requires_grad) if type(one) is torch.Tensor else type(one)
        for one in inputs
    )
    layers = list(model.modules())
    other = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    return (
        like,
        tuple(one.training for one in layers),
        tuple(map(_held, layers)),
        torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda"),
        (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        bool(other or torch.autograd.forward_ad._current_level >= 0 or _cuda.is_current_stream_capturing()),
    )


def _refuse(model: nn.Module, inputs: Sequence[torch.Tensor]) -> None:
    if not isinstance(model, nn.Module):
        raise InvalidArgumentError(Fault("VG002", "graphed", "model", "be an nn.Module", type(model).__name__))
    if not inputs:
        raise InvalidArgumentError(Fault("VG001", "graphed", "inputs", "be the tensors of a call", "none"))
    for place, one in enumerate(inputs):
        if type(one) is not torch.Tensor or not one.is_cuda:
            got = f"a {type(one).__name__} on {getattr(one, 'device', 'no device')}"
            raise InvalidArgumentError(Fault("VG032", "graphed", f"inputs[{place}]", "be a plain tensor on a GPU", got))
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if not value.is_cuda:
            raise InvalidArgumentError(
                Fault("VG032", "graphed", "model", "have all its tensors on a GPU", f"{name} on {value.device}")
            )


def _like(x: torch.Tensor) -> torch.Tensor:
    """A tensor of its own, in memory as the given one lies."""
    here = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    return here.copy_(x.detach()).requires_grad_(x.requires_grad and torch.is_grad_enabled())


class _Recording:
    """The graphs of a call and of its gradients, and the memory that they read and write."""

    def __init__(self, model: nn.Module, inputs: Sequence[torch.Tensor]):
        self.inputs = [_like(one) for one in inputs]
        wanted = [*self.inputs, *model.parameters()]
        self.parameters = tuple(one for one in wanted if one.requires_grad and torch.is_grad_enabled())
        self.outputs: list[torch.Tensor] = []
        self.shape: Any = None
        self.there: list[int] = []
        """Which outputs have gradients."""
        self.dys: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor | None] = []
        self.forth, self.back = _cuda.CUDAGraph(), _cuda.CUDAGraph()
        self.ticket: object = None
        """The call whose gradients the memory is ready for."""

    def call(self, model: nn.Module) -> None:
        """Make the call and its gradients."""
        self._forward(model)
        self._backward()

    def record(self, model: nn.Module) -> None:
        """Fill the graphs."""
        try:
            with _as_before(model), _without_cache():
                self._record(model)
        except RuntimeError as error:
            got = str(error).strip().splitlines()[0]
            remedy = "A model that waits for the GPU, or looks at numbers there, cannot be recorded: call it itself."
            fault = Fault("VG032", "graphed", "model", "be one that can be recorded", got, remedy)
            raise UnimplementedError(fault) from None

    def _record(self, model: nn.Module) -> None:
        stream = _cuda.Stream()
        stream.wait_stream(_cuda.current_stream())
        with _cuda.stream(stream):
            for _ in range(_WARM):
                self.call(model)
            with _no_waiting():  # A recording that is broken off leaves torch's random numbers broken, too.
                self.call(model)
        _cuda.current_stream().wait_stream(stream)
        _cuda.synchronize()
        with _cuda.graph(self.forth):
            self._forward(model)
        if self.there:
            with _cuda.graph(self.back, pool=self.forth.pool()):
                self._backward()

    def _forward(self, model: nn.Module) -> None:
        made, self.shape = _pytree_any.tree_flatten(model(*self.inputs))
        if not all(isinstance(one, torch.Tensor) for one in made):
            got = ", ".join(sorted({type(one).__name__ for one in made}))
            raise InvalidArgumentError(Fault("VG002", "graphed", "model", "return tensors alone", got))
        self.outputs = made
        self.there = [place for place, one in enumerate(made) if one.requires_grad]

    def _backward(self) -> None:
        ends = [self.outputs[place] for place in self.there]
        if ends:
            if not self.dys:
                self.dys = [torch.zeros_like(one) for one in ends]
            self.gradients = list(torch.autograd.grad(ends, self.parameters, self.dys, allow_unused=True))

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Any:
        """Replay the call."""
        given = sum(one.requires_grad for one in self.inputs)
        made = _Replay.apply(self, *inputs, *self.parameters[given:])
        return _pytree_any.tree_unflatten(list(made), self.shape)

    def replay(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs, which are the caller's own."""
        torch._foreach_copy_([one.detach() for one in self.inputs], [one.detach() for one in inputs])
        self.forth.replay()
        return [one.detach().clone() for one in self.outputs]

    def replay_back(self, dys: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """The gradients of what wants them."""
        for place, here in zip(self.there, self.dys, strict=True):
            dy = dys[place]
            _ = here.zero_() if dy is None else here.copy_(dy)
        self.back.replay()
        held = [one for one in self.gradients if one is not None]
        own = iter(torch._foreach_mul(held, 1.0) if held else [])
        return [None if one is None else next(own) for one in self.gradients]


class _Replay(torch.autograd.Function):
    """A recorded call, for torch's autograd."""

    @staticmethod
    def forward(ctx: Any, recording: _Recording, *tensors: torch.Tensor) -> Any:
        """Replay, and note which call it was."""
        ctx.recording = recording
        ctx.ticket = recording.ticket = object()
        count = len(recording.inputs)
        ctx.places = [place for place, one in enumerate(recording.inputs) if one.requires_grad]
        ctx.places += range(count, len(tensors))
        ctx.count = len(tensors)
        made = recording.replay(tensors[:count])
        ctx.mark_non_differentiable(*(one for place, one in enumerate(made) if place not in recording.there))
        ctx.set_materialize_grads(False)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *dys: Any) -> Any:
        """Replay the way back, if the memory is still that of this call."""
        recording = ctx.recording
        if torch.is_grad_enabled():
            raise UnimplementedError(
                Fault("VG064", "graphed", "backward", "be differentiated once", "create_graph=True",
                      "Call the model itself for gradients of gradients.")
            )  # fmt: skip
        if ctx.ticket is not recording.ticket:
            raise FailedPreconditionError(
                Fault("VG066", "graphed", "backward", "belong to the latest call, and be the first through it",
                      "an earlier call, or a second time", "Call the model itself, or go back before the next call.")
            )  # fmt: skip
        recording.ticket = None
        made = recording.replay_back(dys)
        found: list[Any] = [None] * ctx.count
        for place, one in zip(ctx.places, made, strict=True):
            found[place] = one
        return (None, *found)


@contextmanager
def _as_before(model: nn.Module) -> Iterator[None]:
    """Running statistics and random numbers go on from where they were; parameters get no gradients."""
    kept = [(one, one.detach().clone()) for one in model.buffers()]
    random = _cuda.get_rng_state()
    try:
        yield
    finally:
        with torch.no_grad():
            for one, value in kept:
                one.copy_(value)
        _cuda.set_rng_state(random)


@contextmanager
def _no_waiting() -> Iterator[None]:
    """What waits for the GPU is an error."""
    before = _cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The mode warns that it does not see everything.
        _cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            _cuda.set_sync_debug_mode(before)


@contextmanager
def _without_cache() -> Iterator[None]:
    """Autocast as it is, but every weight cast anew: a graph must see how it changes."""
    torch.clear_autocast_cache()
    on, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    with torch.autocast("cuda", dtype, enabled=on, cache_enabled=False):
        yield
