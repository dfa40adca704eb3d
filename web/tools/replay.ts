// SPDX-License-Identifier: Apache-2.0
/**
 * Replays edits that the server made: a sequence per line comes in, a line goes out, empty where every document is that
 * of the server. Started by tests/studio/edit_sequences.py.
 */

import { createInterface } from "node:readline";
import { copyText, readClip } from "../src/core/clipboard";
import { addBlock, connect, disconnect, insertIntoWire, moveBlocks, setAttr } from "../src/core/commands";
import { placeDisplays, type Place } from "../src/core/displays";
import { nameFault, pageAt, splitPath, withPage } from "../src/core/document";
import { record, redo, start, undo, type History } from "../src/core/history";
import type { Block, Display, Json, Page, PagePath } from "../src/core/model";
import { same } from "../src/core/patch";

interface Ends {
  readonly from: string;
  readonly block: string;
  readonly pin: string;
  readonly at: number;
}

type Edit =
  | { readonly do: "undo" | "redo" }
  | ({ readonly do: "add" } & Block)
  | { readonly do: "move"; readonly block: string; readonly position: readonly [number, number] }
  | ({ readonly do: "place"; readonly display: string } & Place)
  | { readonly do: "set_attr"; readonly block: string; readonly attr: string; readonly value: Json }
  | ({ readonly do: "connect"; readonly many: boolean } & Ends)
  | ({ readonly do: "disconnect" } & Ends)
  | ({ readonly do: "insert"; readonly name: string; readonly input: string; readonly output: string } & Ends)
  | { readonly do: "rename"; readonly block: string; readonly name: string }
  | { readonly do: "paste"; readonly copied: readonly string[] | null; readonly blocks: readonly Block[]; readonly pages: object; readonly displays?: readonly Display[] }
  | { readonly do: "server" };

interface Step {
  readonly edit: Edit;
  /** The page of the document that it changes. */
  readonly path: PagePath;
  /** The document after it; null where the server refuses it. */
  readonly after: Page | null;
}

interface Sequence {
  readonly before: Page;
  readonly steps: readonly Step[];
}

/** The page after an edit of the browser's own; null for those that the server makes. */
function make(page: Page, edit: Edit): Page | null {
  switch (edit.do) {
    case "add": {
      const { do: _do, ...block } = edit;
      return addBlock(page, block).page;
    }
    case "move":
      return moveBlocks(page, new Map([[edit.block, edit.position]]));
    case "place":
      return placeDisplays(page, new Map([[edit.display, edit]]));
    case "set_attr":
      return setAttr(page, edit.block, edit.attr, edit.value ?? undefined);
    case "connect":
      return connect(page, edit.from, edit.block, edit.pin, edit.many);
    case "disconnect":
      return disconnect(page, [wireOf(edit)]);
    case "insert":
      return insertIntoWire(page, wireOf(edit), edit.name, edit.input, edit.output);
    default:
      return null;
  }
}

function wireOf({ from, block, pin, at }: Ends) {
  const source = splitPath(from);
  return { from: source.block, output: source.output, to: block, pin, at };
}

/** What the browser says of an edit before it asks the server, where that is not so. */
function misjudged(page: Page, edit: Edit, refused: boolean): string {
  if (edit.do === "rename" && (nameFault(page, edit.block, edit.name) !== null) !== refused) return "the name is judged differently";
  if (edit.do === "paste" && edit.copied !== null) {
    const clip = readClip(copyText(page, new Set(edit.copied)));
    if (!same(clip?.blocks, edit.blocks) || !same(clip?.pages ?? {}, edit.pages)) return "other blocks are copied";
    if (!same(clip?.displays ?? [], edit.displays ?? [])) return "other displays are copied";
  }
  return "";
}

function step(history: History<Page>, { edit, path, after }: Step, time: number): History<Page> | string {
  if (edit.do === "undo" || edit.do === "redo") {
    const next = edit.do === "undo" ? undo(history) : redo(history);
    return same(next.now, after) ? next : `comes to ${JSON.stringify(next.now)}`;
  }
  const wrong = misjudged(pageAt(history.now, path), edit, after === null);
  if (wrong) return wrong;
  const own = make(pageAt(history.now, path), edit);
  if (after === null) return own === null ? history : "is made here and refused there";
  const made = own === null ? after : withPage(history.now, path, () => own);
  return same(made, after) ? record(history, made, edit.do, time) : `comes to ${JSON.stringify(made)}`;
}

function replay({ before, steps }: Sequence): string {
  let history = start(before);
  for (const [index, one] of steps.entries()) {
    const next = step(history, one, index * 10_000);
    if (typeof next === "string") return `step ${index}, ${JSON.stringify(one.edit)} at [${one.path.join(", ")}]: ${next}`;
    history = next;
  }
  return "";
}

createInterface({ input: process.stdin }).on("line", (line) => {
  process.stdout.write(`${replay(JSON.parse(line) as Sequence)}\n`);
});
