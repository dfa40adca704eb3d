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
  // What was computed and what was kept are told apart, on the page and in the inspector.
  assert.match(await page.locator(".run-progress").innerText(), /^2 run in .*, 2 kept$/);
  await block(page, "pool").locator(".block-title").click();
  await page.locator(".inspector").getByText("none: its result was kept").waitFor();
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

test("a sweep: points are counted, rows come, sort and are drawn, and one goes into the page", async () => {
  const page = await browser.page(studio);
  const id = await studio.show(page, pooling());
  await page.getByRole("button", { name: "Look", exact: true }).click();
  await page.getByRole("menuitem", { name: /sweep/ }).click();
  await page.getByLabel("What varies, 1").fill("factor.value");
  await page.getByLabel("Its values, 1").fill("0.5,10,-2,9");
  await page.getByText("4 points", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Something more that varies" }).click();
  await page.getByLabel("What varies, 2").fill("pool.padding");
  await page.getByLabel("Its values, 2").fill("SAME,VALD");
  await page.locator(".sweep-form .fault").waitFor();
  await seen(page, "sweep-fault");
  await page.getByLabel("Its values, 2").fill("SAME,VALID");
  await page.getByText("8 points", { exact: true }).waitFor();
  await page.getByLabel("cold runs each").fill("2");
  await page.getByRole("button", { name: "Sweep", exact: true }).click();
  await page.getByText(/^8 of 8 ·/).waitFor();
  const column = async (at) => (await page.locator(`.table.swept tbody td:nth-child(${at})`).allInnerTexts()).map((text) => text.trim());
  assert.deepEqual(await column(3), ["4", "4", "80", "80", "−16", "−16", "72", "72"]);
  await page.getByRole("button", { name: "half.z", exact: true }).click();
  assert.deepEqual(await column(3), ["−16", "−16", "4", "4", "72", "72", "80", "80"]);
  await page.getByRole("button", { name: "factor.value" }).click();
  await page.getByRole("button", { name: "factor.value" }).click();
  assert.deepEqual(await column(1), ["10", "10", "9", "9", "0.5", "0.5", "-2", "-2"]);
  await seen(page, "sweep-table");
  await page.getByRole("tab", { name: "Curves" }).click();
  assert.equal(await page.locator(".chart svg .mark title").count(), 8);
  await page.getByLabel("up", { exact: true }).selectOption("time");
  assert.equal(await page.locator(".chart .error-bar").count(), 8);
  await page.getByLabel("log up").check();
  await seen(page, "sweep-curves");
  const before = JSON.stringify((await studio.api("GET", `/pages/${id}`)).document);
  await page.getByRole("tab", { name: "Table", exact: true }).click();
  await page.locator(".table.swept tbody tr").nth(3).getByRole("button", { name: "use these values" }).click();
  await page.waitForFunction(() => document.querySelector('[data-id="factor"] .cell')?.textContent === "10");
  await page.getByText(/In the page now/).first().waitFor();
  await bare(page);
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelector('[data-id="factor"] .cell')?.textContent === "0.5");
  assert.equal(JSON.stringify((await studio.api("GET", `/pages/${id}`)).document), before);
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "CSV" }).click()]);
  assert.match(file.suggestedFilename(), /\.csv$/);
  await page.reload();
  await page.waitForSelector(".block");
  await bottom(page, "Sweep");
  await page.getByText(/^8 of 8 ·/).waitFor();
});

test("a sweep that takes long is stopped and keeps its rows", async () => {
  const page = await browser.page(studio, { colorScheme: "light" });
  await studio.show(page, pooling());
  await bottom(page, "Sweep");
  await page.getByLabel("What varies, 1").fill("factor.value");
  await page.getByLabel("Its values, 1").fill("range(2000)");
  await page.getByRole("button", { name: "Sweep", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll(".table.swept tbody tr").length > 3);
  await page.locator(".sweep-rows").getByRole("button", { name: "Stop" }).click();
  await page.locator(".sweep-rows .badge", { hasText: "stopped" }).waitFor();
  const rows = await page.locator(".table.swept tbody tr").count();
  assert.ok(rows > 3 && rows < 2000);
  await page.getByRole("tab", { name: "Curves" }).click();
  await seen(page, "sweep-stopped-light");
});

test("engines on the same cold inputs: several runs, the median and its spread", async () => {
  const page = await browser.page(studio);
  await studio.show(page, pooling());
  await run(page);
  await bottom(page, "Compare");
  await page.locator(".bottom").getByLabel("cold runs each").fill("4");
  await page.locator(".bottom").getByRole("button", { name: "Compare", exact: true }).click();
  await page.waitForSelector(".table.compared tbody tr");
  assert.match(await page.locator(".table.compared thead").innerText(), /cpu .* 4 cold runs/s);
  // The page and its four blocks; nothing is taken from the run before.
  assert.equal(await page.locator(".table.compared .spread").count(), 5 * (await page.locator(".table.compared thead tr").first().locator("th[scope=colgroup]").count()));
  assert.equal(await page.locator(".table.compared").getByText("cached").count(), 0);
  assert.match(await page.locator(".spread svg").first().getAttribute("aria-label"), /^median .*, from .* to /);
  await seen(page, "engines");
  await page.getByRole("button", { name: "File", exact: true }).click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: "Export a report of the run" }).click()]);
  assert.equal(file.suggestedFilename(), "pooling-report.html");
});

/** w is multiplied by a factor in every cycle. */
const decay = () => ({
  name: "decay",
  semantics: "documented",
  blocks: [
    { name: "w", op: "Variable", attrs: { shape: [], dtype: "float32" }, position: [0, 0] },
    constant("factor", [], [0.5], [0, 260]),
    { name: "scaled", op: "Mul", inputs: { x: [{ from: "w.ref" }], y: [{ from: "factor.output" }] }, position: [340, 0] },
    { name: "step", op: "Assign", inputs: { ref: [{ from: "w.ref" }], value: [{ from: "scaled.z" }] }, position: [680, 0] },
    { name: "first", op: "Assign", inputs: { ref: [{ from: "w.ref" }], value: [{ value: 8, dtype: "float32" }] }, position: [680, 320] },
  ],
  targets: ["step"],
  initializers: ["first"],
});

test("trends of chosen scalars over chosen runs", async () => {
  const page = await browser.page(studio);
  const id = await studio.show(page, decay());
  const document = decay();
  const run_id = (await studio.api("POST", "/runs", { page_id: id, document, cycles: 12 })).run_id;
  while ((await studio.api("GET", `/runs/${run_id}`)).state !== "done") await page.waitForTimeout(50);
  await page.getByLabel("cycles", { exact: true }).first().fill("8");
  await page.getByRole("button", { name: "Run in a loop" }).click();
  await page.waitForSelector(".trends .chart");
  await page.getByRole("button", { name: /^Run page/ }).waitFor();
  const charts = await page.locator(".trends .chart").count();
  assert.ok(charts >= 2, "a chart for each scalar");
  await page.locator(".trend-choices").getByLabel(/12 cycles/).check();
  await page.waitForFunction(() => document.querySelectorAll(".trend-charts .chart:first-of-type polyline").length >= 2);
  await page.locator(".trend-choices").getByLabel("all in one frame").check();
  await page.locator(".trend-choices").getByLabel("log up").check();
  assert.equal(await page.locator(".trend-charts > .chart").count(), 1);
  // Two runs of every scalar, in the frame and in the legend.
  assert.equal(await page.locator(".trends .chart > svg .series").count(), 2 * charts);
  await seen(page, "trends");
  await page.locator(".trend-choices").getByLabel("scaled.z", { exact: true }).uncheck();
  assert.equal(await page.locator(".trends .chart > svg .series").count(), 2 * (charts - 1));
});

test("a snapshot and the page in one picture: new, gone, changed, rewired", async () => {
  const page = await browser.page(studio, { colorScheme: "light" });
  const id = await studio.show(page, { ...pooling(), name: "versions" });
  await studio.api("POST", `/pages/${id}/snapshots`, { name: "before" });
  const { document, revision } = await studio.api("GET", `/pages/${id}`);
  const edits = [
    { do: "remove", block: "factor" },
    { do: "set_value", block: "half", pin: "y", value: 0.25 },
    { do: "set_text", block: "pool", name: "padding", text: "VALID" },
    { do: "add", op: "Neg", name: "negative", inputs: { x: [{ from: "pool.output" }] }, position: [800, 260] },
    { do: "connect", from: "negative.y", block: "half", pin: "x" },
  ];
  const edited = await studio.api("POST", "/edit", { document, edits });
  await studio.api("PUT", `/pages/${id}`, { revision, document: edited.document });
  await page.reload();
  await page.waitForSelector('[data-id="negative"]');
  await page.getByRole("button", { name: "File", exact: true }).click();
  await page.getByRole("menuitem", { name: "Snapshots…" }).click();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.waitForSelector(".page-diff");
  const of = (change) => page.locator(`.page-diff .scroll .box.${change} title`).allTextContents();
  assert.deepEqual((await of("added")).map((text) => text.split("\n")[0]), ["negative"]);
  assert.deepEqual((await of("removed")).map((text) => text.split("\n")[0]), ["factor"]);
  assert.match((await of("changed")).join("|"), /pool\nother values\npadding: SAME → VALID/);
  assert.deepEqual((await of("rewired")).map((text) => text.split("\n")[0]), ["half"]);
  assert.equal(await page.locator(".page-diff .wire.added").count(), 2);
  assert.equal(await page.locator(".page-diff .wire.removed").count(), 2);
  await seen(page, "versions-light", "dialog.snapshots");
});
