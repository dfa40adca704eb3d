// SPDX-License-Identifier: Apache-2.0
// What lies where on a page that is shown: measured in the browser, from what is drawn.
import assert from "node:assert/strict";

/** In the browser: wait until nothing moves any more, then find what covers what and which wire runs through what. */
async function looked() {
  const boxes = () =>
    [...document.querySelectorAll(".react-flow__node-block, .react-flow__node-grouping:has(.group-box.block)")].map((node) => {
      const [, x, y] = /translate\((-?[\d.e-]+)px, (-?[\d.e-]+)px\)/.exec(node.style.transform);
      return { name: node.dataset.id, x: Number(x), y: Number(y), width: node.offsetWidth, height: node.offsetHeight };
    });
  const paths = () => [...document.querySelectorAll(".react-flow__edge path.react-flow__edge-path")];
  const drawing = () => JSON.stringify(boxes()) + paths().map((path) => path.getAttribute("d")).join();
  const frame = () => new Promise(requestAnimationFrame);
  const end = performance.now() + 15_000;
  for (let [still, before] = [0, ""]; still < 9 && performance.now() < end; ) {
    await frame();
    const now = drawing();
    still = now === before ? still + 1 : 0;
    before = now;
  }
  const found = [];
  const all = boxes();
  for (const [index, a] of all.entries()) {
    for (const b of all.slice(index + 1)) {
      // Pins stand out of their block by half of their width.
      const apart = a.x + a.width + 8 <= b.x || b.x + b.width + 8 <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
      if (!apart) found.push(`${a.name} covers ${b.name}`);
    }
  }
  for (const path of paths()) {
    // Level and upright lines with round corners, which lie inside of what their corner points span.
    const { id } = path.closest(".react-flow__edge").dataset;
    const points = [...path.getAttribute("d").matchAll(/(-?[\d.]+)[ ,]+(-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
    for (const [index, [x1, y1]] of points.slice(1).entries()) {
      const [x0, y0] = points[index];
      if (Math.min(Math.abs(x1 - x0), Math.abs(y1 - y0)) > 1) found.push(`${id} is slanted`);
      const [left, right, top, bottom] = [Math.min(x0, x1) + 1, Math.max(x0, x1) - 1, Math.min(y0, y1) + 1, Math.max(y0, y1) - 1];
      for (const box of all) if (left < box.x + box.width && right > box.x && top < box.y + box.height && bottom > box.y) found.push(`${id} runs through ${box.name}`);
    }
  }
  return { found, blocks: all.length, wires: paths().length };
}

/** Nothing is covered, no pin is hidden, no wire runs through a block. Says how much was looked at. */
export async function clear(page, when) {
  const { found, ...seen } = await page.evaluate(looked);
  assert.deepEqual(found, [], when);
  return seen;
}
