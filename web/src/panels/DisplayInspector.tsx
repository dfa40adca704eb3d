// SPDX-License-Identifier: Apache-2.0
/** Everything about the selected display: its attributes, as its kind declares them, and what it shows. */

import { useEffect, useState } from "react";
import { attrOf } from "../core/displays";
import { outputPins } from "../core/document";
import type { Display, Json, Page, Shown } from "../core/model";
import { KINDS } from "../generated/displays";
import { bindDisplay, placeDisplay, renameDisplay, setDisplayAttr } from "../state/displays";
import { useStudio } from "../state/store";
import { useWords } from "../state/words";

interface Attr {
  readonly name: string;
  readonly type: string;
  readonly default: string | number | boolean | null;
  readonly choices: readonly string[];
}

export function DisplayInspector({ page, display }: { page: Page; display: Display }) {
  const words = useWords();
  const kind = KINDS[display.kind];
  return (
    <>
      <section>
        <p className="hint">{words(`display.${display.kind}.note`)}</p>
        <Typed label={words("inspector.name")} value={display.name} send={(name) => void renameDisplay(display.name, name)} />
      </section>
      <section>
        <h3>{words("inspector.attributes")}</h3>
        {(kind.attrs as readonly Attr[]).map((attr) => (
          <Field key={attr.name} display={display} attr={attr} />
        ))}
      </section>
      {kind.takes > 0 && <Bindings page={page} display={display} takes={kind.takes} />}
      <section>
        <h3>{words("display.place")}</h3>
        <div className="display-place">
          {(["position", "size"] as const).flatMap((what) =>
            ([0, 1] as const).map((axis) => (
              <Typed
                key={`${what}${axis}`}
                label={{ position: ["x", "y"], size: ["w", "h"] }[what][axis]!}
                value={String(display[what][axis])}
                number
                send={(text) => {
                  const value = Number(text);
                  if (Number.isFinite(value)) placeDisplay(display.name, { [what]: display[what].with(axis, what === "size" ? Math.max(1, value) : value) as [number, number] });
                }}
              />
            )),
          )}
        </div>
      </section>
    </>
  );
}

function Field({ display, attr }: { display: Display; attr: Attr }) {
  const words = useWords();
  const value = attrOf(display, attr.name);
  const set = (next: Json) => void setDisplayAttr(display.name, attr.name, next);
  if (attr.type === "bool") {
    return (
      <label className="inline">
        <input type="checkbox" checked={value === true} onChange={(event) => set(event.target.checked)} /> {attr.name}
      </label>
    );
  }
  if (attr.choices.length > 0) {
    return (
      <label className="stacked">
        <span>{attr.name}</span>
        <select value={String(value)} onChange={(event) => set(event.target.value)}>
          {attr.choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      </label>
    );
  }
  if (attr.type === "png") return <PictureField set={set} />;
  const numeric = attr.type === "number" || attr.type === "int";
  return (
    <Typed
      label={attr.name}
      value={value === null ? "" : String(value)}
      lines={attr.type === "lines"}
      number={numeric}
      placeholder={attr.default === null ? words("display.auto") : ""}
      send={(text) => set(numeric ? (text.trim() === "" ? null : Number(text)) : text)}
    />
  );
}

/** A field that is sent when it is left, or with Enter. */
function Typed({ label, value, send, lines = false, number = false, placeholder = "" }: { label: string; value: string; send: (text: string) => void; lines?: boolean; number?: boolean; placeholder?: string }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const finish = () => text !== value && send(text);
  const common = { value: text, placeholder, onBlur: finish };
  return (
    <label className="stacked">
      <span>{label}</span>
      {lines ? (
        <textarea rows={4} {...common} onChange={(event) => setText(event.target.value)} />
      ) : (
        <input {...common} inputMode={number ? "decimal" : undefined} onChange={(event) => setText(event.target.value)} onKeyDown={(event) => event.key === "Enter" && finish()} />
      )}
    </label>
  );
}

/** Any picture that the browser can show, kept as PNG. */
function PictureField({ set }: { set: (png: string) => void }) {
  const words = useWords();
  const take = async (file: File | undefined) => {
    if (!file) return;
    const image = await createImageBitmap(file);
    const scale = Math.min(1, 800 / Math.max(image.width, image.height));
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.max(1, Math.round(image.width * scale)), Math.max(1, Math.round(image.height * scale))];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    set(canvas.toDataURL("image/png").split(",")[1] ?? "");
  };
  return (
    <label className="stacked">
      <span>{words("display.picture")}</span>
      <input type="file" accept="image/*" onChange={(event) => void take(event.target.files?.[0])} />
    </label>
  );
}

function Bindings({ page, display, takes }: { page: Page; display: Display; takes: number }) {
  const words = useWords();
  const catalogue = useStudio((state) => state.catalogue);
  const paths = page.blocks.flatMap((block) => outputPins(page, block, catalogue).map((pin) => `${block.name}.${pin.name}`));
  const of = display.of ?? [];
  const set = (next: readonly Shown[]) => void bindDisplay(display.name, next);
  const change = (at: number, part: Partial<Shown>) => set(of.with(at, { ...of[at]!, ...part }));
  return (
    <section>
      <h3>{words("display.shows")}</h3>
      {of.map((shown, at) => (
        <fieldset key={at} className="binding">
          <legend className="sr">{`${words("display.shows")} ${at + 1}`}</legend>
          <select aria-label={words("display.output")} value={shown.from} onChange={(event) => change(at, { from: event.target.value, at: [] })}>
            {[...new Set([shown.from, ...paths])].map((path) => (
              <option key={path}>{path}</option>
            ))}
          </select>
          <Typed label={words("display.index")} value={(shown.at ?? []).join(",")} send={(text) => change(at, { at: text.split(/[^\d]+/).filter(Boolean).map(Number) })} />
          {takes > 1 && <Typed label={words("display.label")} value={shown.label ?? ""} send={(label) => change(at, { label })} />}
          <button type="button" className="link" onClick={() => set(of.toSpliced(at, 1))}>
            {words("display.unbind")}
          </button>
        </fieldset>
      ))}
      {of.length < takes && paths.length > 0 && (
        <select aria-label={words("display.bind")} value="" onChange={(event) => set([...of, { from: event.target.value }])}>
          <option value="">{words("display.bind")}</option>
          {paths.map((path) => (
            <option key={path}>{path}</option>
          ))}
        </select>
      )}
    </section>
  );
}
