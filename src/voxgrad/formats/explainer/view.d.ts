// SPDX-License-Identifier: Apache-2.0
/** What the studio knows of view.js. */

/** What packing.py makes: lessons with tables of what they share. */
export interface Pack {
  readonly op: string;
  readonly choices: { readonly [kind: string]: readonly unknown[] };
  readonly about: { readonly [op: string]: { readonly summary: string; readonly laws: readonly string[] } };
  readonly states: readonly unknown[];
}
export interface Source {
  readonly op: string;
  readonly choices: Pack["choices"];
  readonly about: Pack["about"];
  lesson(places: readonly number[], typed: { readonly [tensor: string]: readonly string[] }): Promise<unknown>;
}
export interface View {
  language(name: string): void;
  close(): void;
}
export const FIRST: readonly number[];
export function unpack(pack: Pack, state: unknown): unknown;
export function fromPack(pack: Pack): Source;
export function explain(root: HTMLElement, options: { source: Source; words: unknown; language: string; editable?: boolean }): View;
