// SPDX-License-Identifier: Apache-2.0
// The panel of a block shows the page of its op: formula, example with its values, gradient; the example opens as a page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { violations } from "./axe.mjs";
import { opened } from "./studio.mjs";

const { studio, browser } = opened();

test("the help of a block, and its example as a page", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const made = await studio.api("POST", "/ops/MaxPool3DGradGrad/open", {});
  await studio.enter(page);
  await page.goto(`${studio.address}/#/page/${made.id}`);
  await page.reload();
  await page.locator('.react-flow__node[data-id="MaxPool3DGradGrad"]').click();
  const docs = page.locator(".docs");
  await docs.locator("img").first().waitFor();
  const said = await docs.innerText();
  assert.match(said, /at the cell that is the maximum of the window/);
  assert.match(said, /vg\.raw_ops\.MaxPool3DGradGrad\(/);
  assert.match(said, /\{\{\{\{\{115, 116\}\}\}\}\}/);
  assert.match(said, /ZerosLike, MaxPool3DGrad/);
  assert.match(said, /data_format = NHWC, which TensorFlow refuses/);
  const widths = await docs.locator("img").evaluateAll((images) => images.map((image) => image.naturalWidth));
  assert.equal(widths.length, 2);
  assert.ok(widths.every((width) => width > 100), String(widths));
  const found = await violations(page, ".docs");
  assert.deepEqual(found.map((one) => `${one.id}: ${one.nodes[0].target}`), []);

  await docs.getByRole("button").last().click();
  await page.waitForFunction((before) => location.hash.startsWith("#/page/") && !location.hash.endsWith(before), made.id);
  assert.equal((await studio.api("GET", "/pages")).pages.length, 2);
});
