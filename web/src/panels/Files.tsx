// SPDX-License-Identifier: Apache-2.0
/** What a page may touch outside of its folder: it names the files, and the person says which folders it may use. */

import { useEffect, useState } from "react";
import { api, type PageFiles } from "../core/api";
import { foldersOf } from "../core/files";
import { attempt } from "../state/pages";
import { runPage } from "../state/runs";
import { activeTab, update } from "../state/store";
import { analyseAgain } from "../state/sync";
import { useWords } from "../state/words";
import { Dialog } from "../ui/Dialog";

const close = () => update({ dialog: null });

export function Files() {
  const words = useWords();
  const [document] = useState(() => activeTab()?.history.now ?? null);
  const [files, setFiles] = useState<PageFiles | null>(null);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [other, setOther] = useState("");
  useEffect(() => {
    if (!document) return;
    void attempt(() => api.pageFiles(document)).then((found) => {
      if (!found) return;
      setFiles(found);
      setChosen(found.allowed);
    });
  }, [document]);
  if (!document || !files) return null;

  const folders = foldersOf(files);
  const unreachable = files.wanted.filter((file) => file.folder === "");
  const given = [...chosen, ...(other.trim() ? [other.trim()] : [])];
  const allow = async (run: boolean) => {
    const done = await attempt(() => api.allowFiles(document, given));
    if (!done) return;
    close();
    analyseAgain();
    if (run) void runPage();
  };
  return (
    <Dialog label={words("files.title")} className="files" onClose={close}>
      <h2>{words("files.title")}</h2>
      <p>{words(files.wanted.length > 0 ? "files.asks" : "files.none")}</p>
      {folders.map(([folder, wanted]) => (
        <fieldset key={folder}>
          <label>
            <input
              type="checkbox"
              checked={chosen.includes(folder)}
              onChange={(event) => setChosen(event.target.checked ? [...chosen, folder] : chosen.filter((one) => one !== folder))}
            />
            <code>{folder}</code>
          </label>
          <ul>
            {wanted.map((file) => (
              <li key={`${file.block} ${file.name}`}>
                <strong>{file.block}</strong> {words(file.write ? "files.writes" : "files.reads", { op: file.op })} <code>{file.name}</code>
              </li>
            ))}
          </ul>
        </fieldset>
      ))}
      {unreachable.length > 0 && (
        <>
          <p>{words("files.never")}</p>
          <ul>
            {unreachable.map((file) => (
              <li key={`${file.block} ${file.name}`}>
                <strong>{file.block}</strong> {words(file.write ? "files.writes" : "files.reads", { op: file.op })} <code>{file.name}</code>
              </li>
            ))}
          </ul>
        </>
      )}
      <label className="stacked">
        {words("files.other")}
        <input type="text" value={other} spellCheck={false} onChange={(event) => setOther(event.target.value)} />
      </label>
      <p className="hint">{words("files.note")}</p>
      <footer>
        <button type="button" onClick={close} autoFocus>
          {words("files.leave")}
        </button>
        <button type="button" onClick={() => void allow(false)}>
          {words("files.keep")}
        </button>
        <button type="button" className="primary" disabled={given.length === 0} onClick={() => void allow(true)}>
          {words("files.allow")}
        </button>
      </footer>
    </Dialog>
  );
}
