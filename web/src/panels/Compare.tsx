// SPDX-License-Identifier: Apache-2.0
/** Runs side by side: how far every output is from that of the first, and how long its block took. */

import { Fragment, useState } from "react";
import type { EngineName, Run, RunRow, RunSide, Times } from "../core/api";
import * as format from "../core/format";
import { COLD_RUNS, compareEngines, openDifference, runName, stopMeasuring } from "../state/comparisons";
import { useStudio, type Tab } from "../state/store";
import { useWords } from "../state/words";

export function Compare({ tab }: { tab: Tab }) {
  const comparison = tab.comparison;
  return (
    <>
      <Engines tab={tab} />
      {comparison && comparison.rows.length > 0 && <SideBySide runs={comparison.runs} rows={comparison.rows} />}
    </>
  );
}

/** Which engines are measured, and how often. */
function Engines({ tab }: { tab: Tab }) {
  const words = useWords();
  const engines = useStudio((state) => state.engines).filter((engine) => engine.available);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [repeats, setRepeats] = useState(COLD_RUNS);
  const chosen = engines.map((engine) => engine.name).filter((name) => !left.has(name));
  const toggle = (name: string) => setLeft(left.has(name) ? new Set([...left].filter((one) => one !== name)) : new Set([...left, name]));
  const busy = tab.comparison?.busy ?? false;
  return (
    <div className="row-head">
      {engines.map((engine) => (
        <label key={engine.name} className="inline" title={engine.version}>
          <input type="checkbox" checked={!left.has(engine.name)} onChange={() => toggle(engine.name)} />
          <span>{engine.name}</span>
        </label>
      ))}
      <label className="inline">
        <span>{words("compare.repeats")}</span>
        <input type="number" className="short" min={1} max={100} value={repeats} onChange={(event) => setRepeats(Math.min(100, Math.max(1, Math.trunc(Number(event.target.value)) || 1)))} />
      </label>
      <button type="button" className="primary" disabled={busy || chosen.length === 0} onClick={() => void compareEngines(chosen as EngineName[], repeats)}>
        {words("compare.run")}
      </button>
      {busy && (
        <button type="button" className="danger" onClick={() => void stopMeasuring(tab)}>
          {words("run.stop")}
        </button>
      )}
      <span className="hint">{busy ? words("compare.measuring", { number: tab.comparison?.repeat ?? 0, count: repeats }) : words("compare.none")}</span>
    </div>
  );
}

function SideBySide({ runs, rows }: { runs: readonly Run[]; rows: readonly RunRow[] }) {
  const words = useWords();
  return (
    <table className="table compared">
      <thead>
        <tr>
          <th rowSpan={2}>{words("compare.block")}</th>
          <th rowSpan={2}>{words("compare.output")}</th>
          {runs.map((run, at) => (
            <th key={run.id} colSpan={at === 0 ? 1 : 3} scope="colgroup">
              {runName(run)} <span className="hint">{run.times ? words("compare.cold", { count: run.times.count }) : words("compare.once")}</span>
            </th>
          ))}
        </tr>
        <tr>
          {runs.map((run, at) => (
            <Heads key={run.id} first={at === 0} />
          ))}
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row" colSpan={2}>
            {words("compare.whole")}
          </th>
          {runs.map((run, at) => (
            <Fragment key={run.id}>
              {at > 0 && <td colSpan={2} />}
              <td className="number">{run.times ? <Spread times={run.times} longest={longestOf(runs)} /> : run.seconds === null ? "—" : format.seconds(run.seconds)}</td>
            </Fragment>
          ))}
        </tr>
        {rows.map((row) => (
          <tr key={`${row.block}.${row.output}`}>
            <td>{row.block}</td>
            <td>{row.output}</td>
            {row.sides.map((side, at) => (
              <Cells key={at} runs={runs} row={row} side={side} at={at} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Heads({ first }: { first: boolean }) {
  const words = useWords();
  return (
    <>
      {!first && <th className="number">{words("compare.maxAbs")}</th>}
      {!first && <th className="number">{words("compare.ulp")}</th>}
      <th className="number">{words("compare.time")}</th>
    </>
  );
}

function Cells({ runs, row, side, at }: { runs: readonly Run[]; row: RunRow; side: RunSide | null; at: number }) {
  const words = useWords();
  const first = row.sides[0];
  const equal = side?.same === true;
  const said = side === null ? words("compare.absent") : equal ? words("compare.equal") : side.same === false ? format.number(side.max_abs ?? Infinity, 3) : "";
  return (
    <>
      {at > 0 && (
        <td className="number">
          {first?.hash && side?.hash ? (
            <button type="button" className="link" title={words("compare.open")} onClick={() => openDifference(runs, row, first, at)}>
              {equal ? <span className="badge ok">{said}</span> : said || words("compare.look")}
            </button>
          ) : (
            said
          )}
          {side?.note && <span className="hint"> {side.note}</span>}
        </td>
      )}
      {at > 0 && <td className="number">{side?.max_ulp ?? "—"}</td>}
      <td className="number">
        <Time side={side} longest={longestOf(row.sides)} />
      </td>
    </>
  );
}

/** How long a block took; a result that was kept took nothing. */
function Time({ side, longest }: { side: RunSide | null; longest: number }) {
  const words = useWords();
  if (side?.times) return <Spread times={side.times} longest={longest} />;
  if (side?.state === "cached") return <span className="badge">{words("block.cached")}</span>;
  if (side?.state === "failed") return <span className="badge bad">{words("run.state.failed")}</span>;
  return side?.seconds === null || side === null ? "—" : format.seconds(side.seconds);
}

function longestOf(timed: readonly ({ readonly times: Times | null } | null)[]): number {
  return Math.max(...timed.map((one) => one?.times?.high ?? 0));
}

const WIDE = 84;

/** The median as a bar, with a line from the shortest to the longest; bars of one row have one scale. */
function Spread({ times, longest }: { times: Times; longest: number }) {
  const words = useWords();
  const at = (seconds: number) => (longest > 0 ? (seconds / longest) * (WIDE - 2) : 0);
  const said = words("compare.spread", { median: format.seconds(times.median), low: format.seconds(times.low), high: format.seconds(times.high) });
  return (
    <span className="spread" title={said}>
      <svg viewBox={`0 0 ${WIDE} 14`} width={WIDE} height="14" role="img" aria-label={said}>
        <rect y="3" width={Math.max(1, at(times.median))} height="8" />
        <path d={`M${at(times.low)} 7H${at(times.high)}M${at(times.low)} 3v8M${at(times.high)} 3v8`} />
      </svg>
      {format.seconds(times.median)}
    </span>
  );
}
