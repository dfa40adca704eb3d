// SPDX-License-Identifier: Apache-2.0
/** Lanes for wires that turn between the same blocks, so that they neither cover nor cross each other. */

import { inputPins, wireId, wiresOf, type Catalogue } from "../core/document";
import { groupBy } from "../core/group";
import type { Block, Page, Wire } from "../core/model";

const COLUMN = 60;
const MOST_LANES = 9;

interface Bundle {
  readonly wires: readonly Wire[];
  readonly top: number;
  readonly bottom: number;
}

/** The wires into one block in the order of their lanes, with the heights between which they turn. */
function bundle(page: Page, target: Block, wires: readonly Wire[], catalogue: Catalogue, height: ReadonlyMap<string, number>): Bundle {
  const pins = inputPins(page, target, catalogue).map((pin) => pin.name);
  const sorted = wires.toSorted((a, b) => pins.indexOf(a.pin) - pins.indexOf(b.pin) || a.at - b.at);
  const here = height.get(target.name) ?? 0;
  const from = sorted.map((wire) => height.get(wire.from) ?? 0);
  const above = sorted.filter((wire) => (height.get(wire.from) ?? 0) < here);
  const below = sorted.filter((wire) => (height.get(wire.from) ?? 0) >= here);
  // From above, lower pins turn further out; from below, upper pins do.
  return { wires: [...above, ...below.toReversed()], top: Math.min(here, ...from), bottom: Math.max(here, ...from) + 200 };
}

/** The lane of each wire, counted from its target. Blocks of one column share lanes only where their wires do not meet. */
export function lanesOf(page: Page, catalogue: Catalogue): Map<string, number> {
  const lanes = new Map<string, number>();
  const wires = groupBy(wiresOf(page), (wire) => wire.to);
  const height = new Map(page.blocks.map((block) => [block.name, block.position?.[1] ?? 0]));
  const columns = groupBy(
    page.blocks.filter((block) => wires.has(block.name)),
    (block) => Math.round((block.position?.[0] ?? 0) / COLUMN),
  );
  for (const column of columns.values()) {
    const placed: (Bundle & { first: number })[] = [];
    for (const block of column.toSorted((a, b) => (a.position?.[1] ?? 0) - (b.position?.[1] ?? 0))) {
      const mine = bundle(page, block, wires.get(block.name)!, catalogue, height);
      const meeting = placed.filter((other) => other.top < mine.bottom && mine.top < other.bottom);
      const first = Math.max(0, ...meeting.map((other) => other.first + other.wires.length));
      placed.push({ ...mine, first });
      mine.wires.forEach((wire, index) => lanes.set(wireId(wire), (first + index) % MOST_LANES));
    }
  }
  return lanes;
}

