// SPDX-License-Identifier: Apache-2.0
// Displays on the canvas and on a panel: added, bound, moved, drawn while a page runs, operated, found clean by axe.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { violations } from "./axe.mjs";
import { bare, opened } from "./studio.mjs";

const { studio, browser } = opened();
const SHOTS = process.env.SHOTS ?? null;

/** w is halved in every cycle; a volume, a plane and points beside it; a display of every kind. */
function panelPage() {
  const tensor = (shape, at) => ({ tensor: { dtype: "float32", shape, values: Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => at(i)) } });
  const wave = (i) => Math.round(1000 * Math.sin(i / 7) * Math.cos(i / 50)) / 1000;
  const blocks = [
    { name: "w", op: "Variable", attrs: { shape: [2], dtype: "float32" }, position: [0, 0] },
    { name: "rate", op: "Const", attrs: { value: tensor([], () => 0.5), dtype: "float32" }, position: [0, 260] },
    { name: "scaled", op: "Mul", inputs: { x: [{ from: "w.ref" }], y: [{ from: "rate.output" }] }, position: [340, 0] },
    { name: "step", op: "Assign", inputs: { ref: [{ from: "w.ref" }], value: [{ from: "scaled.z" }] }, position: [680, 0] },
    { name: "first", op: "Assign", inputs: { ref: [{ from: "w.ref" }], value: [{ value: [4, 1], dtype: "float32" }] }, position: [680, 320] },
    { name: "field", op: "Const", attrs: { value: tensor([20, 24], wave), dtype: "float32" }, position: [0, 560] },
    { name: "cube", op: "Const", attrs: { value: tensor([1, 8, 9, 10, 1], wave), dtype: "float32" }, position: [340, 560] },
    { name: "points", op: "Const", attrs: { value: tensor([60, 3], (i) => wave(i * 13)), dtype: "float32" }, position: [680, 620] },
  ];
  const rows = [
    ["trend", "step.output_ref", { title: "decay", log: true }], ["value", "step.output_ref", { format: "%.4f", unit: "mm" }, [0]],
    ["table", "step.output_ref", {}], ["gauge", "step.output_ref", { high: 4 }, [0]], ["gauge", "step.output_ref", { high: 4, form: "bar" }, [0]],
    ["lamp", "step.output_ref", { title: "above a half" }, [0]], ["edit", "rate.output", { title: "rate" }], ["button", null, { title: "Run 20", does: "loop", cycles: 20 }],
    ["histogram", "field.output", {}], ["image", "field.output", {}], ["slice", "cube.output", {}], ["heat", "field.output", { lines: 5 }],
    ["surface", "field.output", {}], ["scatter", "points.output", {}], ["volume", "cube.output", {}], ["text", null, { text: "An operator's view", points: 20, bold: true }],
    ["slider", "rate.output", { title: "the rate, slid", unit: "per cycle" }],
  ];
  const displays = rows.map(([kind, from, attrs, at], index) => ({
    name: `d${index}`, kind, ...(from ? { of: [{ from, ...(at ? { at } : {}) }] } : {}), ...(Object.keys(attrs).length > 0 ? { attrs } : {}),
    position: [1100 + (index % 4) * 390, 20 + Math.floor(index / 4) * 270], size: kind === "button" || kind === "text" ? [220, 44] : ["value", "lamp", "edit", "slider"].includes(kind) ? [220, 64] : [360, 240],
  }));
  displays.unshift({ name: "around", kind: "frame", attrs: { title: "Everything" }, position: [1080, -20], size: [1580, 1200] });
  return { name: "panel", semantics: "documented", blocks, targets: ["step"], initializers: ["first"], displays };
}

const shot = (page, name) => SHOTS && page.screenshot({ path: `${SHOTS}/${name}.png` });
const documentOf = async (page) => {
  await page.waitForTimeout(900);
  const id = decodeURIComponent(new URL(page.url()).hash.split("/").at(-1));
  const stored = await studio.api("GET", `/pages/${id}`);
  return stored.draft?.document ?? stored.document;
};
const display = (page, name) => page.locator(`.react-flow__node[data-id="display:${name}"]`);

async function clean(page, screen, part) {
  const found = await violations(page, part);
  assert.deepEqual(found.map((one) => `${screen}: ${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).join("; ")}`), []);
}

for (const theme of ["dark", "light"]) {
  test(`displays live on the canvas and on a panel, ${theme}`, async () => {
    const page = await browser.page(studio, { colorScheme: theme, reducedMotion: "reduce", ...(theme === "light" ? { locale: "ko-KR" } : {}) });
    await studio.show(page, panelPage());
    await page.waitForFunction(() => document.querySelectorAll(".react-flow__node-display .marks").length >= 15);
    // The button of the page runs it; curves and numbers follow.
    await display(page, "d7").locator("button").click();
    await page.waitForFunction(() => /0\.0000 mm/.test(document.querySelector('[data-id="display:d1"]')?.textContent ?? ""), null, { timeout: 60_000 });
    await page.waitForFunction(() => document.querySelectorAll('[data-id="display:d0"] polyline:is(.vd-curve0, .vd-curve1)').length === 2);
    // Every one of the twenty cycles is a point of the curves.
    const points = await display(page, "d0").locator("polyline.vd-curve0").getAttribute("points");
    assert.equal(points.split(" ").length, 40);
    await page.keyboard.press("f");
    await page.waitForTimeout(700);
    await shot(page, `displays-canvas-${theme}`);
    await display(page, "d0").click({ position: { x: 10, y: 10 } });
    await page.keyboard.press("Control+0");
    await page.waitForTimeout(200);
    await shot(page, `displays-selected-${theme}`);
    await clean(page, "canvas", ".canvas");
    await clean(page, "inspector", ".panel.right");
    if (theme === "dark") {
      // An exported picture has them, with what they show and what is typed in them.
      const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Control+k").then(() => page.keyboard.type("export svg")).then(() => page.keyboard.press("Enter"))]);
      const picture = readFileSync(await download.path(), "utf8");
      for (const part of ["0.0000 mm", ">0.5<", "Run 20", "An operator", "the rate, slid", "0.5 per cycle", "<polyline", "data:image/png"]) assert.ok(picture.includes(part), part);
    }
    await page.keyboard.press("F9");
    await page.waitForSelector(".operator .display-trend polyline");
    await page.waitForTimeout(300);
    await shot(page, `displays-panel-${theme}`);
    assert.match(page.url(), /#\/panel\//);
    await clean(page, "panel", ".operator");
    assert.equal(await page.locator(".operator .block").count(), 0);
    // By its address alone, and back with Escape.
    await page.reload();
    await page.waitForSelector(".operator .display-picture");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".canvas .react-flow__node-display");
    assert.match(page.url(), /#\/page\//);
  });
}

test("a display is added, bound, moved and undone by the keyboard, and an edit box writes its block", async () => {
  const page = await browser.page(studio, { reducedMotion: "reduce" });
  const whole = panelPage();
  await studio.show(page, { ...whole, displays: whole.displays.filter((one) => one.kind === "edit") });
  await page.locator('.react-flow__node[data-id="step"]').click({ position: { x: 20, y: 8 } });
  await page.keyboard.press("d");
  await page.keyboard.type("value");
  await page.keyboard.press("Enter");
  await display(page, "value").waitFor();
  assert.deepEqual((await documentOf(page)).displays.at(-1).of, [{ from: "step.output_ref" }]);
  // It has the focus: arrows with Alt move it, and what was moved is one step of undo.
  const before = (await documentOf(page)).displays.at(-1).position;
  await page.keyboard.press("Alt+ArrowRight");
  await page.keyboard.press("Alt+ArrowDown");
  assert.deepEqual((await documentOf(page)).displays.at(-1).position, [before[0] + 10, before[1] + 10]);
  await page.keyboard.press("Control+d");
  await display(page, "value_1").waitFor();
  await page.keyboard.press("Delete");
  await display(page, "value_1").waitFor({ state: "detached" });
  await page.keyboard.press("Control+z");
  await display(page, "value_1").waitFor();
  // Its unit is typed in the inspector.
  await display(page, "value").click({ position: { x: 4, y: 4 } });
  await page.getByLabel("unit").fill("kg");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /kg/.test(document.querySelector('[data-id="display:value"]')?.textContent ?? ""));
  // The edit box is the inspector's own edit: what is wrong is told, what is right is written.
  const box = display(page, "d6").locator("input");
  await box.fill("0.25x");
  await box.press("Enter");
  await page.waitForSelector(".notice, .notices");
  await box.fill("0.25");
  await box.press("Enter");
  const blocks = (await documentOf(page)).blocks;
  assert.deepEqual(blocks.find((one) => one.name === "rate").attrs.value.tensor.values, [0.25]);
  await bare(page);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => /float32 \[2\]/.test(document.querySelector('[data-id="display:value"]')?.textContent ?? ""));
  // Dragged and resized with the mouse.
  const handle = display(page, "value_1").locator(".react-flow__resize-control.handle.bottom.right");
  await display(page, "value_1").click({ position: { x: 4, y: 4 } });
  const at = await handle.boundingBox();
  await page.mouse.move(at.x + at.width / 2, at.y + at.height / 2);
  await page.mouse.down();
  await page.mouse.move(at.x + 60, at.y + 40, { steps: 4 });
  await page.mouse.up();
  const sized = (await documentOf(page)).displays.find((one) => one.name === "value_1");
  assert.ok(sized.size[0] > 150 && sized.size[1] > 60, String(sized.size));
});
