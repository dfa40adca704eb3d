// SPDX-License-Identifier: Apache-2.0
/** A plane through a tensor: any two axes, a slider for every other one, the value under the pointer. */

import { useEffect, useMemo, useRef, useState } from "react";
import { colourOf, css, inkOn, paint, type Scale } from "../core/colour";
import * as format from "../core/format";
import { flatIndex, indexAt, indexText, planeOf, rangeOf, type Range, type Tensor } from "../core/tensor";
import { aimOf, indexUnder, TraceMarks } from "../editor/TraceMarks";
import { endTrace, pinTrace, traceAt, withVoxel, type Voxel } from "../state/runs";
import { useStudio } from "../state/store";
import { useWords } from "../state/words";

interface Props {
  readonly tensor: Tensor;
  readonly names: readonly string[];
  readonly scale: Scale;
  readonly title: string;
  /** Whose values these are; a difference is of no block. */
  readonly of?: { readonly block: string; readonly output: string };
}

const MOST_NUMBERS = 16;
const SIZE = 560;

function firstAxes(names: readonly string[]): readonly [number, number] {
  const height = names.indexOf("H");
  const width = names.indexOf("W");
  if (height >= 0 && width >= 0) return [height, width];
  return [names.length - 2, names.length - 1];
}

export function Slices({ tensor, names, scale: preferred, title, of }: Props) {
  const words = useWords();
  const rank = tensor.shape.length;
  const [axes, setAxes] = useState<readonly [number, number]>(() => firstAxes(names));
  const [place, setPlace] = useState<readonly number[]>(() => tensor.shape.map((size, axis) => (rank === 5 && names[axis] === "D" ? Math.floor((size - 1) / 2) : 0)));
  const [scale, setScale] = useState<Scale>(preferred);
  const [cursor, setCursor] = useState<readonly [number, number] | null>(null);
  const whole = useMemo(() => rangeOf(tensor.data), [tensor]);
  const [range, setRange] = useState<Range>(whole);
  const aim = useStudio((state) => (of ? aimOf(state.trace, of) : null));
  useEffect(() => {
    if (aim) setPlace(aim);
  }, [aim]);
  const plane = useMemo(() => planeOf(tensor, axes[0], axes[1], place), [tensor, axes, place]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const cell = Math.max(1, Math.min(96, Math.floor(SIZE / Math.max(plane.rows, plane.columns))));
  useEffect(() => draw(canvas.current, plane, range, scale, cell), [plane, range, scale, cell]);
  if (rank === 0) return <p className="big-number">{format.number(tensor.data[0] ?? NaN)}</p>;
  const under = (event: React.MouseEvent): Voxel | null => {
    const index = indexUnder(event, tensor.shape, axes, place);
    return index && of ? { ...of, index, value: tensor.data[flatIndex(tensor.shape, index)] ?? NaN } : null;
  };
  const onMove = (event: React.MouseEvent) => {
    const index = indexUnder(event, tensor.shape, axes, place);
    setCursor(index ? [index[axes[0]] ?? 0, index[axes[1]] ?? 0] : null);
    if (of) withVoxel(under(event), traceAt);
  };
  const onLeave = () => {
    setCursor(null);
    endTrace();
  };
  const flat = cursor ? plane.flat(cursor[0], cursor[1]) : null;
  const save = () => canvas.current?.toBlob((data) => data && saveAs(`${title.replaceAll("/", "_")}.png`, data));
  return (
    <div className="slices">
      <div className="row-head">
        <AxisChoice label={words("viewer.rows")} names={names} value={axes[0]} onChange={(axis) => setAxes([axis, axis === axes[1] ? axes[0] : axes[1]])} />
        <AxisChoice label={words("viewer.columns")} names={names} value={axes[1]} onChange={(axis) => setAxes([axis === axes[0] ? axes[1] : axes[0], axis])} />
        <label className="inline">
          <span>{words("viewer.scale")}</span>
          <select value={scale} onChange={(event) => setScale(event.target.value as Scale)}>
            <option value="values">{words("viewer.scale.values")}</option>
            <option value="signed">{words("viewer.scale.signed")}</option>
            <option value="grey">{words("viewer.scale.grey")}</option>
          </select>
        </label>
        <Levels range={range} whole={whole} onChange={setRange} />
        <span className="grow" />
        <button type="button" onClick={save}>
          {words("viewer.exportPng")}
        </button>
      </div>
      {tensor.shape.map((size, axis) =>
        axis === axes[0] || axis === axes[1] || size < 2 ? null : (
          <label key={axis} className="slider">
            <span>{names[axis]}</span>
            <input type="range" min={0} max={size - 1} value={place[axis]} onChange={(event) => setPlace(place.with(axis, Number(event.target.value)))} />
            <output>
              {place[axis]} / {size - 1}
            </output>
          </label>
        ),
      )}
      <div className="slice-frame">
        <div className="slice-marks">
          <canvas
            ref={canvas}
            className="slice"
            width={plane.columns * cell}
            height={plane.rows * cell}
            role="img"
            aria-label={`${names[axes[0]] ?? ""} × ${names[axes[1]] ?? ""}`}
            onMouseMove={onMove}
            onMouseLeave={onLeave}
            onClick={(event) => withVoxel(under(event), pinTrace)}
          />
          {of && <TraceMarks {...of} shape={tensor.shape} axes={axes} place={place} />}
        </div>
        <ScaleBar range={range} scale={scale} />
      </div>
      <p className="readout" aria-live="off">
        {flat !== null ? (
          <>
            <code>{indexText(indexAt(tensor.shape, flat))}</code> = <strong>{String(tensor.data[flat])}</strong>
          </>
        ) : (
          <span className="hint">
            {names[axes[0]]} ↓ {names[axes[1]]} →
          </span>
        )}
      </p>
    </div>
  );
}

/** The values that the colours begin and end with. */
function Levels({ range, whole, onChange }: { range: Range; whole: Range; onChange: (range: Range) => void }) {
  const words = useWords();
  const field = (end: "min" | "max") => (
    <input
      type="number"
      className="level"
      step="any"
      aria-label={words(end === "min" ? "viewer.lowest" : "viewer.highest")}
      value={range[end]}
      onChange={(event) => Number.isFinite(event.target.valueAsNumber) && onChange({ ...range, [end]: event.target.valueAsNumber })}
    />
  );
  return (
    <span className="levels">
      {field("min")} – {field("max")}
      {(range.min !== whole.min || range.max !== whole.max) && (
        <button type="button" className="tiny" onClick={() => onChange(whole)}>
          {words("viewer.allValues")}
        </button>
      )}
    </span>
  );
}

function AxisChoice({ label, names, value, onChange }: { label: string; names: readonly string[]; value: number; onChange: (axis: number) => void }) {
  if (value < 0) return null;
  return (
    <label className="inline">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(Number(event.target.value))}>
        {names.map((name, axis) => (
          <option key={axis} value={axis}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

export function ScaleBar({ range, scale }: { range: { min: number; max: number }; scale: Scale }) {
  const reach = Math.max(Math.abs(range.min), Math.abs(range.max));
  const [low, high] = scale === "signed" ? [-reach, reach] : [range.min, range.max];
  const stops = Array.from({ length: 9 }, (_, i) => css(colourOf(high - ((high - low) * i) / 8, { min: low, max: high }, scale)));
  return (
    <div className="scale-bar">
      <span>{format.number(high, 4)}</span>
      <i style={{ background: `linear-gradient(${stops.join(",")})` }} />
      <span>{format.number(low, 4)}</span>
    </div>
  );
}

function draw(canvas: HTMLCanvasElement | null, plane: ReturnType<typeof planeOf>, range: { min: number; max: number }, scale: Scale, cell: number): void {
  const context = canvas?.getContext("2d");
  if (!canvas || !context || plane.rows * plane.columns === 0) return;
  const image = new ImageData(plane.columns, plane.rows);
  paint(image, plane.values, range, scale);
  const small = new OffscreenCanvas(plane.columns, plane.rows);
  small.getContext("2d")!.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (plane.rows > MOST_NUMBERS || plane.columns > MOST_NUMBERS || cell < 28) return;
  context.font = `${Math.min(15, cell / 3.4)}px ui-monospace, monospace`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  plane.values.forEach((value, at) => {
    context.fillStyle = inkOn(colourOf(value, range, scale));
    context.fillText(format.short(value), ((at % plane.columns) + 0.5) * cell, (Math.floor(at / plane.columns) + 0.5) * cell);
  });
}

export function saveAs(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
