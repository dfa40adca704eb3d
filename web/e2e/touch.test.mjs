// SPDX-License-Identifier: Apache-2.0
// Fingers: one taps and pans and moves blocks, two zoom, one that stays opens the menu.
import assert from "node:assert/strict";
import { test } from "node:test";
import { block, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();

/** Where the drawing lies: x, y and zoom. */
const view = (page) =>
  page.evaluate(() => {
    const { a, e, f } = new DOMMatrix(getComputedStyle(document.querySelector(".react-flow__viewport")).transform);
    return { x: e, y: f, zoom: a };
  });

const place = (page, name) => block(page, name).evaluate((node) => node.style.transform);

/** Fingers that come down, move by steps, and leave; `rest` is how long they stay first. */
async function fingers(page, paths, { steps = 6, rest = 0 } = {}) {
  const cdp = await page.context().newCDPSession(page);
  const at = (part) => paths.map(([from, to], id) => ({ id, x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part }));
  await cdp.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: at(0) });
  await page.waitForTimeout(rest);
  for (let step = 1; step <= steps; step += 1) {
    await cdp.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: at(step / steps) });
    await page.waitForTimeout(20);
  }
  await cdp.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await page.waitForTimeout(150);
}

test("taps, one finger, two fingers and a long press", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce", hasTouch: true });
  await studio.show(page, mistake());
  const canvas = await page.locator(".canvas").boundingBox();
  const bare = { x: canvas.x + 30, y: canvas.y + 30 };

  const title = await block(page, "conv").locator(".block-title").boundingBox();
  const onTitle = { x: title.x + 14, y: title.y + 12 };
  await page.touchscreen.tap(onTitle.x, onTitle.y);
  await page.waitForFunction(() => document.querySelector('[data-id="conv"] .block.selected') !== null);
  assert.equal(await page.locator(".panel.right h2").innerText(), "conv");

  const before = await view(page);
  await fingers(page, [[bare, { x: bare.x + 80, y: bare.y + 50 }]]);
  const panned = await view(page);
  assert.ok(Math.abs(panned.x - before.x - 80) < 16 && Math.abs(panned.y - before.y - 50) < 16, `panned by ${panned.x - before.x}, ${panned.y - before.y}`);
  assert.equal(panned.zoom, before.zoom);

  const middle = { x: bare.x + 60, y: bare.y + 60 };
  const apart = (by) => [{ x: middle.x - by, y: middle.y }, { x: middle.x + by, y: middle.y }];
  await fingers(page, [[apart(20)[0], apart(50)[0]], [apart(20)[1], apart(50)[1]]]);
  const near = await view(page);
  assert.ok(near.zoom > 1.5 * panned.zoom, `zoom ${panned.zoom} became ${near.zoom}`);
  await fingers(page, [[apart(50)[0], apart(20)[0]], [apart(50)[1], apart(20)[1]]]);
  assert.ok((await view(page)).zoom < near.zoom / 1.5);

  const there = await block(page, "conv").locator(".block-title").boundingBox();
  const held = { x: there.x + 14, y: there.y + 10 };
  const was = await place(page, "conv");
  await fingers(page, [[held, { x: held.x + 60, y: held.y + 40 }]]);
  assert.notEqual(await place(page, "conv"), was, "a finger moves a block");

  const now = await block(page, "second").locator(".block-title").boundingBox();
  const still = { x: now.x + 14, y: now.y + 10 };
  await fingers(page, [[still, still]], { steps: 0, rest: 700 });
  await page.locator(".context-menu").waitFor();
  assert.ok(await page.locator(".context-menu").isVisible(), "the menu stays when the finger leaves");
  assert.equal(await page.locator(".panel.right h2").innerText(), "second");
  await page.touchscreen.tap(canvas.x + canvas.width - 20, canvas.y + canvas.height - 20);
  await page.waitForFunction(() => document.querySelector(".context-menu") === null);
  await fingers(page, [[{ x: bare.x, y: canvas.y + canvas.height - 30 }, { x: bare.x, y: canvas.y + canvas.height - 30 }]], { steps: 0, rest: 700 });
  await page.getByRole("menuitem", { name: /Add a block/ }).tap();
  await page.locator(".quick-add").waitFor();
});
