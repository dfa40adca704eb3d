// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { SweepPlan, SweepRow } from "../generated/api";
import { placeOn, scaleOf, thinned, ticksOf } from "./chart";
import { columnsOf, curvesOf, numberAt, sorted, titleOf } from "./sweeps";

function row(index: number, values: { [name: string]: string }, mean: number | null): SweepRow {
  const result = { dtype: "float32", shape: [], value: mean, low: mean, mean, high: mean, not_finite: mean === null ? 1 : 0 };
  return { index, values, engine: "cpu", results: { "y.output": result }, times: null, faults: [], edits: [] };
}

const plan: SweepPlan = { points: 6, values: { "a.x": ["9", "10", "-1"], "b.padding": ["SAME", "VALID"] }, fetches: ["y.output"] };
const rows = plan.values["a.x"]!.flatMap((x, i) => plan.values["b.padding"]!.map((padding, j) => row(2 * i + j, { "a.x": x, "b.padding": padding }, i === 1 && j === 1 ? null : Number(x) * (j + 1))));

test("rows sort by numbers, not by their letters; what has none stands at the end both ways", () => {
  expect(sorted(rows, "a.x", false).map((one) => one.values["a.x"])).toEqual(["-1", "-1", "9", "9", "10", "10"]);
  const [column] = columnsOf(plan, rows);
  expect(titleOf(column!)).toBe("y.output");
  expect(sorted(rows, column!, false).map((one) => numberAt(one, column!))).toEqual([-2, -1, 9, 10, 18, null]);
  expect(sorted(rows, column!, true).map((one) => numberAt(one, column!))).toEqual([18, 10, 9, -1, -2, null]);
});

test("a curve for every combination of the others, over numbers or over names", () => {
  const [column] = columnsOf(plan, rows);
  const over = curvesOf(plan, rows, "a.x", column!);
  expect(over.names).toBe(null);
  expect(over.series.map((one) => [one.name, one.points.map((point) => [point.x, point.y])])).toEqual([
    ["b.padding = SAME", [[-1, -1], [9, 9], [10, 10]]],
    ["b.padding = VALID", [[-1, -2], [9, 18]]],
  ]);
  const named = curvesOf(plan, rows, "b.padding", column!);
  expect(named.names).toEqual(["SAME", "VALID"]);
  expect(named.series.map((one) => one.points.length)).toEqual([2, 1, 2]);
});

test("scales: round ticks, powers of ten, and nothing of what a logarithm does not have", () => {
  expect(ticksOf({ low: -0.3, high: 1, log: false })).toEqual([0, 0.5, 1]);
  expect(ticksOf(scaleOf([0.001, -5, 0, 100, NaN], true)!)).toEqual([0.001, 0.1, 10]);
  expect(scaleOf([-1, 0], true)).toBe(null);
  expect(placeOn(scaleOf([1, 100], true)!, 10)).toBeCloseTo(0.5);
  expect(placeOn(scaleOf([3], false)!, 3)).toBe(0.5);
});

test("a long curve keeps its peaks", () => {
  const long = Array.from({ length: 10_000 }, (_, x) => ({ x, y: x === 7777 ? 50 : x === 1234 ? -50 : Math.sin(x) }));
  const short = thinned(long, 100);
  expect(short.length).toBeLessThanOrEqual(200);
  expect(short).toContain(long[7777]);
  expect(short).toContain(long[1234]);
  expect(short.every((point, index) => index === 0 || point.x > short[index - 1]!.x)).toBe(true);
});
