// SPDX-License-Identifier: Apache-2.0
/** Displays of a page: what the drawing shows besides blocks. The server makes all edits of them but those of the mouse. */

import { KINDS } from "../generated/displays";
import { filled, tensorJson } from "./cells";
import { findBlock, splitPath } from "./document";
import type { Display, Json, Page } from "./model";
import { literalOf } from "./values";

export type DisplayKind = Display["kind"];

/** In a drawing and in a selection, displays stand beside blocks, whose names hold no colon. */
const MARK = "display:";

export function displayId(name: string): string {
  return MARK + name;
}

/** The name of the display that an id of the drawing means; null for a block. */
export function displayOf(id: string): string | null {
  return id.startsWith(MARK) ? id.slice(MARK.length) : null;
}

export function displayNames(ids: Iterable<string>): string[] {
  return [...ids].flatMap((id) => displayOf(id) ?? []);
}

export function findDisplay(page: Page, name: string): Display | undefined {
  return page.displays?.find((display) => display.name === name);
}

/** The value of an attribute: what was given, or its default. */
export function attrOf(display: Display, name: string): string | number | boolean | null {
  const given = display.attrs?.[name];
  if (typeof given === "string" || typeof given === "number" || typeof given === "boolean") return given;
  const attrs: readonly { name: string; default: string | number | boolean | null }[] = KINDS[display.kind].attrs;
  return attrs.find((attr) => attr.name === name)?.default ?? null;
}

/** What a display is called: its title, its label, or the block that it shows. */
export function titleOf(display: Display): string {
  const title = attrOf(display, "title");
  const first = display.of?.[0];
  return (typeof title === "string" && title.trim()) || first?.label || (first ? splitPath(first.from).block : display.name);
}

/** The block that a display writes to. */
export function writtenBlock(display: Display): string {
  const bound = display.of?.[0];
  return bound ? splitPath(bound.from).block : "";
}

/** The value that an edit box or a slider writes: an attribute, what is typed on a pin, or what a placeholder is fed with. */
export function entryOf(page: Page, display: Display, feeds: { readonly [block: string]: Json }): Json | undefined {
  const block = findBlock(page, writtenBlock(display));
  if (block?.op === "Placeholder") return feeds[block.name];
  const entry = String(attrOf(display, "entry"));
  const source = block?.inputs?.[entry]?.[0];
  return block?.attrs?.[entry] ?? (source && "value" in source ? source.value : undefined);
}

/** The number that all elements of a value are; null where they differ, and of a list, which is no tensor. */
export function numberOf(value: Json | undefined): number | null {
  const literal = literalOf(value);
  const [first] = literal?.values ?? [];
  if (first === undefined || (literal!.dtype === "" && literal!.shape.length > 0)) return null;
  return literal!.values!.every((one) => Object.is(one, first)) ? first : null;
}

/** A value like another with a number in all of its places; whole where its type is. */
export function withNumber(value: Json | undefined, number: number): Json {
  const literal = literalOf(value);
  if (!literal || literal.dtype === "") return number;
  return tensorJson(filled(literal, /^u?int/.test(literal.dtype) ? Math.round(number) : number));
}

export interface Place {
  readonly position?: readonly [number, number];
  readonly size?: readonly [number, number];
}

/** Move displays, or give them another size. */
export function placeDisplays(page: Page, places: ReadonlyMap<string, Place>): Page {
  if (!page.displays || places.size === 0) return page;
  const displays = page.displays.map((display) => {
    const place = places.get(display.name);
    if (!place) return display;
    const position = rounded(place.position ?? display.position);
    const size = rounded(place.size ?? display.size);
    const same = String([position, size]) === String([display.position, display.size]);
    return same ? display : { ...display, position, size };
  });
  return { ...page, displays };
}

function rounded([x, y]: readonly [number, number]): readonly [number, number] {
  return [Math.round(x), Math.round(y)];
}
