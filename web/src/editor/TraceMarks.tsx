// SPDX-License-Identifier: Apache-2.0
/** The traced element and its windows on a picture of a plane: of a heat map, of a slice. */

import type { Reached, TraceWindow } from "../core/api";
import { useStudio, type Trace } from "../state/store";

interface Plane {
  readonly block: string;
  readonly output: string;
  readonly shape: readonly number[];
  /** The axes that go down and to the right. */
  readonly axes: readonly [number, number];
  /** Where the plane lies on the others. */
  readonly place: readonly number[];
}

/** A voxel, or a window of them. */
export interface Mark {
  readonly kind: string;
  readonly lo: readonly number[];
  readonly hi: readonly number[];
  /** Between the cells that count, where it is not every one. */
  readonly steps?: readonly number[];
}

/** A window with the cells that it has outside of the tensor, where it has some. */
function withPadding({ lo, hi, steps, padding }: TraceWindow): Mark[] {
  const [before, after] = [padding.before, padding.after].map((counts) => counts.map((count, axis) => count * steps[axis]!)) as [number[], number[]];
  if (![...before, ...after].some((count) => count > 0)) return [];
  return [{ kind: "padding", lo: lo.map((low, axis) => low - before[axis]!), hi: hi.map((high, axis) => high + after[axis]!) }];
}

/** Cells with gaps between them that are drawn one by one. */
const MOST_APART = 16;

const cellOf = (kind: string, index: readonly number[]): Mark => ({ kind, lo: index, hi: index.map((one) => one + 1) });

/** What a trace marks in an output, the largest first. */
export function marksOf(trace: Trace, { block, output }: Pick<Plane, "block" | "output">): Mark[] {
  const windows = trace.windows.filter((window) => window.source === `${block}.${output}`);
  const here = trace.block === block && trace.output === output ? [cellOf("traced", trace.index)] : [];
  return [
    ...windows.flatMap(withPadding),
    ...windows.map(({ lo, hi, steps }): Mark => ({ kind: "in-window", lo, hi, steps })),
    ...windows.flatMap((window) => (window.ties.length > 1 ? window.ties.map((index) => cellOf("tie", index)) : [])),
    ...windows.flatMap((window) => (window.winner ? [cellOf("winner", window.winner)] : [])),
    ...trace.reached.flatMap(({ output: path, lo, hi, steps }) => (path === `${block}.${output}` ? [{ kind: "reached", lo, hi, steps }] : [])),
    ...here,
  ];
}

/** Where a trace that was begun elsewhere leads in this output: to the voxel that won, or the middle of a window. */
const aims = new WeakMap<TraceWindow | Reached, readonly number[]>();

export function aimOf(trace: Trace | null, { block, output }: { readonly block: string; readonly output: string }): readonly number[] | null {
  const path = `${block}.${output}`;
  const window = trace?.windows.find((one) => one.source === path && one.count > 0);
  const box = window ?? trace?.reached.find((one) => one.output === path);
  if (!box) return null;
  if (!aims.has(box)) aims.set(box, window?.winner ?? box.lo.map((low, axis) => Math.floor((low + box.hi[axis]! - 1) / 2)));
  return aims.get(box)!;
}

export function TraceMarks(plane: Plane) {
  const trace = useStudio((state) => state.trace);
  const marks = trace ? marksOf(trace, plane) : [];
  if (marks.length === 0) return null;
  const [down, right] = plane.axes;
  // A window beside the plane is drawn where it would be seen from in front.
  const isBeside = ({ lo, hi }: Mark) => plane.place.some((at, axis) => axis !== down && axis !== right && (at < lo[axis]! || at >= hi[axis]!));
  return (
    <svg className="trace-marks" viewBox={`0 0 ${plane.shape[right] ?? 1} ${plane.shape[down] ?? 1}`} preserveAspectRatio="none" aria-hidden="true">
      {trace && <Shares trace={trace} {...plane} />}
      {marks.map((mark, index) => (
        <g key={index} className={`${mark.kind} ${isBeside(mark) ? "beside" : ""}`}>
          {["edge", "line"].map((part) =>
            partsOf(mark, down).flatMap(([y, height]) =>
              partsOf(mark, right).map(([x, width]) => <rect key={`${part} ${y} ${x}`} className={part} x={x} y={y} width={width} height={height} />),
            ),
          )}
        </g>
      ))}
    </svg>
  );
}

/** How much each cell of a window counts, as light over it: blue for what adds, yellow for what takes away. */
function Shares({ trace, block, output, axes: [down, right], place }: Plane & { readonly trace: Trace }) {
  const shares = trace.windows.flatMap((window) => (window.source === `${block}.${output}` ? window.shares : []));
  const most = shares.reduce((largest, { share }) => Math.max(largest, Math.abs(share)), 0);
  const here = shares.filter(({ index, share }) => share !== 0 && index.every((at, axis) => axis === down || axis === right || at === place[axis]));
  return here.map(({ index, share }) => (
    <rect key={index.join()} className={`share ${share < 0 ? "less" : ""}`} x={index[right]} y={index[down]} width={1} height={1} fillOpacity={(0.55 * Math.abs(share)) / most} />
  ));
}

/** Begin and length of what a mark covers along an axis: all of it, or the cells that count where there are gaps. */
function partsOf({ lo, hi, steps }: Mark, axis: number): [number, number][] {
  const [low, high, step] = [lo[axis] ?? 0, hi[axis] ?? 1, steps?.[axis] ?? 1];
  if (step < 2 || high - low > MOST_APART * step) return [[low, high - low]];
  return Array.from({ length: Math.ceil((high - low) / step) }, (_, at) => [low + at * step, 1]);
}

/** The lines of the cursor, which leave the cell that it is on free. */
export function Cross({ rows, columns, row, column }: { rows: number; columns: number; row: number; column: number }) {
  return (
    <svg className="cross" viewBox={`0 0 ${columns} ${rows}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={`M${column + 0.5} 0V${row}M${column + 0.5} ${row + 1}V${rows}M0 ${row + 0.5}H${column}M${column + 1} ${row + 0.5}H${columns}`} />
    </svg>
  );
}

/** The index of the element that the pointer is over on a picture of a plane. */
export function indexUnder(event: React.MouseEvent<Element>, shape: readonly number[], axes: readonly [number, number], place: readonly number[]): number[] | null {
  const box = event.currentTarget.getBoundingClientRect();
  const index = [...place];
  const parts = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
  for (const [at, axis] of axes.entries()) {
    if (axis < 0) continue;
    index[axis] = Math.floor(parts[at]! * shape[axis]!);
    if (index[axis]! < 0 || index[axis]! >= shape[axis]!) return null;
  }
  return index;
}
