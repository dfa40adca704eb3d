// SPDX-License-Identifier: Apache-2.0
/** The box that finds everything, and the list of all keys. */

import { useEffect, useMemo, useState } from "react";
import { ACTIONS } from "../core/actions";
import { api, type PageEntry } from "../core/api";
import { placesOf } from "../core/finding";
import { search } from "../core/search";
import { goToBlock, isPossible, perform } from "../state/perform";
import { addOp } from "../state/edits";
import { attempt, enterBlock, openPage } from "../state/pages";
import { activeTab, prefixOf, shownPage, studio, update, useStudio, type Tab } from "../state/store";
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

/** Something that can be found: a command, an op, or a block, pin, value or page. */
interface Found {
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly summary?: string;
  readonly note: string;
  readonly keys: readonly string[];
  readonly act: () => unknown;
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
  const { pages, places } = useFindable(tab);
  const ops = (tab ? [...studio().catalogue.values()] : []).map(
    (op): Found => ({ id: `op ${op.name}`, name: op.name, aliases: op.aliases ?? [], note: words("find.add"), keys: [], act: () => addOp(op, null) }),
  );
  const entries = [...actions, ...blocks, ...pages];
  const all = [...entries, ...ops, ...places];
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
        find={(query) => (query.trim() === "" ? entries : search(all, query, MOST_FOUND))}
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
        none={(query) => words("find.none", { query })}
      />
    </Dialog>
  );
}

/** More nobody reads. */
const MOST_FOUND = 100;

/** Pages of the folder and of the page itself, and what the blocks of the page have: pins and values. */
function useFindable(tab: Tab | null): { pages: readonly Found[]; places: readonly Found[] } {
  const words = useWords();
  const [stored, setStored] = useState<readonly PageEntry[]>([]);
  useEffect(() => void attempt(() => api.pages()).then((found) => found && setStored(found.pages)), []);
  const places = useMemo(() => {
    const prefix = tab ? prefixOf(tab) : "";
    const found = tab ? placesOf(shownPage(tab), studio().catalogue, (name) => tab.results[prefix + name], (name) => tab.analysis?.pins[prefix + name] ?? {}) : [];
    return found.map((place): Found => ({ ...place, aliases: [], keys: [], act: () => goToBlock(place.block) }));
  }, [tab]);
  const inside = (tab ? shownPage(tab).blocks : []).filter((block) => block.page !== undefined);
  return {
    pages: [
      ...inside.map((block): Found => ({ id: `inside ${block.name}`, name: block.page!, aliases: [block.name], note: words("find.inside"), keys: [], act: () => enterBlock(block.name) })),
      ...stored.map((page): Found => ({ id: `page ${page.id}`, name: page.name, aliases: [], note: words("find.page"), keys: [], act: () => openPage(page.id) })),
    ],
    places,
  };
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
