// SPDX-License-Identifier: Apache-2.0
/** Files that a page wants to touch outside of its folder. */

import type { PageFiles } from "./api";

type Wanted = PageFiles["wanted"][number];

/** The folders that a page was allowed or asks for, in a fixed order, each with the files that are wanted in it. */
export function foldersOf(files: PageFiles): readonly (readonly [string, readonly Wanted[]])[] {
  const names = new Set([...files.allowed, ...files.wanted.map((file) => file.folder).filter((folder) => folder !== "")]);
  return [...names].sort().map((folder) => [folder, files.wanted.filter((file) => file.folder === folder)] as const);
}
