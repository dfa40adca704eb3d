# SPDX-License-Identifier: Apache-2.0
"""Ops with state: variables, optimiser steps, queues, readers, arrays of tensors, branches, files, messages."""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.catalogue.tolerance import distance
from tests.vectors.catalogue.load import RecordedStep, recorded_steps
from voxgrad.catalog import attributes
from voxgrad.catalog.registry import find
from voxgrad.errors import Faults, InvalidArgumentError, OutOfRangeError, VoxgradError
from voxgrad.kernels.arraywise import DEAD, Context, State, evaluate, lmdb, value_of
from voxgrad.kernels.arraywise.files import Files
from voxgrad.kernels.records import record_bytes


class Session:
    """Runs ops one by one on one state."""

    def __init__(self, folder: Path | None = None):
        self.state, self.lines = State(), list[str]()
        self.files = Files() if folder is None else Files().allowing(folder)

    def __call__(self, op: str, *inputs: Any, block: str = "block", **attrs: Any) -> Any:
        declared, faults = find(op), Faults(op)
        canonical = attributes.canonical(declared, attrs, faults)
        faults.raise_if_any()
        context = Context(self.state, block, self.files, log=self.lines.append)
        made = evaluate(declared, inputs, canonical, context)
        return made[0] if len(made) == 1 else made


def text(*values: bytes) -> Any:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def one(value: bytes) -> Any:
    return text(value).reshape(())


def number(value: int, dtype: Any = np.int32) -> Any:
    return np.array(value, dtype)


@pytest.mark.parametrize("case", recorded_steps(), ids=lambda case: case.id)
def test_steps_change_variables_as_tensorflow(case: RecordedStep) -> None:
    run, step = Session(), case.step
    refs = {}
    by_handle = step.op.startswith("Resource")
    for name, value in step.variables.items():
        make, give = ("VarHandleOp", "AssignVariableOp") if by_handle else ("VariableV2", "Assign")
        refs[name] = run(make, block=name, shape=list(value.shape), dtype=value.dtype)
        run(give, refs[name], value)
    inputs = [refs.get(item.name, step.inputs.get(item.name)) for item in find(step.op).inputs]
    for after in case.after:
        out = value_of(run(step.op, *inputs, **step.attrs))
        held = {name: ref.value for name, ref in refs.items()} | ({} if by_handle else {"out": out})
        for name, wanted in after.items():
            # Up to ten roundings in a step, and two steps.
            assert distance(held[name], wanted, "AddV2") <= 16, f"{name}\n{held[name]}\n{wanted}"


def test_a_variable_is_read_when_its_reader_runs() -> None:
    run = Session()
    ref = run("VariableV2", shape=[2], dtype="float32")
    with pytest.raises(VoxgradError, match="VG041"):
        run("Identity", ref)
    assert not run("IsVariableInitialized", ref)
    assigned = run("Assign", ref, np.ones(2, np.float32))
    before = run("Identity", ref)
    run("AssignAdd", ref, np.ones(2, np.float32))
    assert before.tolist() == [1, 1] and value_of(assigned).tolist() == [2, 2]
    assert run("Mul", ref, assigned).tolist() == [4, 4]
    with pytest.raises(InvalidArgumentError, match="VG012"):
        run("Assign", ref, np.ones(3, np.float32))


def test_a_variable_without_elements_needs_no_value() -> None:
    run = Session()
    assert run("IsVariableInitialized", run("VariableV2", block="none", shape=[2, 0], dtype="string"))
    assert not run("IsVariableInitialized", run("VariableV2", block="some", shape=[2, 1], dtype="string"))


def test_ftrl_overflows_as_a_sum_does_and_proximal_steps_refuse_wrong_rates() -> None:
    run = Session()

    def rate(value: float) -> Any:
        return np.array(value, np.float64)

    refs = [run("VariableV2", block=name, shape=[1], dtype="float64") for name in "abc"]
    for ref in refs:
        run("Assign", ref, np.ones(1))
    huge = np.array([-1.7e308])
    assert np.isnan(value_of(run("ApplyFtrl", *refs, huge, rate(0.1), rate(0.05), rate(0.02), rate(-0.5)))).all()
    for wrong in ((-1, 0, 0), (0.1, -1, 0), (0.1, 0, -1)):
        with pytest.raises(InvalidArgumentError, match="VG003"):
            run("ApplyProximalAdagrad", *refs[:2], *map(rate, wrong), huge)


def test_shared_names_share() -> None:
    run = Session()
    a = run("VariableV2", block="a", shape=[], dtype="int32", shared_name="n")
    b = run("VariableV2", block="b", shape=[], dtype="int32", shared_name="n")
    run("Assign", a, number(3))
    assert b.value == 3


def test_a_variable_is_not_divided_by_zero() -> None:
    run = Session()
    ref = run("VariableV2", shape=[2], dtype="int32")
    run("Assign", ref, np.array([6, 7], np.int32))
    with pytest.raises(InvalidArgumentError, match="VG043"):
        run("ScatterDiv", ref, np.array([0, 1]), np.array([2, 0], np.int32))
    assert ref.value.tolist() == [6, 7]


def test_count_up_to_ends() -> None:
    run = Session()
    ref = run("VariableV2", shape=[], dtype="int32")
    run("Assign", ref, number(0))
    assert [int(run("CountUpTo", ref, limit=2)) for _ in range(2)] == [0, 1]
    with pytest.raises(OutOfRangeError):
        run("CountUpTo", ref, limit=2)


def test_switch_and_merge() -> None:
    run, x = Session(), np.ones(2)
    false, true = run("Switch", x, np.array(True))
    assert false is DEAD and true is x
    assert run("Mul", false, x) is DEAD
    assert run("AddN", [true, false]) is DEAD
    value, index = run("Merge", [false, true])
    assert value is x and index == 1 and index.dtype == np.int32
    assert run("Merge", [false, DEAD]) == (DEAD, DEAD)


def test_fifo_queue() -> None:
    run = Session()
    types = ["int32", "string"]
    queue = run("FIFOQueueV2", block="q", component_types=types, shapes=[[], []], capacity=3)
    assert run("FIFOQueueV2", block="q", component_types=types, shapes=[[], []], capacity=3) is queue
    run("QueueEnqueueV2", queue, [number(1), one(b"a")])
    run("QueueEnqueueManyV2", queue, [np.array([2, 3], np.int32), text(b"b", b"c\x00")])
    assert run("QueueSizeV2", queue) == 3
    with pytest.raises(OutOfRangeError, match="full"):
        run("QueueEnqueueV2", queue, [number(4), one(b"d")])
    first, name = run("QueueDequeueV2", queue, component_types=types)
    assert first == 1 and name.item() == b"a"
    numbers, names = run("QueueDequeueManyV2", queue, number(2), component_types=types)
    assert numbers.tolist() == [2, 3] and names.tolist() == [b"b", b"c\x00"]
    with pytest.raises(OutOfRangeError):
        run("QueueDequeueV2", queue, component_types=types)
    with pytest.raises(InvalidArgumentError):
        run("QueueEnqueueV2", queue, [np.zeros(1, np.float32), one(b"a")])
    run("QueueCloseV2", queue)
    assert run("QueueIsClosedV2", queue)
    with pytest.raises(OutOfRangeError, match="closed"):
        run("QueueEnqueueV2", queue, [number(1), one(b"a")])
    with pytest.raises(OutOfRangeError, match="closed"):
        run("QueueCloseV2", queue)
    run("QueueCloseV2", queue, cancel_pending_enqueues=True)
    for op in ("QueueDequeueManyV2", "QueueDequeueUpToV2"):
        with pytest.raises(InvalidArgumentError, match="n must be 0 or more"):
            run(op, queue, number(-1), component_types=types)


def test_slices_of_different_numbers_are_not_put_at_all() -> None:
    run = Session()
    queue = run("FIFOQueueV2", component_types=["int32", "int32"], shapes=[[], []])
    for parts in ([number(1), number(2)], [np.arange(2, dtype=np.int32), np.arange(3, dtype=np.int32)]):
        with pytest.raises(InvalidArgumentError, match="VG012"):
            run("QueueEnqueueManyV2", queue, parts)
    assert run("QueueSizeV2", queue) == 0


def test_a_queue_looks_at_slices_of_which_there_are_none() -> None:
    run = Session()
    queue = run("FIFOQueueV2", component_types=["int32"], shapes=[[1]])
    run("QueueEnqueueManyV2", queue, [np.zeros((0, 1), np.int32)])
    for wrong in (np.zeros((0, 1, 1), np.int32), np.zeros((0, 1), np.float32)):
        with pytest.raises(InvalidArgumentError, match=r"components\[0\]"):
            run("QueueEnqueueManyV2", queue, [wrong])


def test_other_queues() -> None:
    run = Session()
    priority = run("PriorityQueueV2", block="p", shapes=[[]], component_types=["int32"])
    for rank, value in ((3, 30), (1, 10), (2, 20), (1, 11)):
        run("QueueEnqueueV2", priority, [number(rank, np.int64), number(value)])
    order = [int(run("QueueDequeueV2", priority, component_types=["int64", "int32"])[1]) for _ in range(4)]
    assert order == [10, 11, 20, 30]
    padding = run("PaddingFIFOQueueV2", block="pad", component_types=["int32"], shapes=[[None]])
    for size in (1, 3):
        run("QueueEnqueueV2", padding, [np.full(size, size, np.int32)])
    (stacked,) = run("QueueDequeueManyV2", padding, number(2), component_types=["int32"])
    assert stacked.tolist() == [[1, 0, 0], [3, 3, 3]]
    (none,) = run("QueueDequeueManyV2", padding, number(0), component_types=["int32"])
    assert (none.dtype, none.shape) == (np.int32, (0, 0))
    words = run("PaddingFIFOQueueV2", block="words", component_types=["string"], shapes=[[None]])
    for entry in (text(b"a", b"b"), text(b"c")):
        run("QueueEnqueueV2", words, [entry])
    (stacked,) = run("QueueDequeueManyV2", words, number(2), component_types=["string"])
    assert stacked.tolist() == [[b"a", b"b"], [b"c", b""]]
    drawn = []
    for _ in range(2):
        fresh = Session()
        shuffle = fresh("RandomShuffleQueueV2", component_types=["int32"], shapes=[[]], seed=3, min_after_dequeue=1)
        fresh("QueueEnqueueManyV2", shuffle, [np.arange(6, dtype=np.int32)])
        drawn.append([int(fresh("QueueDequeueV2", shuffle, component_types=["int32"])[0]) for _ in range(5)])
        with pytest.raises(OutOfRangeError):
            fresh("QueueDequeueV2", shuffle, component_types=["int32"])
    # TensorFlow's own order.
    assert drawn[0] == drawn[1] == [1, 3, 2, 4, 5]


def test_fixed_length_records(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"HH" + b"aabbcc" + b"F")
    (tmp_path / "b.bin").write_bytes(b"HH" + b"dd" + b"F")
    run = Session(tmp_path)
    queue = run("FIFOQueueV2", block="q", component_types=["string"], shapes=[])
    for name in (b"a.bin", b"b.bin"):
        run("QueueEnqueueV2", queue, [one(name)])
    reader = run("FixedLengthRecordReaderV2", block="r", record_bytes=2, header_bytes=2, footer_bytes=1)
    keys, values = run("ReaderReadUpToV2", reader, queue, number(0, np.int64))
    assert keys.tolist() == values.tolist() == []
    with pytest.raises(InvalidArgumentError, match="num_records must be 0 or more"):
        run("ReaderReadUpToV2", reader, queue, number(-1, np.int64))
    keys, values = run("ReaderReadUpToV2", reader, queue, number(2, np.int64))
    assert keys.tolist() == [b"a.bin:0", b"a.bin:1"] and values.tolist() == [b"aa", b"bb"]
    keys, values = run("ReaderReadUpToV2", reader, queue, number(5, np.int64))
    assert values.tolist() == [b"cc"]
    key, value = run("ReaderReadV2", reader, queue)
    assert (key.item(), value.item()) == (b"b.bin:0", b"dd")
    assert run("ReaderNumRecordsProducedV2", reader) == 4
    with pytest.raises(OutOfRangeError):
        run("ReaderReadV2", reader, queue)
    assert run("ReaderNumWorkUnitsCompletedV2", reader) == 2
    raw = run("DecodeRaw", values, out_type="uint8")
    assert raw.tolist() == [[99, 99]]


def test_a_file_shorter_than_its_header_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"H")
    (tmp_path / "a.bin").write_bytes(b"HHaa")
    run = Session(tmp_path)
    queue = run("FIFOQueueV2", block="q", component_types=["string"], shapes=[])
    run("QueueEnqueueManyV2", queue, [text(b"short", b"a.bin")])
    reader = run("FixedLengthRecordReaderV2", block="r", record_bytes=2, header_bytes=2)
    with pytest.raises(VoxgradError, match=r"VG053 .*header of 2 bytes.*short, 1 bytes"):
        run("ReaderReadV2", reader, queue)
    assert run("ReaderReadV2", reader, queue)[1].item() == b"aa"


def test_other_readers(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_bytes(b"head\nx\r\ny")
    record = b"data"
    (tmp_path / "r.tfrecord").write_bytes(record_bytes(record))
    run = Session(tmp_path)
    for index, (reader, name, wanted, attrs) in enumerate((
        ("TextLineReaderV2", b"lines.txt", [b"x", b"y"], {"skip_header_lines": 1}),
        ("WholeFileReaderV2", b"lines.txt", [b"head\nx\r\ny"], {}),
        ("IdentityReaderV2", b"lines.txt", [b"lines.txt"], {}),
        ("TFRecordReaderV2", b"r.tfrecord", [record], {}),
    )):  # fmt: skip
        queue = run("FIFOQueueV2", block=f"q{index}", component_types=["string"])
        run("QueueEnqueueV2", queue, [one(name)])
        handle = run(reader, block=f"r{index}", **attrs)
        assert run("ReaderReadUpToV2", handle, queue, number(9, np.int64))[1].tolist() == wanted


@pytest.mark.parametrize("name", [b"../secret", b"/etc/hostname", b"a/../../secret", b"link/secret"])
def test_files_outside_the_folder_are_refused(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path)
    run = Session(folder)
    for op, inputs, attrs in (
        ("ReadFile", [one(name)], {}),
        ("WriteFile", [one(name), one(b"x")], {}),
        ("Save", [one(name), text(b"w"), [np.ones(2)]], {}),
        ("Restore", [one(name), one(b"w")], {"dt": "float64"}),
    ):
        with pytest.raises(VoxgradError, match="VG056"):
            run(op, *inputs, **attrs)
        with pytest.raises(VoxgradError, match="VG056"):
            Session(None)(op, *inputs, **attrs)
    assert (tmp_path / "secret").read_text() == "secret"
    assert run("MatchingFiles", text(b"*")).tolist() == []


def test_saved_tensors_come_back(tmp_path: Path) -> None:
    import ml_dtypes

    run = Session(tmp_path)
    arrays = [np.arange(6.0).reshape(2, 3), np.array(3, np.int64), np.ones(2, ml_dtypes.bfloat16), np.array([True])]
    names = text(b"w", b"scope/n", b"half", b"flag")
    run("Save", one(b"folder/model"), names, arrays)
    for name, array in zip(names.tolist(), arrays, strict=True):
        back = run("Restore", one(b"folder/model"), one(name), dt=array.dtype)
        assert back.dtype == array.dtype and np.array_equal(back, array)
    run("SaveV2", one(b"again"), names[:2], text(b"", b""), arrays[:2])
    both = run("RestoreV2", one(b"again"), names[:2], text(b"", b""), dtypes=["float64", "int64"])
    assert np.array_equal(both[0], arrays[0]) and both[1] == 3
    with pytest.raises(VoxgradError, match="VG050"):
        run("Restore", one(b"again"), one(b"nothing"), dt="float32")
    with pytest.raises(VoxgradError, match="VG011"):
        run("Restore", one(b"again"), one(b"w"), dt="float32")
    (tmp_path / "broken").write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(VoxgradError, match="VG053"):
        run("Restore", one(b"broken"), one(b"w"), dt="float32")
    files = ["again.data-00000-of-00001", "again.index", "broken", "model"]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == files


def test_whole_files(tmp_path: Path) -> None:
    run = Session(tmp_path)
    run("WriteFile", one(b"sub/a.txt"), one(b"hello\x00"))
    assert run("ReadFile", one(b"sub/a.txt")).item() == b"hello\x00"
    assert run("MatchingFiles", text(b"sub/*.txt", b"*.bin")).tolist() == [b"sub/a.txt"]
    with pytest.raises(VoxgradError, match="VG051"):
        run("ReadFile", one(b"none"))


def test_tensor_array() -> None:
    run = Session()
    handle, flow = run("TensorArrayV3", number(3), dtype="float32")
    for index in range(3):
        flow = run("TensorArrayWriteV3", handle, number(index), np.full(2, index, np.float32), flow)
    assert run("TensorArraySizeV3", handle, flow) == 3
    gathered = run("TensorArrayGatherV3", handle, np.array([2, 0], np.int32), flow, dtype="float32")
    assert gathered.tolist() == [[2, 2], [0, 0]]
    assert run("TensorArrayReadV3", handle, number(1), flow, dtype="float32").tolist() == [1, 1]
    with pytest.raises(VoxgradError, match="once"):
        run("TensorArrayReadV3", handle, number(1), flow, dtype="float32")
    with pytest.raises(VoxgradError, match="VG043"):
        run("TensorArrayWriteV3", handle, number(3), np.zeros(2, np.float32), flow)
    handle, flow = run("TensorArrayV3", number(2), dtype="float32", clear_after_read=False)
    run("TensorArraySplitV3", handle, np.arange(3, dtype=np.float32), np.array([1, 2]), flow)
    joined, lengths = run("TensorArrayConcatV3", handle, flow, dtype="float32")
    assert joined.tolist() == [0, 1, 2] and lengths.tolist() == [1, 2]
    grads, flow = run("TensorArrayGradV3", handle, flow, source="g")
    assert run("TensorArrayGradV3", handle, flow, source="g")[0] is grads
    for _ in range(2):
        run("TensorArrayWriteV3", grads, number(0), np.ones(1, np.float32), flow)
    assert run("TensorArrayReadV3", grads, number(0), flow, dtype="float32").tolist() == [2]
    assert run("TensorArrayReadV3", grads, number(1), flow, dtype="float32").tolist() == [0, 0]


def test_random_numbers_go_on_and_repeat() -> None:
    def draw(seeds: tuple[int, int]) -> list[Any]:
        run = Session()
        attrs = {"dtype": "float32", "seed": seeds[0], "seed2": seeds[1]}
        return [run("RandomUniform", np.array([4], np.int32), **attrs) for _ in range(2)]

    first, again, other, free = draw((1, 2)), draw((1, 2)), draw((1, 3)), draw((0, 0))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first, other) and not np.array_equal(free, draw((0, 0)))
    run = Session()
    a, b = (
        run("RandomStandardNormal", np.array([4], np.int32), block=block, dtype="float64", seed=1) for block in "ab"
    )
    assert np.array_equal(a, b)
    many = run("RandomStandardNormal", np.array([20000], np.int32), block="c", dtype="float64", seed=5)
    assert abs(many.mean()) < 0.03 and abs(many.std() - 1) < 0.03
    cut = run("TruncatedNormal", np.array([2000], np.int32), block="d", dtype="float32", seed=5)
    assert np.abs(cut).max() < 2


def test_distributions_have_their_means_in_every_way() -> None:
    """Every way through a distribution: which one is taken follows from the parameters."""
    run, many = Session(), np.array([20000], np.int32)
    for alpha in (0.3, 1.0, 6.0):
        drawn = run("RandomGamma", many, np.array(alpha), block=f"g{alpha}", seed=1)
        assert abs(drawn.mean() - alpha) < 0.05 * alpha and abs(drawn.var() - alpha) < 0.1 * alpha
    for rate in (2.0, 40.0):
        drawn = run("RandomPoisson", many, np.array(rate), block=f"p{rate}", seed=1)
        assert abs(drawn.mean() - rate) < 0.03 * rate and (drawn == np.floor(drawn)).all()
    assert run("RandomPoisson", many[:0], np.array([np.inf, -1.0]), block="e", seed=1).tolist() == [np.inf, 0]
    for low, high in ((-2.0, 3.0), (2.0, 2.5), (2.5, np.inf), (-np.inf, -3.0)):
        bounds = (np.array(one) for one in (0.0, 1.0, low, high))
        drawn = run("ParameterizedTruncatedNormal", many, *bounds, block=f"t{low}", seed=1)
        assert low <= drawn.min() and drawn.max() <= high and len(np.unique(drawn)) > 19000
    with pytest.raises(InvalidArgumentError, match="RandomPoisson: rate must hold no NaN"):
        run("RandomPoisson", many, np.array(np.nan))
    with pytest.raises(InvalidArgumentError, match="stdevs must have a deviation above 0 and a lower bound below"):
        run("ParameterizedTruncatedNormal", many, *(np.array(one) for one in (0.0, 1.0, 2.0, 2.0)))
    with pytest.raises(InvalidArgumentError, match="means must have one entry, or one for each of 20000 rows"):
        run("ParameterizedTruncatedNormal", many, *(np.array(one) for one in ([0.0, 1.0], 1.0, -2.0, 2.0)))


def test_candidates(tmp_path: Path) -> None:
    run, true = Session(tmp_path), np.array([[5]])
    attrs = {"num_true": 1, "num_sampled": 6, "unique": True, "range_max": 6, "seed": 2}
    for op in ("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler"):
        assert sorted(run(op, true, block=op, **attrs)[0]) == list(range(6))
    often = attrs | {"num_sampled": 1, "unique": False}
    drawn = [run("LearnedUnigramCandidateSampler", true, block="l", **often) for _ in range(400)]
    assert np.mean([one[0][0] == 5 for one in drawn]) > 0.8
    assert [float(one[1][0, 0]) for one in drawn[:3]] == pytest.approx([1 / 6, 2 / 7, 3 / 8])
    (tmp_path / "words").write_bytes(b"the,0\nof,3.5\nand,0.5\n")
    listed = attrs | {"range_max": 3, "num_sampled": 2, "vocab_file": "words"}
    run("FixedUnigramCandidateSampler", true * 0, block="f", **listed)
    (tmp_path / "words").unlink()
    assert sorted(run("FixedUnigramCandidateSampler", true * 0, block="f", **listed)[0]) == [1, 2]
    for more, message in (
        ({"num_sampled": 3}, "num_sampled must be at most 2, the weights above 0; got 3"),
        ({"block": "g"}, "VG051 .*vocab_file must be a file that can be read"),
        ({"block": "h", "vocab_file": "../words"}, "VG056 .*vocab_file must be the name of a file inside"),
        (
            {"block": "i", "unigrams": [1.0, 2, 3]},
            "unigrams must be given where vocab_file is not, and only there; got both",
        ),
        ({"block": "j", "vocab_file": "", "unigrams": [1.0, 2]}, "range_max must be the number of weights, 2; got 3"),
        ({"block": "k", "vocab_file": "", "unigrams": [1.0, -2, 0]}, "unigrams must be 0 or more, one of them above"),
    ):
        with pytest.raises(VoxgradError, match=message):
            run("FixedUnigramCandidateSampler", true * 0, **({"block": "f"} | listed | more))
    (tmp_path / "words").write_bytes(b"the,1\nof,x\n")
    with pytest.raises(VoxgradError, match="vocab_file must end every line with a weight; got line 2: b'of,x'"):
        run("FixedUnigramCandidateSampler", true * 0, block="m", **listed)
    rare = attrs | {"range_max": 3, "num_sampled": 3, "unigrams": [1.0, 1.0, 1e-30]}
    with pytest.raises(InvalidArgumentError, match="be so few that 3 different candidates are found; got 2 after"):
        run("FixedUnigramCandidateSampler", true * 0, block="r", **rare)


LMDB = zlib.decompress(Path(__file__).with_name("lmdb.z").read_bytes())
"""Written by liblmdb 0.9.24 in two steps: 300 numbered keys, then one that is large, one that is empty, one changed."""


def test_entries_of_a_database(tmp_path: Path) -> None:
    run = Session(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("folder/data.mdb", "file.mdb"):
        (tmp_path / name).write_bytes(LMDB)
    (tmp_path / "cut").write_bytes(LMDB[:9000])
    (tmp_path / "other").write_bytes(b"\0" * 9000)
    queue = run("FIFOQueueV2", block="q", component_types=["string"])
    reader = run("LMDBReader", block="r")
    run("QueueEnqueueManyV2", queue, [text(b"folder", b"file.mdb", b"cut", b"other")])
    for _ in range(2):
        keys, values = run("ReaderReadUpToV2", reader, queue, number(999, np.int64))
        found = dict(zip(keys, values, strict=True))
        assert list(found) == sorted(found) and len(found) == 302
        assert (found[b"0007"], found[b"big"], found[b"empty"]) == (b"changed", b"B" * 9001, b"")
        assert found[b"0299"] == b"value 299" + b"x" * 19
    for name in ("cut", "other"):
        with pytest.raises(VoxgradError, match=f"VG053 .*queue_handle must name LMDB databases; got {name}"):
            while True:
                run("ReaderReadV2", reader, queue)


@pytest.mark.parametrize("at", range(0, 120, 7))
def test_damaged_databases_end(at: int) -> None:
    """Whatever bytes are changed, the walk ends, in entries or in a refusal."""
    pick, data = np.random.default_rng(at), bytearray(LMDB)
    for place in (*pick.integers(0, len(data), 40), *pick.integers(0, 200, 2), *pick.integers(8192, 8300, 4)):
        data[place] = pick.integers(0, 256)
    with contextlib.suppress(lmdb.Broken):
        assert sum(1 for _ in lmdb.entries(bytes(data))) < 20_000


def test_readers_stand_where_they_stood(tmp_path: Path) -> None:
    run = Session(tmp_path)
    queue, reader = run("FIFOQueueV2", block="q", component_types=["string"]), run("IdentityReaderV2", block="r")
    run("QueueEnqueueManyV2", queue, [text(b"a", b"b", b"c")])
    run("ReaderReadV2", reader, queue)
    state = run("ReaderSerializeStateV2", reader)
    assert state.item() == b'\x08\x01\x10\x01\x18\x01"\x01a'
    run("ReaderReadV2", reader, queue)
    run("ReaderRestoreStateV2", reader, state)
    assert run("ReaderNumRecordsProducedV2", reader) == run("ReaderNumWorkUnitsCompletedV2", reader) == 1
    assert [value.item() for value in run("ReaderReadV2", reader, queue)] == [b"c", b"c"]
    for wrong in (b"\xff", b"\x10\x01", b'\x08\x02\x10\x01"\x01z'):
        with pytest.raises(VoxgradError, match="state must"):
            run("ReaderRestoreStateV2", reader, one(wrong))
    with pytest.raises(VoxgradError, match=r"VG032 .*reader_handle must be a reader whose state is a count of files"):
        run("ReaderSerializeStateV2", run("TextLineReaderV2", block="t"))


def test_records_come_in_random_order_all_of_them(tmp_path: Path) -> None:
    for name, records in (("a.rec", [b"1", b"2", b"3"]), ("b.rec", [b"4", b"5"]), ("none", [])):
        packed = b"".join(map(record_bytes, records))
        (tmp_path / name).write_bytes(packed)
    attrs = {"file_pattern": "a.rec,b.*", "batch_size": 5}
    drawn = [[run("RecordInput", **attrs).tolist() for _ in range(4)] for run in (Session(tmp_path), Session(tmp_path))]
    assert drawn[0] == drawn[1] and all(sorted(batch) == [b"1", b"2", b"3", b"4", b"5"] for batch in drawn[0])
    assert len({tuple(batch) for batch in drawn[0]}) > 1
    small = Session(tmp_path)("RecordInput", **attrs, file_buffer_size=1).tolist()
    assert small in ([b"1", b"2", b"3", b"4", b"5"], [b"4", b"5", b"1", b"2", b"3"])
    for pattern, code in (("none", "VG053"), ("missing*", "VG051"), ("../a.rec", "VG056")):
        with pytest.raises(VoxgradError, match=f"{code} RecordInput: file_pattern"):
            Session(tmp_path)("RecordInput", **(attrs | {"file_pattern": pattern}))


def test_a_tensor_from_bytes(tmp_path: Path) -> None:
    run, values = Session(tmp_path), np.arange(6, dtype=np.int16)
    (tmp_path / "raw").write_bytes(values.astype("<i2").tobytes())
    found = run("ImmutableConst", dtype="int16", shape=[2, 3], memory_region_name="raw")
    assert found.dtype == np.int16 and np.array_equal(found, values.reshape(2, 3))
    with pytest.raises(VoxgradError, match=r"VG053 .*memory_region_name must hold 24 bytes; got 12 in raw"):
        run("ImmutableConst", dtype="int32", shape=[6], memory_region_name="raw")
    with pytest.raises(VoxgradError, match="VG056"):
        run("ImmutableConst", dtype="int16", shape=[1], memory_region_name="/etc/passwd")


def test_parts_of_tensors_are_saved_and_merged(tmp_path: Path) -> None:
    run, whole = Session(tmp_path), np.arange(12, dtype=np.float32).reshape(4, 3)
    parts = text(b"4 3 0,2:-", b"4 3 2,2:-", b"")
    run("SaveSlices", one(b"f"), text(b"w", b"w", b"v"), parts, [whole[:2], whole[2:], whole])

    def restored(name: bytes, part: bytes, dt: str = "float32") -> Any:
        return run("RestoreSlice", one(b"f"), one(name), one(part), dt=dt)

    for name in (b"w", b"v"):
        assert np.array_equal(restored(name, b""), whole)
        assert np.array_equal(restored(name, b"4 3 1,2:0,1"), whole[1:3, :1])
    for name, part, message in (
        (b"w", b"4 4 -:-", "shape_and_slice must state the shape of the tensor"),
        (b"v", b"4 4 -:-", "shape_and_slice must state the shape of v"),
        (b"w", b"4 3 3,2:-", "must state sizes and a slice"),
        (b"w", b"4 3 x", "must state sizes and a slice"),
        (b"u", b"", "tensor_name must be one of"),
    ):
        with pytest.raises(VoxgradError, match=message):
            restored(name, part)
    with pytest.raises(VoxgradError, match="dt must be the type of"):
        restored(b"w", b"", "int32")
    run("SaveSlices", one(b"f"), text(b"w"), text(b"4 3 0,2:-"), [whole[:2]])
    with pytest.raises(VoxgradError, match="lie in the parts that were saved; got 6 cells outside"):
        restored(b"w", b"")
    with pytest.raises(VoxgradError, match="state the shape of w"):
        run("SaveSlices", one(b"f"), text(b"w"), text(b"4 3 0,2:-"), [whole])
    blank = text(b"")
    for folder, name in ((b"old/a", b"x"), (b"old/b", b"y")):
        run("SaveV2", one(folder), text(name), blank, [whole])
    run("MergeV2Checkpoints", text(b"old/a", b"old/b"), one(b"new"))
    found = run("RestoreV2", one(b"new"), text(b"x", b"y"), text(b"", b""), dtypes=["float32"] * 2)
    assert all(np.array_equal(array, whole) for array in found) and not (tmp_path / "old").exists()
    with pytest.raises(VoxgradError, match="VG051"):
        run("MergeV2Checkpoints", text(b"old/a"), one(b"newer"))
    with pytest.raises(VoxgradError, match="checkpoint_prefixes must name files that are there"):
        run("MergeV2Checkpoints", text(b"old/a"), one(b"newer"), allow_missing_files=True)
    run("SaveV2", one(b"again"), text(b"x"), blank, [whole])
    with pytest.raises(VoxgradError, match="checkpoint_prefixes must hold every tensor once; got x twice"):
        run("MergeV2Checkpoints", text(b"new", b"again"), one(b"newer"))
    assert (tmp_path / "again.index").exists()


def test_messages() -> None:
    run, x = Session(), np.array([1.5, 2, 3, 4])
    for _ in range(3):
        assert run("Print", x, [x, text(b"word")], message="m: ", first_n=2) is x
    assert run.lines == ["m: [1.5 2 3...][word]"] * 2
    run("Assert", np.array(True), [x])
    with pytest.raises(VoxgradError, match="VG044"):
        run("Assert", np.array(False), [x], summarize=1)
    assert run("CheckNumerics", x, message="") is x
    with pytest.raises(VoxgradError, match="NaN"):
        run("CheckNumerics", np.array([np.nan]), message="here")
    with pytest.raises(VoxgradError, match="VG001"):
        run("Placeholder", dtype="float32")
    with pytest.raises(VoxgradError, match="VG040"):
        run("Abort", error_msg="stop")


def test_queues_and_arrays_say_what_they_hold() -> None:
    run = Session()
    padding = run("PaddingFIFOQueueV2", block="pad", component_types=["int32"], shapes=[[]])
    run("QueueEnqueueV2", padding, [number(4)])
    with pytest.raises(InvalidArgumentError, match="component_types"):
        run("QueueDequeueV2", padding, component_types=["float32"])
    (stacked,) = run("QueueDequeueManyV2", padding, number(1), component_types=["int32"])
    assert stacked.tolist() == [4]
    free = run("FIFOQueueV2", block="free", component_types=["int32"])
    with pytest.raises(InvalidArgumentError, match="shapes"):
        run("QueueDequeueManyV2", free, number(0), component_types=["int32"])
    handle, flow = run("TensorArrayV3", number(1), dtype="float32", element_shape=[2])
    with pytest.raises(InvalidArgumentError, match="VG012"):
        run("TensorArrayWriteV3", handle, number(0), np.ones(3, np.float32), flow)
    run("TensorArrayWriteV3", handle, number(0), np.ones(2, np.float32), flow)
    with pytest.raises(InvalidArgumentError, match="dtype"):
        run("TensorArrayReadV3", handle, number(0), flow, dtype="int32")


def test_a_temporary_variable_is_destroyed_by_its_own_name() -> None:
    run = Session()
    ref = run("TemporaryVariable", shape=[], dtype="int32", var_name="t")
    with pytest.raises(InvalidArgumentError, match="var_name"):
        run("DestroyTemporaryVariable", ref, var_name="other")
    assert run("DestroyTemporaryVariable", ref, var_name="t") == 0


def test_a_whole_file_is_finished_with_its_record(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    run = Session(tmp_path)
    queue = run("FIFOQueueV2", block="q", component_types=["string"])
    run("QueueEnqueueV2", queue, [one(b"a")])
    reader = run("WholeFileReaderV2", block="r")
    run("ReaderReadV2", reader, queue)
    assert run("ReaderNumWorkUnitsCompletedV2", reader) == 1
    assert run("MatchingFiles", text(b"a", b"?")).tolist() == [b"a", b"a"]


def test_stages_and_maps_hold_entries_between_runs() -> None:
    run, shared = Session(), {"shared_name": "s"}
    typed = {"dtypes": ["int32", "string"], **shared}
    for value in (1, 2):
        run("Stage", [number(value), one(b"a")], block=f"put{value}", capacity=2, **shared)
    with pytest.raises(OutOfRangeError, match="full"):
        run("Stage", [number(3), one(b"a")], capacity=2, **shared)
    assert run("StageSize", **typed) == 2 and run("StagePeek", number(1), **typed)[0] == 2
    assert run("Unstage", **typed)[0] == 1
    with pytest.raises(InvalidArgumentError, match="dtypes"):
        run("Unstage", dtypes=["float32", "string"], **shared)
    run("StageClear", **typed)
    with pytest.raises(OutOfRangeError):
        run("Unstage", **typed)
    for kind in ("Map", "OrderedMap"):
        both = np.array([0, 1], np.int32)
        run(f"{kind}Stage", number(7, np.int64), both[1:], [one(b"late")], **typed)
        assert (run(f"{kind}Size", **typed), run(f"{kind}IncompleteSize", **typed)) == (0, 1)
        run(f"{kind}Stage", number(7, np.int64), both[:1], [number(5)], **typed)
        run(f"{kind}Stage", number(3, np.int64), both, [number(6), one(b"b")], **typed)
        assert run(f"{kind}Peek", number(7, np.int64), both[1:], dtypes=["string"], **shared)[0].item() == b"late"
        key, parts = run(f"{kind}UnstageNoKey", both, **typed)
        assert key == 3 and parts[0] == 6
        assert run(f"{kind}Unstage", number(7, np.int64), both[:1], dtypes=["int32"], **shared)[0] == 5
        with pytest.raises(InvalidArgumentError, match="indices"):
            run(f"{kind}Peek", number(7, np.int64), both, **typed)
        run(f"{kind}Clear", **typed)
        with pytest.raises(OutOfRangeError):
            run(f"{kind}Unstage", number(7, np.int64), both, **typed)


def test_a_barrier_gives_complete_entries_in_the_order_of_their_keys() -> None:
    run = Session()
    barrier = run("Barrier", block="b", component_types=["int32", "string"], shapes=[[], []])
    run("BarrierInsertMany", barrier, text(b"x", b"y"), np.array([1, 2], np.int32), component_index=0)
    run("BarrierInsertMany", barrier, text(b"y"), text(b"why"), component_index=1)
    assert run("BarrierReadySize", barrier) == 1 and run("BarrierIncompleteSize", barrier) == 1
    run("BarrierInsertMany", barrier, text(b"x"), text(b"ex"), component_index=1)
    with pytest.raises(OutOfRangeError):
        run("BarrierTakeMany", barrier, number(3), component_types=["int32", "string"], allow_small_batch=True)
    run("BarrierClose", barrier)
    with pytest.raises(OutOfRangeError):
        run("BarrierInsertMany", barrier, text(b"z"), text(b"new"), component_index=1)
    taken = run("BarrierTakeMany", barrier, number(3), component_types=["int32", "string"], allow_small_batch=True)
    assert taken[0].tolist() == [-(2**63)] * 2 and sorted(taken[1].tolist()) == [b"x", b"y"]
    assert sorted(taken[2][0].tolist()) == [1, 2] and sorted(taken[2][1].tolist()) == [b"ex", b"why"]
    with pytest.raises(VoxgradError, match="a Barrier"):
        run("BarrierReadySize", run("ConditionalAccumulator", block="a", dtype="float32", shape=None))


def test_a_closed_barrier_counts_what_is_incomplete_unless_few_will_do() -> None:
    run, take = Session(), {"component_types": ["int32", "int32"]}
    barrier = run("Barrier", block="b", component_types=["int32", "int32"], shapes=[[], []])
    run("BarrierInsertMany", barrier, text(b"x"), np.array([1], np.int32), component_index=0)
    for small in (False, True):
        assert len(run("BarrierTakeMany", barrier, number(0), **take, allow_small_batch=small)[0]) == 0
    run("BarrierClose", barrier)
    assert len(run("BarrierTakeMany", barrier, number(0), **take, allow_small_batch=False)[0]) == 0
    with pytest.raises(OutOfRangeError):
        run("BarrierTakeMany", barrier, number(0), **take, allow_small_batch=True)
    with pytest.raises(OutOfRangeError):
        run("BarrierClose", barrier)
    run("BarrierClose", barrier, cancel_pending_enqueues=True)
    with pytest.raises(OutOfRangeError):
        run("BarrierClose", barrier, cancel_pending_enqueues=True)
    # Also where nothing is given: TensorFlow says Cancelled.
    with pytest.raises(OutOfRangeError, match="a barrier that was cancelled"):
        run("BarrierInsertMany", barrier, text(), np.zeros(0, np.int32), component_index=0)


def test_accumulators_drop_what_is_old_and_give_means() -> None:
    run = Session()
    handle = run("ConditionalAccumulator", block="a", dtype="float32", shape=[2])
    for value in (1, 3):
        run("AccumulatorApplyGradient", handle, number(0, np.int64), np.full(2, value, np.float32))
    with pytest.raises(OutOfRangeError):
        run("AccumulatorTakeGradient", handle, number(3), dtype="float32")
    assert run("AccumulatorTakeGradient", handle, number(2), dtype="float32").tolist() == [2, 2]
    run("AccumulatorApplyGradient", handle, number(0, np.int64), np.zeros(2, np.float32))
    assert run("AccumulatorNumAccumulated", handle) == 0
    run("AccumulatorSetGlobalStep", handle, number(0, np.int64))
    with pytest.raises(InvalidArgumentError, match="VG012"):
        run("AccumulatorApplyGradient", handle, number(0, np.int64), np.zeros(3, np.float32))
    rows = run("SparseConditionalAccumulator", block="r", dtype="float32", shape=[4, 1])
    for places in ([0, 2], [2, 3]):
        given = np.array(places), np.array([[1], [3]], np.float32), np.array([4, 1])
        run("SparseAccumulatorApplyGradient", rows, number(0, np.int64), *given, has_known_shape=True)
    taken = run("SparseAccumulatorTakeGradient", rows, number(2), dtype="float32")
    assert [one.tolist() for one in taken] == [[0, 2, 3], [[1], [2], [3]], [4, 1]]


def test_a_session_keeps_tensors_by_their_handles() -> None:
    run = Session()
    first, second = (run("GetSessionHandle", np.array([value])) for value in (1, 2))
    assert run("GetSessionTensor", first, dtype="int64") == 1 and run("GetSessionTensor", second, dtype="int64") == 2
    run("DeleteSessionTensor", first)
    with pytest.raises(InvalidArgumentError, match="handle"):
        run("GetSessionTensor", first, dtype="int64")
    with pytest.raises(InvalidArgumentError, match="dtype"):
        run("GetSessionTensor", second, dtype="int32")
    assert run("GetSessionHandleV2", np.array([1])) is not None


def test_kept_sparse_tensors_are_stacked_once() -> None:
    run, shared = Session(), {"shared_name": "k"}
    places, values = np.array([[0, 1], [2, 0]]), np.array([5.0, 6.0])
    single = run("AddSparseToTensorsMap", places[:1, 1:], values[:1], np.array([3]), **shared)
    rows = run("AddManySparseToTensorsMap", places, values, np.array([3, 2]), **shared)
    assert single == 0 and rows.tolist() == [1, 3, 2]
    taken = run("TakeManySparseFromTensorsMap", np.array([2, 0, 3]), dtype="float64", **shared)
    assert [one.tolist() for one in taken] == [[[0, 0], [1, 1]], [6.0, 5.0], [3, 3]]
    with pytest.raises(InvalidArgumentError, match="sparse_handles"):
        run("TakeManySparseFromTensorsMap", np.array([2]), dtype="float64", **shared)


def test_newer_checkpoints_save_and_restore_parts(tmp_path: Path) -> None:
    run, whole = Session(tmp_path), np.arange(12, dtype=np.float32).reshape(4, 3)
    run(
        "SaveV2",
        one(b"f"),
        text(b"w", b"w", b"v"),
        text(b"4 3 0,2:-", b"4 3 2,2:-", b""),
        [whole[:2], whole[2:], whole],
    )
    asked = text(b"4 3 1,2:0,2", b"4 3 -:2,1", b"")
    part, column, all_ = run("RestoreV2", one(b"f"), text(b"w", b"v", b"w"), asked, dtypes=["float32"] * 3)
    np.testing.assert_array_equal(part, whole[1:3, :2])
    np.testing.assert_array_equal(column, whole[:, 2:])
    np.testing.assert_array_equal(all_, whole)
    with pytest.raises(InvalidArgumentError, match="shape_and_slices must state the shape of v"):
        run("RestoreV2", one(b"f"), text(b"v"), text(b"5 3 0,2:-"), dtypes=["float32"])
