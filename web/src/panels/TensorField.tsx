// SPDX-License-Identifier: Apache-2.0
/** The values of a small tensor: as text, by shape and fill, or cell by cell. */

import { useState } from "react";
import { filled, MOST_EDITED, numberFrom, reshaped, shapeFrom, tensorJson, withCells } from "../core/cells";
import type { Json } from "../core/model";
import { gridsOf, layoutOf } from "../core/slices";
import { flatIndex, sizeOf } from "../core/tensor";
import { literalOf, type Literal } from "../core/values";
import { useWords } from "../state/words";
import { TextField } from "./AttrField";

interface Props {
  readonly label: string;
  readonly value: Json | undefined;
  readonly dtype: string;
  readonly axes: string;
  readonly set: (value: Json) => void;
  /** Read a text; what is wrong with it, or nothing. */
  readonly send: (text: string) => Promise<string>;
}

export function TensorField({ label, value, dtype, axes, set, send }: Props) {
  const words = useWords();
  const known = literalOf(value);
  const literal: Literal = known ?? { dtype, shape: [], values: [0] };
  const change = (next: Literal) => set(tensorJson({ ...next, dtype: next.dtype || dtype }));
  return (
    <div className="tensor-field">
      <TextField label={label} value={value} send={send} placeholder="1,2,3,4   range(32)   {{1,2},{3,4}}" />
      {(known === null || known.values) && (
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
      )}
      {known?.values && sizeOf(known.shape) <= MOST_EDITED && <Cells label={label} literal={known} axes={axes} change={change} />}
    </div>
  );
}

/** A text that is taken when it is complete; one that is refused is marked and stays. */
function Entry({ label, title, text, take }: { label: string; title: string; text: string; take: (text: string) => boolean }) {
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

function Cells({ label, literal, axes, change }: { label: string; literal: Literal; axes: string; change: (next: Literal) => void }) {
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
              return <Cell key={`${cell}=${value}`} label={`${label} [${index.join(",")}]`} value={value} write={(text) => write(index, text)} />;
            })}
          </div>
        </div>
      ))}
      <p className="hint">{words("tensor.paste")}</p>
    </div>
  );
}

function Cell({ label, value, write }: { label: string; value: number; write: (text: string) => boolean }) {
  const [text, setText] = useState(String(value));
  const [wrong, setWrong] = useState(false);
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
      }}
      onPaste={(event) => {
        const copied = event.clipboardData.getData("text");
        if (!/[\t\n]/.test(copied.trim())) return;
        event.preventDefault();
        setWrong(!write(copied));
      }}
    />
  );
}
