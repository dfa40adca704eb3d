// SPDX-License-Identifier: Apache-2.0
/** What a placeholder is fed with in the runs of this tab: typed, from a file, or by a slider. The page does not keep it. */

import { useState } from "react";
import { numberFrom } from "../core/cells";
import { numberOf, withNumber } from "../core/displays";
import type { Block } from "../core/model";
import { addDisplay } from "../state/displays";
import { feed, feedText, ruleOfFeed, startingFeed, typed } from "../state/feeds";
import type { Tab } from "../state/store";
import { useWords } from "../state/words";
import { Entry, TensorField } from "./TensorField";

export function FeedField({ tab, block }: { tab: Tab; block: Block }) {
  const words = useWords();
  const dtype = String(block.attrs?.["dtype"] ?? "float32");
  const label = `${block.name} ${words("inspector.feed")}`;
  const value = tab.feeds[block.name];
  const numeric = !/string|complex|bool/.test(dtype);
  return (
    <section>
      <h3>{words("inspector.feed")}</h3>
      <TensorField
        label={label}
        value={value}
        dtype={dtype}
        axes=""
        rule={ruleOfFeed(value)}
        set={(next) => feed(tab.id, block.name, typed(next, dtype))}
        send={(text) => feedText(tab.id, block.name, dtype, text)}
      />
      {numeric && <FeedSlider label={label} number={value === undefined ? 0 : numberOf(value)} set={(number) => feed(tab.id, block.name, withNumber(value ?? startingFeed(block), number))} />}
      {numeric && (
        <button type="button" onClick={() => void addDisplay("slider")}>
          {words("feed.sliderOnPage")}
        </button>
      )}
      <p className="hint">{words("inspector.feedNote")}</p>
    </section>
  );
}

function FeedSlider({ label, number, set }: { label: string; number: number | null; set: (number: number) => void }) {
  const words = useWords();
  const [low, setLow] = useState(() => Math.min(0, Math.floor(number ?? 0)));
  const [high, setHigh] = useState(() => Math.max(1, Math.ceil(number ?? 1)));
  const end = (name: "feed.low" | "feed.high", value: number, change: (value: number) => void) => (
    <Entry
      key={`${name}${value}`}
      label={`${label} ${words(name)}`}
      title={words(name)}
      text={String(value)}
      take={(text) => {
        const given = numberFrom(text);
        if (given === null || !Number.isFinite(given)) return false;
        change(given);
        return true;
      }}
    />
  );
  return (
    <div className="feed-slider">
      {end("feed.low", low, setLow)}
      <input
        type="range"
        aria-label={`${label} ${words("display.slider")}`}
        min={low}
        max={high}
        step={(high - low) / 100 || "any"}
        value={number ?? low}
        disabled={number === null || !(high > low)}
        onChange={(event) => set(Number(event.target.value))}
      />
      {end("feed.high", high, setHigh)}
    </div>
  );
}
