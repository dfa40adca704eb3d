// SPDX-License-Identifier: Apache-2.0
/** What needs an answer: docked lines above the canvas, never a window over it. News without one stands in the status bar. */

import { useEffect, type ReactNode } from "react";
import { dropRecovery, keepMine, saveCopy, restoreRecovery } from "../state/pages";
import { takeTheirs } from "../state/sync";
import { activeTab, update, useStudio } from "../state/store";
import { useWords } from "../state/words";
import { Icon } from "../ui/Icon";

const SHOWN_MS = 5000;

export function Notices() {
  const words = useWords();
  const notice = useStudio((state) => state.notice);
  const online = useStudio((state) => state.online);
  const tab = useStudio((state) => activeTab(state));
  useEffect(() => {
    if (notice?.level !== "info") return undefined;
    const timer = window.setTimeout(() => update({ notice: null }), SHOWN_MS);
    return () => window.clearTimeout(timer);
  }, [notice]);
  return (
    <div className="notices">
      {!online && <Line level="warn">{words("notice.offline")}</Line>}
      {tab?.conflict !== null && tab !== null && (
        <Line level="warn">
          <span>{words("notice.conflict")}</span>
          <button type="button" onClick={() => void keepMine()}>{words("notice.conflictMine")}</button>
          <button type="button" onClick={() => void takeTheirs(tab.id)}>{words("notice.conflictTheirs")}</button>
          <button type="button" onClick={() => void saveCopy()}>{words("notice.conflictCopy")}</button>
        </Line>
      )}
      {tab?.recovery && (
        <Line level="warn">
          <span>{words("notice.draft", { time: new Date(tab.recovery.savedAt * 1000).toLocaleString() })}</span>
          <button type="button" className="primary" onClick={restoreRecovery}>{words("notice.draftUse")}</button>
          <button type="button" onClick={() => void dropRecovery()}>{words("notice.draftDrop")}</button>
        </Line>
      )}
      {notice && (notice.level === "error" || tab === null) && (
        <Line level={notice.level}>
          <span className="notice-text">{notice.text}</span>
          {notice.offer && (
            <button
              type="button"
              className="primary"
              onClick={() => {
                update({ notice: null });
                notice.offer?.act();
              }}
            >
              {notice.offer.title}
            </button>
          )}
          <button type="button" className="icon-only quiet" onClick={() => update({ notice: null })} aria-label={words("notice.dismiss")}>
            <Icon name="close" />
          </button>
        </Line>
      )}
    </div>
  );
}

function Line({ level, children }: { level: string; children: ReactNode }) {
  return <div className={`notice ${level}`} role={level === "info" ? "status" : "alert"}>{children}</div>;
}
