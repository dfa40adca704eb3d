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
  await page.waitForSelector(".react-flow__minimap");
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
