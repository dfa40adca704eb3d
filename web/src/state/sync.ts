// SPDX-License-Identifier: Apache-2.0
/** What happens by itself: analysis after every edit, drafts, events of the server. */

import { api, ApiError, listen, numberOf, type ServerEvent } from "../core/api";
import { groupBy } from "../core/group";
import { same, share } from "../core/patch";
import type { Block, Page } from "../core/model";
import { withoutHead } from "./edits";
import { activeTab, recordDocument, say, studio, update, updateTab, useStudio, type Tab, type TrendPoint } from "./store";
import { loadLibrary } from "./library";
import { refreshRuns, takeNext } from "./runs";
import { onRepeat } from "./comparisons";
import { onSweep } from "./sweeps";
import { watchPresses, whenReleased } from "./view";
import { word } from "./words";

const ANALYSE_AFTER_MS = 10;
const ANALYSE_AGAIN_MS = 1000;
const DRAFT_AFTER_MS = 400;

/** Positions, displays and notes are no question for the analysis: moving a block must not ask again. */
function meansTheSame(left: Page, right: Page): boolean {
  const { blocks: before, notes: _notes, displays: _displays, ...restBefore } = left;
  const { blocks: after, notes: _others, displays: _drawn, ...restAfter } = right;
  const computes = ({ position: _place, ...block }: Block) => block;
  return (
    before.length === after.length &&
    before.every((block, index) => block === after[index] || same(computes(block), computes(after[index]!))) &&
    same(restBefore, restAfter)
  );
}

let analysed: { id: string; document: Page } | null = null;
let analysing: AbortController | null = null;
let analyseTimer = 0;

function watchAnalysis(): void {
  const tab = activeTab();
  if (!tab) return;
  const document = tab.history.now;
  if (analysed?.id === tab.id && (analysed.document === document || meansTheSame(analysed.document, document))) return;
  analysed = { id: tab.id, document };
  window.clearTimeout(analyseTimer);
  analyseTimer = window.setTimeout(() => void analyse(tab.id), ANALYSE_AFTER_MS);
}

/** What a page may touch has changed, so what is known of it may have, too. */
export function analyseAgain(): void {
  analysed = null;
  watchAnalysis();
}

async function analyse(id: string): Promise<void> {
  const document = studio().tabs[id]?.history.now;
  if (!document) return;
  analysing?.abort();
  const asking = (analysing = new AbortController());
  try {
    const analysis = await api.analyse(document, asking.signal);
    whenReleased(() => {
      // Another page, or a later edit, may have been asked about during the press.
      if (!asking.signal.aborted) updateTab(id, (tab) => ({ analysis: share(tab.analysis, analysis) }));
    });
  } catch (error) {
    if (asking.signal.aborted || !(error instanceof ApiError)) return;
    if (error.status === 0) window.setTimeout(analyseAgain, ANALYSE_AGAIN_MS);
    else if (error.status !== 401) say(error.message, "error");
  }
}

let draftTimer = 0;

function watchDrafts(): void {
  const unsaved = Object.values(studio().tabs).some((tab) => tab.draft === "unsaved");
  if (!unsaved || draftTimer !== 0) return;
  draftTimer = window.setTimeout(() => {
    draftTimer = 0;
    void Promise.all(Object.values(studio().tabs).filter((tab) => tab.draft === "unsaved").map(keepDraft));
  }, DRAFT_AFTER_MS);
}

async function keepDraft(tab: Tab): Promise<void> {
  const document = tab.history.now;
  try {
    if (document === tab.saved) await api.dropDraft(tab.id);
    else await api.saveDraft(tab.id, tab.revision, document);
    updateTab(tab.id, (now) => (now.history.now === document ? { draft: document === now.saved ? "saved" : "draft" } : {}));
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0) say(error.message, "error");
    // The studio is away or refuses: try again with the next edit, or when it is back.
    window.setTimeout(watchDrafts, 2000);
  }
}

/** Events of runs that nobody here knows yet: a short run can be over before its number has come back. */
let early: Extract<ServerEvent, { run: string }>[] = [];
const MOST_EARLY = 20_000;

function adoptEarly(): void {
  if (early.length === 0) return;
  const known = new Set(Object.values(studio().tabs).map((tab) => tab.run?.id));
  const mine = early.filter((event) => known.has(event.run));
  if (mine.length === 0) return;
  early = early.filter((event) => !known.has(event.run));
  mine.forEach(onEvent);
}

function onEvent(event: ServerEvent): void {
  if (event.type === "sweep") return onSweep(event);
  if (event.type === "run" && event.repeat !== null) return onRepeat(event.page, event.run, event.repeat);
  if (event.type === "run") listRun(event);
  if ("run" in event && event.type !== "log" && !tabOfRun(event.run)) {
    early.push(event);
    if (early.length > MOST_EARLY) early = early.slice(-MOST_EARLY / 2);
    return;
  }
  if (event.type === "page") {
    onPageSaved(event.id, event.revision);
    void loadLibrary().then(() => {
      const pages = Object.values(activeTab()?.history.now.pages ?? {});
      if (pages.some((page) => page.origin)) analyseAgain(); // it may be a page of the library
    });
  }
  else if (event.type === "run") onRun(event);
  else if (event.type === "block") onBlock(event);
  else if (event.type === "scalar") onScalar(event);
  else if (event.type === "log") {
    update((state) => ({ log: [...state.log, { time: Date.now(), level: "info" as const, text: event.text }].slice(-500) }));
  }
}

/** The list of a page's runs says how far each is, also one that waits. */
function listRun({ page, run, state, seconds }: ServerEvent & { type: "run" }): void {
  if (!studio().tabs[page]?.runs.some((one) => one.id === run)) return;
  updateTab(page, ({ runs }) => ({ runs: runs.map((one) => (one.id === run ? { ...one, state, seconds } : one)) }));
}

function onPageSaved(id: string, revision: number | null): void {
  const tab = studio().tabs[id];
  if (!tab || revision === null || revision <= tab.revision || savingNow.has(id)) return;
  if (tab.history.now !== tab.saved) updateTab(id, () => ({ conflict: revision }));
  else void takeTheirs(id);
}

/** Pages whose save is under way; the echo of it is no conflict. */
export const savingNow = new Set<string>();

export async function takeTheirs(id: string): Promise<void> {
  const page = await api.page(id);
  recordDocument(id, withoutHead(page.document), word("notice.conflictTheirs"));
  updateTab(id, (tab) => ({ revision: page.revision, saved: tab.history.now, draft: "saved", conflict: null }));
}

function tabOfRun(run: string): Tab | undefined {
  return Object.values(studio().tabs).find((tab) => tab.run?.id === run);
}

function onRun(event: ServerEvent & { type: "run" }): void {
  const tab = tabOfRun(event.run);
  if (!tab) return;
  const message = event.error?.message ?? "";
  updateTab(tab.id, (now) => ({
    run: now.run && { ...now.run, state: event.state, seconds: event.seconds ?? now.run.seconds, message },
  }));
  if (event.state === "failed") say(message || word("run.failed"), "error");
  const look = tab.analysis?.warnings.length ?? 0;
  if (event.state === "done" && look > 0) say(word("run.doneLook", { count: look }));
  if (event.state === "cancelled") say(word("run.cancelled"));
  if (event.state === "done" || event.state === "failed" || event.state === "cancelled") {
    void refreshRuns(tab.id);
    // What the blocks of this run have told is shown with the next frame.
    requestAnimationFrame(() => takeNext(tab.id));
  }
}

// Events come in bursts; the screen takes them once per frame.
let burst: (ServerEvent & { type: "block" })[] = [];

function onBlock(event: ServerEvent & { type: "block" }): void {
  if (burst.length === 0) requestAnimationFrame(() => whenReleased(takeBurst));
  burst.push(event);
}

function takeBurst(): void {
  const events = burst;
  burst = [];
  for (const tab of Object.values(studio().tabs)) {
    const mine = events.filter((event) => event.run === tab.run?.id);
    if (mine.length === 0) continue;
    updateTab(tab.id, (now) => {
      const results = { ...now.results };
      for (const event of mine) {
        const old = results[event.block];
        // A block that starts again keeps its last values on the screen until the new ones are there.
        results[event.block] = event.outputs.length > 0 || !old ? event : { ...event, outputs: old.outputs };
      }
      const cycle = Math.max(now.run?.cycle ?? 0, ...mine.map((event) => event.cycle));
      return { results, run: now.run && { ...now.run, cycle } };
    });
  }
}

const MOST_POINTS = 5000;
let points: (ServerEvent & { type: "scalar" })[] = [];

function onScalar(event: ServerEvent & { type: "scalar" }): void {
  if (points.length === 0) requestAnimationFrame(takePoints);
  points.push(event);
}

function takePoints(): void {
  const events = points;
  points = [];
  for (const tab of Object.values(studio().tabs)) {
    const mine = events.filter((event) => event.run === tab.run?.id);
    if (mine.length === 0) continue;
    updateTab(tab.id, (now) => {
      const trends: { [series: string]: readonly TrendPoint[] } = { ...now.trends };
      for (const [series, added] of groupBy(mine, seriesOf)) {
        const fresh = added.map(({ cycle, value }) => ({ cycle, value: numberOf(value) }));
        trends[series] = [...(trends[series] ?? []), ...fresh].slice(-MOST_POINTS);
      }
      return { trends };
    });
  }
}

function seriesOf({ block, output }: { block: string; output: string }): string {
  return output && output !== "output" ? `${block}.${output}` : block;
}

/** Start watching; returns what ends it. */
export function startSync(): () => void {
  const stopWatching = useStudio.subscribe((state, before) => {
    if (state.tabs !== before.tabs || state.active !== before.active) {
      watchAnalysis();
      watchDrafts();
      adoptEarly();
    }
  });
  const stopListening = listen(onEvent, (online) => {
    const back = online && !studio().online;
    update({ online });
    if (!back) return;
    analysed = null;
    watchAnalysis();
    watchDrafts();
    for (const tab of Object.values(studio().tabs)) void refreshRuns(tab.id);
  });
  const stopPresses = watchPresses();
  const warn = (event: BeforeUnloadEvent) => {
    if (Object.values(studio().tabs).some((tab) => tab.draft === "unsaved")) event.preventDefault();
  };
  window.addEventListener("beforeunload", warn);
  return () => {
    stopWatching();
    stopListening();
    stopPresses();
    window.removeEventListener("beforeunload", warn);
  };
}
