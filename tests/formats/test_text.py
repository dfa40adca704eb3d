# SPDX-License-Identifier: Apache-2.0
"""Text forms: what is read, and where the error points for what is not."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxgrad as vg
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr
from voxgrad.catalog.registry import find
from voxgrad.formats import text as forms
from voxgrad.formats.text import TextError
from voxgrad.formats.text.tables import read_table

POOL = find("MaxPool3D")
CONV = find("Conv3D")
KINDS = (
    "int", "ints", "float", "floats", "bool", "string", "strings", "type", "types", "shape", "shapes", "tensor",
)  # fmt: skip


@pytest.mark.parametrize(
    "text", ["1,2,2,2,1", "{1,2,2,2,1}", "1;2;2;2;1;", "[1,2,2,2,1]", " 1, 2 ,2,2,1 ", "{1,2,2,2,1,}"]
)
def test_int_lists(text: str) -> None:
    assert forms.parse_attr(POOL.attr("ksize"), text) == (1, 2, 2, 2, 1)


# The comment says what the original system made of each text without a word.
@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("2abc,1", 1, "whole"),  # 2,1
        ("1.9,2", 1, "whole"),  # 1,2
        ("1,{2,2},1", 2, "flat"),  # 1,2,2,1
        ("1,,2", 2, "integer"),  # a silent stop of the whole load
        ("[2][3]", 3, "shape"),  # the same
        ("1 2", 2, "comma"),
        ("1,2;3", 3, "separator"),
        ("{1,2", 4, "}"),
        ("", 0, "list"),
        ("9999999999999999999", 0, "from -9223372036854775808"),
        ("٣,1", 0, "integer"),
    ],
)
def test_bad_int_lists(text: str, at: int, says: str) -> None:
    with pytest.raises(TextError) as caught:
        forms.parse_ints(text, "ksize", "MaxPool3D")
    assert caught.value.at == at
    assert says in str(caught.value)
    assert caught.value.faults[0].code == "VG052"


def test_hexadecimal_numbers() -> None:
    """Wherever a number is typed; an f behind 0x is a digit."""
    assert forms.parse_ints("0x1,-0X1f,0x7fffffffffffffff") == (1, -31, 2**63 - 1)
    assert forms.parse_floats("0x10;0.5") == (16.0, 0.5)
    assert forms.parse_shape("[0x2][3]") == (2, 3)
    found = forms.parse_value("{0xff,0x1e}")
    assert (found.dtype, found.tolist()) == (np.int32, [255, 30])
    assert forms.parse_value("{0x1f,0.5f}").tolist() == [31.0, 0.5]
    assert forms.parse_value("0x1F", dtypes.FLOAT64).item() == 31.0
    assert forms.parse_flat("0x1;0xA", dtypes.FLOAT32, (2,)).tolist() == [1.0, 10.0]
    assert forms.parse_value("range(0x1, 0x4)").tolist() == [1, 2, 3]
    for bad, at in (("0x", 1), ("0xg", 1), ("0x1.8", 1), ("1x2", 1), ("0x123456789abcdef01", 1)):
        with pytest.raises(TextError) as caught:
            forms.parse_ints(bad)
        assert caught.value.at == at, bad
    with pytest.raises(TextError, match="from -2147483648"):
        forms.parse_value("0xffffffff", dtypes.INT32)
    with pytest.raises(TextError, match="from -9223372036854775808"):
        forms.parse_ints("0xffffffffffffffff")


def test_complex_numbers_beyond_their_type_are_refused() -> None:
    assert forms.parse_value("{1+2j,3J}").tolist() == [1 + 2j, 3j]
    for bad in ("1e100", "1e100j", "{0,1-1e39j}"):
        with pytest.raises(TextError, match="within the range of complex64"):
            forms.parse_value(bad, dtypes.COMPLEX64)
        assert np.all(np.isfinite(forms.parse_value(bad, dtypes.COMPLEX128)))


def test_the_caret_stands_under_the_character() -> None:
    with pytest.raises(TextError) as caught:
        forms.parse_attrs(CONV, "padding = SAME;\ndata_format_ = NHWC;")
    line, caret = caught.value.faults[0].where.splitlines()
    assert line == "line 2: data_format_ = NHWC;"
    assert line[caret.index("^")] == "N"
    assert "'NDHWC' or 'NCDHW'" in str(caught.value)


def test_the_caret_stands_under_the_character_of_a_long_line() -> None:
    text = ",".join(["1"] * 500) + ",x," + ",".join(["1"] * 500)
    with pytest.raises(TextError) as caught:
        forms.parse_ints(text)
    line, caret = caught.value.faults[0].where.splitlines()
    assert len(line) < 90
    assert line[caret.index("^")] == "x"


def test_text_error_survives_pickling() -> None:
    with pytest.raises(TextError) as caught:
        forms.parse_ints("1,,2")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.text, again.at, str(again)) == ("1,,2", 2, str(caught.value))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("data_format_ = NDHWC;", {"data_format": "NDHWC"}),
        ("data_format=NCDHW", {"data_format": "NCDHW"}),
        ("strides = {1,2,2,2,1}; padding_ = SAME", {"strides": (1, 2, 2, 2, 1), "padding": "SAME"}),
        ("dilations_=1,1,1,1,1;", {"dilations": (1, 1, 1, 1, 1)}),
        ("", {}),
        (" \n", {}),
    ],
)
def test_attrs(text: str, wanted: dict[str, object]) -> None:
    assert forms.parse_attrs(CONV, text) == wanted


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("dialtions_ = 1,1,1,1,1", 0, "Did you mean dilations?"),  # an ignored key
        ("data_format_ NDHWC", 13, "="),  # ignored
        ("padding=SAME;padding=VALID", 13, "once"),  # the first won
        ("padding = same;", 10, "SAME"),
        ("padding=SAME data_format=NDHWC", 24, ";"),
        ("padding = ;", 10, "'SAME' or 'VALID'"),
        ("strides = ;", 10, "list"),  # an empty list
        ("= 3", 0, "name"),
    ],
)
def test_bad_attrs(text: str, at: int, says: str) -> None:
    with pytest.raises(TextError) as caught:
        forms.parse_attrs(CONV, text)
    assert caught.value.at == at
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["true", "TRUE", "True", "1"])
def test_true(text: str) -> None:
    assert forms.parse_attr(Attr("flag", "bool", ""), text) is True


@pytest.mark.parametrize("text", ["yes", "", "tru", "2", "true;"])
def test_neither_true_nor_false(text: str) -> None:
    with pytest.raises(TextError):
        forms.parse_attr(Attr("flag", "bool", ""), text)


def test_a_small_float_stays_what_it_is() -> None:
    # The original read 0.001 as the integer 0 in some attributes.
    assert forms.parse_attr(Attr("epsilon", "float", ""), "0.001") == 0.001
    assert forms.parse_attr(Attr("epsilon", "float", ""), "1.0f") == 1.0
    with pytest.raises(TextError):
        forms.parse_attr(Attr("epsilon", "float", ""), "0.001x")


@pytest.mark.parametrize(
    ("text", "dtype", "wanted"),
    [
        ("4", "int32", 4),
        ("{1,2}", "int32", [1, 2]),
        ("{{1,5,21},{15,12,22}}", "int32", [[1, 5, 21], [15, 12, 22]]),
        ("{1.0f,2.0f}", "float32", [1.0, 2.0]),
        ("{79 }", "int32", [79]),
        ("0.1", "float64", 0.1),
        ("1e3", "float64", 1000.0),
        ("{1+2j, -3j, 4}", "complex128", [1 + 2j, -3j, 4]),
        ("false", "bool", False),
        ("{true,False}", "bool", [True, False]),
        ("[[1,2],[3,4]]", "int32", [[1, 2], [3, 4]]),
        ('{"a b","c,\\"d"}', "object", [b"a b", b'c,"d']),
        ("-inf", "float64", float("-inf")),
        ("1,2,3,4", "int32", [1, 2, 3, 4]),
        ("1;2;3;4;", "int32", [1, 2, 3, 4]),
        ("1\t2.5\r\n3\t4\r\n", "float64", [[1, 2.5], [3, 4]]),  # as a spreadsheet copies cells
        ("1,2\n3,4", "int32", [[1, 2], [3, 4]]),
        ("range(4)", "int32", [0, 1, 2, 3]),
        ("range( 1, 7, 2 )", "int32", [1, 3, 5]),
        ("range(0, 1, 0.25)", "float64", [0, 0.25, 0.5, 0.75]),
        ("range(2, 0, -1)", "int32", [2, 1]),
        ("range(2147483647, 2147483649)", "int64", [2147483647, 2147483648]),
        ("[1 2; 3 4]", "int32", [[1, 2], [3, 4]]),
        ("A = [1, 2;\n 3, 4.5];", "float64", [[1, 2], [3, 4.5]]),
        ("[1;2;3]", "int32", [[1], [2], [3]]),
        ("[1 -2]", "int32", [1, -2]),
        ("[[1. 2.]\n [3. 4.]]", "float64", [[1, 2], [3, 4]]),
        ("array([[1, 2], [3, 4]], dtype=float32)", "float32", [[1, 2], [3, 4]]),
        ("x = np.array([1, 2])", "int64", [1, 2]),
        ("array([], shape=(0, 3), dtype=float16)", "float16", []),
        ("array(5)", "int64", 5),
        ("array([ True, False])", "bool", [True, False]),
        ("tensor([[1., -Inf]])", "float32", [[1, float("-inf")]]),
        ("tensor([1, 2], device='cuda:0', dtype=torch.int32)", "int32", [1, 2]),
        ("np.array([1, 2], dtype='float64')", "float64", [1, 2]),
        ("full([2,2], 7)", "int32", [[7, 7], [7, 7]]),
        ("full((2,), 0.5)", "float64", [0.5, 0.5]),
        ("zeros([1,2])", "float32", [[0, 0]]),
        ("ones({2}, dtype=int64)", "int64", [1, 1]),
        ("linspace(0, 1, 5)", "float32", [0, 0.25, 0.5, 0.75, 1]),
        ("zeros([])", "float32", 0),
    ],
)
def test_values(text: str, dtype: str, wanted: object) -> None:
    value = forms.parse_value(text)
    assert value.dtype == np.dtype(dtype)
    assert value.tolist() == wanted


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("{{1,2},{3}}", 7),  # ragged: read as a 2x1 array
        ("1 2", 1),
        ("1,2\n3", 4),
        ("1,2;3,4", 3),  # four numbers, two rows, or two with a decimal comma
        ("1,{2}", 2),
        ("range(x)", 6),
        ("range(1e9)", 0),
        ("[1, 2; 3]", 7),  # rows of MATLAB
        ("[1 2\n3 4]", 5),  # two rows to MATLAB, one to NumPy
        ("[1, 2 3]", 6),
        ("array([0, 1, ..., 9])", 13),
        ("array([1, 2", 11),
        ("array([1], dtype=float33)", 17),
        ("zeros(3)", 6),  # three to NumPy, nine to MATLAB
        ("integers([5], 0, 10, 3)", 21),
        ("normal([2], 0, 1, seed=0)", 23),
        ("normal([2000, 2000])", 0),
        ("full([2], 1) 2", 13),
        ("range(3),", 8),
        ("{1,{2}}", 3),
        ("{{1},2}", 5),
        ("{1;2}", 2),
        ("{1,2", 4),
        ("{1,2}}", 5),
        ("{1,}", 3),
        ("2abc", 1),
        ("1_000", 1),
        ("abc", 0),
        ("{1,true}", 1),
        ("3000000000", 0),
        ("1.5.2", 3),
        ("{" * 40, 16),
        ("", 0),
        ("{}", 0),
        ('"open', 0),
        ('"\\q"', 1),
    ],
)
def test_bad_values(text: str, at: int) -> None:
    with pytest.raises(TextError) as caught:
        forms.parse_value(text)
    assert caught.value.at == at


@pytest.mark.parametrize("dtype", ["float32", "float64", "half", "bfloat16"])
@pytest.mark.parametrize(("rule", "op"), [("uniform", "RandomUniform"), ("normal", "RandomStandardNormal")])
def test_drawn_values_are_those_of_the_block_of_that_seed(rule: str, op: str, dtype: str) -> None:
    page = vg.Page("drawn")
    drawn = vg.ClientSession(page).run(getattr(vg.ops, op)(page, [3, 5], dtype=dtype, seed=7))
    value = forms.parse_value(f"{rule}([3,5], seed=7)", dtypes.named(dtype))
    assert value.dtype == drawn.dtype
    np.testing.assert_array_equal(value, drawn)
    if dtype not in ("float32", "float64"):
        return
    scaled = forms.parse_value(f"{rule}([3,5], 2, 4, seed=7)", dtypes.named(dtype))
    by, shift = (2, 2) if rule == "uniform" else (4, 2)
    np.testing.assert_array_equal(scaled, drawn * drawn.dtype.type(by) + drawn.dtype.type(shift))


@pytest.mark.parametrize(("low", "high", "dtype"), [(-3, 9, "int32"), (-(2**40), 2**40, "int64")])
def test_drawn_integers_are_those_of_the_block_of_that_seed(low: int, high: int, dtype: str) -> None:
    page = vg.Page("drawn")
    limits = np.asarray(low, dtype), np.asarray(high, dtype)
    drawn = vg.ClientSession(page).run(vg.ops.RandomUniformInt(page, [7], *limits, seed=11))
    np.testing.assert_array_equal(forms.parse_value(f"integers([7], {low}, {high}, seed=11)"), drawn)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("range(32)", "range(32)"),
        ("range(0, 4)", "range(4)"),
        ("range(0.0, 4)", "range(0.0, 4)"),
        ("range(1,9,2)", "range(1, 9, 2)"),
        ("zeros((2, 3))", "zeros([2,3])"),
        ("normal([2])", "normal([2], 0, 1, seed=1)"),
        ("normal([2], stddev=0.5, seed=3, dtype=np.float64)", "normal([2], 0, 0.5, seed=3, dtype=float64)"),
        ("x = integers([2], 0, 9)", "integers([2], 0, 9, seed=1)"),
    ],
)
def test_a_rule_is_kept_whole_as_long_as_its_value(text: str, whole: str) -> None:
    page = vg.Page("page")
    page.add("Const", attrs={"value": 0, "dtype": "float32"}, name="x")
    page.apply({"do": "set_text", "block": "x", "name": "value", "text": text})
    assert page["x"].typed == {"value": whole}
    np.testing.assert_array_equal(forms.parse_value(whole), forms.parse_value(text))
    again = vg.Page.from_dict(page.to_dict())
    assert again["x"].typed == {"value": whole} and again.to_dict()["blocks"][0]["typed"] == {"value": whole}
    again.set_attr("x", "value", [1.0, 2.0])
    assert again["x"].typed == {}


def test_a_rule_that_does_not_give_the_value_is_no_rule_of_it(tmp_path: Path) -> None:
    page = vg.Page("page")
    page.add("Neg", {"x": 0}, name="minus")
    page.apply({"do": "set_text", "block": "minus", "name": "x", "text": "normal([3], seed=5)"})
    page.save(tmp_path / "page.vox.json")
    text = (tmp_path / "page.vox.json").read_text()
    assert "normal([3], 0, 1, seed=5)" in text
    loaded = vg.Page.load(tmp_path / "page.vox.json")
    assert loaded["minus"].typed == {"x": "normal([3], 0, 1, seed=5)"}
    for other in ("normal([3], 0, 1, seed=6)", "normal([4], 0, 1, seed=5)", "1,2,3", "normal("):
        (tmp_path / "page.vox.json").write_text(text.replace("normal([3], 0, 1, seed=5)", other))
        assert vg.Page.load(tmp_path / "page.vox.json")["minus"].typed == {}
    page.fold(["minus"], "part")
    assert page.pages["part"]["minus"].typed == loaded["minus"].typed


def test_values_of_a_given_type() -> None:
    assert forms.parse_value("{1,2}", dtypes.BFLOAT16).dtype.name == "bfloat16"
    assert forms.parse_value("{1.0f,2}", dtypes.FLOAT64).dtype == np.float64
    assert forms.parse_value("{}", dtypes.FLOAT32).shape == (0,)
    assert forms.parse_value("{{},{}}", dtypes.FLOAT32).shape == (2, 0)
    assert forms.parse_value("C:\\data\\a,b.bin", dtypes.STRING).item() == b"C:\\data\\a,b.bin"
    assert forms.parse_value("{a b, c}", dtypes.STRING).tolist() == [b"a b", b"c"]
    for text, dtype in (("1.5", dtypes.INT32), ("300", dtypes.UINT8), ("70000", dtypes.HALF), ("1j", dtypes.FLOAT32)):
        with pytest.raises(TextError):
            forms.parse_value(text, dtype)


def test_flat_arrays() -> None:
    old = forms.parse_flat("3.000000;2.000000;-1.000000;0.000000", dtypes.FLOAT64, (2, 2))
    new = forms.parse_flat("{3,2,-1,0}", dtypes.FLOAT64, (2, 2))
    assert old.tolist() == new.tolist() == [[3, 2], [-1, 0]]
    assert forms.parse_flat("a b;c", dtypes.STRING, (2,)).tolist() == [b"a b", b"c"]
    with pytest.raises(TextError, match="hold 4 elements"):
        forms.parse_flat("1;2;3", dtypes.FLOAT64, (2, 2))
    with pytest.raises(TextError):
        forms.parse_flat("1;2;;3", dtypes.FLOAT64, (2, 2))
    with pytest.raises(TextError, match="hold 1000000000000 elements"):
        forms.parse_flat("1;2", dtypes.FLOAT64, (10**6, 10**6))


def test_shapes() -> None:
    assert forms.parse_shape("[2][3]") == forms.parse_shape("{2,3}") == forms.parse_shape("[2, 3]") == (2, 3)
    assert forms.parse_shape("{}") == forms.parse_shape("") == forms.parse_shape("[]") == ()
    assert forms.parse_shape("{-1,?,N}") == (None, None, "N")
    assert forms.parse_shape("unknown") is None
    assert forms.parse_shapes("{2,2},{3}") == forms.parse_shapes("{[2][2],[3]}") == ((2, 2), (3,))
    assert forms.parse_shapes("{}") == forms.parse_shapes("") == ()
    for text in ("2,3", "{2,3", "{2,,3}", "[2][3", "{-2}", "{2}{3}", "[2]3"):
        with pytest.raises(TextError):
            forms.parse_shape(text)


def test_types() -> None:
    assert forms.parse_type(" DT_DOUBLE ") == dtypes.FLOAT64
    assert forms.parse_types("{DT_FLOAT;DT_INT32}") == (dtypes.FLOAT32, dtypes.INT32)
    for text, says in (("dt_float", "DT_FLOAT"), ("DT_FLOAT_REF", "Write DT_FLOAT"), ("DT_INVALID", "name an element")):
        with pytest.raises(TextError, match=says):
            forms.parse_type(text)
    with pytest.raises(TextError):  # a bad name was skipped
        forms.parse_types("DT_FLOAT,DT_FLOOT")


def test_lists_of_texts() -> None:
    attr = Attr("names", "strings", "")
    assert forms.parse_attr(attr, 'a b,"c,d"') == ("a b", "c,d")
    assert forms.parse_attr(Attr("name", "string", ""), ' "two  words " ') == "two  words "
    assert forms.parse_attr(Attr("name", "string", ""), "") == ""


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.sampled_from([",", ";"]), st.sampled_from(["", "{}", "[]"]))
def test_every_int_list_reads_back(values: list[int], separator: str, braces: str) -> None:
    text = separator.join(map(str, values))
    text = braces[0] + text + braces[1] if braces else text or "{}"
    assert forms.parse_ints(text) == tuple(values)


nested = st.recursive(
    st.just(()), lambda inner: st.tuples(st.integers(1, 3), inner).map(lambda pair: (pair[0], *pair[1])), max_leaves=4
)


@given(nested, st.data())
def test_every_array_reads_back(shape: tuple[int, ...], data: st.DataObject) -> None:
    count = int(np.prod(shape))
    values = data.draw(st.lists(st.floats(allow_nan=False), min_size=count, max_size=count))
    array = np.array(values, dtype=np.float64).reshape(shape)
    text = json.dumps(array.tolist()).replace("Infinity", "inf")
    read = forms.parse_value(text.replace("[", "{").replace("]", "}"), dtypes.FLOAT64)
    np.testing.assert_array_equal(read, array)
    assert read.shape == array.shape


@given(st.text(st.sampled_from('0123456789.,;-+{}[]()"\\ejfEnNtrueDT_INAF= \n'), max_size=30), st.sampled_from(KINDS))
def test_any_text_is_read_or_refused(text: str, kind: str) -> None:
    """Nothing but a value or an error with a place comes out, whatever goes in."""
    try:
        forms.parse_attr(Attr("x", kind, ""), text)
        forms.parse_attrs(CONV, text)
        forms.parse_flat(text, dtypes.FLOAT32, (2, 2))
    except TextError as error:
        assert 0 <= error.at <= len(error.text)
        assert error.faults[0].where.splitlines()[-1].endswith("^")


@given(st.text(max_size=20), st.sampled_from(KINDS), st.sampled_from(dtypes.ALL))
def test_any_unicode_is_read_or_refused(text: str, kind: str, dtype: dtypes.DType) -> None:
    for parse in (lambda: forms.parse_attr(Attr("x", kind, ""), text), lambda: forms.parse_value(text, dtype)):
        try:
            parse()
        except TextError as error:
            assert error.faults[0].argument in ("x", "value")


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.csv", "depth,value\n1,2.5\n3,4\n", [[1, 2.5], [3, 4]]),
        ("b.csv", "\ufeff1;2\r\n3;4\r\n", [[1, 2], [3, 4]]),
        ("c.tsv", "1\t2\n3\t4", [[1, 2], [3, 4]]),
        ("d.txt", "# as savetxt writes it\n1.0e+00 2.0e+00\n 3.0e+00  4.0e+00\n", [[1, 2], [3, 4]]),
    ],
)
def test_tables(tmp_path: Path, name: str, text: str, wanted: object) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert read_table(str(tmp_path / name)).tolist() == wanted


@pytest.mark.parametrize("text", ["1,5;2,5\n3,5;4,5\n", "1,2\n3\n", "1,x\n", "a,b\nc,d\n", ""])
def test_tables_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(vg.errors.VoxgradError, match=r"a\.csv"):
        read_table(str(tmp_path / "a.csv"))
