// SPDX-License-Identifier: Apache-2.0
// Finding one's way: a double click opens the block, the menu, Find, the map, Back, and tabs that outlive a reload.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, block, constant, opened } from "./studio.mjs";

const { studio, browser } = opened();

const row = (name, count) => ({
  name,
  semantics: "documented",
  blocks: Array.from({ length: count }, (_, at) => constant(`c${at}`, [2], [at, at], [(at % 4) * 460, Math.floor(at / 4) * 260])),
});

test("a double click opens the block, the right button a menu, and Find goes to a block", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, row("many", 14));
  // The map is there where a part of the page is out of sight.
  await bare(page);
  await page.keyboard.press("Control+0");
  await page.waitForSelector(".react-flow__minimap");
  await page.keyboard.press("f");
  await page.waitForSelector(".react-flow__minimap", { state: "detached" });
  await block(page, "c1").locator(".block-title").dblclick();
  await page.waitForFunction(() => document.activeElement?.closest(".inspector") !== null);
  assert.equal(await page.locator(".quick-add").count(), 0);
  assert.equal(await page.locator(".panel.right h2").innerText(), "c1");
  await block(page, "c2").locator(".block-title").click({ button: "right" });
  await page.getByRole("menuitem", { name: /Duplicate/ }).click();
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 15);
  await bare(page);
  await page.keyboard.press("Control+f");
  await page.keyboard.type("c13");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".panel.right h2")?.textContent === "c13");
  await page.locator(".react-flow__pane").dblclick({ position: { x: 8, y: 8 } });
  await page.waitForSelector(".quick-add");
});

test("Back goes to the page before, and a reload keeps the tabs", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const first = await studio.show(page, row("first", 1));
  const second = (await studio.api("POST", "/pages", { name: "second", document: row("second", 2) })).id;
  await page.evaluate((id) => (location.hash = `#/page/${id}`), second);
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 2);
  await page.goBack();
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 1);
  assert.match(page.url(), new RegExp(`${first}$`));
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll(".top-bar .tab").length === 2 && document.querySelectorAll(".block").length === 1);
  assert.equal(await page.locator(".top-bar .tab.active").innerText(), "first");
});

test("a block that is let go at the edge stays there", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  // As where a drag ends between two frames: what is to be cancelled has begun.
  await page.addInitScript(() => (window.cancelAnimationFrame = () => undefined));
  await studio.show(page, row("edge", 3));
  const place = () => block(page, "c1").evaluate((node) => node.style.transform);
  const before = await place();
  const title = await block(page, "c1").locator(".block-title").boundingBox();
  const canvas = await page.locator(".canvas").boundingBox();
  await page.mouse.move(title.x + 12, title.y + 12);
  await page.mouse.down();
  await page.mouse.move(title.x + 12, canvas.y + canvas.height - 60, { steps: 5 });
  await page.mouse.move(title.x + 12, canvas.y + canvas.height - 6, { steps: 3 });
  const held = await place();
  await page.waitForFunction((then) => document.querySelector('[data-id="c1"]').style.transform !== then, held);
  await page.mouse.up();
  await page.waitForTimeout(120);
  const after = await place();
  assert.notEqual(after, before);
  await page.waitForTimeout(300);
  assert.equal(await place(), after);
});
