// SPDX-License-Identifier: Apache-2.0
// How soon a page opens, frames while it is panned and a block is dragged, and how soon an edit shows its shapes.
// SPEED_BLOCKS=1000 chooses the size; a hundred by default. To be run on a machine with nothing else to do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { many } from "./many.mjs";
import { block, opened } from "./studio.mjs";

const { studio, browser } = opened();
const BLOCKS = Number(process.env.SPEED_BLOCKS ?? 100);
/** What is asked of a page of up to a thousand blocks. */
const [FRAMES, FEEDBACK_MS] = [30, 100];

/** Frames while something happens: how many in a second, and their median and longest in milliseconds. */
async function frames(page, work) {
  await page.evaluate(() => {
    window.frames_ = [];
    let before = performance.now();
    const tick = (now) => {
      window.frames_.push(now - before);
      before = now;
      window.counting = requestAnimationFrame(tick);
    };
    window.counting = requestAnimationFrame(tick);
  });
  await work();
  return page.evaluate(() => {
    cancelAnimationFrame(window.counting);
    const all = window.frames_.slice(2);
    const sorted = [...all].sort((a, b) => a - b);
    const total = all.reduce((sum, one) => sum + one, 0);
    return { rate: (1000 * all.length) / total, median: sorted[sorted.length >> 1], longest: sorted.at(-1) };
  });
}

async function circle(page, { x, y }) {
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (let i = 0; i < 80; i += 1) {
    await page.mouse.move(x + 90 * Math.sin(i / 8), y + 60 * (1 - Math.cos(i / 8)));
    await page.waitForTimeout(12);
  }
  await page.mouse.up();
}

/** A title to drag and a free place to pan from. */
const places = (page) =>
  page.evaluate(() => {
    const canvas = document.querySelector(".canvas").getBoundingClientRect();
    let [title, pane] = [null, null];
    // Looking at a place is slow on a large page: no more are looked at than needed.
    for (let y = canvas.top + 60; y < canvas.bottom - 150; y += 3) {
      for (let x = canvas.left + 120; x < canvas.right - 120; x += 5) {
        if (title && pane) return { title, pane };
        const element = document.elementFromPoint(x, y);
        if (!title && element?.closest(".block-title") && !element.closest("button")) title = { x, y };
        if (!pane && element?.classList.contains("react-flow__pane")) pane = { x, y };
      }
    }
    return { title, pane };
  });

/** From a letter typed to the shape on the block and to the values of the inspector, in milliseconds. */
async function edits(page) {
  const times = [];
  for (let i = 0; i < 7; i += 1) {
    const stride = i % 2 === 0 ? 4 : 2;
    times.push(
      await page.evaluate(async ({ stride, wanted }) => {
        const field = document.querySelector('[aria-label="max5 strides D"]');
        const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
        const start = performance.now();
        set.call(field, String(stride));
        field.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise(requestAnimationFrame);
        const typed = performance.now() - start;
        const shown = () => document.querySelector('[data-id="max5"] .out .pin-type').textContent.includes(wanted);
        while (!shown()) await new Promise(requestAnimationFrame);
        return { typed, shapes: performance.now() - start };
      }, { stride, wanted: stride === 4 ? "[1,1,2,2,2]" : "[1,2,2,2,2]" }),
    );
    await page.waitForTimeout(400);
  }
  return times;
}

test(`${BLOCKS} blocks`, async () => {
  const page = await browser.page(studio);
  page.setDefaultTimeout(180_000);
  const document = many(BLOCKS);
  const stored = await studio.api("POST", "/pages", { name: document.name, document });
  await studio.enter(page);
  await page.goto(`${studio.address}/#/page/${stored.id}`);
  const start = Date.now();
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__node").length > 0);
  console.log(`first blocks after ${Date.now() - start} ms`);
  await page.waitForFunction(() => document.querySelector(".fact") !== null);
  console.log(`shapes known after ${Date.now() - start} ms`);
  await page.waitForTimeout(3000);
  const rates = {};
  const move = async (what, at) => {
    const { rate, median, longest } = await frames(page, () => circle(page, at));
    console.log(`${what}: ${rate.toFixed(1)} frames a second, median ${median.toFixed(1)} ms, longest ${longest.toFixed(0)} ms`);
    rates[what] = rate;
  };
  for (const zoom of ["whole page", "close"]) {
    if (zoom === "whole page") {
      await page.locator(".react-flow__pane").click({ position: { x: 8, y: 8 } });
      await page.keyboard.press("f");
    } else {
      await page.evaluate(() => document.querySelector('[data-id="max5"] .block-title')?.click());
      await block(page, "max5").dispatchEvent("click");
      await page.keyboard.press("Control+0");
    }
    await page.waitForTimeout(1500);
    const { title, pane } = await places(page);
    await move(`pan, ${zoom}`, pane);
    await move(`drag, ${zoom}`, title);
    await page.waitForTimeout(1500);
  }
  await page.getByLabel("max5 strides D").waitFor();
  const times = await edits(page);
  const middle = {};
  for (const what of ["typed", "shapes"]) {
    const sorted = times.map((one) => one[what]).sort((a, b) => a - b);
    middle[what] = sorted[3];
    console.log(`${what} after an edit: median ${sorted[3].toFixed(0)} ms of ${sorted.map((time) => time.toFixed(0)).join(" ")}`);
  }
  if (BLOCKS > 1000) return;
  for (const [what, rate] of Object.entries(rates)) assert.ok(rate >= FRAMES, `${what}: ${rate.toFixed(1)} frames a second`);
  assert.ok(middle.shapes < FEEDBACK_MS, `shapes after ${middle.shapes.toFixed(0)} ms`);
});
