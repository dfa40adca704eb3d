// SPDX-License-Identifier: Apache-2.0
/** Borders of a label map: lines between cells, a colour for every label. Label 0 is what nothing was found in. */

import type { Rgb } from "./colour";

/** Told apart by people who see few colours, too, and bright on a scan. */
const COLOURS: readonly Rgb[] = [
  [255, 99, 71], [64, 196, 255], [255, 214, 10], [105, 240, 174], [234, 128, 252], [255, 171, 64], [140, 158, 255], [255, 128, 171],
  [178, 255, 89], [24, 255, 255], [215, 204, 200], [255, 82, 82],
];

export function labelColour(label: number): Rgb {
  const at = (Math.trunc(label) - 1) % COLOURS.length;
  return COLOURS[at < 0 ? at + COLOURS.length : at]!;
}

/** A side of a cell, from a corner to the next: column and row of both. */
export type Side = readonly [number, number, number, number];

/** The sides between a cell of a label and one of another, or the edge of the plane, by label. */
export function bordersOf(values: ArrayLike<number>, rows: number, columns: number): Map<number, Side[]> {
  const found = new Map<number, Side[]>();
  const at = (row: number, column: number) => (row < 0 || column < 0 || row >= rows || column >= columns ? 0 : values[row * columns + column]!);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const label = values[row * columns + column]!;
      if (!label) continue;
      let sides = found.get(label);
      if (!sides) found.set(label, (sides = []));
      if (at(row - 1, column) !== label) sides.push([column, row, column + 1, row]);
      if (at(row + 1, column) !== label) sides.push([column, row + 1, column + 1, row + 1]);
      if (at(row, column - 1) !== label) sides.push([column, row, column, row + 1]);
      if (at(row, column + 1) !== label) sides.push([column + 1, row, column + 1, row + 1]);
    }
  }
  return found;
}
