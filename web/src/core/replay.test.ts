// SPDX-License-Identifier: Apache-2.0
/** Edits that the server made, made here again: both must come to the same documents (tests/studio/test_one_contract.py). */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { addBlock, connect, disconnect, moveBlocks, removeBlocks, renameBlock, setAttr } from "./commands";
import { nameFault } from "./document";
import type { Block, Json, Page } from "./model";

type Edit =
  | ({ readonly do: "add" } & Block)
  | { readonly do: "remove"; readonly block: string }
  | { readonly do: "rename"; readonly block: string; readonly name: string }
  | { readonly do: "move"; readonly block: string; readonly position: readonly [number, number] }
  | { readonly do: "set_attr"; readonly block: string; readonly attr: string; readonly value: Json }
  | { readonly do: "connect"; readonly from: string; readonly block: string; readonly pin: string; readonly many: boolean }
  | { readonly do: "disconnect"; readonly from: string; readonly block: string; readonly pin: string; readonly at: number };

interface Step {
  readonly edit: Edit;
  /** The document after it; null where the server refuses it. */
  readonly after: Page | null;
}

interface Sequence {
  readonly before: Page;
  readonly steps: readonly Step[];
}

/** The page after an edit, or null where the studio would not make it. */
function make(page: Page, edit: Edit): Page | null {
  switch (edit.do) {
    case "add": {
      const { do: _do, ...block } = edit;
      return addBlock(page, block).page;
    }
    case "remove":
      return removeBlocks(page, [edit.block]);
    case "rename":
      return nameFault(page, edit.block, edit.name) === null ? renameBlock(page, edit.block, edit.name) : null;
    case "move":
      return moveBlocks(page, new Map([[edit.block, edit.position]]));
    case "set_attr":
      return setAttr(page, edit.block, edit.attr, edit.value ?? undefined);
    case "connect":
      return connect(page, edit.from, edit.block, edit.pin, edit.many);
    case "disconnect": {
      const dot = edit.from.lastIndexOf(".");
      const [from, output] = [edit.from.slice(0, dot), edit.from.slice(dot + 1)];
      return disconnect(page, [{ from, output, to: edit.block, pin: edit.pin, at: edit.at }]);
    }
  }
}

const file = process.env["VOXGRAD_REPLAY"];

describe.skipIf(file === undefined)("edits replayed", () => {
  const sequences = JSON.parse(file === undefined ? "[]" : readFileSync(file, "utf8")) as readonly Sequence[];
  it("come to the documents of the server", () => {
    expect(sequences.length).toBeGreaterThan(0);
    for (const [number, { before, steps }] of sequences.entries()) {
      let page = before;
      for (const { edit, after } of steps) {
        const made = make(page, edit);
        expect(made, `sequence ${number}: ${JSON.stringify(edit)}`).toEqual(after);
        page = made ?? page;
      }
    }
  });
});
