# SPDX-License-Identifier: Apache-2.0
"""Edits of a page as data: what fixes are made of, and what a studio or a script can send.

    {"do": "add", "op": "Cast", "name": "cast", "attrs": {...}, "inputs": {"x": [{"from": "a.output"}]}}
    {"do": "remove", "block": "cast"}                      {"do": "rename", "block": "cast", "name": "to_float"}
    {"do": "move", "block": "cast", "position": [10, 20]}  {"do": "semantics", "value": "tf_cpu"}
    {"do": "set_attr", "block": "pool", "attr": "padding", "value": "SAME"}          (a value of None: the default)
    {"do": "set_value", "block": "half", "pin": "y", "value": 0.5, "dtype": "float32"}
    {"do": "connect", "from": "cast.output", "block": "pool", "pin": "input"}        ("at": 1 for an entry of a list)
    {"do": "disconnect", "block": "pool", "pin": "input"}
    {"do": "run_after", "block": "step", "others": ["print"]}        {"do": "no_longer_after", ...}
    {"do": "mode", "block": "pool", "value": "bypassed"}   (or "muted", or "": it works)
    {"do": "set_text", "block": "pool", "name": "ksize", "text": "{1,2,2,2,1}"}      (as people type it; "": default)
    {"do": "gradients", "of": ["y"], "with_respect_to": ["x"], "order": 2}           (without: all that the blocks read)
    {"do": "fold", "blocks": ["conv", "relu"], "name": "layer"}      {"do": "inline", "block": "layer"}
    {"do": "define", "pages": {"layer": {...}}}            (a page in place of the one of that name, or a new one)
    {"do": "expose", "outputs": {"y": "pool.output"}, "inputs": ["x"]}               (of both, what is left out stays)
    {"do": "execute", "blocks": ["step"]}                  {"do": "start_with", "blocks": ["w/initialize"]}
    {"do": "group", "title": "loss", "blocks": ["mul", "sum"], "colour": "blue", "collapsed": True, "name": "error"}
    {"do": "ungroup", "title": "loss"}
    {"do": "paste", "blocks": [...], "pages": {...}, "displays": [...], "shift": [40, 40]}     (as a page file has them)

    {"do": "add", "display": "trend", "name": "loss", "of": [{"from": "mean.output"}], "attrs": {...},
     "position": [0, 0], "size": [320, 200]}               (all but the kind may be left out)
    {"do": "remove", "display": "loss"}                    {"do": "rename", "display": "loss", "name": "cost"}
    {"do": "move", "display": "loss", "position": [10, 20], "size": [320, 200]}      (one of them, or both)
    {"do": "set_attr", "display": "loss", "attr": "log", "value": true}
    {"do": "show", "display": "loss", "of": [{"from": "mean.output", "at": [0], "label": "first"}]}

Edits are carried out whole or not at all. Where the name of an added block is taken it gets a number, and the edits
behind it mean the new name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from voxgrad.arguments import checked
from voxgrad.doors import through
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import Output, Source, Value
from voxgrad.graph.block_gradients import add_gradients
from voxgrad.graph.data import paste, shown_of
from voxgrad.graph.page import Page
from voxgrad.graph.problems import Fix

Edit = Mapping[str, Any]
_Names = dict[str, str]


@checked
def apply(page: Page, fix: Fix | Edit | Sequence[Edit]) -> None:
    """Carry out a fix, one edit, or several."""
    if isinstance(fix, Mapping):
        edits: Sequence[Edit] = fix.get("edits", [fix])
    else:
        edits = fix.edits if isinstance(fix, Fix) else fix
    if len(edits) > 1 or any(edit.get("do") in _IN_STEPS for edit in edits):
        # A rehearsal on a copy: if one edit is refused, the page stays as it was.
        copy = Page.from_dict(page.to_dict())
        copy.files = page.files
        _carry_out(copy, edits)
    _carry_out(page, edits)


def _carry_out(page: Page, edits: Sequence[Edit]) -> None:
    names: _Names = {}
    for edit in edits:
        kind = edit.get("do")
        action = (_DISPLAY_ACTIONS if "display" in edit else _ACTIONS).get(str(kind))
        if action is None:
            raise _malformed("do", f"be one of {', '.join(NAMES)}", kind)
        try:
            action(page, edit, names)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, InvalidArgumentError):
                raise
            raise _malformed(str(kind), "have all of its entries", f"{type(error).__name__} {error}") from error


def _malformed(argument: str, wanted: str, got: Any) -> InvalidArgumentError:
    return InvalidArgumentError(Fault("VG053", "Page.apply", argument, wanted, repr(got)[:80]))


def _source(page: Page, data: Mapping[str, Any], names: _Names) -> Source:
    if "from" in data:
        return _output(page, data["from"], names)
    return Value(data["value"], data.get("dtype", ""))


def _output(page: Page, path: str, names: _Names) -> Output:
    block, _, pin = path.rpartition(".")
    return page.block(names.get(block, block)).output(pin)


def _add(page: Page, edit: Edit, names: _Names) -> None:
    inputs = {pin: [_source(page, one, names) for one in sources] for pin, sources in edit.get("inputs", {}).items()}
    position = tuple(map(float, edit["position"])) if edit.get("position") is not None else None
    wanted = edit.get("name") or edit.get("op") or edit.get("page")
    if "page" in edit:
        block = page.use(edit["page"], inputs, name=wanted)
    else:
        block = page.add(edit["op"], inputs, edit.get("attrs"), name=wanted)
    if position is not None:
        page.move(block, *position)
    names[str(wanted)] = block.name


def _remove(page: Page, edit: Edit, names: _Names) -> None:
    page.remove(_named(edit, names))


def _rename(page: Page, edit: Edit, names: _Names) -> None:
    page.rename(_named(edit, names), edit["name"])


def _move(page: Page, edit: Edit, names: _Names) -> None:
    x, y = edit["position"]
    page.move(_named(edit, names), x, y)


def _set_attr(page: Page, edit: Edit, names: _Names) -> None:
    page.set_attr(_named(edit, names), edit["attr"], edit["value"])


def _set_value(page: Page, edit: Edit, names: _Names) -> None:
    page.set_value(_named(edit, names), edit["pin"], edit["value"], edit.get("dtype", ""))


def _connect(page: Page, edit: Edit, names: _Names) -> None:
    page.connect(_output(page, edit["from"], names), _named(edit, names), edit["pin"], edit.get("at"))


def _disconnect(page: Page, edit: Edit, names: _Names) -> None:
    page.disconnect(_named(edit, names), edit["pin"], edit.get("at"))


def _run_after(page: Page, edit: Edit, names: _Names) -> None:
    page.run_after(_named(edit, names), *(names.get(other, other) for other in edit["others"]))


def _no_longer_after(page: Page, edit: Edit, names: _Names) -> None:
    page.no_longer_after(_named(edit, names), *(names.get(other, other) for other in edit["others"]))


def _set_semantics(page: Page, edit: Edit, names: _Names) -> None:
    page.semantics = edit["value"]


def _set_mode(page: Page, edit: Edit, names: _Names) -> None:
    page.set_mode(_named(edit, names), edit["value"])


def _set_text(page: Page, edit: Edit, names: _Names) -> None:
    through("text").set_text(page, page.block(_named(edit, names)), edit["name"], edit["text"])


def _gradients(page: Page, edit: Edit, names: _Names) -> None:
    xs = edit.get("with_respect_to")
    add_gradients(page, _all_named(edit["of"], names), _all_named(xs, names) if xs else None, edit.get("order", 1))


def _fold(page: Page, edit: Edit, names: _Names) -> None:
    page.fold(_all_named(edit["blocks"], names), edit["name"])


def _inline(page: Page, edit: Edit, names: _Names) -> None:
    page.inline(_named(edit, names))


def _define(page: Page, edit: Edit, names: _Names) -> None:
    for name, data in edit["pages"].items():
        made = Page.from_dict(data)
        if name in page.pages:
            page.redefine(name, made)
        else:
            page.define(name, made)


def _expose(page: Page, edit: Edit, names: _Names) -> None:
    outputs, inputs = page.outputs, page.store.inputs
    if "outputs" in edit:
        outputs = {pin: _output(page, path, names) for pin, path in edit["outputs"].items()}
    page.expose(outputs, _all_named(edit["inputs"], names) if "inputs" in edit else inputs)


def _execute(page: Page, edit: Edit, names: _Names) -> None:
    page.execute(_all_named(edit["blocks"], names))


def _start_with(page: Page, edit: Edit, names: _Names) -> None:
    page.start_with(_all_named(edit["blocks"], names))


def _paste(page: Page, edit: Edit, names: _Names) -> None:
    given = {key: edit[key] for key in ("blocks", "pages", "displays") if key in edit}
    paste(page, given, edit.get("shift", (0.0, 0.0)))


def _add_display(page: Page, edit: Edit, names: _Names) -> None:
    of = _renamed(edit.get("of", ()), names)
    made = page.displays.add(
        edit["display"], shown_of(page, of), edit.get("attrs"), name=edit.get("name"),
        position=edit.get("position", (0.0, 0.0)), size=edit.get("size"),
    )  # fmt: skip
    names[f"display:{edit.get('name') or edit['display']}"] = made.name


def _renamed(of: Sequence[Mapping[str, Any]], names: _Names) -> list[dict[str, Any]]:
    """Outputs of blocks that got a number when they were added."""
    parted = [(one, *one["from"].rpartition(".")) for one in of]
    return [{**one, "from": f"{names.get(block, block)}.{pin}"} for one, block, _, pin in parted]


def _display(edit: Edit, names: _Names) -> str:
    given: str = edit["display"]
    return names.get(f"display:{given}", given)


def _remove_display(page: Page, edit: Edit, names: _Names) -> None:
    page.displays.remove(_display(edit, names))


def _rename_display(page: Page, edit: Edit, names: _Names) -> None:
    page.displays.rename(_display(edit, names), edit["name"])


def _place_display(page: Page, edit: Edit, names: _Names) -> None:
    page.displays.place(_display(edit, names), edit.get("position"), edit.get("size"))


def _set_display_attr(page: Page, edit: Edit, names: _Names) -> None:
    page.displays.set_attr(_display(edit, names), edit["attr"], edit["value"])


def _show(page: Page, edit: Edit, names: _Names) -> None:
    page.displays.show(_display(edit, names), shown_of(page, _renamed(edit["of"], names)))


def _group(page: Page, edit: Edit, names: _Names) -> None:
    changes = {key: edit[key] for key in ("colour", "collapsed", "name") if key in edit}
    if "blocks" in edit:
        changes["blocks"] = _all_named(edit["blocks"], names)
    page.group(edit["title"], **changes)


def _ungroup(page: Page, edit: Edit, names: _Names) -> None:
    page.ungroup(edit["title"])


def _named(edit: Edit, names: _Names) -> str:
    return _all_named([edit["block"]], names)[0]


def _all_named(blocks: Sequence[str], names: _Names) -> list[str]:
    return [names.get(str(name), str(name)) for name in blocks]


_ACTIONS: dict[str, Callable[[Page, Edit, _Names], None]] = {
    "add": _add,
    "remove": _remove,
    "rename": _rename,
    "move": _move,
    "set_attr": _set_attr,
    "set_value": _set_value,
    "connect": _connect,
    "disconnect": _disconnect,
    "run_after": _run_after,
    "no_longer_after": _no_longer_after,
    "semantics": _set_semantics,
    "mode": _set_mode,
    "set_text": _set_text,
    "gradients": _gradients,
    "fold": _fold,
    "inline": _inline,
    "define": _define,
    "expose": _expose,
    "execute": _execute,
    "start_with": _start_with,
    "group": _group,
    "ungroup": _ungroup,
    "paste": _paste,
}
_DISPLAY_ACTIONS: dict[str, Callable[[Page, Edit, _Names], None]] = {
    "add": _add_display,
    "remove": _remove_display,
    "rename": _rename_display,
    "move": _place_display,
    "set_attr": _set_display_attr,
    "show": _show,
}
"""Edits that name a display."""
NAMES = tuple(_ACTIONS | _DISPLAY_ACTIONS)
"""What can stand behind "do"."""
_IN_STEPS = ("gradients", "fold", "inline", "paste", "define")
"""Edits that can be refused when they are half done."""
