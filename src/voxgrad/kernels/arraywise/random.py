# SPDX-License-Identifier: Apache-2.0
"""Random numbers from Philox 4x32-10, laid out as TensorFlow's CPU kernels lay them out."""

from __future__ import annotations

import secrets
from typing import Any

import ml_dtypes
import numpy as np

from voxgrad.catalog.dtypes import FLOAT32, FLOAT64, HALF, DType
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, element_type, integer, integers, moved_to, to_numpy

Words = np.ndarray[Any, np.dtype[np.uint32]]
Places = np.ndarray[Any, np.dtype[np.uint64]]
RESERVED = 256
"""Groups that TensorFlow reserves per number, whatever it needs."""
AT_ONCE = 2**13
"""Groups that are worked out at a time: their intermediate words stay in the caches."""


def philox(key: int, stream: int, first: int, count: int, apart: int = 1) -> Words:
    """Groups `first`, `first + apart` and so on of four words each: [count, 4]."""
    made = np.empty((count, 4), np.uint32)
    for begin in range(0, count, AT_ONCE):
        part = made[begin : begin + AT_ONCE]
        places = np.arange(len(part), dtype=np.uint64) * np.uint64(apart)
        part[:] = philox_at(key, stream, places + np.uint64((first + begin * apart) % 2**64))
    return made


def philox_at(key: int, stream: int, places: Places) -> Words:
    """The groups of four words at some places: [places, 4]."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    even, odd = np.empty((2, len(places)), np.uint64), np.empty((2, len(places)), np.uint64)  # words 0 and 2, 1 and 3
    even[0], odd[0], even[1], odd[1] = places & low, places >> half, stream & 0xFFFFFFFF, stream >> 32 & 0xFFFFFFFF
    keys = np.array([[key & 0xFFFFFFFF], [key >> 32 & 0xFFFFFFFF]], np.uint64)
    high = np.empty_like(even)
    for _ in range(10):
        even *= _FACTORS
        np.right_shift(even, half, out=high)
        even &= low
        odd ^= high[::-1]
        odd ^= keys
        even, odd = odd, even[::-1]
        keys = (keys + _STEPS) & low
    made = np.empty((len(places), 4), np.uint32)
    made[:, 0::2], made[:, 1::2] = even.T, odd.T
    return made


_FACTORS, _STEPS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64), np.array([[0x9E3779B9], [0xBB67AE85]], np.uint64)


class Generator:
    """A block's place in its sequence."""

    def __init__(self, seed: int, seed2: int):
        if seed == seed2 == 0:
            seed, seed2 = secrets.randbits(63), secrets.randbits(63)
        self.key, self.stream, self.at = seed % 2**64, seed2 % 2**64, 0

    def peek(self, first: int, groups: int) -> Words:
        """Groups of words from a place on; nothing is used up."""
        return philox(self.key, self.stream, first, groups)

    def take(self, groups: int, reserve: int) -> Words:
        """The next groups of words; `reserve` groups are used up."""
        words = philox(self.key, self.stream, self.at, groups)
        self.at += reserve
        return words


class Stream:
    """The words of a generator one by one, from where it stands; `reserve` groups are used up."""

    def __init__(self, source: Generator, reserve: int):
        self._source, self._next = source, source.at
        self._words: list[int] = []
        source.at += reserve

    def word(self) -> int:
        """32 bits."""
        if not self._words:
            self._words = self._source.peek(self._next, 64).reshape(-1)[::-1].tolist()
            self._next += 64
        return self._words.pop()

    def single(self) -> np.float32:
        """A float in [0, 1)."""
        return np.float32((self.word() & 0x7FFFFF) * 2.0**-23)

    def double(self) -> float:
        """A float in [0, 1)."""
        return ((self.word() & 0xFFFFF) << 32 | self.word()) * 2.0**-52

    def below(self, count: int, words: int = 1) -> int:
        """An integer below `count`, from so many words at a time: numbers that would favour some are drawn again."""
        uneven = 0 if count & (count - 1) == 0 else 2 ** (32 * words) % count
        while True:
            drawn = sum(self.word() << (32 * place) for place in range(words))
            if drawn >= uneven:
                return drawn % count


def generator(run: Run) -> Generator:
    """The generator of this block, made at its first use."""
    known = run.context.state.generators
    if run.context.block not in known:
        known[run.context.block] = Generator(run.attrs["seed"], run.attrs["seed2"])
    found: Generator = known[run.context.block]
    return found


def singles(words: Words) -> Any:
    """Floats in [0, 1) from 23 bits of each word."""
    return ((words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)


def doubles(high: Words, low: Words) -> Any:
    """Floats in [0, 1) from 52 bits of two words."""
    bits = (high.astype(np.uint64) & np.uint64(0xFFFFF)) << np.uint64(32) | low.astype(np.uint64)
    return (bits | np.uint64(1023 << 52)).view(np.float64) - 1.0


def stated(shape: Array) -> tuple[tuple[int, ...], int]:
    """The sizes that a shape states, and how many numbers they hold."""
    sizes = tuple(integers(shape))
    return sizes, int(np.prod(sizes, dtype=np.int64))


def _made(run: Run, numbers: Any, sizes: tuple[int, ...], count: int, dtype: DType) -> Array:
    return run.make(numbers.reshape(-1)[:count].reshape(sizes), dtype)


def _groups(count: int, each: int) -> int:
    return -(-count // each)


@kernel()
def uniform(run: Run, shape: Array) -> Array:
    """Numbers in [0, 1)."""
    dtype, (sizes, count) = run.attrs["dtype"], stated(shape)
    words = generator(run).take(_groups(count, each(dtype)), count * RESERVED)
    return _made(run, uniforms(words, dtype), sizes, count, dtype)


def each(dtype: DType) -> int:
    """How many numbers of a type a group of words gives."""
    return 2 if dtype is FLOAT64 else 4


def uniforms(words: Words, dtype: DType) -> Any:
    """Numbers in [0, 1) from the words of each group."""
    if dtype is FLOAT64:
        return doubles(words[:, 0::2], words[:, 1::2])
    if dtype is FLOAT32:
        return singles(words)
    if dtype is HALF:
        return ((words & 0x3FF) | 0x3C00).astype(np.uint16).view(np.float16) - np.float16(1)
    return ((words & 0x7F) | 0x3F80).astype(np.uint16).view(ml_dtypes.bfloat16) - ml_dtypes.bfloat16(1)


def rounded(function: Any, *values: Any) -> Any:
    """A function in float64, rounded to the type of what it is given: what a C library gives in all but rare cases."""
    return np.asarray(function(*(one.astype(np.float64) for one in values))).astype(values[0].dtype)


def normals(words: Words, dtype: DType) -> Any:
    """Box and Muller's pairs from the words of each group."""
    if dtype is FLOAT64:
        radius = np.maximum(doubles(words[:, 0::4], words[:, 1::4]), 1e-7)
        angle = 2 * np.pi * doubles(words[:, 2::4], words[:, 3::4])
    else:
        radius = np.maximum(singles(words[:, 0::2].copy()), np.float32(1e-7))
        angle = (2 * np.pi * singles(words[:, 1::2].copy()).astype(np.float64)).astype(np.float32)
    size = np.sqrt(-2 * rounded(np.log, radius))
    pairs = np.stack([rounded(np.sin, angle) * size, rounded(np.cos, angle) * size], axis=-1)
    return pairs.reshape(len(words), each(dtype))


@kernel()
def normal(run: Run, shape: Array) -> Array:
    """Standard normal numbers."""
    dtype, (sizes, count) = run.attrs["dtype"], stated(shape)
    words = generator(run).take(_groups(count, each(dtype)), count * RESERVED)
    return _made(run, normals(words, dtype), sizes, count, dtype)


@kernel()
def truncated_normal(run: Run, shape: Array) -> Array:
    """Standard normal numbers within 2 of 0. Every group has words of its own, so that rejection moves nothing else."""
    dtype, (sizes, count) = run.attrs["dtype"], stated(shape)
    wide = each(dtype)
    skip = wide * RESERVED // 4
    source = generator(run)
    start, groups = source.at, _groups(count, wide)
    source.at += count * RESERVED
    kind = np.float64 if dtype is FLOAT64 else np.float32
    numbers = np.zeros((groups, wide), kind)
    filled = np.zeros(groups, np.int64)
    step = 0
    while groups and filled.min() < wide:
        words = philox(source.key, source.stream, start + step, groups, skip)
        drawn = normals(words, dtype)
        for column in range(drawn.shape[1]):
            fits = (np.abs(drawn[:, column]) < 2) & (filled < wide)
            numbers[np.flatnonzero(fits), filled[fits]] = drawn[fits, column]
            filled += fits
        step += 1
    return _made(run, numbers, sizes, count, dtype)


@kernel()
def uniform_int(run: Run, shape: Array, minval: Array, maxval: Array) -> Array:
    """Integers in [minval, maxval)."""
    (sizes, count), low, high = stated(shape), integer(minval), integer(maxval)
    if low >= high and count:
        run.fail("maxval", wanted=f"be above minval {low}", got=high)
    dtype = element_type(minval)
    if dtype.itemsize == 4:
        words = generator(run).take(_groups(count, 4), count * RESERVED).astype(np.uint64)
    else:
        pairs = generator(run).take(_groups(count, 2), count * RESERVED).astype(np.uint64)
        words = pairs[:, 0::2] | pairs[:, 1::2] << np.uint64(32)
    offsets = words % np.uint64(max(1, high - low))
    return _made(run, (offsets.astype(np.int64) + low), sizes, count, dtype)


@kernel()
def shuffle(run: Run, value: Array) -> Array:
    """Rows in random order: each place takes one of the rows that are left."""
    if len(value.shape) == 0 or value.shape[0] <= 1:
        return value
    rows = value.shape[0]
    words = generator(run).take(_groups(rows - 1, 4), _groups(rows - 1, 4)).reshape(-1)
    order = list(range(rows))
    for index in range(rows - 1):
        other = index + int(words[index]) % (rows - index)
        order[index], order[other] = order[other], order[index]
    if isinstance(value, np.ndarray):
        return to_numpy(value)[order]
    return run.xp.take(value, moved_to(np.asarray(order), value), axis=0)
