// SPDX-License-Identifier: Apache-2.0
/** One table of actions: shortcuts, command palette, menus and help are read from it. */

import type { Key } from "./words";

export interface Action {
  readonly id: ActionId;
  readonly title: Key;
  readonly keys: readonly string[];
  readonly group: "file" | "edit" | "view" | "run" | "see";
}

/** Keys as `Ctrl+Shift+Z`, a pair such as `Alt+A L` is pressed one after the other. Ctrl means Command on a Mac. */
const TABLE = [
  ["add", "action.add", ["/"], "edit"],
  ["commands", "action.commands", ["Ctrl+K"], "view"],
  ["find", "action.find", ["Ctrl+F"], "view"],
  ["run", "action.run", ["Ctrl+Enter"], "run"],
  ["run-to", "action.runTo", ["Shift+Enter"], "run"],
  ["step", "action.step", [], "run"],
  ["loop", "action.loop", [], "run"],
  ["reset", "action.reset", [], "run"],
  ["stop", "action.stop", ["Ctrl+."], "run"],
  ["gradient", "action.gradient", ["G"], "see"],
  ["check", "action.check", ["C"], "see"],
  ["compare", "action.compare", [], "see"],
  ["sweep", "action.sweep", [], "see"],
  ["viewer", "action.viewer", ["V"], "see"],
  ["wire", "action.wire", ["W"], "edit"],
  ["undo", "action.undo", ["Ctrl+Z"], "edit"],
  ["redo", "action.redo", ["Ctrl+Shift+Z", "Ctrl+Y"], "edit"],
  ["copy", "action.copy", ["Ctrl+C"], "edit"],
  ["cut", "action.cut", ["Ctrl+X"], "edit"],
  ["paste", "action.paste", ["Ctrl+V"], "edit"],
  ["duplicate", "action.duplicate", ["Ctrl+D"], "edit"],
  ["delete", "action.delete", ["Delete", "Backspace"], "edit"],
  ["select-all", "action.selectAll", ["Ctrl+A"], "edit"],
  ["rename", "action.rename", ["F2"], "edit"],
  ["page-from", "action.pageFrom", ["P"], "edit"],
  ["unfold", "action.unfold", ["Shift+P"], "edit"],
  ["keep", "action.keep", [], "file"],
  ["display", "action.display", ["D"], "edit"],
  ["panel", "action.panel", ["F9"], "view"],
  ["bypass", "action.bypass", ["B"], "edit"],
  ["mute", "action.mute", ["M"], "edit"],
  ["fold-gradients", "action.foldGradients", ["Shift+G"], "view"],
  ["group", "action.group", ["Ctrl+G"], "edit"],
  ["ungroup", "action.ungroup", ["Ctrl+Shift+G"], "edit"],
  ["collapse", "action.collapse", ["Ctrl+E"], "view"],
  ["open", "action.openPage", ["Enter"], "view"],
  ["up", "action.up", ["Alt+Up"], "view"],
  ["align-left", "action.alignLeft", ["Alt+A L"], "edit"],
  ["align-right", "action.alignRight", ["Alt+A R"], "edit"],
  ["align-top", "action.alignTop", ["Alt+A T"], "edit"],
  ["align-bottom", "action.alignBottom", ["Alt+A B"], "edit"],
  ["align-centre", "action.alignCentre", ["Alt+A C"], "edit"],
  ["align-middle", "action.alignMiddle", ["Alt+A M"], "edit"],
  ["distribute-x", "action.distributeX", ["Alt+A H"], "edit"],
  ["distribute-y", "action.distributeY", ["Alt+A V"], "edit"],
  ["tidy", "action.tidy", ["Shift+A"], "edit"],
  ["fit", "action.fit", ["F"], "view"],
  ["actual-size", "action.actualSize", ["Ctrl+0"], "view"],
  ["next-problem", "action.nextProblem", ["F8"], "view"],
  ["next-region", "action.nextRegion", ["F6"], "view"],
  ["region-before", "action.regionBefore", ["Shift+F6"], "view"],
  ["help", "action.help", ["?"], "view"],
  ["tour", "action.tour", [], "view"],
  ["save", "action.save", ["Ctrl+S"], "file"],
  ["snapshot", "action.snapshot", [], "file"],
  ["snapshots", "action.snapshots", [], "file"],
  ["home", "action.home", [], "file"],
  ["new", "action.new", [], "file"],
  ["open-file", "action.openFile", ["Ctrl+O"], "file"],
  ["files", "action.files", [], "file"],
  ["copy-python", "action.copyPython", [], "file"],
  ["export-python", "action.exportPython", [], "file"],
  ["export-tensorflow", "action.exportTensorflow", [], "file"],
  ["export-svg", "action.exportSvg", [], "file"],
  ["export-png", "action.exportPng", [], "file"],
  ["export-json", "action.exportJson", [], "file"],
  ["export-npz", "action.exportNpz", [], "file"],
  ["export-report", "action.exportReport", [], "file"],
  ["theme", "action.theme", [], "view"],
  ["language", "action.language", [], "view"],
  ["letters", "action.letters", [], "view"],
  ["toggle-left", "action.toggleLeft", ["Ctrl+B"], "view"],
  ["toggle-right", "action.toggleRight", ["Ctrl+I"], "view"],
  ["toggle-bottom", "action.toggleBottom", ["Ctrl+J"], "view"],
] as const satisfies readonly (readonly [string, Key, readonly string[], Action["group"]])[];

export type ActionId = (typeof TABLE)[number][0];

export const ACTIONS: readonly Action[] = TABLE.map(([id, title, keys, group]) => ({ id, title, keys, group }));

export interface Press {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
  readonly code?: string;
}

const NAMES: { readonly [key: string]: string } = { ArrowUp: "Up", ArrowDown: "Down", ArrowLeft: "Left", ArrowRight: "Right", " ": "Space" };

/** A key press as the table writes it. Signs such as `?` already hold their Shift. */
export function pressed(event: Press): string {
  const physical = event.altKey && event.code?.startsWith("Key") ? event.code.slice(3) : event.key;
  const key = NAMES[physical] ?? (physical.length === 1 ? physical.toUpperCase() : physical);
  const letter = /^[A-Z0-9]$/.test(key) || key.length > 1;
  const parts = [
    event.ctrlKey || event.metaKey ? "Ctrl" : "",
    event.altKey ? "Alt" : "",
    event.shiftKey && letter ? "Shift" : "",
    key,
  ];
  return parts.filter(Boolean).join("+");
}

/** True for keys that type a letter or a sign; they act only while the canvas has the focus. */
export function isSingle(key: string): boolean {
  return !/^(Ctrl|Alt|(Shift\+)?F\d)/.test(key);
}

/** The action of a press, given the first half of a pair that waits for its second. */
export function actionFor(press: string, waiting: string | null): ActionId | "wait" | null {
  const whole = waiting === null ? press : `${waiting} ${press}`;
  const found = ACTIONS.find((action) => action.keys.includes(whole));
  if (found) return found.id;
  return ACTIONS.some((action) => action.keys.some((keys) => keys.startsWith(`${whole} `))) ? "wait" : null;
}
