// SPDX-License-Identifier: Apache-2.0
/** Scalars over cycles, live, with those of earlier runs that are chosen. */

import { useEffect, useState } from "react";
import { api, numberOf, type Run } from "../core/api";
import type { Point } from "../core/chart";
import * as format from "../core/format";
import { runName, toggleChosen } from "../state/comparisons";
import { attempt } from "../state/pages";
import { isUnderWay } from "../state/runs";
import type { Tab } from "../state/store";
import { useWords } from "../state/words";
import { Chart, type Series } from "../ui/Chart";

const MOST_RUNS = 20;
const SHOWN_FIRST = 4;

type Curves = { readonly [series: string]: readonly Point[] };

export function Trends({ tab }: { tab: Tab }) {
  const words = useWords();
  const earlier = tab.runs.filter((run) => run.cycles > 1 && !isUnderWay(run) && run.id !== tab.run?.id).slice(0, MOST_RUNS);
  const chosen = earlier.filter((run) => tab.chosen.has(run.id));
  const kept = useCurves(chosen);
  const now = Object.fromEntries(Object.entries(tab.trends).map(([name, points]) => [name, points.map(({ cycle, value }) => ({ x: cycle, y: value }))]));
  const runs: readonly (readonly [string, Curves])[] = [[words("trends.now"), now], ...chosen.map((run): [string, Curves] => [runName(run), kept[run.id] ?? {}])];
  const names = [...new Set(runs.flatMap(([, curves]) => Object.keys(curves).filter((name) => curves[name]!.length > 1)))].toSorted();
  const [marked, setMarked] = useState<{ readonly [name: string]: boolean }>({});
  const [together, setTogether] = useState(false);
  const [log, setLog] = useState(false);
  const shown = names.filter((name, index) => marked[name] ?? index < SHOWN_FIRST);
  if (names.length === 0 && earlier.length === 0) return <p className="none">{words("trends.none")}</p>;
  const seriesOf = (name: string, alone: boolean): Series[] =>
    runs.flatMap(([run, curves]) => ((curves[name]?.length ?? 0) > 1 ? [{ name: alone ? run : `${name}, ${run}`, points: curves[name]! }] : []));
  return (
    <div className="trends">
      <div className="trend-choices">
        <Choices title={words("trends.scalars")} entries={names.map((name) => [name, name])} isOn={(name) => shown.includes(name)} toggle={(name) => setMarked({ ...marked, [name]: !shown.includes(name) })} />
        <Choices title={words("trends.runs")} entries={earlier.map((run) => [run.id, `${runName(run)}, ${format.count(run.cycles)} ${words("run.cycles")}`])} isOn={(run) => tab.chosen.has(run)} toggle={(run) => toggleChosen(tab.id, run)} />
        <label className="inline">
          <input type="checkbox" checked={together} onChange={(event) => setTogether(event.target.checked)} />
          <span>{words("trends.together")}</span>
        </label>
        <label className="inline">
          <input type="checkbox" checked={log} onChange={(event) => setLog(event.target.checked)} />
          <span>{words("chart.logY")}</span>
        </label>
      </div>
      <div className="trend-charts">
        {together && shown.length > 1 ? (
          <Chart label={shown.join(", ")} series={shown.flatMap((name) => seriesOf(name, false))} x={words("run.cycles")} y="" logY={log} />
        ) : (
          shown.map((name) => <Chart key={name} label={name} series={seriesOf(name, true)} x={words("run.cycles")} y={name} logY={log} size={[420, 200]} />)
        )}
      </div>
    </div>
  );
}

interface ChoicesProps {
  readonly title: string;
  readonly entries: readonly (readonly [string, string])[];
  readonly isOn: (id: string) => boolean;
  readonly toggle: (id: string) => void;
}

function Choices({ title, entries, isOn, toggle }: ChoicesProps) {
  if (entries.length === 0) return null;
  return (
    <fieldset>
      <legend>{title}</legend>
      {entries.map(([id, name]) => (
        <label key={id} className="inline">
          <input type="checkbox" checked={isOn(id)} onChange={() => toggle(id)} />
          <span>{name}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** The curves of earlier runs, asked for once. */
function useCurves(runs: readonly Run[]): { readonly [run: string]: Curves } {
  const [found, setFound] = useState<{ readonly [run: string]: Curves }>({});
  const missing = runs.map((run) => run.id).filter((id) => found[id] === undefined).join();
  useEffect(() => {
    for (const id of missing.split(",").filter(Boolean)) {
      void attempt(() => api.runCurves(id)).then((told) => {
        const curves = Object.fromEntries((told?.curves ?? []).map(({ path, cycles, values }) => [path.replace(/\.output$/, ""), cycles.map((x, at) => ({ x, y: numberOf(values[at]) }))]));
        setFound((before) => ({ ...before, [id]: curves }));
      });
    }
  }, [missing]);
  return found;
}
