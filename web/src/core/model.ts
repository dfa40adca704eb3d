// SPDX-License-Identifier: Apache-2.0
/** The page as data, as `voxgrad.graph.page` writes it, and what the server tells about it. */

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

export interface OpInput {
  readonly name: string;
  readonly types: readonly string[];
  readonly type_var: string | null;
  readonly shape: string;
  readonly host: boolean;
  readonly many: boolean;
  readonly layout?: string;
  readonly doc: string;
}

export interface OpAttr {
  readonly name: string;
  readonly kind: string;
  readonly default: Json;
  readonly required: boolean;
  readonly choices: readonly Json[];
  readonly length: number | null;
  readonly doc: string;
}

export interface OpOutput {
  readonly name: string;
  readonly types: readonly string[];
  readonly type_var: string | null;
  readonly shape: string;
  readonly many: boolean;
  readonly layout?: string;
  readonly count?: string;
  readonly doc: string;
}

export interface Op {
  readonly name: string;
  readonly group: string;
  readonly summary: string;
  readonly doc: string;
  readonly laws: readonly { readonly name: string; readonly text: string }[];
  readonly example: string;
  readonly inputs: readonly OpInput[];
  readonly attrs: readonly OpAttr[];
  readonly outputs: readonly OpOutput[];
  readonly aliases: readonly string[];
  readonly differentiable: boolean;
  readonly stateful: boolean;
}

// What the analysis says of a page

export type Dim = number | string | null;

export interface PinInfo {
  readonly dtype: string | null;
  readonly shape: readonly Dim[] | null;
  readonly text: string;
  readonly direction?: "input" | "output";
}

export interface Fix {
  readonly title: string;
  readonly edits: readonly Json[];
}

export interface Problem {
  readonly block: string;
  readonly pin: string;
  readonly op: string;
  readonly code: string;
  readonly wanted: string;
  readonly got: string;
  readonly remedy: string;
  readonly message: string;
  readonly fixes: readonly Fix[];
}

export interface Estimate {
  readonly blocks: { readonly [block: string]: { readonly bytes: number | null; readonly flops: number | null } };
  readonly peak_bytes: number | null;
  readonly flops: number | null;
}

export interface Analysis {
  readonly pins: { readonly [block: string]: { readonly [pin: string]: PinInfo } };
  readonly problems: readonly Problem[];
  readonly estimate: Estimate | null;
}
