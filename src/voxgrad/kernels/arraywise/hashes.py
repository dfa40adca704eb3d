# SPDX-License-Identifier: Apache-2.0
"""Hashes of bytes as TensorFlow has them: the same text falls into the same bucket."""

from __future__ import annotations

from collections.abc import Sequence

_MASK = 2**64 - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MUL = 0xC6A4A7935BD1E995


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _turned(value: int, by: int) -> int:
    """Rotated to the right."""
    value &= _MASK
    return (value >> by | value << (64 - by)) & _MASK


def _mixed(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def hash64(data: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """Murmur's 64-bit hash, as TensorFlow's Hash64."""
    h = seed ^ len(data) * _MUL & _MASK
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        h = (h ^ _mixed(_word(data, at) * _MUL) * _MUL & _MASK) * _MUL & _MASK
    if whole < len(data):
        h = (h ^ _word(data, whole)) * _MUL & _MASK
    return _mixed(_mixed(h) * _MUL)


def _pair(u: int, v: int, mul: int) -> int:
    a = _mixed((u ^ v) * mul)
    return _mixed((v ^ a) * mul) * mul & _MASK


def _short(data: bytes) -> int:
    """FarmHash of up to 16 bytes."""
    size = len(data)
    mul = _K2 + size * 2
    if size >= 8:
        a, b = _word(data, 0) + _K2 & _MASK, _word(data, size - 8)
        return _pair(_turned(b, 37) * mul + a & _MASK, (_turned(a, 25) + b) * mul & _MASK, mul)
    if size >= 4:
        return _pair(size + (_word(data, 0, 4) << 3), _word(data, size - 4, 4), mul)
    if size:
        y, z = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _ends(data: bytes, a: int, c: int, mul: int) -> tuple[int, int]:
    """What FarmHash mixes of the first and the last 16 bytes."""
    b, d = _word(data, 8), _word(data, len(data) - 16) * _K2
    return _turned(a + b, 43) + _turned(c, 30) + d & _MASK, a + _turned(b + _K2, 18) + c & _MASK


def _medium(data: bytes) -> int:
    """FarmHash of 17 to 64 bytes."""
    size = len(data)
    mul = _K2 + size * 2
    if size <= 32:
        return _pair(*_ends(data, _word(data, 0) * _K1, _word(data, size - 8) * mul, mul), mul)
    a = _word(data, 0) * _K2
    y, last = _ends(data, a, _word(data, size - 8) * mul, mul)
    z = _pair(y, last, mul)
    e, f = _word(data, 16) * mul, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * mul, (z + _word(data, size - 24)) * mul
    return _pair(_turned(e + f, 43) + _turned(g, 30) + h & _MASK, e + _turned(f + a, 18) + g & _MASK, mul)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(data, at + 8 * index) for index in range(4))
    a = a + w & _MASK
    b = _turned(b + a + z, 21)
    c = a
    a = a + x + y & _MASK
    return a + z & _MASK, b + _turned(a, 44) + c & _MASK


def fingerprint64(data: bytes) -> int:
    """FarmHash's fingerprint of 64 bits."""
    size = len(data)
    if size <= 64:
        return _short(data) if size <= 16 else _medium(data)
    x, y = 81, 81 * _K1 + 113 & _MASK
    z = _mixed(y * _K2 + 113) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(data, 0) & _MASK

    def step(at: int, mul: int, nine: int) -> None:
        nonlocal x, y, z, v, w
        x = _turned(x + y + v[0] + _word(data, at + 8), 37) * mul & _MASK
        y = _turned(y + v[1] + _word(data, at + 48), 42) * mul & _MASK
        x ^= w[1] * nine & _MASK
        y = y + v[0] * nine + _word(data, at + 40) & _MASK
        z = _turned(z + w[0], 33) * mul & _MASK
        v = _weak(data, at, v[1] * mul, x + w[0])
        w = _weak(data, at + 32, z + w[1], y + _word(data, at + 16))
        z, x = x, z

    for at in range(0, (size - 1) // 64 * 64, 64):
        step(at, _K1, 1)
    mul = _K1 + ((z & 0xFF) << 1)
    first = w[0] + (size - 1 & 63)
    v = (v[0] + first & _MASK, v[1])
    w = (first + v[0] & _MASK, w[1])
    step(size - 64, mul, 9)
    left = _pair(v[0], w[0], mul) + _mixed(y) * _K0 + z
    return _pair(left & _MASK, _pair(v[1], w[1], mul) + x & _MASK, mul)


def joined64(left: int, right: int) -> int:
    """One fingerprint of two, as TensorFlow's FingerprintCat64."""
    made = left ^ _MUL ^ _mixed(right * _MUL) * _MUL & _MASK
    return _mixed(_mixed(made * _MUL) * _MUL)


def sip_hash(data: bytes, key: Sequence[int]) -> int:
    """SipHash-2-4 with a key of two words."""
    k0, k1 = (one & _MASK for one in key)
    v0, v1, v2, v3 = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )

    def rounds(count: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0, v2 = v0 + v1 & _MASK, v2 + v3 & _MASK
            v1, v3 = _turned(v1, 51) ^ v0, _turned(v3, 48) ^ v2
            v0, v2 = _turned(v0, 32) + v3 & _MASK, v2 + v1 & _MASK
            v3, v1 = _turned(v3, 43) ^ v0, _turned(v1, 47) ^ v2
            v2 = _turned(v2, 32)

    whole = len(data) // 8 * 8
    last = (len(data) & 0xFF) << 56 | _word(data, whole)
    for word in (*(_word(data, at) for at in range(0, whole, 8)), last):
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v0 ^ v1 ^ v2 ^ v3
