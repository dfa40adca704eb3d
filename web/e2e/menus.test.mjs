// SPDX-License-Identifier: Apache-2.0
// The menu bar holds what the keyboard can do, the first stop leads to the page, and snapshots are listed, compared, restored.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { violations } from "./axe.mjs";
import { bare, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();

async function clean(page, part) {
  const found = await violations(page, part);
  assert.deepEqual(found.map((one) => `${one.id}: ${one.nodes[0].target}`), [], part);
}

test("menus, the way to the page, groups and snapshots by keyboard", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.show(page, mistake());

  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.ok(await page.evaluate(() => document.activeElement.classList.contains("canvas")));
  await page.keyboard.press("/");
  await page.locator(".finder").first().waitFor();
  await page.keyboard.press("Escape");

  // Every line of the table of actions is in one of the menus; only Stop waits for a run.
  const table = [...readFileSync(new URL("../src/core/actions.ts", import.meta.url), "utf8").matchAll(/^ {2}\["([a-z-]+)", "action/gm)].map(([, id]) => id);
  await page.locator('[data-menu="file"]').click();
  let entries = 0;
  for (let menu = 0; menu < 5; menu += 1) {
    entries += await page.locator(".context-menu [role=menuitem]").count();
    if (menu === 1) await clean(page, ".context-menu");
    await page.keyboard.press("ArrowRight");
  }
  assert.equal(entries, table.length - 1);
  await page.keyboard.press("Escape");

  const kept = async () => {
    await page.locator('[data-menu="file"]').click();
    await page.getByRole("menuitem", { name: "Keep a named snapshot" }).click();
    await page.getByText("Snapshot kept.").first().waitFor();
  };
  const list = async () => {
    await page.locator('[data-menu="file"]').click();
    await page.getByRole("menuitem", { name: "Snapshots" }).last().click();
    await page.locator("dialog.snapshots li").first().waitFor();
  };
  await kept();
  await bare(page);
  await page.keyboard.press("/");
  await page.keyboard.type("Neg");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 7);
  await list();
  await page.getByRole("button", { name: "Compare", exact: true }).last().click();
  await page.locator(".differences").waitFor();
  assert.match(await page.locator(".differences").innerText(), /new since then\s+neg/i);
  await clean(page, "dialog.snapshots");
  await page.locator("dialog.snapshots .primary").click();
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 6);
  await bare(page);
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 7);

  await page.keyboard.press("Control+a");
  await page.keyboard.press("Control+g");
  await page.locator(".group-box").waitFor();
  await page.keyboard.press("Control+0");
  await clean(page, ".group-box");
});

test("the tour shows the real screen, part by part, from the first screen on", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.enter(page);
  await page.getByRole("button", { name: "A tour of the studio" }).click();
  await page.locator(".tour-card").waitFor();
  await clean(page, ".tour-card");
  const titles = [];
  for (let stop = 0; stop < 8; stop += 1) {
    titles.push(await page.locator(".tour-card h2").innerText());
    await page.locator(".tour-spot").waitFor();
    await page.keyboard.press("Enter");
  }
  assert.equal(new Set(titles).size, 8);
  await page.locator(".tour-card").waitFor({ state: "detached" });
});
