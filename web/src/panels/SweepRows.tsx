// SPDX-License-Identifier: Apache-2.0
/** The rows of a sweep: a table that sorts, and a number of them over what varies. */

import { useState } from "react";
import type { Sweep, SweepRow } from "../core/api";
import * as format from "../core/format";
import { columnsOf, curvesOf, sorted, titleOf, type Column } from "../core/sweeps";
import { takeValues } from "../state/sweeps";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { Chart } from "../ui/Chart";

const MOST_ROWS = 500;

export function SweepTable({ sweep }: { sweep: Sweep }) {
  const words = useWords();
  const [by, setBy] = useState<{ readonly key: string; readonly down: boolean } | null>(null);
  const names = Object.keys(sweep.plan.values);
  const columns = columnsOf(sweep.plan, sweep.rows);
  const chosen = by === null ? null : names.includes(by.key) ? by.key : (columns.find((column) => titleOf(column) === by.key) ?? null);
  const rows = sorted(sweep.rows, chosen, by?.down ?? false);
  const head = (key: string, className = "") => (
    <th key={key} className={className} aria-sort={by?.key === key ? (by.down ? "descending" : "ascending") : "none"}>
      <button type="button" className="link" onClick={() => setBy({ key, down: by?.key === key && !by.down })}>
        {key}
        {by?.key === key && (by.down ? " ↓" : " ↑")}
      </button>
    </th>
  );
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={words("sweep.table")}>
      <table className="table swept">
        <thead>
          <tr>
            {names.map((name) => head(name))}
            {columns.map((column) => head(titleOf(column), "number"))}
            <th>
              <span className="sr">{words("sweep.use")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MOST_ROWS).map((row) => (
            <Row key={row.index} row={row} names={names} columns={columns} />
          ))}
        </tbody>
      </table>
      {rows.length > MOST_ROWS && <p className="none">{words("sweep.more", { count: MOST_ROWS, all: format.count(rows.length) })}</p>}
    </div>
  );
}

function Row({ row, names, columns }: { row: SweepRow; names: readonly string[]; columns: readonly Column[] }) {
  const words = useWords();
  const tell = useTold();
  const fault = row.faults.map((one) => `${one.code} ${one.op}: ${one.argument} must ${one.wanted}; got ${one.got}.`).map(tell).join("\n");
  return (
    <tr>
      {names.map((name) => (
        <td key={name}>
          <code>{row.values[name]}</code>
        </td>
      ))}
      {fault ? (
        <td className="message" colSpan={columns.length} title={fault}>
          {fault}
        </td>
      ) : (
        columns.map((column) => (
          <td key={titleOf(column)} className="number">
            <Cell row={row} column={column} />
          </td>
        ))
      )}
      <td>
        <button type="button" aria-label={words("sweep.use")} title={words("sweep.use")} onClick={() => void takeValues(row)}>
          {words("sweep.take")}
        </button>
      </td>
    </tr>
  );
}

function Cell({ row, column }: { row: SweepRow; column: Column }) {
  const words = useWords();
  if (column.part === "seconds") {
    const times = row.times;
    if (!times) return "—";
    return (
      <span title={times.first === null ? "" : words("sweep.first", { time: format.seconds(times.first) })}>
        {format.seconds(times.median)}
        {times.count > 1 && <span className="hint"> {format.seconds(times.low)} … {format.seconds(times.high)}</span>}
      </span>
    );
  }
  const found = row.results[column.path];
  const value = found?.[column.part] ?? null;
  const bad = found && found.not_finite > 0 && column.part !== "low" && column.part !== "high";
  return (
    <>
      {value === null ? (found && found.not_finite === 0 ? found.dtype : "—") : format.number(value)}
      {bad && <span className="badge warn">{words("sweep.notFinite", { count: found.not_finite })}</span>}
    </>
  );
}

export function SweepCurves({ sweep }: { sweep: Sweep }) {
  const words = useWords();
  const names = Object.keys(sweep.plan.values);
  const columns = columnsOf(sweep.plan, sweep.rows);
  const [x, setX] = useState(names[0] ?? "");
  const [y, setY] = useState(titleOf(columns[0]!));
  const [logX, setLogX] = useState(false);
  const [logY, setLogY] = useState(false);
  const across = names.includes(x) ? x : (names[0] ?? "");
  const column = columns.find((one) => titleOf(one) === y) ?? columns[0]!;
  const { names: labels, series } = curvesOf(sweep.plan, sweep.rows, across, column);
  return (
    <div className="scroll padded" tabIndex={0} role="region" aria-label={words("sweep.curves")}>
      <div className="chart-choices">
        <label className="inline">
          <span>{words("sweep.up")}</span>
          <select aria-label={words("sweep.up")} value={titleOf(column)} onChange={(event) => setY(event.target.value)}>
            {columns.map((one) => (
              <option key={titleOf(one)}>{titleOf(one)}</option>
            ))}
          </select>
        </label>
        <label className="inline">
          <span>{words("sweep.across")}</span>
          <select aria-label={words("sweep.across")} value={across} onChange={(event) => setX(event.target.value)}>
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label className="inline">
          <input type="checkbox" checked={logY} onChange={(event) => setLogY(event.target.checked)} />
          <span>{words("chart.logY")}</span>
        </label>
        <label className="inline">
          <input type="checkbox" checked={logX} disabled={labels !== null} onChange={(event) => setLogX(event.target.checked)} />
          <span>{words("chart.logX")}</span>
        </label>
      </div>
      <Chart
        label={`${titleOf(column)} / ${across}`}
        series={series}
        x={across}
        y={titleOf(column)}
        logX={logX}
        logY={logY}
        {...(labels ? { names: labels } : {})}
        {...(column.part === "seconds" ? { ticks: format.seconds } : {})}
      />
    </div>
  );
}
