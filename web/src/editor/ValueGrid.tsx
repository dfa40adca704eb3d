// SPDX-License-Identifier: Apache-2.0
/** Values inside a block: small grids of numbers, or a heat map where there are too many. */

import { useEffect, useMemo, useRef, useState } from "react";
import { api, type Brief, type Summary, type TraceWindow } from "../core/api";
import { colourOf, css, inkOn, paint, type Scale } from "../core/colour";
import * as format from "../core/format";
import { gridsOf, layoutOf, type Grid, type Layout } from "../core/slices";
import { flatIndex, planeOf, rangeOf, type Plane, type Range } from "../core/tensor";
import { endTrace, pinTrace, traceAt, withVoxel, type Voxel } from "../state/runs";
import { useStudio } from "../state/store";
import { followed } from "../state/places";
import { usePlane, type Source } from "../viewer/planeValues";
import { Cross, indexUnder, TraceMarks } from "./TraceMarks";

export interface Values {
  readonly shape: readonly number[];
  /** All values in order; null where only a summary is known. */
  readonly values: readonly number[] | null;
  readonly hash: string | null;
  readonly brief: Brief | null;
}

interface Props {
  readonly block: string;
  readonly output: string;
  readonly layout: string;
  readonly scale: Scale;
  readonly data: Values;
}

export function ValueGrid({ block, output, layout: letters, scale, data }: Props) {
  const layout = useMemo(() => layoutOf(data.shape, letters), [data.shape, letters]);
  const [held, setHeld] = useState(0);
  const heldAxis = layout.heldAxes.find((axis) => data.shape[axis]! > 1);
  const place = useMemo(() => data.shape.map((_, axis) => (axis === heldAxis ? Math.min(held, data.shape[axis]! - 1) : 0)), [data.shape, heldAxis, held]);
  const grids = useMemo(() => gridsOf(data.shape, layout, place), [data, layout, place]);
  const ghost = data.values === null && data.brief === null && data.hash === null;
  if (data.shape.includes(0)) return <p className="values-note">{format.brackets(data.shape)}</p>;
  if (!grids || (!data.values && !ghost)) {
    return <HeatMap block={block} output={output} data={data} layout={layout} scale={scale} />;
  }
  const range = rangeOf(data.values ?? []);
  return (
    <div className="values">
      {heldAxis !== undefined && (
        <button
          type="button"
          className="tiny nodrag"
          onClick={() => setHeld((held + 1) % data.shape[heldAxis]!)}
          aria-label={`${layout.names[heldAxis]} ${place[heldAxis]}`}
        >
          {layout.names[heldAxis]!.toLowerCase()} = {place[heldAxis]} <span aria-hidden="true">▸</span>
        </button>
      )}
      <div className="grids">
        {grids.map((grid) => (
          <NumberGrid key={grid.key} grid={grid} layout={layout} range={range} scale={scale} block={block} output={output} shape={data.shape} values={data.values} />
        ))}
      </div>
    </div>
  );
}

interface GridProps {
  readonly grid: Grid;
  readonly layout: Layout;
  readonly range: Range;
  readonly scale: Scale;
  readonly block: string;
  readonly output: string;
  readonly shape: readonly number[];
  /** null where they are yet to come. */
  readonly values: readonly number[] | null;
}

function cellIndex(grid: Grid, layout: Layout, row: number, column: number): number[] {
  const index = [...grid.index];
  if (layout.rowAxis >= 0) index[layout.rowAxis] = row;
  if (layout.columnAxis >= 0) index[layout.columnAxis] = column;
  return index;
}

function sameIndex(left: readonly number[], right: readonly number[]): boolean {
  return left.length === right.length && left.every((one, axis) => one === right[axis]);
}

function inWindow(window: Pick<TraceWindow, "lo" | "hi" | "steps">, index: readonly number[]): boolean {
  return index.every((one, axis) => {
    const low = window.lo[axis] ?? 0;
    return one >= low && one < (window.hi[axis] ?? 0) && (one - low) % (window.steps[axis] || 1) === 0;
  });
}

function NumberGrid({ grid, layout, range, scale, block, output, shape, values }: GridProps) {
  const trace = useStudio((state) => state.trace);
  const cursor = useStudio((state) => (state.cursor && shape.length > 2 ? followed(state, { block, output }, shape, layout.names) : ""));
  const source = `${block}.${output}`;
  const windows = trace?.windows.filter((window) => window.source === source) ?? [];
  const reached = trace?.reached.filter((one) => one.output === source) ?? [];
  const here = trace?.block === block && trace.output === output ? trace.index : null;
  const window = windows[0];
  const touched = window !== undefined && layout.sliceAxes.every((axis) => grid.index[axis]! >= window.lo[axis]! && grid.index[axis]! < window.hi[axis]!);
  const pads = touched ? padSides(window, layout) : "";
  const cells = Array.from({ length: grid.rows * grid.columns }, (_, at) => {
    const index = cellIndex(grid, layout, Math.floor(at / grid.columns), at % grid.columns);
    if (!values) return <span key={at} className="cell ghost" />;
    const value = values[flatIndex(shape, index)]!;
    const colour = colourOf(value, range, scale);
    const marks = [
      cursor !== "" && cursor === index.join() ? "at-cursor" : "",
      here && sameIndex(here, index) ? "traced" : "",
      windows.some((one) => inWindow(one, index)) ? "in-window" : windows.length > 0 ? "outside" : "",
      reached.some((one) => inWindow(one, index)) ? "reached" : "",
      windows.some((one) => one.winner && sameIndex(one.winner, index)) ? "winner" : "",
      windows.some((one) => one.ties.length > 1 && one.ties.some((tie) => sameIndex(tie, index))) ? "tie" : "",
    ];
    return (
      <span
        key={at}
        className={`cell ${marks.filter(Boolean).join(" ")}`}
        style={{ background: css(colour), color: inkOn(colour) }}
        title={`[${index.join("][")}] = ${value}`}
        onMouseEnter={() => traceAt({ block, output, index, value })}
        onMouseLeave={endTrace}
        onClick={() => pinTrace({ block, output, index, value })}
      >
        {format.short(value)}
      </span>
    );
  });
  return (
    <div className="grid-with-label">
      {grid.label && <span className="grid-label">{grid.label}</span>}
      <div className={`grid ${pads}`} style={{ gridTemplateColumns: `repeat(${grid.columns}, auto)` }}>
        {cells}
      </div>
    </div>
  );
}

/** The sides of a grid on which a window reaches over the edge. */
function padSides(window: TraceWindow, layout: Layout): string {
  const over = (side: "before" | "after", axis: number) => axis >= 0 && (window.padding[side][axis] ?? 0) > 0;
  return [
    over("before", layout.rowAxis) ? "pad-top" : "",
    over("after", layout.rowAxis) ? "pad-bottom" : "",
    over("before", layout.columnAxis) ? "pad-left" : "",
    over("after", layout.columnAxis) ? "pad-right" : "",
  ].filter(Boolean).join(" ");
}

const summaries = new Map<string, Summary>();

/** The summary of a tensor; asked once, because its name is its content. */
export function useSummary(hash: string | null): Summary | null {
  const [summary, setSummary] = useState<Summary | null>(hash === null ? null : (summaries.get(hash) ?? null));
  useEffect(() => {
    const known = hash === null ? null : (summaries.get(hash) ?? null);
    setSummary(known);
    if (hash === null || known) return undefined;
    let wanted = true;
    api.summary(hash).then(
      (found) => {
        summaries.set(hash, found);
        if (wanted) setSummary(found);
      },
      () => undefined,
    );
    return () => {
      wanted = false;
    };
  }, [hash]);
  return summary;
}

function middleOf(shape: readonly number[], layout: Layout): number[] {
  return shape.map((size, axis) => (layout.names[axis] === "D" ? Math.floor(size / 2) : 0));
}

/** The plane through the middle of values that are all here: of a constant that is too large for numbers. */
function middlePlane(data: Values, layout: Layout): Plane | null {
  if (!data.values || data.shape.length < 2) return null;
  const tensor = { dtype: "float64", shape: data.shape, data: Float64Array.from(data.values) };
  return planeOf(tensor, layout.rowAxis, layout.columnAxis, middleOf(data.shape, layout));
}

function statisticsOf(values: readonly number[]): Pick<Brief, "min" | "max" | "mean" | "nan"> {
  const finite = values.filter(Number.isFinite);
  const { min, max } = rangeOf(finite);
  const mean = finite.reduce((sum, value) => sum + value, 0) / Math.max(1, finite.length);
  return { min, max, mean, nan: values.filter(Number.isNaN).length };
}

interface HeatProps {
  readonly block: string;
  readonly output: string;
  readonly data: Values;
  readonly layout: Layout;
  readonly scale: Scale;
}

/** How fine a plane is asked for: the picture is small. */
const HEAT_CELLS = 64;

/** The plane that the cursor or a trace leads to, and where; nulls where neither leads here. */
function useFollowed({ block, output, data, layout }: HeatProps, axes: readonly [number, number]) {
  const text = useStudio((state) => (data.shape.length > 2 ? followed(state, { block, output }, data.shape, layout.names) : ""));
  const index = useMemo(() => (text ? text.split(",").map(Number) : null), [text]);
  const source = useMemo<Source | null>(() => {
    if (!index) return null;
    const tensor = data.values && { dtype: "float64", shape: data.shape, data: Float64Array.from(data.values) };
    return tensor || data.hash ? { hash: data.hash ?? "", dtype: "", shape: data.shape, tensor } : null;
    // Of one source while the cursor is here, wherever it is.
  }, [index === null, data]);
  const shown = usePlane(source, axes, index ?? data.shape.map(() => 0), HEAT_CELLS);
  return { index: source && index, shown: source && index ? shown : null };
}

function HeatMap(props: HeatProps) {
  const { block, output, data, layout, scale } = props;
  const summary = useSummary(data.hash);
  const canvas = useRef<HTMLCanvasElement>(null);
  const thumbnail = summary?.thumbnail;
  const plane = useMemo(() => middlePlane(data, layout), [data, layout]);
  const axes: readonly [number, number] = thumbnail && !plane ? [thumbnail.axes[0]!, thumbnail.axes[1]!] : [layout.rowAxis, layout.columnAxis];
  const { index: followedTo, shown: moved } = useFollowed(props, axes);
  const place = followedTo ?? (thumbnail && !plane ? thumbnail.at : middleOf(data.shape, layout));
  const under = (event: React.MouseEvent): Voxel | null => {
    const index = indexUnder(event, data.shape, axes, place);
    const value = index && data.values ? data.values[flatIndex(data.shape, index)]! : data.hash === null ? null : { hash: data.hash };
    return index && value !== null ? { block, output, index, value } : null;
  };
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context && moved) {
      const image = new ImageData(moved.columns, moved.rows);
      paint(image, moved.values, rangeOf(moved.values), scale);
      context.putImageData(image, 0, 0);
      return;
    }
    if (context && plane && plane.rows * plane.columns > 0) {
      const image = new ImageData(plane.columns, plane.rows);
      paint(image, plane.values, rangeOf(plane.values), scale);
      context.putImageData(image, 0, 0);
      return;
    }
    const [rows, columns] = thumbnail?.shape ?? [];
    if (!context || !thumbnail || !rows || !columns) return;
    const image = new ImageData(columns, rows);
    const bytes = Uint8Array.from(atob(thumbnail.values), (letter) => letter.charCodeAt(0));
    const range = { min: thumbnail.lo, max: thumbnail.hi };
    bytes.forEach((level, at) => {
      const value = level === 255 ? NaN : thumbnail.lo + ((thumbnail.hi - thumbnail.lo) * level) / 254;
      image.data.set([...colourOf(value, range, scale), 255], at * 4);
    });
    context.putImageData(image, 0, 0);
  }, [thumbnail, plane, moved, scale]);
  const stats = summary ?? data.brief ?? (data.values && statisticsOf(data.values));
  const size = (axis: number) => (axis < 0 ? 1 : data.shape[axis]!);
  const [rows, columns] = (moved ? [moved.rows, moved.columns] : plane ? null : thumbnail?.shape) ?? [size(layout.rowAxis), size(layout.columnAxis)];
  const flat = data.shape.length < 2;
  const text = (value: number | null | undefined) => (value === null || value === undefined ? "—" : format.number(value, 4));
  return (
    <div className="values">
      {!flat && (
        <div className="heat-frame">
          <canvas
            ref={canvas}
            className={`heat ${thumbnail || plane ? "" : "ghost"}`}
            width={columns}
            height={rows}
            style={{ aspectRatio: `${columns} / ${rows}` }}
            role="img"
            aria-label={format.brackets(data.shape)}
            onMouseMove={(event) => withVoxel(under(event), traceAt)}
            onMouseLeave={endTrace}
            onClick={(event) => withVoxel(under(event), pinTrace)}
          />
          {followedTo && <Cross rows={data.shape[axes[0]]!} columns={data.shape[axes[1]]!} row={followedTo[axes[0]]!} column={followedTo[axes[1]]!} />}
          <TraceMarks block={block} output={output} shape={data.shape} axes={axes} place={place} />
        </div>
      )}
      <p className="values-note">
        <span>min {text(stats?.min)}</span> <span>mean {text(stats?.mean)}</span> <span>max {text(stats?.max)}</span>
        {stats && stats.nan > 0 && <span className="bad">NaN {stats.nan}</span>}
      </p>
    </div>
  );
}
