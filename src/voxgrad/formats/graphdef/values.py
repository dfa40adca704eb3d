# SPDX-License-Identifier: Apache-2.0
"""Attribute values of a GraphDef: numbers, texts, types, shapes and tensors."""

from __future__ import annotations

from typing import Any

from voxgrad.kernels.tensor_proto import shape, tensor, type_of
from voxgrad.kernels.wire import Message, as_signed, decoded, floats


def attribute(message: Message) -> Any:
    """The value of an AttrValue, as plain data: types by name, shapes as lists, tensors as arrays."""
    if 8 in message.chunks:
        return tensor(message.message(8))
    if 1 in message.chunks:
        return _listed(message.message(1))
    if 7 in message.chunks:
        return shape(message.message(7))
    if 6 in message.numbers:
        return type_of(message.number(6), message.source).name
    if 2 in message.chunks:
        return decoded(message.chunk(2), message.source)
    if 3 in message.numbers:
        return message.signed(3)
    if 4 in message.chunks:
        return floats([message.chunk(4)])[0]
    return bool(message.number(5)) if 5 in message.numbers else None


def _listed(message: Message) -> list[Any]:
    if message.chunks.get(8):
        return [tensor(one) for one in message.messages(8)]
    if message.chunks.get(7):
        return [shape(one) for one in message.messages(7)]
    if types := message.packed(6):
        return [type_of(one, message.source).name for one in types]
    if message.chunks.get(2):
        return [decoded(one, message.source) for one in message.chunks[2]]
    if numbers := message.packed(3):
        return [as_signed(one) for one in numbers]
    if message.chunks.get(4):
        return list(floats(message.chunks[4]))
    return [bool(one) for one in message.packed(5)]
