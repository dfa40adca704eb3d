// SPDX-License-Identifier: Apache-2.0
/** What a person aims at stays where it is: nothing moves under a press, and the view does not go where nobody wants it. */

import type { ReactFlowInstance } from "@xyflow/react";
import { activeTab, flow } from "./store";

const PRESSED = "button, a, select, [role=button], [role=menuitem], [role=tab]";
const GLIDE_MS = 200;
const TOLD_WITHIN_MS = 600;
const MEASURED_AFTER_MS = 80;

let isPressed = false;
/** How often a person has pressed a button of the mouse, turned its wheel, or pressed a key. */
let deeds = 0;
/** Until when the view glides; a glide that is broken off does not tell. */
let glidesUntil = 0;
let waiting: (() => void)[] = [];

export function reducedMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Do what may move things: at once, or when the button that is pressed has been let go and has had its click. */
export function whenReleased(work: () => void): void {
  if (isPressed) waiting.push(work);
  else work();
}

/** Move the view, in a glide that ends where a person presses. */
export function glide(move: (view: ReactFlowInstance, duration: number) => unknown): void {
  const view = flow.current;
  if (!view) return;
  const duration = reducedMotion() ? 0 : GLIDE_MS;
  glidesUntil = performance.now() + 2 * duration;
  move(view, duration);
}

export function isGliding(): boolean {
  return performance.now() < glidesUntil;
}

/** Move the view a little later, when what is new is measured, unless the person has gone on to something else. */
export function glideAfter(milliseconds: number, move: () => void): void {
  const before = deeds;
  window.setTimeout(() => {
    if (deeds === before) move();
  }, milliseconds);
}

/** Move the view when an edit that was just made is analysed: what is told of blocks makes them larger. */
export function glideWhenTold(move: () => void): void {
  const [before, known, end] = [deeds, activeTab()?.analysis, performance.now() + TOLD_WITHIN_MS];
  const look = () => {
    if (deeds !== before) return;
    if (activeTab()?.analysis === known && performance.now() < end) window.setTimeout(look, 20);
    else glideAfter(MEASURED_AFTER_MS, move);
  };
  look();
}

function onPress(event: PointerEvent): void {
  deeds += 1;
  isPressed = event.target instanceof Element && event.target.closest(PRESSED) !== null;
  if (isGliding()) void flow.current?.setViewport(flow.current.getViewport());
}

/** Buttons can be let go where nobody tells: over a menu of the system, or another window. */
function onMove(event: PointerEvent): void {
  if (isPressed && event.buttons === 0) onRelease();
}

function onRelease(): void {
  // The click comes after this event.
  window.setTimeout(() => {
    isPressed = false;
    const ready = waiting;
    waiting = [];
    for (const work of ready) work();
  }, 0);
}

const onDeed = () => (deeds += 1);

/** Start watching; returns what ends it. */
export function watchPresses(): () => void {
  const watched = [["pointerdown", onPress], ["pointerup", onRelease], ["pointercancel", onRelease], ["pointermove", onMove], ["wheel", onDeed], ["keydown", onDeed]] as const;
  for (const [name, listener] of watched) window.addEventListener(name, listener as EventListener, { capture: true, passive: true });
  return () => {
    for (const [name, listener] of watched) window.removeEventListener(name, listener as EventListener, { capture: true });
  };
}
