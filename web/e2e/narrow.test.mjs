// SPDX-License-Identifier: Apache-2.0
// A small window with many pages open: nothing that can be pressed is cut off.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, block, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();

/** What of these lies outside of a part of the screen. */
const cut = (page, what, inside) =>
  page.evaluate(({ what: selector, inside: frame }) => {
    const { left, right } = document.querySelector(frame).getBoundingClientRect();
    const shown = [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
    return shown.filter((one) => {
      const box = one.getBoundingClientRect();
      return box.left < left - 1 || box.right > right + 1;
    }).map((one) => one.textContent || one.getAttribute("aria-label"));
  }, { what, inside });

/** The tab of the page that is shown, and the button behind all tabs, which stays in sight. */
async function tabInSight(page) {
  assert.deepEqual(await cut(page, ".tab.active button, .tabs > .icon-only", ".tabs"), []);
  const [tab, more] = [await page.locator(".tab.active").boundingBox(), await page.locator(".tabs > .icon-only").boundingBox()];
  assert.ok(tab.x + tab.width <= more.x + 1, "nothing covers it");
}

test("tabs of pages and panels stay in a window of 1280 pixels", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce", viewport: { width: 1280, height: 800 } });
  for (let at = 0; at < 6; at += 1) await studio.api("POST", "/pages", { name: `a page with a long name, number ${at}`, document: { ...mistake(), name: `a page with a long name, number ${at}` } });
  const { pages } = await studio.api("GET", "/pages");
  await studio.enter(page);
  for (const [at, { id }] of pages.entries()) {
    await page.evaluate((to) => (location.hash = `#/page/${to}`), id);
    await page.waitForFunction((count) => document.querySelectorAll(".tab").length === count && document.querySelector(".fact") !== null, at + 1);
    await page.waitForTimeout(150);
    await tabInSight(page);
  }
  assert.equal(await page.locator(".tab").count(), 6);
  assert.ok((await page.locator(".tab.active .name").boundingBox()).width > 60);

  await page.locator(".block.wrong .block-problem button.primary").click();
  await page.waitForSelector(".block.wrong", { state: "detached" });
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length > 3);
  await block(page, "volume").locator(".block-title").click();
  await page.keyboard.press("v");
  await page.locator(".viewer").waitFor();
  await tabInSight(page);
  assert.ok((await page.locator(".run-controls select").boundingBox()).width > 60);
  assert.equal(new Set(await page.locator(".panel.left [role=tab]").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top))).size, 1, "one row");
  assert.deepEqual(await cut(page, ".bottom .panel-tabs button", ".bottom"), [], "the panels below");
  assert.deepEqual(await cut(page, ".status-bar button, .status-bar .fact", ".status-bar"), [], "the line under the canvas");
  assert.deepEqual(await cut(page, ".viewer .panel-tabs > *, .viewer-kinds button", ".viewer"), [], "the viewer");
});
