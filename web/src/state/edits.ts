// SPDX-License-Identifier: Apache-2.0
/** Edits of the page on the screen. Each is one step of undo. */

import { api, ApiError, type Edit } from "../core/api";
import * as commands from "../core/commands";
import type { Point } from "../core/commands";
import { copyText, cornerOf, readClip, type Clip } from "../core/clipboard";
import { displayId, displayNames } from "../core/displays";
import { findBlock, inputPins, outputPins, takenNames, uniqueName, wireId, wiresOf, withPage } from "../core/document";
import { redo, undo } from "../core/history";
import type { Block, Fix, Json, Op, OpAttr, Page, PagePath, Wire } from "../core/model";
import type { Group } from "../generated/page";
import { firstFit, givenTypes, refusal, type PinPlace } from "../core/pins";
import { placeBelow, placeMirrored, placeNear, placeTogether, reveal, roomFor } from "./layout";
import { activeTab, pathOf, prefixOf, recordDocument, say, selectedBlocks, shownPage, studio, toldNow, update, updateTab, type Tab } from "./store";
import { glide, glideAfter } from "./view";
import { word } from "./words";

/** Change the page on the screen. */
export function editPage(title: string, change: (page: Page) => Page, merge?: string): void {
  const tab = activeTab();
  if (tab) recordDocument(tab.id, withPage(tab.history.now, pathOf(tab), change), title, merge);
}

export function select(blocks: Iterable<string>, wires: Iterable<string> = []): void {
  const tab = activeTab();
  if (tab) updateTab(tab.id, () => ({ selection: new Set(blocks), wires: new Set(wires) }));
}

function instanceName(op: string): string {
  const own = op.slice(op.lastIndexOf(".") + 1); // without the name of its package
  const short = own.replace(/^(.)/, (letter) => letter.toLowerCase());
  return /^[A-Z]/.test(own) && own.length > 14 ? own : short;
}

/** Put an op on the page; with a pin, wire the two together. Returns the name of the new block. */
export function addOp(op: Op, place: Point | null, from: PinPlace | null = null): string | null {
  const tab = activeTab();
  if (!tab) return null;
  const block = { name: instanceName(op.name), op: op.name, ...starting(op) };
  const position = roomFor(block, place ?? undefined);
  let name = "";
  editPage(word("action.add"), (page) => {
    const added = commands.addBlock(page, { ...block, position });
    name = added.name;
    return from ? wireTo(added.page, tab, op, added.name, from) : added.page;
  });
  select([name]);
  reveal([name]);
  return name;
}

/** What a new block starts with, so that it can be seen and run: a zero for constants, windows of two voxels. */
function starting(op: Op): Pick<Block, "attrs"> {
  const attrs = op.attrs.filter((attr) => attr.required).flatMap((attr): [string, Json][] => {
    const value = startingValue(attr);
    return value === undefined ? [] : [[attr.name, value]];
  });
  return attrs.length > 0 ? { attrs: Object.fromEntries(attrs) } : {};
}

function startingValue({ name, kind, choices, length }: OpAttr): Json | undefined {
  if (kind === "tensor") return { tensor: { dtype: "float32", shape: [], values: [0] } };
  if (choices.length > 0) return choices[0];
  if (kind === "type") return "float32";
  if (length === null) return undefined;
  const inner = name === "ksize" || name === "strides" ? 2 : 1;
  return Array.from({ length }, (_, axis) => (axis === 0 || axis === length - 1 ? 1 : inner));
}

function wireTo(page: Page, tab: Tab, op: Op, name: string, from: PinPlace): Page {
  const source = findBlock(page, from.block);
  if (!source) return page;
  const catalogue = studio().catalogue;
  if (from.side === "output") {
    const pin = outputPins(page, source, catalogue).find((one) => one.name === from.pin);
    const types = pin ? givenTypes(pin, tab.analysis?.pins[prefixOf(tab) + from.block]?.[from.pin]) : [];
    const input = op.inputs.find((one) => one.name === firstFit(op, "inputs", types));
    return input ? commands.connect(page, `${from.block}.${from.pin}`, name, input.name, input.many) : page;
  }
  const target = inputPins(page, source, catalogue).find((pin) => pin.name === from.pin);
  const output = firstFit(op, "outputs", target?.types ?? []);
  return output === undefined ? page : commands.connect(page, `${name}.${output}`, from.block, from.pin, target?.many ?? false);
}

/** Wire two pins, if they fit; says why where they do not. */
export function connectPins(from: PinPlace, to: PinPlace): boolean {
  const tab = activeTab();
  if (!tab || from.side === to.side) return false;
  const [out, into] = from.side === "output" ? [from, to] : [to, from];
  const page = shownPage(tab);
  const why = refusal(page, studio().catalogue, localAnalysis(tab), {
    from: out.block, output: out.pin, to: into.block, pin: into.pin,
  });
  if (why) {
    const dtype = tab.analysis?.pins[prefixOf(tab) + out.block]?.[out.pin]?.dtype ?? "";
    say(word(why === "ring" ? "wire.refused.ring" : "wire.refused.type", { type: dtype }), "error");
    return false;
  }
  const block = findBlock(page, into.block)!;
  const many = inputPins(page, block, studio().catalogue).find((pin) => pin.name === into.pin)?.many ?? false;
  editPage(word("action.wire"), (now) => commands.connect(now, `${out.block}.${out.pin}`, into.block, into.pin, many));
  return true;
}

/** The analysis with names as they are on the page that is shown. */
export function localAnalysis(tab: Tab): Tab["analysis"] {
  const prefix = prefixOf(tab);
  if (!tab.analysis || prefix === "") return tab.analysis;
  const pins = Object.entries(tab.analysis.pins).flatMap(([name, value]) =>
    name.startsWith(prefix) ? [[name.slice(prefix.length), value] as const] : [],
  );
  return { ...tab.analysis, pins: Object.fromEntries(pins) };
}

export async function removeSelection(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const gone = wiresOf(shownPage(tab)).filter((wire) => tab.wires.has(wireId(wire)) && !tab.selection.has(wire.to));
  // Of one pin the last first: the places of the others stay.
  const wires = gone.toReversed().map((wire) => ({ do: "disconnect", block: wire.to, pin: wire.pin, at: wire.at }));
  const blocks = selectedBlocks(tab).map((block) => ({ do: "remove", block }));
  const displays = displayNames(tab.selection).map((display) => ({ do: "remove", display }));
  const edits = [...wires, ...blocks, ...displays];
  select([]);
  if (edits.length > 0) await serverEdit(word("action.delete"), edits);
}

export function renameBlock(block: string, name: string): Promise<unknown> {
  return serverEdit(word("action.rename"), [{ do: "rename", block, name }]);
}

export function disconnectWire(wire: Wire): void {
  editPage(word("inspector.unwire"), (page) => commands.disconnect(page, [wire]));
}

export function undoEdit(): void {
  const tab = activeTab();
  if (tab) turnHistory(tab, undo);
}

export function redoEdit(): void {
  const tab = activeTab();
  if (tab) turnHistory(tab, redo);
}

/** Go a step through the history; what changes comes into sight. */
function turnHistory(tab: Tab, turn: typeof undo): void {
  const before = new Set(shownPage(tab).blocks);
  updateTab(tab.id, (now) => ({ history: turn(now.history), draft: "unsaved" }));
  reveal(shownPage(activeTab()!).blocks.filter((block) => !before.has(block)).map((block) => block.name));
}

// The clipboard of the system where it is allowed, and our own where it is not.
let ownClipboard = "";

export function copySelection(): void {
  const tab = activeTab();
  if (!tab || tab.selection.size === 0) return;
  ownClipboard = copyText(shownPage(tab), tab.selection);
  void navigator.clipboard?.writeText(ownClipboard).catch(() => undefined);
  say(word("notice.copied", { count: tab.selection.size }));
}

export async function paste(): Promise<void> {
  const text = await (navigator.clipboard?.readText?.() ?? Promise.reject(new Error())).catch(() => ownClipboard);
  const clip = readClip(text) ?? readClip(ownClipboard);
  const tab = activeTab();
  if (clip && tab) await pasteBlocks(clip, overlaps(cornerOf(clip), shownPage(tab)) ? [40, 40] : [0, 0]);
}

/** Put blocks and displays on the page, with the pages that they use; returns the names of the blocks. */
export async function pasteBlocks({ blocks, pages, displays }: Pick<Clip, "blocks" | "pages" | "displays">, shift: Point = [0, 0]): Promise<readonly string[] | null> {
  const before = new Set(activeTab() && shownPage(activeTab()!).displays?.map((one) => one.name));
  const paste = { do: "paste", blocks, pages: pages ?? {}, ...(displays ? { displays } : {}), shift };
  // Displays stand among blocks: only blocks alone look for room.
  const added = await serverEdit(word("action.paste"), [paste], displays ? {} : { arrange: placeTogether });
  if (!added) return null;
  const fresh = (shownPage(activeTab()!).displays ?? []).filter((one) => !before.has(one.name));
  select([...added, ...fresh.map((one) => displayId(one.name))]);
  reveal(added);
  return added;
}

function overlaps(corner: Point, page: Page): boolean {
  return [...page.blocks, ...(page.displays ?? [])].some((one) => one.position?.[0] === corner[0] && one.position[1] === corner[1]);
}

export async function duplicate(): Promise<void> {
  const tab = activeTab();
  const clip = tab && readClip(copyText(shownPage(tab), tab.selection));
  if (clip) await pasteBlocks(clip, [40, 40]);
}

/** The edit that the server works on, and those that wait for it: each begins with what the one before made. */
let underway: Promise<unknown> | null = null;

/** Do something when the server has made all edits that were asked for; at once where there are none. */
export function afterEdits<T>(action: () => T): T | Promise<T> {
  return underway === null ? action() : underway.then(action);
}

type Arrange = (page: Page, added: readonly string[]) => Page;

interface HowToEdit {
  /** Where new blocks go. */
  readonly arrange?: Arrange;
  /** The page that is changed, where it is not the one that is shown. */
  readonly path?: PagePath;
  /** Who hears why not; else everybody does. */
  readonly refused?: (error: ApiError) => void;
}

/** Let the server change a page, as one step of undo. Returns the names of new blocks, or null where it refuses. */
export function serverEdit(title: string, edits: readonly Edit[], how: HowToEdit = {}): Promise<readonly string[] | null> {
  const tab = activeTab();
  if (!tab) return Promise.resolve(null);
  const path = how.path ?? pathOf(tab);
  const asked = Promise.resolve(afterEdits(() => edited(tab.id, path, title, edits, how.arrange))).catch((error: unknown) => {
    if (!(error instanceof ApiError)) throw error;
    if (how.refused) how.refused(error);
    else say(error.message, "error");
    return null;
  });
  const done: Promise<unknown> = asked.catch(() => null).then(() => {
    if (underway === done) underway = null;
  });
  underway = done;
  return asked;
}

async function edited(
  id: string,
  path: PagePath,
  title: string,
  edits: readonly Edit[],
  arrange: Arrange = (page) => page,
): Promise<readonly string[]> {
  for (;;) {
    const before = studio().tabs[id]?.history.now;
    if (!before) return [];
    const { document, added } = await api.edit(before, path, edits);
    // A block was moved meanwhile, or a wire was drawn: the same once more, on the page as it is now.
    if (studio().tabs[id]?.history.now !== before) continue;
    recordDocument(id, withPage(withoutHead(document), path, (page) => arrange(page, added)), title);
    return added;
  }
}

/** A document without the head of the file, which nobody edits. */
export function withoutHead(document: Page): Page {
  const { format: _format, version: _version, ...page } = document as Page & { format?: string; version?: number };
  return page;
}

export async function applyFix(fix: Fix): Promise<void> {
  // Only problems of the outermost page have fixes.
  const done = await serverEdit(fix.title, fix.edits, { arrange: placeNear, path: [] });
  if (!done) return;
  update({ spoken: toldNow(fix.title) });
  reveal(done);
}

/** Add the gradient blocks of the selection, in a lane of their own. */
export async function addGradients(): Promise<void> {
  const tab = activeTab();
  if (!tab || tab.selection.size === 0) return;
  await differentiate(selectedBlocks(tab));
}

async function differentiate(of: readonly string[], unpacked: readonly string[] = []): Promise<void> {
  const edits = [...unpacked.map((block) => ({ do: "inline", block })), { do: "gradients", of }];
  const added = await serverEdit(word("action.gradient"), edits, { arrange: placeMirrored, refused: (error) => offerUnpacking(error, of, unpacked) });
  if (!added) return;
  select(added);
  say(word("notice.gradients", { count: added.length }));
  glideAfter(60, () => glide((view, duration) => view.fitView({ padding: 0.15, duration, maxZoom: 1 })));
}

/** Where a page that is used as a block cannot be differentiated as such, its blocks can, one by one. */
function offerUnpacking(error: ApiError, of: readonly string[], unpacked: readonly string[]): void {
  const tab = activeTab();
  const page = tab && shownPage(tab);
  const fault = error.faults.find((one) => one.code === "VG064");
  const inner = page?.pages?.[(fault && findBlock(page, fault.argument)?.page) ?? ""];
  if (!fault || !inner) return say(error.message, "error");
  const name = fault.argument;
  const isEntry = (block: Block) => (inner.inputs ? inner.inputs.includes(block.name) : block.op === "Placeholder");
  const inside = inner.blocks.filter((block) => !isEntry(block)).map((block) => `${name}/${block.name}`);
  const act = () => void differentiate(of.flatMap((one) => (one === name ? inside : [one])), [...unpacked, name]);
  say(error.message, "error", { title: word("notice.unpack", { name }), act });
}

/** Make a page of its own from the selection, with a block in its place that stands for it. */
export async function makePage(): Promise<void> {
  const tab = activeTab();
  if (!tab || tab.selection.size === 0) return;
  const page = shownPage(tab);
  const name = uniqueName(new Set([...Object.keys(page.pages ?? {}), ...takenNames(page)]), "page");
  const made = await serverEdit(word("action.pageFrom"), [{ do: "fold", blocks: selectedBlocks(tab), name }]);
  if (made) select(made);
}

/** Put the selection under a title, with a frame around it. */
export async function groupSelection(): Promise<void> {
  const tab = activeTab();
  if (!tab || tab.selection.size === 0) return;
  const title = uniqueName(new Set((shownPage(tab).groups ?? []).map((group) => group.title)), word("group.new"));
  await serverEdit(word("action.group"), [{ do: "group", title, blocks: [...tab.selection] }]);
}

export function changeGroup(title: string, changes: Partial<Group> & { readonly name?: string }): Promise<unknown> {
  return serverEdit(word("action.group"), [{ ...changes, do: "group", title }]);
}

export function ungroup(title: string): Promise<unknown> {
  return serverEdit(word("action.ungroup"), [{ do: "ungroup", title }]);
}

/** The groups that the selection touches. */
export function selectedGroups(): readonly Group[] {
  const tab = activeTab();
  return (tab ? (shownPage(tab).groups ?? []) : []).filter((group) => group.blocks.some((name) => tab!.selection.has(name)));
}

/** Put the blocks of a page in place of the selected blocks that stand for it. */
export async function unfold(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const folded = shownPage(tab).blocks.filter((block) => tab.selection.has(block.name) && block.page !== undefined);
  if (folded.length === 0) return;
  const made = await serverEdit(word("action.unfold"), folded.map((block) => ({ do: "inline", block: block.name })), { arrange: placeBelow });
  if (!made) return;
  select(made);
  reveal(made);
}
