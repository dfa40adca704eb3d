// SPDX-License-Identifier: Apache-2.0
// Everything on the screen is at most twenty keys away, and so is every action that has no key of its own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { block, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();
const MOST = 20;

/** What has the focus, numbered in the order in which it was first seen. */
const focused = (page) =>
  page.evaluate(() => {
    window.known_ ??= new Map();
    const element = document.activeElement;
    if (!window.known_.has(element)) window.known_.set(element, window.known_.size);
    const name = element.getAttribute("aria-label") ?? element.textContent.slice(0, 40);
    return { id: window.known_.get(element), name: `${element.closest("[aria-label]:not(button)")?.getAttribute("aria-label") ?? ""}: ${name}`, isBody: element === document.body };
  });

test("every stop of the screen is at most twenty keys away", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, mistake());
  await block(page, "conv").locator(".block-title").click({ position: { x: 12, y: 10 } });
  await page.getByRole("button", { name: "Open it as a page" }).waitFor();
  const start = await focused(page);

  // All stops in the order of Tab, once around.
  const order = [];
  for (let press = 0; press < 400; press += 1) {
    await page.keyboard.press("Tab");
    const here = await focused(page);
    if (order.some((one) => one.id === here.id)) break;
    order.push(here);
  }
  assert.ok(order.length > 40, `${order.length} stops`);
  const visible = await page.evaluate(() => {
    // What is told of the page meanwhile can draw a stop anew: it is known by its name.
    const named = (one) => `${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent}`;
    const known = new Set([...window.known_.keys()].map(named));
    const all = [...document.querySelectorAll("button, input, select, textarea, a[href]")];
    return all.filter((one) => one.tabIndex >= 0 && !one.disabled && one.offsetParent !== null && !known.has(named(one))).map((one) => one.outerHTML.slice(0, 90));
  });
  assert.deepEqual(visible, [], "Tab comes to all of them");

  // Where F6 leads, with the number of times that it is pressed.
  await block(page, "conv").locator(".block-title").click({ position: { x: 12, y: 10 } });
  const entries = [{ id: start.id, cost: 0 }];
  for (let press = 1; press <= 8; press += 1) {
    await page.keyboard.press("F6");
    const { id } = await focused(page);
    if (!entries.some((one) => one.id === id)) entries.push({ id, cost: press });
  }
  assert.ok(entries.length >= 6, `F6 leads to ${entries.length} parts of the screen`);
  const at = new Map(order.map((one, index) => [one.id, index]));
  const far = order.map((one, index) => {
    const ways = entries.filter(({ id }) => at.has(id)).map(({ id, cost }) => {
      const away = Math.abs(index - at.get(id));
      return cost + Math.min(away, order.length - away);
    });
    return { name: one.name, keys: Math.min(...ways) };
  });
  console.log(`${order.length} stops, the farthest ${Math.max(...far.map((one) => one.keys))} keys away`);
  assert.deepEqual(far.filter((one) => one.keys > MOST), []);
});

test("actions without keys are near in their menu, and the palette goes by arrows", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, mistake());
  // From anywhere: Shift+F6 or F6 to the bar, Tab to the menu, Enter, arrows.
  await page.keyboard.press("F6");
  let stops = 1;
  const far = [];
  for (const menu of ["file", "edit", "view", "run", "see"]) {
    while ((await page.evaluate(() => document.activeElement.dataset.menu)) !== menu && stops < 30) {
      await page.keyboard.press("Tab");
      stops += 1;
    }
    await page.keyboard.press("Enter");
    await page.locator(".context-menu").waitFor();
    const items = await page.locator(".context-menu [role=menuitem]").evaluateAll((all) => all.map((one) => ({ name: one.textContent, keys: one.querySelector("kbd") !== null })));
    assert.ok(items.length > 0);
    // Arrow up from the first entry comes to the last.
    items.forEach((item, index) => !item.keys && stops + 1 + Math.min(index, items.length - index) + 1 > MOST && far.push(`${menu}: ${item.name}`));
    await page.keyboard.press("Escape");
    await page.locator(`[data-menu="${menu}"]`).focus();
  }
  assert.deepEqual(far, []);

  await page.getByRole("searchbox").focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Conv3DBackpropInputV2");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__node-block").length === 7);
});
