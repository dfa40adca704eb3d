// SPDX-License-Identifier: Apache-2.0
// Building pages by mouse and by keyboard.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, block, constant, mistake, numbers, opened, pin } from "./studio.mjs";

const { studio, browser } = opened();

const two = () => ({
  name: "two",
  semantics: "documented",
  blocks: [
    constant("volume", [1, 2, 2, 2, 1], [1, 2, 3, 4, 5, 6, 7, 8], [0, 0]),
    { name: "pool", op: "MaxPool3D", attrs: { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "VALID" }, position: [420, 0] },
  ],
});

async function drag(page, from, to) {
  const [a, b] = [await from.boundingBox(), await to.boundingBox()];
  await page.mouse.move(a.x + a.width / 2, a.y + a.height / 2);
  await page.mouse.down();
  await page.mouse.move((a.x + b.x) / 2, (a.y + b.y) / 2, { steps: 4 });
  await page.mouse.move(b.x + b.width / 2, b.y + b.height / 2, { steps: 4 });
  await page.mouse.up();
}

const wires = (page) => page.locator(".react-flow__edge").count();
const wired = (page, count) => page.waitForFunction((wanted) => document.querySelectorAll(".react-flow__edge").length === wanted, count);

test("wires by mouse, undone and redone, and a run with the right value", async () => {
  const page = await browser.page(studio);
  await studio.show(page, two());
  await drag(page, pin(page, "volume", "output", "output"), pin(page, "pool", "input", "input"));
  await page.waitForSelector(".chip");
  assert.equal(await page.locator(".chip").innerText(), "1×2×2×2×1");
  await bare(page);
  await page.keyboard.press("Control+z");
  await wired(page, 0);
  await page.keyboard.press("Control+y");
  await wired(page, 1);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === 2);
  assert.deepEqual(await numbers(page, "pool"), [8]);
});

test("a wire of the wrong type is refused while it is dragged", async () => {
  const page = await browser.page(studio);
  const document = two();
  document.blocks.push({ name: "shape", op: "Shape", inputs: { input: [{ from: "volume.output" }] }, position: [0, 260] });
  await studio.show(page, document);
  const from = await pin(page, "shape", "output", "output").boundingBox();
  await page.mouse.move(from.x + 12, from.y + 12);
  await page.mouse.down();
  await page.mouse.move(from.x + 80, from.y - 40, { steps: 3 });
  await page.waitForSelector('.pin.wire-refused [data-block="pool"]');
  await page.mouse.up();
  await page.keyboard.press("Escape");
  await drag(page, pin(page, "shape", "output", "output"), pin(page, "pool", "input", "input"));
  assert.equal(await wires(page), 1);
  assert.match(await page.locator(".notice").innerText(), /does not take int32/);
});

test("wires by keyboard alone", async () => {
  const page = await browser.page(studio);
  await studio.show(page, two());
  await block(page, "pool").focus();
  await block(page, "volume").focus();
  await block(page, "volume").locator(".block-title").click();
  await page.keyboard.press("w");
  await page.waitForSelector('.pin.wire-here [data-block="pool"]');
  await page.keyboard.press("Enter");
  await page.waitForSelector(".react-flow__edge");
  assert.equal(await wires(page), 1);
  // Arrows go to the nearest block, Alt and arrows move it.
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector('.react-flow__node.selected[data-id="pool"]');
  const before = await block(page, "pool").boundingBox();
  await page.keyboard.press("Alt+ArrowDown");
  await page.waitForFunction((y) => document.querySelector('[data-id="pool"]').getBoundingClientRect().y > y, before.y + 2);
});

test("a wire dropped on the canvas offers what takes its type, and wires it", async () => {
  const page = await browser.page(studio);
  await studio.show(page, two());
  const from = await pin(page, "pool", "output", "output").boundingBox();
  await page.mouse.move(from.x + 12, from.y + 12);
  await page.mouse.down();
  await page.mouse.move(from.x + 60, from.y + 130, { steps: 4 });
  await page.mouse.up();
  await page.waitForSelector(".quick-add");
  assert.equal(await page.locator(".quick-add li", { hasText: "LogicalNot" }).count(), 0);
  await page.keyboard.type("relu");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 3);
  await wired(page, 1);
});

test("blocks are added by typing, dragged from the palette, renamed, copied across pages, deleted", async () => {
  const page = await browser.page(studio);
  await studio.show(page, two());
  await bare(page);
  await page.keyboard.press("/");
  await page.keyboard.type("avgpool3dgrad");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 3);
  await page.waitForSelector(".react-flow__node.selected .block");
  await page.keyboard.press("F2");
  await page.keyboard.type("mine");
  await page.keyboard.press("Enter");
  await block(page, "mine").waitFor();
  await bare(page);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Control+c");
  await page.keyboard.press("Control+v");
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 6);
  await block(page, "pool_1").waitFor();
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 3);
  await studio.show(page, { name: "other", semantics: "documented", blocks: [constant("volume", [1], [1])] });
  await bare(page);
  await page.keyboard.press("Control+v");
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 4);
  await block(page, "volume_1").waitFor();
  await page.keyboard.press("Delete");
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 1);
});

test("attributes by widget and by text, with the place of a mistake", async () => {
  const page = await browser.page(studio);
  const document = two();
  document.blocks[1].inputs = { input: [{ from: "volume.output" }] };
  await studio.show(page, document);
  await block(page, "pool").locator(".block-title").click();
  await page.getByLabel("pool strides D").fill("1");
  await page.waitForFunction(() => document.querySelector('[data-id="pool"] .attrs').textContent.includes("1·1·2·2·1"));
  const text = page.getByLabel("pool ksize as text");
  await text.fill("{1,1,2,2,1}");
  await text.press("Enter");
  await page.waitForFunction(() => document.querySelector('[data-id="pool"] .out .pin-type').textContent.includes("[1,2,1,1,1]"));
  await text.fill("{1,1,2,x,1}");
  await text.press("Enter");
  await page.waitForSelector(".inspector pre.fault");
  assert.match(await page.locator(".inspector pre.fault").innerText(), /\^/);
  await page.getByLabel("volume value as text").count();
});

test("a page from a selection, in and out, and back by undo", async () => {
  const page = await browser.page(studio);
  const document = mistake();
  await studio.show(page, document);
  await block(page, "conv").locator(".block-title").click();
  await page.keyboard.press("p");
  await block(page, "page").waitFor();
  assert.equal(await block(page, "conv").count(), 0);
  await page.keyboard.press("Enter");
  await block(page, "conv").waitFor();
  assert.deepEqual(await page.locator(".breadcrumb button").allTextContents(), ["MaxPool3DGradGrad", "page"]);
  // A placeholder that is renamed inside keeps its wire outside.
  const wired = await wires(page);
  await block(page, "volume").locator(".block-title").click();
  await page.keyboard.press("F2");
  await page.keyboard.type("입력");
  await page.keyboard.press("Enter");
  await block(page, "입력").waitFor();
  assert.equal(await wires(page), wired);
  await page.keyboard.press("Alt+ArrowUp");
  await block(page, "page").getByText("입력").waitFor();
  await block(page, "page").locator(".block-title").click();
  await page.keyboard.press("Shift+P");
  await block(page, "page/conv").waitFor();
  // Undo at once: it waits for the edit that the server still makes.
  await page.keyboard.press("Delete");
  await page.keyboard.press("Control+z");
  await block(page, "page/conv").waitFor();
  for (let steps = 0; steps < 3; steps += 1) await page.keyboard.press("Control+z");
  await block(page, "conv").waitFor();
});

test("align, distribute, tidy", async () => {
  const page = await browser.page(studio);
  await studio.show(page, mistake());
  await bare(page);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Alt+a");
  await page.keyboard.press("l");
  const lefts = () => page.locator(".react-flow__node").evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().x)));
  await page.waitForFunction(() => new Set([...document.querySelectorAll(".react-flow__node")].map((one) => Math.round(one.getBoundingClientRect().x))).size === 1);
  await page.keyboard.press("Shift+A");
  await page.waitForFunction(() => new Set([...document.querySelectorAll(".react-flow__node")].map((one) => Math.round(one.getBoundingClientRect().x))).size > 1);
  await page.waitForTimeout(400);
  const boxes = await page.locator(".react-flow__node").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
  const overlap = boxes.some((a, i) => boxes.some((b, j) => i < j && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1));
  assert.equal(overlap, false);
  assert.ok(new Set(await lefts()).size > 1);
});
