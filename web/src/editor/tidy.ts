// SPDX-License-Identifier: Apache-2.0
/** Tidy: the selection or the whole page in layers, rows and lanes of gradients. */

import type { Box } from "../core/arrange";
import type { Point } from "../core/commands";
import { groupBy } from "../core/group";
import { drawnWires, moveDrawn } from "../core/groups";
import { layered, type PinHeight } from "../core/layered";
import { clustersOf, wrapped } from "../core/mirror";
import type { Page } from "../core/model";
import { editPage } from "../state/edits";
import { boxes, moveQuietly, unsettle } from "../state/layout";
import { activeTab, flow, shownPage } from "../state/store";
import { glide, glideAfter } from "../state/view";
import { word } from "../state/words";

/** Where pins are drawn. */
const pinHeight: PinHeight = (block, side, pin) => {
  const bounds = flow.current?.getInternalNode(block)?.internals.handleBounds;
  const handle = bounds?.[side === "output" ? "source" : "target"]?.find((one) => one.id === pin);
  return handle ? handle.y + handle.height / 2 : 0;
};

/** Where the boxes of a page go: forward blocks in layers, each as wide as the gradients that will lie under it. */
function arranged(page: Page, nodes: readonly Box[]): Map<string, Point> {
  const chosen = new Set(nodes.map((box) => box.name));
  const clusters = clustersOf(page, nodes).filter((one) => chosen.has(one.root));
  const gradients = new Set(clusters.flatMap((one) => [...one.places.keys()]));
  const below = groupBy(clusters, (one) => one.root);
  const forward = nodes
    .filter((box) => !gradients.has(box.name))
    .map((box) => ({ ...box, width: Math.max(box.width, ...(below.get(box.name) ?? []).map((one) => one.width)) }));
  const wires = drawnWires(page).map(({ drawn }) => drawn);
  return wrapped(layered(forward, wires, pinHeight), clusters, wires);
}

/** Lay out the selection, or the whole page. Quietly: as if the page had come so, without a step to undo. */
export function tidy({ quietly = false } = {}): void {
  const tab = activeTab();
  if (!tab) return;
  const chosen = !quietly && tab.selection.size > 1 ? tab.selection : undefined;
  const nodes = boxes(chosen);
  if (nodes.length === 0) return;
  const left = Math.min(...nodes.map((box) => box.x));
  const top = Math.min(...nodes.map((box) => box.y));
  const found = arranged(shownPage(tab), nodes);
  const places = new Map<string, Point>([...found].map(([name, [x, y]]) => [name, [left + x, top + y]]));
  if (quietly) {
    moveQuietly(tab, places);
    return;
  }
  if (chosen) unsettle(chosen);
  editPage(word("action.tidy"), (now) => moveDrawn(now, places));
  glideAfter(30, () => glide((view, duration) => view.fitView({ padding: 0.12, maxZoom: 1.1, duration })));
}
