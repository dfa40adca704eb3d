// SPDX-License-Identifier: Apache-2.0
/** What every action does. */

import type { ActionId } from "../core/actions";
import { api, type EngineName, type ExportFormat } from "../core/api";
import { align, distribute, type Edge } from "../core/arrange";
import { moveBlocks } from "../core/commands";
import { displayId } from "../core/displays";
import { findBlock } from "../core/document";
import { hiddenIn } from "../core/groups";
import type { PinPlace } from "../core/pins";
import { tidy } from "../editor/tidy";
import * as edits from "./edits";
import { foldGradients, setMode } from "./folding";
import { boxes } from "./layout";
import { activate, attempt, closePanel, enterBlock, goUp, newPage, openPanel, savePage, toBase64 } from "./pages";
import { COLD_RUNS, compareEngines } from "./comparisons";
import { goToRegion } from "./regions";
import { checkGradients, isRunning, runPage, stopRun } from "./runs";
import { activeTab, flow, prefixOf, say, selectedBlocks, setSettings, shownPage, studio, toldNow, update, updateTab, type Tab, type ViewerState, type ViewerTab } from "./store";
import { glide } from "./view";
import { startWiring } from "./wiring";
import { word } from "./words";

function alignTo(edge: Edge): void {
  const tab = activeTab();
  if (tab && tab.selection.size > 1) edits.editPage(word("action.alignLeft"), (page) => moveBlocks(page, align(boxes(tab.selection), edge)));
}

function spread(axis: "x" | "y"): void {
  const tab = activeTab();
  if (tab && tab.selection.size > 2) edits.editPage(word("action.distributeX"), (page) => moveBlocks(page, distribute(boxes(tab.selection), axis)));
}

/** The first block of the selection. */
export function firstSelected(): string | null {
  const [first] = selectedBlocks(activeTab());
  return first ?? null;
}

export function openViewer(block: string, output = "", tab: ViewerTab = studio().viewer?.tab ?? "slices", more: Partial<ViewerState> = {}): void {
  update({ viewer: { block, output, tab, against: "", ...more } });
  // The viewer takes its place from the canvas; the block it shows stays in sight.
  window.setTimeout(() => goToBlock(block), 80);
}

/** Open a block: the page that it stands for, its values, or what can be typed there. */
export function openBlock(name: string): void {
  const tab = activeTab();
  const block = tab && findBlock(shownPage(tab), name);
  if (!tab || !block) return;
  if (block.page !== undefined) return enterBlock(name);
  edits.select([name]);
  if ((tab.results[prefixOf(tab) + name]?.outputs.length ?? 0) > 0) return openViewer(name);
  setSettings({ right: true });
  update({ viewer: null });
  window.setTimeout(() => document.querySelector<HTMLElement>(".inspector .attr-field :is(input, select, textarea)")?.focus(), 60);
}

function toggleViewer(): void {
  const chosen = firstSelected();
  if (studio().viewer || chosen === null) update({ viewer: null });
  else openViewer(chosen);
}

export function goToBlock(name: string): void {
  edits.select([name]);
  const tab = activeTab();
  // A block inside of a collapsed group is shown where the group is.
  const node = flow.current?.getNode((tab && hiddenIn(shownPage(tab)).get(name)) ?? name);
  if (!node) return;
  const [x, y] = [node.position.x + (node.measured?.width ?? 200) / 2, node.position.y + (node.measured?.height ?? 100) / 2];
  glide((view, duration) => view.setCenter(x, y, { zoom: Math.max(view.getZoom(), 0.8), duration }));
  focusBlock(name);
}

export function focusBlock(name: string): void {
  document.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(name)}"]`)?.focus({ preventScroll: true });
}

/** One to one, around the selected block where there is one. */
function actualSize(): void {
  const name = firstSelected();
  const node = name === null ? undefined : flow.current?.getNode(name);
  if (!node) return void flow.current?.zoomTo(1);
  const { x, y } = node.position;
  void flow.current?.setCenter(x + (node.measured?.width ?? 200) / 2, y + (node.measured?.height ?? 100) / 2, { zoom: 1 });
}

let lastProblem = -1;

function nextProblem(): void {
  const tab = activeTab();
  const problems = [...(tab?.analysis?.problems ?? []), ...(tab?.analysis?.warnings ?? [])];
  if (!tab || problems.length === 0) return;
  lastProblem = (lastProblem + 1) % problems.length;
  const problem = problems[lastProblem]!;
  update({ bottomTab: "problems", spoken: toldNow(problem.message) });
  goToBlock(problem.block.slice(prefixOf(tab).length));
}

function download(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const ENDINGS: { readonly [format in ExportFormat]: string } = {
  python: ".py", tensorflow: "_tf.py", svg: ".svg", png: ".png", json: ".vox.json", npz: ".npz", report: "-report.html",
};

/** What is on the screen, as a file that holds the page. */
async function pictureOf(tab: Tab, format: "svg" | "png"): Promise<Blob> {
  const { svgOf, pngOf } = await import("../editor/picture");
  const svg = svgOf(shownPage(tab).name);
  const picture = format === "svg" ? new Blob([svg]) : await pngOf(svg);
  return api.pictureOf(tab.history.now, format, toBase64(await picture.arrayBuffer()));
}

async function exportAs(format: ExportFormat): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const ofRun = format === "npz" || format === "report";
  // What a run gave belongs to the page as it was then.
  const document = ofRun ? (tab.run?.document ?? tab.history.now) : tab.history.now;
  const data = await attempt(() => (format === "svg" || format === "png" ? pictureOf(tab, format) : api.exportPage(document, format, ofRun ? (tab.run?.id ?? null) : null)));
  if (data) download(`${tab.history.now.name.replaceAll(/[^\w.-]+/g, "_")}${ENDINGS[format]}`, data);
}

async function copyPython(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const script = await attempt(async () => (await api.exportPage(tab.history.now, "python", null)).text());
  if (script === null) return;
  await navigator.clipboard?.writeText(script).catch(() => undefined);
  say(word("notice.copiedPython"));
}

async function keepSnapshot(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  await savePage();
  const name = new Date().toISOString().slice(0, 16).replace("T", " ");
  if (await attempt(() => api.snapshot(tab.id, name))) say(word("notice.snapshot"));
}

async function resetSession(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  if (await attempt(() => api.resetSession(tab.id))) say(word("notice.reset"));
  updateTab(tab.id, () => ({ trends: {} }));
}

function deleteOrUp(): void {
  const tab = activeTab();
  if (!tab) return;
  if (tab.selection.size === 0 && tab.wires.size === 0) goUp();
  else edits.removeSelection();
}

function otherEngine(): EngineName {
  const { engines, settings } = studio();
  const available = engines.filter((engine) => engine.available && engine.name !== settings.engine);
  return (available.find((engine) => engine.name === "tensorflow") ?? available[0])?.name ?? settings.engine;
}

export function openFileDialog(): void {
  document.querySelector<HTMLInputElement>("#open-file")?.click();
}

const DO: { readonly [id in ActionId]: () => unknown } = {
  add: () => openQuickAdd(null),
  commands: () => update({ dialog: "commands" }),
  find: () => update({ dialog: "commands" }),
  run: () => runPage(),
  "run-to": () => runTo(),
  step: () => runPage({ keep: true }),
  loop: () => runPage({ cycles: 100, keep: true }),
  reset: () => resetSession(),
  stop: () => stopRun(),
  gradient: () => edits.addGradients(),
  check: () => checkGradients(),
  compare: () => compareEngines([...new Set([studio().settings.engine, otherEngine()])], COLD_RUNS),
  sweep: () => {
    setSettings({ bottom: true });
    update({ bottomTab: "sweep" });
  },
  viewer: () => toggleViewer(),
  wire: () => startWiring(),
  undo: () => edits.undoEdit(),
  redo: () => edits.redoEdit(),
  copy: () => edits.copySelection(),
  cut: () => {
    edits.copySelection();
    edits.removeSelection();
  },
  paste: () => edits.paste(),
  duplicate: () => edits.duplicate(),
  delete: () => deleteOrUp(),
  "select-all": () => {
    const tab = activeTab();
    const page = tab && shownPage(tab);
    if (page) edits.select([...page.blocks.map((block) => block.name), ...(page.displays ?? []).map((one) => displayId(one.name))]);
  },
  rename: () => update({ renaming: firstSelected() }),
  "page-from": () => edits.makePage(),
  unfold: () => edits.unfold(),
  keep: () => update({ dialog: "keep" }),
  display: () => update({ dialog: "displays" }),
  panel: () => (studio().panel ? closePanel() : openPanel()),
  bypass: () => setMode("bypassed"),
  mute: () => setMode("muted"),
  "fold-gradients": () => foldGradients(),
  group: () => edits.groupSelection(),
  ungroup: () => Promise.all(edits.selectedGroups().map((group) => edits.ungroup(group.title))),
  collapse: () => Promise.all(edits.selectedGroups().map((group) => edits.changeGroup(group.title, { collapsed: !group.collapsed }))),
  open: () => {
    const name = firstSelected();
    if (name !== null) openBlock(name);
  },
  up: () => goUp(),
  "align-left": () => alignTo("left"),
  "align-right": () => alignTo("right"),
  "align-top": () => alignTo("top"),
  "align-bottom": () => alignTo("bottom"),
  "align-centre": () => alignTo("centre"),
  "align-middle": () => alignTo("middle"),
  "distribute-x": () => spread("x"),
  "distribute-y": () => spread("y"),
  tidy: () => tidy(),
  fit: () => glide((view, duration) => view.fitView({ padding: 0.12, maxZoom: 1.2, duration })),
  "actual-size": () => actualSize(),
  "next-problem": () => nextProblem(),
  "next-region": () => goToRegion(1),
  "region-before": () => goToRegion(-1),
  help: () => update({ dialog: "help" }),
  tour: async () => (await import("../panels/Tour")).startTour(),
  files: () => update({ dialog: "files" }),
  save: () => savePage(),
  snapshot: () => keepSnapshot(),
  snapshots: () => update({ dialog: "snapshots" }),
  home: () => activate(null),
  new: () => newPage(),
  "open-file": () => openFileDialog(),
  "copy-python": () => copyPython(),
  "export-python": () => exportAs("python"),
  "export-tensorflow": () => exportAs("tensorflow"),
  "export-svg": () => exportAs("svg"),
  "export-png": () => exportAs("png"),
  "export-json": () => exportAs("json"),
  "export-npz": () => exportAs("npz"),
  "export-report": () => exportAs("report"),
  theme: () => setSettings({ theme: studio().settings.theme === "dark" ? "light" : "dark" }),
  language: () => setSettings({ language: studio().settings.language === "en" ? "ko" : "en" }),
  letters: () => {
    const letters = !studio().settings.letters;
    setSettings({ letters });
    say(word(letters ? "notice.lettersOn" : "notice.lettersOff"));
  },
  "toggle-left": () => setSettings({ left: !studio().settings.left }),
  "toggle-right": () => setSettings({ right: !studio().settings.right }),
  "toggle-bottom": () => setSettings({ bottom: !studio().settings.bottom }),
};

function runTo(): Promise<void> | undefined {
  const tab = activeTab();
  const name = firstSelected();
  if (!tab || name === null) return undefined;
  // A block inside of a nested page runs with the block that stands for the page.
  return runPage({ to: tab.trail[0]?.block ?? name });
}

export function openQuickAdd(from: PinPlace | null, screen?: { x: number; y: number }): void {
  const canvas = document.querySelector(".canvas")?.getBoundingClientRect();
  const at = screen ?? { x: (canvas?.x ?? 0) + (canvas?.width ?? 600) / 2 - 150, y: (canvas?.y ?? 0) + 90 };
  const point = flow.current?.screenToFlowPosition(at) ?? { x: 0, y: 0 };
  update({ quickAdd: { at: [at.x, at.y], place: [point.x, point.y], from } });
}

const WITHOUT_PAGE = new Set<ActionId>(["commands", "help", "tour", "home", "new", "open-file", "theme", "language", "letters", "next-region", "region-before"]);

/** True where an action can do something now. */
export function isPossible(id: ActionId): boolean {
  if (id === "stop") return isRunning();
  return WITHOUT_PAGE.has(id) || activeTab() !== null;
}

export function perform(id: ActionId): void {
  if (isPossible(id)) void edits.afterEdits(DO[id]);
}
