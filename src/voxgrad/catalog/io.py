# SPDX-License-Identifier: Apache-2.0
"""Files: readers, saved tensors, whole files. Which of them a page may touch, `docs/security.md` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Spec
from voxgrad.catalog.shapes import fixed, has_rank, scalar, specs, text, unknown
from voxgrad.errors import Faults, VoxgradError

_INSIDE = Law(
    "folder", "Only files in files/ beside the page are read or written, and those of folders that a person allows."
)
_SHARED = (Attr("container", "string", "A name space for shared readers.", ""),
           Attr("shared_name", "string", "Readers of one such name are one reader.", ""))  # fmt: skip
_READER = Input("reader_handle", dtypes.RESOURCE, "The reader.")
_QUEUE = Input("queue_handle", dtypes.RESOURCE, "The queue of file names.")
_NAME = Input("filename", dtypes.STRING, "The file.", "[]")


def _reader(name: str, summary: str, *attrs: Attr, after: tuple[Attr, ...] = ()) -> Op:
    return Op(
        name, "io", summary, (), (*attrs, *_SHARED, *after),
        (Output("reader_handle", dtypes.RESOURCE, "The reader.", "[]"),),
        infer=fixed(()), kernel="io.reader", aliases=(name[:-2],) if name.endswith("V2") else (), stateful=True,
        laws=(_INSIDE,),
    )  # fmt: skip


def _counted(name: str, summary: str, output: str, kernel: str) -> Op:
    return Op(
        name, "io", summary, (_READER,), outputs=(Output(output, dtypes.INT64, "The number.", "[]"),), infer=fixed(()),
        kernel=f"io.{kernel}", aliases=(name.removesuffix("V2"),), stateful=True,
    )  # fmt: skip


def _up_to_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    scalar(call, "num_records", faults)
    rows = (unknown(call, "records"),)
    return None if faults else specs(call, rows, rows)


def _save_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "tensor_names", 1, faults)
    names, data = call.inputs["tensor_names"].shape, call.inputs[call.op.inputs[-1].name]
    if names and isinstance(names[0], int) and names[0] != len(data):
        faults.add("VG004", "tensor_names", wanted=f"have one name for each of {len(data)} tensors", got=names[0])
    return None if faults else ()


def _restore_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    scalar(call, "tensor_name", faults)
    return None if faults else specs(call, None)


def _restore_many_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    return (tuple(Spec(dtype) for dtype in call.attrs.get("dtypes", ())),)


def _records_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    for name, least in (("batch_size", 1), ("file_buffer_size", 1), ("file_parallelism", 1)):
        if call.attrs.get(name, least) < least:
            faults.add("VG003", name, wanted=f"be {least} or more", got=call.attrs[name])
    if not 0 <= call.attrs.get("file_shuffle_shift_ratio", 0) < 1:
        wanted, got = "be 0 or more, below 1", call.attrs["file_shuffle_shift_ratio"]
        faults.add("VG003", "file_shuffle_shift_ratio", wanted=wanted, got=got)
    return None if faults else specs(call, (call.attrs.get("batch_size"),))


def _constant_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = call.attrs.get("shape")
    if shape is None or not all(isinstance(size, int) and size >= 0 for size in shape):
        faults.add("VG014", "shape", wanted="state every size", got=text(shape))
    return None if faults else specs(call, tuple(shape or ()))


def _written(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    return ()


def _found(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    return specs(call, (unknown(call, "files"),))


def _volume_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    """The sizes that the file's header tells; names for them where there is no folder to look in."""
    shape: tuple[Any, ...] = tuple(unknown(call, name) for name in ("n", "d", "h", "w", "c"))
    if call.header is not None:
        try:
            shape = tuple(call.header(call.attrs["path"], call.attrs["axes"]))
        except VoxgradError as error:
            fault = error.faults[0]
            faults.add(fault.code, "path", wanted=fault.wanted, got=f"{call.attrs['path']}: {fault.got}",
                       remedy=fault.remedy)  # fmt: skip
    # What follows from the attributes alone stays known, so that one missing file is one problem.
    spatial = box_sizes(call.attrs["box"], shape[1:4], faults)
    return specs(call, (shape[0], *spatial, shape[4]))


def box_sizes(box: Sequence[int], sizes: Sequence[Any], faults: Faults) -> list[Any]:
    """The sizes of a box, first and end along depth, height and width, of a volume; all of it where it is empty."""
    if not box:
        return list(sizes)
    if len(box) != 6:
        faults.add("VG004", "box", wanted="be six numbers: first and end of depth, height, width", got=list(box))
        return list(sizes)
    ranges = list(zip(box[::2], box[1::2], strict=True))
    for (first, end), size in zip(ranges, sizes, strict=True):
        if not 0 <= first <= end or (isinstance(size, int) and end > size):
            shown = [one if isinstance(one, int) else "?" for one in sizes]
            faults.add("VG003", "box", wanted=f"lie inside the volume's {shown}", got=list(box))
            break
    return [end - first for first, end in ranges]


_SHARD = Attr("preferred_shard", "int", "Without effect here.", -1)
_WRITES = (
    "Files are TensorFlow's, byte for byte: {}. Where the name ends in .npz, a NumPy archive, which holds no texts."
)
_V1 = Law("format", _WRITES.format("a checkpoint of the first version"))
_V2 = Law("format", _WRITES.format("a checkpoint of the second version, NAME.index and NAME.data-00000-of-00001"))
_READS = Law(
    "format",
    "Checkpoints of both versions are read, and .npz archives, whatever they are called. Checksums of "
    "the second version are held against the data.",
)
_NAMES = Input("tensor_names", dtypes.STRING, "The names of the tensors.", "[n]")
_SLICE_DOC = "The sizes of the whole and the part of it, as in '4 10 0,2:-'; empty for the whole."
_SLICES = Input("shape_and_slices", dtypes.STRING, _SLICE_DOC, "[n]")
_IN_BYTES = tuple(one for one in dtypes.ALL if one.itemsize)
_ONE_RECORD = Law("readers", "Only of WholeFileReader and IdentityReader, as in TensorFlow.")
_FILENAME = Output("filename", dtypes.STRING, "The name.", "[]")

OPS = (
    _reader("FixedLengthRecordReaderV2", "Reads records of a fixed length.",
            Attr("record_bytes", "int", "Bytes of a record."),
            Attr("header_bytes", "int", "Bytes to skip at the front.", 0),
            Attr("footer_bytes", "int", "Bytes to leave at the end.", 0),
            Attr("hop_bytes", "int", "Bytes from record to record; 0 for record_bytes.", 0),
            after=(Attr("encoding", "string", "How files are packed.", "", choices=("", "ZLIB", "GZIP")),)),
    _reader("TextLineReaderV2", "Reads lines of text.",
            Attr("skip_header_lines", "int", "Lines to skip at the front.", 0)),
    _reader("WholeFileReaderV2", "Reads whole files."),
    _reader("IdentityReaderV2", "Gives the names of the queue as records."),
    _reader("LMDBReader", "Reads the entries of LMDB databases, by their keys."),
    _reader("TFRecordReaderV2", "Reads the records of TFRecord files.",
            after=(Attr("compression_type", "string", "How files are packed.", "", choices=("", "ZLIB", "GZIP")),)),
    Op("ReaderReadV2", "io", "The next record, from the next file of the queue where one ends.", (_READER, _QUEUE),
       outputs=(Output("key", dtypes.STRING, "Its name: file and place.", "[]"),
                Output("value", dtypes.STRING, "Its bytes.", "[]")),
       infer=fixed((), ()), kernel="io.read", aliases=("ReaderRead",), stateful=True, laws=(_INSIDE,)),
    Op("ReaderReadUpToV2", "io", "Up to so many records of one file.",
       (_READER, _QUEUE, Input("num_records", dtypes.INT64, "How many at most.", "[]")),
       outputs=(Output("keys", dtypes.STRING, "Their names.", "[records]"),
                Output("values", dtypes.STRING, "Their bytes.", "[records]")),
       infer=_up_to_infer, kernel="io.read_up_to", aliases=("ReaderReadUpTo",), stateful=True, laws=(_INSIDE,)),
    _counted("ReaderNumRecordsProducedV2", "How many records a reader gave.", "records_produced", "records_produced"),
    _counted("ReaderNumWorkUnitsCompletedV2", "How many files a reader finished.", "units_completed",
             "units_completed"),
    Op("ReaderResetV2", "io", "A reader as it was at first.", (_READER,), infer=_written, kernel="io.reset",
       aliases=("ReaderReset",), stateful=True),
    Op("ReaderSerializeStateV2", "io", "Where a reader stands, as bytes.", (_READER,),
       outputs=(Output("state", dtypes.STRING, "The bytes.", "[]"),), infer=fixed(()), kernel="io.serialize_state",
       aliases=("ReaderSerializeState",), stateful=True, laws=(_ONE_RECORD,)),
    Op("ReaderRestoreStateV2", "io", "A reader as it stood before.",
       (_READER, Input("state", dtypes.STRING, "What ReaderSerializeState gave.", "[]")), infer=_written,
       kernel="io.restore_state", aliases=("ReaderRestoreState",), stateful=True, laws=(_ONE_RECORD,)),
    Op("RecordInput", "data_flow", "Records of TFRecord files in random order, over and over.", (),
       (Attr("file_pattern", "string", "The files: patterns with commas between."),
        Attr("file_random_seed", "int", "The order of the files and records follows from it.", 301),
        Attr("file_shuffle_shift_ratio", "float", "The part of the shuffled files that comes last.", 0.0),
        Attr("file_buffer_size", "int", "Records to choose from.", 10000),
        Attr("file_parallelism", "int", "Without effect here.", 16),
        Attr("batch_size", "int", "How many records come at a time.", 32),
        Attr("compression_type", "string", "How files are packed.", "", choices=("", "ZLIB", "GZIP"))),
       (Output("records", dtypes.STRING, "The records.", "[batch_size]"),), infer=_records_infer,
       kernel="io.record_input", stateful=True,
       laws=(_INSIDE, Law("order", "The order is the same for a seed; TensorFlow's depends on its threads, too."))),
    Op("ImmutableConst", "array", "A tensor from the bytes of a file.", (),
       (Attr("dtype", "type", "The type of the elements.", choices=_IN_BYTES),
        Attr("shape", "shape", "The shape of the tensor."), Attr("memory_region_name", "string", "The file.")),
       (Output("tensor", "dtype", "The tensor.", "shape"),), {"dtype": _IN_BYTES}, infer=_constant_infer,
       kernel="io.immutable_const", stateful=True, laws=(_INSIDE, Law("bytes", "Elements as they lie in memory, row by "
                                                                      "row, the lowest byte first."))),
    Op("ReadFile", "io", "The bytes of a file.", (_NAME,),
       outputs=(Output("contents", dtypes.STRING, "Its bytes.", "[]"),),
       infer=fixed(()), kernel="io.read_file", stateful=True, laws=(_INSIDE,)),
    Op("Volume", "io", "A volume from a file: a scan to start from.", (),
       (Attr("path", "string", "The file: .nii.gz, .zarr, .tif, .h5:/name, .npy, .npz:name, or a DICOM folder."),
        Attr("axes", "string", "Its dimensions in their order, as in zyx or tczyx; empty for what the file says.", ""),
        Attr("box", "ints", "First and end of depth, height, width, to read a part; empty for all.", ()),
        Attr("dtype", "type", "The type to read it as.", dtypes.FLOAT32)),
       (Output("output", "dtype", "The volume.", "[N, D, H, W, C]"),), {"dtype": dtypes.REAL}, infer=_volume_infer,
       kernel="io.volume", stateful=True, own=True,
       laws=(_INSIDE, Law("header", "The shape is known from the file's header, before a run."),
             Law("changes", "The file is read again at every run."))),
    Op("WriteFile", "io", "Write bytes to a file, with the folders that it needs.",
       (_NAME, Input("contents", dtypes.STRING, "The bytes.", "[]")), infer=_written, kernel="io.write_file",
       stateful=True,
       laws=(_INSIDE, Law("atomic", "The file is complete or as it was before."))),
    Op("MatchingFiles", "io", "The files that match a pattern such as data/*.bin.",
       (Input("pattern", dtypes.STRING, "The pattern, or several."),),
       outputs=(Output("filenames", dtypes.STRING, "Their names, sorted.", "[files]"),), infer=_found,
       kernel="io.matching_files", stateful=True, laws=(_INSIDE,)),
    Op("Save", "io", "Write tensors to a file.",
       (_NAME, _NAMES, Input("data", "T", "The tensors.", many=True, mixed=True)), types={"T": dtypes.ALL},
       infer=_save_infer,
       kernel="saving.save", stateful=True, laws=(_INSIDE, _V1, Law("atomic",
                                                                 "The file is complete or as it was before."))),
    Op("Restore", "io", "Read a tensor from a file.",
       (Input("file_pattern", dtypes.STRING, "The file.", "[]"),
        Input("tensor_name", dtypes.STRING, "The name of the tensor.", "[]")),
       (Attr("dt", "type", "Its type."), _SHARD), (Output("tensor", "dt", "The tensor."),), {"dt": dtypes.ALL},
       infer=_restore_infer, kernel="saving.restore", stateful=True, laws=(_INSIDE, _READS)),
    Op("SaveV2", "io", "Write tensors to files that begin with a name.",
       (Input("prefix", dtypes.STRING, "The name.", "[]"), _NAMES, _SLICES,
        Input("tensors", "dtypes", "The tensors.", many=True, mixed=True)), types={"dtypes": dtypes.ALL},
        infer=_save_infer,
       kernel="saving.save_v2", stateful=True, laws=(_INSIDE, _V2)),
    Op("RestoreV2", "io", "Read tensors from a file.",
       (Input("prefix", dtypes.STRING, "The file.", "[]"), _NAMES, _SLICES), (Attr("dtypes", "types", "Their types."),),
       (Output("tensors", "dtypes", "The tensors.", many=True, mixed=True, count="dtypes"),), {"dtypes": dtypes.ALL},
       infer=_restore_many_infer, kernel="saving.restore_v2", stateful=True, laws=(_INSIDE, _READS)),
    Op("SaveSlices", "io", "Write tensors, or parts of larger ones, to a file.",
       (_NAME, _NAMES, Input("shapes_and_slices", dtypes.STRING, _SLICE_DOC, "[n]"),
        Input("data", "T", "The tensors.", many=True, mixed=True)), types={"T": dtypes.ALL}, infer=_save_infer,
       kernel="saving.save_slices", stateful=True, laws=(_INSIDE, _V1)),
    Op("RestoreSlice", "io", "Read a tensor, or a part of it, from a file.",
       (Input("file_pattern", dtypes.STRING, "The file.", "[]"),
        Input("tensor_name", dtypes.STRING, "The name of the tensor.", "[]"),
        Input("shape_and_slice", dtypes.STRING, _SLICE_DOC, "[]")),
       (Attr("dt", "type", "Its type."), _SHARD), (Output("tensor", "dt", "The tensor."),), {"dt": dtypes.ALL},
       infer=_restore_infer, kernel="saving.restore_slice", stateful=True, laws=(_INSIDE, _READS)),
    Op("MergeV2Checkpoints", "io", "Put the tensors of several files into one, in place of them.",
       (Input("checkpoint_prefixes", dtypes.STRING, "The files.", "[n]"),
        Input("destination_prefix", dtypes.STRING, "The new file.", "[]")),
       (Attr("delete_old_dirs", "bool", "Delete the folders of the files where they are empty then.", True),
        Attr("allow_missing_files", "bool", "Leave out files that are not there.", False)), infer=_written,
       kernel="saving.merge_checkpoints", stateful=True, laws=(_INSIDE, _V2)),
    Op("ShardedFilename", "io", "The name of one file of several: name-00001-of-00004.",
       (Input("basename", dtypes.STRING, "The name.", "[]"), Input("shard", dtypes.INT32, "Which one.", "[]"),
        Input("num_shards", dtypes.INT32, "Of how many.", "[]")), outputs=(_FILENAME,), infer=fixed(()),
       kernel="io.sharded_filename"),
    Op("ShardedFilespec", "io", "The pattern of several files: name-?????-of-00004.",
       (Input("basename", dtypes.STRING, "The name.", "[]"), Input("num_shards", dtypes.INT32, "How many.", "[]")),
       outputs=(_FILENAME,), infer=fixed(()), kernel="io.sharded_filespec"),
)  # fmt: skip
