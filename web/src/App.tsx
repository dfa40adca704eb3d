// SPDX-License-Identifier: Apache-2.0
/** The studio: home or a page, and what stands around it. */

import { ReactFlowProvider } from "@xyflow/react";
import { lazy, Suspense, useEffect, useState, type MouseEvent } from "react";
import { api } from "./core/api";
import { Canvas } from "./editor/Canvas";
import { useKeyboard } from "./editor/keyboard";
import { QuickAdd } from "./editor/QuickAdd";
import { Bottom } from "./panels/Bottom";
import { Dialogs } from "./panels/Commands";
import { ContextMenu } from "./panels/ContextMenu";
import { Inspector } from "./panels/Inspector";
import { Left } from "./panels/Left";
import { Notices } from "./panels/Notices";
import { Breadcrumb, StatusBar } from "./panels/StatusBar";
import { TopBar } from "./panels/TopBar";
import { Home } from "./screens/Home";
import { Panel } from "./screens/Panel";
import { loadLibrary } from "./state/library";
import { attempt, followAddress, openDropped, openFiles, reopenTabs, startAtAddress } from "./state/pages";
import { activeTab, update, useStudio } from "./state/store";
import { startSync } from "./state/sync";
import { loadTold } from "./state/told";
import { useWords } from "./state/words";

const Tour = lazy(() => import("./panels/Tour").then(({ Tour: shown }) => ({ default: shown })));
const Learn = lazy(() => import("./screens/Learn"));
const Viewer = lazy(() => import("./viewer/Viewer"));

export function App() {
  const tab = useStudio((state) => activeTab(state));
  const settings = useStudio((state) => state.settings);
  const spoken = useStudio((state) => state.spoken);
  const viewer = useStudio((state) => state.viewer);
  const panel = useStudio((state) => state.panel);
  const learning = useStudio((state) => state.learning);
  const touring = useStudio((state) => state.tour !== null);
  const words = useWords();
  useStart();
  useKeyboard();
  const dropping = useDrop();
  useEffect(() => {
    document.documentElement.dataset["theme"] = settings.theme;
    document.documentElement.lang = settings.language;
    if (settings.language === "ko") void loadTold();
  }, [settings.theme, settings.language]);
  return (
    <div className={`studio ${dropping ? "dropping" : ""}`}>
      {tab !== null && !panel && (
        <a className="skip" href="#canvas" onClick={toCanvas}>
          {words("app.skip")}
        </a>
      )}
      {!(panel && tab) && <TopBar />}
      <Notices />
      {learning !== null ? (
        <Suspense fallback={<main className="learn" />}>
          <Learn op={learning} />
        </Suspense>
      ) : tab === null ? (
        <Home />
      ) : panel ? (
        <Panel tab={tab} />
      ) : (
        <div className="workspace">
          {settings.left && <Left tab={tab} />}
          <main className="centre">
            <Breadcrumb tab={tab} />
            <ReactFlowProvider key={tab.id}>
              <Canvas tab={tab} />
            </ReactFlowProvider>
            <StatusBar tab={tab} />
            {settings.bottom && <Bottom tab={tab} />}
          </main>
          {viewer ? (
            <Suspense fallback={<aside className="panel viewer" />}>
              <Viewer tab={tab} viewer={viewer} />
            </Suspense>
          ) : (
            settings.right && <Inspector tab={tab} />
          )}
        </div>
      )}
      <QuickAdd />
      <ContextMenu />
      <Dialogs />
      {touring && (
        <Suspense>
          <Tour />
        </Suspense>
      )}
      <OpenFile />
      <div className="sr" role="status" aria-live="polite">
        {spoken}
      </div>
    </div>
  );
}

/** The first stop of the keyboard leads past bars and palette; the address stays. */
function toCanvas(event: MouseEvent): void {
  event.preventDefault();
  document.querySelector<HTMLElement>(".canvas")?.focus();
}

function OpenFile() {
  const words = useWords();
  return (
    <input
      id="open-file"
      className="sr"
      type="file"
      multiple
      tabIndex={-1}
      aria-label={words("home.open")}
      onChange={(event) => {
        void openFiles([...(event.target.files ?? [])]);
        event.target.value = "";
      }}
    />
  );
}

/** Ask for what never changes, and open the page that the address names. */
function useStart(): void {
  useEffect(() => {
    void attempt(() => api.ops()).then((found) => found && update({ ops: found.ops, catalogue: new Map(found.ops.map((op) => [op.name, op])) }));
    void loadLibrary();
    void attempt(() => api.engines()).then((found) => found && update({ engines: found.engines }));
    void reopenTabs().then(startAtAddress);
    window.addEventListener("hashchange", followAddress);
    const stop = startSync();
    return () => {
      window.removeEventListener("hashchange", followAddress);
      stop();
    };
  }, []);
}

/** Files can be dropped anywhere. */
function useDrop(): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const onOver = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const onLeave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const onDrop = (event: DragEvent) => {
      setOver(false);
      if (!holdsFiles(event) || event.defaultPrevented) return;
      event.preventDefault();
      void openDropped(event.dataTransfer!);
    };
    window.addEventListener("dragover", onOver);
    window.addEventListener("dragleave", onLeave);
    window.addEventListener("drop", onDrop);
    return () => {
      window.removeEventListener("dragover", onOver);
      window.removeEventListener("dragleave", onLeave);
      window.removeEventListener("drop", onDrop);
    };
  }, []);
  return over;
}
