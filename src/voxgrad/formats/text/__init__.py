# SPDX-License-Identifier: Apache-2.0
"""Text forms: what a person types for a value, strictly read.

    parse_attr(attr, "1,2,2,2,1")             # (1, 2, 2, 2, 1): by the kind of the attribute
    parse_attrs(op, "data_format_ = NDHWC;")  # {"data_format": "NDHWC"}
    parse_value("{{1,2},{3,4}}")              # an int32 array of shape [2,2]
    parse_flat("1;2;3;4", FLOAT32, (2, 2))    # a flat array with its type and shape

Nothing is guessed: a text that could be misread is a `TextError` that points at the character and says the right form.
"""

from voxgrad.formats.text.attrs import Assignment as Assignment
from voxgrad.formats.text.attrs import parse_attr as parse_attr
from voxgrad.formats.text.attrs import parse_attrs as parse_attrs
from voxgrad.formats.text.attrs import split_attrs as split_attrs
from voxgrad.formats.text.blocks import gives as gives
from voxgrad.formats.text.blocks import set_text as set_text
from voxgrad.formats.text.lists import parse_floats as parse_floats
from voxgrad.formats.text.lists import parse_ints as parse_ints
from voxgrad.formats.text.reader import TextError as TextError
from voxgrad.formats.text.shapes import parse_shape as parse_shape
from voxgrad.formats.text.shapes import parse_shapes as parse_shapes
from voxgrad.formats.text.shapes import parse_type as parse_type
from voxgrad.formats.text.shapes import parse_types as parse_types
from voxgrad.formats.text.values import parse_flat as parse_flat
from voxgrad.formats.text.values import parse_value as parse_value
from voxgrad.formats.text.variations import split_values as split_values
