# SPDX-License-Identifier: Apache-2.0
"""Properties that are computed at their first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class once(Generic[Value]):  # noqa: N801 - a decorator, as property is one
    """A property of an object that does not change, kept where it was first computed.

    That of functools has a lock in Python 3.11, one for all objects: a child that was forked while another thread held
    it would wait for ever. Two threads may compute the same value here.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: Any) -> once[Value]: ...
    @overload
    def __get__(self, instance: object, owner: Any) -> Value: ...
    def __get__(self, instance: Any, owner: Any) -> once[Value] | Value:
        if instance is None:
            return self
        value: Value = self._compute(instance)
        instance.__dict__[self._name] = value  # found before this next time
        return value
