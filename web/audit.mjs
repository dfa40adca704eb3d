import { Studio, Browser, constant, block, bare, pin, numbers } from "./e2e/studio.mjs";
import { mkdirSync, writeFileSync, readFileSync } from "node:fs";
const studio = new Studio(), browser = new Browser();
await studio.start(); await browser.start();
const out = "/tmp/shots"; mkdirSync(out, { recursive: true });
const step = async (name, what) => { try { console.log(name, "=>", JSON.stringify(await what())); } catch (e) { console.log(name, "FAILED", String(e).slice(0, 300)); } };
const overlaps = (page) => page.evaluate(() => { const all=[...document.querySelectorAll(".react-flow__node")].map(n=>[n.dataset.id,n.getBoundingClientRect()]); const bad=[]; for(let i=0;i<all.length;i++)for(let j=i+1;j<all.length;j++){const a=all[i][1],b=all[j][1]; if(a.left<b.right-1&&b.left<a.right-1&&a.top<b.bottom-1&&b.top<a.bottom-1)bad.push([all[i][0],all[j][0]]);} return bad; });
try {
  for (const card of ["max_pool3d_grad_grad_mistake", "avg_pool3d_grad_mistake"]) await step(card, async () => {
    const page = await browser.page(studio, { reducedMotion: "reduce" });
    await studio.enter(page);
    const made = await studio.api("POST", `/gallery/${card}/open`, {});
    await page.goto(`${studio.address}/#/page/${made.id}`); await page.reload();
    await page.waitForSelector(".block"); await page.waitForTimeout(1500);
    await page.screenshot({ path: `${out}/${card}-1.png` });
    const titles = [];
    for (let i = 0; i < 6; i++) {
      const fix = page.locator(".bottom .problems button, .panel.bottom button, [class*=problem] button").filter({ hasNotText: /^$/ }).first();
      const all = await page.locator('.problem .fixes button, .problems li button').allTextContents().catch(() => []);
      const buttons = page.locator(".block .fixes button, .block .problem button");
      const n = await buttons.count(); if (!n) break;
      titles.push(await buttons.first().textContent()); await buttons.first().click(); await page.waitForTimeout(1500);
    }
    await page.keyboard.press("Escape"); await bare(page); await page.keyboard.press("Control+Enter"); await page.waitForTimeout(6000);
    await page.screenshot({ path: `${out}/${card}-2.png` });
    const values = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".react-flow__node")].map(n => [n.dataset.id, [...n.querySelectorAll(".cell:not(.ghost)")].map(c => c.textContent).join(" ").slice(0,120)])));
    const state = await page.evaluate(() => [...document.querySelectorAll(".top-bar .badge, .top-bar [class*=look], .bottom .scroll, .panel.bottom")].map(e=>e.textContent.slice(0,200)));
    return { titles, values, state, overlaps: await overlaps(page) };
  });
} finally { console.log(browser.faults); await browser.stop(); await studio.stop(); }
