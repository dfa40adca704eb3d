// SPDX-License-Identifier: Apache-2.0
/** Values inside of a page: plain JSON, or a tensor in the form of the page file. */

import type { Json } from "./model";
import { sizeOf } from "./tensor";

export interface Literal {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** All elements in order; null where they lie in a file beside the page. */
  readonly values: readonly number[] | null;
}

type Dict = { readonly [key: string]: Json };

function isDict(value: Json): value is Dict {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One element: numbers, texts such as "nan", and true and false as 1 and 0. */
function element(value: Json): number {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "string") return NAMED[value] ?? NaN;
  if (isDict(value) && typeof value["float"] === "string") return NAMED[value["float"]] ?? NaN;
  return NaN;
}

const NAMED: { readonly [text: string]: number } = { inf: Infinity, "-inf": -Infinity, nan: NaN };

/** What a value of a page holds, if it is a tensor, a list of numbers or a number. */
export function literalOf(value: Json | undefined): Literal | null {
  if (value === undefined || value === null || typeof value === "string") return null;
  if (isDict(value) && isDict(value["tensor"] ?? null)) return tensorLiteral(value["tensor"] as Dict);
  if (isDict(value) && !("float" in value)) return null;
  const shape = listShape(value);
  if (!shape || !isNumeric(value)) return null;
  return { dtype: "", shape, values: flatten(value) };
}

function tensorLiteral(tensor: Dict): Literal | null {
  const shape = tensor["shape"];
  if (!Array.isArray(shape)) return null;
  const sizes = shape.map(Number);
  const values = tensor["values"];
  const dtype = String(tensor["dtype"] ?? "");
  return {
    dtype,
    shape: sizes,
    // Texts and complex numbers are no numbers of a grid.
    values: !/string|complex/.test(dtype) && Array.isArray(values) && values.length === sizeOf(sizes) ? values.map((one: Json) => element(one)) : null,
  };
}

/** Names among the entries are open sizes of a shape, or texts: nothing that a grid of numbers can show. */
function isNumeric(value: Json): boolean {
  if (Array.isArray(value)) return value.every((item: Json) => isNumeric(item));
  return value !== null && (typeof value !== "string" || value in NAMED);
}

function flatten(value: Json): number[] {
  return Array.isArray(value) ? value.flatMap((item: Json) => flatten(item)) : [element(value)];
}

/** The sizes of a nested list; null where it is ragged. */
function listShape(value: Json): number[] | null {
  if (!Array.isArray(value)) return [];
  const inner = value.map((item: Json) => listShape(item));
  const first = inner[0];
  if (first === undefined) return [0];
  if (first === null || inner.some((one) => one === null || one.join() !== first.join())) return null;
  return [value.length, ...first];
}

/** A value as people type it: `1,2,2,2,1` for a list, `{{1,2},{3,4}}` for a tensor, the plain text of anything else. */
export function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  const literal = literalOf(value);
  const texts = textsOf(value);
  if (literal && texts) return nested(texts.map((text) => `"${text.replace(/["\\]/g, "\\$&")}"`), literal.shape);
  if (literal?.values) {
    if (literal.shape.length === 1) return literal.values.map(plainNumber).join(",");
    return nested(literal.values.map(plainNumber), literal.shape);
  }
  if (literal) return `[${literal.shape.join("][")}]`;
  const plain = Array.isArray(value) && value.every((one: Json) => typeof one !== "object" || one === null);
  return plain ? value.map((one: Json) => one ?? "?").join(",") : JSON.stringify(value);
}

/** The elements of a tensor of texts, where all of them are plain ones. */
function textsOf(value: Json): readonly string[] | null {
  const tensor = isDict(value) ? value["tensor"] : undefined;
  if (tensor === undefined || !isDict(tensor) || tensor["dtype"] !== "string" || !Array.isArray(tensor["values"])) return null;
  const texts: readonly Json[] = tensor["values"];
  return texts.every((one): one is string => typeof one === "string") ? texts : null;
}

function plainNumber(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return String(value);
}

function nested(items: readonly string[], shape: readonly number[]): string {
  const [size, ...rest] = shape;
  if (size === undefined) return items[0] ?? "";
  const step = items.length / Math.max(1, size);
  const parts = Array.from({ length: size }, (_, i) => nested(items.slice(i * step, (i + 1) * step), rest));
  return `{${parts.join(",")}}`;
}

/** A value in one short line: shapes and lists with dots between, as `1·2·2·2·1`. */
export function brief(value: Json | undefined): string {
  if (value === null || value === undefined) return "—";
  if (typeof value === "boolean") return value ? "true" : "false";
  const literal = literalOf(value);
  if (literal?.values && literal.shape.length <= 1 && literal.values.length <= 8) {
    return literal.values.map(plainNumber).join("·");
  }
  if (literal) return `${literal.dtype || "list"} [${literal.shape.join(",")}]`;
  const text = typeof value === "string" ? value : Array.isArray(value) ? value.map((one: Json) => brief(one)).join("·") : JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 38)}…` : text;
}
