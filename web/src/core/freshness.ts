// SPDX-License-Identifier: Apache-2.0
/** Which results still belong to the page: those whose block, and everything before it, is as it was in the run. */

import { splitPath } from "./document";
import type { Block, Page } from "./model";
import { same } from "./patch";

function computes(block: Block): unknown {
  const { position: _place, ...rest } = block;
  return rest;
}

/** The blocks of `now` whose results in `then` are still right. Moving a block changes no result. */
export function freshBlocks(then: Page, now: Page): Set<string> {
  const before = new Map(then.blocks.map((block) => [block.name, block]));
  const after = new Map(now.blocks.map((block) => [block.name, block]));
  const known = new Map<string, boolean>();
  const fresh = (name: string): boolean => {
    const found = known.get(name);
    if (found !== undefined) return found;
    known.set(name, false);
    const [old, block] = [before.get(name), after.get(name)];
    const unchanged =
      old !== undefined &&
      block !== undefined &&
      (old === block || same(computes(old), computes(block))) &&
      (block.page === undefined || same(then.pages?.[block.page], now.pages?.[block.page])) &&
      Object.values(block.inputs ?? {}).flat().every((source) => !("from" in source) || fresh(splitPath(source.from).block));
    known.set(name, unchanged);
    return unchanged;
  };
  if (then.semantics !== now.semantics) return new Set();
  return new Set(now.blocks.map((block) => block.name).filter(fresh));
}
