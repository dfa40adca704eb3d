// SPDX-License-Identifier: Apache-2.0
/** Three planes through a volume with one cursor, which the pictures of all blocks follow. */

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, type Brief, type Summary } from "../core/api";
import { css, type Scale } from "../core/colour";
import * as format from "../core/format";
import { labelColour } from "../core/outlines";
import { alongText, planesOf, pointAt, pointText, spatialAxes, type Orthogonal, type Spot } from "../core/space";
import { flatIndex, indexText, type Range } from "../core/tensor";
import { aimOf } from "../editor/TraceMarks";
import { TracePanel } from "../panels/TracePanel";
import { cursorIn, placeOfOutput, usePlaces } from "../state/places";
import { endTrace, pinTrace, traceAt, type Voxel } from "../state/runs";
import { prefixOf, studio, update, useStudio, type Tab } from "../state/store";
import { useWords } from "../state/words";
import { ScaleBar } from "./Slices";
import { PlaneView } from "./PlaneView";
import type { Source } from "./planeValues";
import { Windowing } from "./Windowing";

interface Props {
  readonly tab: Tab;
  readonly source: Source;
  readonly brief: Pick<Brief, "min" | "max">;
  readonly histogram: Summary["histogram"];
  readonly names: readonly string[];
  readonly scale: Scale;
  readonly of: { readonly block: string; readonly output: string };
}

const GAP = 14;
const TALLEST = 420;

export default function Planes(props: Props) {
  const { tab, source, names, of } = props;
  const place = placeOfOutput(usePlaces(tab), tab, of.block, of.output);
  const known = place && place.axes.length === source.shape.length ? place : null;
  const spot = useMemo<Spot>(() => ({ shape: source.shape, names, place: known }), [source.shape, names, known]);
  const planes = useMemo(() => planesOf(source.shape, names, known), [source.shape, names, known]);
  const words = useWords();
  if (planes.length === 0) return <p className="none">{words("planes.none")}</p>;
  return <Linked {...props} spot={spot} planes={planes} />;
}

function Linked({ tab, source, brief, histogram, names, scale: preferred, of, spot, planes }: Props & { spot: Spot; planes: readonly Orthogonal[] }) {
  const words = useWords();
  const place = spot.place;
  const [index, setIndex] = useCursorHere(of, spot);
  const [asked, setScale] = useState<Scale | null>(null);
  const scale = asked ?? (place && preferred === "values" ? "grey" : preferred);
  const whole = useMemo<Range>(() => ({ min: brief.min ?? 0, max: brief.max ?? 0 }), [brief]);
  const [chosen, setChosen] = useState<Range | null>(null);
  const range = chosen ?? whole;
  const [hover, setHover] = useState<readonly number[] | null>(null);
  const choices = useLabelChoices(tab, spot, of);
  const [labels, setLabels] = useState<Source | null>(null);
  const [seen, setSeen] = useState<ReadonlySet<number>>(new Set());
  const addSeen = useCallback((found: readonly number[]) => setSeen((now) => (found.every((one) => now.has(one)) ? now : new Set([...now, ...found]))), []);
  const free = source.shape.flatMap((size, axis) => (size > 1 && !spatialAxes(source.shape, names, place).includes(axis) ? [axis] : []));
  const frame = useRef<HTMLDivElement>(null);
  const zoom = useZoom(frame, planes, source.shape);
  const shown = hover ?? index;
  const value = useValue(source, shown);
  const text = `${indexText(shown)} = ${value ?? "…"}`;
  const point = pointAt(place, shown);
  const where = point ? pointText(point, place!.unit) : alongText(place, names, shown);
  const voxel = (at: readonly number[]): Voxel => ({ ...of, index: at, value: valueHere(source, at) ?? { hash: source.hash } });
  const onPoint = (at: number[], how: "hover" | "drag" | "click" | "key") => {
    setHover(how === "hover" ? at : null);
    if (how !== "hover") setIndex(at);
    if (how === "click") pinTrace(voxel(at));
    else traceAt(voxel(at));
  };
  const onWindow = (wider: number, higher: number) => {
    const width = Math.max(1e-12, (range.max - range.min) * Math.exp(wider / 160));
    const middle = (range.min + range.max) / 2 - (higher * (range.max - range.min)) / 300;
    setChosen({ min: middle - width / 2, max: middle + width / 2 });
  };
  return (
    <div className="slices planes">
      <div className="row-head">
        <label className="inline">
          <span>{words("viewer.scale")}</span>
          <select value={scale} onChange={(event) => setScale(event.target.value as Scale)}>
            <option value="grey">{words("viewer.scale.grey")}</option>
            <option value="values">{words("viewer.scale.values")}</option>
            <option value="signed">{words("viewer.scale.signed")}</option>
          </select>
        </label>
        <Windowing range={range} whole={whole} histogram={histogram} onChange={setChosen} />
        {choices.length > 0 && (
          <label className="inline">
            <span>{words("planes.labels")}</span>
            <select
              value={labels?.hash ?? ""}
              onChange={(event) => {
                setSeen(new Set());
                setLabels(choices.find((one) => one.hash === event.target.value) ?? null);
              }}
            >
              <option value="">{words("planes.noLabels")}</option>
              {choices.map((one) => (
                <option key={one.path} value={one.hash}>
                  {one.path}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {free.map((axis) => (
        <label key={axis} className="slider">
          <span>{names[axis]}</span>
          <input type="range" min={0} max={source.shape[axis]! - 1} value={index[axis]} onChange={(event) => setIndex(index.with(axis, Number(event.target.value)))} />
          <output>
            {index[axis]} / {source.shape[axis]! - 1}
          </output>
        </label>
      ))}
      <div className="plane-rows" ref={frame}>
        {planes.map((plane) => (
          <PlaneView
            key={plane.key} of={of} source={source} names={names} plane={plane} index={index} range={range} scale={scale} zoom={zoom} labels={labels} text={text}
            onPoint={onPoint} onWindow={onWindow} onPin={() => pinTrace(voxel(index))} onLabels={addSeen}
            onLeave={() => {
              setHover(null);
              endTrace();
            }}
          />
        ))}
        <div className="plane-facts">
          <p className="readout" aria-live="off">
            <code>{indexText(shown)}</code> = <strong>{value === null ? "…" : String(value)}</strong>
          </p>
          {where && <p className="readout where">{where}</p>}
          {place && <p className="hint">{words("planes.voxels", { sizes: place.axes.flatMap((one) => (one ? [format.number(one.spacing, 4)] : [])).join(" × "), unit: place.unit })}</p>}
          {place?.lost && <p className="hint">{words("planes.lost", { why: place.lost })}</p>}
          {labels && (
            <ul className="label-legend" aria-label={words("planes.labels")}>
              {[...seen].toSorted((a, b) => a - b).map((label) => (
                <li key={label}>
                  <i style={{ background: css(labelColour(label)) }} />
                  {label}
                </li>
              ))}
            </ul>
          )}
          <ScaleBar range={range} scale={scale} />
          <p className="hint">{words("planes.keys")}</p>
          <TracePanel />
        </div>
      </div>
    </div>
  );
}

/** The cursor in this output: moved here, or where the cursor or a trace of another block leads. */
function useCursorHere(of: Props["of"], spot: Spot): [readonly number[], (index: readonly number[]) => void] {
  const aim = useStudio((state) => aimOf(state.trace, of));
  const [index, setIndex] = useState<readonly number[]>(() => {
    const { trace, cursor } = studio();
    return aimOf(trace, of) ?? cursorIn(cursor, of, spot) ?? middleOf(spot);
  });
  const cursor = useStudio((state) => state.cursor);
  useEffect(() => {
    if (aim) setIndex(aim);
  }, [aim]);
  const before = useRef(cursor);
  useEffect(() => {
    // A trace that led here stays until the cursor moves on.
    if (cursor === before.current && aimOf(studio().trace, of)) return;
    before.current = cursor;
    const there = cursorIn(cursor, of, spot);
    if (there) setIndex(there);
  }, [cursor, of, spot]);
  const move = (next: readonly number[]) => {
    setIndex(next);
    update({ cursor: { ...of, index: next, spot } });
  };
  return [index, move];
}

function middleOf({ shape, names, place }: Spot): number[] {
  const axes = spatialAxes(shape, names, place);
  return shape.map((size, axis) => (axes.includes(axis) ? Math.floor((size - 1) / 2) : 0));
}

/** Room for what stands over a plane, and beside the third where there are two in a row. */
const CAPTION = 26;
const FACTS = 230;
const LEAST_TALL = 260;

/** Points of the screen to a unit of space: three planes in a row, or two above one and the facts, whichever is larger. */
function useZoom(frame: React.RefObject<HTMLDivElement | null>, planes: readonly Orthogonal[], shape: readonly number[]): number {
  const [room, setRoom] = useState({ width: 700, height: 560 });
  useEffect(() => {
    const [element, panel] = [frame.current, frame.current?.parentElement];
    if (!element || !panel) return undefined;
    const observer = new ResizeObserver(() => setRoom({ width: element.clientWidth, height: Math.max(LEAST_TALL, panel.clientHeight - element.offsetTop + panel.offsetTop - 16) }));
    observer.observe(panel);
    return () => observer.disconnect();
  }, [frame]);
  const sizes = (axis: 0 | 1) => planes.map((plane) => shape[plane.axes[axis]]! * plane.voxel[axis]) as [number, number?, number?];
  const [[w0, w1 = 0, w2 = 0], [h0, h1 = 0, h2 = 0]] = [sizes(1), sizes(0)];
  const row = Math.min((room.width - 2 * GAP) / (w0 + w1 + w2), (room.height - CAPTION) / Math.max(h0, h1, h2));
  const below = Math.min((room.width - GAP) / (w0 + w1), (room.width - GAP - FACTS) / Math.max(w2, 1e-9));
  const square = Math.min(below, (room.height - GAP - 2 * CAPTION) / (Math.max(h0, h1) + h2));
  return Math.min(Math.max(row, square), TALLEST / Math.max(h0, h1, h2));
}

function valueHere(source: Source, index: readonly number[]): number | null {
  return source.tensor ? (source.tensor.data[flatIndex(source.shape, index)] ?? NaN) : null;
}

/** The value of an element, exact: of a large tensor it is asked for. */
function useValue(source: Source, index: readonly number[]): number | null {
  const [told, setTold] = useState<{ readonly at: string; readonly value: number } | null>(null);
  const at = index.join();
  useEffect(() => {
    if (source.tensor) return undefined;
    let wanted = true;
    const timer = window.setTimeout(() => {
      api.tensor(source.hash, at).then(({ data }) => wanted && setTold({ at, value: data[0] ?? NaN }), () => undefined);
    }, 20);
    return () => {
      wanted = false;
      window.clearTimeout(timer);
    };
  }, [source, at]);
  if (source.tensor) return valueHere(source, index);
  return told?.at === at ? told.value : null;
}

const WHOLE_NUMBERS = /^(u?int\d+|bool)$/;

/** Whole numbers of other blocks that lie on the same voxels: label maps. */
function useLabelChoices(tab: Tab, spot: Spot, of: Props["of"]): (Source & { readonly path: string })[] {
  return useMemo(() => {
    const prefix = prefixOf(tab);
    const size = spatialAxes(spot.shape, spot.names, spot.place);
    const fits = (shape: readonly number[]) => shape.length === spot.shape.length && size.every((axis) => shape[axis] === spot.shape[axis]);
    return Object.values(tab.results).flatMap((block) =>
      block.block.startsWith(prefix)
        ? block.outputs.flatMap((one) => {
            const name = block.block.slice(prefix.length);
            const isThis = name === of.block && one.name === of.output;
            return one.hash && !isThis && WHOLE_NUMBERS.test(one.dtype) && fits(one.shape) ? [{ path: `${name}.${one.name}`, hash: one.hash, dtype: one.dtype, shape: one.shape, tensor: null }] : [];
          })
        : [],
    );
  }, [tab, spot, of]);
}
