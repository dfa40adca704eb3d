// SPDX-License-Identifier: Apache-2.0
/** Finding ops and actions by a few typed letters. */

/** How well a text fits a query: 0 for not at all, more is better. Letters may be left out, order counts. */
export function score(query: string, text: string): number {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") return 1;
  const given = text.toLowerCase();
  if (given === wanted) return 1000;
  if (given.startsWith(wanted)) return 800 - given.length;
  const at = given.indexOf(wanted);
  if (at >= 0) return 600 - at - given.length / 10;
  return spread(wanted, text);
}

function spread(wanted: string, text: string): number {
  let points = 0;
  let from = 0;
  for (const letter of wanted.replaceAll(" ", "")) {
    const at = text.toLowerCase().indexOf(letter, from);
    if (at < 0) return 0;
    const begins = at === 0 || /[A-Z0-9]/.test(text[at] ?? "") || /[\s_./-]/.test(text[at - 1] ?? "");
    points += begins ? 12 : at === from ? 8 : 2;
    from = at + 1;
  }
  return points;
}

export interface Searchable {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary?: string;
}

/** The entries that fit, best first. A summary counts, but less than a name. */
export function search<T extends Searchable>(entries: readonly T[], query: string, limit = Infinity): T[] {
  if (query.trim() === "") return entries.slice(0, limit);
  return entries
    .map((entry) => {
      const names = [entry.name, ...(entry.aliases ?? [])].map((name) => score(query, name));
      const inSummary = entry.summary?.toLowerCase().includes(query.trim().toLowerCase()) ? 20 : 0;
      return { entry, points: Math.max(...names, inSummary) };
    })
    .filter((row) => row.points > 0)
    .sort((a, b) => b.points - a.points || a.entry.name.length - b.entry.name.length)
    .slice(0, limit)
    .map((row) => row.entry);
}
