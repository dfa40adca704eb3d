// SPDX-License-Identifier: Apache-2.0
/** One attribute: a widget for its kind, or its text as people have always typed it. */

import { useEffect, useState } from "react";
import { api } from "../core/api";
import { setAttr } from "../core/commands";
import * as format from "../core/format";
import type { Json, OpAttr } from "../core/model";
import { literalOf, textOf } from "../core/values";
import { editPage, serverEdit } from "../state/edits";
import { toldNow } from "../state/store";
import { useWords } from "../state/words";
import { TensorField } from "./TensorField";

interface Props {
  readonly block: string;
  readonly op: string | undefined;
  readonly attr: OpAttr;
  readonly value: Json | undefined;
  /** The order of the axes, such as NCDHW, where the block has one. */
  readonly axes: string;
  /** The element type that the block states for its tensor. */
  readonly dtype: string;
  readonly rule: string | undefined;
}

const TYPES = ["float32", "float64", "half", "bfloat16", "int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "string"];

export function AttrField({ block, op, attr, value, axes, dtype, rule }: Props) {
  const words = useWords();
  const title = `${block}.${attr.name}`;
  // What is held down or typed is one step of undo; cells, fills and shapes are a step each.
  const set = (next: Json | undefined) => editPage(title, (page) => setAttr(page, block, attr.name, next), attr.kind === "tensor" ? undefined : title);
  const shown = value ?? attr.default;
  const changed = value !== undefined;
  return (
    <div className="attr-field" title={attr.doc}>
      <span className="attr-name" id={`attr-${block}-${attr.name}`}>
        {attr.name}
        {changed && !attr.required && (
          <button type="button" className="link" onClick={() => set(undefined)}>
            {words("inspector.default")}
          </button>
        )}
        {!changed && <span className="hint">{attr.required ? words("inspector.required") : words("inspector.default")}</span>}
      </span>
      {op === "Volume" && attr.name === "path" && <FileChoice label={`${block} ${attr.name}`} value={value} set={set} />}
      <Widget block={block} attr={attr} value={shown} axes={axes} dtype={dtype} rule={rule} set={set} />
    </div>
  );
}

/** The volumes that are there; what is inside of a file, or not there yet, is typed below. */
function FileChoice({ label, value, set }: { label: string; value: Json | undefined; set: (next: Json) => void }) {
  const words = useWords();
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    void api.volumes().then(
      (found) => setNames(found.volumes.map((file) => file.name)),
      () => undefined,
    );
  }, []);
  if (names.length === 0) return null;
  const current = typeof value === "string" && names.includes(value) ? value : "";
  return (
    <select aria-label={`${label} ${words("volumes.file")}`} value={current} onChange={(event) => set(event.target.value)}>
      {current === "" && <option value="">{words("viewer.choose")}</option>}
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

interface WidgetProps {
  readonly block: string;
  readonly attr: OpAttr;
  readonly value: Json;
  readonly axes: string;
  readonly dtype: string;
  readonly rule: string | undefined;
  readonly set: (next: Json | undefined) => void;
}

function Widget({ block, attr, value, axes, dtype, rule, set }: WidgetProps) {
  const label = `${block} ${attr.name}`;
  if (attr.kind === "bool" || typeof value === "boolean") {
    return <input type="checkbox" aria-label={label} checked={value === true} onChange={(event) => set(event.target.checked)} />;
  }
  const options: readonly Json[] = attr.choices.length > 0 ? attr.choices : attr.kind === "type" ? TYPES : [];
  if (options.length > 0 && !Array.isArray(value)) {
    const choices = options.map(String);
    const current = String(value ?? "");
    return (
      <select aria-label={label} value={current} onChange={(event) => set(options[choices.indexOf(event.target.value)])}>
        {!choices.includes(current) && <option value={current}>{current}</option>}
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  if (attr.kind === "tensor") {
    return <TensorField label={label} value={value ?? undefined} dtype={dtype} axes={axes} rule={rule} set={set} send={(text) => sendText(block, attr.name, text)} />;
  }
  const numbers = Array.isArray(value) && value.length <= 6 && value.every((one: Json) => typeof one === "number") ? (value as number[]) : null;
  const name = (index: number) => (axes.length === numbers?.length ? axes[index] : index);
  return (
    <div className="list-field">
      {numbers && numbers.length > 0 && (
        <div className="number-row">
          {numbers.map((one, index) => (
            <label key={index}>
              <span>{name(index)}</span>
              <input
                type="number"
                aria-label={`${label} ${name(index)}`}
                value={one}
                onChange={(event) => set(numbers.with(index, Math.trunc(Number(event.target.value))))}
              />
            </label>
          ))}
        </div>
      )}
      <TextField label={label} value={value} send={(text) => sendText(block, attr.name, text)} />
    </div>
  );
}

/** Let the server read a text for an attribute or a pin; what is wrong with it, or nothing. */
export async function sendText(block: string, name: string, text: string): Promise<string> {
  let fault = "";
  await serverEdit(`${block}.${name}`, [{ do: "set_text", block, name, text }], { refused: (error) => (fault = toldNow(error.message)) });
  return fault;
}

interface TextProps {
  readonly label: string;
  readonly value: Json | undefined;
  readonly send: (text: string) => Promise<string>;
  readonly placeholder?: string;
  /** The rule that the value was typed as, such as `normal([2,3], 0, 1, seed=7)`. */
  readonly rule?: string | undefined;
}

/** A value as text; who reads it points at the character where it cannot. Lines stay lines: rows that are pasted do not run
 * into each other. */
export function TextField({ label, value, send: read, placeholder, rule }: TextProps) {
  const words = useWords();
  const known = rule ?? textOf(value);
  const [text, setText] = useState(known);
  const [fault, setFault] = useState("");
  useEffect(() => {
    setText(known);
    setFault("");
  }, [known]);
  const literal = literalOf(value);
  const lines = Math.max(known.length > 60 ? 4 : known.length > 36 ? 2 : 1, Math.min(8, text.split("\n").length));
  const send = async () => {
    if (text !== known) setFault(await read(text));
  };
  return (
    <div className="text-field">
      {literal && literal.shape.length > 1 && (
        <span className="hint">
          {literal.dtype} {format.brackets(literal.shape)} {literal.values ? "" : words("block.file")}
        </span>
      )}
      <textarea
        aria-label={`${label} ${words("inspector.asText")}`}
        aria-invalid={fault !== ""}
        className="text-value"
        spellCheck={false}
        rows={lines}
        placeholder={placeholder}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={() => void send()}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey) return;
          event.preventDefault();
          void send();
        }}
      />
      {fault && <pre className="fault" tabIndex={0}>{fault}</pre>}
    </div>
  );
}
