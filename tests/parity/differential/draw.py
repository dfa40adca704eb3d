# SPDX-License-Identifier: Apache-2.0
"""A random call of an op, drawn from its declaration: types, shapes as it words them, attributes.

Arguments are drawn when they are first asked for, so that a hint may look at others: `draw["indices"]` of a gather asks
for `draw["params"]`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Attr, Input, Op
from voxgrad.kernels.element_types import numpy_type

from .values import STYLES, TEXTS, Array, random_array, text_array

Shape = tuple[int, ...]
Kernels = Sequence[dict[str, list[int]]]
_BRACKETS = re.compile(r"\[[^\[\]]*\]")


def as_arrays(call: dict[str, Any]) -> dict[str, Any]:
    """The call with arrays for NumPy's scalars, which stand for Python numbers here and for tensors in TensorFlow."""

    def made(value: Any) -> Any:
        if isinstance(value, list):
            return [made(one) for one in value]
        return np.asarray(value) if isinstance(value, np.generic) else value

    return {name: made(value) for name, value in call.items()}


class Draw:
    """One call in the making. `hints` are functions of a Draw, by argument.

    `kernels` are the types, by type variable, of each kernel that there is to compare with: most calls are of one.
    """

    def __init__(
        self, op: Op, seed: str, hints: dict[str, Callable[[Draw], Any]], smooth: bool = False, kernels: Kernels = ()
    ):
        self.op, self.hints, self.smooth = op, hints, smooth
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(self.random.getrandbits(63))
        self.made: dict[str, Any] = {}
        self.types: dict[str, DType] = {}
        self.sizes: dict[str, Any] = {}
        self.style = "normal" if smooth else self.random.choice(STYLES)
        if kernels and self.chance(0.9):
            for variable, numbers in self.pick(*kernels).items():
                if fit := [one for one in op.types.get(variable, ()) if one.enum in numbers and one.itemsize]:
                    self.types[variable] = self.pick(*fit)

    # Arguments

    def __getitem__(self, name: str) -> Any:
        if name not in self.made:
            hint = self.hints.get(name)
            item = next(one for one in self.op.parameters if one.name == name)
            if isinstance(item, Attr) and not item.required and hint is None and self.chance(0.3):
                self.made[name] = item.default
            else:
                self.made[name] = hint(self) if hint is not None else self._declared(item)
        return self.made[name]

    def call(self) -> dict[str, Any]:
        """All arguments."""
        if "" in self.hints:
            self.made.update(self.hints[""](self))
        for item in (*self.op.attrs, *self.op.inputs):
            self[item.name]
        return {item.name: self.made[item.name] for item in self.op.parameters}

    def _declared(self, item: Input | Attr) -> Any:
        if isinstance(item, Attr):
            return self._attribute(item)
        if item.many:
            count = self.sizes.setdefault("many", self.random.choice((1, 2, 2, 3)))
            if item.mixed:
                return [self.array(self.type(item, fresh=True), self.shape()) for _ in range(count)]
            shape = self.shape_of(item)
            return [self.array(self.type(item), shape) for _ in range(count)]
        return self.array(self.type(item), self.shape_of(item))

    def _attribute(self, attr: Attr) -> Any:
        if attr.choices:
            return self.random.choice(attr.choices)
        if attr.name in self.types:
            return self.types[attr.name]
        if attr.kind == "type":
            return self.random.choice([one for one in self.op.types.get(attr.name, dtypes.ALL) if one.itemsize])
        made: dict[str, Callable[[], Any]] = {
            "bool": lambda: self.chance(0.5),
            "int": lambda: self.integer(0, 4),
            "float": lambda: self.random.choice((0.0, 0.5, 1.0, 1e-3, 2.5, -1.5)),
            "floats": lambda: sorted(self.random.choice((-2.0, -0.5, 0.0, 1.0, 2.5, 4.0)) for _ in range(3)),
            "ints": lambda: [self.integer(-2, 3) for _ in range(attr.length or self.integer(0, 3))],
            "string": lambda: self.random.choice(("", "a", ", ", "\u00e9")),
            "shape": lambda: self.random.choice((None, list(self.shape()))),
        }
        return made[attr.kind]()

    # Types and shapes

    def type(self, item: Input | str, fresh: bool = False) -> DType:
        """The type of an input in this call."""
        type_ = item if isinstance(item, str) else item.type
        if isinstance(type_, DType):
            return type_
        if fresh or type_ not in self.types:
            allowed = [one for one in self.op.types[type_] if one != dtypes.RESOURCE]
            if self.smooth:
                allowed = [one for one in allowed if one in (dtypes.FLOAT64, dtypes.COMPLEX128)] or (
                    [one for one in allowed if one.kind in ("float", "complex")] or allowed
                )
            picked = self.random.choice(allowed)
            if fresh:
                return picked
            self.types[type_] = picked
        return self.types[type_]

    def size(self, name: str = "") -> int:
        """A small size; one name means one size throughout a call."""
        made = self.random.choice((0, 1, 1, 2, 2, 3, 3, 4, 5) if not self.smooth else (1, 2, 3, 4))
        return int(self.sizes.setdefault(name, made)) if name else made

    def shape(self, low: int = 0, high: int = 4) -> Shape:
        """A shape of any rank."""
        return tuple(self.size() for _ in range(self.integer(low, high)))

    def shape_of(self, item: Input) -> Shape:
        """The shape that the declaration words for an input, sizes filled in."""
        words = item.shape
        if words.startswith("shape of "):
            other = words.removeprefix("shape of ").partition(",")[0]
            return np.shape(self[other])
        found = _BRACKETS.findall(words)
        if not found:
            return self._beside(item)
        layout = re.search(r"for (N[A-Z]+)", words)
        if layout is not None:
            return self._filled(found[1 if self["data_format"] == layout[1] else 0])
        return self._filled(self.random.choice(found))

    def _filled(self, words: str) -> Shape:
        made: list[int] = []
        for word in (one.strip() for one in re.split(r",(?![^(]*\))", words[1:-1])):
            if word == "...":
                made += self.sizes.setdefault("...", self.shape(0, 2))
            elif word.isdigit():
                made.append(int(word))
            elif word.isidentifier():
                made.append(self.size(word))
            elif word:
                names = {name: self.size(name) for name in re.findall(r"\b(?!min|max)[a-z]\b", word)}
                made.append(int(eval(word, {"min": min, "max": max}, names)))
        return tuple(made)

    def _beside(self, item: Input) -> Shape:
        """Tensors without a stated shape are alike, or broadcast."""
        first = "base" not in self.sizes
        base: Shape = self.sizes.setdefault("base", self.shape())
        if first or self.chance(0.55):
            return base
        kept = base[self.integer(0, len(base)) :] if self.chance(0.5) else base
        return tuple(1 if self.chance(0.3) else size for size in kept)

    # Elements

    def array(self, dtype: DType, shape: Sequence[int], style: str = "") -> Array:
        """Random elements in the style of this call."""
        return random_array(self.rng, tuple(shape), dtype, style or self.style)

    def ints(self, low: int, high: int, shape: Sequence[int] = (), type: DType | str = dtypes.INT32) -> Array:
        """Integers from low to high, both included; zeros where there are none such."""
        dtype = self.type(type) if isinstance(type, str) else type
        if high < low or not np.prod(shape):
            return np.zeros(shape, numpy_type(dtype))
        return np.asarray(self.rng.integers(low, high + 1, shape)).astype(numpy_type(dtype))

    def vector(self, values: Sequence[int], type: DType | str = dtypes.INT32) -> Array:
        """Given integers."""
        dtype = self.type(type) if isinstance(type, str) else type
        return np.array(list(values), np.int64).astype(numpy_type(dtype))

    def number(self, value: Any, type: DType | str = dtypes.INT32) -> Array:
        """A scalar."""
        return np.asarray(value).astype(numpy_type(self.type(type) if isinstance(type, str) else type))

    def texts(self, *choices: bytes, shape: Sequence[int] | None = None) -> Array:
        """Texts of these."""
        shape = self.shape(0, 2) if shape is None else tuple(shape)
        return text_array([self.random.choice(choices or TEXTS) for _ in range(int(np.prod(shape)))], tuple(shape))

    # Choices

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return self.random.randint(low, max(low, high))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def pick(self, *choices: Any) -> Any:
        """One of these."""
        return self.random.choice(choices)

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        return self.integer(-rank, rank - 1) if rank else 0
