// SPDX-License-Identifier: Apache-2.0
/** A sweep: what varies and how, how far it is, its rows as a table or as curves. */

import { useEffect, useId, useState } from "react";
import { api, ApiError, type SweepPlan } from "../core/api";
import * as format from "../core/format";
import { exampleOf, namesOf } from "../core/sweeps";
import { toldNow, useStudio, type Tab } from "../state/store";
import { askOf, findSweep, setForm, startSweep, stopSweep, useDesk, type SweepForm, type Varied } from "../state/sweeps";
import { useWords } from "../state/words";
import { Icon } from "../ui/Icon";
import { SweepCurves, SweepTable } from "./SweepRows";

const PLAN_AFTER_MS = 250;

export function Sweep({ tab }: { tab: Tab }) {
  const words = useWords();
  const { sweep } = useDesk(tab.id);
  const [shown, setShown] = useState<"table" | "curves">("table");
  useEffect(() => void findSweep(tab.id), [tab.id]);
  return (
    <div className="sweep">
      <Form tab={tab} />
      <section className="sweep-rows" aria-label={words("sweep.rows")}>
        {sweep === null ? (
          <p className="none">{words("sweep.none")}</p>
        ) : (
          <>
            <div className="row-head">
              <div className="tab-list" role="tablist" aria-label={words("sweep.rows")}>
                {(["table", "curves"] as const).map((kind) => (
                  <button key={kind} type="button" role="tab" aria-selected={shown === kind} onClick={() => setShown(kind)}>
                    {words(`sweep.${kind}`)}
                  </button>
                ))}
              </div>
              {sweep.state === "running" && <progress max={sweep.plan.points} value={sweep.rows.length} aria-label={words("sweep.progress")} />}
              <span className="hint">
                {words("sweep.done", { done: sweep.rows.length, points: sweep.plan.points })} · {format.seconds(sweep.seconds)}
              </span>
              {sweep.state === "running" && (
                <button type="button" className="danger" onClick={() => void stopSweep(sweep)}>
                  <Icon name="stop" /> {words("run.stop")}
                </button>
              )}
              {sweep.state === "cancelled" && <span className="badge">{words("run.state.cancelled")}</span>}
              <span className="grow" />
              {(["csv", "json"] as const).map((kind) => (
                <a key={kind} className="button" href={api.sweepUrl(sweep.id, kind)} download>
                  {kind.toUpperCase()}
                </a>
              ))}
            </div>
            {shown === "table" ? <SweepTable sweep={sweep} /> : <SweepCurves sweep={sweep} />}
          </>
        )}
      </section>
    </div>
  );
}

function Form({ tab }: { tab: Tab }) {
  const words = useWords();
  const { form, sweep } = useDesk(tab.id);
  const { plan, fault } = usePlan(tab, form);
  const list = useId();
  const names = namesOf(tab.history.now, useStudio((state) => state.catalogue));
  const outputs = Object.entries(tab.analysis?.pins ?? {}).flatMap(([block, pins]) =>
    block.includes("/") ? [] : Object.entries(pins).flatMap(([pin, info]) => (info.direction === "output" ? [`${block}.${pin}`] : [])),
  );
  const set = (change: Partial<SweepForm>) => setForm(tab.id, change);
  const next = Math.max(...form.varied.map((one) => one.key), -1) + 1;
  return (
    <form
      className="sweep-form"
      aria-label={words("bottom.sweep")}
      onSubmit={(event) => {
        event.preventDefault();
        void startSweep(tab, form);
      }}
    >
      <datalist id={list}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {form.varied.map((one, index) => (
        <VariedRow key={one.key} one={one} number={index + 1} list={list} page={tab} set={(change) => set({ varied: form.varied.map((other) => (other === one ? { ...one, ...change } : other)) })} remove={() => set({ varied: form.varied.filter((other) => other !== one) })} />
      ))}
      {fault && (
        <pre className="fault" tabIndex={0}>
          {fault}
        </pre>
      )}
      <button type="button" className="quiet" onClick={() => set({ varied: [...form.varied, { key: next, name: "", text: "" }] })}>
        <Icon name="plus" /> {words("sweep.add")}
      </button>
      {form.varied.length > 1 && (
        <label className="inline">
          <input type="checkbox" checked={form.zipped} onChange={(event) => set({ zipped: event.target.checked })} />
          <span>{words("sweep.zipped")}</span>
        </label>
      )}
      <div className="sweep-counts">
        <Count label={words("sweep.repeats")} most={1000} value={form.repeats} set={(repeats) => set({ repeats })} />
        <Count label={words("run.cycles")} most={1_000_000} value={form.cycles} set={(cycles) => set({ cycles })} />
      </div>
      <details>
        <summary>{words("sweep.results", { count: form.fetch.length || plan?.fetches.length || 0 })}</summary>
        {outputs.map((path) => (
          <label key={path} className="inline">
            <input
              type="checkbox"
              checked={form.fetch.includes(path)}
              onChange={(event) => set({ fetch: event.target.checked ? [...form.fetch, path] : form.fetch.filter((other) => other !== path) })}
            />
            <span>{path}</span>
          </label>
        ))}
      </details>
      <div className="row-head">
        <button type="submit" className="primary" disabled={!plan || sweep?.state === "running"}>
          <Icon name="play" /> {words("sweep.run")}
        </button>
        <output>{plan && words("sweep.points", { count: format.count(plan.points) })}</output>
      </div>
    </form>
  );
}

interface RowProps {
  readonly one: Varied;
  readonly number: number;
  readonly list: string;
  readonly page: Tab;
  readonly set: (change: Partial<Varied>) => void;
  readonly remove: () => void;
}

function VariedRow({ one, number, list, page, set, remove }: RowProps) {
  const words = useWords();
  const catalogue = useStudio((state) => state.catalogue);
  const engines = useStudio((state) => state.engines).filter((engine) => engine.available).map((engine) => engine.name);
  return (
    <div className="varied">
      <input list={list} placeholder="block.attribute" aria-label={words("sweep.what", { number })} value={one.name} spellCheck={false} onChange={(event) => set({ name: event.target.value })} />
      <button type="button" className="icon-only quiet" aria-label={words("sweep.remove", { number })} onClick={remove}>
        <Icon name="close" />
      </button>
      <input className="text-value" placeholder={exampleOf(one.name, page.history.now, catalogue, engines)} aria-label={words("sweep.values", { number })} value={one.text} spellCheck={false} onChange={(event) => set({ text: event.target.value })} />
    </div>
  );
}

function Count({ label, most, value, set }: { label: string; most: number; value: number; set: (value: number) => void }) {
  return (
    <label className="inline">
      <span>{label}</span>
      <input type="number" min={1} max={most} value={value} onChange={(event) => set(Math.min(most, Math.max(1, Math.trunc(Number(event.target.value)) || 1)))} />
    </label>
  );
}

/** How many points there are, asked while one types; or what is wrong. */
function usePlan(tab: Tab, form: SweepForm): { readonly plan: SweepPlan | null; readonly fault: string } {
  const [found, setFound] = useState<{ plan: SweepPlan | null; fault: string }>({ plan: null, fault: "" });
  const document = tab.history.now;
  useEffect(() => {
    const ask = askOf(tab, form);
    if (!ask) {
      setFound({ plan: null, fault: "" });
      return undefined;
    }
    let wanted = true;
    const timer = window.setTimeout(() => {
      api.planSweep(ask).then(
        (plan) => wanted && setFound({ plan, fault: "" }),
        (error: unknown) => wanted && setFound({ plan: null, fault: error instanceof ApiError ? toldNow(error.message) : String(error) }),
      );
    }, PLAN_AFTER_MS);
    return () => {
      wanted = false;
      window.clearTimeout(timer);
    };
    // The page and the form decide; a tab changes with every event of a run.
  }, [document, form]);
  return found;
}
