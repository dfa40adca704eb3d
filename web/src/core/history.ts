// SPDX-License-Identifier: Apache-2.0
/** Undo and redo of a document: patches only. Selection, view and results are no steps. */

import { apply, diff, invert, type Patch } from "./patch";

export interface Step {
  readonly title: string;
  readonly patches: readonly Patch[];
  /** Steps with the same key that follow each other at once are one step: typing, a held arrow key. */
  readonly merge?: string;
  readonly time: number;
}

export interface History<T> {
  readonly now: T;
  readonly past: readonly Step[];
  readonly future: readonly Step[];
}

const MERGE_WITHIN_MS = 1200;
const MOST_STEPS = 500;

export function start<T>(now: T): History<T> {
  return { now, past: [], future: [] };
}

/** The history after an edit; an edit that changes nothing is no step. */
export function record<T>(history: History<T>, after: T, title: string, time: number, merge?: string): History<T> {
  const patches = diff(history.now, after);
  if (patches.length === 0) return history;
  const last = history.past.at(-1);
  if (merge !== undefined && last?.merge === merge && time - last.time < MERGE_WITHIN_MS && history.future.length === 0) {
    const before = apply(history.now, invert(last.patches));
    const step: Step = { title, patches: diff(before, after), merge, time };
    return { now: after, past: [...history.past.slice(0, -1), step], future: [] };
  }
  const step: Step = { title, patches, time, ...(merge === undefined ? {} : { merge }) };
  return { now: after, past: [...history.past, step].slice(-MOST_STEPS), future: [] };
}

export function undo<T>(history: History<T>): History<T> {
  const step = history.past.at(-1);
  if (!step) return history;
  return {
    now: apply(history.now, invert(step.patches)),
    past: history.past.slice(0, -1),
    future: [step, ...history.future],
  };
}

export function redo<T>(history: History<T>): History<T> {
  const [step, ...future] = history.future;
  if (!step) return history;
  return { now: apply(history.now, step.patches), past: [...history.past, step], future };
}
