// SPDX-License-Identifier: Apache-2.0
/** Wiring by keyboard: W starts at a pin, arrows go over the pins that fit, Enter connects. */

import { findBlock, inputPins, outputPins } from "../core/document";
import { compatiblePins, type PinPlace } from "../core/pins";
import { connectPins, localAnalysis } from "./edits";
import { activeTab, selectedBlocks, shownPage, speak, studio, update, type Tab } from "./store";
import { word } from "./words";

/** The pins of a block from which a wire can start: outputs first. */
function startsOf(tab: Tab, name: string): PinPlace[] {
  const page = shownPage(tab);
  const block = findBlock(page, name);
  if (!block) return [];
  const { catalogue } = studio();
  return [
    ...outputPins(page, block, catalogue).map((pin): PinPlace => ({ block: name, pin: pin.name, side: "output" })),
    ...inputPins(page, block, catalogue).map((pin): PinPlace => ({ block: name, pin: pin.name, side: "input" })),
  ];
}

function focusedPin(): PinPlace | null {
  const pin = document.activeElement?.closest<HTMLElement>("[data-pin]");
  if (!pin) return null;
  return { block: pin.dataset["block"]!, pin: pin.dataset["pin"]!, side: pin.dataset["side"] as PinPlace["side"] };
}

/** Start at the pin with the focus, or at the selected block; pressed again, go to the next pin of the block. */
export function startWiring(): void {
  const tab = activeTab();
  if (!tab) return;
  const old = studio().wiring;
  const [selected] = selectedBlocks(tab);
  const focused = focusedPin();
  const block = old?.start.block ?? focused?.block ?? selected;
  if (block === undefined) return;
  const starts = startsOf(tab, block);
  const at = old ? starts.findIndex((pin) => pin.pin === old.start.pin && pin.side === old.start.side) + 1 : 0;
  const start = !old && focused ? focused : starts[at % Math.max(1, starts.length)];
  if (!start) return;
  const candidates = compatiblePins(shownPage(tab), studio().catalogue, localAnalysis(tab), start);
  update({ wiring: { start, candidates, at: 0 } });
  speak(candidates.length > 0 ? `${word("wire.started", { pin: `${start.block} ${start.pin}` })} ${nameOf(candidates[0]!)}` : word("wire.none"));
}

function nameOf(place: PinPlace): string {
  return `${place.block} ${place.pin}`;
}

/** Take a key while a wire is being drawn; true where it was used. */
export function wiringKey(key: string): boolean {
  const wiring = studio().wiring;
  if (!wiring) return false;
  if (key === "Escape") {
    update({ wiring: null });
    return true;
  }
  if (key === "Enter") {
    const target = wiring.candidates[wiring.at];
    update({ wiring: null });
    if (target && connectPins(wiring.start, target)) {
      speak(word("wire.connected", { from: nameOf(wiring.start), to: nameOf(target) }));
    }
    return true;
  }
  const step = key === "ArrowDown" || key === "ArrowRight" ? 1 : key === "ArrowUp" || key === "ArrowLeft" ? -1 : 0;
  if (step === 0 || wiring.candidates.length === 0) return false;
  const at = (wiring.at + step + wiring.candidates.length) % wiring.candidates.length;
  update({ wiring: { ...wiring, at } });
  speak(nameOf(wiring.candidates[at]!));
  return true;
}
