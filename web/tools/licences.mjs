// SPDX-License-Identifier: Apache-2.0
// Lists what is inside of the built files with its licence, from the packages that npm installed.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const ROOT = new URL("../", import.meta.url);
const read = (path) => JSON.parse(readFileSync(new URL(path, ROOT), "utf8"));

/** Packages that are shipped: the dependencies, and theirs. */
function shipped() {
  const found = new Map();
  const visit = (name) => {
    const folder = `node_modules/${name}/`;
    if (found.has(name) || !existsSync(new URL(`${folder}package.json`, ROOT))) return;
    const about = read(`${folder}package.json`);
    found.set(name, { about, folder });
    Object.keys(about.dependencies ?? {}).forEach(visit);
  };
  Object.keys(read("package.json").dependencies).forEach(visit);
  return [...found].filter(([name]) => !name.startsWith("@types/")).sort(([a], [b]) => (a < b ? -1 : 1));
}

function licenceText(folder) {
  const file = readdirSync(new URL(folder, ROOT)).find((name) => /^licen[cs]e/i.test(name));
  return file ? readFileSync(new URL(folder + file, ROOT), "utf8").trim() : "";
}

const parts = shipped().map(([name, { about, folder }]) => `${name} ${about.version}\n${about.license}\n\n${licenceText(folder)}`);
const text = `The studio's built files contain these packages.\n\n${parts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
writeFileSync(new URL("../src/voxgrad/studio/static/THIRD_PARTY_LICENSES.txt", ROOT), text.replaceAll("\r\n", "\n"));
