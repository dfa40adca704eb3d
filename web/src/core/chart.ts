// SPDX-License-Identifier: Apache-2.0
/** Scales of charts: linear or logarithmic, with ticks at round numbers; and long curves with fewer points. */

export interface Point {
  readonly x: number;
  readonly y: number;
  /** The ends of an error bar. */
  readonly low?: number;
  readonly high?: number;
}

export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly log: boolean;
}

/** True for numbers that a scale can show: of a logarithmic one, those above zero. */
export function shows(log: boolean, value: number): boolean {
  return Number.isFinite(value) && (!log || value > 0);
}

/** The scale that holds all values; null where there is none. */
export function scaleOf(values: Iterable<number>, log: boolean): Scale | null {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!shows(log, value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return null;
  if (low < high) return { low, high, log };
  const room = Math.abs(low) / 2 || 1;
  return log ? { low: low / 2, high: low * 2, log } : { low: low - room, high: high + room, log };
}

/** Where a value lies on a scale, from 0 to 1. */
export function placeOn({ low, high, log }: Scale, value: number): number {
  return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

/** Round numbers on a scale. */
export function ticksOf({ low, high, log }: Scale, most = 5): number[] {
  if (log && high / low >= 10) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.max(1, Math.ceil((last - first + 1) / most));
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => 10 ** (first + index * step));
  }
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= rough * 0.999)!;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** A curve with at most twice so many points: of each stretch the least and the greatest, so that no peak is lost. */
export function thinned(points: readonly Point[], stretches: number): readonly Point[] {
  if (points.length <= 2 * stretches) return points;
  const kept: Point[] = [];
  for (let index = 0; index < stretches; index += 1) {
    const part = points.slice(Math.floor((index * points.length) / stretches), Math.floor(((index + 1) * points.length) / stretches));
    const least = part.reduce((a, b) => (b.y < a.y ? b : a));
    const most = part.reduce((a, b) => (b.y > a.y ? b : a));
    kept.push(...(least === most ? [least] : least.x < most.x ? [least, most] : [most, least]));
  }
  return kept;
}
