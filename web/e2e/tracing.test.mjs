// SPDX-License-Identifier: Apache-2.0
// Where a voxel comes from, asked on heat maps, slices and the view in three dimensions, and kept by a click.
import assert from "node:assert/strict";
import { test } from "node:test";
import { violations } from "./axe.mjs";
import { bare, block, constant, opened } from "./studio.mjs";

const { studio, browser } = opened();
const SIDE = 20;
const VALUES = Array.from({ length: SIDE ** 3 }, (_, at) => (at * 7919) % 8009);
const windows = { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "VALID" };
const pooled = () => ({
  name: "scan",
  semantics: "documented",
  blocks: [
    constant("scan", [1, SIDE, SIDE, SIDE, 1], VALUES),
    { name: "pool", op: "MaxPool3D", attrs: windows, inputs: { input: [{ from: "scan.output" }] }, position: [420, 0] },
  ],
});

/** The largest voxel under a window of the pool, and where it lies. */
function winner(d, h, w) {
  const cells = [0, 1].flatMap((dd) => [0, 1].flatMap((dh) => [0, 1].map((dw) => [2 * d + dd, 2 * h + dh, 2 * w + dw])));
  const valueOf = ([z, y, x]) => VALUES[(z * SIDE + y) * SIDE + x];
  const place = cells.toSorted((a, b) => valueOf(b) - valueOf(a))[0];
  return { place, value: valueOf(place) };
}

async function shown(page) {
  await studio.show(page, pooled());
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === 2);
  await block(page, "pool").locator("canvas.heat:not(.ghost)").waitFor();
}

/** The middle of a cell of a picture of 10 by 10 voxels. */
async function cell(canvas, row, column) {
  const { width, height } = await canvas.boundingBox();
  return { position: { x: ((column + 0.5) * width) / 10, y: ((row + 0.5) * height) / 10 } };
}

test("a heat map tells where a voxel comes from, in all blocks; a click keeps it", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await shown(page);
  const heat = block(page, "pool").locator("canvas.heat");
  await heat.hover(await cell(heat, 3, 7));
  const { place, value } = winner(5, 3, 7);
  await page.waitForFunction((text) => document.querySelector(".trace .winner-note")?.textContent.includes(text), `[0][${place.join("][")}][0]`);
  assert.match(await page.locator(".trace p").first().innerText(), new RegExp(`\\[0\\]\\[5\\]\\[3\\]\\[7\\]\\[0\\] = ${value}`));
  const box = await block(page, "scan").locator(".trace-marks .in-window rect.line").evaluate((one) => ["x", "y", "width", "height"].map((name) => Number(one.getAttribute(name))));
  assert.deepEqual(box, [14, 6, 2, 2]);
  await heat.click(await cell(heat, 3, 7));
  await page.getByRole("button", { name: "let go" }).waitFor();
  await page.mouse.move(5, 5);
  await page.waitForTimeout(600);
  await block(page, "scan").locator(".trace-marks .winner").waitFor();
  // Another voxel does not take its place by being passed over.
  await heat.hover(await cell(heat, 8, 1));
  await page.waitForTimeout(300);
  assert.match(await page.locator(".trace p").first().innerText(), /\[5\]\[3\]\[7\]/);
  await page.keyboard.press("Escape");
  await page.locator(".trace-marks").first().waitFor({ state: "detached" });
});

test("slices and the view in three dimensions tell it, too, and the other planes follow", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await shown(page);
  await block(page, "pool").locator(".block-title").click();
  await page.keyboard.press("v");
  const slice = page.locator("canvas.slice");
  await slice.waitFor();
  await slice.click(await cell(slice, 6, 2));
  const { place } = winner(4, 6, 2);
  await block(page, "scan").locator(".trace-marks .winner").waitFor();
  // The planes of the scan go to the voxel that has won.
  await page.locator(".viewer select").first().selectOption("scan");
  await page.locator(".slider output", { hasText: `${place[0]} / ${SIDE - 1}` }).waitFor();
  await page.locator(".slice-marks .trace-marks .winner").waitFor();
  // Greys between two values.
  await page.getByLabel("Colours").selectOption("grey");
  await page.getByLabel("lowest value shown").fill("4000");
  await page.getByLabel("highest value shown").fill("4001");
  const dark = () => slice.evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((_, at) => at % 4 === 0).every((red) => red === 0 || red === 255);
  });
  assert.ok(await dark());
  await page.getByRole("button", { name: "all values" }).click();
  assert.ok(!(await dark()));
  const found = await violations(page, ".panel.viewer");
  assert.deepEqual(found.map((one) => one.id), []);

  await bare(page);
  await page.locator(".viewer select").first().selectOption("pool");
  await page.getByRole("tab", { name: "Volume", exact: true }).click();
  const volume = page.locator(".volume canvas");
  await volume.waitFor();
  const { width, height } = await volume.boundingBox();
  await bare(page);
  await page.keyboard.press("Escape");
  await volume.hover({ position: { x: width / 2, y: height / 2 } });
  await page.waitForFunction(() => /^\[0\](\[\d\]){3}\[0\] = \d+$/.test(document.querySelector(".viewer .readout").textContent));
  await volume.click({ position: { x: width / 2, y: height / 2 } });
  const [text, d, h, w, seen] = /^\[0\]\[(\d)\]\[(\d)\]\[(\d)\]\[0\] = (\d+)$/.exec(await page.locator(".viewer .readout").innerText());
  assert.equal(winner(Number(d), Number(h), Number(w)).value, Number(seen), text);
  await page.getByRole("tab", { name: "Slices", exact: true }).click();
  await page.locator(".slice-marks .trace-marks .traced").waitFor();
});
