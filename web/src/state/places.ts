// SPDX-License-Identifier: Apache-2.0
/** Where the results of a page lie in space; asked once per version of a page that reads volumes. */

import { useEffect, useState } from "react";
import { api, type Place } from "../core/api";
import { sameSpot, type Spot } from "../core/space";
import type { Page } from "../core/model";
import { aimOf } from "../editor/TraceMarks";
import { activeTab, prefixOf, type Cursor, type Studio, type Tab } from "./store";

type Places = { readonly [path: string]: Place };
const NONE: Places = {};
const asked = new WeakMap<Page, Promise<Places>>();
const told = new WeakMap<Page, Places>();

/** The version of the page that the results belong to. */
function resultsDocument(tab: Tab): Page {
  return tab.run?.document ?? tab.history.now;
}

function readsVolumes(page: Page): boolean {
  return page.blocks.some((block) => block.op === "Volume") || Object.values(page.pages ?? {}).some(readsVolumes);
}

/** The places of all results, by block and output of the whole document. While a new version is asked for, there are none. */
export function usePlaces(tab: Tab | null): Places {
  const document = tab && resultsDocument(tab);
  const [, setKnown] = useState<Places>(NONE);
  useEffect(() => {
    if (!document || told.has(document)) return undefined;
    if (!readsVolumes(document)) {
      told.set(document, NONE);
      return undefined;
    }
    let wanted = true;
    let answer = asked.get(document);
    if (!answer) asked.set(document, (answer = api.places(document).then((found) => found.places, () => NONE)));
    void answer.then((places) => {
      told.set(document, places);
      if (wanted) setKnown(places);
    });
    return () => {
      wanted = false;
    };
  }, [document]);
  return (document && told.get(document)) ?? NONE;
}

export function placeOfOutput(places: Places, tab: Tab | null, block: string, output: string): Place | null {
  return tab ? (places[`${prefixOf(tab)}${block}.${output}`] ?? null) : null;
}

/** Where the cursor that is moved on another output stands in this one. */
export function cursorIn(cursor: Cursor | null, of: { readonly block: string; readonly output: string }, spot: Spot): readonly number[] | null {
  if (!cursor) return null;
  if (cursor.block === of.block && cursor.output === of.output && cursor.index.length === spot.shape.length) return cursor.index;
  return sameSpot(cursor.spot, cursor.index, spot);
}

/** Where a picture of an output goes, as a text: to the cursor, or where a trace leads; empty where neither is. */
export function followed(state: Studio, of: { readonly block: string; readonly output: string }, shape: readonly number[], names: readonly string[]): string {
  if (!state.cursor && !state.trace) return "";
  const tab = activeTab(state);
  const places = (tab && told.get(resultsDocument(tab))) ?? NONE;
  const spot = { shape, names, place: placeOfOutput(places, tab, of.block, of.output) };
  return (aimOf(state.trace, of) ?? cursorIn(state.cursor, of, spot))?.join() ?? "";
}
