// SPDX-License-Identifier: Apache-2.0
// Nothing that the studio puts or enlarges covers a block or hides a pin: on every example before and after a run, and
// after every step of random edits.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, block, constant, opened } from "./studio.mjs";

const { studio, browser } = opened();
const SEED = Number(process.env.LAYOUT_SEED ?? 20261118);
const STEPS = Number(process.env.LAYOUT_STEPS ?? 24);

/** Pairs of blocks that cover each other, and pins that lie under another block, in the coordinates of the page. */
const covered = (page) =>
  page.evaluate(() => {
    const boxes = [...document.querySelectorAll(".react-flow__node")].map((node) => {
      const [, x, y] = /translate\((-?[\d.]+)px, (-?[\d.]+)px\)/.exec(node.style.transform);
      return { name: node.dataset.id, x: Number(x), y: Number(y), width: node.offsetWidth, height: node.offsetHeight };
    });
    const pairs = [];
    for (const [index, a] of boxes.entries()) {
      for (const b of boxes.slice(index + 1)) {
        // Pins stand out of their block by half of their width.
        const apart = a.x + a.width + 8 <= b.x || b.x + b.width + 8 <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        if (!apart) pairs.push(`${a.name} | ${b.name}`);
      }
    }
    return pairs;
  });

/** What is drawn comes to rest, and then nothing is covered. */
async function clear(page, when) {
  let [found, before] = [["?"], ""];
  for (let look = 0; look < 60 && (found.length > 0 || before !== (await drawing(page))); look += 1) {
    before = await drawing(page);
    await page.waitForTimeout(250);
    found = await covered(page);
  }
  assert.deepEqual(found, [], when);
}

const drawing = (page) => page.locator(".react-flow__node").evaluateAll((nodes) => nodes.map((node) => `${node.style.transform} ${node.offsetWidth} ${node.offsetHeight}`).join());

async function ran(page) {
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelector(".danger.run") === null && document.querySelector(".badge.ok, .badge.bad") !== null, null, { timeout: 60_000 });
}

test("no example covers anything, before and after its run", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.enter(page);
  const { cards } = await studio.api("GET", "/gallery");
  for (const card of cards) {
    const { id } = await studio.api("POST", `/gallery/${card.id}/open`, {});
    await page.goto(`${studio.address}/#/page/${id}`);
    await page.reload();
    await page.waitForSelector(".block");
    await page.waitForFunction(() => document.querySelector(".fact") !== null);
    await clear(page, `${card.id} as it comes`);
    await bare(page);
    await page.keyboard.press("f");
    await page.waitForTimeout(200);
    const outside = await page.evaluate(() => {
      const canvas = document.querySelector(".canvas").getBoundingClientRect();
      return [...document.querySelectorAll(".react-flow__node")].filter((node) => {
        const box = node.getBoundingClientRect();
        return box.left < canvas.left || box.right > canvas.right || box.top < canvas.top || box.bottom > canvas.bottom;
      }).length;
    });
    assert.equal(outside, 0, `${card.id}: fit shows every block`);
    if (card.id.includes("mistake")) continue;
    await ran(page);
    await clear(page, `${card.id} after its run`);
  }
});

test("random edits cover nothing", async () => {
  let state = SEED;
  const random = (to) => (state = (state * 48271) % 2147483647) % to;
  console.log(`seed ${SEED}, ${STEPS} steps: LAYOUT_SEED and LAYOUT_STEPS choose others`);
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const window = { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "SAME" };
  await studio.show(page, {
    name: "random",
    semantics: "documented",
    blocks: [
      constant("x", [1, 4, 4, 4, 1], Array.from({ length: 64 }, (_, at) => (at * 37) % 64), [0, 0]),
      { name: "pool", op: "MaxPool3D", attrs: window, inputs: { input: [{ from: "x.output" }] }, position: [420, 0] },
      { name: "relu", op: "Relu", inputs: { features: [{ from: "pool.output" }] }, position: [840, 0] },
    ],
  });
  const some = async () => {
    const names = await page.locator(".react-flow__node").evaluateAll((nodes) => nodes.map((node) => node.dataset.id));
    const name = names[random(names.length)];
    await page.keyboard.press("f");
    await block(page, name).locator(".block-title").click();
    return name;
  };
  const steps = {
    add: async () => {
      await bare(page);
      await page.keyboard.press("/");
      await page.keyboard.type(["Neg", "Const", "Conv3D", "MaxPool3DGradGrad", "Placeholder"][random(5)]);
      await page.keyboard.press("Enter");
    },
    palette: () => page.locator(".panel.left [draggable]").nth(random(6)).dblclick(),
    duplicate: async () => {
      await some();
      await page.keyboard.press("Control+d");
    },
    paste: async () => {
      await bare(page);
      await page.keyboard.press("Control+a");
      await page.keyboard.press("Control+c");
      await page.keyboard.press("Control+v");
    },
    gradient: async () => {
      await some();
      await page.keyboard.press("g");
    },
    fix: async () => {
      const fixes = page.locator(".bottom .problem-row > button:not(.row-main)");
      if ((await fixes.count()) > 0) await fixes.nth(random(await fixes.count())).click();
    },
    undo: async () => {
      await bare(page);
      await page.keyboard.press("Control+z");
    },
    run: async () => {
      await bare(page);
      await page.keyboard.press("Control+Enter");
    },
  };
  const kinds = Object.keys(steps);
  for (let step = 0; step < STEPS; step += 1) {
    const kind = (await page.locator(".react-flow__node").count()) > 40 ? "undo" : kinds[random(kinds.length)];
    await steps[kind]();
    await clear(page, `step ${step}, ${kind}, seed ${SEED}`);
  }
});
