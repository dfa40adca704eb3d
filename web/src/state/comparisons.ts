// SPDX-License-Identifier: Apache-2.0
/** Runs side by side: what is compared, and how a difference is looked at. */

import { api, ApiError, type EngineName, type Run, type RunRow, type RunSide } from "../core/api";
import { feedsOf } from "./feeds";
import { attempt } from "./pages";
import { openViewer } from "./perform";
import { refreshRuns } from "./runs";
import { activeTab, prefixOf, say, update, updateTab } from "./store";
import { word } from "./words";

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

async function runOn(engine: EngineName): Promise<Run> {
  const tab = activeTab()!;
  const { run_id } = await api.run({ page_id: tab.id, document: tab.history.now, engine, session: "new", feeds: feedsOf(tab) });
  for (;;) {
    const run = await api.runDetails(run_id);
    if (run.state === "done" || run.state === "failed" || run.state === "cancelled") return run;
    await new Promise((resolve) => window.setTimeout(resolve, 200));
  }
}

/** Run the page on two engines and compare every output. */
export async function compareEngines(left: EngineName, right: EngineName): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  update({ bottomTab: "compare" });
  updateTab(tab.id, () => ({ comparison: { busy: true, runs: [], rows: [] } }));
  try {
    const first = await runOn(left);
    const second = await runOn(right);
    await compareRuns(tab.id, [first.id, second.id]);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    updateTab(tab.id, () => ({ comparison: null }));
    say(error.message, "error");
  }
  void refreshRuns(tab.id);
}
