// SPDX-License-Identifier: Apache-2.0
import { cellAt, cellState, corner, layOut, voxels } from "./chunkGrid";
import { describe, expect, it } from "vitest";
import { ACTIONS, actionFor, pressed } from "./actions";
import { align, coveringPairs, depthsOf, distribute, freePlace, nearest, parted, placesFor, type Box } from "./arrange";
import { reshaped, ruleText, shapeFrom, shapesFor, tensorJson, withCells } from "./cells";
import { copyText, cornerOf, readClip } from "./clipboard";
import { colourOf, inkOn, NAN_COLOUR } from "./colour";
import { addBlock, closesRing, connect, disconnect, moveBlocks, setAttr, type Point } from "./commands";
import { numberOf, withNumber } from "./displays";
import { axesOf, emptyPage, findBlock, inputPins, nameFault, outputPins, pageAt, wiresOf, withPage, withSources } from "./document";
import { foldersOf } from "./files";
import * as format from "./format";
import { record, redo, start, undo } from "./history";
import type { Block, Op, Page } from "./model";
import { apply, diff, invert, share } from "./patch";
import { compatiblePins, formOf, refusal } from "./pins";
import { Plane, routeOf } from "./router";
import { score, search } from "./search";
import { difference, flatIndex, indexAt, planeOf, readSafetensors, type Tensor } from "./tensor";
import { brief, literalOf, textOf } from "./values";
import { LANGUAGES, translate, type Key } from "./words";

const FLOATS = ["float16", "bfloat16", "float32", "float64"];
const pin = (name: string, types: string[], more: object = {}) =>
  ({ name, types, type_var: "T", shape: "", host: false, many: false, doc: "", ...more });
const op = (name: string, inputs: object[], outputs: object[], attrs: object[] = []): Op =>
  ({ name, group: "3-D", summary: "", doc: "", laws: [], example: "", aliases: [], differentiable: true, inputs, outputs, attrs }) as unknown as Op;
const OPS = new Map(
  [
    op("Const", [], [pin("output", [])]),
    op("Placeholder", [], [pin("output", [])]),
    op("MaxPool3D", [pin("input", FLOATS)], [pin("output", FLOATS)]),
    op("AddN", [pin("inputs", FLOATS, { many: true })], [pin("sum", FLOATS)]),
    op("Shape", [pin("input", FLOATS)], [pin("output", ["int32"])]),
    op("Unstack", [pin("value", FLOATS)], [pin("output", FLOATS, { many: true, count: "num" })], [
      { name: "num", kind: "int", default: 2, required: false, choices: [], length: null, doc: "" },
    ]),
  ].map((one) => [one.name, one]),
);

const block = (name: string, op: string, from: Record<string, string[]> = {}, x = 0, y = 0): Block => ({
  name,
  op,
  position: [x, y],
  ...(Object.keys(from).length > 0
    ? { inputs: Object.fromEntries(Object.entries(from).map(([key, paths]) => [key, paths.map((path) => ({ from: path }))])) }
    : {}),
});

const PAGE: Page = {
  name: "test",
  semantics: "documented",
  blocks: [
    block("x", "Const"),
    block("pool", "MaxPool3D", { input: ["x.output"] }, 300),
    block("sum", "AddN", { inputs: ["x.output", "pool.output", "x.output"] }, 600),
  ],
};

const NESTED: Page = {
  ...PAGE,
  blocks: [...PAGE.blocks, { name: "part", page: "part", inputs: { x: [{ from: "x.output" }] } }],
  pages: { part: { ...PAGE, inputs: ["x"], outputs: { pool: "pool.output" } } },
};

describe("patches", () => {
  const cases: [string, unknown, unknown][] = [
    ["a value", { a: 1 }, { a: 2 }],
    ["a new entry", { a: 1 }, { a: 1, b: [1] }],
    ["an entry that goes", { a: 1, b: 2 }, { a: 1 }],
    ["a list that grows in the middle", [{ n: 1 }, { n: 3 }], [{ n: 1 }, { n: 2 }, { n: 3 }]],
    ["a list that is emptied", { a: [1, 2, 3] }, { a: [] }],
    ["an entry of a list", [{ n: 1, p: [0, 0] }, { n: 2 }], [{ n: 1, p: [5, 0] }, { n: 2 }]],
    ["kinds that change", { a: [1] }, { a: { b: 1 } }],
    ["names that every object answers to", { constructor: 1 }, { toString: [1], ["__proto__"]: 2 }],
    ["both ends", [{ n: 1 }, { n: 2 }, { n: 3 }], [{ n: 0 }, { n: 2 }, { n: 9 }]],
  ];
  it.each(cases)("go forth and back over %s", (_name, before, after) => {
    const patches = diff(before, after);
    expect(apply(before, patches)).toEqual(after);
    expect(apply(after, invert(patches))).toEqual(before);
  });
  it("are empty for data that says the same", () => {
    expect(diff({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).toEqual([]);
  });
  it("are not needed for parts that are shared", () => {
    const before = { a: { b: [1, { c: 2 }] }, d: [{ e: 1 }, { e: 2 }] };
    const after = share(before, { a: { b: [1, { c: 2 }] }, d: [{ e: 1 }, { e: 3 }] });
    expect(after.a).toBe(before.a);
    expect(after.d[0]).toBe(before.d[0]);
    expect(after.d[1]).toEqual({ e: 3 });
    expect(share(before, structuredClone(before))).toBe(before);
  });
  it("are small for a small change, and leave the rest as the same object", () => {
    const after = moveBlocks(PAGE, new Map([["pool", [10, 20] as const]]));
    const patches = diff(PAGE, after);
    expect(JSON.stringify(patches).length).toBeLessThan(250);
    expect(apply(PAGE, patches).blocks[0]).toBe(PAGE.blocks[0]);
  });
  it("go forth and back over random edits", () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    const value = (depth: number): unknown => {
      const kind = random(depth > 3 ? 2 : 5);
      if (kind === 0) return random(4);
      if (kind === 1) return "abc"[random(3)];
      if (kind === 2) return Array.from({ length: random(4) }, () => value(depth + 1));
      return Object.fromEntries(Array.from({ length: random(4) }, () => ["pqrs"[random(4)], value(depth + 1)]));
    };
    for (let i = 0; i < 500; i += 1) {
      const [before, after] = [value(0), value(0)];
      const patches = diff(before, after);
      expect(apply(before, patches)).toEqual(after);
      expect(apply(after, invert(patches))).toEqual(before);
    }
  });
});

describe("commands", () => {
  it("a name that is taken gets a number", () => {
    const first = addBlock(PAGE, block("pool", "MaxPool3D"));
    expect(first.name).toBe("pool_1");
    expect(addBlock(first.page, block("pool_1", "MaxPool3D")).name).toBe("pool_1_1");
  });
  it("a single pin takes a new wire instead of the old one, a list one more", () => {
    const one = connect(PAGE, "sum.sum", "pool", "input", false);
    expect(findBlock(one, "pool")?.inputs?.["input"]).toEqual([{ from: "sum.sum" }]);
    expect(findBlock(connect(PAGE, "x.output", "sum", "inputs", true), "sum")?.inputs?.["inputs"]).toHaveLength(4);
  });
  it("disconnecting takes the wire that is meant, also among equal ones", () => {
    const wire = wiresOf(PAGE).find((one) => one.to === "sum" && one.at === 2)!;
    expect(findBlock(disconnect(PAGE, [wire]), "sum")?.inputs?.["inputs"]).toEqual([{ from: "x.output" }, { from: "pool.output" }]);
  });
  it("an attribute goes back to its default", () => {
    const set = setAttr(PAGE, "pool", "padding", "SAME");
    expect(findBlock(set, "pool")?.attrs).toEqual({ padding: "SAME" });
    expect(setAttr(set, "pool", "padding", undefined)).toEqual(PAGE);
  });
  it("rings are seen before they are drawn", () => {
    expect(closesRing(PAGE, "sum", "pool")).toBe(true);
    expect(closesRing(PAGE, "pool", "pool")).toBe(true);
    expect(closesRing(PAGE, "x", "sum")).toBe(false);
  });
  it("a page as a block has the pins of the page", () => {
    expect(inputPins(NESTED, findBlock(NESTED, "part")!, OPS).map((one) => one.name)).toEqual(["x"]);
    expect(outputPins(NESTED, findBlock(NESTED, "part")!, OPS).map((one) => one.name)).toEqual(["pool"]);
  });
  it("numbers of an axis are named by the block's own order of axes", () => {
    const format = { name: "data_format", kind: "string", default: "NDHWC", required: false, choices: [], length: null, doc: "" };
    const pool = { ...OPS.get("MaxPool3D")!, attrs: [format] } as unknown as Op;
    expect(axesOf(block("p", "MaxPool3D"), pool)).toBe("NDHWC");
    expect(axesOf({ ...block("p", "MaxPool3D"), attrs: { data_format: "NCDHW" } }, pool)).toBe("NCDHW");
    expect(axesOf(block("x", "Const"), OPS.get("Const")!)).toBe("");
  });
  it("nested pages are edited in place", () => {
    const edited = withPage(NESTED, ["part"], (inner) => setAttr(inner, "pool", "padding", "SAME"));
    expect(findBlock(pageAt(edited, ["part"]), "pool")?.attrs).toEqual({ padding: "SAME" });
    expect(edited.blocks).toBe(NESTED.blocks);
  });
  it("names are refused with a reason", () => {
    expect(nameFault(PAGE, "x", "pool")).toBe("name.taken");
    for (const bad of ["", " a", "a:b", "a//b", "/a", "a^", "a\u0007", "a\u00a0b"]) expect(nameFault(PAGE, "x", bad)).toBe("name.form");
    for (const good of ["a b", "합계", "scope/입력", "w.1"]) expect(nameFault(PAGE, "x", good)).toBeNull();
    expect(nameFault(PAGE, "x", "x")).toBeNull();
  });
});

describe("history", () => {
  it("undoes and redoes everything, step by step", () => {
    let history = start(PAGE);
    const versions = [PAGE];
    const edits = [
      (page: Page) => addBlock(page, block("new", "Const")).page,
      (page: Page) => connect(page, "new.output", "sum", "inputs", true),
      (page: Page) => disconnect(page, wiresOf(page)),
      (page: Page) => ({ ...page, blocks: page.blocks.slice(1), targets: ["pool"] }),
    ];
    for (const [index, edit] of edits.entries()) {
      history = record(history, edit(history.now), "edit", index * 10_000);
      versions.push(history.now);
    }
    for (const version of versions.toReversed().slice(1)) expect((history = undo(history)).now).toEqual(version);
    for (const version of versions.slice(1)) expect((history = redo(history)).now).toEqual(version);
  });
  it("an edit that changes nothing is no step, and a new edit ends redo", () => {
    const history = record(start(PAGE), { ...PAGE }, "nothing", 0);
    expect(history.past).toHaveLength(0);
    const one = undo(record(start(PAGE), emptyPage("other"), "edit", 0));
    expect(record(one, { ...PAGE, name: "third" }, "edit", 0).future).toHaveLength(0);
  });
  it("steps of one gesture are one step", () => {
    let history = start(PAGE);
    for (let i = 1; i <= 5; i += 1) {
      history = record(history, moveBlocks(history.now, new Map([["x", [i, 0] as const]])), "move", i * 100, "move x");
    }
    expect(history.past).toHaveLength(1);
    expect(undo(history).now).toEqual(PAGE);
  });
});

describe("clipboard", () => {
  it("holds blocks with their wires, and the pages that they stand for", () => {
    const clip = readClip(copyText(NESTED, new Set(["part", "pool"])))!;
    expect(clip.blocks).toEqual([findBlock(NESTED, "pool"), findBlock(NESTED, "part")]);
    expect(clip.pages).toEqual(NESTED.pages);
    expect(cornerOf(clip)).toEqual([0, 0]);
  });
  it("takes no other text", () => {
    for (const text of ["", "hello", "{}", "[1]", '{"kind":"voxgrad/blocks","blocks":[3]}']) {
      expect(readClip(text)).toBeNull();
    }
  });
});

describe("pins", () => {
  it("types and rings refuse a wire; unknown types do not", () => {
    const page = { ...PAGE, blocks: [...PAGE.blocks, block("shape", "Shape", { input: ["x.output"] }), block("more", "MaxPool3D")] };
    const output = { dtype: "float32", shape: [2], text: "float32 [2]", direction: "output" as const };
    const estimate = { blocks: {}, peak_bytes: null, flops: null };
    const analysis = { pins: { x: { output } }, problems: [], warnings: [], estimate, order: [], seconds: 0 };
    expect(refusal(page, OPS, analysis, { from: "shape", output: "output", to: "more", pin: "input" })).toBe("type");
    expect(refusal(page, OPS, analysis, { from: "sum", output: "sum", to: "pool", pin: "input" })).toBe("ring");
    expect(refusal(page, OPS, null, { from: "x", output: "output", to: "more", pin: "input" })).toBeNull();
    const places = compatiblePins(page, OPS, analysis, { block: "shape", pin: "output", side: "output" });
    expect(places).toEqual([]);
    expect(compatiblePins(page, OPS, analysis, { block: "more", pin: "input", side: "input" }).map((one) => one.block)).toEqual([
      "x", "pool", "sum",
    ]);
  });
  it("a list of outputs has one pin per member", () => {
    const list = { ...block("u", "Unstack"), attrs: { num: 3 } };
    expect(outputPins(PAGE, list, OPS).map((one) => one.name)).toEqual(["output[0]", "output[1]", "output[2]"]);
    expect(outputPins(PAGE, block("u", "Unstack"), OPS)).toHaveLength(2);
  });
  it("forms tell the type", () => {
    expect(formOf({ types: FLOATS, host: false }, null)).toBe("float");
    expect(formOf({ types: ["int32"], host: true }, "int32")).toBe("shape");
    expect(formOf({ types: [], host: false }, "bool")).toBe("bool");
    expect(formOf({ types: [], host: false }, null)).toBe("any");
    expect(formOf({ types: [], host: false }, "int64")).toBe("int");
  });
});

describe("arranging", () => {
  const boxes = [
    { name: "a", x: 0, y: 0, width: 100, height: 50 },
    { name: "b", x: 150, y: 40, width: 50, height: 50 },
    { name: "c", x: 400, y: 10, width: 100, height: 90 },
  ];
  it("aligns edges and centres", () => {
    expect(align(boxes, "right").get("b")).toEqual([450, 40]);
    expect(align(boxes, "bottom").get("a")).toEqual([0, 50]);
    expect(align(boxes, "middle").get("a")).toEqual([0, 25]);
  });
  it("distributes with equal gaps", () => {
    expect(distribute(boxes, "x").get("b")).toEqual([225, 40]);
  });
  it("finds the neighbour in a direction", () => {
    expect(nearest(boxes, "a", "right")).toBe("b");
    expect(nearest(boxes, "c", "left")).toBe("b");
    expect(nearest(boxes, "a", "left")).toBeNull();
  });
  it("blocks without a place stand in columns, under the others, and rings do not hang", () => {
    const lost = { ...PAGE, blocks: PAGE.blocks.map(({ position: _none, ...block }) => block) };
    expect([...placesFor(lost, () => 100)]).toEqual([["x", [0, 0]], ["pool", [450, 0]], ["sum", [900, 0]]]);
    const partly = { ...PAGE, blocks: [PAGE.blocks[0]!, ...lost.blocks.slice(1)] };
    expect(placesFor(partly, () => 100).get("pool")).toEqual([450, 136]);
    expect(depthsOf(connect(PAGE, "sum.sum", "pool", "input", false)).size).toBe(3);
  });
  it("finds room for a new block, the nearest there is", () => {
    const [x, y] = freePlace(boxes, [0, 0], 100, 50);
    expect(boxes.every((box) => x >= box.x + box.width || x + 100 <= box.x || y >= box.y + box.height || y + 50 <= box.y)).toBe(true);
    expect(freePlace([{ name: "a", x: 0, y: 0, width: 200, height: 100 }], [10, 90], 100, 50)).toEqual([10, 136]);
    expect(freePlace([{ name: "a", x: 0, y: 0, width: 200, height: 100 }], [500, 90], 100, 50)).toEqual([500, 90]);
  });
  it("parts whatever covers something, at random, and moves nothing else", () => {
    let seed = 7;
    const random = (to: number) => (seed = (seed * 48271) % 2147483647) % to;
    for (let round = 0; round < 15; round += 1) {
      const some = Array.from({ length: 2 + random(30) }, (_, index) => ({ name: `b${index}`, x: random(1200), y: random(900), width: 100 + random(320), height: 60 + random(400) }));
      const isNew = (name: string) => name === "b0";
      const before = coveringPairs(some);
      const moves = parted(some, isNew);
      const after = some.map((box) => ({ ...box, x: moves.get(box.name)?.[0] ?? box.x, y: moves.get(box.name)?.[1] ?? box.y }));
      expect(coveringPairs(after)).toEqual([]);
      expect(before.length === 0).toBe(moves.size === 0);
      expect(parted(after, isNew).size).toBe(0);
      expect(routedThrough(after, random)).toEqual([]);
    }
  });
});

/** Blocks that wires between random blocks run through, their own among them. */
function routedThrough(boxes: readonly Box[], random: (to: number) => number): string[] {
  const plane = new Plane(boxes);
  return boxes.flatMap((from) => {
    const to = boxes[random(boxes.length)]!;
    const [out, into] = [random(4) > 0 ? 1 : -1, random(4) > 0 ? 1 : -1] as const;
    const ends = {
      x0: out > 0 ? from.x + from.width + 3 : from.x - 3, y0: from.y + 20 + random(20),
      x1: into > 0 ? to.x - 3 : to.x + to.width + 3, y1: to.y + 20 + random(20), out, into,
    };
    const { points, way } = routeOf(ends, plane, { from: from.name, to: to.name, source: from.name }, random(6));
    plane.take(way, from.name);
    expect(points.slice(1).every(([x, y], index) => x === points[index]![0] || Math.abs(y - points[index]![1]) < 0.5)).toBe(true);
    expect([points[0], points.at(-1)]).toEqual([[ends.x0, ends.y0], [ends.x1, ends.y1]]);
    const meets = (a: Point, b: Point, box: Box) =>
      Math.min(a[0], b[0]) < box.x + box.width && Math.max(a[0], b[0]) > box.x && Math.min(a[1], b[1]) < box.y + box.height && Math.max(a[1], b[1]) > box.y;
    return points.slice(1).flatMap((b, index) => boxes.filter((box) => meets(points[index]!, b, box)).map((box) => `${from.name} to ${to.name} through ${box.name}`));
  });
}

describe("cells", () => {
  const four = { dtype: "float32", shape: [2, 2], values: [1, 2, 3, 4] };
  it("take shapes, fills and rows of a spreadsheet", () => {
    expect(shapeFrom("2, 3x4")).toEqual([2, 3, 4]);
    expect(shapeFrom("")).toEqual([]);
    expect([shapeFrom("2,a"), shapeFrom("-1"), shapeFrom("99999,99999")]).toEqual([null, null, null]);
    expect(reshaped(four, [3]).values).toEqual([1, 2, 3]);
    expect(reshaped(four, [6]).values).toEqual([1, 2, 3, 4, 1, 2]);
    expect(withCells(four, [0, 1], [0, 1], "7\t8\r\n9\t10\r\n")?.values).toEqual([1, 7, 3, 9]);
    expect(withCells(four, [0, 1], [0, 0], "x")).toBe(null);
    expect(tensorJson({ ...four, values: [NaN, -Infinity, 0, 1] })).toEqual({ tensor: { dtype: "float32", shape: [2, 2], values: ["nan", "-inf", 0, 1] } });
  });
});

describe("tensors", () => {
  const message = (dtype: string, shape: number[], data: ArrayBufferView): ArrayBuffer => {
    const header = JSON.stringify({ t: { dtype, shape, data_offsets: [0, data.byteLength] } });
    const padded = new TextEncoder().encode(header.padEnd(Math.ceil(header.length / 8) * 8));
    const out = new Uint8Array(8 + padded.length + data.byteLength);
    new DataView(out.buffer).setBigUint64(0, BigInt(padded.length), true);
    out.set(padded, 8);
    out.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), 8 + padded.length);
    return out.buffer;
  };
  it("read safetensors of every float type, NaN and infinities too", () => {
    expect([...readSafetensors(message("F32", [3], new Float32Array([1.5, NaN, -Infinity]))).data]).toEqual([1.5, NaN, -Infinity]);
    expect([...readSafetensors(message("F16", [4], new Uint16Array([0x3c00, 0xc000, 0x7c00, 0x0001]))).data]).toEqual([1, -2, Infinity, 2 ** -24]);
    expect([...readSafetensors(message("BF16", [2], new Uint16Array([0x3fc0, 0xc000]))).data]).toEqual([1.5, -2]);
    expect([...readSafetensors(message("C64", [2], new Float32Array([3, -4, 0, 1]))).data]).toEqual([5, 1]);
    expect([...readSafetensors(message("C128", [1], new Float64Array([-5, 12]))).data]).toEqual([13]);
    expect([...readSafetensors(message("I64", [1], new BigInt64Array([-7n]))).data]).toEqual([-7]);
  });
  it("refuse messages that do not add up", () => {
    expect(() => readSafetensors(message("F32", [4], new Float32Array(3)))).toThrow(/sizes/);
    expect(() => readSafetensors(message("X9", [1], new Float32Array(1)))).toThrow(/X9/);
  });
  it("indices go both ways", () => {
    const shape = [2, 3, 4, 5, 6];
    for (const flat of [0, 1, 77, 719]) expect(flatIndex(shape, indexAt(shape, flat))).toBe(flat);
    expect(indexAt(shape, 719)).toEqual([1, 2, 3, 4, 5]);
  });
  it("planes are the right elements", () => {
    const tensor: Tensor = { dtype: "float64", shape: [2, 2, 3], data: Float64Array.from({ length: 12 }, (_, i) => i) };
    const plane = planeOf(tensor, 0, 1, [0, 0, 2]);
    expect([plane.rows, plane.columns, [...plane.values]]).toEqual([2, 2, [2, 5, 8, 11]]);
    expect(plane.flat(1, 0)).toBe(8);
  });
  it("differences count ULPs of float32, and NaN against a number has no bound", () => {
    const of = (...values: number[]): Tensor => ({ dtype: "float32", shape: [values.length], data: new Float32Array(values) });
    const next = 1 + 2 ** -23;
    expect(difference(of(1, 0), of(next, 0))).toMatchObject({ maxUlp: 1, differing: 1, at: 0 });
    expect(difference(of(-0), of(0)).differing).toBe(0);
    expect(difference(of(NaN), of(NaN)).differing).toBe(0);
    expect(difference(of(NaN), of(1)).maxAbs).toBe(Infinity);
    expect(difference(of(2 ** -149), of(-(2 ** -149))).maxUlp).toBe(2);
  });
});

describe("texts", () => {
  it("numbers have six significant digits", () => {
    expect(format.number(1 / 3)).toBe("0.333333");
    expect(format.number(-450520)).toBe("−450520");
    expect(format.number(1e-7)).toBe("1e−7");
    expect(format.number(NaN)).toBe("NaN");
    expect(format.bytes(3 * 2 ** 20)).toBe("3 MiB");
    expect(format.flops(2.5e9)).toBe("2.5 GFLOP");
    expect(format.seconds(0.00042)).toBe("420 µs");
    expect(format.shape([2, "D", null])).toBe("2×D×?");
  });
  it("values are shown as they are typed", () => {
    const tensor = { tensor: { dtype: "float32", shape: [2, 2], values: [1, 2, "nan", 4.5] } };
    expect(textOf(tensor)).toBe("{{1,2},{nan,4.5}}");
    expect(textOf([1, 2, 2, 2, 1])).toBe("1,2,2,2,1");
    expect(brief([1, 2, 2, 2, 1])).toBe("1·2·2·2·1");
    expect(brief(tensor)).toBe("float32 [2,2]");
    expect(literalOf([[1], [2, 3]])).toBeNull();
    expect(brief(["N", 8, 8, null])).toBe("N·8·8·—");
    expect(textOf(["N", 8, 8])).toBe("N,8,8");
    expect(literalOf({ tensor: { dtype: "float32", shape: [64, 64], file: "p.data/0.npy", sha256: "" } })?.values).toBeNull();
  });
  it("every text exists in every language, with the same blanks", () => {
    const blanks = (text: string) => [...text.matchAll(/\{\w+\}/g)].map((match) => match[0]).sort();
    for (const [key, text] of Object.entries(LANGUAGES.en)) {
      expect(LANGUAGES.ko[key as Key], key).toBeTruthy();
      expect(blanks(LANGUAGES.ko[key as Key]), key).toEqual(blanks(text));
    }
    expect(translate("en", "run.done", { time: "3 ms" })).toBe("Done in 3 ms.");
  });
  it("colours stay in their scale and can be read", () => {
    expect(colourOf(0, { min: 0, max: 10 })).toEqual([68, 1, 84]);
    expect(colourOf(10, { min: 0, max: 10 })).toEqual([253, 231, 37]);
    expect(colourOf(NaN, { min: 0, max: 1 })).toBe(NAN_COLOUR);
    expect(colourOf(0, { min: -1, max: 4 }, "signed")).toEqual([247, 247, 247]);
    expect(inkOn([68, 1, 84])).toBe("#fff");
    expect(inkOn([253, 231, 37])).toBe("#000");
  });
});

describe("finding", () => {
  it("puts the best fit first", () => {
    const names = ["MaxPool3DGradGrad", "MaxPool3D", "AvgPool3D", "MaxPool3DGrad", "Maximum"].map((name) => ({ name }));
    expect(search(names, "maxpool3d")[0]?.name).toBe("MaxPool3D");
    expect(search(names, "mpgg")[0]?.name).toBe("MaxPool3DGradGrad");
    expect(search(names, "zz")).toEqual([]);
    expect(score("conv", "Conv3D")).toBeGreaterThan(score("conv", "IConv"));
  });
  it("no key has two actions", () => {
    const keys = ACTIONS.flatMap((action) => action.keys);
    expect(new Set(keys).size).toBe(keys.length);
  });
  it("presses find their action, also in two halves", () => {
    const press = (key: string, more: object = {}) => pressed({ key, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...more });
    expect(actionFor(press("z", { ctrlKey: true }), null)).toBe("undo");
    expect(actionFor(press("Z", { metaKey: true, shiftKey: true }), null)).toBe("redo");
    expect(actionFor(press("?", { shiftKey: true }), null)).toBe("help");
    expect(actionFor(press("å", { altKey: true, code: "KeyA" }), null)).toBe("wait");
    expect(actionFor(press("l"), "Alt+A")).toBe("align-left");
    expect(actionFor(press("q"), null)).toBeNull();
  });
});

describe("chunks of a volume", () => {
  it("cells are as large as they can be, and found again under the pointer", () => {
    const grid = layOut([6, 4, 8], 700, 200);
    expect(grid.width).toBeLessThanOrEqual(700);
    expect(grid.height).toBeLessThanOrEqual(200);
    for (let cell = 0; cell < 6 * 4 * 8; cell += 7) {
      const [left, top] = corner(grid, Math.floor(cell / 32));
      const [x, y] = [left + (cell % 8) * grid.cell, top + (Math.floor(cell / 8) % 4) * grid.cell];
      expect(cellAt(grid, x + 1, y + 1)).toBe(cell);
    }
    expect(cellAt(grid, 1, 2)).toBeNull();
    expect(layOut([64, 32, 32], 300, 100).cell).toBe(4);
  });
  it("a cell tells its voxels, also where several chunks are one cell", () => {
    expect(voxels([2, 3, 4], [2, 3, 4], [8, 8, 8], 23)).toEqual([[8, 16], [16, 24], [24, 32]]);
    expect(voxels([100, 1, 1], [34, 1, 1], [10, 5, 5], 33)).toEqual([[990, 1000], [0, 5], [0, 5]]);
    expect(["d", "r", "f", "0", "7", undefined].map(cellState)).toEqual(["done", "running", "failed", "todo", "part", "todo"]);
  });
});

describe("files outside of the folder", () => {
  const file = (block: string, folder: string) => ({ block, op: "ReadFile", name: `${folder}/x`, write: false, folder });
  it("are shown by folder, with those that were allowed before, and without those that cannot be", () => {
    const found = foldersOf({ wanted: [file("a", "/scans"), file("b", ""), file("c", "/scans")], allowed: ["/out"] });
    expect(found.map(([folder, files]) => [folder, files.map((one) => one.block)])).toEqual([["/out", []], ["/scans", ["a", "c"]]]);
  });
});

// `tests/formats/test_routes.py` holds the pictures of the command to the same ways.
describe("the ways of wires", () => {
  const source: Box = { name: "a", x: 0, y: 0, width: 100, height: 80 };
  const target: Box = { name: "b", x: 400, y: 200, width: 100, height: 80 };
  const wall: Box = { name: "wall", x: 200, y: -100, width: 60, height: 600 };
  const way = (plane: Plane, [x0, y0]: Point, [x1, y1]: Point, name = "a", lane = 0) => {
    const route = routeOf({ x0, y0, x1, y1, out: 1, into: 1 }, plane, { from: "a", to: "b", source: name }, lane);
    plane.take(route.way, name);
    return route.points;
  };

  it("are straight where they can be", () => {
    expect(way(new Plane([source, { ...target, y: 0 }]), [100, 40], [400, 40])).toEqual([[100, 40], [400, 40]]);
  });

  it("turn beside their target, each in its lane", () => {
    const plane = new Plane([source, target]);
    expect(way(plane, [100, 40], [400, 240])).toEqual([[100, 40], [385, 40], [385, 240], [400, 240]]);
    expect(way(plane, [100, 60], [400, 260], "b", 1)).toEqual([[100, 60], [376, 60], [376, 260], [400, 260]]);
  });

  it("go around what stands between", () => {
    const plane = new Plane([source, target, wall]);
    expect(way(plane, [100, 40], [400, 240])).toEqual([[100, 40], [189, 40], [189, -106], [271, -106], [271, 240], [400, 240]]);
  });
});

describe("values", () => {
  it("offers shapes that hold as many elements, what was there first", () => {
    expect(shapesFor(32, [[2, 2, 2, 2, 2], [3]])).toEqual([[2, 2, 2, 2, 2], [32], [1, 2, 2, 2, 4], [4, 2, 2, 2, 1], [4, 8]]);
    expect(shapesFor(7, [])).toEqual([[7]]);
  });

  it("writes rules for a shape, with a seed", () => {
    expect(ruleText("normal", [2, 3])).toBe("normal([2,3], 0, 1, seed=1)");
    expect(ruleText("range", [2, 3])).toBe("range(6)");
  });

  it("forgets the rule of a value that changes, and of no other", () => {
    const typed = { value: "range(2)", x: "ones([2])" };
    const page: Page = { name: "p", semantics: "documented", blocks: [{ name: "a", op: "Const", attrs: { value: [0, 1] }, typed }] };
    expect(setAttr(page, "a", "value", 3).blocks[0]?.typed).toEqual({ x: "ones([2])" });
    expect(setAttr(page, "a", "dtype", "int32").blocks[0]?.typed).toEqual(typed);
    const wired = withSources(page.blocks[0]!, "x", [{ from: "b.output" }]);
    expect(wired.typed).toEqual({ value: "range(2)" });
    expect(withSources({ ...wired, typed: { x: "ones([2])" } }, "x", [])).not.toHaveProperty("typed");
  });

  it("shows texts as texts", () => {
    const value = { tensor: { dtype: "string", shape: [2], values: ["a", 'say "b"'] } };
    expect(textOf(value)).toBe('{"a","say \\"b\\""}');
    expect(literalOf(value)?.values).toBeNull();
  });

  it("knows the one number of a tensor, and sets it in its shape and type", () => {
    const tensor = (dtype: string, values: number[]) => ({ tensor: { dtype, shape: [values.length], values } });
    expect(numberOf(tensor("float32", [2, 2]))).toBe(2);
    expect(numberOf(tensor("float32", [2, 3]))).toBeNull();
    expect(numberOf([2, 2])).toBeNull();
    expect(withNumber(tensor("int32", [2, 2]), 3.7)).toEqual(tensor("int32", [4, 4]));
    expect(withNumber(0.5, 0.7)).toBe(0.7);
  });

  it("shows sizes without a name as open", () => {
    expect(format.shape(["N", "conv[0]", 3])).toBe("N×?×3");
    expect(format.brackets(["2*x[1]", null])).toBe("[?,?]");
  });
});
