// SPDX-License-Identifier: Apache-2.0
/** Blocks in layers from left to right, each right of all that it reads, level with what it is wired to. */

import type { Box } from "./arrange";
import { groupBy } from "./group";
import type { Wire } from "./model";

/** How far below the top of its block a pin lies. */
export type PinHeight = (block: string, side: "input" | "output", pin: string) => number;

const BETWEEN_LAYERS = 116;
const BETWEEN_BLOCKS = 36;
const SWEEPS = 8;

/** The layer of each block: behind its last source; what reads nothing stands just before its first reader. */
function layerNumbers(names: readonly string[], wires: readonly Wire[]): Map<string, number> {
  const before = groupBy(wires, (wire) => wire.to);
  const found = new Map<string, number>();
  const open = new Set<string>();
  for (const start of names) {
    const stack = [start];
    for (let name = stack.at(-1); name !== undefined; name = stack.at(-1)) {
      const sources = (before.get(name) ?? []).map((wire) => wire.from);
      // A ring is cut where it is come to again.
      const waiting = open.has(name) ? undefined : sources.find((one) => !found.has(one) && !open.has(one));
      if (found.has(name) || waiting === undefined) {
        stack.pop();
        open.delete(name);
        if (!found.has(name)) found.set(name, Math.max(0, ...sources.map((one) => (found.get(one) ?? -1) + 1)));
      } else {
        stack.push(...new Set(sources.filter((one) => !found.has(one) && !open.has(one) && one !== name)));
        open.add(name);
      }
    }
  }
  const after = groupBy(wires, (wire) => wire.from);
  for (const name of names) {
    const readers = (after.get(name) ?? []).map((wire) => found.get(wire.to)!);
    if (!before.has(name) && readers.length > 0) found.set(name, Math.max(0, Math.min(...readers) - 1));
  }
  return found;
}

/** Heights as near to the wanted ones as the order and the gaps allow: blocks that push each other move as one. */
function spread(boxes: readonly Box[], wanted: readonly number[]): number[] {
  const runs: { start: number; sum: number; count: number }[] = [];
  const offset: number[] = [];
  let down = 0;
  boxes.forEach((box, index) => {
    offset.push(down);
    let run = { start: index, sum: wanted[index]! - down, count: 1 };
    for (let last = runs.at(-1); last && last.sum / last.count > run.sum / run.count; last = runs.at(-1)) {
      run = { start: last.start, sum: last.sum + run.sum, count: last.count + run.count };
      runs.pop();
    }
    runs.push(run);
    down += box.height + BETWEEN_BLOCKS;
  });
  return runs.flatMap((run) => Array.from({ length: run.count }, (_, at) => run.sum / run.count + offset[run.start + at]!));
}

/** How tall a layer may be: about as tall as a page of this many blocks should be. */
function tallest(boxes: readonly Box[]): number {
  const area = boxes.reduce((sum, box) => sum + (box.width + BETWEEN_LAYERS) * (box.height + BETWEEN_BLOCKS), 0);
  return Math.max(900, Math.sqrt(area / 1.7));
}

/** A layer that is too tall in several columns; no block of a layer reads another of it. */
function parts(layer: readonly Box[], limit: number): Box[][] {
  const height = layer.reduce((sum, box) => sum + box.height + BETWEEN_BLOCKS, 0);
  const most = height / Math.ceil(height / limit);
  const columns: Box[][] = [[]];
  let used = 0;
  for (const box of layer) {
    if (used > most) {
      columns.push([]);
      used = 0;
    }
    columns.at(-1)!.push(box);
    used += box.height + BETWEEN_BLOCKS;
  }
  return columns;
}

/** The boxes of a page without gradients, in layers; the order of those above each other follows their wires. */
export function layered(boxes: readonly Box[], all: readonly Wire[], pinHeight: PinHeight): Box[] {
  const names = new Set(boxes.map((box) => box.name));
  const wires = all.filter((wire) => names.has(wire.from) && names.has(wire.to) && wire.from !== wire.to);
  const numbers = layerNumbers([...names], wires);
  const groups = groupBy(boxes, (box) => numbers.get(box.name)!);
  const layers = [...groups.keys()].toSorted((a, b) => a - b).map((key) => groups.get(key)!);
  const y = new Map<string, number>();
  for (const layer of layers) spread(layer, layer.map(() => 0)).forEach((at, index) => y.set(layer[index]!.name, at));
  const into = groupBy(wires, (wire) => wire.to);
  const outOf = groupBy(wires, (wire) => wire.from);
  /** Where the wires on one side want a box to be, or where it is. */
  const wish = (box: Box, toSources: boolean): number => {
    const mine = (toSources ? into : outOf).get(box.name) ?? [];
    const wishes = mine.map((wire) => {
      const level = pinHeight(wire.from, "output", wire.output) - pinHeight(wire.to, "input", wire.pin);
      return toSources ? y.get(wire.from)! + level : y.get(wire.to)! - level;
    });
    return wishes.length === 0 ? y.get(box.name)! : wishes.reduce((sum, one) => sum + one, 0) / wishes.length;
  };
  const sweep = (columns: Box[][], toSources: boolean) => {
    for (const layer of toSources ? columns : columns.toReversed()) {
      const wanted = new Map(layer.map((box) => [box.name, wish(box, toSources)]));
      layer.sort((a, b) => wanted.get(a.name)! - wanted.get(b.name)!);
      spread(layer, layer.map((box) => wanted.get(box.name)!)).forEach((at, index) => y.set(layer[index]!.name, at));
    }
  };
  for (let turn = 0; turn < SWEEPS; turn += 1) sweep(layers, turn % 2 === 0);
  const columns = layers.flatMap((layer) => parts(layer, tallest(boxes)));
  if (columns.length > layers.length) for (let turn = 0; turn < SWEEPS; turn += 1) sweep(columns, turn % 2 === 0);
  let x = 0;
  return columns.flatMap((layer) => {
    const left = x;
    x += Math.max(...layer.map((box) => box.width)) + BETWEEN_LAYERS;
    return layer.map((box) => ({ ...box, x: left, y: y.get(box.name)! }));
  });
}
