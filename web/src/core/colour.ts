// SPDX-License-Identifier: Apache-2.0
/** Colour scales: viridis for values, blue to red around zero for gradients and differences, greys as of a scan. */

import type { Range } from "./tensor";

export type Rgb = readonly [number, number, number];
export type Scale = "values" | "signed" | "grey";

const VIRIDIS: readonly Rgb[] = [
  [68, 1, 84], [72, 26, 108], [71, 47, 125], [65, 68, 135], [57, 86, 140], [49, 104, 142], [42, 120, 142],
  [35, 136, 142], [31, 152, 139], [34, 168, 132], [53, 183, 121], [84, 197, 104], [122, 209, 81], [165, 219, 54],
  [210, 226, 27], [253, 231, 37],
];
const SIGNED: readonly Rgb[] = [
  [33, 102, 172], [67, 147, 195], [146, 197, 222], [209, 229, 240], [247, 247, 247], [253, 219, 199], [244, 165, 130],
  [214, 96, 77], [178, 24, 43],
];

/** NaN, +inf and -inf stand out from every scale. */
export const NAN_COLOUR: Rgb = [255, 0, 200];
export const POSITIVE_INFINITY_COLOUR: Rgb = [255, 140, 0];
export const NEGATIVE_INFINITY_COLOUR: Rgb = [0, 200, 255];

function between(stops: readonly Rgb[], place: number): Rgb {
  const at = Math.min(Math.max(place, 0), 1) * (stops.length - 1);
  const low = stops[Math.floor(at)]!;
  const high = stops[Math.min(Math.floor(at) + 1, stops.length - 1)]!;
  const part = at - Math.floor(at);
  return [0, 1, 2].map((i) => Math.round(low[i]! + (high[i]! - low[i]!) * part)) as unknown as Rgb;
}

const GREY: readonly Rgb[] = [[0, 0, 0], [255, 255, 255]];

const TABLES: { readonly [scale in Scale]: readonly Rgb[] } = {
  values: Array.from({ length: 257 }, (_, i) => between(VIRIDIS, i / 256)),
  signed: Array.from({ length: 257 }, (_, i) => between(SIGNED, i / 256)),
  grey: Array.from({ length: 257 }, (_, i) => between(GREY, i / 256)),
};

/** The colour of a value in a range. */
export function colourOf(value: number, range: Range, scale: Scale = "values"): Rgb {
  if (Number.isNaN(value)) return NAN_COLOUR;
  if (value === Infinity) return POSITIVE_INFINITY_COLOUR;
  if (value === -Infinity) return NEGATIVE_INFINITY_COLOUR;
  return TABLES[scale][Math.round(placeOf(value, range, scale) * 256)]!;
}

/** Where in the scale a value lies, 0 to 1. */
export function placeOf(value: number, range: Range, scale: Scale): number {
  if (scale === "signed") {
    const reach = Math.max(Math.abs(range.min), Math.abs(range.max));
    return reach === 0 ? 0.5 : Math.min(1, Math.max(0, 0.5 + value / (2 * reach)));
  }
  if (range.max === range.min) return 0.5;
  return Math.min(1, Math.max(0, (value - range.min) / (range.max - range.min)));
}

/** Black or white, whichever can be read on a colour. */
export function inkOn([red, green, blue]: Rgb): "#000" | "#fff" {
  const channel = (value: number) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  return light > 0.179 ? "#000" : "#fff";
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red} ${green} ${blue})`;
}

/** Paint values into an image of one pixel per value. */
export function paint(image: ImageData, values: ArrayLike<number>, range: Range, scale: Scale): void {
  const { data } = image;
  const table = TABLES[scale];
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i]!;
    const colour = Number.isFinite(value) ? table[Math.round(placeOf(value, range, scale) * 256)]! : colourOf(value, range, scale);
    const at = i * 4;
    data[at] = colour[0];
    data[at + 1] = colour[1];
    data[at + 2] = colour[2];
    data[at + 3] = 255;
  }
}
