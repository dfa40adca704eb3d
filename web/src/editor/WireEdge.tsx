// SPDX-License-Identifier: Apache-2.0
/** A wire: its lane between the blocks, its colour by element type, its shape on a chip. */

import { BaseEdge, getSmoothStepPath, Position, type Edge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { useShallow } from "zustand/react/shallow";
import * as format from "../core/format";
import type { Wire } from "../core/model";
import { formOf } from "../core/pins";
import { activeTab, prefixOf, useStudio } from "../state/store";
import { gradientOrder } from "./BlockNode";
import { problemsOf } from "./useBlock";

export type WireEdgeType = Edge<{ wire: Wire; lane: number }, "wire">;

const LANE = 13;
const CORNER = 8;

interface Route {
  readonly path: string;
  readonly x: number;
  readonly y: number;
}

/** Right, down or up in a lane of its own before the target, right again; the chip sits where there is room. */
function route(x0: number, y0: number, x1: number, y1: number, lane: number, chip: number): Route {
  if (x1 < x0 + 30) {
    const [path, x, y] = getSmoothStepPath({
      sourceX: x0, sourceY: y0, targetX: x1, targetY: y1,
      sourcePosition: Position.Right, targetPosition: Position.Left, borderRadius: CORNER, offset: 24 + lane * 8,
    });
    return { path, x, y };
  }
  if (Math.abs(y1 - y0) < 1) return { path: `M${x0},${y0}L${x1},${y1}`, x: (x0 + x1) / 2, y: y0 };
  const turn = Math.max(x0 + 14, Math.min(x1 - 22 - lane * LANE, x1 - 14));
  const bend = Math.min(CORNER, Math.abs(y1 - y0) / 2);
  const way = Math.sign(y1 - y0);
  const path = `M${x0},${y0}H${turn - bend}Q${turn},${y0} ${turn},${y0 + way * bend}V${y1 - way * bend}Q${turn},${y1} ${turn + bend},${y1}H${x1}`;
  const room = turn - x0;
  return room > chip + 24 ? { path, x: x0 + 12 + chip / 2, y: y0 } : { path, x: turn, y: (y0 + y1) / 2 };
}

export const WireEdge = memo(function WireEdge({ sourceX, sourceY, targetX, targetY, data, selected }: EdgeProps<WireEdgeType>) {
  const wire = data!.wire;
  const { form, text, wrong } = useStudio(
    useShallow((state) => {
      const tab = activeTab(state);
      const info = tab?.analysis?.pins[prefixOf(tab) + wire.from]?.[wire.output];
      const problem = problemsOf(tab, wire.to).some((one) => one.pin === wire.pin || one.pin === `${wire.pin}[${wire.at}]`);
      return {
        form: formOf({ types: [], host: false }, info?.dtype),
        text: info?.shape ? format.shape(info.shape) : "",
        wrong: problem,
      };
    }),
  );
  const chip = text.length * 6.3 + 14;
  const { path, x, y } = route(sourceX, sourceY, targetX, targetY, data!.lane, chip);
  const gradient = gradientOrder(wire.to) > 0 && gradientOrder(wire.from) > 0;
  const classes = ["wire", form, wrong ? "wrong" : "", selected ? "selected" : "", gradient ? "gradient" : ""].filter(Boolean).join(" ");
  return (
    <g className={classes}>
      <BaseEdge path={path} interactionWidth={18} />
      {wrong && <path className="break" d={`M${targetX - 20},${targetY - 6}l8,12M${targetX - 12},${targetY - 6}l-8,12`} />}
      {text && (
        <g className={`chip tint-${tintOf(text)}`} transform={`translate(${x},${y})`}>
          <rect x={-chip / 2} y={-9} width={chip} height={18} rx={9} />
          <text textAnchor="middle" dy="3.5">
            {text}
          </text>
        </g>
      )}
    </g>
  );
});

const TINTS = 6;

/** Equal shapes have equal tints, so that a mismatch is seen before it is read. */
function tintOf(text: string): number {
  let sum = 7;
  for (const letter of text) sum = (sum * 31 + letter.charCodeAt(0)) % 9973;
  return sum % TINTS;
}
