// SPDX-License-Identifier: Apache-2.0
// Two minutes with a scan: load a NIfTI, pool it, trace a voxel in three dimensions, fit a filter, compare two runs.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bare, block, constant, numbers, opened, pin } from "./studio.mjs";

const HEAD = fileURLToPath(new URL("../../examples/files/head.nii.gz", import.meta.url));
const { studio, browser } = opened();
before(() => {
  mkdirSync(join(studio.folder, "files"), { recursive: true });
  copyFileSync(HEAD, join(studio.folder, "files", "head.nii.gz"));
});

const VOXELS = 25 * 41 * 33;
const wire = (...outputs) => Object.fromEntries(outputs.map(([name, from]) => [name, [{ from }]]));
const ints = (name, values, position) => ({ name, op: "Const", attrs: { value: { tensor: { dtype: "int32", shape: [values.length], values } }, dtype: "int32" }, position });
const convolution = { strides: [1, 1, 1, 1, 1], padding: "SAME" };

/** A filter that nobody knows, found from what it makes of the scan: steps down the slope of the mean square. */
function fitting(rate) {
  const hidden = Array.from({ length: 27 }, (_, at) => ((at * 7) % 11) / 40 - 0.1);
  return {
    name: "Fit a filter",
    semantics: "documented",
    blocks: [
      { name: "scan", op: "Volume", attrs: { path: "head.nii.gz" }, position: [0, 0] },
      constant("unit", [], [1 / 16000], [0, 220]),
      { name: "bright", op: "Mul", inputs: wire(["x", "scan.output"], ["y", "unit.output"]), position: [300, 0] },
      constant("hidden", [3, 3, 3, 1, 1], hidden, [300, 260]),
      { name: "wanted", op: "Conv3D", attrs: convolution, inputs: wire(["input", "bright.z"], ["filter", "hidden.output"]), position: [620, 0] },
      { name: "w", op: "VariableV2", attrs: { shape: [3, 3, 3, 1, 1], dtype: "float32" }, position: [300, 520] },
      constant("start", [3, 3, 3, 1, 1], Array(27).fill(0), [0, 520]),
      { name: "begin", op: "Assign", inputs: wire(["ref", "w.ref"], ["value", "start.output"]), position: [620, 760] },
      { name: "guess", op: "Conv3D", attrs: convolution, inputs: wire(["input", "bright.z"], ["filter", "w.ref"]), position: [620, 420] },
      { name: "error", op: "Sub", inputs: wire(["x", "guess.output"], ["y", "wanted.output"]), position: [960, 200] },
      { name: "square", op: "Square", inputs: wire(["x", "error.z"]), position: [1260, 100] },
      ints("all", [0, 1, 2, 3, 4], [1260, 320]),
      { name: "loss", op: "Mean", inputs: wire(["input", "square.y"], ["axis", "all.output"]), position: [1560, 100] },
      ints("sizes", [3, 3, 3, 1, 1], [960, 520]),
      { name: "slope", op: "Conv3DBackpropFilterV2", attrs: convolution, inputs: wire(["input", "bright.z"], ["filter_sizes", "sizes.output"], ["out_backprop", "error.z"]), position: [1260, 520] },
      constant("rate", [], [(2 * rate) / VOXELS], [1260, 800]),
      { name: "step", op: "Mul", inputs: wire(["x", "rate.output"], ["y", "slope.output"]), position: [1620, 520] },
      { name: "descent", op: "Sub", inputs: wire(["x", "w.ref"], ["y", "step.z"]), position: [1920, 520] },
      { name: "update", op: "Assign", inputs: wire(["ref", "w.ref"], ["value", "descent.z"]), position: [2220, 520] },
    ],
    outputs: { loss: "loss.output", w: "update.output_ref" },
    initializers: ["begin"],
  };
}

const done = (page, count) => page.waitForFunction((wanted) => document.querySelectorAll(".badge.ok").length >= wanted, count);

/** A page with the scan and its pool, made by hand. */
async function loadAndPool(page) {
  await studio.enter(page);
  await page.getByRole("button", { name: "New page", exact: true }).first().click();
  await page.locator(".canvas").waitFor();
  await bare(page);
  await page.keyboard.press("/");
  await page.keyboard.type("volume");
  await page.keyboard.press("Enter");
  await page.locator(".block").waitFor();
  const path = page.getByLabel("volume path as text");
  await path.fill("head.nii.gz");
  await path.press("Enter");
  await page.locator('.react-flow__node[data-id="volume"]', { hasText: "[1,25,41,33,1]" }).waitFor();
  const from = await pin(page, "volume", "output", "output").boundingBox();
  await page.mouse.move(from.x + 12, from.y + 12);
  await page.mouse.down();
  await page.mouse.move(from.x + 90, from.y + 40, { steps: 4 });
  await page.mouse.up();
  await page.waitForSelector(".quick-add");
  await page.keyboard.type("maxpool3d");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".react-flow__edge");
  await page.locator('.react-flow__node.selected[data-id^="max"]').waitFor();
  const pool = await page.locator(".react-flow__node.selected").getAttribute("data-id");
  for (const attr of ["ksize", "strides"]) {
    const field = page.getByLabel(`${pool} ${attr} as text`);
    await field.fill("1,2,2,2,1");
    await field.press("Enter");
  }
  await page.getByLabel(`${pool} padding`, { exact: true }).selectOption("VALID");
  await block(page, pool).filter({ hasText: "[1,12,20,16,1]" }).waitFor();
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await done(page, 2);
  return pool;
}

/** A voxel of the pool in the view in three dimensions, and the voxel of the scan that it is the maximum of. */
async function traceInSpace(page, pool) {
  await block(page, pool).locator(".block-title").click();
  await page.keyboard.press("v");
  await page.getByRole("tab", { name: "Volume", exact: true }).click();
  const volume = page.locator(".volume canvas");
  await volume.waitFor();
  await volume.hover();
  await page.waitForFunction(() => /= \S+$/.test(document.querySelector(".viewer .readout").textContent));
  await volume.click();
  const [, ...found] = /^\[0\]\[(\d+)\]\[(\d+)\]\[(\d+)\]\[0\] = (\S+)$/.exec(await page.locator(".viewer .readout").innerText());
  const [d, h, w, value] = found.map(Number);
  // On the planes of the scan, turned as people look at it, stands the voxel that won, with its place in millimetres.
  await page.locator(".viewer select").first().selectOption("volume");
  await page.getByRole("tab", { name: "Planes", exact: true }).click();
  await page.locator(".plane .trace-marks .winner").first().waitFor();
  await page.locator(".side.top", { hasText: "S" }).first().waitFor();
  const [text, z, y, x, there] = /^\[0\]\[(\d+)\]\[(\d+)\]\[(\d+)\]\[0\] = (\S+)$/.exec(await page.locator(".plane-facts .readout").first().innerText());
  assert.deepEqual([z, y, x].map((at) => Math.floor(Number(at) / 2)), [d, h, w], text);
  assert.equal(Number(there), value);
  const [r, a, s] = [32 - 2 * Number(x), 2 * Number(y) - 40, 2 * Number(z) - 16];
  const say = (at, plus, minus) => `${Math.abs(at)} ${at < 0 ? minus : plus}`;
  assert.equal(await page.locator(".readout.where").innerText(), `${say(r, "R", "L")}, ${say(a, "A", "P")}, ${say(s, "S", "I")} mm`);
}

async function loop(page, cycles) {
  await page.getByLabel("cycles").fill(String(cycles));
  await page.getByRole("button", { name: "Run in a loop" }).click();
}

/** The last two runs, before and after the fit: the same scan, other filters. */
async function compareTwoRuns(page) {
  await page.locator(".bottom").getByRole("tab", { name: "Runs", exact: true }).click();
  const rows = page.locator(".bottom .table.runs tr");
  await rows.nth(1).waitFor();
  await rows.nth(0).getByRole("checkbox").check();
  await rows.nth(1).getByRole("checkbox").check();
  await page.getByRole("button", { name: "Compare 2 runs" }).click();
  const cell = (name, at) => page.locator(".bottom .table.compared tbody tr", { has: page.getByRole("cell", { name, exact: true }) }).locator("td").nth(at);
  await cell("scan", 3).waitFor();
  assert.equal(await cell("scan", 3).innerText(), "equal");
  assert.ok(Number(await cell("w", 3).innerText()) > 0.01);
}

test("a scan is loaded, pooled, traced, fitted and compared in two minutes", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const start = Date.now();
  await traceInSpace(page, await loadAndPool(page));

  await studio.show(page, fitting(0.12));
  const isFitted = async () => (await studio.api("GET", "/runs")).runs.some((run) => run.cycles === 40 && run.state === "done");
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await done(page, 5);
  const loss = async () => {
    await block(page, "loss").locator(".cell:not(.ghost)").first().waitFor();
    return (await numbers(page, "loss"))[0];
  };
  const before = await loss();
  assert.ok(before > 0.001, `loss ${before}`);
  await loop(page, 40);
  await page.locator(".trends .chart", { hasText: "loss" }).waitFor();
  for (let tries = 0; !(await isFitted()); tries += 1) {
    assert.ok(tries < 200);
    await page.waitForTimeout(100);
  }
  await page.waitForFunction(() => document.querySelector('[data-id="loss"] .badge.ok'));
  const after = await loss();
  assert.ok(after < before / 20, `the loss fell from ${before} to ${after}`);

  await compareTwoRuns(page);
  const seconds = (Date.now() - start) / 1000;
  console.log(`two minutes with a scan took ${seconds.toFixed(1)} s`);
  assert.ok(seconds < 120);
  assert.deepEqual(browser.faults, []);
});
