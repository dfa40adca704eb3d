// SPDX-License-Identifier: Apache-2.0
/** Running pages, and what is asked about results. */

import { api, ApiError, type Fault, type Run } from "../core/api";
import { same } from "../core/patch";
import type { ToldRun } from "../core/progress";
import { feedsOf } from "./feeds";
import { activeTab, prefixOf, say, selectedBlocks, setSettings, shownPage, studio, update, updateTab, type ActiveRun, type Tab, type WaitingRun } from "./store";
import { word } from "./words";

export interface RunOptions {
  readonly to?: string;
  readonly cycles?: number;
  readonly keep?: boolean;
}

/** The newest state of every block of a run. */
function latest({ id, blocks }: Run): { [block: string]: ToldRun } {
  const found: { [block: string]: ToldRun } = {};
  for (const block of blocks) {
    const old = found[block.block];
    if (!old || block.cycle >= old.cycle) found[block.block] = { ...block, run: id };
  }
  return found;
}

/** Run the page; behind the run that is under way where there is one. */
export async function runPage(options: RunOptions = {}): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const document = tab.history.now;
  const engine = studio().settings.engine;
  update({ trace: null });
  try {
    const { run_id } = await api.run({
      page_id: tab.id,
      document,
      engine,
      session: options.keep ? "keep" : "new",
      feeds: feedsOf(tab),
      ...(options.to === undefined ? {} : { to: options.to }),
      ...(options.cycles === undefined ? {} : { cycles: options.cycles }),
    });
    const run: ActiveRun = { id: run_id, state: "running", engine, document, seconds: null, cycle: 0, message: "" };
    const waiting: WaitingRun = { run, cycles: options.cycles ?? 1, keep: options.keep ?? false };
    updateTab(tab.id, (now) => ({ queue: [...now.queue, waiting] }));
    takeNext(tab.id);
    const count = studio().tabs[tab.id]?.queue.length ?? 0;
    if (count === 0) return;
    say(word("run.waits", { count }));
    await refreshRuns(tab.id);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (asksForFiles(error.faults)) return;
    say(error.message, "error");
    if (error.status === 422) update({ bottomTab: "problems" });
  }
}

/** Show the run that has waited longest, unless one is under way. */
export function takeNext(id: string): void {
  const tab = studio().tabs[id];
  const [next, ...rest] = tab?.queue ?? [];
  if (!tab || !next || isUnderWay(tab.run)) return;
  updateTab(id, (now) => ({
    queue: rest,
    run: next.run,
    trends: next.keep ? now.trends : {},
    results: Object.fromEntries(Object.entries(now.results).map(([name, one]) => [name, { ...one, state: "queued" as const, error: null }])),
  }));
  if (next.cycles > 1 && studio().active === id) update({ bottomTab: "trends" });
  // Events of a short run may be over before its number is known here.
  window.setTimeout(() => void settle(id, next.run.id), 150);
}

/** A page that wants files outside of its folder asks the person; true if it does. */
function asksForFiles(faults: readonly Fault[]): boolean {
  const asks = faults.some((fault) => fault.code === "VG056");
  if (asks) update({ dialog: "files" });
  return asks;
}

/** Ask where a run stands until it has ended: events can be missed, an answer cannot. */
async function settle(id: string, runId: string): Promise<void> {
  const tab = studio().tabs[id];
  if (!tab || tab.run?.id !== runId) return;
  try {
    const run = await api.runDetails(runId);
    updateTab(id, (now) => (now.run?.id === runId ? merged(now.results, run, now.run) : {}));
    if (run.state === "queued" || run.state === "running") window.setTimeout(() => void settle(id, runId), 1500);
    else {
      asksForFiles(run.error?.faults ?? []);
      takeNext(id);
      await refreshRuns(id);
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    window.setTimeout(() => void settle(id, runId), 1500);
  }
}

function merged(results: { readonly [block: string]: ToldRun }, run: Run, active: NonNullable<ReturnType<typeof activeTab>>["run"]) {
  const known = latest(run);
  const next = { ...results, ...known };
  const ended = run.state !== "queued" && run.state !== "running";
  if (ended) {
    for (const [name, block] of Object.entries(next)) {
      if (block.state === "queued" || block.state === "started") next[name] = { ...block, state: "done" };
    }
  }
  return {
    results: next,
    run: active && { ...active, state: run.state, seconds: run.seconds, message: run.error?.message ?? "" },
  };
}

export function isUnderWay(run: { readonly state: Run["state"] } | null | undefined): boolean {
  return run?.state === "running" || run?.state === "queued";
}

/** True while a run of a page is under way or waits for its turn: between two of them the page does not rest. */
export function isBusy(tab: Tab | null | undefined): boolean {
  return isUnderWay(tab?.run) || (tab?.queue.length ?? 0) > 0;
}

export function isRunning(): boolean {
  return isBusy(activeTab());
}

/** Take back the runs of the page that wait, so that none of them begins, then stop the one that is under way. */
export async function stopRun(): Promise<void> {
  const tab = activeTab();
  if (!tab?.run || !isBusy(tab)) return;
  await Promise.all(tab.queue.map(({ run }) => cancelRun(tab.id, run.id)));
  await cancelRun(tab.id, tab.run.id);
}

/** Stop a run, or take it back where it still waits. */
export async function cancelRun(id: string, run: string): Promise<void> {
  updateTab(id, (now) => ({ queue: now.queue.filter((one) => one.run.id !== run) }));
  try {
    await api.cancel(run);
    await refreshRuns(id);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    say(error.message, "error");
  }
}

export async function refreshRuns(id: string, andResults = false): Promise<void> {
  try {
    const { runs } = await api.runs(id);
    updateTab(id, () => ({ runs }));
    const last = runs.find((run) => run.state === "done");
    if (andResults && last && Object.keys(studio().tabs[id]?.results ?? {}).length === 0) await showRun(id, last.id);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

/** Put the results of an earlier run on the blocks. */
export async function showRun(id: string, runId: string): Promise<void> {
  const run = await api.runDetails(runId);
  updateTab(id, (now) => ({
    results: latest(run),
    run: {
      id: run.id, state: run.state, engine: run.engine, document: now.run?.id === run.id ? now.run.document : now.history.now,
      seconds: run.seconds, cycle: 0, message: run.error?.message ?? "",
    },
  }));
}

// Trace

let tracing: AbortController | null = null;
let traceTimer = 0;

/** An element of an output. Where its value is not at hand, the tensor that has it. */
export interface Voxel {
  readonly block: string;
  readonly output: string;
  readonly index: readonly number[];
  readonly value: number | { readonly hash: string };
}

export function withVoxel(voxel: Voxel | null, work: (voxel: Voxel) => void): void {
  if (voxel) work(voxel);
  else endTrace();
}

/** Ask which cells of its inputs an element came from; the last question wins. A trace that is pinned stays. */
export function traceAt(element: Voxel): void {
  if (studio().trace?.pinned) return;
  window.clearTimeout(traceTimer);
  traceTimer = window.setTimeout(() => void askTrace(element, false), 30);
}

/** Keep the trace of an element; once more on the same lets it go. */
export function pinTrace(element: Voxel): void {
  const { trace } = studio();
  const isSame = trace?.pinned && trace.block === element.block && trace.output === element.output && same(trace.index, element.index);
  if (isSame) return letTraceGo();
  window.clearTimeout(traceTimer);
  void askTrace(element, true);
}

export function letTraceGo(): void {
  window.clearTimeout(traceTimer);
  update({ trace: null });
}

/** Look so many blocks back from now on. */
export function setTraceDepth(depth: number): void {
  setSettings({ depth });
  const { trace } = studio();
  if (trace?.pinned) void askTrace(trace, true);
}

async function valueOf({ value, index }: Voxel): Promise<number> {
  if (typeof value === "number") return value;
  const { data } = await api.tensor(value.hash, index.join(","));
  return data[0] ?? NaN;
}

async function askTrace(element: Voxel, pinned: boolean): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const { block, output, index } = element;
  tracing?.abort();
  tracing = new AbortController();
  const document = tab.trail.length === 0 ? tab.history.now : shownPage(tab);
  const { signal } = tracing;
  if (typeof element.value === "number") update({ trace: { block, output, index, value: element.value, windows: [], reached: [], pinned } });
  try {
    const run = tab.trail.length === 0 && tab.run?.state === "done" ? { run: tab.run.id } : {};
    const question = { document, block, output, index, depth: studio().settings.depth, ...run };
    const [{ windows }, reached, value] = await Promise.all([api.trace(question, signal), api.reach(question, signal), valueOf(element)]);
    if (!signal.aborted) update({ trace: { block, output, index, value, windows, reached, pinned } });
  } catch {
    // No trace for this op, or the question is out of date: the element alone stays marked.
  }
}

export function endTrace(): void {
  if (studio().trace?.pinned) return;
  window.clearTimeout(traceTimer);
  tracing?.abort();
  traceTimer = window.setTimeout(() => update({ trace: null }), 250);
}

// Checks

export async function checkGradients(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const chosen = selectedBlocks(tab);
  const of = chosen.length > 0 ? chosen.map((name) => prefixOf(tab) + name) : undefined;
  update({ bottomTab: "check" });
  updateTab(tab.id, () => ({ checks: { busy: true, rows: [] } }));
  try {
    const { rows } = await api.check(tab.history.now, of);
    updateTab(tab.id, () => ({ checks: { busy: false, rows } }));
    const bad = rows.filter((row) => !row.ok).length;
    update({ spoken: `${word("bottom.check")}: ${rows.length - bad} ${word("check.ok")}, ${bad} ${word("check.bad")}` });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    updateTab(tab.id, () => ({ checks: null }));
    say(error.message, "error");
  }
}
