// SPDX-License-Identifier: Apache-2.0
/** The values of a small tensor: as text, by shape and fill, or cell by cell. */

import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { filled, MOST_EDITED, numberFrom, reshaped, RULES, ruleText, shapeFrom, shapesFor, tensorJson, withCells } from "../core/cells";
import * as format from "../core/format";
import type { Json } from "../core/model";
import { gridsOf, layoutOf } from "../core/slices";
import { flatIndex, sizeOf } from "../core/tensor";
import { literalOf, type Literal } from "../core/values";
import { valueOfFile } from "../state/pages";
import { useWords } from "../state/words";
import { ArrayFile } from "../ui/ArrayFile";
import { TextField } from "./AttrField";

interface Props {
  readonly label: string;
  readonly value: Json | undefined;
  readonly dtype: string;
  readonly axes: string;
  /** The rule that the value was typed as. */
  readonly rule: string | undefined;
  readonly set: (value: Json) => void;
  /** Read a text; what is wrong with it, or nothing. */
  readonly send: (text: string) => Promise<string>;
}

export function TensorField({ label, value, dtype, axes, rule, set, send }: Props) {
  const known = literalOf(value);
  const literal: Literal = known ?? { dtype, shape: [], values: [0] };
  const change = (next: Literal) => set(tensorJson({ ...next, dtype: next.dtype || dtype }));
  const numeric = (known === null || known.values !== null) && !/string|complex/.test(dtype);
  return (
    <div className="tensor-field">
      <TextField label={label} value={value} rule={rule} send={send} placeholder="1,2,3   range(32)   {{1,2},{3,4}}   [1 2; 3 4]" />
      <Sources label={label} shape={literal.shape} numeric={numeric} set={set} send={send} />
      {numeric && <ShapeAndFill label={label} literal={literal} change={change} />}
      {known?.values && <Offered label={label} literal={known} change={change} />}
      {known?.values && sizeOf(known.shape) <= MOST_EDITED && <Cells label={label} literal={known} axes={axes} change={change} send={send} />}
    </div>
  );
}

function ShapeAndFill({ label, literal, change }: { label: string; literal: Literal; change: (next: Literal) => void }) {
  const words = useWords();
  return (
    <div className="shape-and-fill">
      <Entry key={`s${literal.shape.join()}`} label={`${label} ${words("tensor.shape")}`} title={words("tensor.shape")} text={literal.shape.join(",")} take={(text) => {
        const shape = shapeFrom(text);
        if (shape) change(reshaped(literal, shape));
        return shape !== null;
      }} />
      <Entry label={`${label} ${words("tensor.fill")}`} title={words("tensor.fill")} text="" take={(text) => {
        const number = numberFrom(text);
        if (number !== null) change(filled(literal, number));
        return number !== null;
      }} />
    </div>
  );
}

/** Where values can come from besides typing: a rule, whose numbers are then in the text, and a file. */
function Sources({ label, shape, numeric, set, send }: { label: string; shape: readonly number[]; numeric: boolean; set: (value: Json) => void; send: (text: string) => Promise<string> }) {
  const words = useWords();
  return (
    <div className="value-sources">
      {numeric && (
        <select aria-label={`${label} ${words("tensor.rule")}`} value="" onChange={(event) => void send(ruleText(event.target.value as (typeof RULES)[number], shape))}>
          <option value="">{words("tensor.rule")}</option>
          {RULES.map((rule) => (
            <option key={rule}>{rule}</option>
          ))}
        </select>
      )}
      <ArrayFile label={words("tensor.file")} name={`${label} ${words("tensor.file")}`} take={(file) => void valueOfFile(file).then((value) => value !== null && set(value))} />
    </div>
  );
}

/** Shapes that hold the same elements: `range(32)` is a vector until a person says otherwise. */
function Offered({ label, literal, change }: { label: string; literal: Literal; change: (next: Literal) => void }) {
  const words = useWords();
  const before = useRef<readonly number[]>(literal.shape);
  const [known, setKnown] = useState<readonly (readonly number[])[]>([]);
  useEffect(() => {
    const last = before.current;
    before.current = literal.shape;
    if (last.join() !== literal.shape.join()) setKnown((old) => [last, ...old].slice(0, 4));
  }, [literal.shape.join()]);
  const others = shapesFor(sizeOf(literal.shape), known).filter((shape) => shape.join() !== literal.shape.join());
  if (sizeOf(literal.shape) < 2 || others.length === 0) return null;
  return (
    <div className="offered" role="group" aria-label={`${label} ${words("tensor.asShape")}`}>
      <span className="hint">{words("tensor.asShape")}</span>
      {others.map((shape) => (
        <button key={shape.join()} type="button" className="link" onClick={() => change({ ...literal, shape })}>
          {format.brackets(shape)}
        </button>
      ))}
    </div>
  );
}

/** A text that is taken when it is complete; one that is refused is marked and stays. */
export function Entry({ label, title, text, take }: { label: string; title: string; text: string; take: (text: string) => boolean }) {
  const [shown, setShown] = useState(text);
  const [wrong, setWrong] = useState(false);
  const finish = () => {
    if (shown !== text) setWrong(!take(shown));
  };
  return (
    <label>
      <span>{title}</span>
      <input
        aria-label={label}
        aria-invalid={wrong}
        value={shown}
        onChange={(event) => setShown(event.target.value)}
        onBlur={finish}
        onKeyDown={(event) => {
          if (event.key === "Enter") finish();
        }}
      />
    </label>
  );
}

function Cells({ label, literal, axes, change, send }: { label: string; literal: Literal; axes: string; change: (next: Literal) => void; send: (text: string) => Promise<string> }) {
  const words = useWords();
  const layout = layoutOf(literal.shape, axes);
  const held = layout.heldAxes.filter((axis) => literal.shape[axis]! > 1);
  const [place, setPlace] = useState<readonly number[]>([]);
  const at = literal.shape.map((size, axis) => Math.min(place[axis] ?? 0, Math.max(0, size - 1)));
  const grids = gridsOf(literal.shape, layout, at);
  if (!grids) return null;
  const write = (index: readonly number[], text: string) => {
    const next = withCells(literal, [layout.rowAxis, layout.columnAxis], index, text);
    if (next) change(next);
    return next !== null;
  };
  return (
    <div className="cells">
      {held.map((axis) => (
        <label key={axis} className="inline">
          {layout.names[axis]}
          <input
            type="number" min={0} max={literal.shape[axis]! - 1} value={at[axis]} aria-label={`${label} ${layout.names[axis]}`}
            onChange={(event) => setPlace(at.with(axis, Number(event.target.value)))}
          />
        </label>
      ))}
      {grids.map((grid) => (
        <div key={grid.key} className="cell-grid" role="group" aria-label={`${label} ${grid.label}`}>
          {grid.label && <span className="grid-label">{grid.label}</span>}
          <div style={{ gridTemplateColumns: `repeat(${grid.columns}, minmax(0, 1fr))` }}>
            {Array.from({ length: grid.rows * grid.columns }, (_, cell) => {
              const index = [...grid.index];
              if (layout.rowAxis >= 0) index[layout.rowAxis] = Math.floor(cell / grid.columns);
              if (layout.columnAxis >= 0) index[layout.columnAxis] = cell % grid.columns;
              const value = literal.values![flatIndex(literal.shape, index)]!;
              return <Cell key={cell} label={`${label} [${index.join(",")}]`} value={value} columns={grid.columns} write={(text) => write(index, text)} send={send} />;
            })}
          </div>
        </div>
      ))}
      <p className="hint">{words("tensor.paste")}</p>
    </div>
  );
}

interface CellProps {
  readonly label: string;
  readonly value: number;
  readonly columns: number;
  readonly write: (text: string) => boolean;
  readonly send: (text: string) => Promise<string>;
}

function Cell({ label, value, columns, write, send }: CellProps) {
  const [text, setText] = useState(String(value));
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    setText(String(value));
    setWrong(false);
  }, [value]);
  const finish = () => {
    if (text !== String(value)) setWrong(!write(text));
  };
  return (
    <input
      aria-label={label}
      aria-invalid={wrong}
      value={text}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setText(event.target.value)}
      onBlur={finish}
      onKeyDown={(event) => {
        if (event.key === "Enter") finish();
        const step = STEPS[event.key];
        if (step !== undefined && !event.shiftKey) neighbour(event, step * columns)?.focus();
      }}
      onPaste={(event) => {
        const copied = event.clipboardData.getData("text");
        const whole = /[[({]/.test(copied);
        if (!whole && !/[\t\n]/.test(copied.trim())) return;
        event.preventDefault();
        // An array of NumPy or MATLAB says its own shape: it takes the place of the whole value.
        if (whole) void send(copied).then((fault) => setWrong(fault !== ""));
        else setWrong(!write(copied));
      }}
    />
  );
}

/** Enter and the arrows go up and down a column, as in a spreadsheet. */
const STEPS: { readonly [key: string]: number } = { Enter: 1, ArrowDown: 1, ArrowUp: -1 };

function neighbour(event: KeyboardEvent<HTMLInputElement>, by: number): HTMLInputElement | undefined {
  const cells = [...(event.currentTarget.closest(".cell-grid")?.querySelectorAll("input") ?? [])];
  event.preventDefault();
  return cells[cells.indexOf(event.currentTarget) + by];
}
