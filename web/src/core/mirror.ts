// SPDX-License-Identifier: Apache-2.0
/** The arrangement of a whole page: chains that go on below, and gradients in lanes under the blocks that they belong to. */

import { groupBy } from "./group";
import type { Box } from "./arrange";
import type { Point } from "./commands";
import { wiresOf } from "./document";
import type { Page, Wire } from "./model";
import { forwardOf, gradientOrder, laneOf } from "./scopes";

/** Gradient blocks of one forward block in one lane, placed among each other. */
export interface Cluster {
  readonly root: string;
  readonly lane: number;
  readonly places: ReadonlyMap<string, Point>;
  readonly width: number;
  readonly height: number;
}

const BETWEEN_COLUMNS = 100;
const IN_ROW = 3;
const BETWEEN_BLOCKS = 36;
const BETWEEN_LANES = 72;
const BETWEEN_LAYERS = 116;
/** How much wider than high a page should be. */
const ASPECT = 1.7;

/** The gradient blocks among some boxes, by the forward block and the lane that they belong to. */
export function clustersOf(page: Page, boxes: readonly Box[]): Cluster[] {
  const roots = forwardOf(page);
  const wires = wiresOf(page);
  const mine = boxes.filter((box) => roots.has(box.name));
  const groups = groupBy(mine, (box) => `${laneOf(box.name)} ${roots.get(box.name)}`);
  return [...groups.values()].map((group) => cluster(roots.get(group[0]!.name)!, group, wires));
}

/** Columns by depth, a few in a row; gradients of odd order run from right to left. */
function cluster(root: string, boxes: readonly Box[], wires: readonly Wire[]): Cluster {
  const columns = columnsOf(boxes, wires);
  const first = boxes[0]!.name;
  const rows = Array.from({ length: Math.ceil(columns.length / IN_ROW) }, (_, row) => columns.slice(row * IN_ROW, (row + 1) * IN_ROW));
  const places = new Map<string, Point>();
  let [width, top] = [0, 0];
  for (const row of rows) {
    let [x, bottom] = [0, top];
    for (const column of gradientOrder(first) % 2 === 1 ? row.toReversed() : row) {
      let y = top;
      for (const box of column) {
        places.set(box.name, [x, y]);
        y += box.height + BETWEEN_BLOCKS;
      }
      x += Math.max(...column.map((box) => box.width)) + BETWEEN_COLUMNS;
      bottom = Math.max(bottom, y);
    }
    width = Math.max(width, x - BETWEEN_COLUMNS);
    top = bottom;
  }
  return { root, lane: laneOf(first), places, width, height: top - BETWEEN_BLOCKS };
}

function columnsOf(boxes: readonly Box[], wires: readonly Wire[]): Box[][] {
  const names = new Set(boxes.map((box) => box.name));
  const depth = new Map(boxes.map((box) => [box.name, 0]));
  const inner = wires.filter((wire) => names.has(wire.from) && names.has(wire.to));
  // As many rounds as there are blocks: then all depths are right, and a ring has come to its end.
  for (let round = 0, changed = true; changed && round < boxes.length; round += 1) {
    changed = false;
    for (const wire of inner) {
      const wanted = depth.get(wire.from)! + 1;
      if (wanted <= depth.get(wire.to)! || wanted >= boxes.length) continue;
      depth.set(wire.to, wanted);
      changed = true;
    }
  }
  const columns = groupBy(boxes, (box) => depth.get(box.name)!);
  return [...columns.keys()].toSorted((a, b) => a - b).map((key) => columns.get(key)!);
}

/** Boxes that lie above each other. */
interface Layer {
  readonly boxes: readonly Box[];
  readonly width: number;
}

function layersOf(boxes: readonly Box[]): Layer[] {
  const layers: { boxes: Box[]; left: number; right: number }[] = [];
  for (const box of boxes.toSorted((a, b) => a.x - b.x)) {
    const last = layers.at(-1);
    if (last && box.x < last.right) {
      last.boxes.push(box);
      last.right = Math.max(last.right, box.x + box.width);
    } else layers.push({ boxes: [box], left: box.x, right: box.x + box.width });
  }
  return layers.map(({ boxes: inside, left, right }) => ({ boxes: inside, width: right - left }));
}

/** Where a row of layers may end: near the wanted width, where the fewest wires are cut. */
function rowsOf(layers: readonly Layer[], height: number, wires: readonly Wire[]): Layer[][] {
  const total = layers.reduce((sum, layer) => sum + layer.width + BETWEEN_LAYERS, 0);
  const count = Math.max(1, Math.round(Math.sqrt(total / (ASPECT * height))));
  const at = new Map(layers.flatMap((layer, index) => layer.boxes.map((box) => [box.name, index] as const)));
  const cuts = layers.map((_, index) => wires.filter((wire) => (at.get(wire.from) ?? 0) < index && (at.get(wire.to) ?? 0) >= index).length);
  const rows: Layer[][] = [];
  let [start, left] = [0, total];
  for (let row = count; row > 1 && start < layers.length; row -= 1) {
    const wanted = left / row;
    let [end, width, best] = [start, 0, Infinity];
    for (let index = start; index < layers.length; index += 1) {
      width += layers[index]!.width + BETWEEN_LAYERS;
      const off = Math.abs(width - wanted) / wanted;
      const cost = 8 * off + (cuts[index + 1] ?? 0);
      if (off <= 0.45 && cost < best) [end, best] = [index + 1, cost];
    }
    if (end === start) end = start + 1;
    rows.push(layers.slice(start, end));
    left -= layers.slice(start, end).reduce((sum, layer) => sum + layer.width + BETWEEN_LAYERS, 0);
    start = end;
  }
  if (start < layers.length) rows.push(layers.slice(start));
  return rows;
}

function lanesIn(layer: Layer, clusters: ReadonlyMap<string, readonly Cluster[]>): Map<number, Cluster[]> {
  const inOrder = layer.boxes.toSorted((a, b) => a.y - b.y).flatMap((box) => clusters.get(box.name) ?? []);
  return groupBy(inOrder, (one) => one.lane);
}

function heightOf(clusters: readonly Cluster[]): number {
  return clusters.reduce((sum, one) => sum + one.height + BETWEEN_BLOCKS, -BETWEEN_BLOCKS);
}

/** Where everything goes, from forward blocks that lie in layers: rows, each with its lanes of gradients below. */
export function wrapped(forward: readonly Box[], clusters: readonly Cluster[], wires: readonly Wire[]): Map<string, Point> {
  const of = groupBy(clusters, (one) => one.root);
  const layers = layersOf(forward);
  const places = new Map<string, Point>();
  const lanes = [...new Set(clusters.map((one) => one.lane))].sort((a, b) => a - b);
  const laneHeight = (row: readonly Layer[], lane: number) => Math.max(0, ...row.map((layer) => heightOf(lanesIn(layer, of).get(lane) ?? [])));
  const span = (row: readonly Layer[]) => {
    const boxes = row.flatMap((layer) => layer.boxes);
    const top = Math.min(...boxes.map((box) => box.y));
    return { top, height: Math.max(...boxes.map((box) => box.y + box.height)) - top };
  };
  if (layers.length === 0) return places;
  const whole = span(layers).height + lanes.reduce((sum, lane) => sum + laneHeight(layers, lane) + BETWEEN_LANES, 0);
  let y = 0;
  for (const row of rowsOf(layers, whole, wires)) {
    const { top, height } = span(row);
    const starts = new Map<number, number>();
    let below = y + height + BETWEEN_LANES;
    for (const lane of lanes) {
      const tall = laneHeight(row, lane);
      starts.set(lane, below);
      if (tall > 0) below += tall + BETWEEN_LANES;
    }
    let x = 0;
    for (const layer of row) {
      for (const box of layer.boxes) places.set(box.name, [x, y + box.y - top]);
      for (const [lane, list] of lanesIn(layer, of)) {
        let at = starts.get(lane)!;
        for (const one of list) {
          for (const [name, [dx, dy]] of one.places) places.set(name, [x + dx, at + dy]);
          at += one.height + BETWEEN_BLOCKS;
        }
      }
      x += layer.width + BETWEEN_LAYERS;
    }
    y = below + BETWEEN_LANES;
  }
  return places;
}
