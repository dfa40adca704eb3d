// SPDX-License-Identifier: Apache-2.0
// A page over a volume in a file, chunk by chunk: started, watched, stopped and taken up again.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { violations } from "./axe.mjs";
import { opened } from "./studio.mjs";

const PICTURES = process.env.PICTURES === "1" ? fileURLToPath(new URL("../../docs/img/", import.meta.url)) : null;
const { studio, browser } = opened();
before(() => {
  mkdirSync(join(studio.folder, "files"), { recursive: true });
  writeFileSync(join(studio.folder, "files", "scan.npy"), npy([48, 96, 96]));
});

/** A volume of waves as a NumPy file. */
function npy([depth, height, width]) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${depth}, ${height}, ${width}), }`.padEnd(117) + "\n";
  const head = Buffer.concat([Buffer.from([0x93]), Buffer.from("NUMPY"), Buffer.from([1, 0, text.length & 255, text.length >> 8]), Buffer.from(text)]);
  const values = new Float32Array(depth * height * width).map((_, i) => Math.sin(i / 7) + Math.sin(i / 911));
  return Buffer.concat([head, Buffer.from(values.buffer)]);
}

const window = { ksize: [1, 3, 3, 3, 1], strides: [1, 1, 1, 1, 1], padding: "SAME" };
const pooling = {
  name: "pooling",
  semantics: "documented",
  blocks: [
    { name: "scan", op: "Volume", attrs: { path: "scan.npy" }, position: [0, 0] },
    { name: "pool", op: "MaxPool3D", attrs: window, inputs: { input: [{ from: "scan.output" }] }, position: [420, 0] },
  ],
  outputs: { pool: "pool.output" },
};

const cells = (page) => page.locator(".chunk-grid canvas").getAttribute("data-cells");
const cut = async (page, sizes) => {
  for (const [at, size] of sizes.entries()) await page.locator(".pair .sizes input").nth(at).fill(String(size));
};

for (const theme of ["dark", "light"]) {
  test(`a run is started, stopped, taken up again and seen to its end, ${theme}`, async () => {
    const page = await browser.page(studio, { colorScheme: theme, reducedMotion: "reduce" });
    page.setDefaultTimeout(120_000);
    await studio.show(page, pooling);
    // The shape comes from the header, which the server reads in a child.
    await page.locator('.react-flow__node[data-id="pool"]', { hasText: "[1,48,96,96,1]" }).waitFor();
    await page.getByRole("tab", { name: "Volumes" }).click();
    await page.waitForSelector(".file-facts");
    assert.match(await page.locator(".file-facts").textContent(), /f32 1×48×96×96×1/);
    const target = `pooled-${theme}.zarr`;
    await page.getByLabel("File of the result").fill(target);
    await cut(page, [6, 12, 12]);
    await page.getByRole("button", { name: "Run in chunks" }).click();
    await page.locator(".chunked-runs .current", { hasText: target }).waitFor();
    // At once: its workers are still starting, so that it cannot have ended before.
    await page.locator(".chunked-runs .danger").click();
    await page.getByText("Start it again with the same settings").waitFor();
    const stopped = await cells(page);
    assert.equal(stopped.length, 512);
    assert.ok(stopped.includes("0"), stopped);

    await page.getByRole("button", { name: "Run in chunks" }).click();
    await page.waitForFunction((count) => (document.querySelector(".chunk-grid canvas")?.dataset.cells ?? "").split("d").length > count, PICTURES ? 230 : 1);
    if (PICTURES) await page.screenshot({ path: `${PICTURES}studio-volumes-${theme}.png` });
    await page.waitForFunction(() => document.querySelector(".chunk-grid canvas")?.dataset.cells === "d".repeat(512));
    await page.getByText("finished").first().waitFor();
    assert.ok(existsSync(join(studio.folder, "files", target)));
    assert.match(await page.locator(".figures").textContent(), /512 \/ 512/);
    await page.locator(".chunk-grid canvas").hover({ position: { x: 6, y: 24 } });
    assert.match(await page.locator(".legend").textContent(), /D 0–6, H 0–12, W 0–12 · done/);
    const found = await violations(page, ".bottom");
    assert.deepEqual(found.map((one) => `${one.id}: ${one.nodes[0].target}`), []);
    const [run] = (await studio.api("GET", "/volumes/runs")).runs.filter((one) => one.name === target);
    assert.equal(run.phase, "finished");
  });
}

test("the path of a Volume block is chosen among the files that are there", async () => {
  const page = await browser.page(studio);
  page.setDefaultTimeout(120_000);
  await studio.show(page, { ...pooling, blocks: [{ ...pooling.blocks[0], attrs: { path: "gone.npy" } }, pooling.blocks[1]] });
  await page.getByText("gone.npy").first().waitFor();
  await page.locator(".block.wrong").waitFor();
  await page.locator('.react-flow__node[data-id="scan"] .block-title').click();
  await page.getByLabel("scan path file").selectOption("scan.npy");
  await page.locator(".block.wrong").waitFor({ state: "detached" });
  assert.match(await page.locator('.react-flow__node[data-id="pool"]').textContent(), /\[1,48,96,96,1\]/);
});

test("what cannot run is told at once", async () => {
  const page = await browser.page(studio);
  await studio.show(page, pooling);
  await page.getByRole("tab", { name: "Volumes" }).click();
  await page.getByLabel("File of the result").fill("../outside.zarr");
  await page.getByRole("button", { name: "Run in chunks" }).click();
  await page.getByText("must be a plain name").first().waitFor();
  assert.ok(!existsSync(join(studio.folder, "outside.zarr")));
});
