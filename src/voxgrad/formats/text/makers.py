# SPDX-License-Identifier: Apache-2.0
"""Values that are made by rule: `range(32)`, `full([2,3], 0.5)`, `normal([2,3], 0, 1, seed=7)`.

What is drawn comes from the generator of the ops RandomUniform, RandomStandardNormal and RandomUniformInt: the same
seed gives the same numbers here, in Python and on a page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.formats.text.lists import CLOSING
from voxgrad.formats.text.numbers import INT64, NUMBER, decimal, read_integer, read_number
from voxgrad.formats.text.reader import Reader
from voxgrad.formats.text.shapes import read_type
from voxgrad.kernels.arraywise.random import each, normals, philox, uniforms

Array = np.ndarray[Any, Any]
MAX_MADE = 2**20
"""Elements; a text of a few letters is not to take all memory."""
_CALL = re.compile(r"(range|linspace|zeros|ones|full|uniform|normal|integers)\s*\(")
_KEY = re.compile(r"([A-Za-z_]+)\s*=(?!=)\s*")
_REQUIRED = object()
_SEEDS = (1, INT64[1])

Number = int | float


@dataclass(frozen=True, slots=True)
class _Maker:
    """One rule: its arguments with their defaults, an example, and the function from numbers and a type to values."""

    arguments: dict[str, Any]
    example: str
    make: Callable[[Recipe], Array]
    natural: Callable[[Recipe], DType]
    shaped: bool = True


@dataclass(slots=True)
class Recipe:
    """A rule with its arguments: what a text said, before anything is made."""

    name: str
    at: int
    sizes: tuple[int, ...] = ()
    numbers: dict[str, Number] = field(default_factory=dict)
    dtype: DType | None = None
    wanted: DType = dtypes.FLOAT32
    """The type of the values: what the place asks for, what the text says, or what fits the rule."""

    @property
    def count(self) -> int:
        """How many elements it gives."""
        return math.prod(self.sizes)

    def values(self) -> Array:
        """The elements, in their shape."""
        return _MAKERS[self.name].make(self).reshape(self.sizes).astype(numpy_type(self.wanted))

    @property
    def text(self) -> str:
        """The whole rule, with what was left to defaults: a seed is never hidden."""
        parts = [f"[{','.join(map(str, self.sizes))}]"] if _MAKERS[self.name].shaped else []
        named = [name for name in self.numbers if name != "seed"]
        if self.name == "range":
            # 0.0 and 1.0 would make floats of the rest: only whole ones are left out.
            named = named if repr(self.numbers["step"]) != "1" else named[:2]
            named = named[1:] if len(named) == 2 and repr(self.numbers["start"]) == "0" else named
        parts += [repr(self.numbers[name]) for name in named]
        parts += [f"seed={self.numbers['seed']}"] if "seed" in self.numbers else []
        parts += [f"dtype={self.dtype}"] if self.dtype is not None else []
        return f"{self.name}({', '.join(parts)})"


def read_recipe(reader: Reader, dtype: DType | None) -> Recipe | None:
    """The rule at the cursor, which then stands behind it; None where another kind of text stands there."""
    start, found = reader.at, reader.match(_CALL)
    if found is None:
        return None
    recipe = Recipe(found[1], start)
    _read_arguments(reader, recipe, _MAKERS[recipe.name])
    _count_elements(reader, recipe)
    if recipe.count > MAX_MADE:
        reader.fail(f"make at most {MAX_MADE:,} elements", f"There would be {recipe.count:,}.", at=start)
    recipe.wanted = dtype or recipe.dtype or _MAKERS[recipe.name].natural(recipe)
    _check_type(reader, recipe)
    return recipe


def _read_arguments(reader: Reader, recipe: Recipe, maker: _Maker) -> None:
    """What stands between the brackets: sizes, numbers in order or by name, a type."""
    reader.skip()
    if maker.shaped:
        recipe.sizes = _read_sizes(reader, maker)
        reader.skip()
        reader.take(",")
    given: dict[str, Number] = {}
    names = list(maker.arguments)
    reader.skip()
    while not reader.take(")"):
        at, key = reader.at, reader.match(_KEY)
        if key is None and len(given) == len(names):
            reader.fail(f"be {maker.example}, with nothing more")
        name = key[1] if key is not None else names[len(given)]
        if name == "dtype":
            reader.match(_MODULE)
            recipe.dtype = read_type(reader)
        elif name not in names or name in given:
            reader.fail(f"be as {maker.example}", f"{recipe.name} takes {', '.join((*names, 'dtype'))}.", at=at)
        else:
            given[name] = _read_one(reader, name, key is None, maker)
        reader.skip()
        if not reader.take(",") and reader.char != ")":
            reader.fail("go on with a comma or end with )", f"Write {maker.example}.")
        reader.skip()
    _fill_in(reader, recipe, given, maker)


_MODULE = re.compile(r"(?:np|numpy|torch|tf)\.")


def _read_one(reader: Reader, name: str, in_order: bool, maker: _Maker) -> Number:
    if name == "seed" and in_order:
        reader.fail("name the seed", f"Write {maker.example}.")
    if name == "seed":
        return read_integer(reader, _SEEDS)
    if name == "count":
        return read_integer(reader, (1, MAX_MADE))
    found, at = NUMBER.match(reader.text, reader.at), reader.at
    number = read_number(reader)
    if not math.isfinite(number) and maker.example[:4] != "full":
        reader.fail("hold a finite number here", at=at)
    assert found is not None
    digits = decimal(found)
    return int(digits) if re.fullmatch(r"[+-]?\d+", digits) and INT64[0] <= int(digits) <= INT64[1] else number


def _read_sizes(reader: Reader, maker: _Maker) -> tuple[int, ...]:
    """`[2,3]`, `(2,3)` or `{2,3}`. A bare `zeros(4)` is a vector to some and a square to others."""
    closing = CLOSING.get(reader.char, "")
    if not closing:
        reader.fail("begin with a shape in brackets", f"Write {maker.example}.")
    reader.at += 1
    reader.skip()
    sizes: list[int] = []
    while not reader.take(closing):
        sizes.append(read_integer(reader, (0, 2**31 - 1)))
        reader.skip()
        if not reader.take(",") and reader.char != closing:
            reader.fail(f"go on with a comma or end with {closing}", f"Write {maker.example}.")
        reader.skip()
    return tuple(sizes)


def _fill_in(reader: Reader, recipe: Recipe, given: dict[str, Number], maker: _Maker) -> None:
    if recipe.name == "range" and len(given) == 1 and "start" in given:
        given = {"stop": given["start"]}
    for name, default in maker.arguments.items():
        if name not in given and default is _REQUIRED:
            reader.fail(f"be {maker.example}", f"{name} is missing.", at=recipe.at)
        recipe.numbers[name] = given.get(name, default)
    if recipe.name == "integers" and not recipe.numbers["low"] < recipe.numbers["high"]:
        reader.fail("have low below high", at=recipe.at)


def _count_elements(reader: Reader, recipe: Recipe) -> None:
    """The size of a rule that has no shape of its own."""
    numbers = recipe.numbers
    if recipe.name == "range":
        start, stop, step = (float(numbers[name]) for name in ("start", "stop", "step"))
        steps = (stop - start) / step if step else math.inf
        count = math.ceil(steps) if math.isfinite(steps) else -1
        if not 0 <= count <= MAX_MADE:
            reader.fail(f"count from 0 to {MAX_MADE:,} elements", at=recipe.at)
        recipe.sizes = (count,)
    elif recipe.name == "linspace":
        recipe.sizes = (int(numbers["count"]),)


def _check_type(reader: Reader, recipe: Recipe) -> None:
    """A type that cannot hold what the rule gives is refused, where a cast would round or wrap."""
    wanted, numbers = recipe.wanted, [one for name, one in recipe.numbers.items() if name not in ("seed", "count")]
    if wanted.kind not in ("int", "uint", "float", "complex"):
        reader.fail(f"not be made by {recipe.name} where {wanted} is wanted", at=recipe.at)
    if wanted.kind in ("int", "uint"):
        limits = np.iinfo(numpy_type(wanted))
        if recipe.name in ("uniform", "normal", "linspace") or not all(isinstance(one, int) for one in numbers):
            reader.fail(f"hold whole numbers, {wanted}", "Write integers, or choose a float type.", at=recipe.at)
        least, most = min(numbers, default=0), max(numbers, default=0)
        if least < limits.min or most > limits.max + (recipe.name in ("integers", "range")):
            reader.fail(f"hold {wanted}, from {limits.min} to {limits.max}", at=recipe.at)
    elif recipe.name in ("uniform", "normal") and wanted.kind == "complex":
        reader.fail(f"not be drawn by {recipe.name} where {wanted} is wanted", at=recipe.at)


def _ranged(recipe: Recipe) -> Array:
    start, step = recipe.numbers["start"], recipe.numbers["step"]
    return start + step * np.arange(recipe.count)


def _spaced(recipe: Recipe) -> Array:
    return np.linspace(recipe.numbers["start"], recipe.numbers["stop"], recipe.count)


def _filled(recipe: Recipe) -> Array:
    value = {"zeros": 0, "ones": 1}.get(recipe.name, recipe.numbers.get("value", 0))
    return np.full(recipe.count, value)


def _drawn(recipe: Recipe, draw: Callable[[Any, DType], Any]) -> Any:
    """The numbers that the op of this name gives in its first run."""
    words = philox(int(recipe.numbers["seed"]), 0, 0, -(-recipe.count // each(recipe.wanted)))
    return draw(words, recipe.wanted).reshape(-1)[: recipe.count]


def _uniform(recipe: Recipe) -> Array:
    drawn, (low, high) = _drawn(recipe, uniforms), (recipe.numbers["low"], recipe.numbers["high"])
    return _scaled(drawn, float(high) - float(low), float(low))


def _normal(recipe: Recipe) -> Array:
    return _scaled(_drawn(recipe, normals), float(recipe.numbers["stddev"]), float(recipe.numbers["mean"]))


def _scaled(drawn: Any, by: float, shift: float) -> Array:
    """`drawn * by + shift`, in the type that the numbers are drawn in."""
    kind = drawn.dtype.type
    made: Array = drawn if (by, shift) == (1.0, 0.0) else drawn * kind(by) + kind(shift)
    return made


def _integers(recipe: Recipe) -> Array:
    low, high = int(recipe.numbers["low"]), int(recipe.numbers["high"])
    narrow = low >= -(2**31) and high <= 2**31 - 1
    words = philox(int(recipe.numbers["seed"]), 0, 0, -(-recipe.count // (4 if narrow else 2))).astype(np.uint64)
    numbers = words if narrow else words[:, 0::2] | words[:, 1::2] << np.uint64(32)
    below = numbers.reshape(-1)[: recipe.count] % np.uint64(high - low)
    # Differences beyond 2**63 are counted around, and come out right.
    made: Array = (below + np.uint64(low % 2**64)).astype(np.int64)
    return made


def _float32(recipe: Recipe) -> DType:
    return dtypes.FLOAT32


def _by_writing(recipe: Recipe) -> DType:
    """int32 where all numbers were written without a point, as in lists."""
    whole = all(isinstance(one, int) for name, one in recipe.numbers.items() if name != "seed")
    least, most = min(recipe.numbers.values(), default=0), max(recipe.numbers.values(), default=0)
    fits = least >= -(2**31) and most <= 2**31 - 1 + (recipe.name != "full")
    return (dtypes.INT32 if fits else dtypes.INT64) if whole else dtypes.FLOAT64


def _whole(recipe: Recipe) -> DType:
    return dtypes.INT32 if recipe.numbers["low"] >= -(2**31) and recipe.numbers["high"] <= 2**31 else dtypes.INT64


_MAKERS = {
    "range": _Maker({"start": 0, "stop": _REQUIRED, "step": 1}, "range(stop), range(start, stop) or "
                    "range(start, stop, step), of numbers", _ranged, _by_writing, shaped=False),
    "linspace": _Maker({"start": _REQUIRED, "stop": _REQUIRED, "count": _REQUIRED}, "linspace(0, 1, 5)", _spaced,
                       _float32, shaped=False),
    "zeros": _Maker({}, "zeros([2,3])", _filled, _float32),
    "ones": _Maker({}, "ones([2,3])", _filled, _float32),
    "full": _Maker({"value": _REQUIRED}, "full([2,3], 0.5)", _filled, _by_writing),
    "uniform": _Maker({"low": 0, "high": 1, "seed": 1}, "uniform([2,3], 0, 1, seed=7)", _uniform, _float32),
    "normal": _Maker({"mean": 0, "stddev": 1, "seed": 1}, "normal([2,3], 0, 1, seed=7)", _normal, _float32),
    "integers": _Maker({"low": _REQUIRED, "high": _REQUIRED, "seed": 1}, "integers([2,3], 0, 10, seed=7)", _integers,
                       _whole),
}  # fmt: skip
RULES = tuple(_MAKERS)
