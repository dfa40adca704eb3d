// SPDX-License-Identifier: Apache-2.0
// Large pages: blocks that nobody looks at keep their size and place, and their parts are laid out where they are seen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { clear } from "./arrangement.mjs";
import { many } from "./many.mjs";
import { bare, block, opened } from "./studio.mjs";

const { studio, browser } = opened();

const sizes = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".react-flow__node-block")].map((node) => [node.dataset.id, `${node.offsetWidth}x${node.offsetHeight} ${node.style.transform}`])));
const atRest = (page, count) => page.waitForFunction((wanted) => document.querySelectorAll(".block[data-rests]").length === wanted, count);
/** Wait until so many of these parts are laid out by the browser. */
const laidOut = (page, name, part, wanted) =>
  page.waitForFunction(
    ({ parts, count }) => {
      const all = [...document.querySelectorAll(parts)].filter((one) => one.checkVisibility({ contentVisibilityAuto: true })).length;
      return count === "some" ? all > 0 : all === count;
    },
    { parts: `.react-flow__node[data-id="${name}"] ${part}`, count: wanted },
  );

test("blocks at rest keep their size, far away and beside the window", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, many(120));
  await atRest(page, 120);
  await bare(page);
  const before = await sizes(page);

  await page.keyboard.press("f");
  await page.locator('.canvas[data-far="3"], .canvas[data-far="4"]').waitFor();
  for (let press = 0; press < 3; press += 1) await page.keyboard.press("-");
  await page.locator('.canvas[data-far="4"]').waitFor();
  await atRest(page, 120);
  assert.deepEqual(await sizes(page), before);
  assert.equal(await page.locator(".react-flow__minimap").count(), 0, "all of the page is seen");
  await laidOut(page, "max5", ".cell", 0);
  await laidOut(page, "max5", ".block-title", 1);

  await block(page, "max5").locator(".block-title").dispatchEvent("click");
  await page.keyboard.press("Control+0");
  await page.locator('.canvas[data-far="0"]').waitFor();
  await page.locator(".react-flow__minimap").waitFor();
  await laidOut(page, "max5", ".pin", 2);
  await laidOut(page, "max5", ".cell", "some");
  await laidOut(page, "relu19", ".pin", 0);
  assert.deepEqual(await sizes(page), before);

  // What is drawn anew decides its size itself, and rests again.
  const height = await block(page, "max5").evaluate((node) => node.offsetHeight);
  await page.getByLabel("max5 strides D").fill("-1");
  await page.locator('[data-id="max5"] .block-problem').waitFor();
  await page.waitForFunction((old) => document.querySelector('[data-id="max5"]').offsetHeight !== old, height);
  await atRest(page, 120);
  await page.keyboard.press("Escape");
});

test("wires keep their way around blocks whose titles are wider than all else in them", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.enter(page);
  const { id } = await studio.api("POST", "/gallery/train_classifier/open", {});
  await page.evaluate((to) => (location.hash = `#/page/${to}`), id);
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__node-block").length > 100 && document.querySelector(".fact") !== null);
  for (const zoom of ["f", "Control+0", "f"]) {
    await bare(page);
    await page.keyboard.press(zoom);
    await page.waitForTimeout(900);
    await clear(page, `after ${zoom}`);
  }
});

test("while the page is panned nothing under the mouse is looked for but the page", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, many(5));
  await page.waitForTimeout(400);
  const { x, y } = await page.locator(".react-flow__pane").boundingBox();
  const title = await block(page, "max0").locator(".block-title").boundingBox();
  await page.mouse.move(x + 8, y + 8);
  await page.mouse.down();
  await page.mouse.move(x + 30, y + 30, { steps: 4 });
  const under = () => page.evaluate(({ x: left, y: top }) => document.elementFromPoint(left, top).className, { x: title.x + 40, y: title.y + 30 });
  assert.match(await under(), /react-flow__pane/);
  await page.mouse.up();
  await page.waitForFunction(() => document.querySelector(".react-flow__pane.dragging") === null);
  assert.doesNotMatch(await under(), /react-flow__pane/);
});
