// SPDX-License-Identifier: Apache-2.0
/** Displays of the page on the screen: what the server has drawn, and edits of them. Each edit is one step of undo. */

import { useEffect } from "react";
import { create } from "zustand";
import { api, type DrawnDisplay } from "../core/api";
import { overlapping } from "../core/arrange";
import { attrOf, displayId, displayNames, entryOf, findDisplay, placeDisplays, withNumber, writtenBlock, type DisplayKind, type Place } from "../core/displays";
import { setAttr } from "../core/commands";
import { findBlock, outputPins, withBlock, withSources } from "../core/document";
import type { Display, Json, Page, Shown } from "../core/model";
import { KINDS } from "../generated/displays";
import { editPage, select, serverEdit } from "./edits";
import { feed, feedText, startingFeed } from "./feeds";
import { boxes, middle, moveQuietly } from "./layout";
import { isBusy, runPage, stopRun } from "./runs";
import { activeTab, flow, pathOf, prefixOf, say, selectedBlocks, shownPage, studio, type Tab } from "./store";
import { word } from "./words";

/** A drawing is asked for this often while a page runs. */
const DRAW_EVERY_MS = 150;

interface Drawn {
  readonly place: string;
  readonly displays: ReadonlyMap<string, DrawnDisplay>;
}

const useDrawn = create<Drawn>(() => ({ place: "", displays: new Map() }));

export function useDrawnDisplay(name: string): DrawnDisplay | undefined {
  return useDrawn((drawn) => drawn.displays.get(name));
}

let drawing = false;
let wanted: Tab | null = null;

/** Keep the drawings of a page's displays up to date: after edits of them, and while it runs. */
export function useDrawnDisplays(tab: Tab): void {
  const page = shownPage(tab);
  useEffect(() => {
    if (page.displays) ask(tab);
  }, [page, tab.results, tab.trends, tab.run?.id, tab.run?.state]);
}

function ask(tab: Tab): void {
  wanted = tab;
  if (drawing) return;
  drawing = true;
  void draw().finally(() => {
    window.setTimeout(() => {
      drawing = false;
      if (wanted) ask(wanted);
    }, DRAW_EVERY_MS);
  });
}

async function draw(): Promise<void> {
  const tab = wanted;
  wanted = null;
  if (!tab) return;
  const place = `${tab.id}/${prefixOf(tab)}`;
  try {
    const { displays } = await api.displays(tab.history.now, pathOf(tab), prefixOf(tab), tab.run?.id ?? null);
    useDrawn.setState({ place, displays: new Map(displays.map((one) => [one.name, one])) });
  } catch {
    // The studio is away, or the run is forgotten: what was drawn stays.
  }
}

// Edits

/** Put a display on the page, bound to the selected block where it takes an output. */
export async function addDisplay(kind: DisplayKind): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const page = shownPage(tab);
  const [first] = selectedBlocks(tab);
  const block = first === undefined ? undefined : findBlock(page, first);
  const pin = block && outputPins(page, block, studio().catalogue)[0];
  const of = block && pin && KINDS[kind].takes > 0 ? [{ from: `${block.name}.${pin.name}` }] : [];
  const node = block && flow.current?.getNode(block.name);
  const [x, y] = node ? [node.position.x, node.position.y + (node.measured?.height ?? 140) + 24] : middle();
  const position = [Math.round(x), Math.round(y)];
  const before = new Set(page.displays?.map((one) => one.name));
  if (!(await serverEdit(word("action.display"), [{ do: "add", display: kind, of, position }]))) return;
  const added = shownPage(activeTab()!).displays?.find((one) => !before.has(one.name));
  if (added) focusDisplay(added.name);
}

/** Select a display and give it the focus, once it is drawn. */
export function focusDisplay(name: string): void {
  select([displayId(name)]);
  requestAnimationFrame(() => document.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(displayId(name))}"]`)?.focus({ preventScroll: true }));
}

export function setDisplayAttr(display: string, attr: string, value: Json): Promise<unknown> {
  return serverEdit(`${display}.${attr}`, [{ do: "set_attr", display, attr, value }]);
}

export function renameDisplay(display: string, name: string): Promise<unknown> {
  return serverEdit(word("action.rename"), [{ do: "rename", display, name }]).then((done) => done && select([displayId(name)]));
}

export function bindDisplay(display: string, of: readonly Shown[]): Promise<unknown> {
  return serverEdit(word("display.shows"), [{ do: "show", display, of }]);
}

export function placeDisplay(name: string, place: Place): void {
  editPage("move", (page) => placeDisplays(page, new Map([[name, place]])));
}

/** The page with the selected displays moved by a step. */
export function nudged(page: Page, selection: ReadonlySet<string>, [dx, dy]: readonly [number, number]): Page {
  const places = displayNames(selection).flatMap((name): [string, Place][] => {
    const display = findDisplay(page, name);
    return display ? [[name, { position: [display.position[0] + dx, display.position[1] + dy] }]] : [];
  });
  return placeDisplays(page, new Map(places));
}

/** What a button does. */
export function operate(display: Display): void {
  const does = attrOf(display, "does");
  if (does === "stop") void stopRun();
  else if (does === "step") void runPage({ keep: true });
  else if (does === "loop") void runPage({ keep: true, cycles: Number(attrOf(display, "cycles")) });
  else void runPage();
}

/** A slider that runs the page waits so long for the next movement. */
const RUN_AFTER_MS = 200;
let running = 0;

/** Set the number that a slider is bound to. One movement is one step of undo. */
export function setNumber(display: Display, number: number): void {
  const tab = activeTab();
  const block = tab && findBlock(shownPage(tab), writtenBlock(display));
  if (!block) return;
  const entry = String(attrOf(display, "entry"));
  const old = entryOf(shownPage(tab), display, tab.feeds);
  if (block.op === "Placeholder") {
    feed(tab.id, block.name, withNumber(old ?? startingFeed(block), number));
  } else {
    const next = withNumber(old, number);
    const typed = block.inputs?.[entry]?.[0];
    editPage(`${block.name}.${entry}`, (page) =>
      typed && "value" in typed ? withBlock(page, block.name, (now) => withSources(now, entry, [{ ...typed, value: next }])) : setAttr(page, block.name, entry, next),
    `slide ${display.name}`);
  }
  if (attrOf(display, "runs") === true) runSoon();
}

/** Run the page once nothing has moved for a moment, and the run before is done. */
function runSoon(): void {
  window.clearTimeout(running);
  running = window.setTimeout(() => {
    const tab = activeTab();
    if (!tab) return;
    if (isBusy(tab)) runSoon();
    else void runPage();
  }, RUN_AFTER_MS);
}

/** Write what was typed into an edit box to the block that it is bound to, as the inspector does. */
export function writeEntry(display: Display, text: string): Promise<unknown> | null {
  const block = writtenBlock(display);
  if (!block) return null;
  const tab = activeTab();
  const bound = tab && findBlock(shownPage(tab), block);
  if (bound?.op === "Placeholder") {
    return feedText(tab!.id, block, String(bound.attrs?.["dtype"] ?? "float32"), text).then((fault) => {
      if (fault) say(fault, "error");
      return fault ? null : [];
    });
  }
  const name = String(attrOf(display, "entry"));
  return serverEdit(`${block}.${name}`, [{ do: "set_text", block, name, text }]);
}

/** Where blocks of a page with displays lie on each other, everything moves apart by one factor: its order stays. */
export function spreadOut(tab: Tab): boolean {
  const page = shownPage(tab);
  const all = boxes();
  const factor = FACTORS.find((one) => !overlapping(all.map((box) => ({ ...box, x: box.x * one, y: box.y * one }))));
  if (!page.displays || factor === undefined) return false;
  const displays = page.displays.map((one): [string, Place] => [
    one.name, { position: scaled(one.position, factor), size: scaled(one.size, one.kind === "text" ? 1 : factor) },
  ]);
  moveQuietly(tab, new Map(all.map((box) => [box.name, scaled([box.x, box.y], factor)])), (shown) => placeDisplays(shown, new Map(displays)));
  return true;
}

const FACTORS = [1.25, 1.5, 2, 2.5, 3, 4];

function scaled([x, y]: readonly [number, number], by: number): readonly [number, number] {
  return [x * by, y * by];
}
