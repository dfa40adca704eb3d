// SPDX-License-Identifier: Apache-2.0
/** Values that are edited cell by cell: fill, reshape, and rows as a spreadsheet copies them. */

import type { Json } from "./model";
import { flatIndex, sizeOf } from "./tensor";
import type { Literal } from "./values";

/** Elements that an editor of cells shows and makes. */
export const MOST_EDITED = 512;
export const MOST_FILLED = 65536;

/** A tensor as the page file has it. */
export function tensorJson({ dtype, shape, values }: Literal): Json {
  const told = (value: number): Json => (Number.isFinite(value) ? value : Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf");
  return { tensor: { dtype: dtype || "float32", shape: [...shape], values: (values ?? []).map(told) } };
}

/** Sizes from `2,2,2`, `2x2x2` or `[2][2]`; null where the text is no shape. */
export function shapeFrom(text: string): number[] | null {
  const parts = text.split(/[^\d-]+/).filter(Boolean);
  const sizes = parts.map(Number);
  if (/[^\d\s,;x×[\]{}()·-]/i.test(text) || sizes.some((size) => !Number.isInteger(size) || size < 0)) return null;
  return sizeOf(sizes) <= MOST_FILLED ? sizes : null;
}

/** The same values in another shape; where their number differs they begin anew until the shape is full. */
export function reshaped(literal: Literal, shape: readonly number[]): Literal {
  const old = literal.values ?? [];
  const values = Array.from({ length: sizeOf(shape) }, (_, at) => (old.length === 0 ? 0 : old[at % old.length]!));
  return { ...literal, shape, values };
}

/** Shapes that hold as many elements: what was there before, a vector, and volumes of equal sides in one or a few channels. */
export function shapesFor(count: number, known: readonly (readonly number[])[]): number[][] {
  const found: number[][] = [...known.map((shape) => [...shape]), [count]];
  for (const around of [1, 2, 3, 4]) {
    const side = Math.round(Math.cbrt(count / around));
    if (side > 1 && side ** 3 * around === count) found.push([1, side, side, side, around], ...(around > 1 ? [[around, side, side, side, 1]] : []));
  }
  for (let rows = Math.floor(Math.sqrt(count)); rows > 1; rows -= 1) {
    if (count % rows !== 0) continue;
    found.push([rows, count / rows]);
    break;
  }
  const fitting = found.filter((shape) => sizeOf(shape) === count);
  return fitting.filter((shape, at) => fitting.findIndex((one) => one.join() === shape.join()) === at).slice(0, MOST_OFFERED);
}

const MOST_OFFERED = 6;

/** Values by a rule, for a tensor of a shape: the server makes them, the same as in Python. */
export const RULES = ["zeros", "ones", "range", "full", "uniform", "normal", "integers"] as const;

export function ruleText(rule: (typeof RULES)[number], shape: readonly number[]): string {
  const sizes = `[${shape.join(",")}]`;
  const rest = { zeros: "", ones: "", range: "", full: ", 0.5", uniform: ", 0, 1, seed=1", normal: ", 0, 1, seed=1", integers: ", 0, 10, seed=1" }[rule];
  return rule === "range" ? `range(${sizeOf(shape)})` : `${rule}(${sizes}${rest})`;
}

export function filled(literal: Literal, value: number): Literal {
  return { ...literal, values: Array.from({ length: sizeOf(literal.shape) }, () => value) };
}

/** A number as people and spreadsheets write it; null where it is none. */
export function numberFrom(text: string): number | null {
  const plain = text.trim().replace("−", "-");
  const named: { readonly [name: string]: number } = { nan: NaN, inf: Infinity, "-inf": -Infinity, true: 1, false: 0 };
  const value = named[plain.toLowerCase()] ?? Number(plain);
  return plain === "" || (Number.isNaN(value) && plain.toLowerCase() !== "nan") ? null : value;
}

/** The rows of a text that a spreadsheet copied. */
export function rowsOf(text: string): string[][] {
  return text.replace(/\r?\n$/, "").split(/\r?\n/).map((line) => line.split(/\t|,|;/));
}

/** Put a text into cells from one of them onwards; what reaches over the edge is left out. Null where a cell is no number. */
export function withCells(literal: Literal, axes: readonly [number, number], from: readonly number[], text: string): Literal | null {
  const values = [...(literal.values ?? [])];
  for (const [row, line] of rowsOf(text).entries()) {
    for (const [column, cell] of line.entries()) {
      const index = [...from];
      if (axes[0] >= 0) index[axes[0]]! += row;
      else if (row > 0) continue;
      if (axes[1] >= 0) index[axes[1]]! += column;
      else if (column > 0) continue;
      if (index.some((at, axis) => at >= literal.shape[axis]!)) continue;
      const value = numberFrom(cell);
      if (value === null) return null;
      values[flatIndex(literal.shape, index)] = value;
    }
  }
  return { ...literal, values };
}
