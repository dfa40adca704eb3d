// SPDX-License-Identifier: Apache-2.0
/** Pages that are kept to be used as blocks: listed beside the ops, put on pages, kept. */

import { api, ApiError } from "../core/api";
import type { Point } from "../core/commands";
import { findBlock, outputPins, takenNames, uniqueName } from "../core/document";
import type { Op } from "../core/model";
import { firstFit, givenTypes, type PinPlace } from "../core/pins";
import { select, serverEdit, withoutHead } from "./edits";
import { reveal, roomFor } from "./layout";
import { activeTab, pathOf, prefixOf, recordDocument, say, shownPage, studio, update } from "./store";
import { word } from "./words";

/** The group of its pages in the palette; no op has it. */
export const GROUP = "library";

export async function loadLibrary(): Promise<void> {
  const found = await api.library().catch((error: unknown) => {
    if (error instanceof ApiError) return null;
    throw error;
  });
  if (found) update({ library: found.pages });
}

/** Put a page of the library on the page as a block; with a pin, wire the two together. */
export async function addKept(kept: Op, place: Point | null, from: PinPlace | null = null): Promise<string | null> {
  const tab = activeTab();
  if (!tab) return null;
  const document = await api.keptPage(kept.name).then((found) => withoutHead(found.document), refused);
  if (!document) return null;
  const page = shownPage(tab);
  const name = uniqueName(takenNames(page), kept.name);
  const block = { name, page: kept.name, position: roomFor({ name, page: kept.name }, place ?? undefined) };
  const into = from?.side === "output" ? firstFit(kept, "inputs", typesAt(from)) : undefined;
  const inputs = from && into !== undefined ? { [into]: [{ from: `${from.block}.${from.pin}` }] } : {};
  const out = from?.side === "input" ? firstFit(kept, "outputs", typesAt(from)) : undefined;
  const wire = from && out !== undefined ? [{ do: "connect", from: `${name}.${out}`, block: from.block, pin: from.pin }] : [];
  const paste = { do: "paste", blocks: [{ ...block, inputs }], pages: { [kept.name]: document } };
  const added = await serverEdit(word("action.add"), [paste, ...wire]);
  if (!added) return null;
  select(added);
  reveal(added);
  return added[0] ?? null;
}

function refused(error: unknown): null {
  if (!(error instanceof ApiError)) throw error;
  say(error.message, "error");
  return null;
}

/** The element types that travel over a wire from a pin of the page. */
export function typesAt(place: PinPlace): readonly string[] {
  const tab = activeTab();
  const block = tab && findBlock(shownPage(tab), place.block);
  if (!block) return [];
  const known = tab.analysis?.pins[prefixOf(tab) + place.block]?.[place.pin];
  if (place.side === "input") return known?.dtype ? [known.dtype] : [];
  const pin = outputPins(shownPage(tab), block, studio().catalogue).find((one) => one.name === place.pin);
  return pin ? givenTypes(pin, known) : [];
}

export interface ToKeep {
  readonly path: readonly string[];
  readonly name: string;
}

/** What would be kept: the page of the selected block that stands for one, else the page on the screen. */
export function toKeep(): ToKeep | null {
  const tab = activeTab();
  if (!tab) return null;
  const page = shownPage(tab);
  const chosen = page.blocks.find((block) => tab.selection.has(block.name) && block.page !== undefined);
  if (chosen) return { path: [...pathOf(tab), chosen.page!], name: page.pages?.[chosen.page!]?.origin?.name ?? chosen.page! };
  return { path: pathOf(tab), name: page.origin?.name ?? page.name };
}

/** Keep a page in the library; returns why not, or "". */
export async function keep({ path, name }: ToKeep, replace: boolean): Promise<string> {
  const tab = activeTab();
  if (!tab) return "";
  const before = tab.history.now;
  try {
    const { document } = await api.keepPage(before, path, name, replace);
    if (path.length > 0 && studio().tabs[tab.id]?.history.now === before) recordDocument(tab.id, withoutHead(document), word("action.keep"));
    say(word("library.kept", { name }));
    await loadLibrary();
    return "";
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}
