// SPDX-License-Identifier: Apache-2.0
/** Opening, closing and saving pages. */

import { api, ApiError, type StoredPage } from "../core/api";
import { findBlock } from "../core/document";
import { isArray } from "../core/files";
import { start } from "../core/history";
import type { Point } from "../core/commands";
import type { Json, Page } from "../core/model";
import type { PinPlace } from "../core/pins";
import { connectPins, pasteBlocks, withoutHead } from "./edits";
import { activeTab, recordDocument, say, shownPage, studio, toldNow, update, updateTab, useStudio, type Tab } from "./store";
import { refreshRuns, runPage } from "./runs";
import { savingNow } from "./sync";
import { word } from "./words";

function tabOf(stored: StoredPage): Tab {
  const document = withoutHead(stored.document);
  return {
    id: stored.id,
    name: stored.name,
    revision: stored.revision,
    history: start(document),
    saved: document,
    trail: [],
    selection: new Set(),
    wires: new Set(),
    analysis: null,
    results: {},
    run: null,
    queue: [],
    runs: [],
    trends: {},
    draft: "saved",
    recovery: stored.draft ? { document: withoutHead(stored.draft.document), savedAt: stored.draft.saved_at } : null,
    conflict: null,
    feeds: {},
    checks: null,
    comparison: null,
    chosen: new Set(),
  };
}

/** Show a page that the server has given. */
export function show(stored: StoredPage): void {
  const known = studio().tabs[stored.id];
  update((state) => ({
    tabs: known ? state.tabs : { ...state.tabs, [stored.id]: tabOf(stored) },
    order: known ? state.order : [...state.order, stored.id],
    active: stored.id,
    learning: null,
    trace: null,
    viewer: null,
  }));
  location.hash = `#/page/${stored.id}`;
  void refreshRuns(stored.id, true);
}

/** Do something with the server, and tell where it failed. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    say(error.message, "error");
    return null;
  }
}

export async function openPage(id: string): Promise<void> {
  if (studio().tabs[id]) {
    activate(id);
    return;
  }
  const page = await attempt(() => api.page(id));
  if (page) show(page);
}

const TABS_KEY = "voxgrad.tabs";

/** Open the pages again that were open before a reload; the address says which of them is in front. */
export async function reopenTabs(): Promise<void> {
  const ids = JSON.parse(sessionStorage.getItem(TABS_KEY) ?? "[]") as string[];
  useStudio.subscribe((state, before) => {
    if (state.order !== before.order) sessionStorage.setItem(TABS_KEY, JSON.stringify(state.order));
  });
  const pages = await Promise.all(ids.map((id) => api.page(id).catch(() => null)));
  const found = pages.filter((page) => page !== null);
  if (found.length === 0) return;
  update((state) => ({
    tabs: { ...Object.fromEntries(found.map((page) => [page.id, tabOf(page)])), ...state.tabs },
    order: [...new Set([...found.map((page) => page.id), ...state.order])],
  }));
}

/** Show the page that the address names: when somebody goes back. */
export function followAddress(): void {
  const [, kind, id] = /^#\/(page|panel|learn)\/(.+)$/.exec(location.hash) ?? [];
  if (kind === "learn") return update({ learning: decodeURIComponent(id!), active: null, panel: false });
  const wanted = id === undefined ? null : decodeURIComponent(id);
  update({ panel: kind === "panel", learning: null });
  if (wanted === studio().active) return;
  if (wanted === null) activate(null);
  else void openPage(wanted);
}

/** The same at the start; `?view=PAGE`, of `voxgrad view`, runs a page and opens the values of its first block. */
export async function startAtAddress(): Promise<void> {
  const wanted = new URLSearchParams(location.search).get("view");
  if (wanted === null) return followAddress();
  history.replaceState(null, "", "/");
  await openPage(wanted);
  const [first] = activeTab()?.history.now.blocks ?? [];
  if (!first) return;
  void runPage();
  update({ viewer: { block: first.name, output: "", tab: "slices", against: "" } });
}

/** Show an op on a small grid. */
export function openLearn(op: string): void {
  location.hash = `#/learn/${op}`;
  followAddress();
}

/** The example of an op as a page of the folder. */
export async function openExample(op: string): Promise<void> {
  const page = await attempt(() => api.openExample(op));
  if (page) show(page);
}

export async function openCard(id: string): Promise<void> {
  const page = await attempt(() => api.openCard(id));
  if (page) show(page);
}

export async function newPage(document?: Page): Promise<void> {
  const page = await attempt(() => api.createPage(document?.name ?? "page", document));
  if (page) show(page);
}

export function activate(id: string | null): void {
  update({ active: id, learning: null, trace: null, viewer: null, wiring: null, quickAdd: null });
  location.hash = id === null ? "#/" : `#/${studio().panel ? "panel" : "page"}/${id}`;
  if (id !== null) void refreshRuns(id, true);
}

/** Show the page as a panel, and its address with it. */
export function openPanel(): void {
  update({ panel: true });
  location.hash = `#/panel/${studio().active}`;
}

export function closePanel(): void {
  update({ panel: false });
  location.hash = `#/page/${studio().active}`;
}

export function closeTab(id: string): void {
  const { order, active } = studio();
  const rest = order.filter((one) => one !== id);
  const next = active === id ? (rest[Math.min(order.indexOf(id), rest.length - 1)] ?? null) : active;
  update((state) => {
    const { [id]: _gone, ...tabs } = state.tabs;
    return { tabs, order: rest };
  });
  activate(next);
}

/** Save the page; a page that somebody else has saved since is not written over. */
export async function savePage(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const document = tab.history.now;
  savingNow.add(tab.id);
  try {
    const { revision } = await api.savePage(tab.id, tab.revision, document);
    updateTab(tab.id, (now) => ({ revision, saved: document, conflict: null, draft: now.history.now === document ? "saved" : "unsaved" }));
    say(word("notice.saved"));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 409) updateTab(tab.id, () => ({ conflict: error.revision ?? tab.revision + 1 }));
    else say(error.message, "error");
  } finally {
    savingNow.delete(tab.id);
  }
}

/** Save over what somebody else has saved; theirs stays in the history of the server. */
export async function keepMine(): Promise<void> {
  const tab = activeTab();
  if (!tab || tab.conflict === null) return;
  updateTab(tab.id, () => ({ revision: tab.conflict ?? tab.revision, conflict: null }));
  await savePage();
}

export async function saveCopy(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  updateTab(tab.id, () => ({ conflict: null }));
  await newPage({ ...tab.history.now, name: `${tab.history.now.name} copy` });
}

export function restoreRecovery(): void {
  const tab = activeTab();
  if (!tab?.recovery) return;
  recordDocument(tab.id, tab.recovery.document, word("notice.draftUse"));
  updateTab(tab.id, () => ({ recovery: null }));
}

export async function dropRecovery(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  updateTab(tab.id, () => ({ recovery: null }));
  await attempt(() => api.dropDraft(tab.id));
}

/** Open files that were chosen or dropped: a page, a picture of one, an old page with its values, a volume. */
export async function openFiles(files: readonly File[]): Promise<void> {
  const [first] = files;
  if (!first) return;
  const imported = await attempt(async () => {
    if (files.length === 1) return api.importFile(first.name, first);
    const all = await Promise.all(files.map(async (file) => ({ name: file.name, base64: toBase64(await file.arrayBuffer()) })));
    return api.importFiles(all);
  });
  if (!imported) return;
  show(imported.page);
  say(word("notice.imported", { name: first.name }));
  const lines = imported.report.map((text) => ({ time: Date.now(), level: "info" as const, text: toldNow(text) }));
  update((state) => ({ log: [...state.log, ...lines], ...(lines.length > 0 ? { bottomTab: "log" as const } : {}) }));
}

/** The array in a file, as the value of a constant; null where it is none, which is told. */
export async function valueOfFile(file: File): Promise<Json | null> {
  const made = await attempt(() => api.importBlocks(file.name, file));
  made?.report.forEach((text) => say(text));
  return made?.document.blocks[0]?.attrs?.["value"] ?? null;
}

/** Volumes that are dropped on a page become blocks there, several at once; on a pin, wired to it. True where they do. */
export function dropsBlocks(transfer: DataTransfer): boolean {
  const folders = [...transfer.items].some((item) => item.webkitGetAsEntry()?.isDirectory);
  const files = [...transfer.files];
  return activeTab() !== null && !folders && files.length > 0 && files.every((file) => isArray(file.name));
}

export async function dropBlocks(files: readonly File[], at: Point, pin: PinPlace | null): Promise<void> {
  const names: string[] = [];
  for (const [index, file] of files.entries()) {
    const made = await attempt(() => api.importBlocks(file.name, file));
    if (!made) continue;
    const blocks = made.document.blocks.map((block) => ({ ...block, position: [at[0], at[1] + 240 * index] as const }));
    const added = await pasteBlocks({ blocks });
    names.push(...(added ?? []));
    made.report.forEach((text) => say(text));
  }
  const [only] = names;
  if (pin && names.length === 1 && only !== undefined) connectPins({ block: only, pin: "output", side: "output" }, pin);
}

/** Open what was dropped; a folder, such as a Zarr store, comes with all of its files under their paths. */
export async function openDropped(transfer: DataTransfer): Promise<void> {
  const entries = [...transfer.items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  const files = [...transfer.files];
  if (!entries.some((entry) => entry.isDirectory)) return openFiles(files);
  return openFiles((await Promise.all(entries.map((entry) => filesIn(entry, "")))).flat());
}

async function filesIn(entry: FileSystemEntry, folder: string): Promise<File[]> {
  const path = `${folder}${entry.name}`;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [new File([file], path)];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const inside: FileSystemEntry[] = [];
  // A reader gives its entries in portions, and an empty one at the end.
  for (;;) {
    const portion = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (portion.length === 0) break;
    inside.push(...portion);
  }
  return (await Promise.all(inside.map((one) => filesIn(one, `${path}/`)))).flat();
}

export function toBase64(buffer: ArrayBuffer): string {
  const data = new Uint8Array(buffer);
  let text = "";
  for (let at = 0; at < data.length; at += 0x8000) text += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(text);
}

// Nested pages

export function enterBlock(name: string): void {
  const tab = activeTab();
  const page = tab && findBlock(shownPage(tab), name)?.page;
  if (!tab || page === undefined || page === null) return;
  updateTab(tab.id, (now) => ({ trail: [...now.trail, { block: name, page }], selection: new Set(), wires: new Set() }));
  update({ trace: null });
}

export function goUp(levels = 1): void {
  const tab = activeTab();
  if (!tab || tab.trail.length === 0) return;
  const left = tab.trail.at(-levels);
  updateTab(tab.id, (now) => ({
    trail: now.trail.slice(0, -levels),
    selection: new Set(left ? [left.block] : []),
    wires: new Set(),
  }));
  update({ trace: null });
}
