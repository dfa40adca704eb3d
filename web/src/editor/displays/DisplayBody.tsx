// SPDX-License-Identifier: Apache-2.0
/** A display as it is seen and operated, on the canvas and on a panel. */

import { useEffect, useState } from "react";
import { attrOf } from "../../core/displays";
import { findBlock, splitPath } from "../../core/document";
import type { Display, Page } from "../../core/model";
import { textOf } from "../../core/values";
import { operate, useDrawnDisplay, writeEntry } from "../../state/displays";
import { activeTab, shownPage, useStudio } from "../../state/store";
import { useWords } from "../../state/words";
import { Marks } from "./Marks";

/** What a display is called: its title, its label, or the block that it shows. */
export function titleOf(display: Display): string {
  const title = attrOf(display, "title");
  const first = display.of?.[0];
  return (typeof title === "string" && title.trim()) || first?.label || (first ? splitPath(first.from).block : display.name);
}

export function DisplayBody({ display }: { display: Display }) {
  if (display.kind === "button") return <Button display={display} />;
  if (display.kind === "edit") return <Edit display={display} />;
  return <Picture display={display} />;
}

function Picture({ display }: { display: Display }) {
  const words = useWords();
  const drawn = useDrawnDisplay(display.name);
  const says = drawn?.says ?? "";
  const label = [words(`display.${display.kind}`), titleOf(display), says].filter(Boolean).join(", ");
  return (
    <div className="display-picture" role="img" aria-label={label} title={display.kind === "text" || display.kind === "frame" ? undefined : says}>
      {drawn && <Marks marks={drawn.marks} width={display.size[0]} height={display.size[1]} />}
    </div>
  );
}

function Button({ display }: { display: Display }) {
  return (
    <button type="button" className="operate nodrag primary" onClick={() => operate(display)}>
      {String(attrOf(display, "title"))}
    </button>
  );
}

/** The text of the entry that an edit box writes. */
function entryOf(page: Page | null, display: Display): string {
  const bound = display.of?.[0];
  const block = page && bound ? findBlock(page, splitPath(bound.from).block) : undefined;
  const entry = String(attrOf(display, "entry"));
  const source = block?.inputs?.[entry]?.[0];
  return textOf(block?.attrs?.[entry] ?? (source && "value" in source ? source.value : undefined));
}

function Edit({ display }: { display: Display }) {
  const words = useWords();
  const known = useStudio((state) => {
    const tab = activeTab(state);
    return entryOf(tab && shownPage(tab), display);
  });
  const [text, setText] = useState(known);
  useEffect(() => setText(known), [known]);
  const bound = (display.of?.length ?? 0) > 0;
  const send = () => {
    if (text !== known) void writeEntry(display, text)?.then((done) => done === null && setText(known));
  };
  return (
    <label className="edit-box">
      <span>{titleOf(display)}</span>
      <input
        className="nodrag"
        value={text}
        disabled={!bound}
        placeholder={bound ? "" : words("display.unbound")}
        onChange={(event) => setText(event.target.value)}
        onBlur={send}
        onKeyDown={(event) => {
          if (event.key === "Enter") send();
          if (event.key === "Escape") setText(known);
          event.stopPropagation();
        }}
      />
    </label>
  );
}
