# SPDX-License-Identifier: Apache-2.0
"""Numbers in text files, as spreadsheets and NumPy's `savetxt` write them: .csv, .tsv, .txt."""

from __future__ import annotations

import re
from pathlib import Path

from voxgrad.formats.tensor_files import bad_file
from voxgrad.formats.text.numbers import NUMBER
from voxgrad.formats.text.reader import MAX_LENGTH
from voxgrad.formats.text.values import Array, parse_value

TABLES = (".csv", ".tsv", ".txt")
_BLANKS = re.compile(r"(?<=[^\s,;])[ ]+(?=[^\s,;])")


def is_table(name: str) -> bool:
    """True for the names that `read_table` takes."""
    return name.lower().endswith(TABLES)


def read_table(path: str) -> Array:
    """The numbers of a text file. Comments behind # are passed over, and a first line without a number: the names of
    columns."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise bad_file(path, "be a file that can be read", error.strerror or error) from None
    if len(data) > MAX_LENGTH:
        raise bad_file(path, f"have at most {MAX_LENGTH:,} bytes", f"{len(data):,}", "Save it as .npy.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad_file(path, "be a text in UTF-8", f"byte {data[error.start]:#04x} at {error.start}") from None
    lines = [line.partition("#")[0].rstrip() for line in text.splitlines()]
    rows = [line.strip(" ") for line in lines if line.strip()]
    if len(rows) > 1 and not any(NUMBER.match(cell.strip(' "')) for cell in re.split(r"[,;\t ]", rows[0])):
        rows = rows[1:]
    return parse_value("\n".join(_BLANKS.sub("\t", row) for row in rows), None, Path(path).name, "file")
