// SPDX-License-Identifier: Apache-2.0
// The experiment desk: runs side by side, sweeps, trends of several runs, engines on cold inputs, snapshots as pictures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { bare, block, constant, opened } from "./studio.mjs";

const { studio, browser } = opened();
const SHOTS = process.env.SHOTS ?? null;

const pooling = () => ({
  name: "pooling",
  semantics: "documented",
  blocks: [
    constant("volume", [1, 2, 2, 2, 1], [1, 2, 3, 4, 5, 6, 7, 8]),
    { name: "pool", op: "MaxPool3D", attrs: { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "SAME" }, inputs: { input: [{ from: "volume.output" }] }, position: [420, 0] },
    { name: "half", op: "Mul", inputs: { x: [{ from: "pool.output" }], y: [{ from: "factor.output" }] }, position: [800, 0] },
    constant("factor", [], [0.5], [420, 360]),
  ],
});

const bottom = (page, name) => page.locator(".bottom").getByRole("tab", { name, exact: true }).click();

async function run(page) {
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === document.querySelectorAll(".block").length);
}

/** A screen that axe finds clean; with SHOTS=FOLDER its picture is left there. */
async function seen(page, name, part = ".panel.bottom") {
  await page.waitForTimeout(150);
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/${name}.png` });
  const { violations } = await new AxeBuilder({ page }).include(part).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]).analyze();
  assert.deepEqual(violations.map((one) => `${name}: ${one.id}: ${one.nodes[0].target} ${one.nodes[0].any[0]?.message ?? ""}`), []);
}

test("two runs side by side: equal, different, kept; a click opens the difference", async () => {
  const page = await browser.page(studio);
  await studio.show(page, pooling());
  await run(page);
  await block(page, "pool").locator(".block-title").click();
  await page.getByLabel("pool padding").selectOption("VALID");
  await run(page);
  await block(page, "factor").locator(".block-title").click();
  await page.getByLabel("factor value fill with").fill("0.75");
  await page.keyboard.press("Enter");
  await page.waitForSelector('[data-id="half"] .block.stale');
  await run(page);
  await bottom(page, "Runs");
  const rows = page.locator(".bottom .table.runs tr");
  await page.waitForFunction(() => document.querySelectorAll(".bottom .table.runs tr").length === 3);
  await seen(page, "runs");
  await rows.nth(0).getByRole("checkbox").check();
  await rows.nth(2).getByRole("checkbox").check();
  await page.getByRole("button", { name: "Compare 2 runs" }).click();
  const cells = (name) => page.locator(".bottom .table.compared tbody tr", { has: page.getByRole("cell", { name, exact: true }) }).locator("td").allInnerTexts();
  await page.waitForSelector(".bottom .table.compared tbody tr");
  assert.deepEqual((await cells("half")).slice(0, 2), ["half", "z"]);
  assert.equal((await cells("half"))[3], "2");
  assert.deepEqual([(await cells("volume"))[3], (await cells("volume"))[5]], ["equal", "cached"]);
  await seen(page, "compared");
  await page.getByRole("button", { name: "2", exact: true }).click();
  await page.waitForSelector(".viewer .where");
  assert.deepEqual(await page.locator(".viewer .where td").allInnerTexts(), ["[0][0][0][0][0]", "4", "6"]);
  assert.match(await page.locator(".viewer .badge").first().innerText(), /^cpu /);
  await seen(page, "difference", ".panel.viewer");
});
