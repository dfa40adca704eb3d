// SPDX-License-Identifier: Apache-2.0
// How long a slice of a large volume takes to be seen, and how much is sent for it: node --test e2e/planes.bench.mjs
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bare, block, opened } from "./studio.mjs";

const { studio, browser } = opened();
const SIDE = Number(process.env.SIDE ?? 512);
const SLICES = 60;

const noise = {
  name: "large",
  semantics: "documented",
  blocks: [
    { name: "shape", op: "Const", attrs: { value: { tensor: { dtype: "int32", shape: [5], values: [1, SIDE, SIDE, SIDE, 1] } }, dtype: "int32" }, position: [0, 0] },
    { name: "noise", op: "RandomUniform", attrs: { dtype: "float32", seed: 7 }, inputs: { shape: [{ from: "shape.output" }] }, position: [300, 0] },
  ],
};

const quantile = (times, part) => times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))];

/** Seconds of work of the page's thread and of the server so far: they are the same on a machine that others use, too. */
async function worked(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  const fields = readFileSync(`/proc/${studio.process.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return [metrics.find((one) => one.name === "TaskDuration").value, (Number(fields[11]) + Number(fields[12])) / 100];
}

/** From a key to the frame after its slice was drawn, in the page itself. */
const oneByOne = (page, key) => page.evaluate(async ([key, count]) => {
  const frame = document.querySelector(`.plane-frame[data-plane="${key}"]`);
  const canvas = frame.querySelector(".plane-picture");
  const times = [];
  for (let at = 0; at < count; at += 1) {
    const wanted = String(Number(canvas.dataset.place) + 1);
    const start = performance.now();
    frame.dispatchEvent(new KeyboardEvent("keydown", { key: "PageUp", bubbles: true }));
    while (canvas.dataset.place !== wanted) await new Promise((resolve) => requestAnimationFrame(resolve));
    times.push(performance.now() - start);
  }
  return times;
}, [key, SLICES]);

/** A wheel that turns without a rest for two seconds: how many slices are seen. */
const turning = (page, key) => page.evaluate(async (key) => {
  const frame = document.querySelector(`.plane-frame[data-plane="${key}"]`);
  const canvas = frame.querySelector(".plane-picture");
  const seen = new Set();
  const end = performance.now() + 2000;
  let frames = 0;
  while (performance.now() < end) {
    frame.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, bubbles: true, cancelable: true }));
    await new Promise((resolve) => requestAnimationFrame(resolve));
    seen.add(canvas.dataset.place);
    frames += 1;
  }
  return { seen: seen.size, frames };
}, key);

test(`slices of ${SIDE} x ${SIDE} x ${SIDE}`, async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  page.setDefaultTimeout(240_000);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  let [asked, bytes] = [0, 0];
  page.on("response", (response) => {
    if (!/^\/api\/tensors\/[^/]+\/plane/.test(new URL(response.url()).pathname)) return;
    asked += 1;
    bytes += Number(response.headers()["content-length"]);
  });
  await studio.show(page, noise);
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".badge.ok").length === 2, null, { timeout: 240_000 });
  await block(page, "noise").locator(".block-title").click();
  const opening = Date.now();
  await page.keyboard.press("v");
  await page.getByRole("tab", { name: "Planes", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('.plane-picture[data-step="1"]').length === 3);
  console.log(`three planes after ${Date.now() - opening} ms`);
  for (const key of ["HW", "DW", "DH"]) {
    [asked, bytes] = [0, 0];
    const before = await worked(session);
    const times = await oneByOne(page, key);
    const [drawn, served] = (await worked(session)).map((after, at) => ((after - before[at]) / SLICES) * 1000);
    console.log(`${key}, one by one: median ${quantile(times, 0.5).toFixed(0)} ms, 95 % ${quantile(times, 0.95).toFixed(0)} ms; ${(bytes / SLICES / 1e6).toFixed(2)} MB a slice in ${(asked / SLICES).toFixed(1)} answers; work of the page ${drawn.toFixed(1)} ms, of the server ${served.toFixed(1)} ms`);
    await page.waitForTimeout(600);
    [asked, bytes] = [0, 0];
    const { seen, frames } = await turning(page, key);
    console.log(`${key}, the wheel turning: ${(seen / 2).toFixed(0)} slices a second, ${(frames / 2).toFixed(0)} frames; ${(bytes / Math.max(1, asked) / 1e6).toFixed(2)} MB an answer`);
    await page.waitForTimeout(600);
  }
  const start = Date.now();
  await page.getByRole("tab", { name: "Volume", exact: true }).click();
  await page.locator(".volume canvas").waitFor();
  console.log(`the view in three dimensions after ${Date.now() - start} ms`);
});
