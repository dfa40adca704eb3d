// SPDX-License-Identifier: Apache-2.0
// Three planes with one cursor: directions, millimetres, window and level, outlines, shares of a trace; and a large volume.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { nifti } from "./nifti.mjs";
import { bare, block, constant, opened } from "./studio.mjs";

const { studio, browser } = opened();
const [WIDTH, HEIGHT, DEPTH] = [12, 10, 6];
// The first axis runs to the left; voxels are twice as thick as they are wide.
const AFFINE = [[-1.5, 0, 0, 9], [0, 1.5, 0, -7], [0, 0, 3, -10]];
before(() => {
  mkdirSync(join(studio.folder, "files"), { recursive: true });
  const put = (name, data) => writeFileSync(join(studio.folder, "files", name), data);
  put("scan.nii", nifti([WIDTH, HEIGHT, DEPTH], AFFINE, (x, y, z) => x + 100 * y + 10000 * z));
  put("labels.nii", nifti([WIDTH, HEIGHT, DEPTH], AFFINE, (x, y) => (x < 4 ? 1 : x > 7 && y > 5 ? 2 : 0), "uint8"));
});

const window = { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "VALID" };
const scanned = {
  name: "scanned",
  semantics: "documented",
  blocks: [
    { name: "scan", op: "Volume", attrs: { path: "scan.nii" }, position: [0, 0] },
    { name: "labels", op: "Volume", attrs: { path: "labels.nii", dtype: "uint8" }, position: [0, 400] },
    { name: "pool", op: "AvgPool3D", attrs: window, inputs: { input: [{ from: "scan.output" }] }, position: [420, 0] },
  ],
};

async function planes(page, document, name) {
  await studio.show(page, document);
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction((count) => document.querySelectorAll(".badge.ok").length === count, document.blocks.length);
  await block(page, name).locator(".block-title").click();
  await page.keyboard.press("v");
  await page.getByRole("tab", { name: "Planes", exact: true }).click();
  await page.locator(".plane-picture").first().waitFor();
}

const frame = (page, key) => page.locator(`.plane-frame[data-plane="${key}"]`);
const place = (page, key) => frame(page, key).getAttribute("aria-valuenow").then(Number);
const letters = async (page, key) => Promise.all(["top", "right", "bottom", "left"].map((side) => frame(page, key).locator(`.side.${side}`).innerText()));
const readout = (page) => page.locator(".plane-facts .readout").first().innerText();

/** The middle of a cell of a plane as it is on the screen. */
async function cell(at, row, column, rows, columns) {
  const { width, height } = await at.boundingBox();
  return { position: { x: ((column + 0.5) * width) / columns, y: ((row + 0.5) * height) / rows } };
}

test("planes of a scan are turned as people look at them, and share one cursor with all blocks", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await planes(page, scanned, "scan");
  await page.locator(".side").first().waitFor();
  assert.deepEqual(await page.locator(".plane figcaption strong").allTextContents(), ["Axial", "Coronal", "Sagittal"]);
  assert.deepEqual(await letters(page, "HW"), ["A", "L", "P", "R"]);
  assert.deepEqual(await letters(page, "DW"), ["S", "L", "I", "R"]);
  assert.deepEqual(await letters(page, "DH"), ["S", "P", "I", "A"]);
  const box = await frame(page, "DW").boundingBox();
  assert.ok(Math.abs(box.width / box.height - (WIDTH * 1.5) / (DEPTH * 3)) < 0.02, JSON.stringify(box));

  // The front is up: row 2 of the screen is the eighth of the volume.
  const axial = frame(page, "HW");
  await axial.click(await cell(axial, 2, 3, HEIGHT, WIDTH));
  assert.deepEqual([await place(page, "HW"), await place(page, "DW"), await place(page, "DH")], [2, 7, 3]);
  assert.equal(await readout(page), "[0][2][7][3][0] = 20703");
  assert.equal(await page.locator(".readout.where").innerText(), "4.5 R, 3.5 A, 4 I mm");
  // The pool lies on the same scan with voxels of twice the size: its cursor is at the nearest of them.
  await block(page, "pool").locator('.cell.at-cursor[title^="[0][1][3][1][0] ="]').waitFor();
  assert.equal(await page.locator(".cell.at-cursor").count(), 1);
  // The voxel of the pool that reads it is marked, and told.
  await block(page, "pool").locator('.cell.reached[title^="[0][1][3][1][0] ="]').waitFor();
  assert.equal(await page.locator(".cell.reached").count(), 1);
  assert.match(await page.locator(".reached-list").innerText(), /pool\.output \[0,1,3,1,0\]/);

  // The keyboard moves it, on the screen's own left and up, and through the slices; Enter keeps the trace.
  await axial.focus();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("PageUp");
  assert.equal(await readout(page), "[0][3][8][4][0] = 30804");
  await frame(page, "DH").focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowDown");
  assert.equal(await readout(page), "[0][2][9][4][0] = 20904");
  await frame(page, "HW").hover();
  await page.mouse.wheel(0, 100);
  await page.waitForFunction(() => document.querySelector('.plane-frame[data-plane="HW"]').getAttribute("aria-valuenow") === "3");
  const { violations } = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]).include(".panel.viewer").analyze();
  assert.deepEqual(violations.map((one) => `${one.id} ${one.nodes[0]?.target}`), []);
});

test("window and level, and labels of another block as outlines with a legend", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await planes(page, scanned, "scan");
  await page.locator(".side").first().waitFor();
  const greys = () => page.locator(".plane-picture").first().evaluate((canvas) => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.filter((_, at) => at % 4 === 0)]);
  await page.getByLabel("window", { exact: true }).fill("2");
  await page.getByLabel("level", { exact: true }).fill("20500.5");
  // Slice 2: below 20499.5 all is black, above 20501.5 all is white.
  const wanted = Array.from({ length: HEIGHT * WIDTH }, (_, at) => 20000 + 100 * Math.floor(at / WIDTH) + (at % WIDTH));
  await page.waitForFunction(() => document.querySelector(".levels select").value === "");
  assert.deepEqual(await greys(), wanted.map((value) => Math.round((Math.round(Math.min(1, Math.max(0, (value - 20499.5) / 2)) * 256) / 256) * 255)));
  await page.getByLabel("Values that are told apart").selectOption("all");
  assert.ok((await greys()).some((one) => one > 20 && one < 230));
  await page.getByLabel("Values that are told apart").selectOption("bone");
  assert.equal(await page.getByLabel("window", { exact: true }).inputValue(), "2000");
  // Drawn wider with the right button.
  const { x, y, width, height } = await frame(page, "HW").boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.mouse.down({ button: "right" });
  await page.mouse.move(x + width / 2 + 60, y + height / 2, { steps: 3 });
  await page.mouse.up({ button: "right" });
  assert.ok(Number(await page.getByLabel("window", { exact: true }).inputValue()) > 2300);

  await page.getByLabel("outlines").selectOption({ label: "labels.output" });
  await page.waitForFunction(() => document.querySelectorAll(".label-legend li").length === 2);
  assert.deepEqual(await page.locator(".label-legend li").allInnerTexts(), ["1", "2"]);
  const colour = (column, row) => page.locator(".plane-outlines").first().evaluate((canvas, [column, row, columns, rows]) => {
    const at = [column * canvas.width / columns, row * canvas.height / rows];
    return [...canvas.getContext("2d").getImageData(Math.round(at[0]), Math.round(at[1]), 1, 1).data];
  }, [column, row, WIDTH, HEIGHT]);
  assert.deepEqual(await colour(4, 2.5), [255, 99, 71, 255]);
  assert.deepEqual(await colour(8, 7.5), [64, 196, 255, 255]);
  assert.equal((await colour(2, 2.5))[3], 0);
});

test("a trace draws its shares in place and stays while the cursor moves", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await planes(page, scanned, "pool");
  await page.locator(".side").first().waitFor();
  const axial = frame(page, "HW");
  await axial.click(await cell(axial, 1, 2, 5, 6));
  // Row 1 of 5 from the front is row 3 of the pool: cells 6 and 7 of the scan.
  await page.waitForFunction(() => document.querySelector(".trace .window")?.textContent.includes("[0,2:4,6:8,4:6,0]"));
  // The values under the window come from the server; each says what it counts for.
  await page.waitForFunction(() => document.querySelector(".trace .window-grids .cell")?.textContent === "20604×0.125");
  assert.equal(await page.locator(".trace .window-grids .cell").count(), 8);
  await page.locator(".viewer select").first().selectOption("scan");
  await page.locator(".shares span").first().waitFor();
  assert.equal(await frame(page, "HW").locator("rect.share").count(), 4);
  const shares = await frame(page, "HW").locator(".shares span").allTextContents();
  assert.deepEqual(shares, Array(4).fill("×0.125"));
  await page.locator(".plane .trace-marks .in-window").first().waitFor();
  const marked = await frame(page, "HW").locator(".trace-marks .in-window rect.line").evaluate((one) => ["x", "y", "width", "height"].map((name) => Number(one.getAttribute(name))));
  assert.deepEqual(marked, [4, 6, 2, 2]);
  const scan = frame(page, "HW");
  await scan.focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForTimeout(300);
  assert.ok(await page.locator(".trace", { hasText: "let go" }).isVisible());
  assert.deepEqual(await frame(page, "HW").locator(".trace-marks .in-window").count(), 1);
});

test("of a large volume come planes and a likeness, never all of it; what is read out is exact", async () => {
  const SIDE = 160;
  const shape = { name: "shape", op: "Const", attrs: { value: { tensor: { dtype: "int32", shape: [5], values: [1, SIDE, SIDE, SIDE, 1] } }, dtype: "int32" }, position: [0, 0] };
  const noise = { name: "noise", op: "RandomUniform", attrs: { dtype: "float32", seed: 7 }, inputs: { shape: [{ from: "shape.output" }] }, position: [300, 0] };
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const sizes = [];
  page.on("response", (response) => {
    const { pathname, search } = new URL(response.url());
    if (/^\/api\/tensors\//.test(pathname)) sizes.push([pathname.split("/").at(-1) + search, Number(response.headers()["content-length"])]);
  });
  await planes(page, { name: "large", semantics: "documented", blocks: [shape, noise] }, "noise");
  await page.waitForFunction(() => [...document.querySelectorAll(".plane-picture")].every((one) => Number(one.dataset.step) === 1));
  await frame(page, "HW").focus();
  for (let at = 0; at < 10; at += 1) await page.keyboard.press("PageUp");
  await page.waitForFunction(() => document.querySelector(".plane-picture").dataset.place === "89");
  await page.waitForFunction(() => !document.querySelector(".plane-facts .readout").textContent.includes("…"));
  const { runs } = await studio.api("GET", "/runs");
  const { blocks } = await studio.api("GET", `/runs/${runs[0].id}`);
  const { hash } = blocks.find((one) => one.block === "noise").outputs[0];
  const body = await (await fetch(`${studio.address}/api/tensors/${hash}?slice=0,89,79,79,0`, { headers: { authorization: `Bearer ${studio.token}` } })).arrayBuffer();
  const value = new DataView(body).getFloat32(body.byteLength - 4, true);
  assert.equal(await readout(page), `[0][89][79][79][0] = ${value}`);
  await page.getByRole("tab", { name: "Volume", exact: true }).click();
  await page.locator(".volume canvas").waitFor();
  const most = Math.max(...sizes.map(([, size]) => size || 0));
  assert.ok(sizes.length > 10 && most < 4 * 96 ** 3 + 500, JSON.stringify(sizes.filter(([, size]) => size > 2e6)));
  assert.ok(!sizes.some(([name]) => name === hash), "the whole tensor was sent");
});
