// SPDX-License-Identifier: Apache-2.0
/** Sweeps of the open pages: what is asked for, how far each is, its rows. A page is changed only by `takeValues`. */

import { create } from "zustand";
import { api, type ServerEvent, type Sweep, type SweepRow } from "../core/api";
import { serverEdit } from "./edits";
import { feedsOf } from "./feeds";
import { attempt } from "./pages";
import { say, setSettings, studio, type Tab } from "./store";
import { word } from "./words";

export interface Varied {
  readonly key: number;
  readonly name: string;
  readonly text: string;
}

export interface SweepForm {
  readonly varied: readonly Varied[];
  readonly zipped: boolean;
  readonly fetch: readonly string[];
  readonly cycles: number;
  readonly repeats: number;
}

interface Desk {
  readonly form: SweepForm;
  readonly sweep: Sweep | null;
}

const EMPTY: Desk = { form: { varied: [{ key: 0, name: "", text: "" }], zipped: false, fetch: [], cycles: 1, repeats: 1 }, sweep: null };

const useDesks = create<{ readonly [page: string]: Desk }>(() => ({}));

export function useDesk(page: string): Desk {
  return useDesks((state) => state[page] ?? EMPTY);
}

function change(page: string, next: (desk: Desk) => Partial<Desk>): void {
  useDesks.setState((state) => {
    const desk = state[page] ?? EMPTY;
    return { [page]: { ...desk, ...next(desk) } };
  });
}

export function setForm(page: string, form: Partial<SweepForm>): void {
  change(page, (desk) => ({ form: { ...desk.form, ...form } }));
}

/** What the server is asked, from the form and the page as it is now; null where nothing varies yet. */
export function askOf(tab: Tab, { varied, ...rest }: SweepForm): Parameters<typeof api.planSweep>[0] | null {
  const named = varied.filter(({ name, text }) => name.trim() !== "" && text.trim() !== "");
  if (named.length === 0) return null;
  const variations = Object.fromEntries(named.map(({ name, text }) => [name.trim(), text]));
  return { page_id: tab.id, document: tab.history.now, variations, engine: studio().settings.engine, feeds: feedsOf(tab), ...rest, fetch: [...rest.fetch] };
}

export async function startSweep(tab: Tab, form: SweepForm): Promise<void> {
  const ask = askOf(tab, form);
  const sweep = ask && (await attempt(() => api.startSweep(ask)));
  if (!sweep) return;
  // Rows of a short sweep may have come before its number.
  change(tab.id, () => ({ sweep }));
  await refreshSweep(tab.id, sweep.id);
}

export async function stopSweep(sweep: Sweep): Promise<void> {
  await attempt(() => api.cancelSweep(sweep.id));
}

/** The last sweep of a page, after a reload. */
export async function findSweep(page: string): Promise<void> {
  if (useDesks.getState()[page]?.sweep) return;
  const found = await attempt(() => api.sweeps(page));
  const newest = found?.sweeps[0];
  if (newest) await refreshSweep(page, newest.id);
}

async function refreshSweep(page: string, id: string): Promise<void> {
  const sweep = await attempt(() => api.sweep(id));
  if (sweep) change(page, () => ({ sweep }));
}

type SweepEvent = ServerEvent & { type: "sweep" };
let burst: SweepEvent[] = [];

/** Rows come in bursts; the screen takes them once per frame. */
export function onSweep(event: SweepEvent): void {
  if (burst.length === 0) requestAnimationFrame(takeRows);
  burst.push(event);
}

function takeRows(): void {
  const events = burst;
  burst = [];
  for (const page of new Set(events.map((event) => event.page))) {
    const now = useDesks.getState()[page]?.sweep;
    const mine = events.filter((event) => event.sweep === now?.id);
    const last = mine.at(-1);
    if (!now || !last) continue;
    const known = new Set(now.rows.map((row) => row.index));
    const fresh = mine.flatMap(({ row }) => (row && !known.has(row.index) ? [row] : []));
    const rows = [...now.rows, ...fresh];
    change(page, () => ({ sweep: { ...now, rows, state: last.state, seconds: last.seconds, done: Math.max(now.done, last.done) } }));
    if (last.state !== "running") say(word("sweep.ended", { done: rows.length, points: now.plan.points }));
  }
}

/** Put the values of a row into the page, as one step of undo. */
export async function takeValues(row: SweepRow): Promise<void> {
  const told = Object.entries(row.values).map(([name, text]) => `${name} = ${text}`).join(", ");
  const engine = studio().engines.find((one) => one.name === row.values["engine"]);
  if (engine) setSettings({ engine: engine.name });
  if (row.edits.length > 0 && (await serverEdit(word("sweep.use"), row.edits, { path: [] })) === null) return;
  say(word("sweep.used", { values: told }));
}
