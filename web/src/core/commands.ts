// SPDX-License-Identifier: Apache-2.0
/** Edits that are made here, at once: each takes a page and returns the page after it. All others are the server's. */

import { takenNames, uniqueName, wiresOf, withBlock, withoutRule, withSources } from "./document";
import type { Block, Json, Page, Wire } from "./model";

export type Point = readonly [number, number];

export interface Added {
  readonly page: Page;
  readonly name: string;
}

/** Put a block on the page; its name gets a number where it is taken. */
export function addBlock(page: Page, block: Block): Added {
  const name = uniqueName(takenNames(page), block.name);
  return { page: { ...page, blocks: [...page.blocks, { ...block, name }] }, name };
}

export function moveBlocks(page: Page, positions: ReadonlyMap<string, Point>): Page {
  return {
    ...page,
    blocks: page.blocks.map((block) => {
      const position = positions.get(block.name);
      if (!position) return block;
      const [x, y] = [Math.round(position[0]), Math.round(position[1])];
      return block.position?.[0] === x && block.position[1] === y ? block : { ...block, position: [x, y] };
    }),
  };
}

/** Give an attribute a value; undefined means the default. */
export function setAttr(page: Page, name: string, attr: string, value: Json | undefined): Page {
  return withBlock(page, name, (block) => {
    const { [attr]: _old, ...others } = block.attrs ?? {};
    const attrs = value === undefined ? others : { ...block.attrs, [attr]: value };
    if (Object.keys(attrs).length > 0) return withoutRule({ ...block, attrs }, attr);
    const { attrs: _gone, ...rest } = block;
    return withoutRule(rest, attr);
  });
}

/** Wire an output to a pin. A single pin takes the new wire instead of the old one, a list pin as one more. */
export function connect(page: Page, from: string, to: string, pin: string, many: boolean): Page {
  return withBlock(page, to, (block) => {
    const old = block.inputs?.[pin] ?? [];
    return withSources(block, pin, many ? [...old, { from }] : [{ from }]);
  });
}

export function disconnect(page: Page, wires: readonly Wire[]): Page {
  return wires.reduce(
    (next, wire) =>
      withBlock(next, wire.to, (block) => {
        const path = `${wire.from}.${wire.output}`;
        const sources = block.inputs?.[wire.pin] ?? [];
        const at = sources.findIndex(
          (source, index) => "from" in source && source.from === path && (index === wire.at || sources.length === 1),
        );
        const found = at >= 0 ? at : sources.findIndex((source) => "from" in source && source.from === path);
        return found < 0 ? block : withSources(block, wire.pin, sources.toSpliced(found, 1));
      }),
    page,
  );
}

/** Put a block that stands on its own into a wire. */
export function insertIntoWire(page: Page, wire: Wire, name: string, input: string, output: string): Page {
  const cut = withBlock(page, wire.to, (block) => {
    const sources = block.inputs?.[wire.pin] ?? [];
    return withSources(block, wire.pin, sources.with(wire.at, { from: `${name}.${output}` }));
  });
  return connect(cut, `${wire.from}.${wire.output}`, name, input, false);
}

/** A ring would never run: true where the wire would close one. */
export function closesRing(page: Page, from: string, to: string): boolean {
  if (from === to) return true;
  const readers = new Map<string, string[]>();
  for (const wire of wiresOf(page)) readers.set(wire.from, [...(readers.get(wire.from) ?? []), wire.to]);
  const seen = new Set<string>();
  const waiting = [to];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (name === from) return true;
    if (seen.has(name)) continue;
    seen.add(name);
    waiting.push(...(readers.get(name) ?? []));
  }
  return false;
}
