// SPDX-License-Identifier: Apache-2.0
/** The bar above everything: pages as tabs, engine, run. */

import { useEffect, useRef, useState } from "react";
import type { EngineName } from "../core/api";
import * as format from "../core/format";
import { activate, closeTab } from "../state/pages";
import { perform } from "../state/perform";
import { isBusy, runPage } from "../state/runs";
import { activeTab, setSettings, update, useStudio } from "../state/store";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { Icon } from "../ui/Icon";
import { Keys } from "../ui/Keys";
import { MenuBar } from "./MenuBar";

export function TopBar() {
  const words = useWords();
  const theme = useStudio((state) => state.settings.theme);
  const language = useStudio((state) => state.settings.language);
  const hasPage = useStudio((state) => activeTab(state) !== null);
  return (
    <header className="top-bar">
      <button type="button" className="brand" onClick={() => activate(null)} title={words("action.home")}>
        <img src="/icon.svg" alt="" width="22" height="22" />
        {words("app.name")}
      </button>
      <MenuBar />
      <Tabs />
      <span className="grow" />
      <button type="button" className="quiet" onClick={() => perform("commands")} title={words("action.commands")}>
        {words("action.find")} <Keys keys="Ctrl+K" />
      </button>
      <button type="button" className="quiet" lang={language === "en" ? "ko" : "en"} onClick={() => perform("language")} title={words("action.language")}>
        {language === "en" ? "한국어" : "English"}
      </button>
      <button type="button" className="quiet icon-only" onClick={() => perform("theme")} aria-label={words("action.theme")} title={words("action.theme")}>
        <Icon name={theme === "dark" ? "sun" : "moon"} />
      </button>
      {hasPage && <RunControls />}
    </header>
  );
}

/** The button behind all tabs lies over the end of the row. */
const MORE = 32;

/** Not by scrollIntoView, which also moves where Tab goes on from. */
function showActive(bar: HTMLElement): void {
  const tab = bar.querySelector(".tab.active")?.getBoundingClientRect();
  if (!tab) return;
  const { left, right } = bar.getBoundingClientRect();
  if (tab.left < left) bar.scrollLeft -= left - tab.left;
  else if (tab.right > right - MORE) bar.scrollLeft += tab.right - right + MORE;
}

function Tabs() {
  const words = useWords();
  const order = useStudio((state) => state.order);
  const tabs = useStudio((state) => state.tabs);
  const active = useStudio((state) => state.active);
  const bar = useRef<HTMLElement>(null);
  // With many pages open the tabs are a row that scrolls: the page that is shown stays in it, also when the row gets shorter.
  useEffect(() => {
    const watch = new ResizeObserver(() => showActive(bar.current!));
    watch.observe(bar.current!);
    return () => watch.disconnect();
  }, [active, order.length]);
  return (
    <nav ref={bar} className="tabs" aria-label={words("left.pages")}>
      {order.map((id) => {
        const tab = tabs[id];
        if (!tab) return null;
        const dirty = tab.history.now !== tab.saved;
        return (
          <span key={id} className={`tab ${id === active ? "active" : ""}`}>
            <button type="button" aria-current={id === active ? "page" : undefined} onClick={() => activate(id)} title={tab.history.now.name}>
              <span className="name">{tab.history.now.name}</span>
              {dirty && <span className="dirty" title={words("tab.unsaved")} aria-label={words("tab.unsaved")} />}
            </button>
            <button type="button" className="icon-only" onClick={() => closeTab(id)} aria-label={words("tab.close", { name: tab.history.now.name })}>
              <Icon name="close" />
            </button>
          </span>
        );
      })}
      <button type="button" className="icon-only quiet" onClick={() => activate(null)} aria-label={words("tab.new")} title={words("tab.new")}>
        <Icon name="plus" />
      </button>
    </nav>
  );
}

function RunControls() {
  const words = useWords();
  const tell = useTold();
  const engines = useStudio((state) => state.engines);
  const engine = useStudio((state) => state.settings.engine);
  const problems = useStudio((state) => activeTab(state)?.analysis?.problems.length ?? 0);
  const warnings = useStudio((state) => activeTab(state)?.analysis?.warnings.length ?? 0);
  const run = useStudio((state) => activeTab(state)?.run ?? null);
  const waiting = useStudio((state) => activeTab(state)?.queue.length ?? 0);
  const [cycles, setCycles] = useState(100);
  const busy = useStudio((state) => isBusy(activeTab(state)));
  return (
    <div className="run-controls">
      <label className="inline">
        <span className="sr">{words("run.engine")}</span>
        <select value={engine} onChange={(event) => setSettings({ engine: event.target.value as EngineName })}>
          {engines.map((one) => (
            <option key={one.name} value={one.name} disabled={!one.available} title={tell(one.why_not)}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      {problems === 0 && warnings > 0 && (
        <button type="button" className="quiet look" onClick={() => update({ bottomTab: "problems" })}>
          <span className="badge warn">{words("run.look", { count: warnings })}</span>
        </button>
      )}
      {busy ? (
        <button type="button" className="danger run" onClick={() => perform("stop")}>
          <Icon name="stop" /> {words("run.stop")}
          {waiting > 0 && <span className="badge">{words("run.waiting", { count: waiting })}</span>}
          {run !== null && run.cycle > 0 && <span className="cycle">{format.count(run.cycle + 1)}</span>}
        </button>
      ) : (
        <>
          <span className="cycle-controls">
            <button type="button" className="icon-only" onClick={() => perform("step")} aria-label={words("action.step")} title={words("action.step")}>
              <Icon name="step" />
            </button>
            <label className="inline">
              <span className="sr">{words("run.cycles")}</span>
              <input type="number" min={1} max={1000000} value={cycles} onChange={(event) => setCycles(Math.max(1, Number(event.target.value) || 1))} />
            </label>
            <button type="button" className="icon-only" onClick={() => void runPage({ cycles, keep: true })} aria-label={words("action.loop")} title={words("action.loop")}>
              <Icon name="loop" />
            </button>
          </span>
          {problems > 0 ? (
            <button type="button" className="blocked run" onClick={() => update({ bottomTab: "problems" })} title={words("bottom.problems")}>
              <Icon name="warn" /> {words("run.blocked", { count: problems })}
            </button>
          ) : (
            <button type="button" className="primary run" onClick={() => perform("run")}>
              <Icon name="play" /> {words("run.run")} <Keys keys="Ctrl+Enter" />
            </button>
          )}
        </>
      )}
    </div>
  );
}
