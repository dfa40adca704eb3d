// SPDX-License-Identifier: Apache-2.0
/** Tensors in space: which planes to show of a volume, how they are turned on the screen, and where an element lies. */

import type { AxisPlace, Place } from "../generated/api";

export type View = "axial" | "coronal" | "sagittal" | "stored";

/** A plane through a volume as it is drawn: which axes go down and to the right, and which of them run backwards. */
export interface Orthogonal {
  readonly key: string;
  readonly view: View;
  readonly axes: readonly [number, number];
  /** The axis that the plane is moved along; -1 for the only plane of a matrix. */
  readonly normal: number;
  readonly flip: readonly [boolean, boolean];
  /** At the top, right, bottom and left; empty where nobody knows. */
  readonly letters: readonly [string, string, string, string];
  /** The height and width of a voxel as it is drawn, in any unit. */
  readonly voxel: readonly [number, number];
}

/** Depth, height and width of a tensor, where it has names for them; else its last three axes. */
export function spatialAxes(shape: readonly number[], names: readonly string[], place: Place | null): number[] {
  const placed = place?.axes.flatMap((one, axis) => (one ? [axis] : [])) ?? [];
  if (placed.length === 3) return placed;
  const named = ["D", "H", "W"].map((letter) => names.indexOf(letter));
  if (named.every((axis) => axis >= 0)) return named;
  const wide = shape.flatMap((size, axis) => (size > 1 ? [axis] : []));
  const chosen = wide.length >= 3 ? wide.slice(-3) : shape.map((_, axis) => axis).slice(-3);
  return shape.length < 3 ? shape.map((_, axis) => axis) : chosen;
}

const SIDES = [0, 1, 2] as const;

/** Which of x, y and z an axis mostly follows, and whether it runs with it. */
function mainWay({ step }: AxisPlace): { readonly way: number; readonly ahead: boolean } | null {
  if (step.length !== 3) return null;
  const way = SIDES.toSorted((a, b) => Math.abs(step[b]!) - Math.abs(step[a]!))[0]!;
  return { way, ahead: step[way]! > 0 };
}

/** The three planes: of a scan as it is looked at, the front or the head up and the right side left; else as stored. */
export function planesOf(shape: readonly number[], names: readonly string[], place: Place | null): Orthogonal[] {
  const axes = spatialAxes(shape, names, place);
  const one = (view: View, down: number, right: number, flip: readonly [boolean, boolean]) => drawn(names, place, axes, { view, axes: [down, right], flip });
  if (axes.length < 2) return [];
  if (axes.length === 2) return [one("stored", axes[0]!, axes[1]!, [false, false])];
  const ways = axes.map((axis) => (place?.axes[axis] ? mainWay(place.axes[axis]) : null));
  const along = SIDES.map((way) => ways.findIndex((found) => found?.way === way));
  if (along.some((at) => at < 0)) {
    const [d, h, w] = axes as [number, number, number];
    return [one("stored", h, w, [false, false]), one("stored", d, w, [false, false]), one("stored", d, h, [false, false])];
  }
  const [x, y, z] = along.map((at) => ({ axis: axes[at]!, ahead: ways[at]!.ahead })) as [Along, Along, Along];
  return [
    one("axial", y.axis, x.axis, [y.ahead, x.ahead]),
    one("coronal", z.axis, x.axis, [z.ahead, x.ahead]),
    one("sagittal", z.axis, y.axis, [z.ahead, y.ahead]),
  ];
}

interface Along {
  readonly axis: number;
  readonly ahead: boolean;
}

function drawn(names: readonly string[], place: Place | null, spatial: readonly number[], made: Pick<Orthogonal, "view" | "axes" | "flip">): Orthogonal {
  const [down, right] = made.axes;
  const normal = spatial.find((axis) => axis !== down && axis !== right) ?? -1;
  const ends = (axis: number, flip: boolean) => {
    const at = place?.axes[axis];
    return at ? (flip ? [at.high, at.low] : [at.low, at.high]) : ["", ""];
  };
  const [top, bottom] = ends(down, made.flip[0]) as [string, string];
  const [left, rightmost] = ends(right, made.flip[1]) as [string, string];
  const size = (axis: number) => place?.axes[axis]?.spacing || 1;
  const known = made.axes.every((axis) => place?.axes[axis]);
  return {
    ...made, normal, key: `${names[down] ?? down}${names[right] ?? right}`, letters: [top, rightmost, bottom, left],
    voxel: known ? [size(down), size(right)] : [1, 1],
  };
}

/** Where an element lies, as x, y and z from the left, the back and below; null where not all of it is known. */
export function pointAt(place: Place | null | undefined, index: readonly number[]): [number, number, number] | null {
  if (!place || place.origin.length !== 3) return null;
  const point = [...place.origin] as [number, number, number];
  place.axes.forEach((axis, at) => SIDES.forEach((way) => (point[way] += axis ? axis.step[way]! * index[at]! : 0)));
  return point;
}

const LETTERS = [["L", "R"], ["P", "A"], ["I", "S"]] as const;

/** A place as people say it: 12 R, 3.5 A, 40 S. */
export function pointText(point: readonly number[], unit: string): string {
  const parts = point.map((one, way) => `${Math.abs(Number(one.toFixed(2)))} ${LETTERS[way]![one < 0 ? 0 : 1]}`);
  return `${parts.join(", ")}${unit ? ` ${unit}` : ""}`;
}

/** Of a volume that knows sizes and no directions: how far along its own axes. */
export function alongText(place: Place | null | undefined, names: readonly string[], index: readonly number[]): string {
  const parts = place?.axes.flatMap((one, axis) => (one && one.step.length === 0 ? [`${names[axis]} ${Number((one.first + one.spacing * index[axis]!).toFixed(3))}`] : [])) ?? [];
  return parts.length > 0 ? `${parts.join(", ")}${place!.unit ? ` ${place!.unit}` : ""}` : "";
}

/** An element of a tensor with its place: what is needed to find the same spot elsewhere. */
export interface Spot {
  readonly shape: readonly number[];
  readonly names: readonly string[];
  readonly place: Place | null;
}

/** The element of another tensor that lies where one of this does: in space, or by index where both are of one size. */
export function sameSpot(from: Spot, index: readonly number[], to: Spot): number[] | null {
  const sides = [from, to].map(({ shape, names, place }) => spatialAxes(shape, names, place));
  const [here, there] = sides as [number[], number[]];
  const found = to.shape.map((size, axis) => Math.min(index.length === to.shape.length ? index[axis]! : 0, size - 1));
  const point = pointAt(from.place, index);
  const inside = point && to.place?.origin.length === 3 ? indexOf(to.place, there, point) : null;
  if (point && to.place?.origin.length === 3) {
    if (!inside || inside.some((at, i) => at < 0 || at >= to.shape[there[i]!]!)) return null;
    there.forEach((axis, i) => (found[axis] = inside[i]!));
    return found;
  }
  const alike = here.length === there.length && here.every((axis, i) => from.shape[axis] === to.shape[there[i]!]);
  if (!alike) return null;
  there.forEach((axis, i) => (found[axis] = index[here[i]!]!));
  return found;
}

/** The nearest element to a point, along three axes: Cramer's rule. */
function indexOf(place: Place, axes: readonly number[], point: readonly number[]): number[] | null {
  const steps = axes.map((axis) => place.axes[axis]?.step ?? []);
  if (steps.length !== 3 || steps.some((step) => step.length !== 3)) return null;
  const way = point.map((one, side) => one - place.origin[side]!);
  const whole = determinant(steps);
  if (whole === 0) return null;
  return steps.map((_, at) => Math.round(determinant(steps.with(at, way)) / whole));
}

function determinant(rows: readonly (readonly number[])[]): number {
  const [a, b, c] = rows as [readonly number[], readonly number[], readonly number[]];
  return a[0]! * (b[1]! * c[2]! - b[2]! * c[1]!) - a[1]! * (b[0]! * c[2]! - b[2]! * c[0]!) + a[2]! * (b[0]! * c[1]! - b[1]! * c[0]!);
}
