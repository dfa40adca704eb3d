// SPDX-License-Identifier: Apache-2.0
/** Blocks on the system clipboard: JSON that another page, another window or a text editor can take. */

import { blockNames, mapReferences, splitPath, takenNames, uniqueName } from "./document";
import type { Block, Page } from "./model";

const KIND = "voxgrad/blocks";

interface Clip {
  readonly kind: typeof KIND;
  readonly version: 1;
  readonly blocks: readonly Block[];
  readonly pages?: { readonly [name: string]: Page };
}

/** The blocks as text. Wires from outside stay in it: pasted on the same page they are wired as before. */
export function copyText(page: Page, names: ReadonlySet<string>): string {
  const blocks = page.blocks.filter((block) => names.has(block.name));
  const used = blocks.flatMap((block) => (block.page !== undefined && page.pages?.[block.page] ? [block.page] : []));
  const clip: Clip = {
    kind: KIND,
    version: 1,
    blocks,
    ...(used.length > 0 ? { pages: Object.fromEntries(used.map((name) => [name, page.pages![name]!])) } : {}),
  };
  return JSON.stringify(clip, null, 1);
}

function readClip(text: string): Clip | null {
  try {
    const data: unknown = JSON.parse(text);
    if (typeof data !== "object" || data === null) return null;
    const clip = data as Partial<Clip>;
    if (clip.kind !== KIND || !Array.isArray(clip.blocks)) return null;
    return clip.blocks.every((block: unknown) => isBlock(block)) ? (clip as Clip) : null;
  } catch {
    return null;
  }
}

function isBlock(value: unknown): value is Block {
  return typeof value === "object" && value !== null && typeof (value as Block).name === "string";
}

export interface Pasted {
  readonly page: Page;
  readonly names: readonly string[];
}

/** The page with the blocks of a text; null where the text holds none. Wires to blocks that are not here fall away. */
export function pasteText(page: Page, text: string, shift: readonly [number, number]): Pasted | null {
  const clip = readClip(text);
  if (!clip || clip.blocks.length === 0) return null;
  const taken = takenNames(page);
  const renamed = new Map<string, string>();
  for (const block of clip.blocks) {
    const name = uniqueName(taken, block.name);
    taken.add(name);
    renamed.set(block.name, name);
  }
  const here = blockNames(page);
  const moved: Page = {
    name: page.name,
    semantics: page.semantics,
    blocks: clip.blocks.map((block) => ({
      ...block,
      name: renamed.get(block.name)!,
      position: [(block.position?.[0] ?? 0) + shift[0], (block.position?.[1] ?? 0) + shift[1]],
    })),
  };
  const wired = mapReferences(moved, (name) => renamed.get(name) ?? (here.has(name) ? name : null));
  const pages = { ...clip.pages, ...page.pages };
  return {
    page: {
      ...page,
      blocks: [...page.blocks, ...wired.blocks],
      ...(Object.keys(pages).length > 0 ? { pages } : {}),
    },
    names: wired.blocks.map((block) => block.name),
  };
}

/** The upper left corner of the blocks in a text, to paste them under the pointer. */
export function cornerOf(text: string): readonly [number, number] | null {
  const blocks = readClip(text)?.blocks;
  if (!blocks || blocks.length === 0) return null;
  return [
    Math.min(...blocks.map((block) => block.position?.[0] ?? 0)),
    Math.min(...blocks.map((block) => block.position?.[1] ?? 0)),
  ];
}

/** The blocks from which wires come into these, without being among them. */
export function sourcesOutside(page: Page, names: ReadonlySet<string>): Set<string> {
  const outside = new Set<string>();
  for (const block of page.blocks.filter((one) => names.has(one.name))) {
    for (const source of Object.values(block.inputs ?? {}).flat()) {
      if ("from" in source && !names.has(splitPath(source.from).block)) outside.add(splitPath(source.from).block);
    }
  }
  return outside;
}
