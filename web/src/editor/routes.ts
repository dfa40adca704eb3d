// SPDX-License-Identifier: Apache-2.0
/** How each wire of a page goes, and where on it there is room for its chip. */

import type { Box } from "../core/arrange";
import type { Point } from "../core/commands";
import type { Catalogue } from "../core/document";
import { drawnWires } from "../core/groups";
import type { Page, Wire } from "../core/model";
import { Plane, routeOf, type Ends, type Route } from "../core/router";
import { lanesOf } from "./lanes";

export interface Spot {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export interface Plan extends Route {
  readonly ends: Ends;
  /** Places for a chip, the best first. */
  readonly spots: readonly Spot[];
}

const CHIP = 9;

/** Room for a chip beside the source, on another level line, or across an upright one. */
function spotsOn(way: readonly Point[], plane: Plane): Spot[] {
  const lines = way.slice(1).map((to, index) => [way[index]!, to] as const);
  const level = lines.filter(([a, b]) => a[1] === b[1]).map(([a, b]): Spot => ({ x: (a[0] + b[0]) / 2, y: a[1], width: Math.abs(a[0] - b[0]) - 4 }));
  const upright = lines.filter(([a, b]) => a[0] === b[0] && Math.abs(a[1] - b[1]) > 4 * CHIP).flatMap(([a, b]) => {
    const y = (a[1] + b[1]) / 2;
    return [140, 110, 80, 50].map((width): Spot => ({ x: a[0], y, width }));
  });
  const isFree = ({ x, y, width }: Spot) => plane.hits([x - width / 2, y - CHIP], [x + width / 2, y + CHIP]).length === 0;
  return [...level.toSorted((a, b) => b.width - a.width), ...upright].filter((spot) => spot.width > 30 && isFree(spot));
}

function sameEnds(a: Ends, b: Ends): boolean {
  return a.x0 === b.x0 && a.y0 === b.y0 && a.x1 === b.x1 && a.y1 === b.y1 && a.out === b.out && a.into === b.into;
}

/** A plan for every wire of a page, from where its blocks and pins are drawn. A plan that still holds stays the same object. */
export function plansOf(
  page: Page,
  catalogue: Catalogue,
  boxes: readonly Box[],
  endsOf: (wire: Wire) => Ends | null,
  old: ReadonlyMap<string, Plan>,
): Map<string, Plan> {
  const plane = new Plane(boxes);
  const plans = new Map<string, Plan>();
  const lost: (readonly [string, Wire, Ends])[] = [];
  for (const { id, drawn } of drawnWires(page)) {
    const ends = endsOf(drawn);
    const known = old.get(id);
    if (ends && known && sameEnds(known.ends, ends) && plane.keeps(known)) {
      plans.set(id, known);
      plane.take(known.way, `${drawn.from}.${drawn.output}`);
    } else if (ends) lost.push([id, drawn, ends]);
  }
  if (lost.length === 0) return plans;
  const lanes = lanesOf(page, catalogue);
  const length = ([, , ends]: readonly [string, Wire, Ends]) => Math.abs(ends.x1 - ends.x0) + Math.abs(ends.y1 - ends.y0);
  for (const [id, wire, ends] of lost.toSorted((a, b) => length(a) - length(b))) {
    const source = `${wire.from}.${wire.output}`;
    const route = routeOf(ends, plane, { from: wire.from, to: wire.to, source }, lanes.get(id) ?? 0);
    plane.take(route.way, source);
    plans.set(id, { ...route, ends, spots: spotsOn(route.way, plane) });
  }
  return plans;
}
