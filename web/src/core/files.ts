// SPDX-License-Identifier: Apache-2.0
/** Files that hold arrays, and files that a page wants to touch outside of its folder. */

import type { PageFiles } from "./api";

type Wanted = PageFiles["wanted"][number];

/** The folders that a page was allowed or asks for, in a fixed order, each with the files that are wanted in it. */
export function foldersOf(files: PageFiles): readonly (readonly [string, readonly Wanted[]])[] {
  const names = new Set([...files.allowed, ...files.wanted.map((file) => file.folder).filter((folder) => folder !== "")]);
  return [...names].sort().map((folder) => [folder, files.wanted.filter((file) => file.folder === folder)] as const);
}

/** Files that become blocks, or the value of one. */
export const ARRAYS = [".npy", ".npz", ".nii", ".nii.gz", ".tif", ".tiff", ".h5", ".hdf5", ".nrrd", ".mha", ".mhd", ".dcm", ".csv", ".tsv", ".txt"];

export function isArray(name: string): boolean {
  return ARRAYS.some((ending) => name.toLowerCase().endsWith(ending));
}
