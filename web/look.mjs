import { Studio, Browser, constant, block, bare, pin } from "./e2e/studio.mjs";
const studio = new Studio(), browser = new Browser();
await studio.start(); await browser.start();
const out = "/tmp/shots"; import { mkdirSync } from "node:fs"; mkdirSync(out, { recursive: true });
try {
  for (const theme of ["dark", "light"]) {
    const page = await browser.page(studio, { colorScheme: theme, reducedMotion: "reduce" });
    await studio.show(page, { name: "slide"+theme, semantics: "documented", blocks: [
      { name: "p", op: "Placeholder", attrs: { dtype: "float32", shape: [2,3] }, position: [0, 0] },
      constant("rate", [], [0.5], [0, 300]), constant("x", [1,2,2,2,1],[1,2,3,4,5,6,7,8],[300,300]),
      { name: "scaled", op: "Mul", inputs: { x: [{ from: "p.output" }], y: [{ from: "rate.output" }] }, position: [500, 0] } ],
      displays: [{ name: "knob", kind: "slider", of: [{ from: "rate.output" }], attrs: { high: 10, step: 1, runs: true, unit: "mm" }, position: [0, 560], size: [220, 72] },
       { name: "several", kind: "slider", of: [{ from: "x.output" }], position: [300, 560], size: [220, 72] }] });
    await block(page, "x").locator(".block-title").click();
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${out}/tensor-${theme}.png` });
    await block(page, "p").locator(".block-title").click();
    await page.getByLabel("p Fed value By a rule …").selectOption("normal");
    await page.waitForTimeout(500);
    await page.getByLabel("p Fed value as text").fill("normal([2,3], 0, 1, seed=7)"); await page.keyboard.press("Enter");
    await page.waitForTimeout(500);
    await page.screenshot({ path: `${out}/feed-${theme}.png` });
  }
} finally { console.log(browser.faults); await browser.stop(); await studio.stop(); }
