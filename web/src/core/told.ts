// SPDX-License-Identifier: Apache-2.0
/**
 * What the server says, in another language. Its errors are data with a code, and its sentences come from patterns:
 * `told.ko.json` has the Korean of each, with `$0`, `$1` for what is filled in. What it does not have stays as it is.
 */

export interface Table {
  /** What a code means. */
  readonly codes: { readonly [code: string]: string };
  /** Sentences, and parts of them. */
  readonly texts: { readonly [pattern: string]: string };
}

export interface Tell {
  /** A text of the server: a sentence, or faults line by line. */
  (text: string): string;
  /** What a fault wanted; where no sentence fits, what its code means. */
  must(code: string, wanted: string): string;
}

/** A fault as a line of a message, as `voxgrad.errors` writes it. */
const FAULT = /^(VG\d{3}) (.+?): (.*?) must (.+?); got (.+?)\.(?: (.+))?$/;
/** A line of the report of an import: what happened, to what. */
const REMARK = /^(\s*)(changed|noted|lost|runs|stops|missing|script|fix): (?:(.+?): )?(.+)$/;
const BLANK = /\$(\d)/g;
/** Two words of English: no name, and no list of names. */
const PROSE = /(^|[^\w'"`])[a-z]{2,} [a-z]{2,}/;
const DEEPEST = 2;
const MOST_KEPT = 2000;

interface Pattern {
  readonly form: RegExp;
  /** Which blank each group fills. */
  readonly blanks: readonly number[];
  readonly told: string;
}

function patternOf(text: string, told: string): Pattern {
  const blanks = [...text.matchAll(BLANK)].map((found) => Number(found[1]));
  const form = text.split(BLANK).map((part, at) => (at % 2 === 1 ? "(.+?)" : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))).join("");
  return { form: new RegExp(`^${form}$`, "s"), blanks, told };
}

/** Says in the language of a table what the server says. */
export function teller({ codes, texts }: Table): Tell {
  const exact = new Map(Object.entries(texts));
  // The pattern that says most by itself comes first: `be $0` fits almost everything.
  const patterns = Object.entries(texts)
    .filter(([text]) => text.search(BLANK) >= 0)
    .sort(([a], [b]) => b.replace(BLANK, "").length - a.replace(BLANK, "").length)
    .map(([text, told]) => patternOf(text, told));
  const known = new Map<string, string>();

  const look = (text: string, depth: number): string | null => {
    const found = exact.get(text);
    if (found !== undefined) return found;
    for (const { form, blanks, told } of depth < DEEPEST ? patterns : []) {
      const parts = form.exec(text)?.slice(1).map((one) => part(one, depth + 1));
      if (parts?.every((one) => one !== null)) return told.replace(BLANK, (_, blank: string) => parts[blanks.indexOf(Number(blank))]!);
    }
    return null;
  };
  /** What is filled in: a part with Korean of its own, or names and numbers; null for a sentence that has none. */
  const part = (text: string, depth: number): string | null => look(text, depth) ?? (PROSE.test(text) ? null : text);
  const must = (code: string, text: string): string => look(text, 0) ?? (codes[code] ? `${codes[code]} (${text})` : text);
  const line = (text: string): string => {
    const fault = FAULT.exec(text);
    const remark = fault ? null : REMARK.exec(text);
    if (remark) {
      const [, indent, kind, place, told] = remark;
      return `${indent}${exact.get(kind!) ?? kind}: ${place === undefined ? "" : `${place}: `}${look(told!, 0) ?? told}`;
    }
    if (!fault) return remedies(text);
    const [, code, op, argument, wanted, got, remedy] = fault;
    return `${code} ${op}: ${argument} — ${must(code!, wanted!)}. 실제: ${look(got!, 0) ?? got}.${remedy ? ` ${remedies(remedy)}` : ""}`;
  };
  /** A remedy may be two sentences that were found in two places. */
  const remedies = (text: string): string => look(text, 0) ?? text.split(/(?<=\.) (?=[A-Z`])/).map((one) => look(one, 0) ?? one).join(" ");
  const tell = (text: string): string => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const told = text.split("\n").map(line).join("\n");
    if (known.size > MOST_KEPT) known.clear();
    known.set(text, told);
    return told;
  };
  return Object.assign(tell, { must });
}
