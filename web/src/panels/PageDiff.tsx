// SPDX-License-Identifier: Apache-2.0
/** Two versions of a page in one picture: what is new, gone, changed and rewired, each with a form and a colour. */

import type { Change, Differences } from "../core/compare";
import type { Block } from "../core/model";
import { useWords } from "../state/words";

const [WIDTH, HEIGHT, GAP, MARGIN] = [230, 74, 60, 30];
const SIGNS: { readonly [change in Change]: string } = { added: "+", removed: "−", changed: "≠", rewired: "⇄" };
export const CHANGES = ["added", "removed", "changed", "rewired"] as const;

type Place = readonly [number, number];

/** Where the blocks stand: as on the page, those without a place in rows, those that are gone under what took theirs. */
function placesOf(blocks: readonly { readonly block: Block; readonly changes: readonly Change[] }[]): Map<string, Place> {
  const places = new Map<string, Place>();
  const covers = ([x, y]: Place) => [...places.values()].some(([a, b]) => Math.abs(a - x) < WIDTH + 10 && Math.abs(b - y) < HEIGHT + 10);
  for (const { block } of blocks) {
    let place: Place = [block.position?.[0] ?? (places.size % 6) * (WIDTH + GAP), block.position?.[1] ?? 0];
    while (covers(place)) place = [place[0], place[1] + HEIGHT + 12];
    places.set(block.name, place);
  }
  return places;
}

export function PageDiff({ found }: { found: Differences }) {
  const words = useWords();
  const places = placesOf(found.blocks);
  const all = [...places.values()];
  const [left, top] = [Math.min(...all.map(([x]) => x)) - MARGIN, Math.min(...all.map(([, y]) => y)) - MARGIN];
  const [right, bottom] = [Math.max(...all.map(([x]) => x)) + WIDTH + MARGIN, Math.max(...all.map(([, y]) => y)) + HEIGHT + MARGIN];
  const used = CHANGES.filter((change) => found.blocks.some((one) => one.changes.includes(change)));
  const label = used.map((change) => `${words(`snapshots.${change}`)}: ${found.blocks.filter((one) => one.changes.includes(change)).map((one) => one.block.name).join(", ")}`).join("; ");
  return (
    <figure className="page-diff">
      <div className="scroll" tabIndex={0} role="region" aria-label={words("snapshots.picture")}>
        <svg viewBox={`${left} ${top} ${right - left} ${bottom - top}`} style={{ minWidth: Math.min(right - left, 2400) * 0.55 }} role="img" aria-label={label}>
          {found.wires.map(({ wire, change }, index) => {
            const [from, to] = [places.get(wire.from), places.get(wire.to)];
            if (!from || !to) return null;
            const [x, y, u, v] = [from[0] + WIDTH, from[1] + HEIGHT / 2, to[0], to[1] + HEIGHT / 2];
            return <path key={index} className={`wire ${change ?? "same"}`} d={`M${x} ${y}C${x + 60} ${y} ${u - 60} ${v} ${u} ${v}`} />;
          })}
          {found.blocks.map(({ block, changes, told }) => (
            <g key={block.name} className={`box ${changes.join(" ") || "same"}`} transform={`translate(${places.get(block.name)!.join(" ")})`}>
              <title>{[block.name, ...changes.map((change) => words(`snapshots.${change}`)), ...told].join("\n")}</title>
              <rect width={WIDTH} height={HEIGHT} rx="8" />
              {changes.includes("changed") && <rect className="inner" x="5" y="5" width={WIDTH - 10} height={HEIGHT - 10} rx="5" />}
              <text x="16" y="32">{cut(block.name, changes.length > 0 ? 17 : 21)}</text>
              <text className="op" x="16" y="56">{cut(told[0] ?? block.op ?? block.page ?? "", 27)}</text>
              {changes.length > 0 && <text className="sign" x={WIDTH - 14} y="32" textAnchor="end">{changes.map((change) => SIGNS[change]).join(" ")}</text>}
            </g>
          ))}
        </svg>
      </div>
      <figcaption>
        {CHANGES.map((change) => (
          <span key={change}>
            <svg viewBox="-3 -3 46 30" width="36" height="24" aria-hidden="true">
              <g className={`box ${change}`}>
                <rect width="40" height="24" rx="4" />
                {change === "changed" && <rect className="inner" x="4" y="4" width="32" height="16" rx="2" />}
                <text className="sign" x="20" y="19" textAnchor="middle">{SIGNS[change]}</text>
              </g>
            </svg>
            {words(`snapshots.${change}`)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
