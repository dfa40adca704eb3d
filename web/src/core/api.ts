// SPDX-License-Identifier: Apache-2.0
/** The server, as functions. Same origin, cookie or nothing; every failure is an ApiError with its faults. */

import type { Analysis, Json, Op, Page } from "./model";
import { readSafetensors, type Tensor } from "./tensor";

export interface Fault {
  readonly code: string;
  readonly op: string;
  readonly argument: string;
  readonly wanted: string;
  readonly got: string;
  readonly remedy: string;
  readonly where?: string;
}

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

export interface PageEntry {
  readonly id: string;
  readonly name: string;
  readonly file: string;
  readonly revision: number;
  readonly modified: number;
  readonly has_draft: boolean;
  readonly error?: string | null;
}

export interface StoredPage {
  readonly id: string;
  readonly name: string;
  readonly revision: number;
  readonly document: Page;
  readonly draft: null | { readonly document: Page; readonly base_revision: number; readonly saved_at: number };
}

export interface Card {
  readonly id: string;
  readonly title: string;
  readonly summary: string;
  readonly picture_svg: string;
}

export interface Engine {
  readonly name: string;
  readonly available: boolean;
  readonly why_not: string;
  readonly version: string;
}

export interface Thumbnail {
  readonly axes: readonly number[];
  readonly shape: readonly number[];
  readonly lo: number;
  readonly hi: number;
  /** base64 of one byte per value: 0 to 254 from lo to hi, 255 where it is not finite. */
  readonly values: string;
}

export interface Summary {
  readonly hash: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly count: number;
  readonly bytes: number;
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  readonly std: number | null;
  readonly nan: number;
  readonly posinf: number;
  readonly neginf: number;
  readonly zeros: number;
  readonly histogram: { readonly edges: readonly number[]; readonly counts: readonly number[] } | null;
  readonly preview: { readonly shape: readonly number[]; readonly values: readonly string[] };
  readonly thumbnail: Thumbnail | null;
}

/** A result at a glance, as events carry it: the first values as texts. */
export interface Brief {
  readonly count: number;
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  readonly nan: number;
  readonly infinite?: number;
  readonly values: readonly string[];
}

export interface BlockOutput {
  readonly name: string;
  readonly hash: string | null;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly summary: Brief;
}

export type RunState = "queued" | "running" | "done" | "failed" | "cancelled";
export type BlockState = "queued" | "started" | "progress" | "done" | "cached" | "failed";

export interface Failure {
  readonly message: string;
  readonly faults: readonly Fault[];
}

export interface BlockRun {
  readonly block: string;
  readonly cycle: number;
  readonly state: BlockState;
  readonly seconds?: number | null;
  readonly fraction?: number | null;
  readonly reason: string;
  readonly outputs: readonly BlockOutput[];
  readonly error?: Failure | null;
}

export type ServerEvent =
  | ({ readonly type: "block"; readonly run: string } & BlockRun)
  | { readonly type: "hello"; readonly version: string }
  | {
      readonly type: "run";
      readonly run: string;
      readonly page: string;
      readonly engine: string;
      readonly state: RunState;
      readonly seconds?: number | null;
      readonly error?: Failure | null;
    }
  | { readonly type: "page"; readonly id: string; readonly revision: number | null }
  | {
      readonly type: "scalar";
      readonly run: string;
      readonly cycle: number;
      readonly block: string;
      readonly output: string;
      readonly value: number | null;
    }
  | { readonly type: "log"; readonly run: string; readonly text: string };

export interface Run {
  readonly id: string;
  readonly page_id: string;
  readonly state: RunState;
  readonly engine: string;
  readonly seconds: number | null;
  readonly started: number;
  readonly cycles: number;
  readonly error?: Failure | null;
  readonly blocks: readonly BlockRun[];
}

export interface RunRequest {
  readonly page_id: string;
  readonly document: Page;
  readonly fetch?: readonly string[];
  readonly to?: string;
  readonly cycles?: number;
  readonly engine: string;
  readonly session?: "keep" | "new";
}

export interface TraceWindow {
  readonly block: string;
  readonly pin: string;
  readonly source: string;
  readonly depth: number;
  readonly lo: readonly number[];
  readonly hi: readonly number[];
  readonly steps: readonly number[];
  readonly padding: { readonly before: readonly number[]; readonly after: readonly number[] };
  readonly count: number;
  readonly weights?: { readonly pin: string; readonly lo: readonly number[]; readonly hi: readonly number[] } | null;
  readonly winner?: readonly number[] | null;
  readonly ties: readonly (readonly number[])[];
}

export interface CheckRow {
  readonly block: string;
  readonly op: string;
  readonly input: string;
  readonly error: number | null;
  readonly ok: boolean;
  readonly note: string;
  readonly steps: readonly { readonly step: number; readonly error: number | null }[];
}

export interface Comparison {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly max_abs: number | null;
  readonly max_rel: number | null;
  readonly max_ulp: number | null;
  readonly mean_abs: number | null;
  readonly differing: number;
  readonly count: number;
  readonly where: readonly { readonly index: readonly number[]; readonly left: string; readonly right: string }[];
  readonly hash: string | null;
}

export type TensorRef = { readonly hash: string } | { readonly run: string; readonly block: string; readonly output: string };

export type EditAction =
  | { readonly kind: "apply"; readonly edits: readonly Json[] }
  | { readonly kind: "gradients"; readonly of: readonly string[]; readonly order: number }
  | { readonly kind: "set_text"; readonly block: string; readonly name: string; readonly text: string };

export type ExportFormat = "python" | "tensorflow" | "svg" | "png" | "json" | "npz";

export interface TraceQuestion {
  readonly document: Page;
  readonly block: string;
  readonly output: string;
  readonly index: readonly number[];
  readonly depth: number;
  readonly run?: string;
}

interface ErrorBody {
  readonly error?: { readonly message?: string; readonly faults?: readonly Fault[]; readonly code?: string } | string;
  readonly faults?: readonly Fault[];
  readonly detail?: unknown;
  readonly revision?: number;
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
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "The studio does not answer.");
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
  return (response.status === 204 ? undefined : await response.json()) as T;
}

const id = encodeURIComponent;

export const api = {
  ops: () => json<{ ops: Op[] }>("GET", "/ops"),
  engines: () => json<{ engines: Engine[] }>("GET", "/engines"),
  gallery: () => json<{ cards: Card[] }>("GET", "/gallery"),
  openCard: (card: string) => json<StoredPage>("POST", `/gallery/${id(card)}/open`, {}),
  pages: () => json<{ pages: PageEntry[] }>("GET", "/pages"),
  createPage: (name: string, document?: Page) => json<StoredPage>("POST", "/pages", { name, ...(document ? { document } : {}) }),
  page: (page: string) => json<StoredPage>("GET", `/pages/${id(page)}`),
  savePage: (page: string, revision: number, document: Page) =>
    json<{ revision: number }>("PUT", `/pages/${id(page)}`, { revision, document }),
  deletePage: (page: string) => json<unknown>("DELETE", `/pages/${id(page)}`),
  saveDraft: (page: string, base_revision: number, document: Page) =>
    json<{ saved_at: number }>("PUT", `/pages/${id(page)}/draft`, { base_revision, document }),
  dropDraft: (page: string) => json<unknown>("DELETE", `/pages/${id(page)}/draft`),
  snapshot: (page: string, name: string) => json<unknown>("POST", `/pages/${id(page)}/snapshots`, { name }),
  analyse: (document: Page, signal?: AbortSignal) => json<Analysis>("POST", "/analyse", { document }, signal),
  edit: (document: Page, action: EditAction) => json<{ document: Page; added: string[] }>("POST", "/edit", { document, action }),
  run: (request: RunRequest) => json<{ run_id: string }>("POST", "/runs", request),
  runs: (page: string) => json<{ runs: Run[] }>("GET", `/runs?page=${id(page)}`),
  runDetails: (run: string) => json<Run>("GET", `/runs/${id(run)}`),
  cancel: (run: string) => json<unknown>("POST", `/runs/${id(run)}/cancel`, {}),
  summary: (hash: string) => json<Summary>("GET", `/tensors/${id(hash)}/summary`),
  tensor: async (hash: string, slice = ""): Promise<Tensor> => {
    const response = await send("GET", `/tensors/${id(hash)}${slice ? `?slice=${id(slice)}` : ""}`);
    return readSafetensors(await response.arrayBuffer());
  },
  trace: (question: TraceQuestion, signal?: AbortSignal) =>
    json<{ windows: TraceWindow[]; notes: string[] }>("POST", "/trace", question, signal),
  check: (document: Page, of?: readonly string[]) => json<{ rows: CheckRow[] }>("POST", "/check", { document, ...(of ? { of } : {}) }),
  compare: (left: TensorRef, right: TensorRef) => json<Comparison>("POST", "/compare", { left, right }),
  importFile: (name: string, data: Blob) =>
    json<{ page: StoredPage; report: string[] }>("POST", `/import?name=${id(name)}`, data),
  importFiles: (files: readonly { name: string; base64: string }[]) =>
    json<{ page: StoredPage; report: string[] }>("POST", "/import", { files }),
  exportPage: async (document: Page, format: ExportFormat, run: string | null) =>
    (await send("POST", "/export", { document, format, ...(run === null ? {} : { run }) })).blob(),
  resetSession: (page: string) => json<unknown>("POST", "/sessions/reset", { page_id: page }),
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
