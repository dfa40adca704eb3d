// SPDX-License-Identifier: Apache-2.0
/** A display on the canvas: it is moved, resized and selected like a block. */

import { NodeResizer, type Node, type NodeProps } from "@xyflow/react";
import { memo } from "react";
import { displayId, titleOf } from "../../core/displays";
import type { Display, Page } from "../../core/model";
import { placeDisplay } from "../../state/displays";
import { DisplayBody } from "./DisplayBody";

export type DisplayNodeType = Node<{ display: Display }, "display">;

export const DisplayNode = memo(function DisplayNode({ data: { display }, selected }: NodeProps<DisplayNodeType>) {
  return (
    <>
      <NodeResizer
        isVisible={selected}
        minWidth={20}
        minHeight={16}
        onResizeEnd={(_event, { x, y, width, height }) => placeDisplay(display.name, { position: [x, y], size: [width, height] })}
      />
      <div className={`display display-${display.kind}`}>
        <DisplayBody display={display} />
      </div>
    </>
  );
});

/** Nodes for the displays of a page; those that did not change stay the same object. Frames lie behind the wires. */
export function displayNodes(page: Page, selection: ReadonlySet<string>, old: readonly Node[]): DisplayNodeType[] {
  const known = new Map(old.map((node) => [node.id, node as DisplayNodeType]));
  return (page.displays ?? []).map((display) => {
    const id = displayId(display.name);
    const before = known.get(id);
    const selected = selection.has(id);
    if (before?.data.display === display && before.selected === selected) return before;
    const [[x, y], [width, height]] = [display.position, display.size];
    return {
      ...before, id, type: "display", position: { x, y }, width, height, selected,
      data: before?.data.display === display ? before.data : { display },
      zIndex: display.kind === "frame" ? -1 : 0,
      ariaLabel: `${display.kind}, ${titleOf(display)}`,
    };
  });
}
