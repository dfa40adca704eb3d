// SPDX-License-Identifier: Apache-2.0
// A studio of its own for every test file, and a browser that fails on any request to another host.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = process.env.PYTHON ?? [join(ROOT, ".venv/bin/python")].find(existsSync) ?? "python3";
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** A server with a folder of its own; `kill` is as hard as it sounds, `start` brings it back on the same port. */
export class Studio {
  folder = mkdtempSync(join(tmpdir(), "studio-"));
  process = null;
  address = "";
  token = "";

  /** Of pages in a folder, or what another command of Voxgrad's shows. */
  constructor(command = null) {
    this.command = command ?? ["studio", this.folder];
  }

  async start() {
    const port = this.address ? ["--port", new URL(this.address).port] : ["--port", String(9100 + Math.floor(Math.random() * 20000))];
    this.process = spawn(PYTHON, ["-m", "voxgrad", ...this.command, "--no-browser", ...port], {
      env: { ...process.env, PYTHONPATH: join(ROOT, "src"), PYTHONUNBUFFERED: "1", VOXGRAD_PAGES: join(this.folder, ".pages") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const found = await new Promise((resolve, reject) => {
      let text = "";
      const read = (data) => {
        text += data;
        const match = /http:\/\/127\.0\.0\.1:\d+\/\?t=\S+/.exec(text);
        if (match) resolve(match[0]);
      };
      this.process.stdout.on("data", read);
      this.process.stderr.on("data", read);
      this.process.on("exit", () => reject(new Error(`the studio did not start:\n${text}`)));
    });
    this.printed = found;
    this.address = new URL(found).origin;
    const token = join(this.folder, ".voxgrad", "token");
    if (existsSync(token)) this.token = readFileSync(token, "utf8");
  }

  kill() {
    const gone = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    return gone;
  }

  async stop() {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async api(method, path, body) {
    const response = await fetch(`${this.address}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return response.json();
  }

  /** Let a browser in. */
  async enter(page) {
    const { address } = await this.api("POST", "/address", {});
    await page.goto(address);
    await page.waitForURL((url) => !url.searchParams.has("t"));
  }

  /** A page on the server, shown in a browser page. */
  async show(page, document) {
    const stored = await this.api("POST", "/pages", { name: document.name, document });
    await this.enter(page);
    await page.goto(`${this.address}/#/page/${stored.id}`);
    await page.reload();
    await page.waitForFunction((count) => document.querySelectorAll(".block").length === count, document.blocks.length);
    await page.waitForFunction(() => document.querySelector(".fact") !== null);
    await page.waitForTimeout(400);
    return stored.id;
  }
}

/** One browser; every page in it records what goes wrong, and `faults` must be empty at the end. */
export class Browser {
  faults = [];

  async start() {
    this.browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
  }

  async page(studio, options = {}) {
    const context = await this.browser.newContext({
      viewport: { width: 1440, height: 860 },
      colorScheme: "dark",
      permissions: ["clipboard-read", "clipboard-write"],
      ...options,
    });
    const page = await context.newPage();
    page.on("request", (request) => {
      const { protocol, origin } = new URL(request.url());
      if (/^https?:|^wss?:/.test(protocol) && origin !== studio.address) this.faults.push(`foreign host: ${request.url()}`);
    });
    page.on("pageerror", (error) => this.faults.push(`error: ${error.stack ?? error.message}`));
    page.on("console", (message) => {
      // The server is killed in some tests; a refused connection is then no fault of the page.
      const text = message.text();
      if (message.type() === "error" && !/ERR_CONNECTION|ERR_EMPTY_RESPONSE|WebSocket|status of (401|409|422|404)/.test(text)) this.faults.push(`console: ${text}`);
    });
    return page;
  }

  async stop() {
    await this.browser.close();
  }
}

// A studio and a browser for the tests of a file; at the end, no page may have had an error or asked another host.
export function opened() {
  const studio = new Studio();
  const browser = new Browser();
  before(async () => {
    await studio.start();
    await browser.start();
  });
  after(async () => {
    await browser.stop();
    await studio.stop();
    assert.deepEqual(browser.faults, []);
  });
  return { studio, browser };
}

export function constant(name, shape, values, position = [0, 0]) {
  return { name, op: "Const", attrs: { value: { tensor: { dtype: "float32", shape, values } }, dtype: "float32" }, position };
}

const count = (to) => Array.from({ length: to }, (_, i) => i + 1);

/** The old page with a hidden mistake: a second-order gradient that is fed with the shape of the output. */
export function mistake() {
  const window = [1, 4, 3, 2, 1];
  return {
    name: "MaxPool3DGradGrad",
    semantics: "documented",
    blocks: [
      constant("volume", [2, 2, 2, 2, 2], count(32), [0, 0]),
      constant("pooled", [2, 1, 1, 1, 2], [15, 16, 31, 32], [0, 230]),
      constant("grad", [2, 1, 1, 1, 2], [2, 2, 2, 2], [0, 400]),
      {
        name: "second",
        op: "MaxPool3DGradGrad",
        attrs: { ksize: window, strides: window, padding: "SAME" },
        inputs: { orig_input: [{ from: "volume.output" }], orig_output: [{ from: "pooled.output" }], grad: [{ from: "grad.output" }] },
        position: [420, 60],
      },
      {
        name: "conv",
        op: "Conv3D",
        attrs: { strides: [1, 1, 1, 1, 1], padding: "SAME" },
        inputs: { input: [{ from: "volume.output" }], filter: [{ from: "kernel.output" }] },
        position: [420, 480],
      },
      constant("kernel", [2, 2, 2, 2, 1], count(16).map((value) => value / 8), [0, 560]),
    ],
  };
}

export const block = (page, name) => page.locator(`.react-flow__node[data-id="${name}"]`);
export const pin = (page, name, which, side) => page.locator(`[data-block="${name}"][data-pin="${which}"][data-side="${side}"]`);

/** The numbers that a block shows. */
export const numbers = async (page, name) => (await block(page, name).locator(".cell:not(.ghost)").allTextContents()).map((text) => Number(text.replace("−", "-")));

/** Put the focus on the canvas, with nothing selected. */
export async function bare(page) {
  await page.locator(".react-flow__pane").click({ position: { x: 8, y: 8 } });
}
