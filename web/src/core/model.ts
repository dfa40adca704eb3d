// SPDX-License-Identifier: Apache-2.0
/** The page as data, as `voxgrad.graph.page` writes it, and what the server tells about it. */

import type * as messages from "../generated/api";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A pin holds wires or typed values; the two differ by shape. */
export type Source = { readonly from: string } | { readonly value: Json; readonly dtype?: string };

export interface Block {
  readonly name: string;
  readonly op?: string;
  readonly page?: string;
  readonly attrs?: { readonly [name: string]: Json };
  readonly inputs?: { readonly [pin: string]: readonly Source[] };
  readonly control?: readonly string[];
  readonly position?: readonly [number, number];
}

export interface Page {
  readonly name: string;
  readonly semantics: string;
  readonly blocks: readonly Block[];
  readonly inputs?: readonly string[];
  readonly outputs?: { readonly [name: string]: string };
  /** Blocks that start a session. */
  readonly targets?: readonly string[];
  readonly pages?: { readonly [name: string]: Page };
  readonly notes?: readonly Json[];
}

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
