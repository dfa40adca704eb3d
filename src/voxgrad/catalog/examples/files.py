# SPDX-License-Identifier: Apache-2.0
"""Files: whole ones, records, checkpoints. Every example writes what it reads, into the folder of its run."""

_TEXT = 'file = WriteFile(filename="words.txt", contents="one\\ntwo\\nthree\\n")\n'
_QUEUE = """
names = FIFOQueueV2(component_types=["string"], shapes=[[]])
name = QueueEnqueueV2(handle=names, components=["words.txt"], after=file)
"""
_READ = "record = ReaderReadV2(reader_handle=reader, queue_handle=names, after=name)\n"
_LINES = _TEXT + _QUEUE + "reader = TextLineReaderV2()\n"
_RECORD = "AwAAAAAAAACwmUkOb25lAUBVCA"
_SAVED = 'file = Save(filename="weights.t", tensor_names=["W", "B"], data=[[1.0, 2.0], [3.0]])\n'
_SAVED_V2 = (
    'file = SaveV2(prefix="weights", tensor_names=["W", "B"], shape_and_slices=["", ""], tensors=[[1.0, 2.0], [3.0]])\n'
)


def _records(text: str) -> str:
    return f'bytes = DecodeBase64(input="{_RECORD}")\nfile = WriteFile(filename="words.txt", contents=bytes)\n{text}'


EXAMPLES = {
    "FixedLengthRecordReaderV2": (
        "",
        _TEXT + _QUEUE + "reader = FixedLengthRecordReaderV2(record_bytes=3, footer_bytes=2)\n" + _READ,
    ),
    "TextLineReaderV2": ("", _LINES + _READ),
    "WholeFileReaderV2": ("", _TEXT + _QUEUE + "reader = WholeFileReaderV2()\n" + _READ),
    "IdentityReaderV2": ("", _TEXT + _QUEUE + "reader = IdentityReaderV2()\n" + _READ),
    "LMDBReader": ("", "reader = LMDBReader()\ncount = ReaderNumRecordsProducedV2(reader_handle=reader)"),
    "TFRecordReaderV2": ("", _records(_QUEUE + "reader = TFRecordReaderV2()\n" + _READ)),
    "ReaderReadV2": ("", _LINES + _READ),
    "ReaderReadUpToV2": (
        "",
        _LINES + "two = ReaderReadUpToV2(reader_handle=reader, queue_handle=names, num_records=2, after=name)",
    ),
    "ReaderNumRecordsProducedV2": (
        "",
        _LINES + _READ + "count = ReaderNumRecordsProducedV2(reader_handle=reader, after=record)",
    ),
    "ReaderNumWorkUnitsCompletedV2": (
        "",
        _LINES + _READ + "count = ReaderNumWorkUnitsCompletedV2(reader_handle=reader, after=record)",
    ),
    "ReaderResetV2": (
        "",
        _LINES
        + _READ
        + "reset = ReaderResetV2(reader_handle=reader, after=record)\n"
        + "count = ReaderNumRecordsProducedV2(reader_handle=reader, after=reset)",
    ),
    "ReaderSerializeStateV2": (
        "",
        _TEXT
        + _QUEUE
        + """
        reader = IdentityReaderV2()
        record = ReaderReadV2(reader_handle=reader, queue_handle=names, after=name)
        state = ReaderSerializeStateV2(reader_handle=reader, after=record)
        """,
    ),
    "ReaderRestoreStateV2": (
        "",
        _TEXT
        + _QUEUE
        + """
        reader = IdentityReaderV2()
        record = ReaderReadV2(reader_handle=reader, queue_handle=names, after=name)
        state = ReaderSerializeStateV2(reader_handle=reader, after=record)
        fresh = IdentityReaderV2()
        back = ReaderRestoreStateV2(reader_handle=fresh, state=state)
        count = ReaderNumRecordsProducedV2(reader_handle=fresh, after=back)
        """,
    ),
    "RecordInput": ("", _records('records = RecordInput(file_pattern="words.txt", batch_size=2, after=file)')),
    "ImmutableConst": (
        "",
        """
        file = WriteFile(filename="four.bin", contents="\\x01\\x02\\x03\\x04")
        ImmutableConst(dtype="uint8", shape=[2, 2], memory_region_name="four.bin", after=file)
        """,
    ),
    "ReadFile": ("", _TEXT + 'ReadFile(filename="words.txt", after=file)'),
    "WriteFile": ("", _TEXT + 'ReadFile(filename="words.txt", after=file)'),
    "MatchingFiles": (
        "",
        """
        file = WriteFile(filename="texts/words.txt", contents="one")
        MatchingFiles(pattern="texts/*.txt", after=file)
        """,
    ),
    "Save": ("", _SAVED + 'Restore(file_pattern="weights.t", tensor_name="W", dt="float32", after=file)'),
    "Restore": ("", _SAVED + 'Restore(file_pattern="weights.t", tensor_name="B", dt="float32", after=file)'),
    "SaveV2": (
        "",
        _SAVED_V2
        + 'RestoreV2(prefix="weights", tensor_names=["W"], shape_and_slices=[""], dtypes=["float32"], after=file)',
    ),
    "RestoreV2": (
        "",
        _SAVED_V2
        + 'RestoreV2(prefix="weights", tensor_names=["B", "W"], shape_and_slices=["", "2 1,1"], '
        + 'dtypes=["float32", "float32"], after=file)',
    ),
    "SaveSlices": (
        "",
        """
        file = SaveSlices(filename="weights.t", tensor_names=["W"], shapes_and_slices=["2 2 0,1:0,2"],
                          data=[[[1.0, 2.0]]])
        RestoreSlice(file_pattern="weights.t", tensor_name="W", shape_and_slice="2 2 0,1:1,1", dt="float32", after=file)
        """,
    ),
    "RestoreSlice": (
        "",
        _SAVED
        + 'RestoreSlice(file_pattern="weights.t", tensor_name="W", shape_and_slice="2 1,1", dt="float32", after=file)',
    ),
    "MergeV2Checkpoints": (
        "",
        """
        one = SaveV2(prefix="part_1", tensor_names=["W"], shape_and_slices=[""], tensors=[[1.0, 2.0]])
        two = SaveV2(prefix="part_2", tensor_names=["B"], shape_and_slices=[""], tensors=[[3.0]], after=one)
        whole = MergeV2Checkpoints(checkpoint_prefixes=["part_1", "part_2"], destination_prefix="whole", after=two)
        RestoreV2(prefix="whole", tensor_names=["W", "B"], shape_and_slices=["", ""], dtypes=["float32", "float32"],
                  after=whole)
        """,
    ),
    "ShardedFilename": ("", 'ShardedFilename(basename="weights", shard=1, num_shards=4)'),
    "ShardedFilespec": ("", 'ShardedFilespec(basename="weights", num_shards=4)'),
}
