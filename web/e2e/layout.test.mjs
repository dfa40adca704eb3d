// SPDX-License-Identifier: Apache-2.0
// No block covers another, no pin is hidden, no wire runs through a block: on every example and original page before and
// after a run, and after every step of random edits. LAYOUT_SEQUENCES=500 makes it the long run, LAYOUT_PAGES=FOLDER
// takes further original pages, LAYOUT_SEED other edits.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { clear } from "./arrangement.mjs";
import { bare, block, constant, mistake, opened } from "./studio.mjs";

const { studio, browser } = opened();
const SEED = Number(process.env.LAYOUT_SEED ?? 20261118);
const SEQUENCES = Number(process.env.LAYOUT_SEQUENCES ?? 30);
const ORIGINALS = [fileURLToPath(new URL("../../tests/formats/enuspace", import.meta.url)), ...(process.env.LAYOUT_PAGES ? [process.env.LAYOUT_PAGES] : [])];

async function shown(page, id, names = null) {
  await page.evaluate((to) => (location.hash = `#/page/${to}`), id);
  // The page before has blocks, too.
  if (names) await page.waitForFunction((all) => [...document.querySelectorAll(".react-flow__node")].map((node) => node.dataset.id).sort().join() === all, [...names].sort().join());
  await page.waitForFunction((to) => document.querySelector(".canvas .react-flow__node") !== null && location.hash.endsWith(to), id);
  await page.waitForFunction(() => document.querySelector(".fact") !== null);
}

/** Run a page until it has ended, well or not; a page with problems does not run. */
async function ran(page) {
  if ((await page.locator(".blocked.run").count()) > 0) return;
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelector(".danger.run") === null && document.querySelector(".badge.ok, .badge.bad, .notice") !== null, null, { timeout: 60_000 });
}

async function everyBlockSeen(page, name) {
  await bare(page);
  await page.keyboard.press("f");
  const seen = page.waitForFunction(() => {
    const canvas = document.querySelector(".canvas").getBoundingClientRect();
    return [...document.querySelectorAll(".react-flow__node")].every((node) => {
      const box = node.getBoundingClientRect();
      return box.left >= canvas.left && box.right <= canvas.right && box.top >= canvas.top && box.bottom <= canvas.bottom;
    });
  });
  await seen.catch(() => assert.fail(`${name}: fit shows every block`));
}

test("examples and original pages are clear, before and after their runs", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.enter(page);
  const { cards } = await studio.api("GET", "/gallery");
  const pages = [];
  for (const card of cards) pages.push([card.id, (await studio.api("POST", `/gallery/${card.id}/open`, {})).id]);
  for (const folder of ORIGINALS) {
    for (const name of readdirSync(folder).filter((one) => one.endsWith(".svg"))) {
      const beside = [name, name.replace(".svg", ".dat")].filter((one) => existsSync(join(folder, one)));
      const files = beside.map((one) => ({ name: one, base64: readFileSync(join(folder, one)).toString("base64") }));
      const { page: stored } = await studio.api("POST", "/import", { files });
      if (stored?.document.blocks.length > 0) pages.push([name, stored.id]);
    }
  }
  for (const [name, id] of pages) {
    await shown(page, id);
    const { blocks, wires } = await clear(page, `${name} as it comes`);
    assert.ok(blocks > 0 && wires > 0, name);
    await everyBlockSeen(page, name);
    await clear(page, `${name} from far away`);
    await ran(page);
    await clear(page, `${name} after its run`);
  }
});

/** Small pages to begin with. */
function beginnings() {
  const window = { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "SAME" };
  const chain = {
    name: "chain",
    semantics: "documented",
    blocks: [
      constant("x", [1, 4, 4, 4, 1], Array.from({ length: 64 }, (_, at) => (at * 37) % 64), [0, 0]),
      { name: "pool", op: "MaxPool3D", attrs: window, inputs: { input: [{ from: "x.output" }] }, position: [420, 0] },
      { name: "relu", op: "Relu", inputs: { features: [{ from: "pool.output" }] }, position: [840, 0] },
    ],
  };
  const lost = { ...mistake(), blocks: mistake().blocks.map(({ position: _none, ...one }) => one) };
  return [chain, mistake(), lost];
}

test("random edits keep the page clear", async () => {
  let state = SEED;
  const random = (to) => (state = (state * 48271) % 2147483647) % to;
  console.log(`seed ${SEED}, ${SEQUENCES} sequences: LAYOUT_SEED and LAYOUT_SEQUENCES choose others`);
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  await studio.enter(page);
  const some = async () => {
    const names = await page.locator(".react-flow__node:has(.block)").evaluateAll((nodes) => nodes.map((node) => node.dataset.id));
    const name = names[random(names.length)];
    await bare(page);
    await page.keyboard.press("f");
    await page.waitForTimeout(60);
    const { x, y, height } = await block(page, name).locator(".block-title").boundingBox();
    await page.mouse.click(x + 12, y + height / 2);
    return name;
  };
  const all = async () => {
    await bare(page);
    await page.keyboard.press("Control+a");
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
      await all();
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
    drag: async () => {
      const title = await block(page, await some()).locator(".block-title").boundingBox();
      await page.mouse.move(title.x + 12, title.y + title.height / 2);
      await page.mouse.down();
      await page.mouse.move(title.x + random(500) - 250, title.y + random(300) - 150, { steps: 3 });
      await page.mouse.up();
    },
    step: async () => {
      await some();
      for (let turn = 0; turn < 4; turn += 1) await page.keyboard.press(["Alt+ArrowLeft", "Alt+ArrowUp", "Alt+ArrowDown"][random(3)]);
    },
    align: async () => {
      await all();
      await page.keyboard.press("Alt+a");
      await page.keyboard.press(["l", "t", "c", "m", "h"][random(5)]);
    },
    tidy: async () => {
      await bare(page);
      await page.keyboard.press("Shift+A");
    },
    group: async () => {
      await all();
      await page.keyboard.press("Control+g");
      await page.waitForTimeout(150);
      if (random(2) === 0) await page.keyboard.press("Control+e");
    },
    fold: async () => {
      await bare(page);
      await page.keyboard.press("Shift+G");
    },
    mode: async () => {
      await some();
      await page.keyboard.press(["b", "m"][random(2)]);
    },
    remove: async () => {
      await some();
      await page.keyboard.press("Delete");
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
  const pages = beginnings();
  const failed = [];
  for (let sequence = 0; sequence < SEQUENCES; sequence += 1) {
    // A browser does not keep hundreds of pages open.
    if (sequence % 50 === 49) await page.evaluate(() => sessionStorage.clear()).then(() => page.goto(`${studio.address}/`)).then(() => page.reload());
    const document = pages[random(pages.length)];
    const { id } = await studio.api("POST", "/pages", { name: document.name, document });
    const done = [];
    // One that fails is told, and the others go on.
    try {
      await shown(page, id, document.blocks.map((one) => one.name));
      await clear(page, "as it comes");
      for (let step = 0; step < 3; step += 1) {
        const kind = kinds[random(kinds.length)];
        done.push(kind);
        await steps[kind]();
        await clear(page, done.join());
      }
    } catch (error) {
      failed.push(`sequence ${sequence} of seed ${SEED}, on ${document.name}: ${done.join(", ")}: ${error.actual ?? error.message}`);
      console.log(failed.at(-1));
      await page.goto(`${studio.address}/`).then(() => page.reload());
    }
  }
  assert.deepEqual(failed, []);
});
