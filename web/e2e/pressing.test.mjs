// SPDX-License-Identifier: Apache-2.0
// What is pressed is done: nothing moves away under a press, and no press is dropped without a word.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, block, constant, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();

/** Press the button of a fix for as long as a slow hand does. */
const pressSlowly = (page) => page.locator(".block-problem button.primary").click({ delay: 600 });

test("the view does not move away under a press", async () => {
  const page = await browser.page(studio);
  await studio.enter(page);
  for (let turn = 0; turn < 3; turn += 1) {
    await page.evaluate(() => (location.hash = "#/"));
    await page.locator(".card", { hasText: "MaxPool3DGradGrad, with a mistake" }).click();
    await page.waitForSelector(".block.wrong");
    await page.waitForTimeout(500);
    await page.locator(".block-problem button.primary").click();
    // The view follows the block that the fix has added, at the very moment when the next button is pressed.
    await page.waitForSelector(".block.warned");
    await pressSlowly(page);
    await page.waitForSelector(".block.warned", { state: "detached" });
  }
});

test("what is told during a press does not change what is pressed", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  // An edit whose analysis comes while a button is pressed: the block says something else then.
  const document = { ...mistake(), name: "pressed" };
  document.blocks.find((one) => one.name === "pooled").attrs.value.tensor.values = [1, 2, 3, 4];
  document.blocks.find((one) => one.name === "second").inputs.grad = [{ from: "volume.output" }];
  document.blocks = document.blocks.filter((one) => one.name !== "grad");
  await studio.show(page, document);
  await page.waitForSelector('[data-id="second"] .block.warned');
  await page.route("**/api/analyse", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 250));
    await route.continue();
  });
  await block(page, "second").locator(".block-title").click();
  await page.getByLabel("second ksize C").fill("2");
  await pressSlowly(page);
  await block(page, "second_MaxPool3D").waitFor();
});

test("Run during a run waits for it, and can be taken back", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, {
    name: "queue",
    semantics: "documented",
    blocks: [constant("x", [2], [1, 2]), { name: "minus", op: "Neg", inputs: { x: [{ from: "x.output" }] }, position: [420, 0] }],
  });
  await page.getByLabel("cycles").fill("1000000");
  await page.getByRole("button", { name: "Run in a loop" }).click();
  await page.waitForSelector(".danger.run");
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.locator(".danger.run", { hasText: "1 waiting" }).waitFor();
  await page.keyboard.press("Control+Enter");
  await page.locator(".danger.run", { hasText: "2 waiting" }).waitFor();
  await page.getByRole("tab", { name: "Runs" }).click();
  await page.getByRole("button", { name: "take back" }).first().click();
  await page.locator(".danger.run", { hasText: "1 waiting" }).waitFor();
  await page.evaluate(() => {
    let rested = false;
    window.rests = 0;
    const look = () => {
      const rests = document.querySelector(".danger.run") === null;
      if (rests && !rested) window.rests += 1;
      rested = rests;
    };
    new MutationObserver(look).observe(document.querySelector(".run-controls"), { childList: true, subtree: true });
  });
  await page.locator(".bottom .table tr", { hasText: "cycles" }).getByRole("button", { name: "Stop" }).click();
  // The one that waited runs now, and its results are shown; the page says that it rests when both have ended, and only then.
  await page.waitForFunction(() => document.querySelector(".danger.run") === null && document.querySelectorAll(".badge.ok").length === 2);
  assert.equal(await page.evaluate(() => window.rests), 1);
  const { runs } = await studio.api("GET", "/runs");
  assert.deepEqual(runs.slice(0, 3).map((run) => run.state).sort(), ["cancelled", "cancelled", "done"]);
  // Stop ends what runs and what waits.
  await page.getByRole("button", { name: "Run in a loop" }).click();
  await page.waitForSelector(".danger.run");
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.locator(".danger.run", { hasText: "1 waiting" }).waitFor();
  await page.locator(".danger.run").click();
  await page.getByRole("button", { name: /^Run page/ }).waitFor();
  assert.deepEqual((await studio.api("GET", "/runs")).runs.slice(0, 2).map((run) => run.state), ["cancelled", "cancelled"]);
});
