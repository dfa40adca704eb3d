// SPDX-License-Identifier: Apache-2.0
/** A group of blocks: a frame behind them, or one block with their pins where it is collapsed. */

import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import { memo, useState } from "react";
import { COLOURS } from "../core/groups";
import type { Group } from "../generated/page";
import { changeGroup, select, ungroup } from "../state/edits";
import { activeTab, useStudio } from "../state/store";
import { useWords } from "../state/words";
import { problemsOf } from "./useBlock";

export type GroupNodeType = Node<{ group: Group; inputs: readonly string[]; outputs: readonly string[] }, "grouping">;

export const GroupNode = memo(function GroupNode({ data: { group, inputs, outputs }, width, height }: NodeProps<GroupNodeType>) {
  const words = useWords();
  const { title, blocks, collapsed, colour = "grey" } = group;
  const wrong = useStudio((state) => blocks.reduce((sum, name) => sum + problemsOf(activeTab(state), name).length, 0));
  const pins = (names: readonly string[], side: "input" | "output") =>
    names.map((name) => (
      <div key={name} className={`pin ${side}`}>
        <Handle type={side === "input" ? "target" : "source"} position={side === "input" ? Position.Left : Position.Right} id={name} className="handle any" isConnectable={false} />
        <span className="pin-name" title={name}>
          {name.split("/").at(-1)}
        </span>
      </div>
    ));
  return (
    <section className={`group-box colour-${colour} ${collapsed ? "block" : "frame"} ${collapsed && wrong > 0 ? "wrong" : ""}`} style={collapsed ? undefined : { width, height }} aria-label={title}>
      <header className="block-title" onClick={() => select(blocks)}>
        <Title group={group} />
        <span className="op">{words("group.count", { count: blocks.length })}</span>
        <span className="grow" />
        {collapsed && wrong > 0 && <span className="badge bad">{words(wrong === 1 ? "block.problem" : "block.problems", { count: wrong })}</span>}
        <button type="button" className="quiet nodrag swatch" aria-label={words("group.colour", { name: title })} title={words("group.colour", { name: title })} onClick={() => void changeGroup(title, { colour: COLOURS[(COLOURS.indexOf(colour) + 1) % COLOURS.length]! })} />
        <button type="button" className="quiet nodrag" onClick={() => void changeGroup(title, { collapsed: !collapsed })}>
          {words(collapsed ? "group.expand" : "group.collapse")}
        </button>
        <button type="button" className="quiet nodrag" onClick={() => void ungroup(title)}>
          {words("group.ungroup")}
        </button>
      </header>
      {collapsed && inputs.length > 0 && <div className="pins">{pins(inputs, "input")}</div>}
      {collapsed && outputs.length > 0 && <div className="pins out">{pins(outputs, "output")}</div>}
    </section>
  );
});

function Title({ group }: { group: Group }) {
  const words = useWords();
  const [editing, setEditing] = useState(false);
  if (!editing) {
    return (
      <strong title={words("group.rename")} onDoubleClick={() => setEditing(true)}>
        {group.title}
      </strong>
    );
  }
  return (
    <input
      className="rename nodrag"
      aria-label={words("group.rename")}
      defaultValue={group.title}
      autoFocus
      onFocus={(event) => event.target.select()}
      onBlur={(event) => {
        setEditing(false);
        const name = event.target.value.trim();
        if (name !== "" && name !== group.title) void changeGroup(group.title, { name });
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Enter") event.currentTarget.blur();
        if (event.key === "Escape") setEditing(false);
      }}
    />
  );
}
