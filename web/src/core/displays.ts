// SPDX-License-Identifier: Apache-2.0
/** Displays of a page: what the drawing shows besides blocks. The server makes all edits of them but those of the mouse. */

import { KINDS } from "../generated/displays";
import type { Display, Page } from "./model";

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
