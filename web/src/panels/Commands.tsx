// SPDX-License-Identifier: Apache-2.0
/** The command palette and the list of all keys: two readings of the table of actions. */

import { ACTIONS, type Action } from "../core/actions";
import { search } from "../core/search";
import { isPossible, perform } from "../state/perform";
import { update, useStudio } from "../state/store";
import { useWords } from "../state/words";
import { Dialog } from "../ui/Dialog";
import { Finder } from "../ui/Finder";
import { Icon } from "../ui/Icon";
import { Keys } from "../ui/Keys";
import { Files } from "./Files";

const close = () => update({ dialog: null });

export function Dialogs() {
  const dialog = useStudio((state) => state.dialog);
  if (dialog === "commands") return <Commands />;
  if (dialog === "files") return <Files />;
  return dialog === "help" ? <Help /> : null;
}

function Commands() {
  const words = useWords();
  const entries = ACTIONS.filter((action) => action.id !== "commands" && isPossible(action.id)).map((action) => ({ ...action, name: words(action.title), aliases: [action.id] }));
  const pick = (action: Action) => {
    close();
    // The dialog gives the focus back first; some actions look at it.
    window.setTimeout(() => perform(action.id), 0);
  };
  return (
    <Dialog label={words("commands.title")} className="commands" onClose={close}>
      <Finder
        label={words("commands.title")}
        placeholder={words("commands.search")}
        find={(query) => search(entries, query)}
        keyOf={(entry) => entry.id}
        render={(entry) => (
          <>
            <span className="entry-name">{entry.name}</span>
            <span className="entry-note">{words(`group.${entry.group}`)}</span>
            {entry.keys[0] && <Keys keys={entry.keys[0]} />}
          </>
        )}
        onPick={pick}
        onClose={close}
        none={(query) => words("palette.none", { query })}
      />
    </Dialog>
  );
}

const GROUPS = ["run", "see", "edit", "view", "file"] as const;

function Help() {
  const words = useWords();
  return (
    <Dialog label={words("help.title")} className="help" onClose={close}>
      <header>
        <h2>{words("help.title")}</h2>
        <span className="grow" />
        <button type="button" className="icon-only quiet" onClick={close} aria-label={words("dialog.close")} autoFocus>
          <Icon name="close" />
        </button>
      </header>
      <p className="hint">{words("help.note")}</p>
      <div className="help-groups">
        {GROUPS.map((group) => (
          <section key={group}>
            <h3>{words(`group.${group}`)}</h3>
            <dl>
              {ACTIONS.filter((action) => action.group === group && action.keys.length > 0).map((action) => (
                <div key={action.id}>
                  <dt>{words(action.title)}</dt>
                  <dd>
                    {action.keys.map((keys) => (
                      <Keys key={keys} keys={keys} />
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
