// SPDX-License-Identifier: Apache-2.0
/** Tidy: layered layout that knows the order of pins, in a worker that is loaded when it is first wanted. */

import type { ElkNode } from "elkjs/lib/elk-api";
import { moveBlocks, type Point } from "../core/commands";
import { findBlock, inputPins, outputPins, wireId, wiresOf } from "../core/document";
import { editPage } from "../state/edits";
import { boxes, moveQuietly } from "../state/layout";
import { activeTab, flow, shownPage, studio } from "../state/store";
import { word } from "../state/words";

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.direction": "RIGHT",
  "elk.spacing.nodeNode": "30",
  "elk.layered.spacing.nodeNodeBetweenLayers": "116",
  "elk.layered.spacing.edgeNodeBetweenLayers": "30",
  "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
  "elk.layered.crossingMinimization.semiInteractive": "true",
};

async function layout(graph: ElkNode): Promise<ElkNode> {
  const { default: Elk } = await import("elkjs/lib/elk-api.js");
  const elk = new Elk({
    workerFactory: () => new Worker(new URL("elkjs/lib/elk-worker.min.js", import.meta.url), { type: "module", name: "elk" }),
  });
  try {
    return await elk.layout(graph);
  } finally {
    elk.terminateWorker();
  }
}

/** Lay out the selection, or the whole page. Quietly: as if the page had come so, without a step to undo. */
export async function tidy({ quietly = false } = {}): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const page = shownPage(tab);
  const chosen = tab.selection.size > 1 ? tab.selection : undefined;
  const nodes = boxes(chosen);
  if (nodes.length === 0) return;
  const names = new Set(nodes.map((box) => box.name));
  const { catalogue } = studio();
  const graph: ElkNode = {
    id: "page",
    layoutOptions: OPTIONS,
    children: nodes.map((box) => {
      const block = findBlock(page, box.name)!;
      const west = inputPins(page, block, catalogue).map((pin, index, all) => port(`${box.name}<${pin.name}`, "WEST", all.length - index));
      const east = outputPins(page, block, catalogue).map((pin, index) => port(`${box.name}>${pin.name}`, "EAST", index));
      return {
        id: box.name,
        width: box.width,
        height: box.height,
        layoutOptions: { "elk.portConstraints": "FIXED_ORDER" },
        ports: [...east, ...west],
      };
    }),
    edges: wiresOf(page)
      .filter((wire) => names.has(wire.from) && names.has(wire.to))
      .map((wire) => ({ id: wireId(wire), sources: [`${wire.from}>${wire.output}`], targets: [`${wire.to}<${wire.pin}`] })),
  };
  const done = await layout(graph);
  const left = Math.min(...nodes.map((box) => box.x));
  const top = Math.min(...nodes.map((box) => box.y));
  const places = new Map<string, Point>(
    (done.children ?? []).map((node) => [node.id, [left + (node.x ?? 0), top + (node.y ?? 0)]]),
  );
  if (quietly) {
    moveQuietly(tab, places);
    return;
  }
  editPage(word("action.tidy"), (now) => moveBlocks(now, places));
  window.setTimeout(() => void flow.current?.fitView({ padding: 0.12, maxZoom: 1.1, duration: 200 }), 30);
}

function port(id: string, side: string, index: number) {
  return { id, width: 4, height: 4, layoutOptions: { "elk.port.side": side, "elk.port.index": String(index) } };
}
