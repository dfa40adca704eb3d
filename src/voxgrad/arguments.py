# SPDX-License-Identifier: Apache-2.0
"""The door of public functions: arguments are held to the annotations before the function sees them.

    @checked
    def gradients(ys: Output | Sequence[Output], ...): ...
    gradients(None)   # VG002 gradients: ys must be an Output or a list of Outputs; got NoneType None.

A class that is `checked` has all of its public methods checked. Everything that is wrong with a call is told together.
"""

from __future__ import annotations

import inspect
import operator
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from voxgrad.errors import Faults, show

Checked = TypeVar("Checked", bound=Callable[..., Any])
Test = Callable[[Any], bool]
_TEXT = (str, bytes, bytearray)


def checked(what: Checked) -> Checked:
    """A function, or a class with its public methods, that refuses wrong arguments in the words of this package."""
    if not isinstance(what, type):
        return typing.cast(Checked, _checked_function(what))
    for name, member in list(vars(what).items()):
        if name.startswith("_") and name not in ("__init__", "__getitem__"):
            continue
        if isinstance(member, staticmethod):
            setattr(what, name, staticmethod(_checked_function(member.__func__)))
        elif isinstance(member, property) and member.fset is not None:
            setattr(what, name, member.setter(_checked_function(member.fset)))
        elif inspect.isfunction(member):
            setattr(what, name, _checked_function(member))
    return what


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    names = tuple(one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD))
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = frozenset(one.name for one in parameters if one.default is one.empty and one.kind not in open_ended)
    tests: dict[str, tuple[Test, str]] = {}

    def fits(positional: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Whether a call is right, at the cost of a look at each argument."""
        if len(positional) > len(names) or not required.issubset((*names[: len(positional)], *named)):
            return False
        return all(tests[name][0](value) for name, value in zip(names, positional, strict=False)) and all(
            name in tests and tests[name][0](value) for name, value in named.items()
        )

    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        if not tests:
            tests.update(_tests(function, signature))
        if not fits(positional, named):
            # Wrong, or one of those calls that take any number of arguments.
            _refuse(function.__qualname__.removesuffix(".__init__"), signature, tests, positional, named)
        return function(*positional, **named)

    return call


def _refuse(title: str, signature: inspect.Signature, tests: Mapping[str, Any], positional: Any, named: Any) -> None:
    """Raise what is wrong with a call, if it is wrong."""
    faults = Faults(title)
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as error:
        listed = ", ".join(name for name in signature.parameters if name != "self") or "none"
        faults.add("VG001", "arguments", wanted=f"be {listed}", got=str(error))
        raise faults.error() from None
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        given = value.values() if kind is inspect.Parameter.VAR_KEYWORD else value
        for one in given if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) else [value]:
            test, wanted = tests.get(name, (None, ""))
            if test is not None and not test(one):
                faults.add("VG002", name, wanted=f"be {wanted}", got=f"{type(one).__name__} {show(one)}")
    faults.raise_if_any()


def _tests(function: Callable[..., Any], signature: inspect.Signature) -> dict[str, tuple[Test, str]]:
    """A test and its words for every parameter."""
    found = {}
    scope = vars(inspect.getmodule(function) or types)
    for name, parameter in signature.parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, dict(scope), {})  # the text of an annotation in this package's own source
            except NameError:
                annotation = Any
        found[name] = _test(annotation), _words(annotation)
    return found


def _anything(_: Any) -> bool:
    return True


def _test(wanted: Any) -> Test:
    """What tells whether a value is of an annotated kind."""
    origin, args = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted in (Any, inspect.Parameter.empty, object) or isinstance(wanted, TypeVar):
        return _anything
    if origin in (typing.Union, types.UnionType):
        some = [_test(one) for one in args]
        return lambda value: any(test(value) for test in some)
    if wanted is None or wanted is types.NoneType:
        return lambda value: value is None
    if origin is typing.Literal:
        return lambda value: isinstance(value, str) and value in args
    if wanted is int:
        return _is_integer
    if wanted is float:
        return _is_number
    if wanted is bool:
        return lambda value: isinstance(value, bool) or type(value).__name__ == "bool"
    kind = origin or wanted
    if kind is Callable or kind is typing.Callable:
        return callable
    if kind in (Sequence, list, Collection, tuple, Iterable):
        return _list_test(kind, args)
    if kind is Mapping or kind is dict:
        keys, values = (_test(args[0]), _test(args[1])) if args else (_anything, _anything)
        return lambda value: isinstance(value, Mapping) and all(keys(k) and values(v) for k, v in value.items())
    if kind is os.PathLike:
        return lambda value: isinstance(value, os.PathLike)
    return (lambda value: isinstance(value, kind)) if isinstance(kind, type) else _anything


def _list_test(kind: Any, args: tuple[Any, ...]) -> Test:
    if kind is tuple and args and args[-1] is not Ellipsis:
        each = [_test(one) for one in args]
        return lambda value: (
            isinstance(value, (tuple, list))
            and len(value) == len(each)
            and all(test(one) for test, one in zip(each, value, strict=True))
        )
    one = _test(args[0]) if args else _anything
    # What can be gone through only once is not looked into.
    known = (list, tuple, set, frozenset, dict) if kind is Iterable or kind is Collection else (list, tuple)
    if kind is Iterable:
        return lambda value: (
            (isinstance(value, Iterable) and not isinstance(value, _TEXT))
            and (not isinstance(value, known) or all(map(one, value)))
        )
    return lambda value: (
        (isinstance(value, (*known, Sequence)) or (type(value).__name__ == "ndarray" and value.ndim == 1))
        and not isinstance(value, _TEXT)
        and all(map(one, value))
    )


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool) or (hasattr(value, "shape") and getattr(value, "shape", ()) != ()):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, float) or _is_integer(value) or "floating" in (kind.__name__ for kind in type(value).__mro__)
    )


def _words(wanted: Any, many: bool = False) -> str:
    """An annotation as people say it; `many` of them."""
    origin, args = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(one, many) for one in args))
    plain = {int: ("an integer", "integers"), float: ("a number", "numbers"), bool: ("True or False", "truths"),
             str: ("text", "texts"), None: ("None", "None"), types.NoneType: ("None", "None"),
             os.PathLike: ("a path", "paths")}  # fmt: skip
    kind = origin or wanted
    if kind in plain:
        return plain[kind][many]
    if origin is typing.Literal:
        return " or ".join(map(repr, args))
    if kind in (Sequence, list, Collection, Iterable, tuple):
        entries = _words(args[0], True) if args and args[0] is not Any else "values"
        count = f"{len(args)} " if kind is tuple and args and args[-1] is not Ellipsis else ""
        return f"{'lists' if many else 'a list'} of {count}{entries}"
    if kind is Mapping or kind is dict:
        return "dictionaries" if many else "a dictionary"
    if kind is Callable:
        return "functions" if many else "a function"
    name = getattr(kind, "__name__", "value")
    return f"{name}s" if many else f"a{'n' if name[0] in 'AEIOU' else ''} {name}"
