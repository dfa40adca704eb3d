// SPDX-License-Identifier: Apache-2.0
/** Gradients folded into one block per forward block: collapsed groups, which open and close as any other. */

import type { Edit } from "./api";
import { groupBy } from "./group";
import type { Page } from "./model";
import { forwardOf } from "./scopes";

const MARK = "∂ ";

/** The title of the group that holds the gradients of a block. */
export function gradientTitle(forward: string): string {
  return MARK + forward;
}

/**
 * The edits that fold every gradient block of a page, or that take the groups away where all are folded. Blocks that a
 * person has put into a group stay there.
 */
export function foldedGradients(page: Page): Edit[] {
  const roots = forwardOf(page);
  const titles = new Set([...roots.values()].map(gradientTitle));
  const groups = page.groups ?? [];
  const ours = groups.filter((group) => titles.has(group.title));
  const theirs = new Set(groups.filter((group) => !titles.has(group.title)).flatMap((group) => group.blocks));
  const folded = new Set(ours.filter((group) => group.collapsed).flatMap((group) => group.blocks));
  const free = [...roots].filter(([name]) => !theirs.has(name));
  if (free.length > 0 && free.every(([name]) => folded.has(name))) return ours.map(({ title }) => ({ do: "ungroup", title }));
  const by = groupBy(free, ([, root]) => root);
  return [...by].map(([root, list]) => ({ do: "group", title: gradientTitle(root), blocks: list.map(([name]) => name), colour: "purple", collapsed: true }));
}
