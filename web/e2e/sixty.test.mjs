// SPDX-License-Identifier: Apache-2.0
// The first sixty seconds, step by step, with the values that must appear.
import assert from "node:assert/strict";
import { test } from "node:test";
import { block, numbers, opened } from "./studio.mjs";

const { studio, browser } = opened();

test("from the gallery to a repaired, run, traced, differentiated and checked page in a minute", async () => {
  const page = await browser.page(studio);
  const start = Date.now();
  await studio.enter(page);
  await page.locator(".card", { hasText: "MaxPool3DGradGrad, with a mistake" }).click();

  // One block is red before anything has run, and says why in one sentence.
  await page.waitForSelector(".block.wrong");
  assert.match(await page.locator(".block-problem").innerText(), /grad must have the shape of orig_input, \[2,2,2,2,2\].*got\s*\[2,1,1,1,2\]/s);
  assert.ok((await page.locator(".chip").allTextContents()).includes("2×2×2×2×2"));
  assert.equal(await page.locator(".wire.wrong").count(), 1);

  // One click repairs it; undo brings the mistake back, redo the repair.
  await page.locator(".block-problem button.primary").click();
  await page.waitForSelector(".block.wrong", { state: "detached" });
  await page.locator(".react-flow__pane").click({ position: { x: 8, y: 8 } });
  await page.keyboard.press("Control+z");
  await page.waitForSelector(".block.wrong");
  await page.keyboard.press("Control+Shift+z");
  await page.waitForSelector(".block.wrong", { state: "detached" });

  // Shapes fit now, and orig_output is still not the maximum of orig_input: it is said where one would read that all is well.
  await page.waitForSelector(".block.warned");
  assert.match(await page.locator(".bottom .look").innerText(), /1 to look at/);
  assert.match(await page.locator(".block-problem").innerText(), /orig_output must be the MaxPool3D of orig_input.*where the pool is 15/s);
  await page.locator(".block-problem button.primary").click();
  await page.waitForSelector(".block.warned", { state: "detached" });
  await page.waitForSelector(".bottom .good");

  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === document.querySelectorAll(".block").length);
  assert.deepEqual(await numbers(page, "grad_grad_MaxPool3D"), [15, 16, 31, 32]);
  assert.deepEqual(await numbers(page, "grad_grad"), [2, 2, 2, 2]);

  // A voxel of the output shows the window that it came from.
  await block(page, "grad_grad").locator(".cell").first().hover();
  await page.waitForSelector(".trace .window");
  await page.waitForSelector(".cell.traced");

  // Gradient blocks draw themselves, dashed.
  const blocks = await page.locator(".block").count();
  await block(page, "grad_grad").locator(".block-title").click();
  await page.keyboard.press("g");
  await page.waitForSelector(".block.gradient");
  assert.ok((await page.locator(".block").count()) > blocks);

  await page.locator(".react-flow__pane").click({ position: { x: 8, y: 8 } });
  await page.keyboard.press("c");
  await page.waitForSelector(".bottom .table .badge.ok");
  assert.equal(await page.locator(".bottom .table .badge.bad").count(), 0);

  await page.keyboard.press("Control+k");
  await page.keyboard.type("copy as py");
  await page.keyboard.press("Enter");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).includes("MaxPool3DGradGrad"));
  const seconds = (Date.now() - start) / 1000;
  console.log(`the first sixty seconds took ${seconds.toFixed(1)} s`);
  assert.ok(seconds < 60);
  assert.deepEqual(browser.faults, []);
});
