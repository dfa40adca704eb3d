# SPDX-License-Identifier: Apache-2.0
"""The forms in which a value of each kind may be typed, with a sample of each that reads."""

from __future__ import annotations

from voxgrad.catalog.model import Attr, Input

FORMS = {
    "int": ("3", "-1", "0x1F"),
    "ints": ("1,2,2,2,1", "{1,2,2,2,1}", "1;2;2;2;1"),
    "float": ("0.5", "1e-3", "2.0f"),
    "floats": ("1.0,1.5", "{1.0,1.5}"),
    "bool": ("true", "false"),
    "string": ("text",),
    "strings": ("one;two", "{one,two}"),
    "type": ("DT_FLOAT", "float32"),
    "types": ("DT_FLOAT,DT_INT32", "{float32,int32}"),
    "shape": ("[2][3]", "{2,3}"),
    "shapes": ("{2,3},{4}",),
    "tensor": ("5", "{1,2}", "{{1,2},{3,4}}"),
}
"""Per kind of attribute. A tensor that is typed on a pin has the forms of `tensor`."""


def forms_of(item: Input | Attr) -> tuple[str, ...]:
    """How a value of an argument may be typed."""
    if isinstance(item, Input):
        return FORMS["ints" if item.host and item.shape not in ("[]", "") else "tensor"]
    if item.choices and item.kind == "string":
        return tuple(map(str, item.choices))
    if item.kind == "ints" and item.length is not None and item.length != 5:
        plain = ",".join(["1", *["2"] * (item.length - 2), "1"])
        return plain, f"{{{plain}}}"
    return FORMS[item.kind]
