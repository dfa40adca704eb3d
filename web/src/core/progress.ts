// SPDX-License-Identifier: Apache-2.0
/** What a run has done so far, from what its blocks have told. */

import type { BlockRun } from "./api";

/** What a run did with a block, and which run it was. */
export type ToldRun = BlockRun & { readonly run?: string };

export interface Progress {
  /** Blocks of the run, and those that are over, in whatever way. */
  readonly total: number;
  readonly ended: number;
  /** Blocks that were computed, with their time, and blocks whose results were kept from before. */
  readonly ran: number;
  readonly kept: number;
  readonly seconds: number;
}

export function progressOf(run: string, results: { readonly [block: string]: ToldRun }): Progress {
  const mine = Object.values(results).filter((one) => one.run === run);
  const ran = mine.filter((one) => one.state === "done");
  const kept = mine.filter((one) => one.state === "cached").length;
  return {
    total: mine.length,
    ended: ran.length + kept + mine.filter((one) => one.state === "failed").length,
    ran: ran.length,
    kept,
    seconds: ran.reduce((sum, one) => sum + (one.seconds ?? 0), 0),
  };
}
