// SPDX-License-Identifier: Apache-2.0
/** The server, as functions. Same origin, cookie or nothing; every failure is an ApiError with its faults. */

import type * as messages from "../generated/api";
import type { Analysis, Op, Page, PagePath } from "./model";
import { readSafetensors, type Tensor } from "./tensor";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly faults: readonly Fault[] = [],
    readonly revision?: number,
  ) {
    super(message);
  }
}

// The messages are those that the server declares; documents are pages.
export type Fault = messages.FaultData;
export type PageEntry = messages.PageEntry;
export type StoredPage = Omit<messages.PageData, "document" | "draft"> & {
  readonly document: Page;
  readonly draft: (Omit<messages.Draft, "document"> & { readonly document: Page }) | null;
};
export type Card = messages.Card;
export type Engine = messages.EngineData;
export type EngineName = Engine["name"];
export type Summary = messages.Summary;
export type Brief = messages.Brief;
export type BlockOutput = messages.OutputData;
export type BlockRun = messages.BlockRun;
export type Run = messages.RunData;
export type RunRequest = Omit<messages.AskRun, "document"> & { readonly document: Page };
export type ServerEvent = messages.Event;
export type TraceWindow = messages.Window;
export type Reached = messages.Reached;
export type Place = messages.Place;
export type TraceQuestion = Omit<messages.AskTrace, "document" | "index"> & { readonly document: Page; readonly index: readonly number[] };
export type CheckRow = messages.CheckRow;
export type DrawnDisplay = messages.DrawnDisplay;
export type Mark = messages.MarkData;
export type Comparison = messages.Compared;
export type RunSide = messages.RunSide;
export type Times = messages.TimesData;
export type RunRow = messages.RunRow;
export type Sweep = messages.SweepData;
export type SweepRow = messages.SweepRow;
export type SweepPlan = messages.SweepPlan;
type SweepRequest = Omit<messages.AskSweep, "document"> & { readonly document: Page };
export type TensorRef = messages.ByHash | messages.ByRun;
export type VolumeFile = messages.VolumeData & Required<messages.VolumeData>;
export type PageFiles = messages.PageFiles;
export type ChunkedRun = messages.ChunkedRun;
type ChunkedRequest = Omit<messages.AskChunkedRun, "document"> & { readonly document: Page };
/** An edit as data, as src/voxgrad/graph/edits.py describes them. */
export type Edit = { readonly [entry: string]: unknown };
export type ExportFormat = messages.AskExport["format"];
type Edited = Omit<messages.Edited, "document"> & { readonly document: Page };
type Imported = Omit<messages.Imported, "page"> & { readonly page: StoredPage };

interface ErrorBody {
  readonly error?: { readonly message?: string; readonly faults?: readonly Fault[]; readonly code?: string } | string;
  readonly faults?: readonly Fault[];
  readonly detail?: unknown;
  readonly revision?: number;
}

const AWAY = "The studio does not answer.";

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const raw = body instanceof Blob || body instanceof ArrayBuffer;
  let response: Response;
  try {
    response = await fetch(`/api${path}`, {
      method,
      ...(signal ? { signal } : {}),
      ...(method === "GET" ? {} : { headers: { "content-type": raw ? "application/octet-stream" : "application/json" } }),
      ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
    });
  } catch (error) {
    throw isAbort(error) ? error : new ApiError(0, AWAY);
  }
  if (!response.ok) throw await failure(response);
  return response;
}

async function failure(response: Response): Promise<ApiError> {
  let data: ErrorBody = {};
  try {
    data = (await response.json()) as ErrorBody;
  } catch {
    // A proxy or a crash answers without JSON; the status has to do.
  }
  const error = typeof data.error === "string" ? { message: data.error } : (data.error ?? {});
  const faults = error.faults ?? data.faults ?? [];
  const message = error.message ?? faults.map(faultText).join("\n");
  return new ApiError(response.status, message || `${response.status} ${response.statusText}`, faults, data.revision);
}

export function faultText(fault: Fault): string {
  const text = `${fault.op}: ${fault.argument} must ${fault.wanted}; got ${fault.got}.`;
  return [`${fault.code} ${text}${fault.remedy ? ` ${fault.remedy}` : ""}`, fault.where].filter(Boolean).join("\n");
}

async function json<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await send(method, path, body, signal);
  if (response.status === 204) return undefined as T;
  try {
    return (await response.json()) as T;
  } catch (error) {
    // The line was cut in the middle of an answer.
    throw isAbort(error) ? error : new ApiError(0, AWAY);
  }
}

const id = encodeURIComponent;

export const api = {
  ops: () => json<{ ops: Op[] }>("GET", "/ops"),
  library: () => json<{ readonly pages: Op[] }>("GET", "/library"),
  keptPage: (name: string) => json<{ readonly document: Page }>("GET", `/library/${id(name)}`),
  keepPage: (document: Page, path: PagePath, name: string, replace: boolean) =>
    json<{ readonly name: string; readonly document: Page }>("POST", "/library", { document, path, name, replace }),
  opHelp: (op: string, theme: "dark" | "light") => json<messages.OpHelp>("GET", `/ops/${id(op)}?theme=${theme}`),
  lesson: (op: string, places: readonly number[], typed: { readonly [tensor: string]: readonly string[] }) => json<messages.LessonData>("POST", `/ops/${id(op)}/lesson`, { places, typed }),
  openLesson: (op: string, places: readonly number[], typed: { readonly [tensor: string]: readonly string[] }) => json<StoredPage>("POST", `/ops/${id(op)}/lesson/open`, { places, typed }),
  openExample: (op: string) => json<StoredPage>("POST", `/ops/${id(op)}/open`, {}),
  engines: () => json<messages.Engines>("GET", "/engines"),
  gallery: () => json<messages.Gallery>("GET", "/gallery"),
  openCard: (card: string) => json<StoredPage>("POST", `/gallery/${id(card)}/open`, {}),
  pages: () => json<messages.Pages>("GET", "/pages"),
  createPage: (name: string, document?: Page) => json<StoredPage>("POST", "/pages", { name, ...(document ? { document } : {}) }),
  page: (page: string) => json<StoredPage>("GET", `/pages/${id(page)}`),
  savePage: (page: string, revision: number, document: Page) =>
    json<messages.Saved>("PUT", `/pages/${id(page)}`, { revision, document }),
  deletePage: (page: string) => json<unknown>("DELETE", `/pages/${id(page)}`),
  saveDraft: (page: string, base_revision: number, document: Page) =>
    json<messages.DraftSaved>("PUT", `/pages/${id(page)}/draft`, { base_revision, document }),
  dropDraft: (page: string) => json<unknown>("DELETE", `/pages/${id(page)}/draft`),
  snapshots: (page: string) => json<messages.Snapshots>("GET", `/pages/${id(page)}/snapshots`),
  snapshotDocument: (page: string, number: number) => json<{ readonly document: Page }>("GET", `/pages/${id(page)}/snapshots/${number}`),
  snapshot: (page: string, name: string) => json<unknown>("POST", `/pages/${id(page)}/snapshots`, { name }),
  analyse: (document: Page, signal?: AbortSignal) => json<Analysis>("POST", "/analyse", { document }, signal),
  edit: (document: Page, path: PagePath, edits: readonly Edit[]) => json<Edited>("POST", "/edit", { document, path, edits }),
  pageFiles: (document: Page) => json<PageFiles>("POST", "/files", { document }),
  allowFiles: (document: Page, folders: readonly string[]) => json<PageFiles>("PUT", "/files", { document, folders }),
  run: (request: RunRequest) => json<messages.RunStarted>("POST", "/runs", request),
  runs: (page: string) => json<messages.Runs>("GET", `/runs?page=${id(page)}`),
  runDetails: (run: string) => json<Run>("GET", `/runs/${id(run)}`),
  runCurves: (run: string) => json<messages.RunCurves>("GET", `/runs/${id(run)}/curves`),
  cancel: (run: string) => json<unknown>("POST", `/runs/${id(run)}/cancel`, {}),
  summary: (hash: string) => json<Summary>("GET", `/tensors/${id(hash)}/summary`),
  tensor: async (hash: string, slice = ""): Promise<Tensor> => {
    const response = await send("GET", `/tensors/${id(hash)}${slice ? `?slice=${id(slice)}` : ""}`);
    return readSafetensors(await response.arrayBuffer());
  },
  /** A plane of a tensor, rows first; with a step, means over squares of so many cells a side. */
  plane: async (hash: string, axes: readonly [number, number], at: readonly number[], step = 1, signal?: AbortSignal): Promise<Tensor> => {
    const response = await send("GET", `/tensors/${id(hash)}/plane?axes=${axes.join()}&at=${at.join()}&step=${step}`, undefined, signal);
    return readSafetensors(await response.arrayBuffer());
  },
  /** A volume in a tensor with so many cells a side at most. */
  likeness: async (hash: string, axes: readonly number[], at: readonly number[], most: number): Promise<Tensor> => {
    const response = await send("GET", `/tensors/${id(hash)}/likeness?axes=${axes.join()}&at=${at.join()}&most=${most}`);
    return readSafetensors(await response.arrayBuffer());
  },
  places: (document: Page, signal?: AbortSignal) => json<messages.Places>("POST", "/places", { document }, signal),
  trace: (question: TraceQuestion, signal?: AbortSignal) =>
    json<messages.Traced>("POST", "/trace", question, signal),
  reach: (question: TraceQuestion, signal?: AbortSignal) => json<readonly Reached[]>("POST", "/reach", question, signal),
  check: (document: Page, of?: readonly string[]) => json<messages.Checked>("POST", "/check", { document, ...(of ? { of } : {}) }),
  compare: (left: TensorRef, right: TensorRef) => json<Comparison>("POST", "/compare", { left, right }),
  compareRuns: (runs: readonly string[]) => json<messages.ComparedRuns>("POST", "/compare/runs", { runs }),
  planSweep: (request: SweepRequest) => json<SweepPlan>("POST", "/sweeps/plan", request),
  startSweep: (request: SweepRequest) => json<Sweep>("POST", "/sweeps", request),
  sweeps: (page: string) => json<messages.Sweeps>("GET", `/sweeps?page=${id(page)}`),
  sweep: (sweep: string) => json<Sweep>("GET", `/sweeps/${id(sweep)}`),
  cancelSweep: (sweep: string) => json<Sweep>("POST", `/sweeps/${id(sweep)}/cancel`, {}),
  sweepUrl: (sweep: string, format: "csv" | "json") => `/api/sweeps/${id(sweep)}/export?format=${format}`,
  importFile: (name: string, data: Blob) =>
    json<Imported>("POST", `/import?name=${id(name)}`, data),
  importBlocks: (name: string, data: Blob) => json<{ readonly document: Page; readonly report: readonly string[] }>("POST", `/import/blocks?name=${id(name)}`, data),
  importTensor: (name: string, data: Blob, like: readonly number[]) =>
    json<messages.ImportedTensor>("POST", `/import/tensor?name=${id(name)}&like=${like.join(",")}`, data),
  importFiles: (files: readonly { name: string; base64: string }[]) =>
    json<Imported>("POST", "/import", { files }),
  displays: (document: Page, path: PagePath, before: string, run: string | null) =>
    json<messages.DrawnDisplays>("POST", "/displays", { document, path, before, run }),
  exportPage: async (document: Page, format: ExportFormat, run: string | null) =>
    (await send("POST", "/export", { document, format, ...(run === null ? {} : { run }) })).blob(),
  /** A picture with the page inside, from which it can be opened again. */
  pictureOf: async (document: Page, format: "svg" | "png", picture: string) => (await send("POST", "/export", { document, format, picture })).blob(),
  resetSession: (page: string) => json<unknown>("POST", "/sessions/reset", { page_id: page }),
  volumes: () => json<{ readonly volumes: readonly VolumeFile[] }>("GET", "/volumes"),
  chunkedRuns: () => json<messages.ChunkedRuns>("GET", "/volumes/runs"),
  startChunkedRun: (request: ChunkedRequest) => json<ChunkedRun>("POST", "/volumes/runs", request),
  stopChunkedRun: (run: string) => json<ChunkedRun>("POST", `/volumes/runs/${id(run)}/stop`, {}),
  npyUrl: (hash: string) => `/api/tensors/${id(hash)}/export.npy`,
};

/** A number of the server: texts stand for what JSON cannot hold. */
export function numberOf(value: number | string | null | undefined): number {
  if (typeof value === "number") return value;
  if (value === null || value === undefined) return NaN;
  const text = value.toLowerCase();
  if (text === "inf" || text === "infinity") return Infinity;
  if (text === "-inf" || text === "-infinity") return -Infinity;
  return Number(text);
}

/** Listen to the server until closed; a lost line is taken up again, later and later. */
export function listen(on: (event: ServerEvent) => void, onLine: (connected: boolean) => void): () => void {
  let socket: WebSocket | null = null;
  let wait = 500;
  let timer = 0;
  let ended = false;
  const open = () => {
    socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/events`);
    socket.onopen = () => {
      wait = 500;
      onLine(true);
    };
    socket.onmessage = (message) => on(JSON.parse(String(message.data)) as ServerEvent);
    socket.onclose = () => {
      onLine(false);
      if (!ended) timer = window.setTimeout(open, wait);
      wait = Math.min(wait * 1.6, 8000);
    };
  };
  open();
  return () => {
    ended = true;
    window.clearTimeout(timer);
    socket?.close();
  };
}
