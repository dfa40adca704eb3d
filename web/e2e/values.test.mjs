// SPDX-License-Identifier: Apache-2.0
// Values: typed, filled, reshaped, edited cell by cell, pasted from a spreadsheet, fed, and dropped as files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, block, constant, numbers, opened, pin } from "./studio.mjs";

const { studio, browser } = opened();

/** A small .npy file of float32. */
function npy(shape, values) {
  const head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(",")},), }`.padEnd(117, " ") + "\n";
  const bytes = Buffer.alloc(10);
  bytes.write("\x93NUMPY\x01\x00", "latin1");
  bytes.writeUInt16LE(head.length, 8);
  return Buffer.concat([bytes, Buffer.from(head, "latin1"), Buffer.from(new Float32Array(values).buffer)]);
}

/** Drop files on an element of the page. */
async function drop(page, files, target) {
  const transfer = await page.evaluateHandle((all) => {
    const data = new DataTransfer();
    for (const { name, bytes } of all) data.items.add(new File([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], name));
    return data;
  }, files.map(({ name, bytes }) => ({ name, bytes: bytes.toString("base64") })));
  await target.dispatchEvent("drop", { dataTransfer: transfer, clientX: 700, clientY: 500 });
}

test("a constant by text, shape, fill, cells and a spreadsheet", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, { name: "values", semantics: "documented", blocks: [constant("x", [], [0])] });
  await block(page, "x").locator(".block-title").click();
  const text = page.getByLabel("x value as text");
  await text.fill("range(8)");
  await text.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".block .cell").length === 8);
  assert.deepEqual(await numbers(page, "x"), [0, 1, 2, 3, 4, 5, 6, 7]);
  await page.getByLabel("x value shape").fill("2,4");
  await page.getByLabel("x value shape").press("Enter");
  await page.getByLabel("x value [1,3]").fill("70");
  await page.getByLabel("x value [1,3]").press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll(".block .cell")].at(-1)?.textContent === "70");
  await page.evaluate(() => navigator.clipboard.writeText("10\t20\r\n30\t40\r\n"));
  await page.getByLabel("x value [0,1]").focus();
  await page.keyboard.press("Control+v");
  await page.waitForFunction(() => document.querySelectorAll(".block .cell")[1]?.textContent === "10");
  assert.deepEqual(await numbers(page, "x"), [0, 10, 20, 3, 4, 30, 40, 70]);
  await block(page, "x").locator(".pin.output", { hasText: "f32 [2,4]" }).waitFor();
  await page.getByLabel("x value fill with").fill("2.5");
  await page.getByLabel("x value fill with").press("Enter");
  await page.waitForFunction(() => document.querySelector(".block .cell")?.textContent === "2.5");
  await text.fill("1,2;;3");
  await text.press("Enter");
  await page.waitForSelector(".fault");
  await bare(page);
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelectorAll(".block .cell")[1]?.textContent === "10");
});

test("a placeholder is fed from the inspector", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, {
    name: "fed",
    semantics: "documented",
    blocks: [
      { name: "p", op: "Placeholder", attrs: { dtype: "float32", shape: [3] }, position: [0, 0] },
      { name: "minus", op: "Neg", inputs: { x: [{ from: "p.output" }] }, position: [500, 0] },
    ],
  });
  await block(page, "p").locator(".block-title").click();
  await page.getByLabel("p Fed value as text").fill("1,2,3");
  await page.getByLabel("p Fed value as text").press("Enter");
  await page.waitForSelector('[aria-label="p Fed value [2]"]');
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === 2);
  assert.deepEqual(await numbers(page, "minus"), [-1, -2, -3]);
});

test("dropped files become blocks, several at once, and on a pin wired to it", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, { name: "drop", semantics: "documented", blocks: [{ name: "minus", op: "Neg", position: [500, 0] }] });
  await drop(page, [{ name: "one.npy", bytes: npy([2], [1, 2]) }, { name: "two.npy", bytes: npy([3], [3, 4, 5]) }], page.locator(".react-flow__pane"));
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 3);
  assert.deepEqual(await numbers(page, "two"), [3, 4, 5]);
  await page.keyboard.press("f");
  await drop(page, [{ name: "three.npy", bytes: npy([2], [7, 8]) }], pin(page, "minus", "x", "input"));
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 1);
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === 4);
  assert.deepEqual(await numbers(page, "minus"), [-7, -8]);
  assert.equal(await page.locator(".top-bar .tab").count(), 1);
});
