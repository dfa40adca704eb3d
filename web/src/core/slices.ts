// SPDX-License-Identifier: Apache-2.0
/** How a tensor of any rank is laid out as small grids of numbers. */

import { axisNames, sizeOf, stridesOf } from "./tensor";

export interface Layout {
  readonly rowAxis: number;
  readonly columnAxis: number;
  /** Axes over which grids are repeated. */
  readonly sliceAxes: readonly number[];
  /** Axes of which one place at a time is shown: channels. */
  readonly heldAxes: readonly number[];
  readonly names: readonly string[];
}

const FILTER = "DHWIO";

/** The axes of a tensor as the block shows them. */
export function layoutOf(shape: readonly number[], layout: string): Layout {
  const rank = shape.length;
  const letters = layout === "filter" && rank === 5 ? FILTER : layout.length === rank ? layout : rank === 5 ? "NDHWC" : "";
  const names = letters ? [...letters] : axisNames(rank, "");
  if (rank < 2) return { rowAxis: -1, columnAxis: rank - 1, sliceAxes: [], heldAxes: [], names };
  const spatial = [names.indexOf("H"), names.indexOf("W")] as const;
  if (rank === 5 && spatial[0] >= 0 && shape[spatial[0]]! * shape[spatial[1]]! > 1) {
    const held = [..."CIO"].map((letter) => names.indexOf(letter)).filter((axis) => axis >= 0);
    const slices = [..."ND"].map((letter) => names.indexOf(letter)).filter((axis) => axis >= 0);
    return { rowAxis: spatial[0], columnAxis: spatial[1], sliceAxes: slices, heldAxes: held, names };
  }
  // Volumes of one voxel, and everything else: the last two axes that hold more than one element.
  const wide = shape.flatMap((size, axis) => (size > 1 ? [axis] : []));
  const columnAxis = wide.at(-1) ?? rank - 1;
  const rowAxis = wide.at(-2) ?? (columnAxis === 0 ? 1 : columnAxis - 1);
  const sliceAxes = shape.flatMap((size, axis) => (axis !== rowAxis && axis !== columnAxis && size > 1 ? [axis] : []));
  return { rowAxis, columnAxis, sliceAxes, heldAxes: [], names };
}

export interface Grid {
  readonly key: string;
  /** The index of its first element. */
  readonly index: readonly number[];
  readonly label: string;
  readonly rows: number;
  readonly columns: number;
}

export const MOST_CELLS = 160;
export const MOST_A_SIDE = 8;

/** The grids of a tensor; null where it is too large for numbers. */
export function gridsOf(shape: readonly number[], layout: Layout, held: readonly number[]): Grid[] | null {
  const rows = layout.rowAxis < 0 ? 1 : shape[layout.rowAxis]!;
  const columns = layout.columnAxis < 0 ? 1 : shape[layout.columnAxis]!;
  const sizes = layout.sliceAxes.map((axis) => shape[axis]!);
  const count = sizeOf(sizes);
  const wide = layout.rowAxis < 0 ? 16 : MOST_A_SIDE;
  if (rows > MOST_A_SIDE || columns > wide || count * rows * columns > MOST_CELLS || rows * columns === 0) return null;
  const strides = stridesOf(sizes);
  return Array.from({ length: count }, (_, number) => {
    const index = shape.map((_size, axis) => held[axis] ?? 0);
    if (layout.rowAxis >= 0) index[layout.rowAxis] = 0;
    if (layout.columnAxis >= 0) index[layout.columnAxis] = 0;
    const places = layout.sliceAxes.map((axis, i) => {
      index[axis] = Math.floor(number / strides[i]!) % Math.max(1, sizes[i]!);
      return `${layout.names[axis]!.toLowerCase()}=${index[axis]}`;
    });
    return { key: String(number), index, label: places.join(" "), rows, columns };
  });
}
