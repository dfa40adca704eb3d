// SPDX-License-Identifier: Apache-2.0
/** Where a value came from: its windows drawn cell by cell, with padding, winner and ties. */

import { useEffect, useState } from "react";
import { api, numberOf, type TraceWindow } from "../core/api";
import { colourOf, css, inkOn } from "../core/colour";
import { findBlock, inputPins, splitPath } from "../core/document";
import * as format from "../core/format";
import { flatIndex, indexText, rangeOf, type Tensor } from "../core/tensor";
import { valuesOfConstant } from "../editor/useBlock";
import { letTraceGo, setTraceDepth } from "../state/runs";
import { activeTab, prefixOf, shownPage, useStudio, type Tab } from "../state/store";
import { useWords } from "../state/words";

export function TracePanel() {
  const words = useWords();
  const trace = useStudio((state) => state.trace);
  const depth = useStudio((state) => state.settings.depth);
  const hasResults = useStudio((state) => Object.keys(activeTab(state)?.results ?? {}).length > 0);
  if (!hasResults && !trace) return null;
  return (
    <section className="trace">
      <h3>{words("inspector.trace")}</h3>
      {!trace && <p className="hint">{words("inspector.traceHint")}</p>}
      {trace && (
        <p>
          <strong>{trace.block}</strong> <code>{indexText(trace.index)}</code> = <strong>{format.number(trace.value)}</strong>{" "}
          {trace.pinned && (
            <button type="button" className="tiny" onClick={letTraceGo}>
              {words("trace.letGo")}
            </button>
          )}
        </p>
      )}
      {trace?.windows.map((window) => <WindowView key={`${window.block}.${window.pin}.${window.depth}`} window={window} />)}
      {trace && trace.reached.length > 0 && (
        <ul className="reached-list" aria-label={words("trace.reaches")}>
          {trace.reached.slice(0, MOST).map((one) => (
            <li key={`${one.block}.${one.pin}.${one.output}.${one.depth}`}>
              → {one.output} <code>{span(one)}</code>
            </li>
          ))}
        </ul>
      )}
      <label className="inline depth">
        <span>{words("trace.depth", { count: depth })}</span>
        <input type="range" min={1} max={6} value={depth} onChange={(event) => setTraceDepth(Number(event.target.value))} aria-label={words("inspector.trace")} />
      </label>
    </section>
  );
}

/** The values of an output, if the page or its last run has told all of them. */
function knownValues(tab: Tab, source: string): { shape: readonly number[]; values: readonly number[] } | null {
  const { block, output } = splitPath(source);
  const found = findBlock(shownPage(tab), block);
  const constant = found && valuesOfConstant(found);
  if (constant?.values) return { shape: constant.shape, values: constant.values };
  const result = tab.results[prefixOf(tab) + block]?.outputs.find((one) => one.name === output);
  if (!result || result.summary.values.length < result.summary.count) return null;
  return { shape: result.shape, values: result.summary.values.map(numberOf) };
}

const MOST = 12;
/** Cells of a window that are asked for. */
const MOST_ASKED = 4096;

function hashOf(tab: Tab, source: string): string | null {
  const { block, output } = splitPath(source);
  return tab.results[prefixOf(tab) + block]?.outputs.find((one) => one.name === output)?.hash ?? null;
}

type ValueOf = (index: readonly number[]) => number | undefined;

/** The values of a window of a tensor that is too large to be here. */
function usePart(hash: string | null, { lo, hi, steps, count }: TraceWindow): ValueOf | null {
  const [part, setPart] = useState<{ readonly key: string; readonly tensor: Tensor } | null>(null);
  const slice = lo.map((low, axis) => `${low}:${hi[axis]}:${steps[axis]}`).join();
  const key = hash !== null && count > 0 && count <= MOST_ASKED ? `${hash} ${slice}` : "";
  useEffect(() => {
    if (!key || hash === null) return undefined;
    let wanted = true;
    api.tensor(hash, slice).then((tensor) => wanted && setPart({ key, tensor }), () => undefined);
    return () => {
      wanted = false;
    };
  }, [key, hash, slice]);
  if (part?.key !== key) return null;
  return (index) => part.tensor.data[flatIndex(part.tensor.shape, index.map((at, axis) => (at - lo[axis]!) / steps[axis]!))];
}

function WindowView({ window }: { window: TraceWindow }) {
  const words = useWords();
  const tab = activeTab();
  const whole = tab && knownValues(tab, window.source);
  const part = usePart(tab && !whole ? hashOf(tab, window.source) : null, window);
  const known = whole ? (index: readonly number[]) => whole.values[flatIndex(whole.shape, index)] : part;
  const volume = window.lo.length === 5;
  return (
    <div className="window">
      <p>
        <code>
          {window.block}.{window.pin}
        </code>{" "}
        ← {window.source} <code>{span(window)}</code>
      </p>
      {volume && <WindowGrids window={window} known={known} axes={spatialAxes(tab, window)} />}
      {window.winner && <p className="winner-note">{words("trace.winner", { index: indexText(window.winner) })}</p>}
      {window.ties.length > 1 && <p className="tie-note">{words("trace.ties", { count: window.ties.length })}</p>}
    </div>
  );
}

function span(window: Pick<TraceWindow, "lo" | "hi">): string {
  return `[${window.lo.map((low, axis) => (window.hi[axis] === low + 1 ? low : `${low}:${window.hi[axis]}`)).join(",")}]`;
}

/** Where depth, height and width stand in the tensor behind a pin. */
function spatialAxes(tab: Tab | null, window: TraceWindow): readonly number[] {
  const page = tab && shownPage(tab);
  const block = page && findBlock(page, window.block);
  const pin = block && inputPins(page, block, useStudio.getState().catalogue).find((one) => one.name === window.pin);
  if (pin?.layout === "filter") return [0, 1, 2];
  return pin?.layout === "data" && block?.attrs?.["data_format"] === "NCDHW" ? [2, 3, 4] : [1, 2, 3];
}

/** The window over depth, height and width, padding included, at the first channel that it reads. */
function WindowGrids({ window, known, axes }: { window: TraceWindow; known: ValueOf | null; axes: readonly number[] }) {
  const words = useWords();
  const step = (axis: number) => window.steps[axis] || 1;
  const from = axes.map((axis) => window.lo[axis]! - (window.padding.before[axis] ?? 0) * step(axis));
  // A dilated window is drawn by its taps.
  const taps = (axis: number) => Math.ceil((window.hi[axis]! - window.lo[axis]!) / step(axis)) + (window.padding.before[axis] ?? 0) + (window.padding.after[axis] ?? 0);
  const sizes = axes.map((axis) => Math.min(MOST, taps(axis)));
  const [depth, height, width] = sizes as [number, number, number];
  const indexAt = (d: number, at: number) => {
    const index = [...(window.winner ?? window.lo)];
    [d, Math.floor(at / width), at % width].forEach((place, i) => (index[axes[i]!] = from[i]! + place * step(axes[i]!)));
    return index;
  };
  const isInside = (index: readonly number[]) => axes.every((axis) => index[axis]! >= window.lo[axis]! && index[axis]! < window.hi[axis]!);
  const shown = known ? Array.from({ length: depth * height * width }, (_, at) => indexAt(Math.floor(at / (height * width)), at % (height * width))).filter(isInside).map((index) => known(index) ?? NaN) : [];
  const range = rangeOf(shown);
  const cell = (index: readonly number[], key: number) => {
    const is = (other: readonly number[] | null | undefined) => other?.every((one, axis) => one === index[axis]) ?? false;
    if (!isInside(index)) return <span key={key} className="cell padding" title={words("trace.padding")} />;
    const value = known?.(index);
    const share = window.shares.find((one) => is(one.index))?.share;
    const colour = value === undefined ? null : colourOf(value, range);
    const marks = `${is(window.winner) ? "winner" : ""} ${window.ties.length > 1 && window.ties.some(is) ? "tie" : ""}`;
    return (
      <span key={key} className={`cell ${marks}`} title={indexText(index)} style={colour ? { background: css(colour), color: inkOn(colour) } : {}}>
        {value === undefined ? "" : format.short(value)}
        {share !== undefined && <small>×{format.short(share)}</small>}
      </span>
    );
  };
  return (
    <div className="window-grids">
      {Array.from({ length: depth }, (_, d) => (
        <div key={d} className="grid-with-label">
          <span className="grid-label">d={from[0]! + d * step(axes[0]!)}</span>
          <div className="grid" style={{ gridTemplateColumns: `repeat(${width}, minmax(22px, auto))` }}>
            {Array.from({ length: height * width }, (_cell, at) => cell(indexAt(d, at), at))}
          </div>
        </div>
      ))}
    </div>
  );
}
