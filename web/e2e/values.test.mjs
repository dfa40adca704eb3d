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

test("arrays of NumPy and MATLAB, rules with a seed that stays in sight, files, and rows that do not run into each other", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, { name: "forms", semantics: "documented", blocks: [constant("x", [], [0])] });
  await block(page, "x").locator(".block-title").click();
  const text = page.getByLabel("x value as text");
  const typed = async (value, wanted) => {
    await text.fill(value);
    await text.press("Enter");
    await page.waitForFunction((all) => [...document.querySelectorAll(".block .cell")].map((one) => Number(one.textContent.replace("−", "-"))).join() === all, wanted.join());
  };
  await typed("array([[1, 2],\n       [3, 4]], dtype=float32)", [1, 2, 3, 4]);
  await typed("[5 6; 7 -8]", [5, 6, 7, -8]);
  // A text field of one line would have made 1, 23, 4 of this.
  await page.evaluate(() => navigator.clipboard.writeText("1\t2\n3\t4\n"));
  await text.focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Control+v");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll(".block .cell")].map((one) => one.textContent).join() === "1,2,3,4");
  // Into a cell, a whole array takes the place of the value.
  await page.evaluate(() => navigator.clipboard.writeText("np.array([9., 8.])"));
  await page.getByLabel("x value [0,1]").focus();
  await page.keyboard.press("Control+v");
  await page.waitForFunction(() => document.querySelectorAll(".block .cell").length === 2);
  await page.getByLabel("x value shape").fill("3,9");
  await page.getByLabel("x value shape").press("Enter");
  await page.getByLabel("x value By a rule …").selectOption("normal");
  await page.waitForFunction(() => document.querySelector('[aria-label="x value as text"]').value === "normal([3,9], 0, 1, seed=1)");
  await page.getByLabel("x value As shape").getByText("[1,3,3,3,1]").click();
  await block(page, "x").locator(".pin.output", { hasText: "f32 [1,3,3,3,1]" }).waitFor();
  await page.getByLabel("x value From a file …").last().setInputFiles({ name: "table.csv", mimeType: "text/csv", buffer: Buffer.from("a,b\n10,20\n30,40\n") });
  await page.waitForFunction(() => [...document.querySelectorAll(".block .cell")].map((one) => one.textContent).join() === "10,20,30,40");
  // Enter goes down a column, as in a spreadsheet.
  await page.getByLabel("x value [0,1]").fill("21");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "x value [1,1]");
  await page.waitForFunction(() => document.querySelectorAll(".block .cell")[1]?.textContent === "21");
});

test("a slider on the page sets a number, feeds a placeholder and runs the page", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, {
    name: "slide",
    semantics: "documented",
    blocks: [
      { name: "p", op: "Placeholder", attrs: { dtype: "float32", shape: [2] }, position: [0, 0] },
      constant("rate", [], [0.5], [0, 300]),
      { name: "scaled", op: "Mul", inputs: { x: [{ from: "p.output" }], y: [{ from: "rate.output" }] }, position: [500, 0] },
    ],
    displays: [{ name: "knob", kind: "slider", of: [{ from: "rate.output" }], attrs: { high: 10, step: 1, runs: true, unit: "mm" }, position: [0, 560], size: [220, 72] }],
  });
  await block(page, "p").locator(".block-title").click();
  const fed = page.getByLabel("p Fed value Slider");
  await fed.fill("0.25");
  await page.getByLabel("p Fed value to").fill("4");
  await page.getByLabel("p Fed value to").press("Enter");
  await fed.fill("2");
  await page.waitForFunction(() => document.querySelector('[aria-label="p Fed value as text"]').value === "2,2");
  const knob = page.locator('.react-flow__node[data-id="display:knob"] input');
  await knob.fill("3");
  await page.waitForFunction(() => [...document.querySelectorAll('[data-id="scaled"] .cell')].map((one) => one.textContent).join() === "6,6");
  await knob.focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => [...document.querySelectorAll('[data-id="scaled"] .cell')].map((one) => one.textContent).join() === "8,8");
  assert.match(await page.locator('[data-id="display:knob"]').textContent(), /4 mm/);
  // A second slider, for what the placeholder is fed with.
  await block(page, "p").locator(".block-title").click();
  await page.getByRole("button", { name: "Slider on the page" }).click();
  const second = page.locator('.react-flow__node[data-id="display:slider"] input');
  await second.fill("0.5");
  await block(page, "p").locator(".block-title").click();
  await page.waitForFunction(() => document.querySelector('[aria-label="p Fed value as text"]').value === "0.5,0.5");
});
