// SPDX-License-Identifier: Apache-2.0
/** Sweeps: what of a page can vary, and its rows as columns and curves. */

import type { SweepPlan, SweepRow } from "../generated/api";
import type { Catalogue } from "./document";
import type { Page } from "./model";
import type { Point } from "./chart";

/** What can vary: attributes and single inputs of the blocks of a page, its semantics, the engine. */
export function namesOf(page: Page, catalogue: Catalogue): string[] {
  const found = page.blocks.flatMap((block) => {
    const op = block.op === undefined ? undefined : catalogue.get(block.op);
    const pins = op ? [...op.attrs, ...op.inputs.filter((input) => !input.many)] : [];
    return pins.map((pin) => `${block.name}.${pin.name}`);
  });
  return [...new Set(found), "semantics", "engine"];
}

/** Values that something which varies can have, as an example of how they are typed. */
export function exampleOf(name: string, page: Page, catalogue: Catalogue, engines: readonly string[]): string {
  if (name === "semantics") return "documented,tf_cpu";
  if (name === "engine") return engines.join(",");
  const dot = name.lastIndexOf(".");
  const block = page.blocks.find((one) => one.name === name.slice(0, dot));
  const attr = (block?.op === undefined ? undefined : catalogue.get(block.op))?.attrs.find((one) => one.name === name.slice(dot + 1));
  if (attr && attr.choices.length > 0) return attr.choices.join(",");
  if (attr?.length === 5) return "{1,2,2,2,1},{1,3,3,3,1}";
  return "0.5,1,2   range(0.1, 1, 0.1)";
}

export type Part = "value" | "low" | "mean" | "high" | "seconds";

/** A number of every row: a part of a result, or its time. */
export interface Column {
  readonly path: string;
  readonly part: Part;
}

/** The numbers of the rows: one for a result of one number, else the least, the mean and the greatest; and the time. */
export function columnsOf(plan: SweepPlan, rows: readonly SweepRow[]): Column[] {
  const results = plan.fetches.flatMap((path): Column[] => {
    const found = rows.flatMap((row) => row.results[path] ?? []);
    const single = found.length > 0 && found.every((one) => one.shape.every((size) => size === 1));
    return (single ? (["value"] as const) : (["low", "mean", "high"] as const)).map((part) => ({ path, part }));
  });
  return [...results, { path: "", part: "seconds" }];
}

export function numberAt(row: SweepRow, { path, part }: Column): number | null {
  return part === "seconds" ? (row.times?.median ?? null) : (row.results[path]?.[part] ?? null);
}

/** A text as a number where it is one, so that 10 comes behind 9. */
function orderKey(text: string): number | string {
  const number = Number(text);
  return text.trim() !== "" && Number.isFinite(number) ? number : text;
}

function byKey(a: number | string | null, b: number | string | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b));
}

/** The rows in the order of a parameter or a column, rows without a number at the end. */
export function sorted(rows: readonly SweepRow[], by: string | Column | null, down: boolean): SweepRow[] {
  if (by === null) return [...rows];
  const key = (row: SweepRow) => (typeof by === "string" ? orderKey(row.values[by] ?? "") : numberAt(row, by));
  return rows.toSorted((a, b) => {
    const [left, right] = [key(a), key(b)];
    const order = byKey(left, right);
    return down && left !== null && right !== null ? -order : order;
  });
}

export interface Curves {
  /** The values of x in the order of the plan, where they are no numbers. */
  readonly names: readonly string[] | null;
  readonly series: readonly { readonly name: string; readonly points: readonly Point[] }[];
}

/** A column over a parameter: a curve for every combination of the others. */
export function curvesOf(plan: SweepPlan, rows: readonly SweepRow[], x: string, column: Column): Curves {
  const values = [...new Set(plan.values[x] ?? [])];
  const numeric = values.every((text) => typeof orderKey(text) === "number");
  const others = Object.keys(plan.values).filter((name) => name !== x && new Set(plan.values[name]).size > 1);
  const found = new Map<string, Point[]>();
  for (const row of rows) {
    const y = numberAt(row, column);
    if (y === null) continue;
    const text = row.values[x] ?? "";
    const point = { x: numeric ? Number(text) : values.indexOf(text), y };
    const name = others.map((other) => `${other} = ${row.values[other]}`).join(", ");
    const spread = column.part === "seconds" && row.times ? { low: row.times.low, high: row.times.high } : {};
    found.set(name, [...(found.get(name) ?? []), { ...point, ...spread }]);
  }
  const series = [...found].map(([name, points]) => ({ name: name || titleOf(column), points: points.toSorted((a, b) => a.x - b.x) }));
  return { names: numeric ? null : values, series };
}

export function titleOf({ path, part }: Column): string {
  return part === "seconds" ? "time" : part === "value" ? path : `${path} ${part === "low" ? "min" : part === "high" ? "max" : "mean"}`;
}
