// SPDX-License-Identifier: Apache-2.0
// Groups: a frame with a title around blocks, one block in their place, and everything back as it was.
import assert from "node:assert/strict";
import { test } from "node:test";
import { clear } from "./arrangement.mjs";
import { bare, block, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();

const places = (page) => page.locator(".react-flow__node-block").evaluateAll((nodes) => Object.fromEntries(nodes.map((node) => [node.dataset.id, node.style.transform])));
const group = (page, title) => page.locator(`.react-flow__node[data-id$=":${title}"]`);

async function chosen(page, ...names) {
  await bare(page);
  await page.keyboard.press("f");
  await page.waitForTimeout(80);
  for (const [index, name] of names.entries()) await block(page, name).locator(".block-title").click({ modifiers: index > 0 ? ["Shift"] : [], position: { x: 12, y: 10 } });
}

test("blocks are grouped, moved, collapsed, expanded and let go", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const id = await studio.show(page, mistake());
  await chosen(page, "conv", "second");
  await page.keyboard.press("Control+g");
  await group(page, "group").waitFor();
  await clear(page, "with a frame");
  const frame = await group(page, "group").boundingBox();
  for (const name of ["conv", "second"]) {
    const box = await block(page, name).boundingBox();
    assert.ok(box.x > frame.x && box.y > frame.y && box.x + box.width < frame.x + frame.width && box.y + box.height < frame.y + frame.height, `${name} is in the frame`);
  }
  const before = await places(page);

  const title = await group(page, "group").locator("strong").boundingBox();
  await page.mouse.move(title.x + 5, title.y + 5);
  await page.mouse.down();
  await page.mouse.move(title.x + 205, title.y + 25, { steps: 4 });
  await page.mouse.up();
  await clear(page, "after the frame was moved");
  const after = await places(page);
  assert.deepEqual(Object.keys(before).filter((name) => before[name] !== after[name]).sort(), ["conv", "second"]);

  await group(page, "group").locator("strong").dblclick();
  await page.keyboard.type("edges");
  await page.keyboard.press("Enter");
  await group(page, "edges").waitFor();
  await group(page, "edges").getByRole("button", { name: "Another colour" }).click();
  await group(page, "edges").getByRole("button", { name: "Collapse" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__node-block").length === 4);
  await clear(page, "collapsed");
  assert.equal(await group(page, "edges").locator(".pin.input").count(), 5, "what comes from outside is a pin");
  assert.equal(await page.locator(".react-flow__edge").count(), 5);
  await page.keyboard.press("Control+s");
  await page.waitForSelector(".draft-saved");
  const { document } = await studio.api("GET", `/pages/${id}`);
  assert.deepEqual(document.groups, [{ title: "edges", blocks: ["conv", "second"], colour: "blue", collapsed: true }]);
  assert.equal(document.blocks.length, 6);

  await page.reload();
  await group(page, "edges").getByRole("button", { name: "Expand" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__node-block").length === 6);
  await clear(page, "expanded");
  assert.deepEqual(await places(page), after, "blocks are where they were");
  await chosen(page, "conv");
  await page.keyboard.press("Control+Shift+G");
  await group(page, "edges").waitFor({ state: "detached" });
  assert.equal(await page.locator(".react-flow__node-block").count(), 6);
});
