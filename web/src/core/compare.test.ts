// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { differences } from "./compare";
import type { Block, Page } from "./model";

const page = (blocks: Block[], more: Partial<Page> = {}): Page => ({ name: "p", semantics: "documented", blocks, ...more });
const x: Block = { name: "x", op: "Const", attrs: { dtype: "float32", value: 1 }, position: [0, 0] };
const y: Block = { name: "y", op: "Mul", inputs: { x: [{ from: "x.output" }], y: [{ value: 2, dtype: "float32" }] }, position: [300, 0] };

test("moved blocks and another order of entries are the same page", () => {
  const found = differences(page([x, y]), page([{ ...x, attrs: { value: 1, dtype: "float32" }, position: [9, 9] }, y]));
  expect(found.blocks.flatMap((one) => one.changes)).toEqual([]);
  expect([found.rest, found.wires.map((one) => one.change)]).toEqual([[], [null]]);
});

test("new, gone, changed and rewired, with the values and the wires", () => {
  const z: Block = { name: "z", op: "Neg", inputs: { x: [{ from: "x.output" }] } };
  const after = page([{ ...x, attrs: { dtype: "float32", value: 3 } }, { ...y, inputs: { x: [{ from: "z.y" }], y: [{ value: 5, dtype: "float32" }] } }, z]);
  const gone: Block = { name: "gone", op: "Relu", inputs: { features: [{ from: "x.output" }] } };
  const found = differences(page([x, y, gone]), after);
  expect(found.blocks.map((one) => [one.block.name, one.changes, one.told])).toEqual([
    ["x", ["changed"], ["value: 1 → 3"]],
    ["y", ["changed", "rewired"], ["y: 2 → 5"]],
    ["z", ["added"], []],
    ["gone", ["removed"], []],
  ]);
  expect(found.wires.map(({ wire, change }) => `${wire.from}>${wire.to} ${change}`).toSorted()).toEqual(["x>gone removed", "x>y removed", "x>z added", "z>y added"]);
});

test("what is different inside of a page, or beside the blocks, is never called the same", () => {
  const use: Block = { name: "layer", page: "inner", inputs: { x: [{ from: "x.output" }] } };
  const inner = page([y]);
  const other = page([{ ...y, op: "AddV2" }]);
  const found = differences(page([x, use], { pages: { inner } }), page([x, use], { pages: { inner: other } }));
  expect(found.blocks.map((one) => one.changes)).toEqual([[], ["changed"]]);
  expect(differences(page([x]), page([x], { semantics: "tf_cpu", targets: ["x"] })).rest).toEqual(["semantics", "targets"]);
});
