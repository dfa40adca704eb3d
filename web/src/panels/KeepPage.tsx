// SPDX-License-Identifier: Apache-2.0
/** Keep a page in the library, under a name; one that is there is replaced only where the button says so. */

import { useState } from "react";
import { keep, toKeep } from "../state/library";
import { update, useStudio } from "../state/store";
import { useWords } from "../state/words";
import { Dialog } from "../ui/Dialog";

const close = () => update({ dialog: null });

export function KeepPage() {
  const words = useWords();
  const library = useStudio((state) => state.library);
  const [what] = useState(toKeep);
  const [name, setName] = useState(what?.name ?? "");
  const [why, setWhy] = useState("");
  if (!what) return null;
  const there = library.some((one) => one.name === name.trim());
  const go = async () => {
    const refusal = await keep({ path: what.path, name: name.trim() }, there);
    if (refusal === "") close();
    else setWhy(refusal);
  };
  return (
    <Dialog label={words("library.title")} className="files keep" onClose={close}>
      <h2>{words("library.title")}</h2>
      <p>{words("library.about")}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void go();
        }}
      >
        <label className="stacked">
          <span>{words("library.name")}</span>
          <input value={name} autoFocus onFocus={(event) => event.target.select()} onChange={(event) => setName(event.target.value)} />
        </label>
        {there && <p className="hint">{words("library.there")}</p>}
        {why !== "" && <p className="error" role="alert">{why}</p>}
        <footer>
          <button type="button" onClick={close}>{words("dialog.close")}</button>
          <button type="submit" className="primary" disabled={name.trim() === ""}>{words(there ? "library.replace" : "library.keep")}</button>
        </footer>
      </form>
    </Dialog>
  );
}
