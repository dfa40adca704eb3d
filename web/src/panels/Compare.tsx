// SPDX-License-Identifier: Apache-2.0
/** Runs side by side: how far every output is from that of the first, and how long its block took. */

import { useState } from "react";
import type { EngineName, Run, RunRow, RunSide } from "../core/api";
import * as format from "../core/format";
import { compareEngines, openDifference, runName } from "../state/comparisons";
import { useStudio, type Tab } from "../state/store";
import { useWords } from "../state/words";

export function Compare({ tab }: { tab: Tab }) {
  const words = useWords();
  const engines = useStudio((state) => state.engines).filter((engine) => engine.available);
  const [left, setLeft] = useState(engines[0]?.name ?? "cpu");
  const [right, setRight] = useState(engines[1]?.name ?? "cpu");
  const comparison = tab.comparison;
  return (
    <>
      <div className="row-head">
        {[[left, setLeft] as const, [right, setRight] as const].map(([value, set], index) => (
          <select key={index} value={value} onChange={(event) => set(event.target.value as EngineName)} aria-label={`${words("run.engine")} ${index + 1}`}>
            {engines.map((engine) => (
              <option key={engine.name}>{engine.name}</option>
            ))}
          </select>
        ))}
        <button type="button" className="primary" disabled={comparison?.busy} onClick={() => void compareEngines(left, right)}>
          {words("compare.run")}
        </button>
        <span className="hint">{words("compare.none")}</span>
      </div>
      {comparison && comparison.rows.length > 0 && <SideBySide runs={comparison.runs} rows={comparison.rows} />}
    </>
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
              {runName(run)}
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
        <Time side={side} />
      </td>
    </>
  );
}

/** How long a block took; a result that was kept took nothing. */
function Time({ side }: { side: RunSide | null }) {
  const words = useWords();
  if (side?.state === "cached") return <span className="badge">{words("block.cached")}</span>;
  if (side?.state === "failed") return <span className="badge bad">{words("run.state.failed")}</span>;
  return side?.seconds === null || side === null ? "—" : format.seconds(side.seconds);
}
