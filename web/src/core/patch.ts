// SPDX-License-Identifier: Apache-2.0
/**
 * Patches between two versions of immutable data, with their inverse.
 *
 * Commands build a new document that shares what did not change; `diff` finds the rest, because equal parts are the same
 * object. So every edit, also one made by the server, has an undo without anybody writing it.
 */

export type Path = readonly (string | number)[];

export type Patch =
  | { readonly kind: "set"; readonly path: Path; readonly before: unknown; readonly after: unknown }
  | {
      readonly kind: "splice";
      readonly path: Path;
      readonly at: number;
      readonly removed: readonly unknown[];
      readonly inserted: readonly unknown[];
    };

type Dict = { readonly [key: string]: unknown };

function isDict(value: unknown): value is Dict {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An entry; undefined where there is none, also under names that every object answers to, such as `constructor`. */
export function entryOf<T>(data: { readonly [key: string]: T } | undefined, key: string): T | undefined {
  return data !== undefined && Object.hasOwn(data, key) ? data[key] : undefined;
}

/** True for data that says the same, whether or not it is the same object. */
export function same(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => same(item, right[index]));
  }
  if (!isDict(left) || !isDict(right)) return false;
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => Object.hasOwn(right, key) && same(left[key], right[key]));
}

/** The patches that turn `before` into `after`. An entry that is absent counts as undefined. */
export function diff(before: unknown, after: unknown, path: Path = []): Patch[] {
  if (before === after) return [];
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after, path);
  if (isDict(before) && isDict(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...keys].flatMap((key) => diff(entryOf(before, key), entryOf(after, key), [...path, key]));
  }
  return same(before, after) ? [] : [{ kind: "set", path, before, after }];
}

function diffLists(before: readonly unknown[], after: readonly unknown[], path: Path): Patch[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && same(before[head], after[head])) head += 1;
  let tail = 0;
  while (tail < shorter - head && same(before.at(-1 - tail), after.at(-1 - tail))) tail += 1;
  const removed = before.slice(head, before.length - tail);
  const inserted = after.slice(head, after.length - tail);
  if (removed.length === 0 && inserted.length === 0) return [];
  // Lists of the same length are entries that changed in place; numbers change as a whole list.
  if (removed.length === inserted.length && removed.every(isDict) && inserted.every(isDict)) {
    return removed.flatMap((item, index) => diff(item, inserted[index], [...path, head + index]));
  }
  return [{ kind: "splice", path, at: head, removed, inserted }];
}

/** New data with every part that says the same as before replaced by the old one, so that those who compare see no change. */
export function share<T>(before: unknown, after: T): T {
  if (Object.is(before, after)) return after;
  if (Array.isArray(before) && Array.isArray(after)) {
    const items: unknown[] = after.map((item, index) => share(before[index], item));
    const unchanged = before.length === items.length && items.every((item, index) => item === before[index]);
    return (unchanged ? before : items) as T;
  }
  if (!isDict(before) || !isDict(after)) return after;
  const keys = Object.keys(after);
  const shared = Object.fromEntries(keys.map((key) => [key, share(entryOf(before, key), after[key])]));
  const unchanged = keys.length === Object.keys(before).length && keys.every((key) => shared[key] === entryOf(before, key));
  return (unchanged ? before : shared) as T;
}

/** The patches that undo these. */
export function invert(patches: readonly Patch[]): Patch[] {
  return patches
    .map((patch): Patch =>
      patch.kind === "set"
        ? { ...patch, before: patch.after, after: patch.before }
        : { ...patch, removed: patch.inserted, inserted: patch.removed },
    )
    .reverse();
}

/** The data after the patches; what they do not touch stays the same object. */
export function apply<T>(data: T, patches: readonly Patch[]): T {
  return patches.reduce<unknown>((now, patch) => applyAt(now, patch, 0), data) as T;
}

function applyAt(data: unknown, patch: Patch, depth: number): unknown {
  const key = patch.path[depth];
  if (key === undefined) {
    if (patch.kind === "set") return patch.after;
    if (!Array.isArray(data)) throw new Error(`no list at ${patch.path.join(".")}`);
    return data.toSpliced(patch.at, patch.removed.length, ...patch.inserted);
  }
  if (Array.isArray(data)) return data.with(Number(key), applyAt(data[Number(key)], patch, depth + 1));
  if (!isDict(data)) throw new Error(`no object at ${patch.path.slice(0, depth).join(".")}`);
  const value = applyAt(entryOf(data, String(key)), patch, depth + 1);
  if (value !== undefined) return { ...data, [key]: value };
  const { [key]: _gone, ...rest } = data;
  return rest;
}
