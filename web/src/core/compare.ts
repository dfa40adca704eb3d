// SPDX-License-Identifier: Apache-2.0
/** What is different between two versions of a page, wherever its blocks stand. */

import { wiresOf } from "./document";
import type { Block, Page, Wire } from "./model";
import { same } from "./patch";
import { textOf } from "./values";

export type Change = "added" | "removed" | "changed" | "rewired";

export interface BlockChange {
  readonly block: Block;
  readonly changes: readonly Change[];
  /** Every other value, as `ksize: 1,2,2,2,1 → 1,3,3,3,1`. */
  readonly told: readonly string[];
}

export interface WireChange {
  readonly wire: Wire;
  readonly change: "added" | "removed" | null;
}

export interface Differences {
  /** All blocks of both versions, also those that are the same. */
  readonly blocks: readonly BlockChange[];
  readonly wires: readonly WireChange[];
  /** What else of the page is different: its semantics, outputs, displays, ... */
  readonly rest: readonly string[];
}

const MOST_LETTERS = 60;

function shown(value: unknown): string {
  if (value === undefined) return "—";
  const text = typeof value === "object" ? textOf(value as never) : String(value);
  return text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS)}…` : text;
}

/** The values of a block: its attributes, and what is typed on its inputs. */
function valuesOf(block: Block): { readonly [name: string]: unknown } {
  const typed = Object.entries(block.inputs ?? {}).flatMap(([pin, sources]) => {
    const values = sources.flatMap((source) => ("value" in source ? [source.value] : []));
    return values.length > 0 ? [[pin, values.length === 1 ? values[0] : values] as const] : [];
  });
  return { op: block.op ?? block.page, ...block.attrs, ...Object.fromEntries(typed) };
}

function key({ from, output, to, pin }: Wire): string {
  return JSON.stringify([from, output, to, pin]);
}

/** Pages inside that are not what they were; a block that stands for one has changed with it. */
function changedPages(before: Page, after: Page): ReadonlySet<string> {
  const names = new Set([...Object.keys(before.pages ?? {}), ...Object.keys(after.pages ?? {})]);
  return new Set([...names].filter((name) => !same(before.pages?.[name], after.pages?.[name])));
}

function changeOf(old: Block, now: Block, pages: ReadonlySet<string>): BlockChange {
  const [left, right] = [valuesOf(old), valuesOf(now)];
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])].filter((name) => !same(left[name], right[name]));
  const told = names.map((name) => `${name}: ${shown(left[name])} → ${shown(right[name])}`);
  const inside = now.page !== undefined && pages.has(now.page);
  const wires = (block: Block) => wiresOf({ name: "", semantics: "documented", blocks: [block] }).map((wire) => [key(wire), wire.at]);
  const rewired = !same(wires(old), wires(now)) || !same(old.control ?? [], now.control ?? []);
  const changes: Change[] = [...(told.length > 0 || inside ? (["changed"] as const) : []), ...(rewired ? (["rewired"] as const) : [])];
  return { block: now, changes, told: inside ? [...told, `${now.page}: …`] : told };
}

const REST = ["name", "semantics", "inputs", "outputs", "targets", "initializers", "pages", "displays", "groups", "notes"] as const;

/** From one version to the other. */
export function differences(before: Page, after: Page): Differences {
  const old = new Map(before.blocks.map((block) => [block.name, block]));
  const now = new Set(after.blocks.map((block) => block.name));
  const pages = changedPages(before, after);
  const there = after.blocks.map((block): BlockChange => {
    const earlier = old.get(block.name);
    return earlier ? changeOf(earlier, block, pages) : { block, changes: ["added"], told: [] };
  });
  const gone = before.blocks.filter((block) => !now.has(block.name)).map((block): BlockChange => ({ block, changes: ["removed"], told: [] }));
  const [drawn, drawnBefore] = [wiresOf(after), wiresOf(before)];
  const [keys, keysBefore] = [new Set(drawn.map(key)), new Set(drawnBefore.map(key))];
  return {
    blocks: [...there, ...gone],
    wires: [
      ...drawn.map((wire): WireChange => ({ wire, change: keysBefore.has(key(wire)) ? null : "added" })),
      ...drawnBefore.filter((wire) => !keys.has(key(wire))).map((wire): WireChange => ({ wire, change: "removed" })),
    ],
    rest: REST.filter((name) => !same(before[name] ?? null, after[name] ?? null)),
  };
}
