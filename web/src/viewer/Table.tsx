// SPDX-License-Identifier: Apache-2.0
/** All values with their indices. Only what is seen exists: ten million values scroll like ten. */

import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { colourOf, css } from "../core/colour";
import { flatIndex, indexAt, indexText, rangeOf, sizeOf, type Tensor } from "../core/tensor";
import { useWords } from "../state/words";

const ROW = 24;
/** Browsers cannot lay out taller things; a longer table scrolls by proportion. */
const TALLEST = 8_000_000;
const MOST_COLUMNS = 12;

export function Table({ tensor, names }: { tensor: Tensor; names: readonly string[] }) {
  const words = useWords();
  const inner = tensor.shape.at(-1) ?? 1;
  const columns = Math.max(1, inner <= MOST_COLUMNS ? inner : 1);
  const rows = Math.ceil(sizeOf(tensor.shape) / columns);
  const scroller = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(400);
  const [first, setFirst] = useState(0);
  const [range] = useState(() => rangeOf(tensor.data));
  const [fault, setFault] = useState(false);
  const whole = Math.min(rows * ROW, TALLEST);
  const visible = Math.ceil(height / ROW) + 1;
  const last = Math.max(0, rows - Math.floor(height / ROW));
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const toRow = (top: number) => Math.min(last, Math.round((top / Math.max(1, whole - height)) * last));
  const toTop = (row: number) => (last === 0 ? 0 : (row / last) * (whole - height));
  const go = (row: number) => {
    const next = Math.min(last, Math.max(0, row));
    setFirst(next);
    if (scroller.current) scroller.current.scrollTop = toTop(next);
  };
  useEffect(() => {
    const element = scroller.current;
    if (!element || whole < TALLEST) return undefined;
    // One notch of the wheel is a few rows, also where a pixel of the scroll bar is many.
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      setFirst((now) => {
        const next = Math.min(last, Math.max(0, now + Math.round(event.deltaY / ROW)));
        element.scrollTop = toTop(next);
        return next;
      });
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  });
  const onGoto = (text: string) => {
    const index = [...text.matchAll(/-?\d+/g)].map((match) => Number(match[0]));
    const fits = index.length === tensor.shape.length && index.every((one, axis) => one >= 0 && one < tensor.shape[axis]!);
    setFault(!fits);
    if (fits) go(Math.floor(flatIndex(tensor.shape, index) / columns));
  };
  return (
    <div className="value-table">
      <form
        className="row-head"
        onSubmit={(event) => {
          event.preventDefault();
          onGoto(String(new FormData(event.currentTarget).get("index")));
        }}
      >
        <label className="inline">
          <span>{words("viewer.goto")}</span>
          <input name="index" placeholder={tensor.shape.map(() => "[0]").join("")} aria-invalid={fault} />
        </label>
        {fault && <span className="fault">{words("viewer.gotoBad")}</span>}
        <span className="grow" />
        <span className="hint">{names.map((name) => `[${name.toLowerCase()}]`).join("")}</span>
      </form>
      <div className="scroll value-scroll" ref={scroller} tabIndex={0} role="region" aria-label={words("viewer.table")} onScroll={(event) => setFirst(toRow(event.currentTarget.scrollTop))}
        onKeyDown={(event) => {
          const page = Math.floor(height / ROW) - 1;
          const steps: { [key: string]: number } = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
          const step = steps[event.key];
          if (step === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          go(first + step);
        }}
      >
        <div style={{ height: whole, position: "relative" }}>
          <table style={{ top: whole < TALLEST ? first * ROW : toTop(first) }}>
            <tbody>
              {Array.from({ length: Math.min(visible, rows - first) }, (_, offset) => {
                const row = first + offset;
                const index = indexAt(tensor.shape, row * columns);
                return (
                  <tr key={row} style={{ height: ROW }}>
                    <th scope="row">{columns > 1 ? indexText(index.slice(0, -1)) : indexText(index)}</th>
                    {Array.from({ length: columns }, (_cell, column) => {
                      const value = tensor.data[row * columns + column];
                      if (value === undefined) return <td key={column} />;
                      return (
                        <td key={column}>
                          <i style={{ background: css(colourOf(value, range)) }} />
                          {String(value)}
                        </td>
                      );
                    })}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      </div>
    </div>
  );
}
