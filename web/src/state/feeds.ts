// SPDX-License-Identifier: Apache-2.0
/** What placeholders are fed with: of a tab and its runs, never of the page. */

import { api, ApiError } from "../core/api";
import { emptyPage, findBlock } from "../core/document";
import type { Json } from "../core/model";
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
    feed(id, block, typed(findBlock(document, "feed")?.attrs?.["value"], dtype));
    return "";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return toldNow(error.message);
  }
}

/** A tensor in the type of its placeholder, whatever way its numbers were written. */
function typed(value: Json | undefined, dtype: string): Json | undefined {
  const tensor = (value as { tensor?: { [key: string]: Json } } | undefined)?.tensor;
  return tensor && dtype !== "string" ? { tensor: { ...tensor, dtype } } : value;
}

/** The feeds of a run: of placeholders that are still there. */
export function feedsOf(tab: Tab): { readonly [block: string]: Json } {
  const there = Object.entries(tab.feeds).filter(([name]) => findBlock(tab.history.now, name)?.op === "Placeholder");
  return Object.fromEntries(there);
}
