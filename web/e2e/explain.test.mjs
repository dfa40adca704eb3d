// SPDX-License-Identifier: Apache-2.0
// The explainer: in the studio, where numbers can be typed, and as a page of the documentation that asks nobody.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { AxeBuilder } from "@axe-core/playwright";
import { opened } from "./studio.mjs";

const { studio, browser } = opened();
const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
const PAGES = new URL("../../docs/reference/explain/", import.meta.url);

async function clean(page, screen, part) {
  const { violations } = await new AxeBuilder({ page }).withTags(WCAG).include(part).analyze();
  assert.deepEqual(violations.map((one) => `${screen}: ${one.id}: ${one.nodes[0].target} ${one.nodes[0].any[0]?.message ?? ""}`), []);
}

const cell = (page, key) => page.locator(`[data-key="${key}"]`);
const told = (page) => page.locator(".vx-equation").innerText();
const choose = (page, kind, index) => cell(page, kind).selectOption({ index });

test("from Home: point, walk, type, predict, in both languages, and open the blocks as a page", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.enter(page);
  await page.locator(".lessons").getByRole("button", { name: "MaxPool3D", exact: true }).click();
  await cell(page, "y-0").waitFor();
  await cell(page, "y-3").hover();
  assert.equal(await told(page), "y[0,1,1] = max(8, 21, 28, 9, 24, 5, 12, 25) = 28");
  assert.deepEqual(await page.locator(".vx-cell.winner").evaluateAll((found) => found.map((one) => one.dataset.key)), ["x-14"]);
  assert.equal(await page.locator(".vx-arrows path.strong").count(), 1);

  await cell(page, "x-14").dblclick();
  await page.keyboard.type("nan");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector('[data-key="y-3"]').innerText === "25");
  await cell(page, "y-0").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await told(page), /^y\[0,0,1\] = .* = 32$/);

  await page.getByRole("button", { name: "Predict first" }).click();
  await cell(page, "y-2").click();
  assert.equal(await cell(page, "y-2").innerText(), "?");
  assert.equal(await page.locator(".vx-cell.winner").count(), 0);
  await cell(page, "guess").fill("31");
  await page.keyboard.press("Enter");
  assert.match(await page.locator(".vx-sentences").innerText(), /^Right\./);
  await cell(page, "y-0").click();
  await cell(page, "x-5").click();
  assert.match(await page.locator(".vx-sentences").innerText(), /^Not quite\./);
  assert.match(await page.locator(".vx-score").innerText(), /1 of 2/);
  await clean(page, "dark", ".learn");

  await page.getByRole("button", { name: "한국어" }).click();
  await page.getByRole("button", { name: "먼저 맞혀 보기" }).click();
  await cell(page, "step-dx").click();
  assert.match(await page.locator(".vx-heading").innerText(), /입력에 대한 MaxPool3D의 기울기/);
  await page.locator(".learn-head").getByRole("button", { name: "페이지로 열기" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".block").length >= 6);
  assert.equal((await studio.api("GET", "/pages")).pages.length, 1);
  await page.goBack();
  await cell(page, "y-0").waitFor();
});

test("a page of the documentation: arrows turn round, ties and padding, both semantics, print, no request", async () => {
  const page = await browser.page(studio, { colorScheme: "light", locale: "en-US" });
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(fileURLToPath(new URL("MaxPool3DGrad.html", PAGES)).replace(/^/, "file://"));
  await cell(page, "dx-0").waitFor();
  const heads = () => page.locator(".vx-arrows path").evaluateAll((paths) => paths.map((path) => path.getAttribute("d").match(/-?[\d.]+/g).map(Number)).map(([from, , to]) => Math.sign(to - from)));
  await cell(page, "dx-4").click();
  assert.equal(await told(page), "dx[0,1,0] = dy[0,0,0] = 1");
  assert.deepEqual(await heads(), [-1]);
  await cell(page, "step-y").click();
  assert.deepEqual(await heads(), [1]);

  await cell(page, "step-dx").click();
  await choose(page, "window", 2);
  await choose(page, "stride", 0);
  await choose(page, "padding", 1);
  await cell(page, "case-ties").click();
  const sum = () => page.locator('[data-tensor="dx"] .vx-number').evaluateAll((found) => found.reduce((all, one) => all + Number(one.innerText), 0));
  assert.equal(await sum(), 528);
  await choose(page, "semantics", 1);
  await page.waitForFunction(() => document.querySelector('[data-key="semantics"]').selectedIndex === 1);
  assert.ok((await sum()) > 528);
  await cell(page, "step-y").click();
  await cell(page, "y-0").click();
  assert.match(await page.locator(".vx-sentences").innerText(), /places of the window lie in the padding/);
  assert.ok((await page.locator(".vx-ghost.in").count()) > 5);
  await choose(page, "window", 3);
  await choose(page, "padding", 0);
  assert.match(await page.locator(".vx-refused").innerText(), /No window fits|VG016/);
  await choose(page, "window", 1);
  await clean(page, "light", "body");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator(".vx-controls").isVisible(), false);
  assert.equal(await page.locator(".vx-stage").isVisible(), true);
  assert.equal(asked.length, 1);
});

test("all eight pages show their op first, without an error", async () => {
  const page = await browser.page(studio);
  for (const { name } of (await studio.api("GET", "/ops")).ops.filter((op) => op.family)) {
    await page.goto(`file://${fileURLToPath(new URL(`${name}.html`, PAGES))}`);
    await page.locator(".vx-heading h2").waitFor();
    assert.equal(await page.locator(".vx-heading h2").innerText(), name);
    if (name !== "Conv3D") continue;
    for (const step of await page.locator(".vx-steps button").all()) {
      await step.click();
      assert.match(await told(page), /·.* = −?[\d.]+$/);
    }
  }
});

test("the first visit is asked to a tour, which passes by what is not on the screen; faults are told in Korean", async () => {
  const page = await browser.page(studio, { locale: "ko-KR" });
  await studio.enter(page);
  await page.locator(".welcome").getByRole("button", { name: "스튜디오 둘러보기" }).click();
  await page.locator(".block-problem").first().waitFor();
  assert.match(await page.locator(".block-problem").first().innerText(), /orig_input의 모양인 \[2,2,2,2,2\]이어야 합니다/);
  assert.match(await page.locator(".problem-row").first().innerText(), /VG012 .* 실제: \[2,1,1,1,2\]\./);
  await page.locator(".tour-card .primary").click();
  await page.locator(".block-problem button").first().click();
  await page.waitForSelector(".block.wrong", { state: "detached" });
  const titles = [];
  for (let at = 0; at < 8 && (await page.locator(".tour-card").count()) > 0; at += 1) {
    titles.push(await page.locator(".tour-card h2").innerText());
    await page.locator(".tour-spot").waitFor();
    await page.locator(".tour-card .primary").click();
  }
  assert.deepEqual(titles.at(-1), "그 밖의 모든 것");
  assert.ok(!titles.includes("문제가 있을 때"));
  await page.goto(`${studio.address}/#/`);
  await page.locator(".home .lessons button").first().waitFor();
  assert.equal(await page.locator(".welcome").count(), 0);
});
