// SPDX-License-Identifier: Apache-2.0
/** A display as it is seen and operated, on the canvas and on a panel. */

import { useEffect, useState } from "react";
import { attrOf, entryOf, titleOf } from "../../core/displays";
import type { Display } from "../../core/model";
import { textOf } from "../../core/values";
import { operate, useDrawnDisplay, writeEntry } from "../../state/displays";
import { activeTab, shownPage, useStudio } from "../../state/store";
import { useWords } from "../../state/words";
import { Marks } from "./Marks";
import { Slider } from "./Slider";

export function DisplayBody({ display }: { display: Display }) {
  if (display.kind === "button") return <Button display={display} />;
  if (display.kind === "edit") return <Edit display={display} />;
  if (display.kind === "slider") return <Slider display={display} />;
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

function Edit({ display }: { display: Display }) {
  const words = useWords();
  const known = useStudio((state) => {
    const tab = activeTab(state);
    return tab ? textOf(entryOf(shownPage(tab), display, tab.feeds)) : "";
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
