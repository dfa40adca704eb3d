# SPDX-License-Identifier: Apache-2.0
"""Sizes that are not known yet. A `Dim` behaves like the integer it stands for: `-(-D // 2)` prints as `ceil(D/2)`.

    >>> D = Dim("D")
    >>> -(-D // 2), (D - 3) // 2 + 1, (D + D) // 2 == D
    (ceil(D/2), ceil(D/2)-1, True)

A size is 0 or more. Comparisons and truth are answers to "is it certain?": `D < 3` and `D >= 3` are both False, and so
is `bool(D)`. Code that asks whether something is *wrong* (`size < 0`, `differ(a, b)`) therefore works with symbols too.
Arithmetic whose result is a plain number gives an `int`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Size = Any
"""An int or a Dim."""


@dataclass(frozen=True, slots=True)
class _Quotient:
    """floor(top / bottom), as one indivisible factor."""

    top: Dim
    bottom: Size

    def __str__(self) -> str:
        rest = self.top - (self.bottom - 1)
        if known(self.bottom) and (not isinstance(rest, Dim) or rest.constant == 0):
            return f"ceil({_grouped(rest)}/{self.bottom})"
        return f"floor({_grouped(self.top)}/{_grouped(self.bottom)})"


_Factor = str | _Quotient
_Product = tuple[_Factor, ...]
_Terms = dict[_Product, int]


class Dim:
    """A symbolic size: a sum of integer multiples of products of names and quotients, kept in one normal form."""

    __slots__ = ("_extent", "_hash", "_terms", "_text")

    def __init__(self, name: str):
        self._terms: _Terms = {(name if len(name) <= MOST_LETTERS else _shortened(name),): 1}
        self._text = ""
        self._hash = 0
        self._extent: tuple[int, int] | None = None

    @property
    def constant(self) -> int:
        """The part without symbols."""
        return self._terms.get((), 0)

    @property
    def names(self) -> frozenset[str]:
        """The symbols in it."""
        return frozenset(name for product in self._terms for factor in product for name in _names(factor))

    def at(self, values: Mapping[str, Size]) -> Size:
        """The size with some symbols replaced, an int where none is left.

        >>> (-(-Dim("D") // 2)).at({"D": 7})
        4
        """
        total: Size = 0
        for product, count in self._terms.items():
            value: Size = count
            for factor in product:
                value = value * _factor_at(factor, values)
            total = total + value
        return total

    def __add__(self, other: Size) -> Size:
        return _combine(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return _combine(self, other, -1)

    def __rsub__(self, other: Size) -> Size:
        return _combine(-self, other, 1)

    def __neg__(self) -> Dim:
        return _made({product: -count for product, count in self._terms.items()})

    def __pos__(self) -> Dim:
        return self

    def __mul__(self, other: Size) -> Size:
        right = _terms(other)
        if right is None:
            return NotImplemented
        terms: _Terms = {}
        for one, count in self._terms.items():
            for two, times in right.items():
                product = tuple(sorted(one + two, key=str))
                terms[product] = terms.get(product, 0) + count * times
        return _simplified(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return NotImplemented if _terms(other) is None else _divided(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return NotImplemented if _terms(other) is None else _divided(other, self)

    def __mod__(self, other: Size) -> Size:
        return NotImplemented if _terms(other) is None else self - other * (self // other)

    def __rmod__(self, other: Size) -> Size:
        return NotImplemented if _terms(other) is None else other - self * (other // self)

    def __lt__(self, other: Size) -> bool:
        return _below(self, other, 1)

    def __le__(self, other: Size) -> bool:
        return _below(self, other, 0)

    def __gt__(self, other: Size) -> bool:
        return _below(other, self, 1)

    def __ge__(self, other: Size) -> bool:
        return _below(other, self, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self._terms == other._terms

    def __hash__(self) -> int:
        if not self._hash:
            self._hash = hash(frozenset(self._terms.items()))
        return self._hash

    def __bool__(self) -> bool:
        return differ(self, 0)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._terms,)

    def __str__(self) -> str:
        if not self._text:
            self._text = _written(self._terms)
        return self._text

    __repr__ = __str__


def known(value: object) -> bool:
    """True where a size is a plain number."""
    return isinstance(value, int)


def all_known(shape: Iterable[object] | None) -> bool:
    """True where a shape is known and all of its sizes are numbers."""
    return shape is not None and all(isinstance(size, int) for size in shape)


def differ(a: Size, b: Size) -> bool:
    """True only where two sizes are certainly different.

    >>> differ(Dim("D"), 3), differ(Dim("D") + 1, Dim("D")), differ(2, 3)
    (False, True, True)
    """
    gap = a - b
    if not isinstance(gap, Dim):
        return bool(gap != 0)
    low, high = _bounds(gap)
    return (low is not None and low > 0) or (high is not None and high < 0)


def shapes_differ(a: Sequence[Size] | None, b: Sequence[Size] | None) -> bool:
    """True only where two shapes are certainly different."""
    if a is None or b is None:
        return False
    return len(a) != len(b) or any(differ(one, two) for one, two in zip(a, b, strict=True))


def symbolic(shape: Sequence[Any] | None, owner: str) -> tuple[Size, ...] | None:
    """A shape as people write it (`["N", 4, None]`, -1 for None) in sizes; what has no name is called `owner[2]`."""
    if shape is None:
        return None
    return tuple(
        Dim(size) if isinstance(size, str) else Dim(f"{owner}[{index}]") if size is None or size == -1 else size
        for index, size in enumerate(shape)
    )


def _made(terms: _Terms) -> Dim:
    dim = Dim.__new__(Dim)
    dim._terms, dim._text, dim._hash, dim._extent = terms, "", 0, None
    return dim


MOST_LETTERS = 200
MOST_FACTORS, MOST_DEPTH = 400, 32
"""An expression of more factors, or of deeper quotients, becomes a symbol of its own: on a page that multiplies sums,
expressions would double with every block."""


def _shortened(text: str) -> str:
    """A name for a long expression, the same for the same one."""
    return f"{text[:24]}...{hashlib.blake2b(text.encode(errors='replace'), digest_size=8).hexdigest()}"


def _extent_of(dim: Dim) -> tuple[int, int]:
    """How many factors an expression has, those inside of quotients too, and how deep they are."""
    if dim._extent is None:
        inner = [
            _extent_of(part)
            for product in dim._terms
            for factor in product
            if not isinstance(factor, str)
            for part in (factor.top, factor.bottom)
            if isinstance(part, Dim)
        ]
        own = sum(1 + len(product) for product in dim._terms)
        dim._extent = own + sum(count for count, _ in inner), 1 + max((depth for _, depth in inner), default=0)
    return dim._extent


def _bounded(dim: Dim) -> Dim:
    """The expression, or a symbol in its place where it is too long."""
    factors, depth = _extent_of(dim)
    if factors <= MOST_FACTORS and depth <= MOST_DEPTH and all(abs(count) < 2**63 for count in dim._terms.values()):
        return dim
    return Dim(_shortened(str(dim)))


def _simplified(terms: _Terms) -> Size:
    kept = {product: count for product, count in terms.items() if count}
    return kept.get((), 0) if not any(kept) else _bounded(_made(kept))


def _terms(value: Size) -> _Terms | None:
    if isinstance(value, Dim):
        return value._terms
    return {(): value} if isinstance(value, int) else None


def _combine(a: Size, b: Size, sign: int) -> Size:
    left, right = _terms(a), _terms(b)
    if left is None or right is None:
        return NotImplemented
    terms = dict(left)
    for product, count in right.items():
        terms[product] = terms.get(product, 0) + sign * count
    return _simplified(terms)


def _divided(top: Size, bottom: Size) -> Size:
    if not isinstance(bottom, Dim):
        return _divided_by_number(top, bottom)
    exact = _exactly_divided(top, bottom)
    if exact is not None:
        return exact
    return _bounded(_made({(_Quotient(top if isinstance(top, Dim) else _made({(): top}), bottom),): 1}))


def _exactly_divided(top: Size, bottom: Dim) -> Size | None:
    """The quotient where `bottom` is a factor of every term of `top`, or all of it."""
    if top == bottom:
        return 1
    if len(bottom._terms) != 1:
        return None
    ((divisor, times),) = bottom._terms.items()
    terms: _Terms = {}
    for product, count in (_terms(top) or {}).items():
        rest = list(product)
        for factor in divisor:
            if factor not in rest:
                return None
            rest.remove(factor)
        if count % times:
            return None
        terms[tuple(rest)] = count // times
    return _simplified(terms)


def _divided_by_number(top: Dim, bottom: int) -> Size:
    if bottom == 0:
        raise ZeroDivisionError("division of a size by zero")
    if bottom < 0:
        return _divided_by_number(-top, -bottom)
    if _leading(top) < 0:
        # One sign for the numerator makes floor(-D/2) and -ceil(D/2) the same thing.
        return -_divided_by_number(-top + (bottom - 1), bottom)
    whole: _Terms = {}
    rest: _Terms = {}
    for product, count in top._terms.items():
        whole[product], rest[product] = divmod(count, bottom)
    remainder = _simplified(rest)
    if not isinstance(remainder, Dim):
        return _simplified(whole)
    return _simplified(whole) + _bounded(_made({(_flattened(remainder, bottom),): 1}))


def _flattened(top: Dim, bottom: int) -> _Quotient:
    """floor((floor(x/a) + c) / b) is floor((x + a*c) / (a*b)): halving twice is a quarter."""
    inner = [(product, count) for product, count in top._terms.items() if product]
    if len(inner) == 1:
        ((product, count),) = inner
        factor = product[0]
        if count == 1 and len(product) == 1 and isinstance(factor, _Quotient) and known(factor.bottom):
            return _Quotient(factor.top + factor.bottom * top.constant, factor.bottom * bottom)
    return _Quotient(top, bottom)


def _ordered(terms: _Terms) -> list[tuple[_Product, int]]:
    """Terms as they are written: higher products first, the constant last."""
    return sorted(terms.items(), key=lambda item: (-len(item[0]), [str(factor) for factor in item[0]]))


def _leading(dim: Dim) -> int:
    return _ordered(dim._terms)[0][1]


Bound = int | None


def _bounds(value: Size) -> tuple[Bound, Bound]:
    """The least and the greatest value of a size, None where there is no limit."""
    if not isinstance(value, Dim):
        return value, value
    low: Bound = 0
    high: Bound = 0
    for product, count in value._terms.items():
        least, most = _product_bounds(product)
        ends = (least, most) if count > 0 else (most, least)
        low = None if low is None or ends[0] is None else low + count * ends[0]
        high = None if high is None or ends[1] is None else high + count * ends[1]
    return low, high


def _product_bounds(product: _Product) -> tuple[Bound, Bound]:
    least, most = 1, 1 if not product else None
    for factor in product:
        if isinstance(factor, str):
            least = 0
            continue
        low = _bounds(factor.top)[0]
        if low is None or low < 0:
            return None, None
        least *= low // factor.bottom if known(factor.bottom) else 0
    return least, most


def _below(a: Size, b: Size, by: int) -> bool:
    """True where a + by <= b for every value of the symbols."""
    low, _ = _bounds(b - a)
    return low is not None and low >= by


def _names(factor: _Factor) -> Iterable[str]:
    if isinstance(factor, str):
        return (factor,)
    return factor.top.names | (factor.bottom.names if isinstance(factor.bottom, Dim) else frozenset())


def _factor_at(factor: _Factor, values: Mapping[str, Size]) -> Size:
    if isinstance(factor, str):
        return values[factor] if factor in values else Dim(factor)
    bottom = factor.bottom.at(values) if isinstance(factor.bottom, Dim) else factor.bottom
    return factor.top.at(values) // bottom


def _written(terms: _Terms) -> str:
    text = ""
    for product, count in _ordered(terms):
        sign = "-" if count < 0 else "+" if text else ""
        factors = [str(factor) for factor in product]
        if abs(count) != 1 or not factors:
            factors.insert(0, str(abs(count)))
        text += sign + "*".join(factors)
    return text


def _grouped(value: Size) -> str:
    text = str(value)
    return f"({text})" if isinstance(value, Dim) and (len(value._terms) > 1 or "*" in text) else text
