// SPDX-License-Identifier: Apache-2.0
// Every screen in both themes and languages: axe finds nothing, and the pictures of the documentation are taken.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { violations } from "./axe.mjs";
import { bare, block, mistake, opened } from "./studio.mjs";

const PICTURES = process.env.PICTURES === "1" ? fileURLToPath(new URL("../../docs/img/", import.meta.url)) : null;
const { studio, browser } = opened();
before(() => {
  if (PICTURES) mkdirSync(PICTURES, { recursive: true });
});

/** What axe finds against WCAG 2.2 AA, named with its screen and its elements; all of it is told at the end of a test.
 *  `part`: what has changed since the screen before; a page with a hundred elements takes axe seconds. */
let found = [];

async function clean(page, screen, part = null) {
  // Pins are targets of 24 pixels at 100 %; whoever zooms out has the outline and the keyboard.
  if (await page.locator(".canvas").count()) await page.keyboard.press("Control+0");
  await page.waitForTimeout(100);
  const told = (await violations(page, part)).map((one) => `${screen}: ${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).join("; ")}`);
  found.push(...told);
}

beforeEach(() => {
  found = [];
});

async function picture(page, name) {
  if (PICTURES) await page.screenshot({ path: `${PICTURES}${name}.png` });
}

for (const theme of ["dark", "light"]) {
  test(`axe on every screen, ${theme}`, async () => {
    const page = await browser.page(studio, { colorScheme: theme, reducedMotion: "reduce" });
    await studio.enter(page);
    await page.waitForSelector(".card");
    await page.waitForTimeout(300);
    await clean(page, "home");
    await picture(page, `studio-home-${theme}`);

    await studio.show(page, mistake());
    await page.waitForSelector(".block.wrong");
    await clean(page, "page with a problem");
    await picture(page, `studio-mistake-${theme}`);

    await page.locator(".block-problem button.primary").click();
    await page.waitForSelector(".block.wrong", { state: "detached" });
    await bare(page);
    await page.keyboard.press("Shift+A");
    await page.waitForTimeout(1200);
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === document.querySelectorAll(".block").length);
    await block(page, "conv").locator(".cell").nth(5).hover();
    await page.waitForSelector(".trace .window");
    await picture(page, `studio-trace-${theme}`);
    await block(page, "conv").locator(".block-title").click();
    await clean(page, "page that has run, with an inspector");

    await page.keyboard.press("c");
    await page.waitForSelector(".bottom .table .badge");
    await clean(page, "check", ".panel.bottom");
    await picture(page, `studio-check-${theme}`);

    await block(page, "conv").locator(".block-title").click();
    await page.keyboard.press("v");
    await page.waitForSelector("canvas.slice");
    await page.waitForTimeout(300);
    await clean(page, "viewer, slices", ".panel.viewer");
    await picture(page, `studio-viewer-${theme}`);
    for (const kind of ["Planes", "Table", "Volume", "Histogram", "Difference"]) {
      await page.getByRole("tab", { name: kind, exact: true }).click();
      await page.waitForTimeout(400);
      await clean(page, `viewer, ${kind}`, ".panel.viewer");
    }
    await page.keyboard.press("Control+k");
    await clean(page, "command palette", "dialog");
    await page.keyboard.press("Escape");
    await bare(page);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.waitForSelector(".dialog.help");
    await clean(page, "all keys", ".dialog.help");
    await page.keyboard.press("Escape");
    for (const kind of ["Pages", "Outline"]) {
      await page.getByRole("tab", { name: kind, exact: true }).click();
      await page.waitForTimeout(200);
      await clean(page, kind, ".panel.left");
    }
    for (const kind of ["Runs", "Trends", "Compare", "Log"]) {
      await page.locator(".bottom").getByRole("tab", { name: kind, exact: true }).click();
      await clean(page, kind, ".panel.bottom");
    }
    assert.deepEqual(found, []);
  });
}

test("Korean from one click to the next visit", async () => {
  const page = await browser.page(studio);
  await studio.show(page, mistake());
  await page.getByRole("button", { name: "한국어" }).click();
  await page.getByRole("tab", { name: "블록" }).waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "ko");
  await picture(page, "studio-korean");
  await page.reload();
  await page.getByRole("tab", { name: "블록" }).waitFor();
  await clean(page, "Korean");
  assert.deepEqual(found, []);
});

test("panels fold away and come back, and letters can be switched off", async () => {
  const page = await browser.page(studio);
  await studio.show(page, mistake());
  await bare(page);
  for (const [key, panel] of [["Control+b", ".panel.left"], ["Control+i", ".panel.right"], ["Control+j", ".panel.bottom"]]) {
    await page.keyboard.press(key);
    await page.waitForSelector(panel, { state: "detached" });
    await page.keyboard.press(key);
    await page.waitForSelector(panel);
  }
  await page.keyboard.press("Control+k");
  await page.keyboard.type("single-letter");
  await page.keyboard.press("Enter");
  await bare(page);
  await page.keyboard.press("/");
  await page.waitForTimeout(200);
  assert.equal(await page.locator(".quick-add").count(), 0);
});
