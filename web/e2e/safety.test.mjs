// SPDX-License-Identifier: Apache-2.0
// Nothing that was typed is lost: crashes, two windows, files.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { bare, block, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();

async function addRelu(page) {
  await bare(page);
  await page.keyboard.press("/");
  await page.keyboard.type("relu");
  await page.keyboard.press("Enter");
  await page.waitForSelector('[data-id^="relu"]');
}

test("the server is killed in the middle of an edit: the draft comes back", async () => {
  const page = await browser.page(studio);
  const id = await studio.show(page, mistake());
  await addRelu(page);
  await page.waitForFunction(() => document.querySelector(".draft-draft") !== null);
  await studio.kill();
  await page.waitForSelector(".notice.warn");
  await studio.start();
  const other = await browser.page(studio);
  await studio.enter(other);
  await other.goto(`${studio.address}/#/page/${id}`);
  await other.reload();
  await other.getByRole("button", { name: "Restore them" }).click();
  await other.waitForSelector('[data-id^="relu"]');
  await other.keyboard.press("Control+s");
  await other.waitForSelector(".draft-saved");
  const stored = await studio.api("GET", `/pages/${id}`);
  assert.ok(stored.document.blocks.some((one) => one.op === "Relu"));
  assert.equal(stored.draft, null);
});

test("two windows: a save over a newer page is refused and resolved", async () => {
  const first = await browser.page(studio);
  const id = await studio.show(first, mistake());
  const second = await browser.page(studio);
  await studio.enter(second);
  await second.goto(`${studio.address}/#/page/${id}`);
  await second.reload();
  await second.waitForSelector(".block");
  await addRelu(first);
  await block(second, "conv").locator(".block-title").click();
  await second.keyboard.press("Delete");
  await block(second, "conv").waitFor({ state: "detached" });
  await first.keyboard.press("Control+s");
  await first.waitForSelector(".draft-saved");
  await second.keyboard.press("Control+s");
  await second.getByRole("button", { name: "Take theirs" }).click();
  await second.waitForSelector('[data-id^="relu"]');
  await block(second, "conv").waitFor();
  // Undo still has what was here.
  await bare(second);
  await second.keyboard.press("Control+z");
  await block(second, "conv").waitFor({ state: "detached" });
});

test("a page without changes follows what another window saves", async () => {
  const first = await browser.page(studio);
  const id = await studio.show(first, mistake());
  const second = await browser.page(studio);
  await studio.enter(second);
  await second.goto(`${studio.address}/#/page/${id}`);
  await second.reload();
  await second.waitForSelector(".block");
  await addRelu(first);
  await first.keyboard.press("Control+s");
  await second.waitForSelector('[data-id^="relu"]');
});

test("a page file that is dropped opens", async () => {
  const page = await browser.page(studio);
  await studio.enter(page);
  await page.waitForSelector(".card");
  const document = JSON.stringify({ format: "voxgrad-page", version: 1, ...mistake() });
  await page.locator("#open-file").setInputFiles({ name: "old.vox.json", mimeType: "application/json", buffer: Buffer.from(document) });
  await page.waitForFunction(() => document.querySelectorAll(".block").length === 6);
});

test("a browser that is started with the private file is let in, once; a used address says so", async () => {
  const place = join(studio.folder, "open.html");
  writeFileSync(place, `<meta http-equiv="refresh" content="0;url=${studio.printed}">`);
  const page = await browser.page(studio);
  await page.goto(pathToFileURL(place).href);
  await page.waitForSelector(".card");
  assert.ok(!page.url().includes("t="));
  const [cookie] = await page.context().cookies();
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict" && !studio.printed.includes(cookie.value));
  await page.goto(studio.printed);
  await page.waitForSelector(".card");
  const other = await browser.page(studio);
  await other.goto(studio.printed);
  await other.getByText("was not let in yet").waitFor();
});
