// SPDX-License-Identifier: Apache-2.0
/** What placeholders are fed with: of a tab and its runs, never of the page. */

import { api, ApiError } from "../core/api";
import { emptyPage, findBlock } from "../core/document";
import { MOST_FILLED, tensorJson } from "../core/cells";
import type { Block, Json } from "../core/model";
import { sizeOf } from "../core/tensor";
import { toldNow, updateTab, type Tab } from "./store";

export function feed(id: string, block: string, value: Json | undefined): void {
  updateTab(id, (tab) => {
    const { [block]: _old, ...others } = tab.feeds;
    return { feeds: value === undefined ? others : { ...others, [block]: value } };
  });
}

/** Feed what a text says; the server reads it as it reads the text of a constant. Returns what is wrong with it. */
export async function feedText(id: string, block: string, dtype: string, text: string): Promise<string> {
  if (text.trim() === "") {
    feed(id, block, undefined);
    return "";
  }
  const page = { ...emptyPage("feed"), blocks: [{ name: "feed", op: "Const", attrs: { dtype } }] };
  try {
    const { document } = await api.edit(page, [], [{ do: "set_text", block: "feed", name: "value", text }]);
    const made = findBlock(document, "feed");
    const value = typed(made?.attrs?.["value"], dtype);
    const rule = made?.typed?.["value"];
    if (rule !== undefined && typeof value === "object" && value !== null) RULES.set(value, rule);
    feed(id, block, value);
    return "";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return toldNow(error.message);
  }
}

/** The rules that values were typed as, as long as they are fed. */
const RULES = new WeakMap<object, string>();

export function ruleOfFeed(value: Json | undefined): string | undefined {
  return typeof value === "object" && value !== null ? RULES.get(value) : undefined;
}

/** What a placeholder that is not fed yet can begin with: zeros of its shape, one where that is open. */
export function startingFeed(block: Block): Json {
  const shape = block.attrs?.["shape"];
  const sizes = Array.isArray(shape) && shape.every((one: Json) => typeof one === "number" && one >= 0) ? (shape as number[]) : [];
  const known = sizeOf(sizes) <= MOST_FILLED ? sizes : [];
  return tensorJson({ dtype: String(block.attrs?.["dtype"] ?? "float32"), shape: known, values: Array.from({ length: sizeOf(known) }, () => 0) });
}

/** A tensor in the type of its placeholder, whatever way its numbers were written. */
export function typed(value: Json | undefined, dtype: string): Json | undefined {
  const tensor = (value as { tensor?: { [key: string]: Json } } | undefined)?.tensor;
  return tensor && "values" in tensor && dtype !== "string" ? { tensor: { ...tensor, dtype } } : value;
}

/** The feeds of a run: of placeholders that are still there. */
export function feedsOf(tab: Tab): { readonly [block: string]: Json } {
  const there = Object.entries(tab.feeds).filter(([name]) => findBlock(tab.history.now, name)?.op === "Placeholder");
  return Object.fromEntries(there);
}
