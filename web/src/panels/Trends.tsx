// SPDX-License-Identifier: Apache-2.0
/** Scalars over cycles, live. */

import { useEffect, useRef } from "react";
import * as format from "../core/format";
import type { Tab, TrendPoint } from "../state/store";
import { useStudio } from "../state/store";
import { useWords } from "../state/words";

export function Trends({ tab }: { tab: Tab }) {
  const words = useWords();
  const series = Object.entries(tab.trends).filter(([, points]) => points.length > 1);
  if (series.length === 0) return <p className="none">{words("trends.none")}</p>;
  return (
    <div className="trends">
      {series.map(([name, points]) => (
        <figure key={name}>
          <figcaption>
            <strong>{name}</strong> <span>{format.number(points.at(-1)!.value)}</span>
          </figcaption>
          <Chart name={name} points={points} />
        </figure>
      ))}
    </div>
  );
}

/** The values of one scalar as a line, from its least to its greatest. */
function Chart({ name, points }: { name: string; points: readonly TrendPoint[] }) {
  const ref = useRef<HTMLCanvasElement>(null);
  const theme = useStudio((state) => state.settings.theme);
  useEffect(() => {
    const canvas = ref.current;
    const context = canvas?.getContext("2d");
    if (!canvas || !context) return;
    const { width, height } = canvas;
    const finite = points.filter((point) => Number.isFinite(point.value));
    const values = finite.map((point) => point.value);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const first = finite[0]?.cycle ?? 0;
    const last = Math.max(first + 1, finite.at(-1)?.cycle ?? 1);
    const style = getComputedStyle(canvas);
    context.clearRect(0, 0, width, height);
    context.strokeStyle = style.getPropertyValue("--line");
    context.strokeRect(0.5, 0.5, width - 1, height - 1);
    context.fillStyle = style.getPropertyValue("--muted");
    context.font = "20px ui-monospace, monospace";
    context.fillText(format.number(high, 4), 8, 24);
    context.fillText(format.number(low, 4), 8, height - 10);
    context.strokeStyle = style.getPropertyValue("--float");
    context.lineWidth = 3;
    context.beginPath();
    finite.forEach((point, index) => {
      const x = ((point.cycle - first) / (last - first)) * (width - 20) + 10;
      const y = height - 14 - ((point.value - low) / (high - low || 1)) * (height - 48) - 8;
      if (index === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
    context.stroke();
  }, [points, theme]);
  return <canvas ref={ref} width={640} height={240} role="img" aria-label={name} />;
}
