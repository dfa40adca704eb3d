// SPDX-License-Identifier: Apache-2.0
/** How far the run under way is, and what the last one did: blocks that were run with their time, blocks that were kept. */

import * as format from "../core/format";
import { progressOf } from "../core/progress";
import { isUnderWay } from "../state/runs";
import type { Tab } from "../state/store";
import { useWords } from "../state/words";
import { Elapsed } from "../ui/Elapsed";

export function RunProgress({ tab }: { tab: Tab }) {
  const words = useWords();
  const run = tab.run;
  if (!run) return null;
  const { total, ended, ran, kept, seconds } = progressOf(run.id, tab.results);
  if (isUnderWay(run)) {
    if (total === 0) return null;
    return (
      <span className="fact run-progress" data-run="running">
        <progress max={total} value={ended} aria-label={words("run.progress")} />
        {words("run.blocks", { done: ended, count: total })} <Elapsed key={run.id} />
      </span>
    );
  }
  if (run.state !== "done" || ran + kept === 0) return null;
  return (
    <span className="fact run-progress" title={words("run.summaryTitle")}>
      {words("run.summary", { ran, time: format.seconds(seconds), kept })}
    </span>
  );
}
