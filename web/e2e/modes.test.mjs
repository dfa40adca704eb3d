// SPDX-License-Identifier: Apache-2.0
// Bypass and mute, gradients drawn as one block, and the box that finds everything.
import assert from "node:assert/strict";
import { test } from "node:test";
import { clear } from "./arrangement.mjs";
import { bare, block, constant, numbers, opened } from "./studio.mjs";

const { studio, browser } = opened();

function chain() {
  const window = { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "VALID" };
  return {
    name: "chain",
    semantics: "documented",
    blocks: [
      constant("x", [1, 2, 2, 2, 1], [1, 2, 3, 4, 5, 6, 7, 8.25], [0, 0]),
      { name: "pool", op: "MaxPool3D", attrs: window, inputs: { input: [{ from: "x.output" }] }, position: [480, 0] },
      { name: "neg", op: "Neg", inputs: { x: [{ from: "pool.output" }] }, position: [960, 0] },
    ],
  };
}

async function chosen(page, name) {
  await bare(page);
  await block(page, name).locator(".block-title").click({ position: { x: 12, y: 10 } });
}

async function run(page) {
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelector(".danger.run") === null && document.querySelector('[data-id="x"] .badge.ok') !== null);
}

const shows = (page, name, text) => page.waitForFunction(([id, wanted]) => [...document.querySelectorAll(`[data-id="${id}"] .cell:not(.ghost)`)].map((cell) => cell.textContent.replace("−", "-")).join(" ") === wanted, [name, text]);

test("a block is bypassed, muted and put to work again", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const id = await studio.show(page, chain());
  await run(page);
  await shows(page, "neg", "-8.25");
  await chosen(page, "pool");
  await page.keyboard.press("b");
  await block(page, "pool").locator(".block.bypassed .badge.mode").waitFor();
  await page.locator('[data-id="neg"] .pin-type', { hasText: "[1,2,2,2,1]" }).first().waitFor();
  await run(page);
  await shows(page, "neg", "-1 -2 -3 -4 -5 -6 -7 -8.25");
  await clear(page, "bypassed");

  await chosen(page, "pool");
  await page.keyboard.press("m");
  await block(page, "pool").locator(".block.muted").waitFor();
  await page.waitForFunction(() => document.querySelector(".bottom .ok, .primary.run") !== null);
  await run(page);
  await page.waitForFunction(() => document.querySelectorAll('[data-id="neg"] .cell:not(.ghost)').length === 0);
  assert.deepEqual(await numbers(page, "x"), [1, 2, 3, 4, 5, 6, 7, 8.25]);
  await page.keyboard.press("Control+s");
  await page.waitForSelector(".draft-saved");
  const { document } = await studio.api("GET", `/pages/${id}`);
  assert.deepEqual(document.blocks.map((one) => one.mode), [undefined, "muted", undefined]);

  await chosen(page, "pool");
  await page.keyboard.press("m");
  await page.waitForFunction(() => document.querySelector('[data-id="pool"] .block.muted') === null);
  await run(page);
  await shows(page, "neg", "-8.25");
  await chosen(page, "x");
  await page.keyboard.press("b");
  await page.locator(".notice", { hasText: "VG069" }).waitFor();
  assert.equal(await page.locator(".block.bypassed").count(), 0, "what cannot be bypassed is not");
});

test("gradients are drawn as one block per block, and opened", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const id = await studio.show(page, chain());
  await page.keyboard.press("Control+a");
  await chosen(page, "pool");
  await block(page, "neg").locator(".block-title").click({ modifiers: ["Shift"], position: { x: 12, y: 10 } });
  await page.keyboard.press("g");
  await page.waitForFunction(() => document.querySelectorAll(".block.gradient").length > 2);
  const places = () => page.locator(".react-flow__node-block").evaluateAll((nodes) => nodes.map((node) => node.dataset.id).sort());
  await clear(page, "with gradients");
  const before = await places();
  await page.keyboard.press("Shift+G");
  await page.locator('.react-flow__node[data-id="group:∂ pool"]').waitFor();
  await clear(page, "folded");
  assert.deepEqual(await places(), ["neg", "pool", "x"]);
  await page.keyboard.press("Control+s");
  await page.waitForSelector(".draft-saved");
  const { document } = await studio.api("GET", `/pages/${id}`);
  assert.equal(document.blocks.length, before.length, "the page has all of its blocks");
  await page.keyboard.press("f");
  await page.locator('.react-flow__node[data-id="group:∂ pool"]').getByText("blocks").dblclick();
  await page.locator('.react-flow__node[data-id="frame:∂ pool"]').waitFor();
  await clear(page, "one is open");
  await page.keyboard.press("Shift+G");
  await page.locator('.react-flow__node[data-id="group:∂ pool"]').waitFor();
  await page.keyboard.press("Shift+G");
  await page.waitForFunction((count) => document.querySelectorAll(".react-flow__node-block").length === count, before.length);
  assert.deepEqual(await places(), before);
  await clear(page, "as they were");
});

test("one box finds blocks, ops, pins, values, pages and commands", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, chain());
  const first = async (query) => {
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByRole("combobox", { name: "Find" }).fill(query);
    const text = await page.locator(".finder [role=option]").first().textContent();
    await page.keyboard.press("Enter");
    return text;
  };
  assert.match(await first("pool.input"), /^pool\.input/);
  await page.waitForFunction(() => document.querySelector(".block.selected")?.closest("[data-id]").dataset.id === "pool");
  assert.match(await first("8.25"), /^x\.value/);
  await page.waitForFunction(() => document.querySelector(".block.selected")?.closest("[data-id]").dataset.id === "x");
  assert.match(await first("pool.padding"), /VALID/);
  assert.match(await first("Conv3DBackpropFilterV2"), /add this block/);
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__node-block").length === 4);
  const { pages } = await studio.api("GET", "/pages");
  assert.match(await first(pages[0].name), /page$/);
});
