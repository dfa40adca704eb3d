// SPDX-License-Identifier: Apache-2.0
/** The way of a wire around blocks: level and upright lines that run through no block. */

import type { Box } from "./arrange";
import type { Point } from "./commands";

/** Where a wire starts and ends, and to which side it leaves and enters: 1 goes right. */
export interface Ends {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
  readonly out: 1 | -1;
  readonly into: 1 | -1;
}

export interface Route {
  readonly points: readonly Point[];
  /** The part of it that lies between the blocks. */
  readonly way: readonly Point[];
  /** The blocks that shaped it: it need not be looked for again while they stay. */
  readonly around: readonly Box[];
}

/** How near to the sides of a block, where pins are, and to its top and bottom a wire may run. */
const SIDE = 11;
const LEVEL = 6;
export const STUB = 15;
const LANE = 9;
const BEND = 24;
const SHARED = 60;
const CELL = 400;

interface Rect {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly box: Box;
}

const NONE: readonly { from: number; to: number; source: string }[] = [];

/** The blocks of a page by place, and the lines that wires have taken. */
export class Plane {
  readonly #cells = new Map<number, Rect[]>();
  readonly #rects = new Map<string, Rect>();
  readonly #lines = new Map<number, { from: number; to: number; source: string }[]>();

  constructor(boxes: readonly Box[]) {
    for (const box of boxes) {
      const rect = { left: box.x - SIDE, right: box.x + box.width + SIDE, top: box.y - LEVEL, bottom: box.y + box.height + LEVEL, box };
      this.#rects.set(box.name, rect);
      eachCell(rect.left, rect.top, rect.right, rect.bottom, (key) => {
        const list = this.#cells.get(key);
        if (list) list.push(rect);
        else this.#cells.set(key, [rect]);
      });
    }
  }

  /** The blocks that a line runs through. */
  hits(a: Point, b: Point): Rect[] {
    const [left, right, top, bottom] = [Math.min(a[0], b[0]), Math.max(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[1], b[1])];
    const found: Rect[] = [];
    eachCell(left, top, right, bottom, (key) => {
      const rects = this.#cells.get(key);
      if (rects) for (const rect of rects) if (left < rect.right && right > rect.left && top < rect.bottom && bottom > rect.top && !found.includes(rect)) found.push(rect);
    });
    return found;
  }

  inWay(points: readonly Point[]): Rect[] {
    return points.slice(1).flatMap((point, index) => this.hits(points[index]!, point));
  }

  /** True where a way is still what it was made for: nothing lies on it, and what it goes around is there. */
  keeps(route: Route): boolean {
    return this.inWay(route.way).length === 0 && route.around.every((box) => sameBox(box, this.#rects.get(box.name)?.box));
  }

  /** How much of a line lies on lines of wires from other outputs. */
  shared(a: Point, b: Point, source: string): number {
    const [key, from, to] = lineOf(a, b);
    let count = 0;
    for (const line of this.#lines.get(key) ?? NONE) if (line.from < to && line.to > from && line.source !== source) count += 1;
    return count;
  }

  take(points: readonly Point[], source: string): void {
    points.slice(1).forEach((point, index) => {
      const [key, from, to] = lineOf(points[index]!, point);
      const line = { from, to, source };
      const list = this.#lines.get(key);
      if (list) list.push(line);
      else this.#lines.set(key, [line]);
    });
  }

  rectOf(name: string): Rect | undefined {
    return this.#rects.get(name);
  }
}

function sameBox(a: Box, b: Box | undefined): boolean {
  return b !== undefined && a.x === b.x && a.y === b.y && a.width === b.width && a.height === b.height;
}

/** Numbers for pairs of numbers; pages are smaller than this. */
const WIDE = 1 << 20;

function eachCell(left: number, top: number, right: number, bottom: number, visit: (key: number) => void): void {
  const [lastX, lastY] = [Math.floor(right / CELL), Math.floor(bottom / CELL)];
  for (let x = Math.floor(left / CELL); x <= lastX; x += 1) for (let y = Math.floor(top / CELL); y <= lastY; y += 1) visit(x * WIDE + y);
}

function lineOf(a: Point, b: Point): [number, number, number] {
  if (a[0] === b[0]) return [2 * Math.round(a[0] / 4), Math.min(a[1], b[1]), Math.max(a[1], b[1])];
  return [2 * Math.round(a[1] / 4) + 1, Math.min(a[0], b[0]), Math.max(a[0], b[0])];
}

/** The way with fewest turns through these two: straight, or with one upright line between them. */
function plainWays(start: Point, end: Point, { out, into }: Ends, lane: number): Point[][] {
  if (out !== into || out * (end[0] - start[0]) < 0) return [];
  if (Math.abs(start[1] - end[1]) < 0.5) return [[start, [end[0], start[1]]]];
  const shift = out * lane * LANE;
  const turns = [end[0] - shift, start[0] + shift, end[0], start[0]].filter((x) => out * (x - start[0]) >= 0 && out * (end[0] - x) >= 0);
  return turns.map((x) => [start, [x, start[1]], [x, end[1]], end]);
}

/** The way of a wire. Lanes keep wires apart that turn at the same block. */
export function routeOf(ends: Ends, plane: Plane, wire: { from: string; to: string; source: string }, lane: number): Route {
  const pins: readonly [Point, Point] = [[ends.x0, ends.y0], [ends.x1, ends.y1]];
  const start: Point = [ends.x0 + ends.out * STUB, ends.y0];
  const end: Point = [ends.x1 - ends.into * STUB, ends.y1];
  const own = [plane.rectOf(wire.from), plane.rectOf(wire.to)].flatMap((rect) => rect ?? []);
  const made = (way: readonly Point[], around: Iterable<Rect>): Route => ({
    points: straightened([pins[0], ...way, pins[1]]), way, around: [...around].map((rect) => rect.box),
  });
  for (const way of plainWays(start, end, ends, lane)) {
    const isShared = way.slice(1).some((point, index) => plane.shared(way[index]!, point, wire.source) > 0);
    if (!isShared && plane.inWay(way).length === 0) return made(way, own);
  }
  const around = new Set(own);
  let way: readonly Point[] = [start, end];
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    way = shortest(start, end, ends, [...around], { plane, source: wire.source, lane }) ?? way;
    const met = plane.inWay(way).filter((rect) => !around.has(rect));
    if (met.length === 0) break;
    met.forEach((rect) => around.add(rect));
  }
  return made(way, around);
}

const MOST_TURNS = 60;

/** Points in a row on one line are one line. */
function straightened(all: readonly Point[]): Point[] {
  const points = all.filter(([x, y], index) => all[index - 1]?.[0] !== x || all[index - 1]?.[1] !== y);
  return points.filter((point, index) => {
    const [before, after] = [points[index - 1], points[index + 1]];
    if (!before || !after) return true;
    return !((before[0] === point[0] && point[0] === after[0]) || (before[1] === point[1] && point[1] === after[1]));
  });
}

interface Search {
  readonly plane: Plane;
  readonly source: string;
  readonly lane: number;
}

/** The cheapest way from one point to another that runs through none of the given blocks: Dijkstra on the lines beside them. */
function shortest(start: Point, end: Point, ends: Ends, rects: readonly Rect[], search: Search): Point[] | null {
  const far = search.lane * LANE;
  const xs = sorted([start[0], end[0], (start[0] + end[0]) / 2, ...rects.flatMap(({ left, right }) => [left - far, left, right, right + far])]);
  const ys = sorted([start[1], end[1], ...rects.flatMap(({ top, bottom }) => [top - far, top, bottom, bottom + far])]);
  const through = (a: Point, b: Point) => {
    const [l, r, t, u] = [Math.min(a[0], b[0]), Math.max(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[1], b[1])];
    for (const rect of rects) if (l < rect.right && r > rect.left && t < rect.bottom && u > rect.top) return true;
    return false;
  };
  // A state is a crossing of lines and whether it was come to level or upright.
  const wide = xs.length;
  const cost = new Float64Array(2 * wide * ys.length).fill(Infinity);
  const before = new Int32Array(cost.length).fill(-1);
  const queue = new Heap();
  const state = (column: number, row: number, upright: number) => 2 * (row * wide + column) + upright;
  const first = state(xs.indexOf(start[0]), ys.indexOf(start[1]), 0);
  const last = state(xs.indexOf(end[0]), ys.indexOf(end[1]), 0);
  cost[first] = 0;
  queue.push(first, 0);
  for (let at = queue.pop(); at >= 0; at = queue.pop()) {
    if (at === last) return wayTo(last, before, xs, ys);
    const upright = at & 1;
    const column = (at >> 1) % wide;
    const row = Math.floor((at >> 1) / wide);
    const here: Point = [xs[column]!, ys[row]!];
    for (const [dx, dy] of STEPS) {
      const there: Point | undefined = xs[column + dx] === undefined || ys[row + dy] === undefined ? undefined : [xs[column + dx]!, ys[row + dy]!];
      if (!there || (at === first && dx === -ends.out) || through(here, there)) continue;
      const turns = Number(upright !== Number(dy !== 0));
      const next = state(column + dx, row + dy, Number(dy !== 0));
      const length = Math.abs(there[0] - here[0]) + Math.abs(there[1] - here[1]);
      const sum = cost[at]! + length + BEND * turns + SHARED * search.plane.shared(here, there, search.source);
      // The end is entered along its pin, from outside.
      const finish = next >> 1 === last >> 1;
      const extra = finish && dy !== 0 ? BEND : finish && dx === -ends.into ? 8 * BEND : 0;
      const goal = finish ? last : next;
      if (sum + extra >= cost[goal]!) continue;
      cost[goal] = sum + extra;
      before[goal] = at;
      queue.push(goal, sum + extra);
    }
  }
  return null;
}

const STEPS = [[1, 0], [-1, 0], [0, 1], [0, -1]] as const;

function sorted(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

function wayTo(last: number, before: Int32Array, xs: readonly number[], ys: readonly number[]): Point[] {
  const way: Point[] = [];
  for (let at = last; at >= 0; at = before[at]!) way.push([xs[(at >> 1) % xs.length]!, ys[Math.floor((at >> 1) / xs.length)]!]);
  return way.reverse();
}

/** States by their cost, the least first. */
class Heap {
  readonly #states: number[] = [];
  readonly #costs: number[] = [];

  push(state: number, cost: number): void {
    let at = this.#states.length;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (this.#costs[up]! <= cost) break;
      this.#set(at, this.#states[up]!, this.#costs[up]!);
      at = up;
    }
    this.#set(at, state, cost);
  }

  /** The state of least cost, or -1. */
  pop(): number {
    const first = this.#states[0];
    if (first === undefined) return -1;
    const state = this.#states.pop()!;
    const cost = this.#costs.pop()!;
    const size = this.#states.length;
    if (size === 0) return first;
    let at = 0;
    for (let down = 1; down < size; down = 2 * at + 1) {
      if (down + 1 < size && this.#costs[down + 1]! < this.#costs[down]!) down += 1;
      if (this.#costs[down]! >= cost) break;
      this.#set(at, this.#states[down]!, this.#costs[down]!);
      at = down;
    }
    this.#set(at, state, cost);
    return first;
  }

  #set(at: number, state: number, cost: number): void {
    this.#states[at] = state;
    this.#costs[at] = cost;
  }
}
