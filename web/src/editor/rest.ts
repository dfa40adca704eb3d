// SPDX-License-Identifier: Apache-2.0
/**
 * Blocks at rest: drawn, and not changed for a while. A thousand blocks have a hundred thousand parts, and a browser looks
 * through all of them whenever the page moves. A block at rest keeps its size by itself, so that its parts need not be
 * laid out where they are not seen: beside the window, and where it is so small that nothing but its title is shown.
 */

const AFTER_MS = 400;
/** On pages with fewer blocks there is nothing to be gained. */
const MANY = 100;

const awake = new Set<HTMLElement>();
let timer = 0;

/** From further away titles take no part in the width of their blocks. */
const isNear = () => document.querySelector<HTMLElement>(".canvas")?.dataset["far"] === "0";

/** A block is drawn anew, maybe in another size: it decides itself again, and rests later. */
export function wake(block: HTMLElement): void {
  block.removeAttribute("data-rests");
  if (isNear()) block.style.minWidth = "";
  awake.add(block);
  restSoon();
}

export function restSoon(): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(layToRest, AFTER_MS);
}

function layToRest(): void {
  for (const block of awake) if (!block.isConnected) awake.delete(block);
  if (document.querySelectorAll(".react-flow__node-block").length < MANY) return;
  const near = isNear();
  // Far away, those whose width is known from before keep it; the others wait until somebody comes near.
  const ready = [...awake].filter((block) => near || block.style.minWidth !== "");
  // All are measured before the first is changed: else each would be laid out by itself.
  const sizes = ready.map((block) => {
    const { width, height } = getComputedStyle(block);
    return { width, height };
  });
  ready.forEach((block, index) => {
    block.style.minWidth = sizes[index]!.width;
    block.style.setProperty("--height", sizes[index]!.height);
    block.dataset["rests"] = "";
    awake.delete(block);
  });
}
