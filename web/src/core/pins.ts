// SPDX-License-Identifier: Apache-2.0
/** Which wires can be: element types, rings, and what a pin looks like. */

import { closesRing } from "./commands";
import { inputPins, outputPins, type Catalogue, type PinShape } from "./document";
import type { Analysis, Block, Op, Page, PinInfo } from "./model";

export type PinForm = "float" | "int" | "shape" | "bool" | "text" | "any";

const FLOATS = new Set(["float16", "half", "bfloat16", "float32", "float64", "double", "complex64", "complex128"]);
const ALIASES: { readonly [name: string]: string } = { half: "float16", double: "float64", float: "float32" };

function canonical(type: string): string {
  return ALIASES[type] ?? type;
}

/** The form of a pin: the colour and the mark by which people know its element type. */
export function formOf(pin: Pick<PinShape, "types" | "host">, dtype: string | null | undefined): PinForm {
  if (pin.host) return "shape";
  const known = dtype ?? (pin.types.length === 1 ? pin.types[0] : undefined);
  if (known === undefined) return pin.types.length > 0 && pin.types.every((type) => FLOATS.has(type)) ? "float" : "any";
  if (FLOATS.has(known)) return "float";
  if (known === "bool") return "bool";
  if (known === "string") return "text";
  return "int";
}

/** Can a tensor of these types go into that pin? Unknown types can. */
export function typesMeet(given: readonly string[], wanted: readonly string[]): boolean {
  if (given.length === 0 || wanted.length === 0) return true;
  const accepted = new Set(wanted.map(canonical));
  return given.some((type) => accepted.has(canonical(type)));
}

/** The element types an output can have: the inferred one, or all that its op allows. */
export function givenTypes(pin: PinShape, info: PinInfo | undefined): readonly string[] {
  return info?.dtype ? [info.dtype] : pin.types;
}

export type Refusal = "ring" | "type";

export interface Ends {
  readonly from: string;
  readonly output: string;
  readonly to: string;
  readonly pin: string;
}

/** Why this wire cannot be, or null where it can. Shapes are not asked: the page tells what is wrong with them. */
export function refusal(page: Page, ops: Catalogue, analysis: Analysis | null, ends: Ends): Refusal | null {
  if (closesRing(page, ends.from, ends.to)) return "ring";
  const source = page.blocks.find((block) => block.name === ends.from);
  const target = page.blocks.find((block) => block.name === ends.to);
  if (!source || !target) return "type";
  const output = outputPins(page, source, ops).find((pin) => pin.name === ends.output);
  const input = inputPins(page, target, ops).find((pin) => pin.name === ends.pin);
  if (!input) return "type";
  if (!output) return null;
  const given = givenTypes(output, analysis?.pins[ends.from]?.[ends.output]);
  return typesMeet(given, input.types) ? null : "type";
}

/** The first pin of an op that takes (or gives) such types; undefined where none does. */
export function firstFit(op: Op, side: "inputs" | "outputs", types: readonly string[]): string | undefined {
  return op[side].find((pin) => typesMeet(types, pin.types))?.name;
}

export interface PinPlace {
  readonly block: string;
  readonly pin: string;
  readonly side: "input" | "output";
}

/** Every pin on the other side to which a wire from this pin can go, in reading order. */
export function compatiblePins(page: Page, ops: Catalogue, analysis: Analysis | null, start: PinPlace): PinPlace[] {
  const side = start.side === "output" ? "input" : "output";
  const pinsOf = (block: Block) => (side === "input" ? inputPins(page, block, ops) : outputPins(page, block, ops));
  return readingOrder(page)
    .flatMap((block) => pinsOf(block).map((pin): PinPlace => ({ block: block.name, pin: pin.name, side })))
    .filter((place) => {
      const [out, into] = start.side === "output" ? [start, place] : [place, start];
      return refusal(page, ops, analysis, { from: out.block, output: out.pin, to: into.block, pin: into.pin }) === null;
    });
}

/** Blocks from left to right, then from top to bottom. */
export function readingOrder(page: Page): Block[] {
  const at = (block: Block, axis: 0 | 1) => block.position?.[axis] ?? 0;
  return page.blocks.toSorted((a, b) => Math.round(at(a, 0) / 80) - Math.round(at(b, 0) / 80) || at(a, 1) - at(b, 1));
}
