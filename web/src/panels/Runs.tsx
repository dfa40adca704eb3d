// SPDX-License-Identifier: Apache-2.0
/** The runs of a page: how far each is, shown again, chosen to be compared. */

import { useState } from "react";
import type { Run } from "../core/api";
import * as format from "../core/format";
import { compareRuns, runName, toggleChosen } from "../state/comparisons";
import { attempt } from "../state/pages";
import { cancelRun, isBusy, isUnderWay, showRun } from "../state/runs";
import type { Tab } from "../state/store";
import { useTold } from "../state/told";
import { useWords } from "../state/words";

const MOST_COMPARED = 8;

export function Runs({ tab }: { tab: Tab }) {
  const words = useWords();
  if (tab.runs.length === 0) return <p className="none">{words("runs.none")}</p>;
  // The list has the newest first; what came later is compared with what was before.
  const chosen = tab.runs.filter((run) => tab.chosen.has(run.id)).toReversed();
  const fits = chosen.length >= 2 && chosen.length <= MOST_COMPARED;
  return (
    <>
      <div className="row-head">
        <button type="button" className="primary" disabled={!fits} onClick={() => void compareRuns(tab.id, chosen.map((run) => run.id))}>
          {words("runs.compareChosen", { count: chosen.length })}
        </button>
        <span className="hint">{words("runs.choose", { count: MOST_COMPARED })}</span>
      </div>
      <table className="table runs">
        <tbody>
          {tab.runs.map((run) => (
            <Row key={run.id} tab={tab} run={run} />
          ))}
        </tbody>
      </table>
    </>
  );
}

function Row({ tab, run }: { tab: Tab; run: Run }) {
  const words = useWords();
  const tell = useTold();
  const [showing, setShowing] = useState(false);
  const show = async () => {
    setShowing(true);
    await attempt(() => showRun(tab.id, run.id));
    setShowing(false);
  };
  return (
    <tr className={tab.run?.id === run.id ? "current" : ""}>
      <td>
        <input type="checkbox" aria-label={words("runs.chooseOne", { name: runName(run) })} checked={tab.chosen.has(run.id)} disabled={isUnderWay(run)} onChange={() => toggleChosen(tab.id, run.id)} />
      </td>
      <td>
        <span className={`dot ${run.state === "done" ? "ok" : run.state === "failed" ? "bad" : ""}`} /> {words(`run.state.${run.state}`)}
      </td>
      <td>{new Date(run.started * 1000).toLocaleTimeString()}</td>
      <td>{run.engine}</td>
      <td>{run.cycles > 1 ? `${format.count(run.cycles)} ${words("run.cycles")}` : words("runs.page")}</td>
      <td className="number">{run.seconds === null ? "" : format.seconds(run.seconds)}</td>
      <td className="message">{run.error ? tell(run.error.message) : ""}</td>
      <td>
        {isUnderWay(run) ? (
          <button type="button" onClick={() => void cancelRun(tab.id, run.id)}>
            {words(run.state === "queued" ? "runs.takeBack" : "run.stop")}
          </button>
        ) : (
          <button type="button" disabled={isBusy(tab) || showing} onClick={() => void show()}>
            {words("runs.show")}
          </button>
        )}
      </td>
    </tr>
  );
}
