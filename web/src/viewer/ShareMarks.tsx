// SPDX-License-Identifier: Apache-2.0
/** What each cell of a traced window counts for, written into it: weights of a convolution, shares of a pool. */

import * as format from "../core/format";
import type { Orthogonal } from "../core/space";
import { useStudio } from "../state/store";

interface Props {
  readonly block: string;
  readonly output: string;
  readonly shape: readonly number[];
  readonly plane: Orthogonal;
  readonly index: readonly number[];
  readonly size: { readonly width: number; readonly height: number };
}

/** Cells that are smaller have no room for a number. */
const LEAST = 20;

export function ShareMarks({ block, output, shape, plane, index, size }: Props) {
  const trace = useStudio((state) => state.trace);
  const window = trace?.windows.find((one) => one.source === `${block}.${output}` && one.shares.length > 0);
  const [down, right] = plane.axes;
  const [height, width] = [size.height / shape[down]!, size.width / shape[right]!];
  if (!window || height < LEAST || width < LEAST) return null;
  const here = window.shares.filter(({ index: cell }) => cell.every((at, axis) => axis === down || axis === right || at === index[axis]));
  const place = (at: number, count: number, flip: boolean) => (flip ? count - 1 - at : at);
  return (
    <div className="shares" aria-hidden="true">
      {here.map(({ index: cell, share }) => (
        <span
          key={cell.join()}
          style={{ left: place(cell[right]!, shape[right]!, plane.flip[1]) * width, top: place(cell[down]!, shape[down]!, plane.flip[0]) * height, width, height }}
        >
          ×{format.short(share)}
        </span>
      ))}
    </div>
  );
}
