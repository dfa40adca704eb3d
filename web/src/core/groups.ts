// SPDX-License-Identifier: Apache-2.0
/** Groups on the drawing: frames around blocks, or one block in their place. */

import { moveBlocks, type Point } from "./commands";
import { wireId, wiresOf } from "./document";
import type { Page, Wire } from "./model";
import type { Group } from "../generated/page";

export const COLOURS = ["grey", "blue", "green", "yellow", "red", "purple"] as const satisfies readonly NonNullable<Group["colour"]>[];

/** The name of the block that is drawn for a collapsed group; no block of a page can have it. */
export function groupId(title: string): string {
  return `group:${title}`;
}

export function frameId(title: string): string {
  return `frame:${title}`;
}

/** The group that stands for its blocks under this name on the drawing. */
function collapsedOf(page: Page, id: string): Group | undefined {
  return page.groups?.find((group) => group.collapsed && groupId(group.title) === id);
}

/** The blocks inside of a frame; null where the name is none of a frame. */
export function framedBlocks(page: Page, id: string): readonly string[] | null {
  return page.groups?.find((group) => !group.collapsed && frameId(group.title) === id)?.blocks ?? null;
}

/** What is drawn in place of a block: the group that hides it. */
export function hiddenIn(page: Page): Map<string, string> {
  return new Map((page.groups ?? []).filter((group) => group.collapsed).flatMap((group) => group.blocks.map((name) => [name, groupId(group.title)] as const)));
}

/** Where a collapsed group stands: at the corner of its blocks. */
export function cornerOf(page: Page, group: Group): Point {
  const inside = new Set(group.blocks);
  const places = page.blocks.filter((block) => inside.has(block.name)).map((block) => block.position ?? [0, 0]);
  return [Math.min(...places.map(([x]) => x!)), Math.min(...places.map(([, y]) => y!))];
}

/** A wire as it is drawn: its ends may be pins of collapsed groups. */
export interface DrawnWire {
  readonly id: string;
  readonly wire: Wire;
  readonly drawn: Wire;
}

/** The wires that are seen; those inside of a collapsed group are not. */
export function drawnWires(page: Page): DrawnWire[] {
  const hidden = hiddenIn(page);
  return wiresOf(page).flatMap((wire): DrawnWire[] => {
    const [source, target] = [hidden.get(wire.from), hidden.get(wire.to)];
    if (source !== undefined && source === target) return [];
    const start = source === undefined ? { from: wire.from, output: wire.output } : { from: source, output: `${wire.from}.${wire.output}` };
    const end = target === undefined ? { to: wire.to, pin: wire.pin } : { to: target, pin: `${wire.to}.${wire.pin}` };
    return [{ id: wireId(wire), wire, drawn: source === undefined && target === undefined ? wire : { ...start, ...end, at: wire.at } }];
  });
}

/** The pins of a collapsed group: what it reads from outside and what is read of it. */
export function pinsOfGroup(page: Page, group: Group): { inputs: string[]; outputs: string[] } {
  const id = groupId(group.title);
  const wires = drawnWires(page);
  return {
    inputs: [...new Set(wires.filter(({ drawn }) => drawn.to === id).map(({ drawn }) => drawn.pin))],
    outputs: [...new Set(wires.filter(({ drawn }) => drawn.from === id).map(({ drawn }) => drawn.output))],
  };
}

/** Move blocks, and with a collapsed group all that is in it. */
export function moveDrawn(page: Page, places: ReadonlyMap<string, Point>): Page {
  const all = new Map<string, Point>();
  for (const [id, [x, y]] of places) {
    const group = collapsedOf(page, id);
    if (!group) all.set(id, [x, y]);
    else {
      const [left, top] = cornerOf(page, group);
      const inside = new Set(group.blocks);
      for (const { name, position } of page.blocks) if (inside.has(name)) all.set(name, [(position?.[0] ?? 0) + x - left, (position?.[1] ?? 0) + y - top]);
    }
  }
  return moveBlocks(page, all);
}
