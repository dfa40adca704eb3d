// SPDX-License-Identifier: Apache-2.0
/** The strip under the canvas: problems, runs, trends, checks, comparisons, volumes, log. */

import { lazy, Suspense } from "react";
import type { CheckRow } from "../core/api";
import type { Problem } from "../core/model";
import { applyFix } from "../state/edits";
import { goToBlock } from "../state/perform";
import { checkGradients } from "../state/runs";
import { prefixOf, setSettings, update, useStudio, type BottomTab, type Tab } from "../state/store";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { Icon } from "../ui/Icon";
import { Compare } from "./Compare";
import { Runs } from "./Runs";
import { Trends } from "./Trends";

// Loaded when it is first looked at: most pages fit into memory.
const Sweep = lazy(() => import("./Sweep").then((module) => ({ default: module.Sweep })));
const Volumes = lazy(() => import("./Volumes").then((module) => ({ default: module.Volumes })));

/** Those that need room for tables and charts. */
const TALL: ReadonlySet<BottomTab> = new Set(["trends", "compare", "sweep", "volumes"]);
const KINDS: readonly BottomTab[] = ["problems", "runs", "trends", "check", "compare", "sweep", "volumes", "log"];

export function Bottom({ tab }: { tab: Tab }) {
  const words = useWords();
  const kind = useStudio((state) => state.bottomTab);
  const problems = tab.analysis?.problems.length ?? 0;
  const warnings = tab.analysis?.warnings.length ?? 0;
  return (
    <section className={`panel bottom ${TALL.has(kind) ? "tall" : ""}`} aria-label={words("action.toggleBottom")}>
      <div className="panel-tabs">
        <div className="tab-list" role="tablist">
          {KINDS.map((one) => (
            <button key={one} type="button" role="tab" aria-selected={kind === one} onClick={() => update({ bottomTab: one })}>
              {words(`bottom.${one}`)}
              {one === "problems" && problems > 0 && <span className="badge bad">{problems}</span>}
              {one === "problems" && warnings > 0 && <span className="badge warn">{warnings}</span>}
            </button>
          ))}
        </div>
        <span className="grow" />
        <button type="button" className="icon-only quiet" onClick={() => setSettings({ bottom: false })} aria-label={words("action.toggleBottom")}>
          <Icon name="bottom" />
        </button>
      </div>
      <div className="scroll" tabIndex={0} role="tabpanel" aria-label={words(`bottom.${kind}`)}>
        {kind === "problems" && <Problems tab={tab} />}
        {kind === "runs" && <Runs tab={tab} />}
        {kind === "trends" && <Trends tab={tab} />}
        {kind === "check" && <Check tab={tab} />}
        {kind === "compare" && <Compare tab={tab} />}
        {kind === "sweep" && (
          <Suspense fallback={null}>
            <Sweep key={tab.id} tab={tab} />
          </Suspense>
        )}
        {kind === "volumes" && (
          <Suspense fallback={null}>
            <Volumes tab={tab} />
          </Suspense>
        )}
        {kind === "log" && <Log />}
      </div>
    </section>
  );
}

function Problems({ tab }: { tab: Tab }) {
  const words = useWords();
  const problems = tab.analysis?.problems ?? [];
  const warnings = tab.analysis?.warnings ?? [];
  if (problems.length + warnings.length === 0) {
    return (
      <p className="none good">
        <Icon name="tick" /> {words("problems.none")}
      </p>
    );
  }
  return (
    <>
      <ProblemRows tab={tab} problems={problems} level="bad" />
      <Look tab={tab} />
      <ProblemRows tab={tab} problems={warnings} level="warn" />
    </>
  );
}

/** Says that numbers may not be what is meant, wherever one would otherwise read that all is well. */
function Look({ tab }: { tab: Tab }) {
  const words = useWords();
  const count = tab.analysis?.warnings.length ?? 0;
  if (count === 0) return null;
  return (
    <p className="none look">
      <Icon name="warn" /> {words("problems.look", { count })}
    </p>
  );
}

function ProblemRows({ tab, problems, level }: { tab: Tab; problems: readonly Problem[]; level: "bad" | "warn" }) {
  const tell = useTold();
  if (problems.length === 0) return null;
  return (
    <ul className="rows">
      {problems.map((problem, index) => (
        <li key={index} className="problem-row">
          <button type="button" className="row-main" onClick={() => goToBlock(problem.block.slice(prefixOf(tab).length))}>
            <span className={`dot ${level}`} />
            <strong>
              {problem.block}
              {problem.pin && ` · ${problem.pin}`}
            </strong>
            <span>{tell(problem.message)}</span>
          </button>
          {problem.fixes.map((fix) => (
            <button key={fix.title} type="button" onClick={() => void applyFix(fix)}>
              {tell(fix.title)}
            </button>
          ))}
        </li>
      ))}
    </ul>
  );
}

function Check({ tab }: { tab: Tab }) {
  const words = useWords();
  const tell = useTold();
  const checks = tab.checks;
  return (
    <>
      <div className="row-head">
        <button type="button" className="primary" disabled={checks?.busy} onClick={() => void checkGradients()}>
          {words("check.run")}
        </button>
        <span className="hint">{checks?.busy ? words("check.busy") : words("check.none")}</span>
      </div>
      <Look tab={tab} />
      {checks && checks.rows.length > 0 && (
        <table className="table">
          <thead>
            <tr>
              <th>{words("check.block")}</th>
              <th>{words("check.input")}</th>
              <th className="number">{words("check.error")}</th>
              <th />
              <th>{words("check.steps")}</th>
            </tr>
          </thead>
          <tbody>
            {checks.rows.map((row) => (
              <tr key={`${row.block}.${row.input}`}>
                <td>
                  <button type="button" className="link" onClick={() => goToBlock(row.block)}>
                    {row.block}
                  </button>{" "}
                  <span className="hint">{row.op}</span>
                </td>
                <td>{row.input}</td>
                <td className="number">{row.error === null ? "—" : row.error.toExponential(1)}</td>
                <td>
                  <span className={`badge ${row.ok ? "ok" : "bad"}`}>{words(row.ok ? "check.ok" : "check.bad")}</span> {row.note && tell(row.note)}
                </td>
                <td>
                  <StepCurve row={row} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

/** Error over step size, both as powers of ten: it falls with the step until rounding takes over. */
function StepCurve({ row }: { row: CheckRow }) {
  const points = row.steps.flatMap(({ step, error }) => (error !== null && error > 0 ? [[Math.log10(step), Math.log10(error)] as const] : []));
  if (points.length < 2) return null;
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const at = ([x, y]: readonly [number, number]) =>
    `${(4 + ((x - x0) / (x1 - x0 || 1)) * 152).toFixed(1)},${(28 - ((y - y0) / (y1 - y0 || 1)) * 24).toFixed(1)}`;
  return (
    <svg className={`curve ${row.ok ? "ok" : "bad"}`} width="160" height="32" role="img" aria-label={points.map(([x, y]) => `10^${x.toFixed(0)}: 10^${y.toFixed(1)}`).join(", ")}>
      <polyline points={points.map(at).join(" ")} />
      {points.map((point) => {
        const [cx, cy] = at(point).split(",");
        return <circle key={point[0]} cx={cx} cy={cy} r="1.8" />;
      })}
    </svg>
  );
}

function Log() {
  const words = useWords();
  const log = useStudio((state) => state.log);
  if (log.length === 0) return <p className="none">{words("log.none")}</p>;
  return (
    <ol className="log">
      {log.toReversed().map((line, index) => (
        <li key={log.length - index} className={line.level}>
          <time>{new Date(line.time).toLocaleTimeString()}</time> <span>{line.text}</span>
        </li>
      ))}
    </ol>
  );
}
