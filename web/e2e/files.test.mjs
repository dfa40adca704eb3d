// SPDX-License-Identifier: Apache-2.0
// A page that wants files outside of its folder: the person is asked, and asked again when it has changed.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { violations } from "./axe.mjs";
import { opened } from "./studio.mjs";

const PICTURES = process.env.PICTURES;
const home = mkdtempSync(join(tmpdir(), "home-"));
process.env.XDG_CONFIG_HOME = join(home, "config");
const scans = join(home, "scans");
mkdirSync(scans);
writeFileSync(join(scans, "in.txt"), "what was read");

const { studio, browser } = opened();

const text = (name, value, position) => ({ name, op: "Const", attrs: { value: { tensor: { dtype: "string", shape: [], values: [value] } }, dtype: "string" }, position });

const stranger = (theme) => ({
  name: `stranger ${theme}`,
  semantics: "documented",
  blocks: [
    text("place", join(scans, "in.txt"), [0, 0]),
    { name: "read", op: "ReadFile", attrs: {}, inputs: { filename: [{ from: "place.output" }] }, position: [300, 0] },
    { name: "write", op: "WriteFile", attrs: {}, inputs: { filename: [{ value: join(scans, `${theme}.txt`) }], contents: [{ from: "read.contents" }] }, position: [600, 0] },
    { name: "key", op: "ReadFile", attrs: {}, inputs: { filename: [{ value: join(scans, ".key") }] }, position: [300, 200] },
  ].slice(0, theme === "dark" ? 4 : 3),
});

for (const theme of ["dark", "light"]) {
  test(`a page asks for its files, ${theme}`, async () => {
    const page = await browser.page(studio, { colorScheme: theme, reducedMotion: "reduce" });
    await studio.show(page, stranger(theme));
    await page.keyboard.press("Control+Enter");
    const dialog = page.getByRole("dialog", { name: "Files outside of the folder" });
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /read\s+\(ReadFile\) reads.*in\.txt/s);
    assert.match(await dialog.innerText(), new RegExp(`write\\s+\\(WriteFile\\) writes.*${theme}\\.txt`, "s"));
    const found = await violations(page, "dialog", null);
    assert.deepEqual(found.map((one) => one.id), []);
    if (PICTURES) await page.screenshot({ path: `${PICTURES}files-${theme}.png` });
    assert.ok(!existsSync(join(scans, `${theme}.txt`)));
    if (theme === "dark") {
      assert.match(await dialog.innerText(), /cannot be allowed:.*\.key/s);
      await dialog.getByRole("button", { name: "Do not allow" }).click();
      await dialog.waitFor({ state: "detached" });
      return;
    }
    await dialog.getByRole("checkbox").check();
    await dialog.getByRole("button", { name: "Allow and run" }).click();
    await dialog.waitFor({ state: "detached" });
    for (let tries = 0; tries < 600 && !existsSync(join(scans, "light.txt")); tries += 1) await page.waitForTimeout(100);
    assert.equal(readFileSync(join(scans, "light.txt"), "utf8"), "what was read");
    // The page has changed: it asks again.
    await page.locator('[data-id="write"] .block-title').click();
    await page.keyboard.press("Delete");
    await page.keyboard.press("Control+Enter");
    await dialog.waitFor();
  });
}
