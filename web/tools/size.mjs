// SPDX-License-Identifier: Apache-2.0
// The first load must stay small: the entry, what it imports at once, and its style, compressed as a server would.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const FOLDER = new URL("../../src/voxgrad/studio/static/", import.meta.url);
const LIMIT = 350_000;

const seen = new Set();
function follow(path) {
  if (seen.has(path)) return;
  seen.add(path);
  const text = readFileSync(new URL(`.${path}`, FOLDER), "utf8");
  if (!path.endsWith(".js")) return;
  for (const [, name] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+)"/g)) follow(`/assets/${name}`);
}

const page = readFileSync(new URL("index.html", FOLDER), "utf8");
for (const [, path] of page.matchAll(/(?:src|href)="(\/[^"]+)"/g)) follow(path);
const total = [...seen].reduce((sum, path) => sum + gzipSync(readFileSync(new URL(`.${path}`, FOLDER)), { level: 9 }).length, gzipSync(page).length);
console.log(`first load: ${(total / 1000).toFixed(1)} KB gzip of ${LIMIT / 1000} KB (${[...seen].join(" ")})`);
if (total > LIMIT) process.exit(1);
