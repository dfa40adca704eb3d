// SPDX-License-Identifier: Apache-2.0
/** What the studio knows: open pages, results, settings. Documents change only through `editPage`. */

import { create } from "zustand";
import type { ReactFlowInstance } from "@xyflow/react";
import type { Action } from "../core/actions";
import type { CheckRow, Engine, EngineName, Reached, Run, RunRow, RunSide, TraceWindow } from "../core/api";
import type { Point } from "../core/commands";
import { displayOf } from "../core/displays";
import { pageAt, type Catalogue } from "../core/document";
import { record, type History } from "../core/history";
import type { Analysis, Json, Op, Page, PagePath } from "../core/model";
import type { PinPlace } from "../core/pins";
import type { ToldRun } from "../core/progress";
import type { Spot } from "../core/space";
import type { Tell } from "../core/told";
import type { Language } from "../core/words";

/** One step into a nested page: the block that was opened, and the page that it stands for. */
export interface Opened {
  readonly block: string;
  readonly page: string;
}

export interface TrendPoint {
  readonly cycle: number;
  readonly value: number;
}

export interface ActiveRun {
  readonly id: string;
  readonly state: Run["state"];
  readonly engine: string;
  readonly document: Page;
  readonly seconds: number | null;
  readonly cycle: number;
  readonly message: string;
}

export interface WaitingRun {
  readonly run: ActiveRun;
  readonly cycles: number;
  readonly keep: boolean;
}

export interface Tab {
  readonly id: string;
  readonly name: string;
  readonly revision: number;
  readonly history: History<Page>;
  readonly saved: Page;
  readonly trail: readonly Opened[];
  readonly selection: ReadonlySet<string>;
  readonly wires: ReadonlySet<string>;
  readonly analysis: Analysis | null;
  readonly results: { readonly [block: string]: ToldRun };
  readonly run: ActiveRun | null;
  /** Runs that wait for the one under way, the next one first. */
  readonly queue: readonly WaitingRun[];
  readonly runs: readonly Run[];
  readonly trends: { readonly [series: string]: readonly TrendPoint[] };
  readonly draft: "saved" | "draft" | "unsaved";
  readonly recovery: { readonly document: Page; readonly savedAt: number } | null;
  readonly conflict: number | null;
  /** Values of placeholders for runs. */
  readonly feeds: { readonly [block: string]: Json };
  readonly checks: { readonly busy: boolean; readonly rows: readonly CheckRow[] } | null;
  readonly comparison: RunComparison | null;
  /** Runs of the list that are compared, and whose trends are drawn together. */
  readonly chosen: ReadonlySet<string>;
}

/** Runs side by side; all are compared with the first. */
export interface RunComparison {
  readonly busy: boolean;
  readonly runs: readonly Run[];
  readonly rows: readonly RunRow[];
  /** The run that is measured now, and for which time. */
  readonly measuring?: string;
  readonly repeat?: number;
}

export interface Trace {
  readonly block: string;
  readonly output: string;
  readonly index: readonly number[];
  readonly value: number;
  readonly windows: readonly TraceWindow[];
  /** What reads the element. */
  readonly reached: readonly Reached[];
  /** It stays until it is let go, wherever the pointer goes. */
  readonly pinned: boolean;
}

/** The element that a person points out on the planes of an output; pictures of others go to the same spot. */
export interface Cursor {
  readonly block: string;
  readonly output: string;
  readonly index: readonly number[];
  readonly spot: Spot;
}

export interface QuickAdd {
  readonly at: Point;
  readonly place: Point;
  readonly from: PinPlace | null;
}

export interface Wiring {
  readonly start: PinPlace;
  readonly candidates: readonly PinPlace[];
  readonly at: number;
}

/** What a menu is about: a block, the page, or all actions of a kind. */
export type MenuPlace = "block" | "page" | Action["group"];
export type BottomTab = "problems" | "runs" | "trends" | "check" | "compare" | "sweep" | "volumes" | "log";
export type ViewerTab = "table" | "slices" | "planes" | "volume" | "histogram" | "diff";

export interface ViewerState {
  readonly block: string;
  readonly output: string;
  readonly tab: ViewerTab;
  readonly against: string;
  /** A result of a run that is not the one on the page, and what that run and the one it is compared with are called. */
  readonly kept?: KeptResult | undefined;
}

export interface KeptResult extends Pick<RunSide, "hash" | "dtype" | "shape"> {
  readonly of: string;
  readonly against: string;
}

export interface Settings {
  readonly theme: "dark" | "light";
  readonly language: Language;
  readonly letters: boolean;
  readonly left: boolean;
  readonly right: boolean;
  readonly bottom: boolean;
  readonly engine: EngineName;
  readonly depth: number;
  /** Somebody has taken the tour, or does not want it. */
  readonly toured: boolean;
}

export interface LogLine {
  readonly time: number;
  readonly level: "info" | "error";
  readonly text: string;
}

export interface Studio {
  readonly ops: readonly Op[];
  /** The pages of the library, told as ops are. */
  readonly library: readonly Op[];
  readonly catalogue: Catalogue;
  readonly engines: readonly Engine[];
  readonly tabs: { readonly [id: string]: Tab };
  readonly order: readonly string[];
  readonly active: string | null;
  readonly online: boolean;
  readonly settings: Settings;
  readonly bottomTab: BottomTab;
  readonly leftTab: "blocks" | "pages" | "outline";
  readonly quickAdd: QuickAdd | null;
  /** The menu of a block or of the page, where the pointer asked for it. */
  readonly menu: { readonly at: Point; readonly on: MenuPlace } | null;
  readonly dialog: "commands" | "help" | "files" | "displays" | "snapshots" | "keep" | null;
  /** The page is shown as a panel: its displays alone. */
  readonly panel: boolean;
  /** The op that is explained on a small grid. */
  readonly learning: string | null;
  /** The stop of the tour that is shown. */
  readonly tour: number | null;
  readonly renaming: string | null;
  readonly wiring: Wiring | null;
  readonly dragging: PinPlace | null;
  /** While a wire is dragged, the pins that it can go to, as `side:block.pin`. */
  readonly fitting: ReadonlySet<string> | null;
  readonly trace: Trace | null;
  readonly cursor: Cursor | null;
  readonly viewer: ViewerState | null;
  readonly pinned: { readonly [number: string]: { readonly tab: string; readonly block: string } };
  readonly notice: Notice | null;
  readonly spoken: string;
  /** Says in Korean what the server says, once somebody reads Korean. */
  readonly tell: Tell | null;
  readonly log: readonly LogLine[];
}

const SETTINGS_KEY = "voxgrad.settings";

function storedSettings(): Settings {
  const preferred: Settings = {
    theme: matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark",
    language: navigator.language.startsWith("ko") ? "ko" : "en",
    letters: true,
    left: true,
    right: true,
    bottom: true,
    engine: "cpu",
    depth: 1,
    toured: false,
  };
  try {
    return { ...preferred, ...(JSON.parse(localStorage.getItem(SETTINGS_KEY) ?? "{}") as Partial<Settings>) };
  } catch {
    return preferred;
  }
}

export const useStudio = create<Studio>(() => ({
  ops: [],
  library: [],
  catalogue: new Map(),
  engines: [],
  tabs: {},
  order: [],
  active: null,
  online: true,
  settings: storedSettings(),
  bottomTab: "problems",
  leftTab: "blocks",
  quickAdd: null,
  menu: null,
  dialog: null,
  panel: false,
  learning: null,
  tour: null,
  renaming: null,
  wiring: null,
  dragging: null,
  fitting: null,
  trace: null,
  cursor: null,
  viewer: null,
  pinned: {},
  notice: null,
  spoken: "",
  tell: null,
  log: [],
}));

export const studio = useStudio.getState;
export const update = useStudio.setState;

/** The drawing, for those who need sizes and places on the screen. */
export const flow: { current: ReactFlowInstance | null } = { current: null };

export function setSettings(change: Partial<Settings>): void {
  const settings = { ...studio().settings, ...change };
  update({ settings });
  localStorage.setItem(SETTINGS_KEY, JSON.stringify(settings));
}

export function activeTab(state: Studio = studio()): Tab | null {
  return state.active === null ? null : (state.tabs[state.active] ?? null);
}

export function pathOf(tab: Tab): PagePath {
  return tab.trail.map((step) => step.page);
}

/** What stands before the name of a block in messages about the whole document. */
export function prefixOf(tab: Tab): string {
  return tab.trail.map((step) => `${step.block}/`).join("");
}

/** The names of blocks in a selection; displays have ids of another form. */
export function selectedBlocks(tab: Tab | null): string[] {
  return [...(tab?.selection ?? [])].filter((id) => displayOf(id) === null);
}

/** The page that is on the screen. */
export function shownPage(tab: Tab): Page {
  return pageAt(tab.history.now, pathOf(tab));
}

export function updateTab(id: string, change: (tab: Tab) => Partial<Tab>): void {
  update((state) => {
    const tab = state.tabs[id];
    return tab ? { tabs: { ...state.tabs, [id]: { ...tab, ...change(tab) } } } : {};
  });
}

/** Record a new version of a tab's document as one step of its history. */
export function recordDocument(id: string, document: Page, title: string, merge?: string): void {
  updateTab(id, (tab) => {
    const history = record(tab.history, document, title, Date.now(), merge);
    return history === tab.history ? {} : { history, draft: "unsaved" };
  });
}

/** What a button beside a notice does. */
export interface Offer {
  readonly title: string;
  readonly act: () => void;
}

export interface Notice {
  readonly text: string;
  readonly level: "info" | "error";
  readonly offer?: Offer;
}

/** A text of the server in the chosen language. */
export function toldNow(text: string): string {
  const { tell, settings } = studio();
  return settings.language === "ko" && tell ? tell(text) : text;
}

export function say(said: string, level: "info" | "error" = "info", offer?: Offer): void {
  const text = toldNow(said);
  update((state) => ({
    notice: { text, level, ...(offer ? { offer } : {}) },
    spoken: text,
    log: [...state.log, { time: Date.now(), level, text }].slice(-500),
  }));
}

/** Tell screen readers, and nobody else. */
export function speak(text: string): void {
  update({ spoken: text });
}
