// SPDX-License-Identifier: Apache-2.0
/** The page as data, as its published schema says, and what the server tells about it. */

import type * as messages from "../generated/api";
import type { Json } from "../generated/page";

export type { Block, Display, Json, Page, Shown, Source } from "../generated/page";

/** Where a nested page lies: the names of the pages from the outermost inwards. Empty means the document itself. */
export type PagePath = readonly string[];

export interface Wire {
  readonly from: string;
  readonly output: string;
  readonly to: string;
  readonly pin: string;
  readonly at: number;
}

// What the catalogue says of an op

export type OpInput = messages.OpInput;
export type OpOutput = messages.OpOutput;
export type OpAttr = Omit<messages.OpAttr, "default" | "choices"> & { readonly default: Json; readonly choices: readonly Json[] };
export type Op = Omit<messages.OpData, "attrs"> & { readonly attrs: readonly OpAttr[] };

// What the analysis says of a page

export type Dim = number | string | null;
export type PinInfo = messages.PinData;
export type Fix = messages.FixData;
export type Problem = messages.ProblemData;
export type Estimate = messages.EstimateData;
export type Analysis = messages.Analysis;
