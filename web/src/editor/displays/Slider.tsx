// SPDX-License-Identifier: Apache-2.0
/** A slider on the canvas or on a panel: it sets a number of a block, or what a placeholder is fed with. */

import { attrOf, entryOf, numberOf, titleOf, writtenBlock } from "../../core/displays";
import * as format from "../../core/format";
import { findBlock } from "../../core/document";
import type { Display } from "../../core/model";
import { setNumber } from "../../state/displays";
import { activeTab, shownPage, useStudio } from "../../state/store";
import { useWords } from "../../state/words";

export function Slider({ display }: { display: Display }) {
  const words = useWords();
  const [low, high, step] = ["low", "high", "step"].map((name) => Number(attrOf(display, name))) as [number, number, number];
  const can = useStudio((state) => {
    const tab = activeTab(state);
    if (!tab) return "display.unbound";
    const block = findBlock(shownPage(tab), writtenBlock(display));
    const value = entryOf(shownPage(tab), display, tab.feeds);
    if (!block || (value === undefined && block.op !== "Placeholder")) return "display.unbound";
    return value === undefined ? Number.NaN : (numberOf(value) ?? "display.severalNumbers");
  });
  const number = typeof can === "number" ? can : null;
  const unit = String(attrOf(display, "unit"));
  const said = number === null ? words(can as "display.unbound" | "display.severalNumbers") : Number.isNaN(number) ? "\u2014" : `${format.number(number)} ${unit}`.trim();
  return (
    <label className="slide-box">
      <span>{titleOf(display)}</span>
      <input
        type="range"
        className="nodrag"
        min={low}
        max={high}
        step={step > 0 ? step : (high - low) / 100 || "any"}
        value={number === null || Number.isNaN(number) ? low : number}
        disabled={number === null || !(high > low)}
        aria-valuetext={said}
        onChange={(event) => setNumber(display, Number(event.target.value))}
        onKeyDown={(event) => event.stopPropagation()}
      />
      <span className="ends">
        <span>{format.number(low)}</span>
        <output>{said}</output>
        <span>{format.number(high)}</span>
      </span>
    </label>
  );
}
