// SPDX-License-Identifier: Apache-2.0
/** Keys of the whole studio. Single letters act only while the canvas, and no field, has the focus. */

import { useEffect } from "react";
import { actionFor, isSingle, pressed } from "../core/actions";
import { nearest, type Direction } from "../core/arrange";
import { moveBlocks, type Point } from "../core/commands";
import { nudged } from "../state/displays";
import { editPage, select } from "../state/edits";
import { boxes, stepped } from "../state/layout";
import { firstSelected, goToBlock, openViewer, perform } from "../state/perform";
import { letTraceGo } from "../state/runs";
import { activeTab, say, studio, update } from "../state/store";
import { wiringKey } from "../state/wiring";
import { word } from "../state/words";

const ARROWS: { readonly [key: string]: Direction } = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
const STEPS: { readonly [direction in Direction]: Point } = { left: [-10, 0], right: [10, 0], up: [0, -10], down: [0, 10] };

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable], dialog") !== null;
}

function onCanvas(): boolean {
  const focused = document.activeElement;
  return focused === document.body || focused === null || focused.closest(".canvas") !== null;
}

/** Keys that belong to the canvas and have no entry in the table: arrows, Escape, numbers. */
function canvasKey(event: KeyboardEvent): boolean {
  const tab = activeTab();
  if (!tab) return false;
  const direction = ARROWS[event.key];
  if (direction && event.altKey && tab.selection.size > 0) {
    const places = stepped(tab.selection, STEPS[direction]);
    editPage("move", (page) => nudged(moveBlocks(page, places), tab.selection, STEPS[direction]), "arrows");
    return true;
  }
  if (direction && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    const [first = ""] = tab.selection;
    const next = nearest(boxes(undefined, true), first, direction);
    if (next !== null) goToBlock(next);
    return true;
  }
  if (event.key === "Escape") {
    if (studio().trace?.pinned) letTraceGo();
    else if (studio().viewer) update({ viewer: null });
    else select([]);
    return true;
  }
  return /^[1-9]$/.test(event.key) && studio().settings.letters && pinOrShow(event.key, event.ctrlKey || event.metaKey);
}

/** A number shows the block that it was given; the first press on a selected block gives it. */
function pinOrShow(number: string, give: boolean): boolean {
  const tab = activeTab();
  const pinned = studio().pinned[number];
  const chosen = firstSelected();
  if (tab && pinned?.tab === tab.id && !give) {
    goToBlock(pinned.block);
    openViewer(pinned.block);
    return true;
  }
  if (!tab || chosen === null) return false;
  update((state) => ({ pinned: { ...state.pinned, [number]: { tab: tab.id, block: chosen } } }));
  say(word("viewer.pinned", { number, block: chosen }));
  return true;
}

export function useKeyboard(): void {
  useEffect(() => {
    let waiting: string | null = null;
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
      const typing = isTyping(event.target);
      if (!typing && wiringKey(event.key)) {
        event.preventDefault();
        return;
      }
      const key = pressed(event);
      const first = waiting;
      waiting = null;
      if (first === null && isSingle(key) && (typing || !onCanvas())) return;
      if (first === null && isSingle(key) && key.length === 1 && !studio().settings.letters) return;
      if (typing && /^Ctrl\+(Z|Shift\+Z|Y|C|X|V|A|D|I|B)$/.test(key)) return;
      const focused = document.activeElement;
      if ((key === "Enter" || key === " ") && focused?.closest("button, a, [role=button]:not(.handle)")) return;
      const action = actionFor(key, first);
      if (action === "wait") waiting = key;
      else if (action) perform(action);
      else if (typing || !canvasKey(event)) return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}
