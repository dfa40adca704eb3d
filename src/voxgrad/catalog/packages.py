# SPDX-License-Identifier: Apache-2.0
"""Ops that installed packages bring: entry points of the group `voxgrad.blocks`.

The ops of a distribution `box-blur` are called `box_blur.Name`, whatever its entry points and modules are called, so
none can stand in for an op of TensorFlow or of another package. What is installed is looked up in its metadata; a
package is imported when one of its ops is asked for, and only then. A page can name packages, and nothing else: a name
that no installed package has is never imported.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.attributes import KINDS
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Input, Op, Output, Spec
from voxgrad.catalog.shapes import Infer, checked
from voxgrad.errors import Fault, Faults, InvalidArgumentError, UnimplementedError, VoxgradError, show
from voxgrad.loading import LOADING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "voxgrad.blocks"
"""The group of the entry points. Each leads to a sequence of declarations."""

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_LETTERS = 70
"""As much of an error of a package as a message shows."""


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package and the ops that it brings, by their whole names; `error` says why it has none."""

    name: str
    distribution: str
    version: str
    ops: Mapping[str, Op] = field(default_factory=dict)
    error: str = ""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


@cache
def _installed() -> dict[str, list[EntryPoint]]:
    """The entry points of every package, by the name that its ops begin with. Nothing of them is imported."""
    with LOADING:
        from importlib.metadata import entry_points
    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        if point.dist is not None:
            found.setdefault(name_of(point.dist.name), []).append(point)
    return dict(sorted(found.items()))


def name_of(distribution: str) -> str:
    """What the ops of a distribution begin with: its name, as Python would write it."""
    return re.sub(r"[-_.]+", "_", distribution).lower()


def names() -> tuple[str, ...]:
    """The packages that are installed, without loading them."""
    return tuple(_installed())


_TRIALS: list[Callable[[str], str]] = []


def try_first(trial: Callable[[str], str]) -> None:
    """Have every package tried by a function before it is loaded here: it says why not, or ""."""
    _TRIALS[:] = [trial]


def package(name: str) -> Package | None:
    """A package with its ops, loaded when it is first asked for; None where none of this name is installed."""
    if name not in _installed():
        return None
    reason = _tried(name)
    with LOADING:
        return _loaded(name, reason)


@cache
def _tried(name: str) -> str:
    return next((reason for trial in _TRIALS if (reason := trial(name))), "")


@cache
def _loaded(name: str, reason: str) -> Package:
    points = _installed()[name]
    distribution = points[0].dist
    assert distribution is not None
    made = Package(name, distribution.name, distribution.version, {}, reason)
    if reason:
        return made
    try:
        declared = [op for point in points for op in _declared(point)]
        return replace(made, ops=_adopted(made, declared))
    except (Exception, SystemExit) as error:
        # Whatever the code of a package does: the others, and everything else, go on without it.
        return replace(made, error=told(error))


def _declared(point: EntryPoint) -> list[Any]:
    found = point.load()
    if isinstance(found, Op) or not isinstance(found, Iterable):
        raise TypeError(f"{point.value} must be a sequence of declarations, such as OPS = (BLUR, BLUR_GRAD)")
    return list(found)


def told(error: BaseException) -> str:
    """An error of a package in a line, with the place in the code where it arose."""
    if isinstance(error, VoxgradError):
        return str(error)
    place, trace = "", error.__traceback__
    while trace is not None:
        place = "/".join(Path(trace.tb_frame.f_code.co_filename).parts[-2:]) + f":{trace.tb_lineno}"
        trace = trace.tb_next
    text = f"{type(error).__name__}: {error}"
    text = text if len(text) <= _LETTERS else f"{text[:_LETTERS]}..."
    return f"{text} ({place})" if place else text


def op(name: str) -> Op | None:
    """The op of a package under its whole name, `package.Name`; None where it is not there."""
    first, dot, _ = name.partition(".")
    found = package(first) if dot else None
    return None if found is None else found.ops.get(name)


def everything() -> tuple[Package, ...]:
    """All installed packages, loaded, also those that could not be."""
    found = (package(name) for name in names())
    return tuple(one for one in found if one is not None)


def missing(name: str) -> Fault | None:
    """Why the op of a package is not there; None for a name that is none of a package's."""
    first, dot, _ = name.partition(".")
    if not dot or not first.isidentifier():
        return None
    found = package(first)
    if found is None:
        remedy = "Install it if you trust who made it; a page keeps the block meanwhile, with all that it holds."
        return Fault("VG090", name, "", "come from an installed package", f"{first}, which is not installed", remedy)
    if found.error:
        got = f"{found}, which does not load: {found.error}"
        return Fault("VG090", name, "", "come from a package that loads", got, "`voxgrad doctor` lists all of them.")
    near = difflib.get_close_matches(name, found.ops, n=3, cutoff=0.5)
    remedy = f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(found.ops) or 'none'}."
    return Fault("VG090", name, "", "be an op that its package has", f"{found}, which has no such op", remedy)


# What a package declares, made an op of the catalogue


def _adopted(package: Package, declared: Sequence[Any]) -> dict[str, Op]:
    """The ops of a package under their whole names, after a look at every declaration."""
    made: dict[str, Op] = {}
    for op in declared:
        wrong = next(_faults_of(op), None)
        if wrong is not None:
            raise InvalidArgumentError(Fault("VG091", str(getattr(op, "name", op))[:80], *wrong))
        name = f"{package.name}.{op.name}"
        if name in made:
            raise InvalidArgumentError(Fault("VG091", op.name, "name", "be one that no other op of it has", op.name))
        made[name] = replace(
            op, name=name, group=package.name, own=True, aliases=(), package=str(package),
            infer=_guarded_rule(checked(op), str(package)), gradient=_guarded_gradient(op, name, str(package)),
        )  # fmt: skip
    return made


def _faults_of(op: Any) -> Iterator[tuple[str, str, str]]:
    """What is wrong with a declaration: argument, wanted, got."""
    if not isinstance(op, Op):
        yield "declarations", "be a voxgrad.blocks.Op each", f"{type(op).__name__} {show(op)}"
        return
    if not op.name.isidentifier():
        yield "name", "be an identifier; the package's name is put before it", show(op.name)
    if not isinstance(op.kernel, str) or not _FUNCTION.fullmatch(op.kernel):
        yield "kernel", "name the function that computes it, 'module:function'", show(op.kernel)
    tensors: list[Input | Output] = [*op.inputs, *op.outputs]
    if op.problem is not None or op.of or any(item.side is not None for item in tensors):
        yield "problem", "be left to the 3-D family, as `of` and `side` are", "given"
    named = [item.name for item in op.parameters]
    for name in named:
        if not name.isidentifier() or name in ("name", "page") or named.count(name) > 1:
            yield name, "be an identifier that no other argument has, and not 'name' or 'page'", show(name)
    for attr in op.attrs:
        if attr.kind not in KINDS:
            yield attr.name, f"have one of the kinds {', '.join(KINDS)}", show(attr.kind)
    for item in tensors:
        if not _has_type(op, item):
            wanted = "be of an element type, or of a type variable in `types`"
            yield item.name, wanted, show(item.type)
        if item.ref or item.type is dtypes.RESOURCE:
            yield item.name, "be a tensor", "a variable or a resource"
    for name in op.linear_in:
        if name not in named:
            yield "linear_in", "name inputs", show(name)


def _has_type(op: Op, item: Input | Output) -> bool:
    if isinstance(item.type, DType) or item.type in op.types:
        return True
    return isinstance(item, Output) and any(attr.name == item.type and attr.kind == "type" for attr in op.attrs)


def _guarded_rule(infer: Infer | None, package: str) -> Infer | None:
    """A shape rule whose failure is a fault of the block, with the name of the package."""
    if infer is None:
        return None

    def guarded(call: Call, faults: Faults) -> tuple[Any, ...] | None:
        try:
            made = infer(call, faults)
        except VoxgradError:
            raise
        except Exception as error:
            faults.add("VG091", "shape rule", wanted=f"run, as the package {package} has it", got=told(error))
            return None
        if made is None or (isinstance(made, tuple) and _fit(call.op, made)):
            return made
        wanted = f"return a Spec for each of {len(call.op.outputs)} outputs, as the package {package} declares them"
        faults.add("VG091", "shape rule", wanted=wanted, got=show(made))
        return None

    return guarded


def _fit(op: Op, made: tuple[Any, ...]) -> bool:
    if len(made) != len(op.outputs):
        return False
    pairs = zip(op.outputs, made, strict=True)
    return all(
        isinstance(one, tuple) and all(isinstance(each, Spec) for each in one) if item.many else isinstance(one, Spec)
        for item, one in pairs
    )


def _guarded_gradient(op: Op, name: str, package: str) -> Any:
    """A gradient whose failure names the package."""
    rule = op.gradient
    if rule is None:
        return None

    def guarded(build: Any, node: Any, dys: Sequence[Any]) -> Sequence[Any]:
        try:
            made = tuple(rule(build, node, dys))
        except (VoxgradError, LookupError):
            raise
        except Exception as error:
            fault = Fault("VG091", name, "gradient", f"be made, as the package {package} has it", told(error))
            raise UnimplementedError(fault) from error
        if len(made) != len(op.inputs):
            wanted = f"return a value or None for each of {len(op.inputs)} inputs, as the package {package} declares it"
            raise UnimplementedError(Fault("VG091", name, "gradient", wanted, f"{len(made)}"))
        return made

    return guarded


def forget() -> None:
    """Look anew at what is installed: where it was installed after this program had looked."""
    for found in (_installed, _tried, _loaded):
        found.cache_clear()
