// SPDX-License-Identifier: Apache-2.0
/** Where blocks lie: what the studio puts or enlarges covers nothing, and what is new comes into sight. */

import { covers, freePlace, GAP, parted, placesFor, type Box } from "../core/arrange";
import { disconnect, moveBlocks, type Point } from "../core/commands";
import { findBlock, wiresOf, withPage } from "../core/document";
import { moveDrawn } from "../core/groups";
import { clustersOf } from "../core/mirror";
import type { Block, Page } from "../core/model";
import type { Group } from "../generated/page";
import { activeTab, flow, pathOf, prefixOf, shownPage, studio, updateTab, type Tab } from "./store";
import { glide, glideWhenTold } from "./view";

/** Blocks, and groups that stand for theirs; the frames of others lie behind their blocks. */
function isSolid(node: { readonly type?: string; readonly data: object }): boolean {
  return node.type === "block" || ("group" in node.data && (node.data.group as Group).collapsed === true);
}

/** The boxes of blocks on the screen, of displays too where asked for; sizes are those of the drawing. */
export function boxes(names?: ReadonlySet<string>, displays = false): Box[] {
  return (flow.current?.getNodes() ?? [])
    .filter((node) => (isSolid(node) || (displays && node.type === "display")) && (!names || names.has(node.id)))
    .map((node) => ({
      name: node.id,
      x: node.position.x,
      y: node.position.y,
      width: node.measured?.width ?? WIDTH,
      height: node.measured?.height ?? 140,
    }));
}

const WIDTH = 300;

/** How tall a block will be that is not drawn yet, with room for its values. */
export function guessHeight(block: Block | undefined): number {
  const op = block?.op === undefined ? undefined : studio().catalogue.get(block.op);
  return 150 + 27 * ((op?.inputs.length ?? 1) + (op?.outputs.length ?? 1)) + 12 * (op?.attrs.length ?? 0);
}

/** A place in the middle of what is seen. */
export function middle(): Point {
  const canvas = document.querySelector(".canvas")?.getBoundingClientRect();
  if (!canvas || !flow.current) return [0, 0];
  const point = flow.current.screenToFlowPosition({ x: canvas.x + canvas.width / 2 - 110, y: canvas.y + canvas.height / 3 });
  return [point.x, point.y];
}

/** Room for a new block at a point, or in the middle of what is seen. */
export function roomFor(block: Block, wanted: Point = middle()): Point {
  return freePlace(boxes(), wanted, WIDTH, guessHeight(block));
}

/** Give new blocks a place before what reads them, or behind what they read. */
export function placeNear(page: Page, names: readonly string[]): Page {
  const fresh = new Set(names);
  const taken = boxes().filter((box) => !fresh.has(box.name));
  const places = new Map<string, Point>();
  // Those that read others of them come later, so that their sources have a place by then.
  for (const name of names) {
    const height = guessHeight(findBlock(page, name));
    const place = freePlace(taken, besideNeighbours(page, name, taken) ?? middle(), WIDTH, height);
    places.set(name, place);
    taken.push({ name, x: place[0], y: place[1], width: WIDTH, height });
  }
  return moveBlocks(page, places);
}

function besideNeighbours(page: Page, name: string, taken: readonly Box[]): Point | null {
  const wires = wiresOf(page);
  const boxOf = (other: string) => taken.find((box) => box.name === other);
  const readers = wires.filter((wire) => wire.from === name).flatMap((wire) => boxOf(wire.to) ?? []);
  if (readers[0]) return [Math.min(...readers.map((box) => box.x)) - WIDTH - 2 * GAP, readers[0].y];
  const sources = wires.filter((wire) => wire.to === name).flatMap((wire) => boxOf(wire.from) ?? []);
  return sources[0] ? [Math.max(...sources.map((box) => box.x + box.width)) + 2 * GAP, sources[0].y] : null;
}

/** Give new blocks a lane of their own under everything else, in columns by their order. */
export function placeBelow(page: Page, names: readonly string[]): Page {
  const fresh = new Set(names);
  const taken = boxes().filter((box) => !fresh.has(box.name));
  const left = taken.length > 0 ? Math.min(...taken.map((box) => box.x)) : 0;
  const top = Math.max(0, ...taken.map((box) => box.y + box.height)) + 3 * GAP;
  const lane = { ...page, blocks: page.blocks.filter((block) => fresh.has(block.name)).map(({ position: _old, ...block }) => block) };
  const outside = wiresOf(lane).filter((wire) => !fresh.has(wire.from));
  const places = placesFor(disconnect(lane, outside.toReversed()), guessHeight);
  return moveBlocks(page, new Map([...places].map(([name, [x, y]]) => [name, [left + x, top + y]])));
}

/** The bottom of the band of boxes that a box lies in: those beside it, and those beside them. */
function bandBottom(boxes_: readonly Box[], of: Box): number {
  let bottom = of.y + of.height;
  for (const box of boxes_.toSorted((a, b) => a.y - b.y)) {
    if (box.y < bottom && box.y + box.height > of.y) bottom = Math.max(bottom, box.y + box.height);
  }
  return bottom;
}

/** Put new gradient blocks into lanes under the blocks that they belong to; the others go below everything. */
export function placeMirrored(page: Page, names: readonly string[]): Page {
  const fresh = new Set(names);
  const taken = boxes().filter((box) => !fresh.has(box.name));
  const guessed = names.map((name) => ({ name, x: 0, y: 0, width: WIDTH, height: guessHeight(findBlock(page, name)) }));
  const clusters = clustersOf(page, guessed).toSorted((a, b) => a.lane - b.lane);
  const places = new Map<string, Point>();
  const before = [...taken];
  for (const { root, width, height, places: inside } of clusters) {
    const above = before.find((box) => box.name === root);
    if (!above) continue;
    const [x, y] = freePlace(taken, [above.x, bandBottom(before, above) + 2 * GAP], width, height);
    taken.push({ name: "", x, y, width, height });
    for (const [name, [dx, dy]] of inside) places.set(name, [x + dx, y + dy]);
  }
  const placed = moveBlocks(page, places);
  const others = names.filter((name) => !places.has(name));
  return others.length > 0 ? placeBelow(placed, others) : placed;
}

/** Copies keep their order among each other; all of them move to where there is room. */
export function placeTogether(page: Page, names: readonly string[]): Page {
  const fresh = new Set(names);
  const mine = page.blocks.filter((block) => fresh.has(block.name));
  const taken = boxes().filter((box) => !fresh.has(box.name));
  const at = (block: Block): Point => [block.position?.[0] ?? 0, block.position?.[1] ?? 0];
  const left = Math.min(...mine.map((block) => at(block)[0]));
  const top = Math.min(...mine.map((block) => at(block)[1]));
  const width = Math.max(...mine.map((block) => at(block)[0])) + WIDTH - left;
  const height = Math.max(...mine.map((block) => at(block)[1] + guessHeight(block))) - top;
  const [x, y] = freePlace(taken, [left, top], width, height);
  return moveBlocks(page, new Map(mine.map((block) => [block.name, [at(block)[0] + x - left, at(block)[1] + y - top]])));
}

// Parting

/** The blocks that have had their place, per page; what a person has just moved has none yet. */
const settled = new Map<string, ReadonlySet<string>>();

function placeOf(tab: Tab): string {
  return `${tab.id}/${prefixOf(tab)}`;
}

/** What was moved gives way to what lay still. */
export function unsettle(names: Iterable<string>): void {
  const tab = activeTab();
  const known = tab && settled.get(placeOf(tab));
  const moved = new Set(names);
  if (tab && known) settled.set(placeOf(tab), new Set([...known].filter((name) => !moved.has(name))));
}

/** Move blocks on in one direction until they lie on nothing. */
export function stepped(names: ReadonlySet<string>, [dx, dy]: Point): Map<string, Point> {
  const moving = boxes(names);
  const still = boxes().filter((box) => !names.has(box.name));
  for (let step = 1; step < 1000; step += 1) {
    const there = moving.map((box) => ({ ...box, x: box.x + step * dx, y: box.y + step * dy }));
    if (there.every((box) => still.every((other) => !covers(box, other)))) return new Map(there.map((box) => [box.name, [box.x, box.y]]));
  }
  return new Map();
}

/** Part blocks that cover each other since one was added, or since one has grown. */
export function settle(): void {
  const tab = activeTab();
  if (!tab) return;
  const known = settled.get(placeOf(tab));
  const all = boxes();
  const moves = parted(all, (name) => known !== undefined && !known.has(name));
  settled.set(placeOf(tab), new Set(all.map((box) => box.name)));
  if (moves.size > 0) moveQuietly(tab, moves);
}

/** Move blocks as if the page had come so, without a step to undo. */
export function moveQuietly(tab: Tab, places: ReadonlyMap<string, Point>, further: (page: Page) => Page = (page) => page): void {
  updateTab(tab.id, (now) => {
    const document = withPage(now.history.now, pathOf(now), (shown) => further(moveDrawn(shown, places)));
    return { history: { ...now.history, now: document }, saved: now.saved === now.history.now ? document : now.saved };
  });
}

/** Bring blocks into sight that are not, once they are measured, and with them what they are wired to. */
export function reveal(names: Iterable<string>): void {
  const fresh = new Set(names);
  glideWhenTold(() => {
    const tab = activeTab();
    const near = tab ? wiresOf(shownPage(tab)).flatMap((wire) => (fresh.has(wire.from) ? [wire.to] : fresh.has(wire.to) ? [wire.from] : [])) : [];
    const wanted = new Set([...fresh, ...near]);
    const canvas = document.querySelector(".canvas")?.getBoundingClientRect();
    const view = flow.current;
    const seen = boxes(wanted);
    if (!tab || !view || !canvas || seen.length === 0 || shownPage(tab).blocks.length === 0) return;
    const [left, top] = [Math.min(...seen.map((box) => box.x)), Math.min(...seen.map((box) => box.y))];
    const [right, bottom] = [Math.max(...seen.map((box) => box.x + box.width)), Math.max(...seen.map((box) => box.y + box.height))];
    const first = view.flowToScreenPosition({ x: left, y: top });
    const last = view.flowToScreenPosition({ x: right, y: bottom });
    if (first.x >= canvas.left && first.y >= canvas.top && last.x <= canvas.right && last.y <= canvas.bottom) return;
    const zoom = Math.min(view.getZoom(), (0.9 * canvas.width) / (right - left), (0.9 * canvas.height) / (bottom - top));
    glide((_view, duration) => view.setCenter((left + right) / 2, (top + bottom) / 2, { zoom, duration }));
  });
}
