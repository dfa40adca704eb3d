// SPDX-License-Identifier: Apache-2.0
import * as format from "../core/format";

/** Counts of values between edges, as bars. */
export function Histogram({ histogram, height }: { histogram: { readonly edges: readonly number[]; readonly counts: readonly number[] }; height: number }) {
  const { counts, edges } = histogram;
  const most = Math.max(1, ...counts);
  const first = edges[0] ?? 0;
  const last = edges.at(-1) ?? 0;
  return (
    <figure className="histogram">
      <svg viewBox={`0 0 ${counts.length} 100`} preserveAspectRatio="none" style={{ height }} role="img" aria-label={`${format.number(first)} … ${format.number(last)}`}>
        {counts.map((count, index) => {
          const tall = count === 0 ? 0 : Math.max(2, (count / most) * 100);
          return (
            <rect key={index} x={index + 0.05} width={0.9} y={100 - tall} height={tall}>
              <title>{`${format.number(edges[index] ?? 0)} … ${format.number(edges[index + 1] ?? 0)}: ${count}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption>
        <span>{format.number(first, 4)}</span>
        <span>{format.number(last, 4)}</span>
      </figcaption>
    </figure>
  );
}
