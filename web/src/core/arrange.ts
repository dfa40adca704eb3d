// SPDX-License-Identifier: Apache-2.0
/** Aligning, distributing and finding blocks by place. */

import type { Point } from "./commands";

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
