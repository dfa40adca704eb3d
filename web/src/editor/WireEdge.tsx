// SPDX-License-Identifier: Apache-2.0
/** A wire: its lane between the blocks, its colour by element type, its shape on a chip. */

import { BaseEdge, EdgeLabelRenderer, getSmoothStepPath, type Edge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { useShallow } from "zustand/react/shallow";
import * as format from "../core/format";
import type { Wire } from "../core/model";
import { formOf } from "../core/pins";
import { gradientOrder } from "../core/scopes";
import { activeTab, prefixOf, useStudio } from "../state/store";
import type { Plan } from "./routes";
import { problemsOf } from "./useBlock";

export type WireEdgeType = Edge<{ wire: Wire; plan: Plan | null }, "wire">;

const CORNER = 8;
/** Handles are wider than the pins inside of them; wires end at the pin. */
export const PIN = 9;

/** Level and upright lines through these points, with round corners. */
function bent(points: readonly (readonly [number, number])[]): string {
  const [first, ...rest] = points;
  let path = `M${first![0]},${first![1]}`;
  let before = first!;
  rest.forEach((point, index) => {
    const after = rest[index + 1];
    if (!after) {
      path += `L${point[0]},${point[1]}`;
      return;
    }
    const into = Math.min(CORNER, (Math.abs(point[0] - before[0]) + Math.abs(point[1] - before[1])) / 2);
    const out = Math.min(CORNER, (Math.abs(after[0] - point[0]) + Math.abs(after[1] - point[1])) / 2);
    const toward = (a: readonly [number, number], length: number) => {
      const far = Math.abs(a[0] - point[0]) + Math.abs(a[1] - point[1]) || 1;
      return `${point[0] + ((a[0] - point[0]) / far) * length},${point[1] + ((a[1] - point[1]) / far) * length}`;
    };
    path += `L${toward(before, into)}Q${point[0]},${point[1]} ${toward(after, out)}`;
    before = point;
  });
  return path;
}

/** The way while a block is being moved: turns half-way, and looks at no block. */
function hastyPath({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition }: EdgeProps<WireEdgeType>): string {
  return getSmoothStepPath({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, borderRadius: CORNER, offset: 24 })[0];
}

/** True where both ends are where the plan was made for. */
function isPlanned({ sourceX, sourceY, targetX, targetY }: EdgeProps<WireEdgeType>, { ends }: Plan): boolean {
  const off = [sourceX - ends.out * PIN - ends.x0, sourceY - ends.y0, targetX + ends.into * PIN - ends.x1, targetY - ends.y1];
  return off.every((one) => Math.abs(one) < 1);
}

export const WireEdge = memo(function WireEdge(props: EdgeProps<WireEdgeType>) {
  const { targetX, targetY, data, selected } = props;
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
  const plan = data!.plan && isPlanned(props, data!.plan) ? data!.plan : null;
  const path = plan ? bent(plan.points) : hastyPath(props);
  const spot = plan?.spots.find((one) => one.width >= chip);
  const cross = targetX - (data!.plan?.ends.into ?? 1) * 16;
  const gradient = gradientOrder(wire.to) > 0 && gradientOrder(wire.from) > 0;
  const classes = ["wire", form, wrong ? "wrong" : "", selected ? "selected" : "", gradient ? "gradient" : ""].filter(Boolean).join(" ");
  return (
    <>
      <g className={classes}>
        <BaseEdge path={path} interactionWidth={18} />
        {wrong && <path className="break" d={`M${cross - 4},${targetY - 6}l8,12m0,-12l-8,12`} />}
      </g>
      {text && spot && (
        <EdgeLabelRenderer>
          <span className={`chip tint-${tintOf(text)} ${wrong ? "wrong" : ""}`} style={{ transform: `translate(-50%, -50%) translate(${spot.x}px, ${spot.y}px)` }}>
            {text}
          </span>
        </EdgeLabelRenderer>
      )}
    </>
  );
});

const TINTS = 6;

/** Equal shapes have equal tints, so that a mismatch is seen before it is read. */
function tintOf(text: string): number {
  let sum = 7;
  for (const letter of text) sum = (sum * 31 + letter.charCodeAt(0)) % 9973;
  return sum % TINTS;
}
