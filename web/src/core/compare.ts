// SPDX-License-Identifier: Apache-2.0
/** What is different between two versions of a page, wherever its blocks stand. */

import type { Block, Page } from "./model";

export interface Differences {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Blocks with other values, and blocks with other wires. */
  readonly changed: readonly string[];
  readonly rewired: readonly string[];
}

function differs(a: unknown, b: unknown): boolean {
  return JSON.stringify(a ?? null) !== JSON.stringify(b ?? null);
}

/** From one version to the other. */
export function differences(before: Page, after: Page): Differences {
  const old = new Map(before.blocks.map((block) => [block.name, block]));
  const now = new Map(after.blocks.map((block) => [block.name, block]));
  const both = after.blocks.flatMap((block): [Block, Block][] => (old.has(block.name) ? [[old.get(block.name)!, block]] : []));
  const names = (pairs: [Block, Block][]) => pairs.map(([, block]) => block.name);
  return {
    added: after.blocks.filter((block) => !old.has(block.name)).map((block) => block.name),
    removed: before.blocks.filter((block) => !now.has(block.name)).map((block) => block.name),
    changed: names(both.filter(([a, b]) => differs([a.op, a.page, a.attrs], [b.op, b.page, b.attrs]))),
    rewired: names(both.filter(([a, b]) => differs([a.inputs, a.control], [b.inputs, b.control]))),
  };
}
