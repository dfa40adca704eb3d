// SPDX-License-Identifier: Apache-2.0
/** A finger that stays is the right button: not every system tells that. */

import { useEffect, type RefObject } from "react";

const LONG_MS = 500;
const STILL = 10;

/** Call `act` where a finger has rested on an element; the click that the finger would make as it leaves is none. */
export function useLongPress(element: RefObject<HTMLElement | null>, act: (target: Element, x: number, y: number) => void): void {
  useEffect(() => {
    const here = element.current;
    if (!here) return undefined;
    let timer = 0;
    let start: { x: number; y: number } | null = null;
    let isDone = false;
    const stop = () => {
      window.clearTimeout(timer);
      start = null;
    };
    const onStart = (event: TouchEvent) => {
      stop();
      isDone = false;
      const [touch] = event.touches;
      const target = event.target;
      if (event.touches.length !== 1 || !touch || !(target instanceof Element)) return;
      const [x, y] = [touch.clientX, touch.clientY];
      start = { x, y };
      timer = window.setTimeout(() => {
        isDone = true;
        act(target, x, y);
      }, LONG_MS);
    };
    const onMove = (event: TouchEvent) => {
      const [touch] = event.touches;
      if (start && touch && Math.hypot(touch.clientX - start.x, touch.clientY - start.y) > STILL) stop();
    };
    const onEnd = (event: TouchEvent) => {
      stop();
      if (isDone) event.preventDefault();
      isDone = false;
    };
    const own = { capture: true, passive: false } as const;
    here.addEventListener("touchstart", onStart, own);
    here.addEventListener("touchmove", onMove, own);
    here.addEventListener("touchend", onEnd, own);
    here.addEventListener("touchcancel", stop, own);
    return () => {
      stop();
      here.removeEventListener("touchstart", onStart, own);
      here.removeEventListener("touchmove", onMove, own);
      here.removeEventListener("touchend", onEnd, own);
      here.removeEventListener("touchcancel", stop, own);
    };
  }, [element, act]);
}
