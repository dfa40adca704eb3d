// SPDX-License-Identifier: Apache-2.0
/** Blocks and displays on the system clipboard: JSON that another page, another window or a text editor can take. */

import { displayId } from "./displays";
import type { Block, Display, Page } from "./model";

const KIND = "voxgrad/blocks";

export interface Clip {
  readonly kind: typeof KIND;
  readonly version: 1;
  readonly blocks: readonly Block[];
  readonly pages?: { readonly [name: string]: Page };
  readonly displays?: readonly Display[];
}

/** What is selected as text. Wires from outside stay in it: pasted on the same page they are wired as before. */
export function copyText(page: Page, names: ReadonlySet<string>): string {
  const blocks = page.blocks.filter((block) => names.has(block.name));
  const used = Object.entries(page.pages ?? {}).filter(([name]) => blocks.some((block) => block.page === name));
  const displays = (page.displays ?? []).filter((display) => names.has(displayId(display.name)));
  const clip: Clip = {
    kind: KIND,
    version: 1,
    blocks,
    ...(used.length > 0 ? { pages: Object.fromEntries(used) } : {}),
    ...(displays.length > 0 ? { displays } : {}),
  };
  return JSON.stringify(clip, null, 1);
}

/** The blocks and displays of a text; null where it holds none. */
export function readClip(text: string): Clip | null {
  try {
    const data: unknown = JSON.parse(text);
    if (typeof data !== "object" || data === null) return null;
    const clip = data as Partial<Clip>;
    if (clip.kind !== KIND || !Array.isArray(clip.blocks)) return null;
    const all: unknown[] = [...clip.blocks, ...(Array.isArray(clip.displays) ? clip.displays : [])];
    return all.length > 0 && all.every(isNamed) ? (clip as Clip) : null;
  } catch {
    return null;
  }
}

function isNamed(value: unknown): boolean {
  return typeof value === "object" && value !== null && typeof (value as Block).name === "string";
}

/** The upper left corner of what was copied. */
export function cornerOf({ blocks, displays = [] }: Clip): readonly [number, number] {
  const places = [...blocks, ...displays].map((one) => one.position ?? [0, 0]);
  return [Math.min(...places.map((place) => place[0])), Math.min(...places.map((place) => place[1]))];
}
