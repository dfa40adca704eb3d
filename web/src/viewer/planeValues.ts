// SPDX-License-Identifier: Apache-2.0
/** The values of planes: cut out of a tensor that is here, or asked of the server, coarse while one moves and fine at rest. */

import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "../core/api";
import { planeOf, type Tensor } from "../core/tensor";

export interface Source {
  readonly hash: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** All values, of a tensor that is small enough to be here. */
  readonly tensor: Tensor | null;
}

export interface Shown {
  readonly rows: number;
  readonly columns: number;
  readonly values: ArrayLike<number>;
  /** Of how many cells a side each value is the mean. */
  readonly step: number;
  /** Where the plane lies. */
  readonly at: readonly number[];
}

/** More cells a side are of no use on a screen. */
const FINEST = 1024;
/** Planes of more cells than this are coarse while one moves through them. */
const QUICK = 320;
const REST_MS = 120;
const KEPT_BYTES = 64 * 2 ** 20;

const kept = new Map<string, Shown>();
let keptBytes = 0;

function keep(key: string, shown: Shown): void {
  kept.set(key, shown);
  keptBytes += shown.values.length * 4;
  for (const [oldest, one] of kept) {
    if (keptBytes <= KEPT_BYTES || oldest === key) break;
    kept.delete(oldest);
    keptBytes -= one.values.length * 4;
  }
}

const keyOf = (hash: string, axes: readonly number[], at: readonly number[], step: number) => `${hash}/${axes.join()}/${at.join()}/${step}`;

/** A plane of a source, the newest that was asked for; until it comes, the one before stays. */
export function usePlane(source: Source | null, axes: readonly [number, number], index: readonly number[], finest = FINEST): Shown | null {
  const [down, right] = axes;
  const at = index.map((one, axis) => (axis === down || axis === right ? 0 : one));
  const place = at.join();
  const here = useMemo(() => {
    if (!source?.tensor) return null;
    const fixed = place.split(",").map(Number);
    const { rows, columns, values } = planeOf(source.tensor, down, right, fixed);
    return { rows, columns, values, step: 1, at: fixed } satisfies Shown;
  }, [source, down, right, place]);
  const [there, setThere] = useState<Shown | null>(null);
  const feed = useRef<Feed | null>(null);
  useEffect(() => {
    if (!source || source.tensor) return undefined;
    const made = new Feed(source, [down, right], finest, setThere);
    feed.current = made;
    return () => made.close();
  }, [source, down, right, finest]);
  useEffect(() => feed.current?.want(place.split(",").map(Number)), [source, down, right, place, finest]);
  return source?.tensor ? here : there;
}

/** Asks for one plane at a time; of those that were wanted meanwhile, only the last. */
class Feed {
  private wanted: readonly number[] | null = null;
  private busy = false;
  private closed = false;
  private timer = 0;
  private readonly finest: number;
  private readonly quick: number;

  constructor(
    private readonly source: Source,
    private readonly axes: readonly [number, number],
    finest: number,
    private readonly show: (shown: Shown) => void,
  ) {
    const most = Math.max(...axes.map((axis) => source.shape[axis]!));
    this.finest = Math.ceil(most / finest);
    this.quick = Math.max(this.finest, Math.ceil(most / QUICK));
  }

  want(at: readonly number[]): void {
    const moving = this.wanted !== null && this.timer !== 0;
    this.wanted = at;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      void this.ask(this.finest);
    }, REST_MS);
    void this.ask(moving ? this.quick : this.finest);
  }

  close(): void {
    this.closed = true;
    window.clearTimeout(this.timer);
  }

  private async ask(step: number): Promise<void> {
    const at = this.wanted;
    if (this.closed || at === null) return;
    const known = [...new Set([this.finest, step])].map((one) => kept.get(keyOf(this.source.hash, this.axes, at, one))).find(Boolean);
    if (known) return this.show(known);
    if (this.busy) return;
    this.busy = true;
    try {
      const { shape, data } = await api.plane(this.source.hash, this.axes, at, step);
      const shown = { rows: shape[0]!, columns: shape[1]!, values: data, step, at };
      keep(keyOf(this.source.hash, this.axes, at, step), shown);
      if (!this.closed) this.show(shown);
    } catch {
      // The tensor is gone, or nobody answers: what is shown stays, and says where it lies.
    } finally {
      this.busy = false;
    }
    if (this.wanted !== at) void this.ask(step);
  }
}
