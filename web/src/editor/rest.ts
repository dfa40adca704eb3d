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

/** A block is drawn anew, maybe in another size: it decides itself again, and rests later. */
export function wake(block: HTMLElement): void {
  block.removeAttribute("data-rests");
  awake.add(block);
  restSoon();
}

export function restSoon(): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(layToRest, AFTER_MS);
}

function layToRest(): void {
  // From further away a title takes no part in the width of its block: what was measured there would be too narrow later.
  if (document.querySelector<HTMLElement>(".canvas")?.dataset["far"] !== "0") return;
  const all = [...awake].filter((block) => block.isConnected);
  awake.clear();
  if (document.querySelectorAll(".react-flow__node-block").length < MANY) return;
  // All are measured before the first is changed: else each would be laid out by itself.
  const sizes = all.map((block) => {
    const { width, height } = getComputedStyle(block);
    return { width, height };
  });
  all.forEach((block, index) => {
    block.style.setProperty("--width", sizes[index]!.width);
    block.style.setProperty("--height", sizes[index]!.height);
    block.dataset["rests"] = "";
  });
}
