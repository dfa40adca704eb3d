// SPDX-License-Identifier: Apache-2.0
/** What the names of gradient blocks tell: how often gradients were taken, and of which block. */

import { wiresOf } from "./document";
import type { Page } from "./model";

const SCOPE = /^gradients(?:_(\d+))?\//;

/** How often gradients were taken to make this block: the scopes that it stands in tell. */
export function gradientOrder(name: string): number {
  return (name.match(/(^|\/)gradients(_\d+)?\//g) ?? []).length;
}

/** Which lane under the forward blocks a gradient block runs in; each taking of gradients passes all lanes before it backwards. */
export function laneOf(name: string): number {
  const taken = Number(SCOPE.exec(name)?.[1] ?? 0);
  return 1 + (taken * (taken + 1)) / 2 + (taken + 1 - gradientOrder(name));
}

/** The block that a gradient block is the gradient of, by its scope; null where the name tells of none. */
function differentiated(name: string, known: ReadonlySet<string>): string | null {
  const parts = name.replace(SCOPE, "").split("/");
  for (let length = parts.length; length > 0; length -= 1) {
    const of = parts.slice(0, length).join("/").replace(/_(grad|sum)$/, "");
    if (known.has(of)) return of;
  }
  return null;
}

/** The forward block that each gradient block belongs to; what starts a chain of gradients belongs where its readers do. */
export function forwardOf(page: Page): Map<string, string> {
  const known = new Set(page.blocks.map((block) => block.name));
  const gradients = page.blocks.map((block) => block.name).filter((name) => gradientOrder(name) > 0);
  const found = new Map<string, string>();
  for (const name of gradients) {
    let root = differentiated(name, known);
    for (let turns = 0; root !== null && gradientOrder(root) > 0 && turns < 16; turns += 1) root = differentiated(root, known);
    if (root !== null && gradientOrder(root) === 0) found.set(name, root);
  }
  const wires = wiresOf(page);
  for (const name of gradients) {
    if (found.has(name)) continue;
    const reader = wires.find((wire) => wire.from === name && found.has(wire.to));
    if (reader) found.set(name, found.get(reader.to)!);
  }
  return found;
}

/**
 * The blocks that face left: gradient blocks whose gradients come from the right, as they do in a lane that mirrors the
 * forward blocks. Their inputs are on the right, their outputs on the left.
 */
export function facingLeft(page: Page): Set<string> {
  const place = new Map(page.blocks.map((block) => [block.name, block.position?.[0] ?? 0]));
  const pull = new Map<string, number>();
  const count = (name: string, by: number) => pull.set(name, (pull.get(name) ?? 0) + by);
  for (const wire of wiresOf(page)) {
    if (gradientOrder(wire.from) === 0 || gradientOrder(wire.to) === 0) continue;
    const toTheRight = Math.sign((place.get(wire.from) ?? 0) - (place.get(wire.to) ?? 0));
    // What a block reads decides, what reads it only where it reads no gradient.
    count(wire.to, toTheRight);
    count(wire.from, toTheRight / 64);
  }
  return new Set([...pull].flatMap(([name, by]) => (by > 0 ? [name] : [])));
}
