// SPDX-License-Identifier: Apache-2.0
/** Edits of a page: each takes a page and returns the page after it. */

import { blockNames, findBlock, mapReferences, splitPath, uniqueName, wiresOf, withBlock, withSources } from "./document";
import type { Block, Json, Page, Source, Wire } from "./model";

export type Point = readonly [number, number];

export interface Added {
  readonly page: Page;
  readonly name: string;
}

/** Put a block on the page; its name gets a number where it is taken. */
export function addBlock(page: Page, block: Block): Added {
  const name = uniqueName(blockNames(page), block.name);
  return { page: { ...page, blocks: [...page.blocks, { ...block, name }] }, name };
}

/** Take blocks away, with every wire that starts or ends there. */
export function removeBlocks(page: Page, names: Iterable<string>): Page {
  const gone = new Set(names);
  if (gone.size === 0) return page;
  const kept = { ...page, blocks: page.blocks.filter((block) => !gone.has(block.name)) };
  return mapReferences(kept, (name) => (gone.has(name) ? null : name));
}

export function renameBlock(page: Page, from: string, to: string): Page {
  if (from === to || findBlock(page, to)) return page;
  const renamed = withBlock(page, from, (block) => ({ ...block, name: to }));
  return mapReferences(renamed, (name) => (name === from ? to : name));
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
    if (Object.keys(attrs).length > 0) return { ...block, attrs };
    const { attrs: _gone, ...rest } = block;
    return rest;
  });
}

/** Put a typed value on a pin that has no wire; undefined empties the pin. */
export function setValue(page: Page, name: string, pin: string, value: Json | undefined, dtype = ""): Page {
  const source: Source[] = value === undefined ? [] : [dtype ? { value, dtype } : { value }];
  return withBlock(page, name, (block) => withSources(block, pin, source));
}

/** Wire an output to a pin. A single pin takes the new wire instead of the old one, a list pin as one more. */
export function connect(page: Page, from: string, to: string, pin: string, many: boolean): Page {
  return withBlock(page, to, (block) => {
    const old = block.inputs?.[pin] ?? [];
    if (old.some((source) => "from" in source && source.from === from) && !many) return block;
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

/** Make a page of its own from blocks, and put one block in their place that stands for it. */
export function pageFromBlocks(page: Page, names: Iterable<string>, title: string): Added {
  const chosen = new Set(names);
  const inside = page.blocks.filter((block) => chosen.has(block.name));
  const title_ = uniqueName(new Set([...Object.keys(page.pages ?? {}), ...blockNames(page)]), title);
  const wires = wiresOf(page);
  const entering = wires.filter((wire) => !chosen.has(wire.from) && chosen.has(wire.to));
  const leaving = wires.filter((wire) => chosen.has(wire.from) && !chosen.has(wire.to));
  const left = Math.min(...inside.map((block) => block.position?.[0] ?? 0));
  const top = Math.min(...inside.map((block) => block.position?.[1] ?? 0));

  const taken = new Set(inside.map((block) => block.name));
  const pins = new Map<string, string>();
  for (const path of new Set(entering.map((wire) => `${wire.from}.${wire.output}`))) {
    const pin = uniqueName(taken, splitPath(path).block.replaceAll("/", "_"));
    taken.add(pin);
    pins.set(path, pin);
  }
  const outputs = new Map<string, string>();
  for (const path of new Set(leaving.map((wire) => `${wire.from}.${wire.output}`))) {
    outputs.set(path, uniqueName(new Set(outputs.values()), splitPath(path).block.replaceAll("/", "_")));
  }

  const placeholders = [...pins.values()].map(
    (name, row): Block => ({ name, op: "Placeholder", position: [left - 260, top + row * 120] }),
  );
  const inner: Page = {
    name: title_,
    semantics: page.semantics,
    blocks: [...placeholders, ...inside.map((block) => rewire(block, (path) => {
      const pin = pins.get(path);
      return pin === undefined ? path : `${pin}.output`;
    }))],
    inputs: [...pins.values()],
    outputs: Object.fromEntries([...outputs].map(([path, name]) => [name, path])),
  };
  const use: Block = {
    name: title_,
    page: title_,
    position: [left, top],
    inputs: Object.fromEntries([...pins].map(([path, pin]) => [pin, [{ from: path }]])),
  };
  const rest = page.blocks
    .filter((block) => !chosen.has(block.name))
    .map((block) => rewire(block, (path) => {
      const output = outputs.get(path);
      return output === undefined ? path : `${title_}.${output}`;
    }));
  return { page: { ...page, blocks: [...rest, use], pages: { ...page.pages, [title_]: inner } }, name: title_ };
}

function rewire(block: Block, change: (path: string) => string): Block {
  return Object.entries(block.inputs ?? {}).reduce(
    (next, [pin, sources]) =>
      withSources(next, pin, sources.map((source) => ("from" in source ? { from: change(source.from) } : source))),
    block,
  );
}
