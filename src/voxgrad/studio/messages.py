# SPDX-License-Identifier: Apache-2.0
"""What clients and the studio say to each other. The OpenAPI document and the TypeScript types are made from this."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Document = dict[str, Any]
"""A page as the page file has it; `voxgrad.formats.page_file` reads and checks it."""

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Title = Annotated[str, Field(min_length=1, max_length=200)]
Engine = Literal["cpu", "cuda", "tensorflow", "torch"]
RunState = Literal["queued", "running", "done", "failed", "cancelled"]
BlockState = Literal["queued", "started", "progress", "done", "cached", "failed"]


class Asked(BaseModel):
    """What a client sends: unknown entries are refused."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """What the studio sends."""


# Errors


class FaultData(Told):
    """One thing that is wrong, as in `voxgrad.errors.Fault`."""

    code: str
    op: str
    argument: str
    wanted: str
    got: str
    remedy: str = ""
    where: str = ""


class ErrorData(Told):
    """Why something was refused or failed."""

    message: str
    faults: list[FaultData] = []


class Failure(Told):
    """The body of every answer with a status of 400 or more."""

    error: ErrorData
    revision: int | None = None


# The installation


class Limits(Told):
    """What a run and a request may take."""

    memory_bytes: int
    flops: float
    seconds: float
    body_bytes: int
    blocks: int


class Address(Told):
    """Where one more browser is let in."""

    address: str


class Info(Told):
    """About this studio."""

    version: str
    folder: str
    limits: Limits
    languages: list[str]


class OpInput(Told):
    """An input of an op."""

    name: str
    types: list[str]
    type_var: str | None
    shape: str
    host: bool
    many: bool
    doc: str
    layout: str


class OpAttr(Told):
    """An attribute of an op."""

    name: str
    kind: str
    default: Any
    required: bool
    choices: list[Any]
    length: int | None
    doc: str


class OpOutput(Told):
    """An output of an op."""

    name: str
    types: list[str]
    type_var: str | None
    shape: str
    many: bool
    doc: str
    layout: str
    count: str


class OpLaw(Told):
    """A promise about an edge."""

    name: str
    text: str


class OpData(Told):
    """The declaration of an op, for the palette and the property panel."""

    name: str
    group: str
    package: str
    """The installed package that brings it, with its version; "" for the catalogue's own."""
    summary: str
    doc: str
    laws: list[OpLaw]
    example: str
    inputs: list[OpInput]
    attrs: list[OpAttr]
    outputs: list[OpOutput]
    aliases: list[str]
    differentiable: bool
    stateful: bool
    family: bool


class Ops(Told):
    """All declared ops."""

    ops: list[OpData]


class BrokenPage(Told):
    """A page of the library that cannot be used."""

    name: str
    error: str


class KeptPages(Told):
    """The pages of the library as blocks, as ops are told; `where` is the folder in which pages are kept."""

    pages: list[OpData]
    broken: list[BrokenPage]
    where: str


class AskKeep(Asked):
    """Keep a page, or a page inside it, in the library; one of that name is replaced only if asked."""

    document: Document
    path: list[str] = []
    name: Annotated[str, Field(min_length=1, max_length=100)]
    replace: bool = False


class PageKept(Told):
    """The document, in which the page that was kept says where it lies."""

    name: str
    document: Document


class OpResult(Told):
    """What an output of an example holds, as texts."""

    path: str
    spec: str
    text: str


class OpHelp(Told):
    """The page of an op: what the reference has of it."""

    formula: str
    block_svg: str
    code: str
    results: list[OpResult]
    example_svg: str
    slopes: list[str]
    gradient_svg: str
    forms: dict[str, list[str]]
    differences: list[str]
    deprecated: str


class AskLesson(Asked):
    """An op on a small grid: the places of what was chosen, and numbers that were typed into tensors."""

    places: Annotated[list[int], Field(max_length=5)]
    typed: dict[str, Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=64)]] = {}


class LessonData(Told):
    """A lesson as `voxgrad.formats.explainer.packing` writes it."""

    pack: dict[str, Any]


class EngineData(Told):
    """Something that can run a page."""

    name: Engine
    available: bool
    why_not: str
    version: str


class Engines(Told):
    """What can run a page here."""

    engines: list[EngineData]


class Card(Told):
    """An example."""

    id: str
    title: str
    summary: str
    picture_svg: str


class Gallery(Told):
    """The examples."""

    cards: list[Card]


# Pages


class Draft(Told):
    """What was typed and not saved."""

    document: Document
    base_revision: int
    saved_at: float


class PageEntry(Told):
    """A page in the list of pages. `error` says why it cannot be opened."""

    id: str
    name: str
    file: str
    revision: int
    modified: float
    has_draft: bool
    error: str | None = None


class Pages(Told):
    """All pages of the folder."""

    pages: list[PageEntry]


class PageData(Told):
    """A page with its document."""

    id: str
    name: str
    file: str
    revision: int
    document: Document
    draft: Draft | None = None


class NewPage(Asked):
    """Make a page."""

    name: Title
    document: Document | None = None


class SavePage(Asked):
    """Save a page that was opened at this revision."""

    revision: int
    document: Document


class Saved(Told):
    """The new revision."""

    revision: int
    modified: float


class SaveDraft(Asked):
    """Keep what is typed."""

    base_revision: int
    document: Document


class DraftSaved(Told):
    """It is on the disk."""

    saved_at: float


class NewSnapshot(Asked):
    """Keep the saved page under a name."""

    name: Title


class Snapshot(Told):
    """A named state of a page."""

    number: int
    name: str
    saved_at: float


class Snapshots(Told):
    """The named states of a page."""

    snapshots: list[Snapshot]


class DocumentData(Told):
    """A document alone."""

    document: Document


class Nothing(Told):
    """It is done."""


# Looking at a page


class AskAnalyse(Asked):
    """What is known of a page without running it?"""

    document: Document


class PinData(Told):
    """What is known of a pin; sizes are integers or texts such as ceil(D/2)."""

    dtype: str | None
    shape: list[int | str] | None
    text: str
    direction: Literal["input", "output"]


class FixData(Told):
    """A repair: send its edits to /api/edit."""

    title: str
    edits: list[dict[str, Any]]


class ProblemData(Told):
    """Something wrong on a pin or attribute of a block."""

    block: str
    pin: str
    op: str
    code: str
    wanted: str
    got: str
    remedy: str
    message: str
    fixes: list[FixData]


class BlockCost(Told):
    """What a block takes; None where sizes are open."""

    bytes: int | None
    flops: int | None


class EstimateData(Told):
    """What a run of the page takes."""

    blocks: dict[str, BlockCost]
    peak_bytes: int | None
    flops: int | None


class Analysis(Told):
    """All that is known of a page without running it."""

    pins: dict[str, dict[str, PinData]]
    problems: list[ProblemData]
    warnings: list[ProblemData]
    """What is allowed and most likely not meant, and what blocks without any wire miss; it does not stop a run."""
    estimate: EstimateData
    order: list[str]
    seconds: float


class AskEdit(Asked):
    """Change a document, by edits as `voxgrad.graph.edits` describes them, all or none.

    `path` are the names of the pages from the outermost inwards, where the edits are those of an inner page.
    """

    document: Document
    path: list[str] = []
    edits: Annotated[list[dict[str, Any]], Field(min_length=1)]


class Edited(Told):
    """The changed document, and the names of the blocks that are new on the page that was edited."""

    document: Document
    added: list[str]


class AskTrace(Asked):
    """Where does an element of an output come from, or where does it go?"""

    document: Document
    block: str
    output: str = ""
    index: Annotated[list[int], Field(max_length=32)]
    depth: Annotated[int, Field(ge=1, le=64)] = 1
    run: str | None = None


class AskPlaces(Asked):
    """Where do the results of a page lie in space?"""

    document: Document


class AxisPlace(Told):
    """An axis of a tensor in space: from an element to the next, and from the origin of the volume to the first.

    `step` is that way as x, y, z, to the right, to the front and upwards, `low` and `high` the letters at the ends;
    both are empty where the volume does not say how it lies.
    """

    spacing: float
    first: float
    step: list[float]
    low: str
    high: str


class Place(Told):
    """A tensor in space, axis by axis; null for those that lead nowhere. `lost` says why, where it lay somewhere."""

    unit: str
    axes: list[AxisPlace | None]
    origin: list[float]
    lost: str


class Places(Told):
    """The places of the results that are made of volumes, by block and output, with the pages that lead to them."""

    places: dict[str, Place]


# Running


class AskRun(Asked):
    """Run a page: all of it, some blocks, or up to one. With `repeats` it is measured: so many runs more, all cold."""

    page_id: str
    document: Document
    fetch: list[str] | None = None
    to: str | None = None
    cycles: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    engine: Engine = "cpu"
    session: Literal["keep", "new"] = "new"
    feeds: dict[str, Any] = {}
    repeats: Annotated[int, Field(ge=0, le=100)] = 0


class AskSweep(Asked):
    """Run a page with other values: what varies by its name, `block.attribute`, `block.input`, semantics or engine.

    Values stand between commas, as a person types them. Without `fetch`, the results are those that the page shows.
    """

    page_id: str
    document: Document
    variations: Annotated[dict[str, Annotated[str, Field(max_length=100_000)]], Field(max_length=16)]
    zipped: bool = False
    fetch: Annotated[list[str], Field(max_length=64)] = []
    cycles: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    engine: Engine = "cpu"
    feeds: dict[str, Any] = {}


class SweepPlan(Told):
    """What a sweep will run: its points, the values of what varies, and the results of each point."""

    points: int
    values: dict[str, list[str]]
    fetches: list[str]


class ReadingData(Told):
    """A result at a glance: one number, or the least, the mean and the greatest of the finite ones."""

    dtype: str
    shape: list[int]
    value: float | None
    low: float | None
    mean: float | None
    high: float | None
    not_finite: int


class SweepRow(Told):
    """What a point gave, or what was wrong with it. Its edits put its values into the page."""

    index: int
    values: dict[str, str]
    engine: str
    results: dict[str, ReadingData]
    times: TimesData | None
    faults: list[FaultData]
    edits: list[dict[str, Any]]


class SweepData(Told):
    """How far a sweep is; `rows` is empty in lists of sweeps."""

    id: str
    page_id: str
    state: RunState
    started: float
    seconds: float
    plan: SweepPlan
    repeats: int
    done: int
    rows: list[SweepRow]


class Sweeps(Told):
    """Sweeps, the newest first."""

    sweeps: list[SweepData]


class AskFiles(Asked):
    """Which files a page wants to touch outside of its folder."""

    document: Document


class AllowFiles(Asked):
    """Let a page, as it is, use these folders besides, and no others."""

    document: Document
    folders: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=32)]


class WantedFile(Told):
    """A file that a block names and may not touch, and the folder that would have to be allowed."""

    block: str
    op: str
    name: str
    write: bool
    folder: str


class PageFiles(Told):
    """What a page wants, and what it was allowed."""

    wanted: list[WantedFile]
    allowed: list[str]


class RunStarted(Told):
    """The run was accepted."""

    run_id: str


class Brief(Told):
    """A tensor at a glance; statistics are over finite values."""

    count: int
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    nan: int = 0
    infinite: int = 0
    values: list[str]


class OutputData(Told):
    """A result. `hash` is None for texts, which are in the summary alone."""

    name: str
    hash: str | None
    dtype: str
    shape: list[int]
    summary: Brief


class TimesData(Told):
    """Seconds of several cold runs: the middle one, the shortest and the longest. `first` loaded and warmed before."""

    count: int
    median: float
    low: float
    high: float
    first: float | None


class BlockRun(Told):
    """What a run did with a block; `times` where it was run several times to be measured."""

    block: str
    cycle: int
    state: BlockState
    seconds: float | None = None
    reason: str = ""
    outputs: list[OutputData] = []
    error: ErrorData | None = None
    times: TimesData | None = None


class RunData(Told):
    """A run; `blocks` is empty in lists of runs. `times` are those of the whole page where it was measured, cold."""

    id: str
    page_id: str
    engine: str
    state: RunState
    started: float
    seconds: float | None
    cycles: int
    error: ErrorData | None = None
    times: TimesData | None = None
    blocks: list[BlockRun] = []


class Runs(Told):
    """Runs, the newest first."""

    runs: list[RunData]


class CurveData(Told):
    """Numbers over the cycles of a run; None where one is not finite."""

    path: str
    cycles: list[int]
    values: list[float | None]


class RunCurves(Told):
    """All curves of a run, with no more points than a chart can show."""

    run: str
    curves: list[CurveData]


class RunStateData(Told):
    """Where a run stands."""

    state: RunState


class AskReset(Asked):
    """Forget the variables and the random state of a page."""

    page_id: str


class AskCheck(Asked):
    """Check gradients against differences."""

    document: Document
    of: list[str] | None = None
    feeds: dict[str, Any] = {}


class CheckStep(Told):
    """The error at one step of the difference."""

    step: float
    error: float | None


class CheckRow(Told):
    """The gradient of one block with respect to one input."""

    block: str
    op: str
    input: str
    error: float | None
    ok: bool
    note: str
    steps: list[CheckStep]


class Checked(Told):
    """All rows of a gradient check."""

    rows: list[CheckRow]
    seconds: float


# Tensors


class Histogram(Told):
    """Counts of the finite values between edges."""

    edges: list[float]
    counts: list[int]


class Preview(Told):
    """The first values in row-major order."""

    shape: list[int]
    values: list[str]


class Thumbnail(Told):
    """A slice as levels 0..254 from lo to hi, 255 where a value is not finite; base64 of its bytes."""

    axes: list[int]
    at: list[int]
    shape: list[int]
    lo: float
    hi: float
    values: str


class Summary(Told):
    """A tensor without its values; statistics are over finite values."""

    hash: str
    dtype: str
    shape: list[int]
    count: int
    bytes: int
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    nan: int
    posinf: int
    neginf: int
    zeros: int
    histogram: Histogram | None
    preview: Preview
    thumbnail: Thumbnail | None


class ByHash(Asked):
    """A tensor by its content."""

    hash: Hash


class ByRun(Asked):
    """A tensor by the run, the block and the output that it came from."""

    run: str
    block: str
    output: str = ""


class AskCompare(Asked):
    """How do two tensors differ?"""

    left: ByHash | ByRun
    right: ByHash | ByRun


class Difference(Told):
    """One place where two tensors differ."""

    index: list[int]
    left: str
    right: str


class Compared(Told):
    """How two tensors differ. `hash` is the tensor of the differences; None stands for infinite numbers."""

    dtype: str
    shape: list[int]
    max_abs: float | None
    max_rel: float | None
    max_ulp: float | None
    mean_abs: float | None
    differing: int
    count: int
    where: list[Difference]
    hash: str | None


class AskCompareRuns(Asked):
    """How do runs differ, block by block? The others are compared with the first; they may be of several engines."""

    runs: Annotated[list[str], Field(min_length=1, max_length=8)]


class RunSide(Told):
    """An output in one run, and how far it is from that of the first run.

    `seconds` is None where the result was kept from an earlier run. `same` is None where nothing can be compared, and
    in the first run; differences that are None beside it are infinite, or of a type that has no such steps.
    """

    hash: str | None
    dtype: str
    shape: list[int]
    state: BlockState
    seconds: float | None
    times: TimesData | None = None
    same: bool | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    max_ulp: float | None = None
    note: str = ""


class RunRow(Told):
    """One output in all runs: None for a run that did not come to its block. A block that failed has no outputs."""

    block: str
    output: str
    sides: list[RunSide | None]


class ComparedRuns(Told):
    """All outputs of some runs, in the order of the first."""

    runs: list[RunData]
    rows: list[RunRow]


# Files


class FileData(Asked):
    """A file that is brought in."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    base64: str


class AskImport(Asked):
    """Files that belong together."""

    files: Annotated[list[FileData], Field(min_length=1, max_length=10_000)]


class Imported(Told):
    """The page that was made, the others of a project, and what was changed or could not be kept."""

    page: PageData
    others: list[PageData]
    report: list[str]


class ImportedTensor(Told):
    """An array of a file, among the tensors of the studio: what a result is compared with."""

    hash: str
    dtype: str
    shape: list[int]


class ImportedBlocks(Told):
    """The blocks that were made, as a document of their own that is kept nowhere."""

    document: Document
    report: list[str]


ExportFormat = Literal["python", "tensorflow", "svg", "png", "json", "npz", "report"]


class AskDisplays(Asked):
    """Draw the displays of a document, or of the page at a path in it, with the results of a run.

    `before` stands before the names of the page's blocks in the run: those of the blocks that stand for it.
    """

    document: Document
    path: list[str] = []
    before: str = ""
    run: str | None = None


class MarkData(Told):
    """A part of a display: rect, line, area, circle, ring, text or image, as `voxgrad.formats.picture.marks` says."""

    form: str
    points: list[float]
    style: str
    size: float
    text: str
    anchor: str
    image: str


class DrawnDisplay(Told):
    """A display as marks, from its upper left corner, and what it shows in words."""

    name: str
    marks: list[MarkData]
    says: str


class DrawnDisplays(Told):
    """The displays of a page."""

    displays: list[DrawnDisplay]


class AskExport(Asked):
    """A document as a file of another kind. A picture that the browser has drawn, in base64, gets the page inside."""

    document: Document
    format: ExportFormat
    run: str | None = None
    picture: str | None = None


# Volumes, and pages over them in chunks


class VolumeData(Told):
    """A volume in the folder, from its header; sizes as [N, D, H, W, C]. `error` says why it cannot be opened."""

    name: str
    format: str = ""
    shape: list[int] = []
    axes: str = ""
    dtype: str = ""
    spacing: list[float] = []
    unit: str = ""
    chunks: list[int] | None = None
    bytes: int = 0
    error: str = ""


class Volumes(Told):
    """The volumes of the folder."""

    volumes: list[VolumeData]


class AskChunkedRun(Asked):
    """Run a page over volumes, chunk by chunk. Blocks by name, volumes by name in the folder."""

    document: Document
    volumes: Annotated[dict[str, str], Field(min_length=1, max_length=16)]
    outputs: Annotated[dict[str, str], Field(min_length=1, max_length=16)]
    chunks: Annotated[list[Annotated[int, Field(ge=1, le=2**20)]], Field(min_length=3, max_length=3)]
    workers: Annotated[int, Field(ge=1, le=256)] | None = None


class FailedChunk(Told):
    """A chunk that raised, and what it said."""

    chunk: int
    message: str


class ChunkedRun(Told):
    """How far a run is. `cells` has a letter for each cell of the `shown` grid: failed, running, done, or tenths."""

    id: str
    name: str
    phase: Literal["running", "finished", "failed", "stopped"]
    grid: list[int]
    chunks: list[int]
    shown: list[int]
    cells: str
    total: int
    done: int
    running: int
    failed: list[FailedChunk]
    rate: float
    seconds: float
    seconds_left: float | None
    stoppable: bool
    error: str | None


class ChunkedRuns(Told):
    """Runs in chunks that have records in the folder, the newest first."""

    runs: list[ChunkedRun]


# Events


class HelloEvent(Told):
    """The first event."""

    type: Literal["hello"] = "hello"
    version: str


class RunEvent(Told):
    """A run has changed its state, or begins to be measured for the `repeat`-th time."""

    type: Literal["run"] = "run"
    run: str
    page: str
    engine: str
    state: RunState
    seconds: float | None = None
    error: ErrorData | None = None
    repeat: int | None = None


class BlockEvent(BlockRun):
    """A block of a run has changed its state; `fraction` says how far a long one is."""

    type: Literal["block"] = "block"
    run: str
    fraction: float | None = None


class ScalarEvent(Told):
    """A block gave one number; for trend charts. None where it is not finite."""

    type: Literal["scalar"] = "scalar"
    run: str
    cycle: int
    block: str
    output: str
    value: float | None


class SweepEvent(Told):
    """A sweep has changed its state, or has one more row."""

    type: Literal["sweep"] = "sweep"
    sweep: str
    page: str
    state: RunState
    done: int
    points: int
    seconds: float
    row: SweepRow | None


class PageEvent(Told):
    """A page was saved, by a client or by another program; without a revision it is gone."""

    type: Literal["page"] = "page"
    id: str
    revision: int | None


class LogEvent(Told):
    """A line that a block printed."""

    type: Literal["log"] = "log"
    run: str
    text: str


Event = Annotated[
    HelloEvent | RunEvent | BlockEvent | ScalarEvent | SweepEvent | PageEvent | LogEvent, Field(discriminator="type")
]
"""What comes over the WebSocket."""
