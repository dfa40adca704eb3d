# SPDX-License-Identifier: Apache-2.0
"""A page as a Python script that runs by itself: with voxgrad, or with TensorFlow's raw ops.

    script = export_script(page, "tensorflow")
    script.text, script.arrays        # the program, and large constants that go into a .npz beside it

Both scripts have a function `run(cycles=1, feeds=None)` that returns the page's outputs by name. They differ in a few
lines only: how a block is made, and how a session runs.
"""

from __future__ import annotations

import builtins
import keyword
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.errors import Faults
from voxgrad.formats.tensor_files import replace_file, write_npz
from voxgrad.graph.block import Block, Output, Source
from voxgrad.graph.modes import refuse_muted
from voxgrad.graph.order import order
from voxgrad.graph.page import Page
from voxgrad.kernels.element_types import dtype_of, numpy_type

Array = np.ndarray[Any, Any]

TARGETS = ("voxgrad", "tensorflow")
INLINE_ELEMENTS = 256

_HEADS = {
    "voxgrad": '''\
"""{title}: a page of Voxgrad, as a Python script. Run it: python {file} [CYCLES]"""

import sys
from pathlib import Path

import ml_dtypes  # noqa: F401 - gives NumPy the name bfloat16
import numpy as np

import voxgrad as vg
from voxgrad import {imports}

{data}page = vg.Page({name!r}, semantics={semantics!r})

''',
    "tensorflow": '''\
"""{title}: a page of Voxgrad, as a TensorFlow program of raw ops. Run it: python {file} [CYCLES]"""

import sys
from pathlib import Path

import ml_dtypes  # noqa: F401 - gives NumPy the name bfloat16
import numpy as np
import tensorflow as tf

{data}graph = tf.Graph()
with graph.as_default():
''',
}
_TAILS = {
    "voxgrad": '''
page.start_with([{initializers}])
OUTPUTS = {outputs}
TARGETS = [{targets}]
PLACEHOLDERS = {placeholders}


def run(cycles=1, feeds=None):
    """The outputs of the page after some cycles; feeds go by the names of placeholders."""
    session = vg.ClientSession(page, allow_files=Path(__file__).with_name("files"))
    fed = {{PLACEHOLDERS[name]: value for name, value in (feeds or {{}}).items()}}
    values = session.loop(cycles, list(OUTPUTS.values()), fed, TARGETS)
    return dict(zip(OUTPUTS, values))
''',
    "tensorflow": '''
OUTPUTS = {outputs}
TARGETS = [{targets}]
INITIALIZERS = [{initializers}]
PLACEHOLDERS = {placeholders}


def run(cycles=1, feeds=None):
    """The outputs of the page after some cycles; feeds go by the names of placeholders."""
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(INITIALIZERS)
        fed = {{PLACEHOLDERS[name]: value for name, value in (feeds or {{}}).items()}}
        for _ in range(cycles):
            values, _ = session.run([OUTPUTS, TARGETS], fed)
    return values
''',
}
_MAIN = """

if __name__ == "__main__":
    for name, value in run(int(sys.argv[1]) if len(sys.argv) > 1 else 1).items():
        print(f"{name}: {value.dtype} {list(value.shape)}")
        print(value)
"""


_TAKEN = (
    "sys", "Path", "ml_dtypes", "np", "vg", "ops", "blocks", "tf", "data", "page", "graph", "run", "OUTPUTS", "TARGETS",
    "INITIALIZERS", "PLACEHOLDERS",
)  # fmt: skip
"""What the scripts call their own things; a block must not be called so."""


@dataclass(frozen=True, slots=True)
class Script:
    """A program and the large arrays that it loads."""

    text: str
    arrays: dict[str, Array]


def export_script(page: Page, target: str = "voxgrad", file: str = "page.py") -> Script:
    """The page as a script for one of TARGETS."""
    faults = Faults("export")
    if target not in TARGETS:
        faults.add("VG003", "to", wanted=f"be {' or '.join(TARGETS)}", got=repr(target))
    flat = flattened(page)
    for problem in flat.problems():
        faults.found.append(problem.fault)
    faults.found.extend(refuse_muted(flat.blocks, "export"))
    if target == "tensorflow":
        refuse_own(flat, faults)
    faults.raise_if_any()
    return _Writer(flat, target, file).script()


def refuse_own(page: Page, faults: Faults) -> None:
    """Note what TensorFlow has not: blocks, and values of attributes."""
    for block in page.blocks:
        if block.op is None:
            continue
        if block.op.own:
            wanted, remedy = "be an op of TensorFlow", "Put a Placeholder in its place and feed it."
            got = f"{block.op_name} of the package {block.op.package}" if block.op.package else block.op_name
            faults.add("VG054", block.name, wanted=wanted, got=got, remedy=remedy)
        for attr in block.op.attrs:
            if attr.also is not None and (value := block.attrs.get(attr.name)) not in attr.choices:
                wanted = f"have a {attr.name} that TensorFlow knows, {' or '.join(attr.choices)}"
                remedy = "Put a Pad before it." if attr.name == "padding" else ""
                faults.add("VG054", block.name, wanted=wanted, got=repr(value), remedy=remedy)


def write_script(page: Page, path: Path, target: str) -> None:
    """Write the script, and its large constants into a .npz file beside it."""
    script = export_script(page, target, path.name)
    if script.arrays:
        write_npz(path.with_suffix(".npz"), script.arrays)
    replace_file(path, script.text.encode(errors="backslashreplace"))


def flattened(page: Page) -> Page:
    """A copy of a page in which no block stands for another page."""
    copy = Page.from_dict(page.to_dict())
    copy.files = page.files
    # What is shown of an inner page is shown through an Identity, which is still there when its block is gone.
    outputs = dict(copy.outputs)
    for name, output in outputs.items():
        if output.block.uses:
            outputs[name] = copy.add("Identity", {"input": output}, name=name).output(0)
    copy.expose(outputs, copy.input_names)
    while used := [block for block in copy.blocks if block.uses]:
        for block in used:
            copy.inline(block)
    return copy


@dataclass
class _Writer:
    page: Page
    target: str
    file: str
    arrays: dict[str, Array] = field(default_factory=dict)
    names: dict[Block, str] = field(default_factory=dict)

    def script(self) -> Script:
        """All parts together."""
        blocks = order(self.page.blocks).blocks
        taken = {*dir(builtins), *_TAKEN}
        for block in blocks:
            self.names[block] = _identifier(block.name, taken)
        body = "\n".join(line for block in blocks for line in self._block(block)) + "\n"
        if self.target == "tensorflow":
            body = textwrap.indent(body, "    ") if blocks else "    pass\n"
        data = 'data = np.load(Path(__file__).with_suffix(".npz"))\n'
        head = _HEADS[self.target].format(
            title=self.page.name.replace("\\", "/").replace('"', "'"),
            file=self.file,
            name=self.page.name,
            semantics=self.page.semantics,
            data=data if self.arrays else "",
            imports="blocks, ops" if any(block.op is not None and block.op.package for block in blocks) else "ops",
        )
        return Script(head + body + self._tail() + _MAIN, self.arrays)

    def _tail(self) -> str:
        outputs = self.page.outputs or {_plain_name(one): one for one in self._all_outputs()}
        targets = self.page.targets
        lines = "".join(f"    {name!r}: {self._reference(one)},\n" for name, one in outputs.items())
        fed = [block for block in self.page.blocks if block.op_name.startswith("Placeholder")]
        placeholders = ", ".join(f"{block.name!r}: {self.names[block]}" for block in fed)
        return _TAILS[self.target].format(
            outputs="{\n" + lines + "}",
            targets=", ".join(self._operation(block) for block in targets),
            initializers=", ".join(self._operation(block) for block in self.page.initializers),
            placeholders="{" + placeholders + "}",
        )

    def _all_outputs(self) -> Iterator[Output]:
        started = set(self.page.initializers)
        for block in self.page.blocks:
            if block.op_name not in ("Switch", "RefSwitch") and block not in started:
                yield from (one for one in block.outputs if one.dtype != dtypes.RESOURCE)

    def _operation(self, block: Block) -> str:
        if not block.output_names:
            return self.names[block]
        return self._reference(block.outputs[0]) + (".op" if self.target == "tensorflow" else "")

    # Blocks

    def _block(self, block: Block) -> Iterator[str]:
        call = f"{self.names[block]} = {self._call(block)}"
        waits = ", ".join(self._operation(other) for other in block.control)
        if waits and self.target == "tensorflow":
            yield f"with tf.control_dependencies([{waits}]):"
            yield textwrap.indent(call, "    ")
        else:
            yield call
        if waits and self.target == "voxgrad":
            yield f"page.run_after({self._operation(block)}, {waits})"

    def _call(self, block: Block) -> str:
        assert block.op is not None
        if self.target == "tensorflow" and block.op_name == "Const":
            dtype = _type_name(block.attrs["dtype"])
            value = self._array(np.asarray(block.attrs["value"]), f"{self.names[block]}_value")
            return f"tf.constant({value}, dtype={dtype!r}, name={self._op_name(block)!r})"
        given = [f"{item.name}={self._input(block, item.name, item.many)}" for item in block.op.inputs]
        for attr in block.op.attrs:
            if attr.name in block.attrs:
                given.append(f"{attr.name}={self._attr(block, attr.name, block.attrs[attr.name])}")
        if self.target == "tensorflow" and block.op_name == "VarHandleOp" and not block.attrs.get("shared_name"):
            # There, handles that share no name share a variable.
            given = [one for one in given if not one.startswith("shared_name=")] + [f"shared_name={block.name!r}"]
        module, first = ("ops", ["page"]) if self.target == "voxgrad" else ("tf.raw_ops", [])
        module = f"blocks.{module}" if block.op.package else module
        arguments = [*first, *given, f"name={self._op_name(block)!r}"]
        line = f"{module}.{block.op_name}({', '.join(arguments)})"
        if len(line) <= 100:
            return line
        rows = "".join(f"    {argument},\n" for argument in arguments)
        return f"{module}.{block.op_name}(\n{rows})"

    def _op_name(self, block: Block) -> str:
        if self.target == "voxgrad":
            return block.name
        name = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", block.name)
        return name if re.match(r"[A-Za-z0-9.]", name) else f"b{name}"

    def _input(self, block: Block, pin: str, many: bool) -> str:
        specs = self.page.infer().input_specs(block, pin)
        sources = block.sources.get(pin, [])
        known = [spec.dtype for spec in specs] + [None] * len(sources)
        texts = [
            self._taken(
                block,
                pin,
                known[at],
                self._source(source, known[at], f"{self.names[block]}_{pin}" + (f"_{at}" if many else "")),
            )
            for at, source in enumerate(sources)
        ]
        return f"[{', '.join(texts)}]" if many else texts[0]

    def _taken(self, block: Block, pin: str, dtype: DType | None, text: str) -> str:
        """Quantised integers are types of their own in TensorFlow, and plain ones here."""
        assert block.op is not None
        wanted = dtype if dtype is None else block.op.taken(block.op.input(pin).type, dtype)
        if self.target == "voxgrad" or wanted is dtype or wanted is None:
            return text
        return f"tf.bitcast({text}, {wanted.name!r})"

    def _source(self, source: Source, dtype: DType | None, name: str) -> str:
        if isinstance(source, Output):
            return self._reference(source)
        named = dtypes.named(source.dtype) or dtype
        array = np.asarray(source.value)
        if array.dtype.kind in "USO":
            array = np.asarray(source.value, dtype=object)
        elif named is not None and named.kind in ("float", "int", "uint", "bool", "complex"):
            array = array.astype(numpy_type(named))
        text = self._array(array, name)
        if self.target == "voxgrad":
            return text
        return f"tf.constant({text}, dtype={named.name!r})" if named is not None else f"tf.constant({text})"

    def _reference(self, output: Output) -> str:
        """The expression for an output: the block's result, or the part of it."""
        block, op = output.block, output.block.op
        assert op is not None
        name = self.names[block]
        at = 0
        for position, item in enumerate(op.outputs):
            count = block.count_of(item)
            if output.index < at + count:
                part = name if len(op.outputs) == 1 else f"{name}[{position}]"
                return f"{part}[{output.index - at}]" if item.many else part
            at += count
        raise AssertionError(f"{output.name} is no output of {op.name}")

    def _attr(self, block: Block, name: str, value: Any) -> str:
        if isinstance(value, np.ndarray):
            return self._array(value, f"{self.names[block]}_{name}")
        if isinstance(value, DType):
            return repr(value.name)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self._attr(block, name, item) for item in value)}]"
        if isinstance(value, str) and self.target == "tensorflow" and block.op is not None:
            # A named size is open in TensorFlow.
            return "None" if block.op.attr(name).kind in ("shape", "shapes") else repr(value)
        if value == -1 and self.target == "tensorflow" and block.op is not None:
            return "None" if block.op.attr(name).kind in ("shape", "shapes") else repr(value)
        return f"float({str(value)!r})" if isinstance(value, float) and not np.isfinite(value) else repr(value)

    def _array(self, array: Array, name: str) -> str:
        """An array as an expression; a large one is loaded from the file beside the script."""
        if array.size > INLINE_ELEMENTS and array.dtype != object:
            while name in self.arrays:
                # A pin of one block may be called as the end of another block's name is.
                name += "_"
            self.arrays[name] = array
            dtype = dtype_of(array.dtype)
            # NumPy writes bfloat16 as nameless bytes; the script gives them their name again.
            return f'data[{name!r}].view("bfloat16")' if dtype == dtypes.BFLOAT16 else f"data[{name!r}]"
        values = array.tolist()
        text = repr(values)
        if array.dtype.kind in "fc":
            text = re.sub(r"(?<![A-Za-z'\"])(nan|inf)(?![A-Za-z])", r"np.\1", text)
        kind = "object" if array.dtype == object else repr(array.dtype.name)
        return f"np.array({text}, dtype={kind})"


def _type_name(value: Any) -> str:
    return value.name if isinstance(value, DType) else str(value)


def _plain_name(output: Output) -> str:
    return output.block.name if len(output.block.output_names) == 1 else output.path


def _identifier(name: str, taken: set[str]) -> str:
    """A free Python name near the name of a block."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_") or "block"
    plain = f"b_{plain}" if plain[0].isdigit() else plain
    plain = f"{plain}_" if keyword.iskeyword(plain) or plain in taken else plain
    number = 0
    made = plain
    while made in taken:
        number += 1
        made = f"{plain}{number}"
    taken.add(made)
    return made
