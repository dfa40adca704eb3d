// SPDX-License-Identifier: Apache-2.0
/** Which display is added: a list of the kinds. */

import type { DisplayKind } from "../core/displays";
import { search } from "../core/search";
import { KINDS } from "../generated/displays";
import { addDisplay } from "../state/displays";
import { update } from "../state/store";
import { useWords } from "../state/words";
import { Dialog } from "../ui/Dialog";
import { Finder } from "../ui/Finder";

const close = () => update({ dialog: null });

export function AddDisplay() {
  const words = useWords();
  const kinds = (Object.keys(KINDS) as DisplayKind[]).map((kind) => ({ kind, name: words(`display.${kind}`), aliases: [kind], note: words(`display.${kind}.note`) }));
  return (
    <Dialog label={words("action.display")} className="commands" onClose={close}>
      <Finder
        label={words("action.display")}
        placeholder={words("display.search")}
        find={(query) => search(kinds, query)}
        keyOf={(entry) => entry.kind}
        render={(entry) => (
          <>
            <span className="entry-name">{entry.name}</span>
            <span className="entry-note">{entry.note}</span>
          </>
        )}
        onPick={({ kind }) => {
          close();
          void addDisplay(kind);
        }}
        onClose={close}
        none={(query) => words("palette.none", { query })}
      />
    </Dialog>
  );
}
