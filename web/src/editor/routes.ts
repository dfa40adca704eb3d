// SPDX-License-Identifier: Apache-2.0
/** How each wire goes: in which lane it turns, and whether early or late, so that it does not run under blocks. */

import type { Box } from "../core/arrange";
import { wireId, wiresOf, type Catalogue } from "../core/document";
import type { Page, Wire } from "../core/model";
import { lanesOf } from "./lanes";

export interface Plan {
  readonly lane: number;
  /** Turn just before the target, just behind the source, or cross in a channel at this height. */
  readonly via: "late" | "early" | number;
}

export interface Ends {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
}

export const LANE = 13;
const CLEAR = 8;

export function lateTurn(ends: Ends, lane: number): number {
  return Math.max(ends.x0 + 14, Math.min(ends.x1 - 22 - lane * LANE, ends.x1 - 14));
}

export function earlyTurn(ends: Ends, lane: number): number {
  return Math.min(ends.x1 - 14, ends.x0 + 18 + lane * LANE);
}

/** Does a level or upright line meet a block? */
function meets(boxes: readonly Box[], xa: number, ya: number, xb: number, yb: number): boolean {
  const [left, right] = [Math.min(xa, xb), Math.max(xa, xb)];
  const [top, bottom] = [Math.min(ya, yb), Math.max(ya, yb)];
  return boxes.some((box) => left < box.x + box.width + CLEAR && right > box.x - CLEAR && top < box.y + box.height + CLEAR && bottom > box.y - CLEAR);
}

function planOf(ends: Ends, lane: number, others: readonly Box[]): Plan["via"] {
  const { x0, y0, x1, y1 } = ends;
  if (x1 < x0 + 30) return "late";
  const late = lateTurn(ends, lane);
  if (!meets(others, x0, y0, late, y0) && !meets(others, late, y0, late, y1)) return "late";
  const early = earlyTurn(ends, lane);
  if (!meets(others, early, y0, early, y1) && !meets(others, early, y1, x1 - CLEAR, y1)) return "early";
  const inWay = others.filter((box) => box.x < x1 && box.x + box.width > x0);
  const levels = inWay.flatMap((box) => [box.y - 18 - lane * 6, box.y + box.height + 18 + lane * 6]);
  const free = levels.filter((y) => !meets(others, early, y, late, y) && !meets(others, early, y0, early, y) && !meets(others, late, y, late, y1));
  const cost = (y: number) => Math.abs(y - y0) + Math.abs(y - y1);
  return free.sort((a, b) => cost(a) - cost(b))[0] ?? "late";
}

/** A plan for every wire of a page, from where its blocks and pins are drawn. */
export function plansOf(page: Page, catalogue: Catalogue, boxes: readonly Box[], endsOf: (wire: Wire) => Ends | null): Map<string, Plan> {
  const lanes = lanesOf(page, catalogue);
  return new Map(
    wiresOf(page).map((wire) => {
      const id = wireId(wire);
      const lane = lanes.get(id) ?? 0;
      const ends = endsOf(wire);
      const others = boxes.filter((box) => box.name !== wire.from && box.name !== wire.to);
      return [id, { lane, via: ends ? planOf(ends, lane, others) : "late" }];
    }),
  );
}
