// SPDX-License-Identifier: Apache-2.0
/** Numbers, shapes, sizes and times as people read them. */

import type { Dim } from "./model";

/** Six significant digits at most, without a trail of zeros. */
export function number(value: number, digits = 6): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value).replace("-", "−");
  const text = Number(value.toPrecision(digits));
  const size = Math.abs(text);
  const shown = size !== 0 && (size < 1e-4 || size >= 1e9) ? text.toExponential().replace("e+", "e") : String(text);
  return shown.replaceAll("-", "−");
}

/** A number for a cell that is a few characters wide. */
export function short(value: number): string {
  const text = number(value, 3);
  return text.length <= 6 ? text : number(value, 2);
}

export function shape(dims: readonly Dim[] | null | undefined): string {
  if (!dims) return "?";
  return dims.length === 0 ? "scalar" : dims.map(size).join("×");
}

/** A size that nobody has named is open: `conv[0]`, which tells such sizes apart, is no name for a person. */
function size(dim: Dim): string {
  return dim === null || (typeof dim === "string" && dim.includes("[")) ? "?" : String(dim);
}

export function brackets(dims: readonly Dim[] | null | undefined): string {
  return dims ? `[${dims.map(size).join(",")}]` : "[…]";
}

const SHORT_TYPES: { readonly [name: string]: string } = {
  float16: "f16", half: "f16", bfloat16: "bf16", float32: "f32", float64: "f64", double: "f64",
  int8: "i8", int16: "i16", int32: "i32", int64: "i64", uint8: "u8", uint16: "u16", uint32: "u32", uint64: "u64",
  bool: "bool", string: "str", complex64: "c64", complex128: "c128",
};

export function dtype(name: string | null | undefined): string {
  return name ? (SHORT_TYPES[name] ?? name) : "?";
}

function scaled(value: number, step: number, units: readonly string[]): string {
  let rest = value;
  let unit = 0;
  while (rest >= step && unit < units.length - 1) {
    rest /= step;
    unit += 1;
  }
  return `${rest >= 100 || unit === 0 ? Math.round(rest) : Number(rest.toPrecision(3))} ${units[unit]}`;
}

export function bytes(value: number): string {
  return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
}

export function flops(value: number): string {
  return scaled(value, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
}

export function seconds(value: number): string {
  if (value < 1e-3) return `${Number((value * 1e6).toPrecision(3))} µs`;
  if (value < 1) return `${Number((value * 1e3).toPrecision(3))} ms`;
  return value < 100 ? `${Number(value.toPrecision(3))} s` : `${Math.round(value)} s`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US").replaceAll(",", "\u202f");
}
