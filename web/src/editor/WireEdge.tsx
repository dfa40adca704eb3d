// SPDX-License-Identifier: Apache-2.0
/** A wire: its lane between the blocks, its colour by element type, its shape on a chip. */

import { BaseEdge, EdgeLabelRenderer, getSmoothStepPath, Position, type Edge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { useShallow } from "zustand/react/shallow";
import * as format from "../core/format";
import type { Wire } from "../core/model";
import { formOf } from "../core/pins";
import { activeTab, prefixOf, useStudio } from "../state/store";
import { gradientOrder } from "./BlockNode";
import { earlyTurn, lateTurn, type Ends, type Plan } from "./routes";
import { problemsOf } from "./useBlock";

export type WireEdgeType = Edge<{ wire: Wire; plan: Plan }, "wire">;

const CORNER = 8;
/** Handles are wider than the pins inside of them; wires end at the pin. */
const PIN = 9;

interface Route {
  readonly path: string;
  readonly x: number;
  readonly y: number;
}

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

/** The way of a wire and the place of its chip: on the longest level part, else on the upright one. */
function route(ends: Ends, plan: Plan, chip: number): Route {
  const { x0, y0, x1, y1 } = ends;
  if (x1 < x0 + 30) {
    const [path, x, y] = getSmoothStepPath({
      sourceX: x0, sourceY: y0, targetX: x1, targetY: y1,
      sourcePosition: Position.Right, targetPosition: Position.Left, borderRadius: CORNER, offset: 24 + plan.lane * 8,
    });
    return { path, x, y };
  }
  if (Math.abs(y1 - y0) < 1 && typeof plan.via !== "number") return { path: `M${x0},${y0}L${x1},${y1}`, x: (x0 + x1) / 2, y: y0 };
  const late = lateTurn(ends, plan.lane);
  const early = earlyTurn(ends, plan.lane);
  if (typeof plan.via === "number") {
    const path = bent([[x0, y0], [early, y0], [early, plan.via], [late, plan.via], [late, y1], [x1, y1]]);
    return { path, x: (early + late) / 2, y: plan.via };
  }
  const turn = plan.via === "early" ? early : late;
  const path = bent([[x0, y0], [turn, y0], [turn, y1], [x1, y1]]);
  if (turn - x0 > chip + 24) return { path, x: x0 + 12 + chip / 2, y: y0 };
  return x1 - turn > chip + 24 ? { path, x: x1 - 14 - chip / 2, y: y1 } : { path, x: turn, y: (y0 + y1) / 2 };
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
  const { path, x, y } = route({ x0: sourceX - PIN, y0: sourceY, x1: targetX + PIN, y1: targetY }, data!.plan, chip);
  const gradient = gradientOrder(wire.to) > 0 && gradientOrder(wire.from) > 0;
  const classes = ["wire", form, wrong ? "wrong" : "", selected ? "selected" : "", gradient ? "gradient" : ""].filter(Boolean).join(" ");
  return (
    <>
      <g className={classes}>
        <BaseEdge path={path} interactionWidth={18} />
        {wrong && <path className="break" d={`M${targetX - 20},${targetY - 6}l8,12M${targetX - 12},${targetY - 6}l-8,12`} />}
      </g>
      {text && (
        <EdgeLabelRenderer>
          <span className={`chip tint-${tintOf(text)} ${wrong ? "wrong" : ""}`} style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}>
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
