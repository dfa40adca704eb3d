// SPDX-License-Identifier: Apache-2.0
/** The traced element and its windows on a picture of a plane: of a heat map, of a slice. */

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
}

const cellOf = (kind: string, index: readonly number[]): Mark => ({ kind, lo: index, hi: index.map((one) => one + 1) });

/** What a trace marks in an output, the largest first. */
export function marksOf(trace: Trace, { block, output }: Pick<Plane, "block" | "output">): Mark[] {
  const windows = trace.windows.filter((window) => window.source === `${block}.${output}`);
  const here = trace.block === block && trace.output === output ? [cellOf("traced", trace.index)] : [];
  return [
    ...windows.map(({ lo, hi }): Mark => ({ kind: "in-window", lo, hi })),
    ...windows.flatMap((window) => (window.ties.length > 1 ? window.ties.map((index) => cellOf("tie", index)) : [])),
    ...windows.flatMap((window) => (window.winner ? [cellOf("winner", window.winner)] : [])),
    ...here,
  ];
}

export function TraceMarks(plane: Plane) {
  const trace = useStudio((state) => state.trace);
  const marks = trace ? marksOf(trace, plane) : [];
  if (marks.length === 0) return null;
  const [down, right] = plane.axes;
  const from = (mark: Mark, axis: number) => mark.lo[axis] ?? 0;
  const long = (mark: Mark, axis: number) => (mark.hi[axis] ?? 1) - from(mark, axis);
  // A window beside the plane is drawn where it would be seen from in front.
  const isBeside = ({ lo, hi }: Mark) => plane.place.some((at, axis) => axis !== down && axis !== right && (at < lo[axis]! || at >= hi[axis]!));
  return (
    <svg className="trace-marks" viewBox={`0 0 ${plane.shape[right] ?? 1} ${plane.shape[down] ?? 1}`} preserveAspectRatio="none" aria-hidden="true">
      {marks.map((mark, index) => (
        <g key={index} className={`${mark.kind} ${isBeside(mark) ? "beside" : ""}`}>
          {["edge", "line"].map((part) => (
            <rect key={part} className={part} x={from(mark, right)} y={from(mark, down)} width={long(mark, right)} height={long(mark, down)} />
          ))}
        </g>
      ))}
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
