// SPDX-License-Identifier: Apache-2.0
/** Blocks on the system clipboard: JSON that another page, another window or a text editor can take. */

import type { Block, Page } from "./model";

const KIND = "voxgrad/blocks";

export interface Clip {
  readonly kind: typeof KIND;
  readonly version: 1;
  readonly blocks: readonly Block[];
  readonly pages?: { readonly [name: string]: Page };
}

/** The blocks as text. Wires from outside stay in it: pasted on the same page they are wired as before. */
export function copyText(page: Page, names: ReadonlySet<string>): string {
  const blocks = page.blocks.filter((block) => names.has(block.name));
  const used = Object.entries(page.pages ?? {}).filter(([name]) => blocks.some((block) => block.page === name));
  const clip: Clip = {
    kind: KIND,
    version: 1,
    blocks,
    ...(used.length > 0 ? { pages: Object.fromEntries(used) } : {}),
  };
  return JSON.stringify(clip, null, 1);
}

/** The blocks of a text; null where it holds none. */
export function readClip(text: string): Clip | null {
  try {
    const data: unknown = JSON.parse(text);
    if (typeof data !== "object" || data === null) return null;
    const clip = data as Partial<Clip>;
    if (clip.kind !== KIND || !Array.isArray(clip.blocks) || clip.blocks.length === 0) return null;
    return clip.blocks.every((block: unknown) => isBlock(block)) ? (clip as Clip) : null;
  } catch {
    return null;
  }
}

function isBlock(value: unknown): value is Block {
  return typeof value === "object" && value !== null && typeof (value as Block).name === "string";
}

/** The upper left corner of blocks. */
export function cornerOf({ blocks }: Clip): readonly [number, number] {
  return [
    Math.min(...blocks.map((block) => block.position?.[0] ?? 0)),
    Math.min(...blocks.map((block) => block.position?.[1] ?? 0)),
  ];
}
