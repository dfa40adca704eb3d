// SPDX-License-Identifier: Apache-2.0
// A hundred blocks: dragging, panning, and how soon an edit shows its shapes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { block, constant, opened } from "./studio.mjs";

const { studio, browser } = opened();

function hundred() {
  const window = { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "SAME" };
  const blocks = Array.from({ length: 20 }, (_, i) => {
    const y = i * 620;
    const from = (...names) => names.map((name) => ({ from: `${name}.output` }));
    return [
      constant(`x${i}`, [1, 4, 4, 4, 2], Array.from({ length: 128 }, (_value, k) => (k * 7 + i) % 13), [0, y]),
      { name: `max${i}`, op: "MaxPool3D", attrs: window, inputs: { input: from(`x${i}`) }, position: [460, y] },
      { name: `avg${i}`, op: "AvgPool3D", attrs: window, inputs: { input: from(`x${i}`) }, position: [460, y + 300] },
      { name: `grad${i}`, op: "MaxPool3DGrad", attrs: window, inputs: { orig_input: from(`x${i}`), orig_output: from(`max${i}`), grad: from(`avg${i}`) }, position: [880, y] },
      { name: `relu${i}`, op: "Relu", inputs: { features: from(`grad${i}`) }, position: [1360, y] },
    ];
  });
  return { name: "hundred", semantics: "documented", blocks: blocks.flat() };
}

/** The frames while something happens: their median in milliseconds. */
async function medianFrame(page, work) {
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
    const sorted = window.frames_.slice(2).sort((a, b) => a - b);
    return sorted[sorted.length >> 1];
  });
}

async function circle(page, x, y) {
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (let i = 0; i < 80; i += 1) {
    await page.mouse.move(x + 90 * Math.sin(i / 8), y + 60 * (1 - Math.cos(i / 8)));
    await page.waitForTimeout(12);
  }
  await page.mouse.up();
}

test("a hundred blocks stay smooth", async () => {
  const page = await browser.page(studio);
  await studio.show(page, hundred());
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === 100, null, { timeout: 60_000 });
  await page.waitForTimeout(500);
  const results = {};
  for (const zoom of ["whole page", "close"]) {
    if (zoom === "whole page") await page.keyboard.press("f");
    else {
      await block(page, "max5").dispatchEvent("click");
      await page.keyboard.press("Control+0");
    }
    await page.waitForTimeout(600);
    const places = await page.evaluate(() => {
      const canvas = document.querySelector(".canvas").getBoundingClientRect();
      const free = (element) => element?.classList.contains("react-flow__pane");
      let [title, pane] = [null, null];
      for (let y = canvas.top + 60; y < canvas.bottom - 150; y += 5) {
        for (let x = canvas.left + 120; x < canvas.right - 120; x += 7) {
          const element = document.elementFromPoint(x, y);
          if (!title && element?.closest(".block-title") && !element.closest("button")) title = { x, y };
          if (!pane && free(element)) pane = { x, y };
        }
      }
      return { title, pane };
    });
    results[`drag, ${zoom}`] = await medianFrame(page, () => circle(page, places.title.x, places.title.y));
    results[`pan, ${zoom}`] = await medianFrame(page, () => circle(page, places.pane.x, places.pane.y));
  }
  for (const [name, time] of Object.entries(results)) console.log(`${name}: median frame ${time.toFixed(1)} ms`);
  for (const [name, time] of Object.entries(results)) assert.ok(time < (name.startsWith("drag") ? 20 : 40), `${name}: ${time} ms`);
});

test("shapes follow an edit within a tenth of a second", async () => {
  const page = await browser.page(studio);
  await studio.show(page, hundred());
  await page.keyboard.press("F8");
  await page.evaluate(() => document.querySelector('[data-id="max0"] .block-title').click());
  await block(page, "max0").dispatchEvent("click");
  await page.getByLabel("max0 strides D").waitFor();
  const times = [];
  for (let i = 0; i < 7; i += 1) {
    const stride = i % 2 === 0 ? 4 : 2;
    times.push(
      await page.evaluate(async ({ stride, wanted }) => {
        const field = document.querySelector('[aria-label="max0 strides D"]');
        const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
        const start = performance.now();
        set.call(field, String(stride));
        field.dispatchEvent(new Event("input", { bubbles: true }));
        const shown = () => document.querySelector('[data-id="max0"] .out .pin-type').textContent.includes(wanted);
        while (!shown()) await new Promise(requestAnimationFrame);
        return performance.now() - start;
      }, { stride, wanted: stride === 4 ? "[1,1,2,2,2]" : "[1,2,2,2,2]" }),
    );
  }
  times.sort((a, b) => a - b);
  console.log(`shapes after an edit: median ${times[3].toFixed(0)} ms of ${times.map((time) => time.toFixed(0)).join(" ")}`);
  assert.ok(times[3] < 100);
});
