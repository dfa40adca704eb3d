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

/** A free place for a new box of this size at or near a point. */
export function freePlace(boxes: readonly Box[], wanted: Point, width = 240, height = 160): Point {
  const hits = ([x, y]: Point) =>
    boxes.some((box) => x < box.x + box.width && box.x < x + width && y < box.y + box.height && box.y < y + height);
  for (let step = 0; step < 40; step += 1) {
    const place: Point = [wanted[0] + (step % 4) * 30, wanted[1] + step * 40];
    if (!hits(place)) return place;
  }
  return wanted;
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

const COLUMN_WIDTH = 330;
const GAP = 36;

/** Places for the blocks that have none: columns by depth, under what is there already. */
export function placesFor(page: Page, heightOf: (block: Block) => number): Map<string, Point> {
  const lost = page.blocks.filter((block) => !block.position);
  if (lost.length === 0) return new Map();
  const placed = page.blocks.filter((block) => block.position);
  const under = placed.length === 0 ? 0 : Math.max(...placed.map((block) => block.position![1] + heightOf(block))) + GAP;
  const depths = depthsOf(page);
  const next = new Map<number, number>();
  return new Map(
    lost.map((block) => {
      const column = depths.get(block.name) ?? 0;
      const y = next.get(column) ?? under;
      next.set(column, y + heightOf(block) + GAP);
      return [block.name, [column * COLUMN_WIDTH, y] as const];
    }),
  );
}

/** True where a box covers a good part of another. */
export function overlapping(boxes: readonly Box[]): boolean {
  return boxes.some((a, index) =>
    boxes.slice(index + 1).some((b) => {
      const across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
      const down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
      return across > 12 && down > 12;
    }),
  );
}
