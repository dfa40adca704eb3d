// SPDX-License-Identifier: Apache-2.0
/** A page as a panel: its displays alone, as large as the window allows, and what runs it. */

import { useEffect, useRef, useState } from "react";
import { DisplayBody } from "../editor/displays/DisplayBody";
import { useDrawnDisplays } from "../state/displays";
import { closePanel } from "../state/pages";
import { perform } from "../state/perform";
import { isBusy } from "../state/runs";
import { shownPage, type Tab } from "../state/store";
import { useWords } from "../state/words";
import { Icon } from "../ui/Icon";

const MARGIN = 24;

export function Panel({ tab }: { tab: Tab }) {
  const words = useWords();
  const page = shownPage(tab);
  useDrawnDisplays(tab);
  const room = useRef<HTMLDivElement>(null);
  const [[width, height], setRoom] = useState([800, 600]);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry && setRoom([entry.contentRect.width, entry.contentRect.height]));
    if (room.current) watch.observe(room.current);
    return () => watch.disconnect();
  }, []);
  const displays = [...(page.displays ?? [])].sort((a, b) => Number(b.kind === "frame") - Number(a.kind === "frame"));
  const left = Math.min(...displays.map((one) => one.position[0]));
  const top = Math.min(...displays.map((one) => one.position[1]));
  const right = Math.max(...displays.map((one) => one.position[0] + one.size[0]));
  const bottom = Math.max(...displays.map((one) => one.position[1] + one.size[1]));
  const scale = displays.length > 0 ? Math.min((width - 2 * MARGIN) / (right - left), (height - 2 * MARGIN) / (bottom - top), 2) : 1;
  const shift = displays.length > 0 ? Math.max(MARGIN, (width - (right - left) * scale) / 2) : MARGIN;
  return (
    <main className="operator" aria-label={words("action.panel")} onKeyDown={(event) => event.key === "Escape" && closePanel()}>
      <header>
        <h1>{page.name}</h1>
        <span className="grow" />
        {isBusy(tab) ? (
          <button type="button" className="danger" onClick={() => perform("stop")}>
            <Icon name="stop" /> {words("run.stop")} {tab.run && tab.run.cycle > 0 ? tab.run.cycle + 1 : ""}
          </button>
        ) : (
          <>
            <button type="button" className="primary" autoFocus onClick={() => perform("run")}>
              <Icon name="play" /> {words("run.run")}
            </button>
            <button type="button" onClick={() => perform("step")}>
              <Icon name="step" /> {words("action.step")}
            </button>
            <button type="button" onClick={() => perform("loop")}>
              <Icon name="loop" /> {words("action.loop")}
            </button>
          </>
        )}
        <button type="button" className="quiet" onClick={closePanel}>
          <Icon name="close" /> {words("panel.leave")}
        </button>
      </header>
      <div className="operator-room" ref={room}>
        {displays.length === 0 && <p className="none">{words("panel.empty")}</p>}
        {displays.map((display) => (
          <div
            key={display.name}
            className={`display display-${display.kind}`}
            style={{
              left: shift + (display.position[0] - left) * scale,
              top: MARGIN + (display.position[1] - top) * scale,
              width: display.size[0] * scale,
              height: display.size[1] * scale,
              fontSize: `${Math.max(12, 13 * scale)}px`,
            }}
          >
            <DisplayBody display={display} />
          </div>
        ))}
      </div>
    </main>
  );
}
