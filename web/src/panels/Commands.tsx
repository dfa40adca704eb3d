// SPDX-License-Identifier: Apache-2.0
/** The command palette and the list of all keys: two readings of the table of actions. */

import { ACTIONS } from "../core/actions";
import { search } from "../core/search";
import { goToBlock, isPossible, perform } from "../state/perform";
import { activeTab, shownPage, update, useStudio } from "../state/store";
import { useWords } from "../state/words";
import { Dialog } from "../ui/Dialog";
import { Finder } from "../ui/Finder";
import { Icon } from "../ui/Icon";
import { Keys } from "../ui/Keys";
import { AddDisplay } from "./AddDisplay";
import { Files } from "./Files";
import { KeepPage } from "./KeepPage";
import { Snapshots } from "./Snapshots";

const close = () => update({ dialog: null });

export function Dialogs() {
  const dialog = useStudio((state) => state.dialog);
  if (dialog === "commands") return <Commands />;
  if (dialog === "files") return <Files />;
  if (dialog === "displays") return <AddDisplay />;
  if (dialog === "keep") return <KeepPage />;
  if (dialog === "snapshots") return <Snapshots />;
  return dialog === "help" ? <Help /> : null;
}

/** Something that can be found: a command, or a block of the page. */
interface Found {
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly note: string;
  readonly keys: readonly string[];
  readonly act: () => void;
}

function Commands() {
  const words = useWords();
  const tab = activeTab();
  const actions = ACTIONS.filter((action) => !["commands", "find"].includes(action.id) && isPossible(action.id)).map(
    (action): Found => ({ id: action.id, name: words(action.title), aliases: [action.id], note: words(`group.${action.group}`), keys: action.keys, act: () => perform(action.id) }),
  );
  const blocks = (tab ? shownPage(tab).blocks : []).map(
    (block): Found => ({ id: `block ${block.name}`, name: block.name, aliases: [block.op ?? block.page ?? ""], note: block.op ?? block.page ?? "", keys: [], act: () => goToBlock(block.name) }),
  );
  const entries = [...actions, ...blocks];
  const pick = (found: Found) => {
    close();
    // The dialog gives the focus back first; some actions look at it.
    window.setTimeout(found.act, 0);
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
            <span className="entry-note">{entry.note}</span>
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
