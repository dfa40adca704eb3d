// SPDX-License-Identifier: Apache-2.0
// An exported picture shows what the screen shows: places, wires, values, theme; and the page can be opened from it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bare, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();

async function exported(page, kind) {
  const [download] = await Promise.all([page.waitForEvent("download"), (async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type(`export ${kind}`);
    await page.keyboard.press("Enter");
  })()]);
  return readFileSync(await download.path());
}

/** Blocks, as the difference of their corners to those of the first, and the lengths of wires. */
const onScreen = (page) =>
  page.evaluate(() => {
    const boxes = [...document.querySelectorAll(".react-flow__node")].map((node) => {
      const [, x, y] = /translate\((-?[\d.]+)px, (-?[\d.]+)px\)/.exec(node.style.transform);
      return [node.dataset.id, Number(x), Number(y), node.offsetWidth, node.offsetHeight];
    });
    const [first] = boxes;
    return {
      boxes: boxes.map(([name, x, y, width, height]) => [name, x - first[1], y - first[2], width, height].join(" ")),
      wires: [...document.querySelectorAll(".react-flow__edge-path")].map((path) => path.getAttribute("d")),
      ground: getComputedStyle(document.querySelector(".react-flow")).backgroundColor,
    };
  });

const inPicture = (page, text) =>
  page.evaluate((svg) => {
    const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    document.body.append(root);
    const boxes = [...root.querySelectorAll("g[data-block]")].map((block) => {
      const rect = block.querySelector("rect");
      const [x, y, width, height, line] = ["x", "y", "width", "height", "stroke-width"].map((name) => Number(rect.getAttribute(name)));
      return [block.dataset.block, x - line / 2, y - line / 2, width + line, height + line];
    });
    const [first] = boxes;
    const found = {
      boxes: boxes.map(([name, x, y, width, height]) => [name, x - first[1], y - first[2], width, height].map((one) => (typeof one === "number" ? Math.round(one) : one)).join(" ")),
      wires: [...root.querySelectorAll("path[transform]")].map((path) => path.getAttribute("d")),
      ground: getComputedStyle(root.querySelector("rect")).fill,
      texts: [...root.querySelectorAll("text")].map((one) => one.textContent),
    };
    root.remove();
    return found;
  }, text);

test("pictures are the screen, in both themes, and hold the page", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const document = mistake();
  document.blocks = document.blocks.filter((one) => one.name !== "second");
  await studio.show(page, document);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === document.querySelectorAll(".block").length);
  await bare(page);
  for (const theme of ["dark", "light"]) {
    if (theme === "light") await page.getByRole("button", { name: "Light or dark" }).click();
    await bare(page);
    const screen = await onScreen(page);
    const svg = (await exported(page, "svg")).toString();
    const { texts, ...drawn } = await inPicture(page, svg);
    assert.deepEqual(drawn, { ...screen, wires: drawn.wires });
    for (const way of screen.wires) assert.ok(drawn.wires.includes(way), way);
    for (const text of ["volume", "Conv3D", "31", "kernel", "[2,2,2,2,2]"]) assert.ok(texts.some((one) => one.includes(text)), `${text} in ${texts}`);
    assert.doesNotMatch(svg, /<script|foreignObject|href="(?!data:)/);
    const again = await studio.api("POST", "/import", { files: [{ name: "again.svg", base64: Buffer.from(svg).toString("base64") }] });
    assert.equal(again.page.document.blocks.length, document.blocks.length);
  }
  const png = await exported(page, "png");
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  assert.ok(width > 400 && width < 4000 && height > 300 && height < 4000, `${width} x ${height}`);
  const again = await studio.api("POST", "/import", { files: [{ name: "again.png", base64: png.toString("base64") }] });
  assert.equal(again.page.document.blocks.length, document.blocks.length);
});
