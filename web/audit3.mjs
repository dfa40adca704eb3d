import { Studio, Browser, constant, block, bare, pin, numbers } from "./e2e/studio.mjs";
const studio = new Studio(), browser = new Browser();
await studio.start(); await browser.start();
try {
    const page = await browser.page(studio, { reducedMotion: "reduce" }); page.setDefaultTimeout(9000);
    await studio.show(page, { name: "c", semantics: "documented", blocks: [constant("x", [2], [1, 2]), { name: "n", op: "Neg", inputs: { x: [{ from: "x.output" }] }, position: [700, 0] }, { name: "e", op: "Exp", position: [350, 350] }] });
    const path = () => page.evaluate(() => document.querySelector(".react-flow__edge-path").getAttribute("d"));
    const t = block(page, "e").locator(".block-title"), b = await t.boundingBox(), w = await page.locator(".react-flow__edge-path").first().boundingBox();
    console.log(await path(), JSON.stringify(w), JSON.stringify(await block(page,"e").boundingBox()));
    await page.mouse.move(b.x + 30, b.y + 10); await page.mouse.down();
    await page.mouse.move(w.x + w.width / 2 - 30, w.y + w.height/2 - 40, { steps: 12 }); await page.waitForTimeout(300);
    console.log(await path(), JSON.stringify(await block(page,"e").boundingBox()));
    await page.screenshot({ path: "/tmp/shots/drag.png" });
    await page.mouse.up(); await page.waitForTimeout(1500);
    console.log(await path(), await page.locator(".react-flow__edge").count());
} finally { console.log(browser.faults); await browser.stop(); await studio.stop(); }
