// SPDX-License-Identifier: Apache-2.0
/** What a block shows, gathered from the page, its analysis and its last run. */

import { useMemo } from "react";
import { useShallow } from "zustand/react/shallow";
import { numberOf, type BlockOutput, type BlockRun } from "../core/api";
import { emptyPage, inputPins, outputPins, pageAt, wiresOf, type Catalogue, type PinShape } from "../core/document";
import { freshBlocks } from "../core/freshness";
import { groupBy } from "../core/group";
import type { Block, Page, PinInfo, Problem } from "../core/model";
import { sizeOf } from "../core/tensor";
import { literalOf } from "../core/values";
import { activeTab, pathOf, prefixOf, useStudio, type Tab } from "../state/store";
import type { Values } from "./ValueGrid";

const NO_PINS: { readonly [pin: string]: PinInfo } = {};
const NO_PROBLEMS: readonly Problem[] = [];

/** The problems and warnings of every block, found once per list of them. */
const byList = new WeakMap<readonly Problem[], Map<string, Problem[]>>();

function ofBlock(tab: Tab | null, list: readonly Problem[] | undefined, block: string): readonly Problem[] {
  if (!tab || !list) return NO_PROBLEMS;
  let found = byList.get(list);
  if (!found) byList.set(list, (found = groupBy(list, (problem) => problem.block)));
  return found.get(prefixOf(tab) + block) ?? NO_PROBLEMS;
}

export function problemsOf(tab: Tab | null, block: string): readonly Problem[] {
  return ofBlock(tab, tab?.analysis?.problems, block);
}

/** Which results still belong to the page, found once per document. */
const freshFor = new WeakMap<Page, { then: Page; fresh: Set<string> }>();

function freshNames(tab: Tab): Set<string> | null {
  const then = tab.run?.document;
  const now = tab.history.now;
  if (!then || then === now) return null;
  const known = freshFor.get(now);
  if (known?.then === then) return known.fresh;
  const fresh = freshBlocks(then, now);
  freshFor.set(now, { then, fresh });
  return fresh;
}

/** How the axes of each output are ordered where only the pin that reads it says so: a constant that is a filter. */
const layouts = new WeakMap<Page, Map<string, string>>();

function readLayouts(page: Page, catalogue: Catalogue): Map<string, string> {
  let found = layouts.get(page);
  if (!found) {
    found = new Map();
    const blocks = new Map(page.blocks.map((block) => [block.name, block]));
    for (const wire of wiresOf(page)) {
      const target = blocks.get(wire.to);
      const pin = target && inputPins(page, target, catalogue).find((one) => one.name === wire.pin);
      if (target && pin?.layout) found.set(`${wire.from}.${wire.output}`, letters(pin.layout, target));
    }
    layouts.set(page, found);
  }
  return found;
}

function letters(layout: string, block: Block): string {
  return layout === "data" ? String(block.attrs?.["data_format"] ?? "NDHWC") : layout;
}

/** The order of the axes of an output, as far as its op or its readers tell. */
export function layoutOfOutput(block: Block, pin: PinShape | undefined, tab: Tab | null, catalogue: Catalogue): string {
  if (pin?.layout) return letters(pin.layout, block);
  if (!tab || !pin || catalogue.size === 0) return "";
  return readLayouts(pageAt(tab.history.now, pathOf(tab)), catalogue).get(`${block.name}.${pin.name}`) ?? "";
}

export interface BlockView {
  readonly page: Page | null;
  readonly catalogue: Catalogue;
  readonly pins: { readonly [pin: string]: PinInfo };
  readonly problems: readonly Problem[];
  /** What is allowed and most likely not meant. */
  readonly warnings: readonly Problem[];
  readonly run: BlockRun | null;
  readonly stale: boolean;
}

export function useBlockView(name: string): BlockView {
  return useStudio(
    useShallow((state): BlockView => {
      const tab = activeTab(state);
      const full = tab ? prefixOf(tab) + name : name;
      const fresh = tab && freshNames(tab);
      const page = tab && pageAt(tab.history.now, pathOf(tab));
      return {
        // Only a page with pages inside decides what pins a block has; without, edits elsewhere redraw nothing here.
        page: page?.pages ? page : null,
        catalogue: state.catalogue,
        pins: tab?.analysis?.pins[full] ?? NO_PINS,
        problems: problemsOf(tab, name),
        warnings: ofBlock(tab, tab?.analysis?.warnings, name),
        run: tab?.results[full] ?? null,
        stale: fresh !== null && fresh !== undefined && !fresh.has(tab?.trail[0]?.block ?? name),
      };
    }),
  );
}

const NOWHERE = emptyPage("");

export function usePins(block: Block, view: BlockView): { inputs: PinShape[]; outputs: PinShape[] } {
  const { page, catalogue } = view;
  return useMemo(
    () => ({ inputs: inputPins(page ?? NOWHERE, block, catalogue), outputs: outputPins(page ?? NOWHERE, block, catalogue) }),
    [block, page, catalogue],
  );
}

/** The values that a result carries, if it carries all of them. */
export function valuesOfResult(output: BlockOutput): Values {
  const whole = output.summary.values.length === sizeOf(output.shape);
  return {
    shape: output.shape,
    values: whole && output.dtype !== "string" ? output.summary.values.map(numberOf) : null,
    hash: output.hash,
    brief: output.summary,
  };
}

/** The value of a constant, which is known without a run. */
export function valuesOfConstant(block: Block): Values | null {
  if (block.op !== "Const") return null;
  const literal = literalOf(block.attrs?.["value"]);
  return literal && { shape: literal.shape, values: literal.values, hash: null, brief: null };
}

/** The room that a result will take, from its inferred shape: a block does not grow when its page runs. */
export function valuesToCome(info: PinInfo | undefined): Values | null {
  const shape = info?.shape;
  if (!shape || !shape.every((size) => typeof size === "number")) return null;
  return { shape: shape as number[], values: null, hash: null, brief: null };
}
