// SPDX-License-Identifier: Apache-2.0
/** The line under the canvas: breadcrumb, zoom, undo, estimate, state of the draft. */

import * as format from "../core/format";
import { useEffect, useState } from "react";
import { goUp } from "../state/pages";
import { perform } from "../state/perform";
import { flow, setSettings, useStudio, type Tab } from "../state/store";
import { useWords } from "../state/words";
import { Icon, type IconName } from "../ui/Icon";
import type { ActionId } from "../core/actions";
import { RunProgress } from "./RunProgress";

function Tool({ id, icon, label, disabled }: { id: ActionId; icon: IconName; label: string; disabled?: boolean }) {
  return (
    <button type="button" className="icon-only quiet" disabled={disabled} onClick={() => perform(id)} aria-label={label} title={label}>
      <Icon name={icon} />
    </button>
  );
}

export function Breadcrumb({ tab }: { tab: Tab }) {
  const words = useWords();
  const steps = [tab.history.now.name, ...tab.trail.map((step) => step.block)];
  return (
    <nav className="breadcrumb" aria-label={words("inspector.page")}>
      {steps.map((name, depth) => (
        <span key={depth}>
          {depth > 0 && <Icon name="chevron" />}
          <button type="button" className="quiet" aria-current={depth === steps.length - 1 ? "page" : undefined} onClick={() => goUp(steps.length - 1 - depth)} disabled={depth === steps.length - 1}>
            {name}
          </button>
        </span>
      ))}
    </nav>
  );
}

export function StatusBar({ tab }: { tab: Tab }) {
  const words = useWords();
  const settings = useStudio((state) => state.settings);
  const said = useStudio((state) => (state.notice?.level === "info" ? state.notice.text : ""));
  const estimate = tab.analysis?.estimate;
  const [zoom, setZoom] = useState(1);
  useEffect(() => {
    const timer = window.setInterval(() => setZoom(flow.current?.getZoom() ?? 1), 300);
    return () => window.clearInterval(timer);
  }, []);
  return (
    <div className="status-bar">
      <Tool id="undo" icon="undo" label={words("action.undo")} disabled={tab.history.past.length === 0} />
      <Tool id="redo" icon="redo" label={words("action.redo")} disabled={tab.history.future.length === 0} />
      <Tool id="tidy" icon="tidy" label={words("action.tidy")} />
      <span className="split" />
      <button type="button" className="icon-only quiet" onClick={() => void flow.current?.zoomOut()} aria-label={words("canvas.zoomOut")} title={words("canvas.zoomOut")}>
        <Icon name="minus" />
      </button>
      <span className="zoom">{Math.round(zoom * 100)}%</span>
      <button type="button" className="icon-only quiet" onClick={() => void flow.current?.zoomIn()} aria-label={words("canvas.zoomIn")} title={words("canvas.zoomIn")}>
        <Icon name="plus" />
      </button>
      <Tool id="fit" icon="fit" label={words("action.fit")} />
      <span className="grow said">{said}</span>
      <RunProgress tab={tab} />
      {estimate && estimate.peak_bytes !== null && (
        <span className="fact" title={words("estimate.title")}>
          {format.bytes(estimate.peak_bytes)}
          {estimate.flops !== null && ` · ${format.flops(estimate.flops)}`}
        </span>
      )}
      <span className="fact">{words("inspector.blocks", { count: tab.history.now.blocks.length })}</span>
      <span className={`fact draft-${tab.draft}`}>{words(`save.${tab.draft}`)}</span>
      {!settings.left && <Tool id="toggle-left" icon="left" label={words("action.toggleLeft")} />}
      {!settings.bottom && <Tool id="toggle-bottom" icon="bottom" label={words("action.toggleBottom")} />}
      {!settings.right && (
        <button type="button" className="icon-only quiet" onClick={() => setSettings({ right: true })} aria-label={words("action.toggleRight")}>
          <Icon name="right" />
        </button>
      )}
    </div>
  );
}
