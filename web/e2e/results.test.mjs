// SPDX-License-Identifier: Apache-2.0
// Runs, the viewer, comparisons, and what a value is made of.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, block, constant, mistake, numbers, opened } from "./studio.mjs";

const { studio, browser } = opened();

const pooling = (shape, values, window = [1, 2, 2, 2, 1]) => ({
  name: "pooling",
  semantics: "documented",
  blocks: [
    constant("volume", shape, values),
    { name: "pool", op: "MaxPool3D", attrs: { ksize: window, strides: window, padding: "SAME" }, inputs: { input: [{ from: "volume.output" }] }, position: [420, 0] },
    { name: "relu", op: "Relu", inputs: { features: [{ from: "pool.output" }] }, position: [800, 0] },
  ],
});

async function run(page) {
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === document.querySelectorAll(".block").length);
}

test("a voxel shows its window, the padding, the winner and its ties", async () => {
  const page = await browser.page(studio);
  await studio.show(page, pooling([1, 1, 3, 3, 1], [1, 5, 2, 5, 0, 0, 0, 0, 9]));
  await run(page);
  assert.deepEqual(await numbers(page, "pool"), [5, 2, 0, 9]);
  await block(page, "pool").locator(".cell").first().hover();
  await page.waitForSelector('[data-id="volume"] .cell.winner');
  assert.equal(await block(page, "volume").locator(".cell.in-window").count(), 4);
  assert.equal(await block(page, "volume").locator(".cell.tie").count(), 2);
  assert.match(await block(page, "volume").locator(".cell.winner").getAttribute("title"), /^\[0\]\[0\]\[0\]\[1\]\[0\] = 5$/);
  await block(page, "pool").locator(".cell").last().hover();
  await page.waitForSelector(".trace .cell.padding");
  await block(page, "volume").locator(".grid.pad-bottom.pad-right").waitFor();
});

test("the receptive field goes back over several blocks", async () => {
  const page = await browser.page(studio);
  await studio.show(page, pooling([1, 2, 2, 2, 1], [1, 2, 3, 4, 5, 6, 7, 8]));
  await run(page);
  await page.getByLabel("Trace a voxel").fill("3");
  await block(page, "relu").locator(".cell").first().hover();
  await page.waitForFunction(() => document.querySelectorAll('[data-id="volume"] .cell.in-window').length === 8);
});

test("the viewer: table with indices, slices, histogram, volume, difference", async () => {
  const page = await browser.page(studio);
  await studio.show(page, pooling([1, 4, 4, 4, 1], Array.from({ length: 64 }, (_, i) => i)));
  await run(page);
  await block(page, "pool").locator(".block-title").click();
  await page.keyboard.press("v");
  await page.waitForSelector("canvas.slice");
  assert.equal(await page.locator(".slider").count(), 1);
  await page.locator("canvas.slice").hover({ position: { x: 4, y: 4 } });
  assert.match(await page.locator(".readout").innerText(), /\[0\]\[0\]\[0\]\[0\]\[0\] = 21/);
  await page.getByRole("tab", { name: "Table" }).click();
  await page.getByLabel("Go to index").fill("[0][1][1][1][0]");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".value-scroll td").last().innerText(), "63");
  await page.getByRole("tab", { name: "Histogram" }).click();
  assert.match(await page.locator(".viewer .statistics").innerText(), /max\s+63/);
  await page.getByRole("tab", { name: "Volume", exact: true }).click();
  await page.waitForSelector(".volume canvas");
  await page.getByRole("tab", { name: "Difference" }).click();
  await page.getByLabel("against").selectOption({ label: "relu.activations [1,2,2,2,1]" });
  await page.waitForSelector(".viewer .badge.ok");
});

test("ten million values scroll", async () => {
  const page = await browser.page(studio);
  const side = 215;
  await studio.show(page, {
    name: "large",
    semantics: "documented",
    blocks: [
      { name: "sizes", op: "Const", attrs: { value: { tensor: { dtype: "int32", shape: [5], values: [1, side, side, side, 1] } }, dtype: "int32" }, position: [0, 0] },
      constant("one", [], [1.5], [0, 160]),
      { name: "fill", op: "Fill", inputs: { dims: [{ from: "sizes.output" }], value: [{ from: "one.output" }] }, position: [300, 0] },
    ],
  });
  await run(page);
  await block(page, "fill").locator(".block-title").click();
  await page.keyboard.press("v");
  await page.getByRole("tab", { name: "Table" }).click();
  await page.waitForSelector(".value-scroll tr");
  await page.locator(".value-scroll").press("End");
  await page.waitForFunction((last) => document.querySelector(".value-scroll tr:last-child th")?.textContent === `[0][${last}][${last}][${last}][0]`, side - 1);
  const times = await page.evaluate(async () => {
    const scroller = document.querySelector(".value-scroll");
    const frames = [];
    let before = performance.now();
    for (let i = 0; i < 60; i += 1) {
      scroller.scrollTop = (scroller.scrollHeight * i) / 60;
      await new Promise(requestAnimationFrame);
      frames.push(performance.now() - before);
      before = performance.now();
    }
    return frames.sort((a, b) => a - b);
  });
  console.log(`scrolling ${side ** 3} values: median frame ${times[30].toFixed(1)} ms`);
  assert.ok(times[30] < 40);
});

test("run to here, cancel, history, and an earlier run against a later one", async () => {
  const page = await browser.page(studio);
  await studio.show(page, pooling([1, 2, 2, 2, 1], [1, 2, 3, 4, 5, 6, 7, 8]));
  await block(page, "pool").locator(".block-title").click();
  await page.keyboard.press("Shift+Enter");
  await page.waitForSelector('[data-id="pool"] .badge.ok');
  assert.equal(await block(page, "relu").locator(".badge.ok").count(), 0);
  await run(page);
  await page.getByRole("tab", { name: "Runs" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".bottom .table tr").length >= 2);
  for (const row of [0, 1]) await page.locator(".bottom .table tr").nth(row).getByRole("checkbox").check();
  await page.getByRole("button", { name: "Compare 2 runs" }).click();
  await page.waitForSelector(".bottom .table .badge.ok");
  // A long loop is stopped.
  await page.getByLabel("cycles").fill("100000");
  await page.getByRole("button", { name: "Run in a loop" }).click();
  await page.locator("button.danger.run").click();
  await page.getByRole("button", { name: /^Run page/ }).waitFor();
});

test("an edit makes results old, undo makes them right again", async () => {
  const page = await browser.page(studio);
  await studio.show(page, pooling([1, 2, 2, 2, 1], [1, 2, 3, 4, 5, 6, 7, 8]));
  await run(page);
  await block(page, "pool").locator(".block-title").click();
  await page.getByLabel("pool padding").selectOption("VALID");
  await page.waitForSelector('[data-id="relu"] .block.stale');
  assert.equal(await page.locator('[data-id="volume"] .block.stale').count(), 0);
  await bare(page);
  await page.keyboard.press("Control+z");
  await page.waitForSelector(".block.stale", { state: "detached" });
});

test("values of the old pages: Conv3D and its gradients", async () => {
  const page = await browser.page(studio);
  const document = mistake();
  document.blocks = document.blocks.filter((one) => ["volume", "kernel", "conv"].includes(one.name));
  await studio.show(page, document);
  await run(page);
  await block(page, "conv").locator(".block-title").click();
  await page.keyboard.press("g");
  await page.waitForSelector(".block.gradient");
  await run(page);
  const shapes = await page.locator('.block.gradient .out .pin-type').allTextContents();
  assert.ok(shapes.some((text) => text.includes("[2,2,2,2,2]")) && shapes.some((text) => text.includes("[2,2,2,2,1]")), shapes.join());
});
