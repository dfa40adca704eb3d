# SPDX-License-Identifier: Apache-2.0
"""The studio as an ASGI application: routes that speak in messages, and nothing that knows what an op means."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from voxgrad import __version__
from voxgrad.catalog import registry
from voxgrad.errors import Fault, VoxgradError
from voxgrad.formats.explainer.asked import asked_lesson, lesson_page
from voxgrad.formats.op_page import example_as_page
from voxgrad.graph.block import Output
from voxgrad.graph.reach import Reached, reach
from voxgrad.graph.readings import Curve
from voxgrad.graph.trace import Traced, trace
from voxgrad.kernels.arraywise.files import Files
from voxgrad.studio import (
    analyse, displays, engines, exchange, gallery, gate, grants, guard, kept_pages, messages, summaries,
)  # fmt: skip
from voxgrad.studio.documents import MAX_BLOCKS, page_at
from voxgrad.studio.keys import Keys
from voxgrad.studio.pages import StaleRevision
from voxgrad.studio.planes import MOST_LIKENESS, Asked
from voxgrad.studio.runs import QueueFull
from voxgrad.studio.side_by_side import side_by_side
from voxgrad.studio.static_files import StaticFiles
from voxgrad.studio.studio import Studio
from voxgrad.studio.tensors import Array, cut, framed

T = TypeVar("T")
WATCH_SECONDS = 2.0
FOREVER = {"cache-control": "private, max-age=31536000, immutable"}


ADDRESS = "127.0.0.1"
"""The studio is for the person at this machine; there is no option to change this."""


def address(ticket: str, port: int) -> str:
    """Where a browser is let in, once."""
    return f"http://{ADDRESS}:{port}/?t={ticket}"


def create_app(studio: Studio, keys: Keys, port: int) -> FastAPI:
    """The application without its guard; `voxgrad.studio.server` puts that around it."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watcher = asyncio.get_running_loop().create_task(_watch(studio))
        try:
            yield
        finally:  # also where Ctrl-C came before the server was up: its workers would keep the program alive
            watcher.cancel()
            studio.hub.close()
            await studio.sweeps.close()
            await studio.runs.close()
            await off(studio.chunked.close)
            studio.close()

    app = _described(lifespan)
    app.state.studio, app.state.keys, app.state.port = studio, keys, port
    app.add_exception_handler(VoxgradError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_defect)
    files = StaticFiles()

    @app.get("/{name:path}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        found = await off(files.get, f"/{name}", request.headers.get("if-none-match"))
        if found is None:
            raise HTTPException(404, "There is no such file.")
        return found

    return app


def _described(lifespan: Any = None) -> FastAPI:
    """The application with its routes; pages that show the API are off, the document is made by `openapi`."""
    app = FastAPI(
        title="Voxgrad studio",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        responses={422: {"model": messages.Failure}},
    )
    app.include_router(api)
    app.webhooks.post("events", response_model=None)(_events_webhook)
    return app


def openapi() -> dict[str, Any]:
    """The OpenAPI document of the studio."""
    document = _described().openapi()
    # The route that takes a file or files reads its body itself, so its messages are added here.
    schema = messages.AskImport.model_json_schema(ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= schema.pop("$defs") | {"AskImport": schema}
    return document


def _events_webhook(event: messages.Event) -> None:
    """What comes over the WebSocket /api/events; declared here because OpenAPI has no WebSockets."""


async def _watch(studio: Studio) -> None:
    """Tell clients when another program changes a page."""
    await off(studio.pages.changes)
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        for page, revision in (await off(studio.pages.changes)).items():
            studio.hub.publish(messages.PageEvent(id=page, revision=revision))


async def off(function: Callable[..., T], *arguments: Any) -> T:
    """Do something that waits for the disk or computes, without holding up the others."""
    return await to_thread.run_sync(lambda: function(*arguments))


# Errors


def failure(status: int, message: str, faults: tuple[Fault, ...] = (), revision: int | None = None) -> JSONResponse:
    """An answer that says why not."""
    error = messages.ErrorData(message=message, faults=[analyse.fault_data(fault) for fault in faults])
    body = messages.Failure(error=error, revision=revision).model_dump(exclude_none=True)
    return JSONResponse(body, status)


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, VoxgradError)
    if isinstance(error, StaleRevision):
        return failure(409, str(error), error.faults, error.revision)
    if isinstance(error, QueueFull):
        return failure(429, str(error), error.faults)
    missing = any(fault.op == "studio" and fault.code == "VG050" for fault in error.faults)
    return failure(404 if missing else 422, str(error), error.faults)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = tuple(
        Fault("VG053", "studio", ".".join(map(str, one["loc"])), "fit the schema", one["msg"][:200])
        for one in error.errors()
    )
    return failure(422, "The request is malformed.", faults[:20])


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return failure(error.status_code, str(error.detail))


async def _on_defect(request: Request, error: Exception) -> Response:
    return failure(500, f"The studio has a defect: {type(error).__name__}. The terminal shows where.")


def _studio(request: Request) -> Studio:
    found: Studio = request.app.state.studio
    return found


Here = Annotated[Studio, Depends(_studio)]
api = APIRouter(prefix="/api")


# The installation


@api.post("/address")
async def new_address(request: Request) -> messages.Address:
    """An address that lets one more browser in."""
    state = request.app.state
    return messages.Address(address=address(state.keys.ticket(), state.port))


@api.get("/info")
async def info(studio: Here) -> messages.Info:
    """About this studio."""
    limits = studio.limits
    return messages.Info(
        version=__version__,
        folder=studio.project.root.name,
        limits=messages.Limits(
            memory_bytes=limits.memory,
            flops=limits.flops,
            seconds=limits.seconds,
            body_bytes=guard.BODY_LIMIT,
            blocks=MAX_BLOCKS,
        ),
        languages=["en", "ko"],
    )


@api.get("/ops", response_model=messages.Ops)
async def ops(request: Request) -> Response:
    """All declared ops."""
    body = await off(_ops_body)  # packages of blocks are loaded for it
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


@api.get("/ops/{name}")
async def op_help(name: str, theme: Literal["dark", "light"] = "dark") -> messages.OpHelp:
    """The page of an op, as the reference has it."""
    return await off(lambda: analyse.op_help(registry.find(name), theme))


@api.post("/ops/{name}/open")
async def open_example(name: str, studio: Here) -> messages.PageData:
    """The example of an op as a page in the folder."""

    def added() -> messages.PageData:
        page = example_as_page(registry.find(name))
        if page is None:
            raise HTTPException(404, f"{name} has no example.")
        return studio.pages.add(page)

    return await off(added)


@api.post("/ops/{name}/lesson")
async def lesson(name: str, ask: messages.AskLesson) -> messages.LessonData:
    """An op of the 3-D family on a small grid, with its gradients."""
    return messages.LessonData(pack=await off(asked_lesson, registry.find(name), ask.places, ask.typed))


@api.post("/ops/{name}/lesson/open")
async def open_lesson(name: str, ask: messages.AskLesson, studio: Here) -> messages.PageData:
    """The same as a page in the folder."""
    return await off(lambda: studio.pages.add(lesson_page(registry.find(name), ask.places, ask.typed)))


_bodies: dict[str, bytes] = {}


def _ops_body() -> bytes:
    if "ops" not in _bodies:
        _bodies["ops"] = analyse.ops().model_dump_json().encode()
    return _bodies["ops"]


@api.get("/engines")
async def engine_list() -> messages.Engines:
    """What can run a page here."""
    return messages.Engines(engines=await off(engines.found))


@api.get("/gallery")
async def cards() -> messages.Gallery:
    """The examples."""
    return messages.Gallery(cards=await off(gallery.cards))


@api.post("/gallery/{card}/open")
async def open_card(card: str, studio: Here) -> messages.PageData:
    """A copy of an example in the folder, with the files that it reads."""

    def copied() -> messages.PageData:
        page = gallery.page(card)
        gallery.bring_files(page, Files(studio.project.files))
        return studio.pages.add(page)

    return await off(copied)


# Pages that are kept to be used as blocks


@api.get("/library")
async def library(studio: Here) -> messages.KeptPages:
    """The pages of the library, as blocks."""
    return await off(kept_pages.listed, studio.library)


@api.get("/library/{name}")
async def library_page(name: str, studio: Here) -> messages.DocumentData:
    """A page of the library, to put into a page."""
    return await off(lambda: messages.DocumentData(document=studio.documents.write(studio.library.page(name))))


@api.post("/library")
async def keep_page(ask: messages.AskKeep, studio: Here) -> messages.PageKept:
    """Keep a page, or one inside it, in the library."""
    return await off(kept_pages.keep, studio.library, studio.documents, ask)


# Pages


@api.get("/pages")
async def pages(studio: Here) -> messages.Pages:
    """All pages of the folder."""
    return messages.Pages(pages=await off(studio.pages.entries))


@api.post("/pages")
async def create_page(ask: messages.NewPage, studio: Here) -> messages.PageData:
    """A new page."""
    return await off(studio.pages.create, ask.name, ask.document)


@api.get("/pages/{page}")
async def get_page(page: str, studio: Here) -> messages.PageData:
    """A page with its draft."""
    return await off(studio.pages.get, page)


@api.put("/pages/{page}", responses={409: {"model": messages.Failure}})
async def save_page(page: str, ask: messages.SavePage, studio: Here) -> messages.Saved:
    """Save a page; refused with 409 if it was saved since this revision."""
    saved = await off(studio.pages.save, page, ask.revision, ask.document)
    studio.hub.publish(messages.PageEvent(id=page, revision=saved.revision))
    return saved


@api.delete("/pages/{page}")
async def delete_page(page: str, studio: Here) -> messages.Nothing:
    """Move a page to the trash."""
    await off(studio.pages.delete, page)
    studio.hub.publish(messages.PageEvent(id=page, revision=None))
    return messages.Nothing()


@api.put("/pages/{page}/draft")
async def keep_draft(page: str, ask: messages.SaveDraft, studio: Here) -> messages.DraftSaved:
    """Keep what is typed; it is on the disk when the answer comes."""
    return await off(studio.pages.keep_draft, page, ask.base_revision, ask.document)


@api.delete("/pages/{page}/draft")
async def drop_draft(page: str, studio: Here) -> messages.Nothing:
    """Forget what was typed."""
    await off(studio.pages.drop_draft, page)
    return messages.Nothing()


@api.get("/pages/{page}/snapshots")
async def snapshots(page: str, studio: Here) -> messages.Snapshots:
    """The named states of a page."""
    return messages.Snapshots(snapshots=await off(studio.pages.snapshots, page))


@api.post("/pages/{page}/snapshots")
async def new_snapshot(page: str, ask: messages.NewSnapshot, studio: Here) -> messages.Snapshot:
    """Keep the saved page under a name."""
    return await off(studio.pages.snapshot, page, ask.name)


@api.get("/pages/{page}/snapshots/{number}")
async def get_snapshot(page: str, number: int, studio: Here) -> messages.DocumentData:
    """A named state."""
    return messages.DocumentData(document=await off(studio.pages.snapshot_document, page, number))


# Looking at a page


@api.post("/analyse", response_model=messages.Analysis)
async def analyse_page(ask: messages.AskAnalyse, studio: Here) -> Response:
    """What is known of a page without running it."""

    # Serialised here: validating what was just made costs more than making it.
    def work() -> str:
        page = studio.documents.look(ask.document)
        return analyse.analyse(
            page, studio.limits, kept_pages.newer(studio.library, studio.documents, page)
        ).model_dump_json()

    found = await off(work)
    return Response(found, media_type="application/json")


@api.post("/edit")
async def edit_page(ask: messages.AskEdit, studio: Here) -> messages.Edited:
    """Change a document."""
    document, added = await off(studio.documents.edit, ask.document, ask.path, ask.edits)
    return messages.Edited(document=document, added=added)


@api.post("/displays")
async def draw_displays(ask: messages.AskDisplays, studio: Here) -> messages.DrawnDisplays:
    """The displays of a page, drawn."""
    run = studio.runs.get(ask.run) if ask.run is not None else None
    curves = studio.runs.curves.of(run.page_id) if run is not None else {}

    def work() -> messages.DrawnDisplays:
        page = page_at(studio.documents.look(ask.document), ask.path)
        return displays.drawn(page, displays.readings_of(page, run, curves, studio.tensors, ask.before))

    return await off(work)


@api.post("/trace")
async def trace_element(ask: messages.AskTrace, studio: Here) -> Traced:
    """Where an element of an output comes from."""
    run = studio.runs.get(ask.run) if ask.run is not None else None

    def value(output: Output) -> Array | None:
        found = _output_hash(run, output.block.name, output.pin) if run is not None else None
        return studio.tensors.open(found) if found is not None else None

    def work() -> Traced:
        page = studio.documents.look(ask.document)
        output = page.block(ask.block).output(ask.output or 0)
        return trace(page, output, ask.index, ask.depth, value)

    return await off(work)


@api.post("/reach")
async def reach_element(ask: messages.AskTrace, studio: Here) -> list[Reached]:
    """Where an element of an output goes: what reads it, as many blocks on as asked."""

    def work() -> list[Reached]:
        page = studio.documents.look(ask.document)
        return reach(page, page.block(ask.block).output(ask.output or 0), ask.index, ask.depth)

    return await off(work)


@api.post("/places")
async def places(ask: messages.AskPlaces, studio: Here) -> messages.Places:
    """Where the results of a page lie in space, as far as its own volumes and its ops tell."""
    return await off(lambda: analyse.places(studio.documents.look(ask.document)))


@api.post("/check")
async def check(ask: messages.AskCheck, studio: Here) -> messages.Checked:
    """Gradients against differences, block by block."""
    start = time.perf_counter()
    await off(lambda: _allowed(studio, ask.document, ask.of))
    files = await off(lambda: studio.documents.look(ask.document).files.as_data())
    frame = await studio.runs.check(ask, files)
    if frame["error"] is not None:
        raise VoxgradError(Fault(**one) for one in frame["error"]["faults"])
    return messages.Checked(rows=[_check_row(one) for one in frame["result"]], seconds=time.perf_counter() - start)


def _check_row(data: dict[str, Any]) -> messages.CheckRow:
    steps = [messages.CheckStep(step=step, error=_finite(error)) for step, error in data["sweep"]]
    note = (
        "" if data["passed"] else "The curve does not fall: a wrong gradient, or a kink such as a tie within the step."
    )
    return messages.CheckRow(
        block=data["block"], op=data["op"], input=data["pin"], error=_finite(data["error"]), ok=data["passed"],
        note=note, steps=steps,
    )  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


@api.post("/files")
async def page_files(ask: messages.AskFiles, studio: Here) -> messages.PageFiles:
    """The files that a page wants to touch outside of its folder, and the folders that it was allowed."""
    return await off(_page_files, studio, ask.document)


@api.put("/files")
async def allow_files(ask: messages.AllowFiles, studio: Here) -> messages.PageFiles:
    """Let a page, as it is, use some folders besides. A page that changes asks again."""

    def work() -> messages.PageFiles:
        studio.grants.allow(ask.document, ask.folders)
        return _page_files(studio, ask.document)

    return await off(work)


def _page_files(studio: Studio, document: messages.Document) -> messages.PageFiles:
    page = studio.documents.read(document)
    return messages.PageFiles(wanted=grants.wanted(page, page.files), allowed=studio.grants.folders(document))


# Runs


def _allowed(studio: Studio, document: messages.Document, asked: list[str] | None) -> list[str]:
    return gate.allowed(studio.documents.look(document), studio.limits, asked)


@api.post("/runs", responses={429: {"model": messages.Failure}})
async def start_run(ask: messages.AskRun, studio: Here) -> messages.RunStarted:
    """Run a page."""
    wanted = [ask.to] if ask.to is not None else ask.fetch
    roots = await off(_allowed, studio, ask.document, wanted)
    files = await off(lambda: studio.documents.look(ask.document).files.as_data())
    return messages.RunStarted(run_id=studio.runs.submit(ask, roots, files))


@api.get("/runs")
async def runs(
    studio: Here, page: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> messages.Runs:
    """Runs, the newest first."""
    return messages.Runs(runs=studio.runs.recent(page, limit))


@api.get("/runs/{run}")
async def get_run(run: str, studio: Here) -> messages.RunData:
    """A run with its blocks."""
    return studio.runs.get(run)


@api.get("/runs/{run}/curves")
async def run_curves(run: str, studio: Here) -> messages.RunCurves:
    """What a run gave over its cycles, to be drawn with that of other runs."""
    found = studio.runs.curves_of(run)
    return messages.RunCurves(run=run, curves=[_curve(path, curve) for path, curve in found.items()])


def _curve(path: str, curve: Curve) -> messages.CurveData:
    return messages.CurveData(path=path, cycles=[at for at, _ in curve], values=[_finite(value) for _, value in curve])


@api.post("/runs/{run}/cancel")
async def cancel_run(run: str, studio: Here) -> messages.RunStateData:
    """Stop a run."""
    return messages.RunStateData(state=studio.runs.cancel(run))


@api.post("/sessions/reset")
async def reset(ask: messages.AskReset, studio: Here) -> messages.Nothing:
    """Forget the variables and the random state of a page."""
    await studio.runs.forget(ask.page_id)
    return messages.Nothing()


# Sweeps


@api.post("/sweeps/plan")
async def plan_sweep(ask: messages.AskSweep, studio: Here) -> messages.SweepPlan:
    """How many points a sweep has, and what is wrong with it; nothing runs."""
    return await off(studio.sweeps.plan, ask)


@api.post("/sweeps")
async def start_sweep(ask: messages.AskSweep, studio: Here) -> messages.SweepData:
    """Run a page with other values, point by point; the page is not changed."""
    return await studio.sweeps.start(ask)


@api.get("/sweeps")
async def sweeps(studio: Here, page: str | None = None) -> messages.Sweeps:
    """The sweeps of a page, or of all, the newest first, without their rows."""
    return messages.Sweeps(sweeps=studio.sweeps.recent(page))


@api.get("/sweeps/{sweep}")
async def get_sweep(sweep: str, studio: Here) -> messages.SweepData:
    """A sweep with its rows so far."""
    return studio.sweeps.get(sweep)


@api.post("/sweeps/{sweep}/cancel")
async def cancel_sweep(sweep: str, studio: Here) -> messages.SweepData:
    """Stop a sweep; the rows that are done stay."""
    return studio.sweeps.cancel(sweep)


@api.get("/sweeps/{sweep}/export", response_class=Response)
async def export_sweep(sweep: str, format: Literal["csv", "json"], studio: Here) -> Response:
    """The rows of a sweep as `voxgrad sweep --csv` and `--json` write them."""
    body = studio.sweeps.export(sweep, format).encode()
    media = {"csv": "text/csv; charset=utf-8", "json": "application/json"}[format]
    return exchange.attachment(body, f"sweep-{sweep}.{format}", media)


# Tensors


@api.get("/tensors/{name}", response_class=Response)
async def tensor(name: str, studio: Here, slice: str = "") -> Response:
    """A tensor, or a part of it, in safetensors framing."""
    body = await off(lambda: framed(cut(studio.tensors.open(name), slice)))
    return Response(body, headers=FOREVER, media_type="application/octet-stream")


@api.get("/tensors/{name}/summary", response_model=messages.Summary)
async def tensor_summary(name: str, studio: Here, axes: str = "", at: str = "") -> Response:
    """Statistics, histogram, first values and a thumbnail."""
    pair, place = _numbers(axes), _numbers(at)
    if len(pair) not in (0, 2):
        raise HTTPException(422, "axes must name two axes, as in 2,3.")
    body = await off(studio.summary, name, (pair[0], pair[1]) if pair else None, place)
    return Response(body, headers=FOREVER, media_type="application/json")


def _numbers(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"(\d{1,9}(,\d{1,9}){0,31})?", text):
        raise HTTPException(422, "axes and at must be numbers with commas between them.")
    return tuple(int(one) for one in text.split(",")) if text else ()


@api.get("/tensors/{name}/plane", response_class=Response)
async def tensor_plane(
    name: str, studio: Here, axes: str, at: str, rows: str = "", columns: str = "",
    step: Annotated[int, Query(ge=1, le=2**20)] = 1,
) -> Response:  # fmt: skip
    """A plane of a tensor or a tile of it, rows first; with a step, means over squares of so many cells a side."""
    asked = Asked(_pair(axes), _numbers(at), step, _pair(rows) if rows else None, _pair(columns) if columns else None)
    body = await off(lambda: framed(studio.planes.plane(name, asked)))
    return Response(body, headers=FOREVER, media_type="application/octet-stream")


@api.get("/tensors/{name}/likeness", response_class=Response)
async def tensor_likeness(
    name: str, studio: Here, axes: str, at: str, most: Annotated[int, Query(ge=1, le=MOST_LIKENESS)] = 96
) -> Response:
    """A volume in a tensor with at most so many cells a side: each is the mean of a brick of ceil(size / most)."""
    body = await off(lambda: framed(studio.planes.likeness(name, _numbers(axes), _numbers(at), most)))
    return Response(body, headers=FOREVER, media_type="application/octet-stream")


def _pair(text: str) -> tuple[int, int]:
    found = _numbers(text)
    if len(found) != 2:
        raise HTTPException(422, "axes, rows and columns must be two numbers, as in 2,3.")
    return found[0], found[1]


@api.get("/tensors/{name}/export.npy", response_class=Response)
async def tensor_file(name: str, studio: Here) -> Response:
    """A tensor as a NumPy file."""

    def work() -> bytes:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(studio.tensors.open(name)), allow_pickle=False)
        return buffer.getvalue()

    return exchange.attachment(await off(work), f"{name[:16]}.npy", "application/octet-stream")


@api.post("/compare")
async def compare(ask: messages.AskCompare, studio: Here) -> messages.Compared:
    """How two tensors differ."""
    names = [_named(studio, one) for one in (ask.left, ask.right)]
    return await off(lambda: summaries.compared(studio.tensors, names[0], names[1]))


@api.post("/compare/runs")
async def compare_runs(ask: messages.AskCompareRuns, studio: Here) -> messages.ComparedRuns:
    """How runs differ from the first of them, output by output, with the times of all."""
    return await off(side_by_side, studio.tensors, [studio.runs.get(name) for name in ask.runs])


def _named(studio: Studio, which: messages.ByHash | messages.ByRun) -> str:
    if isinstance(which, messages.ByHash):
        return which.hash
    found = _output_hash(studio.runs.get(which.run), which.block, which.output)
    if found is None:
        raise VoxgradError(
            Fault("VG050", "studio", "output", "have a value in that run", f"{which.block}.{which.output}")
        )
    return found


def _output_hash(run: messages.RunData, block: str, pin: str) -> str | None:
    outputs = next((one.outputs for one in run.blocks if one.block == block), [])
    return next((one.hash for one in outputs if not pin or one.name == pin), None)


# Files


@api.post(
    "/import",
    openapi_extra={
        "requestBody": {
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                "application/json": {"schema": {"$ref": "#/components/schemas/AskImport"}},
            }
        }
    },
)
async def import_file(
    request: Request, studio: Here, name: Annotated[str, Query(max_length=255)] = ""
) -> messages.Imported:
    """Bring in a page file, a picture of a page, an enuSpace page or project, or a volume."""
    body = await request.body()
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
        try:
            files = exchange.decoded(messages.AskImport.model_validate_json(body))
        except ValueError as error:
            raise HTTPException(422, f"The files are malformed: {str(error)[:200]}") from None
    else:
        files = {name: body}
    made, report = await off(exchange.read_files, files, studio.project.uploads, studio.limits.memory)
    first, *others = [await off(studio.pages.add, page) for page in made]
    return messages.Imported(page=first, others=others, report=report)


@api.post("/import/blocks")
async def import_blocks(
    request: Request, studio: Here, name: Annotated[str, Query(max_length=255)]
) -> messages.ImportedBlocks:
    """What a file holds as blocks for a page that is open: a volume becomes a constant."""
    files = {name: await request.body()}
    made, report = await off(exchange.read_files, files, studio.project.uploads, studio.limits.memory)
    return messages.ImportedBlocks(document=await off(studio.documents.write, made[0]), report=report)


@api.post("/import/tensor")
async def import_tensor(
    request: Request, studio: Here, name: Annotated[str, Query(max_length=255)], like: str = ""
) -> messages.ImportedTensor:
    """The array of a file, to compare results with. `like` is a shape that it takes where only axes of one differ."""
    files, shape = {name: await request.body()}, _numbers(like)
    array = await off(exchange.read_array, files, studio.project.uploads, studio.limits.memory)
    kept = await off(studio.tensors.put, exchange.like(array, shape))
    if kept is None:
        raise HTTPException(422, "The file must hold numbers.")
    return messages.ImportedTensor(hash=kept.hash, dtype=kept.dtype, shape=list(kept.shape))


# Volumes, and pages over them in chunks


@api.get("/volumes")
async def volumes(studio: Here) -> messages.Volumes:
    """The volumes in the folder's files."""
    return await off(studio.chunked.volumes)


@api.get("/volumes/runs")
async def chunked_runs(studio: Here) -> messages.ChunkedRuns:
    """Runs over volumes, as their records tell."""
    return await off(studio.chunked.runs)


@api.post("/volumes/runs")
async def start_chunked_run(ask: messages.AskChunkedRun, studio: Here) -> messages.ChunkedRun:
    """Run a page over volumes, chunk by chunk; the same again goes on where it stopped."""
    return await off(studio.chunked.start, ask)


@api.post("/volumes/runs/{run}/stop")
async def stop_chunked_run(run: str, studio: Here) -> messages.ChunkedRun:
    """Stop a run over volumes."""
    return await off(studio.chunked.stop, run)


@api.get("/pages/{page}/export", response_class=Response)
async def export_page(page: str, format: messages.ExportFormat, studio: Here) -> Response:
    """A saved page as a file of another kind."""
    found = await off(studio.pages.get, page)
    return await _exported(studio, found.document, format, await off(studio.pages.stem, page), _last_run(studio, page))


@api.post("/export", response_class=Response)
async def export_document(ask: messages.AskExport, studio: Here) -> Response:
    """A document as a file of another kind."""
    run = studio.runs.get(ask.run) if ask.run is not None else None
    if ask.picture is None:
        return await _exported(studio, ask.document, ask.format, "page", run)
    picture = ask.picture

    def work() -> Response:
        return exchange.picture(studio.documents.read(ask.document), ask.format, picture)

    return await off(work)


async def _exported(
    studio: Studio, document: messages.Document, format: messages.ExportFormat, stem: str, run: messages.RunData | None
) -> Response:
    curves = studio.runs.curves.of(run.page_id) if run is not None else {}

    def work() -> Response:
        page = studio.documents.read(document)
        readings = displays.readings_of(page, run, curves, studio.tensors)
        return exchange.export(page, format, stem, exchange.Results(run, readings, studio.tensors))

    return await off(work)


def _last_run(studio: Studio, page: str) -> messages.RunData | None:
    done = next((run for run in studio.history.runs(page, 20) if run.state == "done"), None)
    return None if done is None else studio.history.run(done.id)


@api.websocket("/events")
async def events(socket: WebSocket) -> None:
    """Everything that happens."""
    await socket.app.state.studio.hub.serve(socket, messages.HelloEvent(version=__version__))
