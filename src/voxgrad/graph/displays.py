# SPDX-License-Identifier: Apache-2.0
"""Displays: what a page shows on its drawing besides its blocks. `display_kinds` declares the kinds.

    page.displays.add("trend", [loss], {"title": "loss", "log": True}, position=(400, 0))
    page.displays.add("value", [Shown(y.output(0), (0, 1))], {"format": "%.3f"})

A display is bound to outputs, as a wire is: it stays with a block that is renamed and loses one that is removed. No run
and no inference depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from voxgrad.arguments import checked
from voxgrad.errors import Fault, Faults, InvalidArgumentError, show
from voxgrad.graph.block import Block, Output
from voxgrad.graph.display_kinds import KINDS, DisplayKind
from voxgrad.graph.names import checked_path, free_name

if TYPE_CHECKING:
    from voxgrad.graph.page import Store

Point = tuple[float, float]

FARTHEST = 1e6
"""Coordinates beyond this are typing errors."""
_MOST_AXES = 32
_MOST_LABEL = 200


@dataclass(frozen=True, slots=True)
class Shown:
    """An output that a display is bound to: all of it, or what lies at some first indices, under a label."""

    output: Output
    at: tuple[int, ...] = ()
    label: str = ""

    @property
    def path(self) -> str:
        """What is shown, as `block.pin` with its indices: `pool.output[0][1]`."""
        return self.output.path + "".join(f"[{one}]" for one in self.at)


class Display:
    """One display of a page, made and changed by its page's `displays`."""

    __slots__ = ("attrs", "kind", "name", "of", "position", "size")

    def __init__(self, name: str, kind: DisplayKind):
        self.name = name
        self.kind = kind
        self.of: tuple[Shown, ...] = ()
        self.attrs: dict[str, Any] = {}
        self.position: Point = (0.0, 0.0)
        self.size: Point = kind.size

    def value(self, attr: str) -> Any:
        """An attribute, or its default."""
        declared = self.kind.attr(attr)
        return self.attrs.get(attr, None if declared is None else declared.default)

    def __repr__(self) -> str:
        return f"<Display {self.name} {self.kind.name}>"


@checked
class Displays:
    """The displays of a page, in the order in which they are drawn."""

    def __init__(self, store: Store):
        self._store = store
        self._all: dict[str, Display] = {}
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Display]:
        return iter(list(self._all.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __getitem__(self, which: Display | str) -> Display:
        name = which.name if isinstance(which, Display) else which
        found = self._all.get(name)
        if found is None:
            raise InvalidArgumentError(Fault("VG050", "Page", name, "be a display of this page", show(name)))
        return found

    def add(
        self,
        kind: str,
        of: Sequence[Shown | Output | Block | str] = (),
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        position: Sequence[float] = (0.0, 0.0),
        size: Sequence[float] | None = None,
    ) -> Display:
        """Put a display on the page. A name that is taken gets a number."""
        declared = KINDS.get(kind)
        if declared is None:
            raise InvalidArgumentError(Fault("VG053", "Page", "kind", f"be one of {', '.join(KINDS)}", show(kind)))
        display = Display(self.free_name(name or kind), declared)
        display.position = _point(display.name, "position", position, -FARTHEST)
        display.size = _point(display.name, "size", declared.size if size is None else size, 1)
        display.of = self._shown(display, of)
        display.attrs = _attrs(display, attrs or {})
        self._all[display.name] = display
        return display

    def free_name(self, name: str) -> str:
        """The name, or the name with the first free number behind it."""
        return free_name(checked_path(name), self._all.__contains__, self._numbers)

    def remove(self, which: Display | str) -> None:
        """Take a display away."""
        name = self[which].name
        del self._all[name]
        self._numbers.pop(name.rpartition("_")[0], None)

    def rename(self, which: Display | str, name: str) -> None:
        """Give a display another name; one that is taken is an error."""
        display = self[which]
        if checked_path(name) != display.name and name in self._all:
            raise InvalidArgumentError(Fault("VG060", "Page", "name", "be one that no other display has", show(name)))
        self._all = {name if one is display else old: one for old, one in self._all.items()}
        self._numbers.pop(display.name.rpartition("_")[0], None)
        display.name = name

    def place(
        self, which: Display | str, position: Sequence[float] | None = None, size: Sequence[float] | None = None
    ) -> None:
        """Move a display, or give it another size, or both."""
        display = self[which]
        here = display.position if position is None else _point(display.name, "position", position, -FARTHEST)
        sized = display.size if size is None else _point(display.name, "size", size, 1)
        display.position, display.size = here, sized

    def set_attr(self, which: Display | str, attr: str, value: Any) -> None:
        """Give an attribute a value; None takes it back to its default."""
        display = self[which]
        display.attrs = _attrs(display, display.attrs | {attr: value})

    def show(self, which: Display | str, of: Sequence[Shown | Output | Block | str]) -> None:
        """Bind a display to other outputs."""
        display = self[which]
        display.of = self._shown(display, of)

    def _shown(self, display: Display, of: Sequence[Shown | Output | Block | str]) -> tuple[Shown, ...]:
        if len(of) > display.kind.takes:
            wanted = f"hold at most {display.kind.takes} outputs: it is a {display.kind.name}"
            raise InvalidArgumentError(Fault("VG053", "Page", f"{display.name}.of", wanted, str(len(of))))
        page = self._store.root
        made = [one if isinstance(one, Shown) else Shown(page.output(one)) for one in of]
        for one in made:
            page.output(one.output)
            if len(one.at) > _MOST_AXES or not all(0 <= index < 2**31 for index in one.at):
                wanted = f"be at most {_MOST_AXES} indices from 0 on"
                raise InvalidArgumentError(Fault("VG053", "Page", f"{display.name}.of", wanted, show(list(one.at))))
        return tuple(replace(one, label=one.label[:_MOST_LABEL]) for one in made)

    def rebind(self, change: Callable[[Output], Output | None]) -> None:
        """Bind all displays to what their outputs have become; None for an output that is gone."""
        for display in self._all.values():
            moved = [(one, change(one.output)) for one in display.of]
            display.of = tuple(replace(one, output=now) for one, now in moved if now is not None)

    def copy(self, display: Display, change: Callable[[Output], Output | None], name: str) -> Display:
        """A display of another page on this one, bound to what its outputs are here."""
        moved = [(one, change(one.output)) for one in display.of]
        of = [replace(one, output=now) for one, now in moved if now is not None]
        place = {"position": display.position, "size": display.size}
        return self.add(display.kind.name, of, display.attrs, name=name, **place)


def _attrs(display: Display, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that differ from their defaults, in the order of the declaration."""
    faults = Faults("Page")
    for name, value in attrs.items():
        declared = display.kind.attr(str(name))
        known = ", ".join(one.name for one in display.kind.attrs)
        if declared is None:
            wanted = f"be one of {known}: it is a {display.kind.name}"
            faults.add("VG053", f"{display.name}.attrs", wanted=wanted, got=show(name))
        elif value is not None and (fault := declared.fault(value)) is not None:
            faults.add("VG053", f"{display.name}.attrs.{name}", wanted=fault[0], got=fault[1])
    faults.raise_if_any()
    return {
        one.name: attrs[one.name]
        for one in display.kind.attrs
        if attrs.get(one.name) is not None and attrs[one.name] != one.default
    }


def _point(name: str, what: str, given: Sequence[float], least: float) -> Point:
    """Two numbers, rounded as files have them."""
    numbers = [one for one in given if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if (
        len(numbers) != 2
        or len(given) != 2
        or not all(least <= one <= FARTHEST and math.isfinite(one) for one in numbers)
    ):
        wanted = f"be two numbers from {least:g} to {FARTHEST:g}"
        raise InvalidArgumentError(Fault("VG053", "Page", f"{name}.{what}", wanted, show(list(given)[:4])))
    return round(float(numbers[0]), 2), round(float(numbers[1]), 2)
