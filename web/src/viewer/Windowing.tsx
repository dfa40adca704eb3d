// SPDX-License-Identifier: Apache-2.0
/** Which values the colours tell apart: a window of values and its middle, as scans are looked at. */

import type { Summary } from "../core/api";
import type { Range } from "../core/tensor";
import { useWords } from "../state/words";

interface Props {
  readonly range: Range;
  readonly whole: Range;
  readonly histogram: Summary["histogram"];
  readonly onChange: (range: Range | null) => void;
}

/** Window and level in Hounsfield units, as radiologists set them. */
const PRESETS = [
  ["brain", 80, 40],
  ["soft", 400, 40],
  ["bone", 2000, 500],
  ["lung", 1500, -600],
] as const;

/** The range that leaves out a hundredth of the values at each end, as far as a histogram tells. */
export function middleRange({ edges, counts }: NonNullable<Summary["histogram"]>): Range {
  const cut = counts.reduce((sum, one) => sum + one, 0) / 100;
  let [low, high] = [0, counts.length - 1];
  for (let sum = counts[low]!; low < high && sum <= cut; sum += counts[low]!) low += 1;
  for (let sum = counts[high]!; high > low && sum <= cut; sum += counts[high]!) high -= 1;
  return { min: edges[low]!, max: edges[high + 1]! };
}

export function Windowing({ range, whole, histogram, onChange }: Props) {
  const words = useWords();
  const [width, level] = [range.max - range.min, (range.max + range.min) / 2];
  const set = (wide: number, middle: number) => Number.isFinite(wide + middle) && wide > 0 && onChange({ min: middle - wide / 2, max: middle + wide / 2 });
  const round = (value: number) => Number(value.toPrecision(5));
  const onPreset = (name: string) => {
    const preset = PRESETS.find(([one]) => one === name);
    if (name === "all") onChange(null);
    else if (name === "middle" && histogram) onChange(middleRange(histogram));
    else if (preset) set(preset[1], preset[2]);
  };
  const isWhole = range.min === whole.min && range.max === whole.max;
  return (
    <span className="levels">
      <label className="inline">
        <span>{words("planes.window")}</span>
        <input type="number" className="level" step="any" min={0} value={round(width)} onChange={(event) => set(event.target.valueAsNumber, level)} />
      </label>
      <label className="inline">
        <span>{words("planes.level")}</span>
        <input type="number" className="level" step="any" value={round(level)} onChange={(event) => set(width, event.target.valueAsNumber)} />
      </label>
      <select aria-label={words("planes.presets")} value={isWhole ? "all" : ""} onChange={(event) => onPreset(event.target.value)}>
        {!isWhole && <option value="">{words("planes.ownWindow")}</option>}
        <option value="all">{words("viewer.allValues")}</option>
        {histogram && <option value="middle">{words("planes.middle")}</option>}
        {PRESETS.map(([name, wide, middle]) => (
          <option key={name} value={name}>
            {words(`planes.preset.${name}`)} ({wide} / {middle} HU)
          </option>
        ))}
      </select>
    </span>
  );
}
