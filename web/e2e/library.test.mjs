// SPDX-License-Identifier: Apache-2.0
// The library: a page-block is kept, stands in palette and quick add, is wired where it is dropped, and is updated in one step.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { clear } from "./arrangement.mjs";
import { bare, block, constant, opened } from "./studio.mjs";

const { studio, browser } = opened();

const placeholder = { name: "x", op: "Placeholder", attrs: { dtype: "float32", shape: [2] }, position: [0, 0] };
const square = { name: "square", op: "Square", inputs: { x: [{ from: "x.output" }] }, position: [260, 0] };
const document = {
  name: "user",
  semantics: "documented",
  blocks: [
    constant("input", [2], [1, 2]),
    { name: "layer", page: "layer", inputs: { x: [{ from: "input.output" }] }, position: [420, 0] },
    { name: "out", op: "Neg", inputs: { x: [{ from: "layer.y" }] }, position: [840, 0] },
  ],
  pages: { layer: { name: "layer", semantics: "documented", blocks: [placeholder, square], inputs: ["x"], outputs: { y: "square.y" } } },
};

/** What axe finds in a part of the page, as the other screens are looked at in `looks.test.mjs`. */
async function clean(page, part) {
  const { violations } = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]).include(part).analyze();
  assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes[0].target}`), []);
}

async function ran(page, name, wanted) {
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(
    ([id, text]) => [...document.querySelectorAll(`.react-flow__node[data-id="${id}"] .cell:not(.ghost)`)].map((cell) => cell.textContent.replace("−", "-")).join(" ") === text,
    [name, wanted],
  );
}

test("a page is kept, used again and updated", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, document);
  await block(page, "layer").locator(".block-title").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Keep in the library" }).click();
  const dialog = page.getByRole("dialog");
  await clean(page, "dialog");
  await dialog.getByLabel("Name").fill("squared");
  await dialog.getByRole("button", { name: "Keep", exact: true }).click();
  await dialog.waitFor({ state: "detached" });

  // In the palette, as a block like any other.
  await page.locator(".palette section", { hasText: "Library" }).getByRole("button", { name: "squared" }).click();
  await block(page, "squared").waitFor();
  await clear(page, "with a page of the library");
  await bare(page);
  await page.keyboard.press("Control+z");
  await block(page, "squared").waitFor({ state: "detached" });

  // In quick add, wired to what it was asked from.
  await bare(page);
  await page.keyboard.press("/");
  await page.locator(".quick-add input").fill("squared");
  await page.keyboard.press("Enter");
  await block(page, "squared").waitFor();
  await page.keyboard.press("Control+z");
  await block(page, "squared").waitFor({ state: "detached" });

  // A newer version is told, and taken in one step that can be undone.
  const file = join(studio.folder, "library", "squared.vox.json");
  writeFileSync(file, readFileSync(file, "utf8").replace('"op": "Square"', '"op": "Neg"'));
  const fix = page.getByRole("tabpanel", { name: "Problems" }).getByRole("button", { name: "Update layer from the library" });
  await fix.waitFor();
  await fix.click();
  await fix.waitFor({ state: "detached" });
  await ran(page, "out", "1 2");
  await bare(page);
  await page.keyboard.press("Control+z");
  await fix.waitFor();
  await ran(page, "out", "-1 -4");
});

test("G goes through a page, and offers the unpacking of one that keeps state", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce", colorScheme: "light" });
  const noise = { name: "noise", op: "RandomUniform", inputs: { shape: [{ value: { tensor: { dtype: "int32", shape: [1], values: [2] } }, dtype: "int32" }] }, attrs: { dtype: "float32" }, position: [0, 200] };
  const mul = { name: "mul", op: "Mul", inputs: { x: [{ from: "x.output" }], y: [{ from: "noise.output" }] }, position: [260, 100] };
  const random = { name: "random", semantics: "documented", blocks: [placeholder, noise, mul], inputs: ["x"], outputs: { y: "mul.z" } };
  const drawn = { name: "drawn", page: "random", inputs: { x: [{ from: "layer.y" }] }, position: [840, 0] };
  await studio.show(page, { ...document, blocks: [...document.blocks.slice(0, 2), drawn], pages: { ...document.pages, random } });
  await block(page, "layer").locator(".block-title").click();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Keep in the library");
  await page.keyboard.press("Enter");
  await clean(page, "dialog");
  await page.keyboard.press("Escape");
  await block(page, "layer").locator(".block-title").click();
  await page.keyboard.press("g");
  await block(page, "gradients/layer_grad").waitFor();
  await clear(page, "with the gradient of a page");
  await bare(page);
  await page.keyboard.press("Control+z");
  await block(page, "drawn").locator(".block-title").click();
  await page.keyboard.press("g");
  await page.getByRole("button", { name: "Put the blocks of drawn in its place" }).click();
  await block(page, "gradients/drawn/mul_grad/Mul").waitFor();
  assert.equal(await block(page, "drawn").count(), 0);
});

test("a block of a package that is not installed is there, with what it holds", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const blur = { name: "blur", op: "boxblur.BoxBlur", attrs: { radius: 3 }, inputs: { x: [{ from: "layer.y" }] }, position: [840, 0] };
  await studio.show(page, { ...document, blocks: [...document.blocks.slice(0, 2), blur] });
  await block(page, "blur").getByText("boxblur, which is not installed").waitFor();
  await block(page, "blur").locator(".block-title").click();
  assert.match(await page.locator(".panel.right, aside").last().innerText(), /radius\s+3/);
});
