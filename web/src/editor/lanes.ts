// SPDX-License-Identifier: Apache-2.0
/** Lanes for wires that turn between the same blocks, so that they neither cover nor cross each other. */

import { inputPins, wireId, wiresOf, type Catalogue } from "../core/document";
import type { Page } from "../core/model";

/** The lane of each wire, counted from its target. */
export function lanesOf(page: Page, catalogue: Catalogue): Map<string, number> {
  const lanes = new Map<string, number>();
  const height = new Map(page.blocks.map((block) => [block.name, block.position?.[1] ?? 0]));
  const wires = wiresOf(page);
  for (const block of page.blocks) {
    const pins = inputPins(page, block, catalogue).map((pin) => pin.name);
    const mine = wires.filter((wire) => wire.to === block.name).sort((a, b) => pins.indexOf(a.pin) - pins.indexOf(b.pin) || a.at - b.at);
    const here = height.get(block.name) ?? 0;
    const above = mine.filter((wire) => (height.get(wire.from) ?? 0) < here);
    const below = mine.filter((wire) => (height.get(wire.from) ?? 0) >= here);
    // From above, lower pins turn further out; from below, upper pins do.
    above.forEach((wire, index) => lanes.set(wireId(wire), index));
    below.toReversed().forEach((wire, index) => lanes.set(wireId(wire), index));
  }
  return lanes;
}
