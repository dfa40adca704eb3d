// SPDX-License-Identifier: Apache-2.0
/** Reading and rewriting pages. Nothing here changes its arguments; unchanged parts are shared. */

import type { Block, Op, Page, PagePath, Source, Wire } from "./model";
import { entryOf } from "./patch";

export type Catalogue = ReadonlyMap<string, Op>;

export function emptyPage(name: string): Page {
  return { name, semantics: "documented", blocks: [] };
}

/** The page at a path; the outermost one it can still find where the path has gone. */
export function pageAt(document: Page, path: PagePath): Page {
  let page = document;
  for (const name of path) {
    const inner = entryOf(page.pages, name);
    if (!inner) return page;
    page = inner;
  }
  return page;
}

/** The document with the page at a path replaced. */
export function withPage(document: Page, path: PagePath, change: (page: Page) => Page): Page {
  const [first, ...rest] = path;
  if (first === undefined) return change(document);
  const inner = entryOf(document.pages, first);
  if (!inner) return document;
  return { ...document, pages: { ...document.pages, [first]: withPage(inner, rest, change) } };
}

export function findBlock(page: Page, name: string): Block | undefined {
  return page.blocks.find((block) => block.name === name);
}

/** `block.output` in its two parts; block names may hold dots nowhere, pins neither, so the last dot parts them. */
export function splitPath(path: string): { block: string; output: string } {
  const dot = path.lastIndexOf(".");
  return dot < 0 ? { block: path, output: "" } : { block: path.slice(0, dot), output: path.slice(dot + 1) };
}

export function wiresOf(page: Page): Wire[] {
  return page.blocks.flatMap((block) =>
    Object.entries(block.inputs ?? {}).flatMap(([pin, sources]) =>
      sources.flatMap((source, at): Wire[] => {
        if (!("from" in source)) return [];
        const { block: from, output } = splitPath(source.from);
        return [{ from, output, to: block.name, pin, at }];
      }),
    ),
  );
}

export function wireId(wire: Wire): string {
  return `${wire.from}.${wire.output}>${wire.to}.${wire.pin}[${wire.at}]`;
}

/** The name, or the name with the first free number behind it. */
export function uniqueName(taken: ReadonlySet<string>, wanted: string): string {
  if (!taken.has(wanted)) return wanted;
  let number = 1;
  while (taken.has(`${wanted}_${number}`)) number += 1;
  return `${wanted}_${number}`;
}

/** The names that a new block cannot have: those of blocks, and of the scopes that they are in. */
export function takenNames(page: Page): Set<string> {
  const taken = new Set(page.blocks.map((block) => block.name));
  for (const { name } of page.blocks) {
    for (let at = name.indexOf("/"); at >= 0; at = name.indexOf("/", at + 1)) taken.add(name.slice(0, at));
  }
  return taken;
}

/** Printable text, as the server takes it: no marks that stand between names, no blanks at its ends. */
function isName(name: string): boolean {
  return name.split("/").every((part) => part !== "" && part === part.trim() && !/[:^]|(?! )[\p{C}\p{Z}]/u.test(part));
}

/** What forbids a name for a block, as a key of the dictionary; null where nothing does. */
export function nameFault(page: Page, current: string, name: string): "name.taken" | "name.form" | null {
  if (name === current) return null;
  if (!isName(name)) return "name.form";
  return findBlock(page, name) ? "name.taken" : null;
}

export interface PinShape {
  readonly name: string;
  readonly types: readonly string[];
  readonly typeVar: string;
  readonly shape: string;
  readonly host: boolean;
  readonly many: boolean;
  readonly layout: string;
  readonly doc: string;
}

/** The input pins of a block, from its op, or from the page that it stands for. */
export function inputPins(page: Page, block: Block, ops: Catalogue): PinShape[] {
  const op = block.op === undefined ? undefined : ops.get(block.op);
  if (op) {
    return op.inputs.map((pin) => ({ ...pin, typeVar: pin.type_var ?? "", layout: pin.layout ?? "" }));
  }
  const used = block.page === undefined ? undefined : entryOf(page.pages, block.page);
  const names = used?.inputs ?? Object.keys(block.inputs ?? {});
  return names.map((name) => plainPin(name));
}

/** The output pins of a block; a list has one pin per member. */
export function outputPins(page: Page, block: Block, ops: Catalogue): PinShape[] {
  const op = block.op === undefined ? undefined : ops.get(block.op);
  if (op) {
    return op.outputs.flatMap((pin) => {
      const one = { ...pin, host: false, typeVar: pin.type_var ?? "", layout: pin.layout ?? "" };
      if (!pin.many) return [one];
      return Array.from({ length: countOf(block, op, pin.count ?? "") }, (_, index) => ({
        ...one,
        name: `${pin.name}[${index}]`,
      }));
    });
  }
  const used = block.page === undefined ? undefined : entryOf(page.pages, block.page);
  const names = used ? Object.keys(used.outputs ?? {}) : outputsInUse(page, block.name);
  return names.map((name) => plainPin(name));
}

/** The order of the axes that a block works on, such as NCDHW; empty where its op has none. */
export function axesOf(block: Block, op: Op): string {
  const value = block.attrs?.["data_format"] ?? op.attrs.find((attr) => attr.name === "data_format")?.default;
  return typeof value === "string" ? value : "";
}

function plainPin(name: string): PinShape {
  return { name, types: [], typeVar: "", shape: "", host: false, many: false, layout: "", doc: "" };
}

function outputsInUse(page: Page, block: string): string[] {
  return [...new Set(wiresOf(page).filter((wire) => wire.from === block).map((wire) => wire.output))];
}

function countOf(block: Block, op: Op, count: string): number {
  const wired = block.inputs?.[count];
  if (wired) return wired.length;
  const value = block.attrs?.[count] ?? op.attrs.find((attr) => attr.name === count)?.default;
  if (Array.isArray(value)) return value.length;
  return typeof value === "number" ? Math.min(Math.max(value, 0), 4096) : 0;
}

/** Change one block of a page. */
export function withBlock(page: Page, name: string, change: (block: Block) => Block): Page {
  const index = page.blocks.findIndex((block) => block.name === name);
  const block = page.blocks[index];
  if (!block) return page;
  const changed = change(block);
  return changed === block ? page : { ...page, blocks: page.blocks.with(index, changed) };
}

/** A block with the sources of one pin replaced; a pin without sources leaves the block. */
export function withSources(block: Block, pin: string, sources: readonly Source[]): Block {
  const { [pin]: _old, ...others } = block.inputs ?? {};
  const inputs = sources.length > 0 ? { ...block.inputs, [pin]: sources } : others;
  if (Object.keys(inputs).length > 0) return withoutRule({ ...block, inputs }, pin);
  const { inputs: _gone, ...rest } = block;
  return withoutRule(rest, pin);
}

/** A value that has changed is no longer what it was typed as. */
export function withoutRule(block: Block, entry: string): Block {
  if (block.typed?.[entry] === undefined) return block;
  const { typed: { [entry]: _rule, ...others }, ...rest } = block as Block & { typed: { readonly [entry: string]: string } };
  return Object.keys(others).length > 0 ? { ...rest, typed: others } : rest;
}
