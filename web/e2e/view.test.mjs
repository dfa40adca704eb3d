// SPDX-License-Identifier: Apache-2.0
// `voxgrad view FILE`: its values are there at once, read where the file lies, and nothing stays behind.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Browser, Studio } from "./studio.mjs";

const studio = new Studio(["view", fileURLToPath(new URL("../../examples/files/head.nii.gz", import.meta.url))]);
const browser = new Browser();
process.env.TMPDIR = mkdtempSync(join(tmpdir(), "view-"));
const folders = () => readdirSync(process.env.TMPDIR).filter((name) => name.startsWith("voxgrad-view-"));
before(async () => {
  await studio.start();
  await browser.start();
});
after(async () => {
  await browser.stop();
  await studio.stop();
});

test("a volume is seen as soon as the address is opened", async () => {
  const page = await browser.page(studio);
  assert.match(studio.printed, /&view=\w+$/);
  await page.goto(studio.printed);
  await page.waitForSelector(".viewer .slice");
  assert.equal(await page.locator(".viewer .panel-tabs code").innerText(), "float32 [1,25,41,33,1]");
  assert.equal(await page.locator(".block").count(), 1);
  assert.equal(await page.locator(".block.wrong").count(), 0);
  assert.deepEqual(browser.faults, []);
  assert.equal(folders().length, 1);
  const gone = new Promise((resolve) => studio.process.once("exit", resolve));
  studio.process.kill("SIGINT");
  await gone;
  assert.deepEqual(folders(), []);
  assert.ok(!existsSync(`${studio.folder}/.voxgrad`));
});
