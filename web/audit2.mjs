import { Studio, Browser, constant, block, bare, pin, numbers } from "./e2e/studio.mjs";
import { mkdirSync, readFileSync } from "node:fs";
const studio = new Studio(), browser = new Browser();
await studio.start(); await browser.start();
const out = "/tmp/shots"; mkdirSync(out, { recursive: true });
const step = async (name, what) => { try { console.log(name, "=>", JSON.stringify(await what())); } catch (e) { console.log(name, "FAILED", String(e).slice(0, 300)); } };
const overlaps = (page) => page.evaluate(() => { const all=[...document.querySelectorAll(".react-flow__node")].map(n=>[n.dataset.id,n.getBoundingClientRect()]); const bad=[]; for(let i=0;i<all.length;i++)for(let j=i+1;j<all.length;j++){const a=all[i][1],b=all[j][1]; if(a.left<b.right-1&&b.left<a.right-1&&a.top<b.bottom-1&&b.top<a.bottom-1)bad.push([all[i][0],all[j][0]]);} return bad; });
const open = async (doc) => { const page = await browser.page(studio, { reducedMotion: "reduce" }); page.setDefaultTimeout(8000); await studio.show(page, doc); return page; };
try {
  await step("feed from a file, wrong shape told", async () => {
    const page = await open({ name: "f", semantics: "documented", blocks: [{ name: "p", op: "Placeholder", attrs: { dtype: "float32", shape: [2, 2] }, position: [0, 0] }, { name: "n", op: "Neg", inputs: { x: [{ from: "p.output" }] }, position: [500, 0] }] });
    await block(page, "p").locator(".block-title").click();
    await page.getByLabel("p Fed value From a file …").last().setInputFiles({ name: "t.csv", mimeType: "text/csv", buffer: Buffer.from("1,2.5\n3,4\n") });
    await page.waitForFunction((o) => { const v = document.querySelector('[aria-label="p Fed value as text"]').value; return v !== '' && v !== o; }, 'x' , { timeout: 20000 }).catch(() => 0); await bare(page); await page.keyboard.press("Control+Enter"); await page.waitForTimeout(7000);
    const first = await numbers(page, "n");
    await block(page, "p").locator(".block-title").click();
    const big = Buffer.concat([Buffer.from("\x93NUMPY\x01\x00", "latin1"), (() => { const h = "{'descr': '<f8', 'fortran_order': False, 'shape': (100,100), }".padEnd(117, " ") + "\n"; const l = Buffer.alloc(2); l.writeUInt16LE(h.length); return Buffer.concat([l, Buffer.from(h, "latin1")]); })(), Buffer.alloc(80000)]);
    await page.getByLabel("p Fed value From a file …").last().setInputFiles({ name: "big.npy", mimeType: "x", buffer: big });
    await page.waitForFunction((o) => { const v = document.querySelector('[aria-label="p Fed value as text"]').value; return v !== '' && v !== o; }, '{{1,2.5},{3,4}}' , { timeout: 20000 }).catch(() => 0); await bare(page); await page.keyboard.press("Control+Enter"); await page.waitForTimeout(7000);
    await page.screenshot({ path: `${out}/feedfile.png` });
    return { first, told: (await page.locator(".panel.bottom, .bottom").first().textContent()).slice(0, 300), notice: await page.locator(".notices, .notice").allTextContents() };
  });
  await step("feed a float64 file of many to a float32 placeholder", async () => {
    const page = await open({ name: "g", semantics: "documented", blocks: [{ name: "p", op: "Placeholder", attrs: { dtype: "float32" }, position: [0, 0] }, { name: "n", op: "Sum", inputs: { input: [{ from: "p.output" }], axis: [{ value: [0, 1], dtype: "int32" }] }, position: [500, 0] }] });
    await block(page, "p").locator(".block-title").click();
    const data = Buffer.from(new Float64Array(10000).fill(0.5).buffer);
    const big = Buffer.concat([Buffer.from("\x93NUMPY\x01\x00", "latin1"), (() => { const h = "{'descr': '<f8', 'fortran_order': False, 'shape': (100,100), }".padEnd(117, " ") + "\n"; const l = Buffer.alloc(2); l.writeUInt16LE(h.length); return Buffer.concat([l, Buffer.from(h, "latin1")]); })(), data]);
    await page.getByLabel("p Fed value From a file …").last().setInputFiles({ name: "big.npy", mimeType: "x", buffer: big });
    await page.waitForFunction((o) => { const v = document.querySelector('[aria-label="p Fed value as text"]').value; return v !== '' && v !== o; }, '{{1,2.5},{3,4}}' , { timeout: 20000 }).catch(() => 0); await bare(page); await page.keyboard.press("Control+Enter"); await page.waitForTimeout(7000);
    await page.screenshot({ path: `${out}/feedbig.png` });
    return { n: await numbers(page, "n"), notice: await page.locator(".notices, .notice").allTextContents() };
  });
} finally { console.log(browser.faults); await browser.stop(); await studio.stop(); }
