// SPDX-License-Identifier: Apache-2.0
/** The snapshots of a page: listed, compared with the page as it is, restored. */

import { useEffect, useState } from "react";
import { api } from "../core/api";
import { differences, type Differences } from "../core/compare";
import type { Page } from "../core/model";
import type { Snapshot } from "../generated/api";
import { withoutHead } from "../state/edits";
import { attempt } from "../state/pages";
import { goToBlock } from "../state/perform";
import { activeTab, recordDocument, update } from "../state/store";
import { useWords } from "../state/words";
import { Dialog } from "../ui/Dialog";
import { CHANGES, PageDiff } from "./PageDiff";

const close = () => update({ dialog: null });

export function Snapshots() {
  const words = useWords();
  const [tab] = useState(() => activeTab());
  const [list, setList] = useState<readonly Snapshot[] | null>(null);
  const [compared, setCompared] = useState<{ readonly number: number; readonly found: Differences } | null>(null);
  useEffect(() => {
    if (tab) void attempt(() => api.snapshots(tab.id)).then((found) => setList(found?.snapshots ?? []));
  }, [tab]);
  if (!tab) return null;
  const documentOf = async (number: number): Promise<Page | null> => {
    const found = await attempt(() => api.snapshotDocument(tab.id, number));
    return found && withoutHead(found.document);
  };
  const compare = async (number: number) => {
    const before = await documentOf(number);
    if (before) setCompared({ number, found: differences(before, tab.history.now) });
  };
  const restore = async ({ number, name }: Snapshot) => {
    const document = await documentOf(number);
    if (!document) return;
    recordDocument(tab.id, document, words("snapshots.restored", { name }));
    close();
  };
  return (
    <Dialog label={words("snapshots.title")} className="files snapshots" onClose={close}>
      <h2>{words("snapshots.title")}</h2>
      {list?.length === 0 && <p>{words("snapshots.none")}</p>}
      <ul>
        {list?.map((one) => (
          <li key={one.number}>
            <div className="row-head">
              <strong>{one.name}</strong>
              <time>{new Date(one.saved_at * 1000).toLocaleString()}</time>
              <span className="grow" />
              <button type="button" onClick={() => void compare(one.number)}>
                {words("snapshots.compare")}
              </button>
              <button type="button" className="primary" onClick={() => void restore(one)}>
                {words("snapshots.restore")}
              </button>
            </div>
            {compared?.number === one.number && <Found found={compared.found} />}
          </li>
        ))}
      </ul>
      <footer>
        <button type="button" onClick={close}>
          {words("dialog.close")}
        </button>
      </footer>
    </Dialog>
  );
}

/** What has come, gone and changed since: a picture, and the names with what is different. */
function Found({ found }: { found: Differences }) {
  const words = useWords();
  const differs = found.blocks.filter((one) => one.changes.length > 0);
  const others = found.rest.join(", ");
  if (differs.length === 0) return <p>{others ? words("snapshots.rest", { names: others }) : words("snapshots.same")}</p>;
  return (
    <>
      <PageDiff found={found} />
      <dl className="facts differences">
        {CHANGES.map((change) => ({ change, mine: differs.filter((one) => one.changes.includes(change)) })).filter(({ mine }) => mine.length > 0).map(({ change, mine }) => (
          <div key={change}>
            <dt>{words(`snapshots.${change}`)}</dt>
            <dd>
              {mine.map(({ block: { name }, told }) => (
                <div key={name}>
                  <button type="button" className="link" disabled={change === "removed"} onClick={() => {
                    close();
                    window.setTimeout(() => goToBlock(name), 0);
                  }}>
                    {name}
                  </button>
                  {change === "changed" && told.map((line) => <span key={line} className="hint">{line}</span>)}
                </div>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      {others && <p className="hint">{words("snapshots.rest", { names: others })}</p>}
    </>
  );
}
