// SPDX-License-Identifier: Apache-2.0
/** A volume cut into chunks, drawn slab by slab: where each cell lies, and which chunk is under the pointer. */

export interface Grid {
  /** Cells along depth, height, width. */
  readonly shown: readonly [number, number, number];
  readonly cell: number;
  readonly columns: number;
  readonly width: number;
  readonly height: number;
}

const LARGEST = 22;
const SMALLEST = 4;
const BETWEEN = 14;
const LABEL = 16;

/** The largest cells with which all slabs fit, side by side and in rows; the smallest where none do. */
export function layOut(shown: readonly number[], width: number, height: number): Grid {
  const [depth, rows, across] = [shown[0] ?? 1, shown[1] ?? 1, shown[2] ?? 1];
  for (let cell = LARGEST; ; cell -= 1) {
    const columns = Math.max(1, Math.min(depth, Math.floor((width + BETWEEN) / (across * cell + BETWEEN))));
    const lines = Math.ceil(depth / columns);
    const grid: Grid = {
      shown: [depth, rows, across],
      cell,
      columns,
      width: columns * (across * cell + BETWEEN) - BETWEEN,
      height: lines * (rows * cell + LABEL + BETWEEN) - BETWEEN,
    };
    if ((grid.height <= height && grid.width <= width) || cell <= SMALLEST) return grid;
  }
}

/** The left upper corner of a slab, below its label. */
export function corner(grid: Grid, slab: number): readonly [number, number] {
  const [, rows, across] = grid.shown;
  const [line, column] = [Math.floor(slab / grid.columns), slab % grid.columns];
  return [column * (across * grid.cell + BETWEEN), line * (rows * grid.cell + LABEL + BETWEEN) + LABEL];
}

/** The cell at a place of the drawing, or null beside all of them. */
export function cellAt(grid: Grid, x: number, y: number): number | null {
  const [depth, rows, across] = grid.shown;
  for (let slab = 0; slab < depth; slab += 1) {
    const [left, top] = corner(grid, slab);
    const [column, row] = [Math.floor((x - left) / grid.cell), Math.floor((y - top) / grid.cell)];
    if (column >= 0 && column < across && row >= 0 && row < rows) return (slab * rows + row) * across + column;
  }
  return null;
}

/** The voxels of the result that a cell stands for, first and end along depth, height and width. */
export function voxels(grid: readonly number[], shown: readonly number[], chunks: readonly number[], cell: number): readonly (readonly [number, number])[] {
  const across = shown[2] ?? 1;
  const rows = shown[1] ?? 1;
  const at = [Math.floor(cell / (rows * across)), Math.floor(cell / across) % rows, cell % across];
  return at.map((index, axis) => {
    const merged = Math.ceil((grid[axis] ?? 1) / (shown[axis] ?? 1));
    const size = merged * (chunks[axis] ?? 1);
    return [index * size, Math.min((index + 1) * size, (grid[axis] ?? 1) * (chunks[axis] ?? 1))] as const;
  });
}

export type CellState = "done" | "running" | "failed" | "part" | "todo";

export function cellState(letter: string | undefined): CellState {
  if (letter === "d") return "done";
  if (letter === "r") return "running";
  if (letter === "f") return "failed";
  return letter === "0" || letter === undefined ? "todo" : "part";
}
