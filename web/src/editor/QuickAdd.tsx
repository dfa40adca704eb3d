// SPDX-License-Identifier: Apache-2.0
/** Add a block by typing where it should stand; from a dropped wire, only what the wire can go to. */

import { useMemo } from "react";
import { findBlock, inputPins, outputPins } from "../core/document";
import type { Op } from "../core/model";
import { firstFit, givenTypes, type PinPlace } from "../core/pins";
import { search } from "../core/search";
import { addOp } from "../state/edits";
import { addKept, GROUP } from "../state/library";
import { focusBlock } from "../state/perform";
import { activeTab, prefixOf, shownPage, studio, update, useStudio } from "../state/store";
import { useWords } from "../state/words";
import { Finder } from "../ui/Finder";

/** The element types that travel over a wire from this pin. */
function typesAt(place: PinPlace): readonly string[] {
  const tab = activeTab();
  const page = tab && shownPage(tab);
  const block = page && findBlock(page, place.block);
  if (!block) return [];
  if (place.side === "input") return inputPins(page, block, studio().catalogue).find((pin) => pin.name === place.pin)?.types ?? [];
  const pin = outputPins(page, block, studio().catalogue).find((one) => one.name === place.pin);
  return pin ? givenTypes(pin, tab.analysis?.pins[prefixOf(tab) + place.block]?.[place.pin]) : [];
}

export function QuickAdd() {
  const quick = useStudio((state) => state.quickAdd);
  const declared = useStudio((state) => state.ops);
  const library = useStudio((state) => state.library);
  const ops = useMemo(() => [...declared, ...library], [declared, library]);
  const words = useWords();
  const types = useMemo(() => (quick?.from ? typesAt(quick.from) : []), [quick]);
  const fitting = useMemo(() => {
    if (!quick?.from) return ops;
    const side = quick.from.side === "output" ? "inputs" : "outputs";
    return ops.filter((op) => firstFit(op, side, types) !== undefined);
  }, [ops, quick, types]);
  if (!quick) return null;
  const close = () => update({ quickAdd: null });
  const pick = (op: Op) => {
    close();
    const focus = (name: string | null) => {
      if (name !== null) requestAnimationFrame(() => focusBlock(name));
    };
    if (op.group === GROUP) void addKept(op, quick.place, quick.from).then(focus);
    else focus(addOp(op, quick.place, quick.from));
  };
  const title = quick.from
    ? words(quick.from.side === "output" ? "quick.titleTyped" : "quick.titleGiving", { type: types.length === 1 ? types[0]! : "…" })
    : words("quick.title");
  const left = Math.min(quick.at[0], window.innerWidth - 360);
  const top = Math.min(quick.at[1], window.innerHeight - 380);
  return (
    <>
      <div className="shade" onMouseDown={close} />
      <div className="quick-add" style={{ left, top }} role="dialog" aria-label={title}>
        <p className="quick-title">{title}</p>
        <Finder
          label={title}
          placeholder={words("palette.search")}
          find={(query) => search(fitting, query, 60)}
          keyOf={(op) => `${op.group} ${op.name}`}
          render={(op) => (
            <>
              <span className="entry-name">{op.name}</span>
              <span className="entry-note">{op.summary || (op.group === GROUP ? words("ops.library") : "")}</span>
            </>
          )}
          onPick={pick}
          onClose={close}
          none={(query) => words("palette.none", { query })}
        />
      </div>
    </>
  );
}
