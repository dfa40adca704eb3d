// SPDX-License-Identifier: Apache-2.0
/** Where a value came from: its windows drawn cell by cell, with padding, winner and ties. */

import { numberOf, type TraceWindow } from "../core/api";
import { colourOf, css, inkOn } from "../core/colour";
import { findBlock, inputPins, splitPath } from "../core/document";
import * as format from "../core/format";
import { flatIndex, indexText, rangeOf } from "../core/tensor";
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

function WindowView({ window }: { window: TraceWindow }) {
  const words = useWords();
  const tab = activeTab();
  const known = tab && knownValues(tab, window.source);
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
function WindowGrids({ window, known, axes }: { window: TraceWindow; known: ReturnType<typeof knownValues>; axes: readonly number[] }) {
  const words = useWords();
  const range = known ? rangeOf(known.values) : { min: 0, max: 0 };
  const from = axes.map((axis) => window.lo[axis]! - (window.padding.before[axis] ?? 0));
  const sizes = axes.map((axis, i) => Math.min(MOST, window.hi[axis]! + (window.padding.after[axis] ?? 0) - from[i]!));
  const [depth, height, width] = sizes as [number, number, number];
  const indexAt = (d: number, at: number) => {
    const index = [...(window.winner ?? window.lo)];
    [d, Math.floor(at / width), at % width].forEach((place, i) => (index[axes[i]!] = from[i]! + place));
    return index;
  };
  const cell = (index: readonly number[], key: number) => {
    const inside = axes.every((axis) => index[axis]! >= window.lo[axis]! && index[axis]! < window.hi[axis]!);
    if (!inside) return <span key={key} className="cell padding" title={words("trace.padding")} />;
    const value = known ? known.values[flatIndex(known.shape, index)] : undefined;
    const colour = value === undefined ? null : colourOf(value, range);
    const is = (other: readonly number[] | null | undefined) => other?.every((one, axis) => one === index[axis]) ?? false;
    const marks = `${is(window.winner) ? "winner" : ""} ${window.ties.length > 1 && window.ties.some(is) ? "tie" : ""}`;
    return (
      <span key={key} className={`cell ${marks}`} title={indexText(index)} style={colour ? { background: css(colour), color: inkOn(colour) } : {}}>
        {value === undefined ? "" : format.short(value)}
      </span>
    );
  };
  return (
    <div className="window-grids">
      {Array.from({ length: depth }, (_, d) => (
        <div key={d} className="grid-with-label">
          <span className="grid-label">d={from[0]! + d}</span>
          <div className="grid" style={{ gridTemplateColumns: `repeat(${width}, minmax(22px, auto))` }}>
            {Array.from({ length: height * width }, (_cell, at) => cell(indexAt(d, at), at))}
          </div>
        </div>
      ))}
    </div>
  );
}
