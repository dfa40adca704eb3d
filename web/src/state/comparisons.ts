// SPDX-License-Identifier: Apache-2.0
/** Runs side by side: what is compared, and how a difference is looked at. */

import { api, ApiError, type EngineName, type Run, type RunRow, type RunSide } from "../core/api";
import { feedsOf } from "./feeds";
import { attempt } from "./pages";
import { openViewer } from "./perform";
import { refreshRuns } from "./runs";
import { activeTab, prefixOf, say, update, updateTab, type Tab } from "./store";
import { word } from "./words";

/** How often a page is run to be measured, where nobody says. */
export const COLD_RUNS = 5;

/** What a run is called where several are shown. */
export function runName(run: Run): string {
  return `${run.engine} ${new Date(run.started * 1000).toLocaleTimeString()}`;
}

/** Take a run into the chosen ones, or out of them. */
export function toggleChosen(id: string, run: string): void {
  updateTab(id, ({ chosen }) => {
    const next = new Set(chosen);
    if (!next.delete(run)) next.add(run);
    return { chosen: next };
  });
}

/** A run that is measured begins once more: say so where one waits for it. */
export function onRepeat(page: string, run: string, repeat: number): void {
  updateTab(page, ({ comparison }) => (comparison?.measuring === run ? { comparison: { ...comparison, repeat } } : {}));
}

/** Stop the engine that is measured, and those behind it. */
export async function stopMeasuring(tab: Tab): Promise<void> {
  const run = tab.comparison?.measuring;
  if (run) await attempt(() => api.cancel(run));
}

/** Compare every output of some runs with that of the first. */
export async function compareRuns(id: string, runs: readonly string[]): Promise<void> {
  update({ bottomTab: "compare" });
  updateTab(id, () => ({ comparison: { busy: true, runs: [], rows: [] } }));
  const found = await attempt(() => api.compareRuns(runs));
  updateTab(id, () => ({ comparison: found && { busy: false, ...found } }));
  const failed = found?.runs.find((run) => run.state === "failed");
  if (failed) say(`${runName(failed)}: ${failed.error?.message ?? word("run.failed")}`, "error");
}

/** Open a result of one run against that of the first. */
export function openDifference(runs: readonly Run[], row: RunRow, first: RunSide, at: number): void {
  const tab = activeTab();
  const other = row.sides[at];
  if (!tab || !other?.hash || !first.hash) return;
  const kept = { hash: first.hash, dtype: first.dtype, shape: first.shape, of: runName(runs[0]!), against: runName(runs[at]!) };
  const name = row.block.startsWith(prefixOf(tab)) ? row.block.slice(prefixOf(tab).length) : row.block;
  openViewer(name, row.output, "diff", { against: `hash:${other.hash}`, kept });
}

async function measureOn(tab: Tab, engine: EngineName, repeats: number): Promise<Run> {
  const { run_id } = await api.run({ page_id: tab.id, document: tab.history.now, engine, session: "new", feeds: feedsOf(tab), repeats });
  updateTab(tab.id, ({ comparison }) => ({ comparison: comparison && { ...comparison, measuring: run_id } }));
  for (;;) {
    const run = await api.runDetails(run_id);
    if (run.state === "done" || run.state === "failed" || run.state === "cancelled") return run;
    await new Promise((resolve) => window.setTimeout(resolve, 200));
  }
}

/** Run the page on some engines, one after the other, each several times and cold, and compare every output. */
export async function compareEngines(engines: readonly EngineName[], repeats: number): Promise<void> {
  const tab = activeTab();
  if (!tab || engines.length === 0) return;
  update({ bottomTab: "compare" });
  updateTab(tab.id, () => ({ comparison: { busy: true, runs: [], rows: [] } }));
  try {
    const runs: Run[] = [];
    for (const engine of engines) {
      const run = await measureOn(tab, engine, repeats);
      runs.push(run);
      if (run.state === "cancelled") break;
    }
    await compareRuns(tab.id, runs.map((run) => run.id));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    updateTab(tab.id, () => ({ comparison: null }));
    say(error.message, "error");
  }
  void refreshRuns(tab.id);
}
