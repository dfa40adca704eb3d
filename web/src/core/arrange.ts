// SPDX-License-Identifier: Apache-2.0
/** Aligning, distributing and finding blocks by place. */

import type { Point } from "./commands";
import { wiresOf } from "./document";
import { groupBy } from "./group";
import type { Block, Page } from "./model";

export interface Box {
  readonly name: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export type Edge = "left" | "right" | "top" | "bottom" | "centre" | "middle";

const KEEP = Number.NaN;

/** Where the boxes go so that they share an edge or a centre line. */
export function align(boxes: readonly Box[], edge: Edge): Map<string, Point> {
  const left = Math.min(...boxes.map((box) => box.x));
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const top = Math.min(...boxes.map((box) => box.y));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  const targets: { readonly [edge in Edge]: (box: Box) => Point } = {
    left: () => [left, KEEP],
    right: (box) => [right - box.width, KEEP],
    top: () => [KEEP, top],
    bottom: (box) => [KEEP, bottom - box.height],
    centre: (box) => [(left + right - box.width) / 2, KEEP],
    middle: (box) => [KEEP, (top + bottom - box.height) / 2],
  };
  return new Map(
    boxes.map((box) => {
      const [x, y] = targets[edge](box);
      return [box.name, [Number.isNaN(x) ? box.x : x, Number.isNaN(y) ? box.y : y] as const];
    }),
  );
}

/** Equal gaps between boxes along an axis; the outermost two stay. */
export function distribute(boxes: readonly Box[], axis: "x" | "y"): Map<string, Point> {
  const size = axis === "x" ? "width" : "height";
  const sorted = boxes.toSorted((a, b) => a[axis] - b[axis]);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (!first || !last || sorted.length < 3) return new Map();
  const used = sorted.reduce((sum, box) => sum + box[size], 0);
  const gap = (last[axis] + last[size] - first[axis] - used) / (sorted.length - 1);
  let at = first[axis];
  const places = new Map<string, Point>();
  for (const box of sorted) {
    places.set(box.name, axis === "x" ? [at, box.y] : [box.x, at]);
    at += box[size] + gap;
  }
  return places;
}

export type Direction = "left" | "right" | "up" | "down";

/** The nearest box in a direction; what lies off the line counts twice. */
export function nearest(boxes: readonly Box[], from: string, direction: Direction): string | null {
  const start = boxes.find((box) => box.name === from);
  if (!start) return boxes[0]?.name ?? null;
  const centre = (box: Box): Point => [box.x + box.width / 2, box.y + box.height / 2];
  const [x0, y0] = centre(start);
  const forward = direction === "left" || direction === "up" ? -1 : 1;
  const sideways = direction === "left" || direction === "right";
  let best: string | null = null;
  let least = Infinity;
  for (const box of boxes) {
    if (box.name === from) continue;
    const [x, y] = centre(box);
    const along = forward * (sideways ? x - x0 : y - y0);
    const off = Math.abs(sideways ? y - y0 : x - x0);
    if (along <= 0) continue;
    if (along + 2 * off < least) [best, least] = [box.name, along + 2 * off];
  }
  return best;
}

/** Room that is left between blocks that the studio places. */
export const GAP = 36;

/** The least room between blocks: pins stand out of their sides, and a wire can pass on every side of every block. */
const BESIDE = 32;
const ABOVE = 16;

function apart(a: Box, b: Box, beside: number, above = beside): boolean {
  return a.x + a.width + beside <= b.x || b.x + b.width + beside <= a.x || a.y + a.height + above <= b.y || b.y + b.height + above <= a.y;
}

/**
 * The free place for a box that is nearest to a point: there, or level with the edge of a box that is in the way. Under
 * everything there is always room. A step sideways counts more than one up or down, so that columns stay columns.
 */
export function freePlace(boxes: readonly Box[], wanted: Point, width = 240, height = 160): Point {
  const at = ([x, y]: Point): Box => ({ name: "", x, y, width, height });
  const isFree = (place: Point) => boxes.every((box) => apart(at(place), box, GAP - 1));
  if (isFree(wanted)) return wanted;
  const cost = ([x, y]: Point) => 2 * Math.abs(x - wanted[0]) + Math.abs(y - wanted[1]);
  const across = boxes.flatMap((box) => [box.x + box.width + GAP, box.x - GAP - width]);
  const along = boxes.flatMap((box) => [box.y + box.height + GAP, box.y - GAP - height]);
  // In the column first: there is always a place, and only what is nearer than that need be looked at elsewhere.
  const best = (places: readonly Point[], least: number) =>
    places
      .filter((place) => cost(place) < least)
      .sort((a, b) => cost(a) - cost(b))
      .find(isFree);
  const below = best(along.map((y): Point => [wanted[0], y]), Infinity)!;
  const beside = best(across.map((x): Point => [x, wanted[1]]), cost(below));
  return beside ?? below;
}

/** Whether a box lies over another, or too near to it for pins and wires. */
export function covers(a: Box, b: Box): boolean {
  return !apart(a, b, BESIDE, ABOVE);
}

/** Every pair of boxes that cover each other, found in the order of x so that few pairs are looked at. */
export function coveringPairs(boxes: readonly Box[]): (readonly [Box, Box])[] {
  const found: (readonly [Box, Box])[] = [];
  let open: Box[] = [];
  for (const box of boxes.toSorted((a, b) => a.x - b.x)) {
    open = open.filter((one) => one.x + one.width + BESIDE > box.x);
    for (const one of open) if (covers(one, box)) found.push([one, box]);
    open.push(box);
  }
  return found;
}

/**
 * Where boxes go so that none covers another. What comes first in the order of reading stays, and what is new gives way
 * to what was there.
 */
export function parted(boxes: readonly Box[], isNew: (name: string) => boolean): Map<string, Point> {
  const moves = new Map<string, Point>();
  const bad = new Set(coveringPairs(boxes).flat());
  if (bad.size === 0) return moves;
  const rank = (box: Box) => Number(isNew(box.name));
  const order = [...bad].toSorted((a, b) => rank(a) - rank(b) || a.y - b.y || a.x - b.x);
  const placed = boxes.filter((box) => !bad.has(box));
  for (const box of order) {
    const inWay = placed.some((other) => covers(box, other));
    const [x, y] = inWay ? freePlace(placed, [box.x, box.y], box.width, box.height) : [box.x, box.y];
    if (inWay) moves.set(box.name, [x, y]);
    placed.push({ ...box, x, y });
  }
  return moves;
}

/** How many wires lie before each block on its longest way. */
export function depthsOf(page: Page): Map<string, number> {
  const found = new Map<string, number>();
  const before = groupBy(wiresOf(page), (wire) => wire.to);
  const visit = (name: string, trail: ReadonlySet<string>): number => {
    const known = found.get(name);
    if (known !== undefined) return known;
    // A ring has no depth; the page tells that it is wrong, here it only must not hang.
    if (trail.has(name)) return 0;
    const inner = new Set([...trail, name]);
    const depth = Math.max(0, ...(before.get(name) ?? []).map((wire) => visit(wire.from, inner) + 1));
    found.set(name, depth);
    return depth;
  };
  for (const block of page.blocks) visit(block.name, new Set());
  return found;
}

const COLUMN_WIDTH = 450;
const WIDEST = 8;

/** Places for the blocks that have none: columns by depth, under what is there already; a long chain goes on below. */
export function placesFor(page: Page, heightOf: (block: Block) => number): Map<string, Point> {
  const lost = page.blocks.filter((block) => !block.position);
  if (lost.length === 0) return new Map();
  const placed = page.blocks.filter((block) => block.position);
  const depths = depthsOf(page);
  const rows = groupBy(lost, (block) => Math.floor((depths.get(block.name) ?? 0) / WIDEST));
  const places = new Map<string, Point>();
  let under = placed.length === 0 ? 0 : Math.max(...placed.map((block) => block.position![1] + heightOf(block))) + GAP;
  for (const [, blocks] of [...rows].toSorted(([a], [b]) => a - b)) {
    const next = new Map<number, number>();
    for (const block of blocks) {
      const column = (depths.get(block.name) ?? 0) % WIDEST;
      const y = next.get(column) ?? under;
      next.set(column, y + heightOf(block) + GAP);
      places.set(block.name, [column * COLUMN_WIDTH, y]);
    }
    under = Math.max(...next.values()) + GAP;
  }
  return places;
}

/** True where a box covers another. */
export function overlapping(boxes: readonly Box[]): boolean {
  return coveringPairs(boxes).length > 0;
}
