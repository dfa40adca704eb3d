// SPDX-License-Identifier: Apache-2.0
/** One plane through a volume: its picture in the shape of its voxels, what is drawn on it, and the cursor. */

import { useEffect, useRef } from "react";
import { css, paint, type Scale } from "../core/colour";
import { bordersOf, labelColour } from "../core/outlines";
import type { Orthogonal } from "../core/space";
import type { Range } from "../core/tensor";
import { Cross, TraceMarks } from "../editor/TraceMarks";
import { useWords } from "../state/words";
import { usePlane, type Shown, type Source } from "./planeValues";
import { ShareMarks } from "./ShareMarks";

export interface PlaneProps {
  readonly of: { readonly block: string; readonly output: string };
  readonly source: Source;
  readonly names: readonly string[];
  readonly plane: Orthogonal;
  readonly index: readonly number[];
  readonly range: Range;
  readonly scale: Scale;
  /** Points of the screen to a unit of space. */
  readonly zoom: number;
  readonly labels: Source | null;
  readonly text: string;
  readonly onPoint: (index: number[], how: "hover" | "drag" | "click" | "key") => void;
  readonly onLeave: () => void;
  readonly onWindow: (wider: number, higher: number) => void;
  readonly onPin: () => void;
  readonly onLabels: (labels: readonly number[]) => void;
}

export function PlaneView(props: PlaneProps) {
  const { of, source, names, plane, index, zoom } = props;
  const words = useWords();
  const [down, right] = plane.axes;
  const [rows, columns] = [source.shape[down]!, source.shape[right]!];
  const shown = usePlane(source, plane.axes, index);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = { width: Math.max(1, columns * plane.voxel[1] * zoom), height: Math.max(1, rows * plane.voxel[0] * zoom) };
  const { range, scale } = props;
  useEffect(() => draw(canvas.current, shown, range, scale), [shown, range, scale]);
  const moves = usePointer(props, rows, columns);
  const most = plane.normal < 0 ? 0 : source.shape[plane.normal]! - 1;
  const at = plane.normal < 0 ? 0 : index[plane.normal]!;
  const title = words(`planes.${plane.view}`);
  const name = plane.view === "stored" ? `${names[down]} × ${names[right]}` : title;
  const [top, rightmost, bottom, left] = plane.letters;
  return (
    <figure className="plane">
      <figcaption>
        <strong>{name}</strong>
        <span className="hint">{plane.normal >= 0 && `${names[plane.normal]} ${at} / ${most}`}</span>
      </figcaption>
      <div
        className="plane-frame"
        style={size}
        role="slider"
        tabIndex={0}
        aria-label={name}
        aria-orientation="vertical"
        aria-valuemin={0}
        aria-valuemax={most}
        aria-valuenow={at}
        aria-valuetext={props.text}
        data-plane={plane.key}
        {...moves}
      >
        <div className="plane-turned" style={{ transform: `scale(${plane.flip[1] ? -1 : 1}, ${plane.flip[0] ? -1 : 1})` }}>
          <canvas ref={canvas} className="plane-picture" width={shown?.columns ?? 1} height={shown?.rows ?? 1} data-step={shown?.step ?? 0} data-place={shown && plane.normal >= 0 ? shown.at[plane.normal] : -1} />
          {props.labels && <Outlines {...props} labels={props.labels} size={size} />}
          <Cross rows={rows} columns={columns} row={index[down]!} column={index[right]!} />
          <TraceMarks {...of} shape={source.shape} axes={plane.axes} place={index} />
        </div>
        <ShareMarks {...of} shape={source.shape} plane={plane} index={index} size={size} />
        {[["top", top], ["right", rightmost], ["bottom", bottom], ["left", left]].map(([side, letter]) => letter && <b key={side} className={`side ${side}`} aria-hidden="true">{letter}</b>)}
      </div>
    </figure>
  );
}

/** Pointer, wheel and keys of a plane. */
function usePointer({ plane, source, index, onPoint, onLeave, onWindow, onPin }: PlaneProps, rows: number, columns: number) {
  const frame = useRef<HTMLDivElement>(null);
  const pressed = useRef<{ x: number; y: number; window: boolean; moved: boolean } | null>(null);
  const [down, right] = plane.axes;
  const under = (event: React.MouseEvent): number[] => {
    const box = event.currentTarget.getBoundingClientRect();
    const part = (place: number, size: number, count: number, flip: boolean) => {
      const cell = Math.min(count - 1, Math.max(0, Math.floor((place / size) * count)));
      return flip ? count - 1 - cell : cell;
    };
    return index.with(down, part(event.clientY - box.top, box.height, rows, plane.flip[0])).with(right, part(event.clientX - box.left, box.width, columns, plane.flip[1]));
  };
  const step = (axis: number, by: number) => {
    if (axis < 0) return;
    onPoint(index.with(axis, Math.min(source.shape[axis]! - 1, Math.max(0, index[axis]! + by))), "key");
  };
  const onWheel = (event: WheelEvent) => {
    if (event.ctrlKey || plane.normal < 0) return;
    event.preventDefault();
    step(plane.normal, Math.sign(event.deltaY) * (event.shiftKey ? 10 : 1));
  };
  // React listens to the wheel passively, and the panel would scroll along.
  useEffect(() => {
    const element = frame.current;
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  });
  return {
    ref: frame,
    onContextMenu: (event: React.MouseEvent) => event.preventDefault(),
    onPointerDown: (event: React.PointerEvent<HTMLDivElement>) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      pressed.current = { x: event.clientX, y: event.clientY, window: event.button === 2 || event.shiftKey, moved: false };
    },
    onPointerMove: (event: React.PointerEvent) => {
      const from = pressed.current;
      if (!from) return onPoint(under(event), "hover");
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.hypot(x, y) < 4) return;
      from.moved = true;
      if (!from.window) return onPoint(under(event), "drag");
      onWindow(x, y);
      [from.x, from.y] = [event.clientX, event.clientY];
    },
    onPointerUp: (event: React.PointerEvent) => {
      const from = pressed.current;
      pressed.current = null;
      if (from && !from.moved && !from.window) onPoint(under(event), "click");
    },
    onPointerLeave: () => !pressed.current && onLeave(),
    onKeyDown: (event: React.KeyboardEvent) => {
      const far = event.shiftKey ? 10 : 1;
      const keys: { readonly [key: string]: () => void } = {
        ArrowUp: () => step(down, plane.flip[0] ? far : -far), ArrowDown: () => step(down, plane.flip[0] ? -far : far),
        ArrowLeft: () => step(right, plane.flip[1] ? far : -far), ArrowRight: () => step(right, plane.flip[1] ? -far : far),
        PageUp: () => step(plane.normal, far), PageDown: () => step(plane.normal, -far),
        Home: () => step(plane.normal, -Infinity), End: () => step(plane.normal, Infinity), Enter: onPin,
      };
      const work = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
      if (!work) return;
      event.preventDefault();
      event.stopPropagation();
      work();
    },
  };
}

/** The borders of labels, as lines that keep their width. */
function Outlines({ labels, plane, index, size, onLabels }: PlaneProps & { labels: Source; size: { width: number; height: number } }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const held = labels.shape.map((count, axis) => Math.min(index[axis] ?? 0, count - 1));
  const shown = usePlane(labels, plane.axes, held);
  const dense = Math.min(2, devicePixelRatio);
  const [width, height] = [Math.round(size.width * dense), Math.round(size.height * dense)];
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !shown) return;
    const borders = bordersOf(shown.values, shown.rows, shown.columns);
    onLabels([...borders.keys()]);
    context.setTransform(width / shown.columns, 0, 0, height / shown.rows, 0, 0);
    context.clearRect(0, 0, shown.columns, shown.rows);
    for (const [label, sides] of borders) {
      const path = new Path2D();
      for (const [x0, y0, x1, y1] of sides) {
        path.moveTo(x0, y0);
        path.lineTo(x1, y1);
      }
      const scaled = new Path2D();
      scaled.addPath(path, new DOMMatrix([width / shown.columns, 0, 0, height / shown.rows, 0, 0]));
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.lineCap = "square";
      context.strokeStyle = css(labelColour(label));
      context.lineWidth = 2 * dense;
      context.stroke(scaled);
    }
  }, [shown, width, height, dense, onLabels]);
  return <canvas ref={canvas} className="plane-outlines" width={width} height={height} data-place={shown && plane.normal >= 0 ? shown.at[plane.normal] : -1} />;
}

function draw(canvas: HTMLCanvasElement | null, shown: Shown | null, range: Range, scale: Scale): void {
  const context = canvas?.getContext("2d");
  if (!context || !shown || shown.rows * shown.columns === 0) return;
  const image = new ImageData(shown.columns, shown.rows);
  paint(image, shown.values, range, scale);
  context.putImageData(image, 0, 0);
}
