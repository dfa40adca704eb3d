// SPDX-License-Identifier: Apache-2.0
/** The right panel: everything about the selected block, or about the page. */

import { useState } from "react";
import { axesOf, findBlock, inputPins, nameFault, outputPins, wiresOf, withPage } from "../core/document";
import * as format from "../core/format";
import type { Block, Json, Page } from "../core/model";
import { displayOf, findDisplay } from "../core/displays";
import { AttrField } from "./AttrField";
import { DisplayInspector } from "./DisplayInspector";
import { disconnectWire, renameBlock } from "../state/edits";
import { goToBlock, openViewer } from "../state/perform";
import { pathOf, prefixOf, recordDocument, setSettings, shownPage, useStudio, type Tab } from "../state/store";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { useSummary } from "../editor/ValueGrid";
import { Histogram } from "../viewer/Histogram";
import { Icon } from "../ui/Icon";
import { FeedField } from "./FeedField";
import { PinField } from "./PinField";
import { OpHelp } from "./OpHelp";
import { TracePanel } from "./TracePanel";

export function Inspector({ tab }: { tab: Tab }) {
  const words = useWords();
  const page = shownPage(tab);
  const [only] = tab.selection;
  const block = tab.selection.size === 1 && only !== undefined ? findBlock(page, only) : undefined;
  const display = tab.selection.size === 1 && only !== undefined ? findDisplay(page, displayOf(only) ?? "") : undefined;
  return (
    <aside className="panel right" aria-label={words("inspector.title")}>
      <div className="panel-tabs">
        <h2>{block ? block.name.split("/").at(-1) : display ? words(`display.${display.kind}`) : tab.selection.size > 1 ? words("inspector.many", { count: tab.selection.size }) : page.name}</h2>
        <span className="grow" />
        {block && (
          <button type="button" className="icon-only quiet" onClick={() => openViewer(block.name)} aria-label={words("action.viewer")} title={words("action.viewer")}>
            <Icon name="expand" />
          </button>
        )}
        <button type="button" className="icon-only quiet" onClick={() => setSettings({ right: false })} aria-label={words("action.toggleRight")}>
          <Icon name="right" />
        </button>
      </div>
      <div className="scroll inspector">
        {display ? <DisplayInspector key={display.name} page={page} display={display} /> : block ? <BlockInspector key={block.name} tab={tab} page={page} block={block} /> : <PageInspector tab={tab} page={page} />}
        <TracePanel />
      </div>
    </aside>
  );
}

function PageInspector({ tab, page }: { tab: Tab; page: Page }) {
  const words = useWords();
  const tell = useTold();
  const engines = useStudio((state) => state.engines);
  const estimate = tab.analysis?.estimate;
  const change = (part: Partial<Page>) => recordDocument(tab.id, withPage(tab.history.now, pathOf(tab), (now) => ({ ...now, ...part })), words("inspector.page"), "page");
  return (
    <>
      <section>
        <label className="stacked">
          <span>{words("inspector.name")}</span>
          <input value={page.name} onChange={(event) => change({ name: event.target.value })} />
        </label>
        <label className="stacked">
          <span>{words("inspector.semantics")}</span>
          <select value={page.semantics} onChange={(event) => change({ semantics: event.target.value as Page["semantics"] })}>
            {["documented", "tf_cpu"].map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <p className="hint">{words("inspector.empty")}</p>
      </section>
      <Notes page={page} change={change} />
      {estimate && (
        <section>
          <h3>{words("estimate.title")}</h3>
          <dl className="facts">
            <dt>{words("inspector.peak")}</dt>
            <dd>{estimate.peak_bytes === null ? "?" : format.bytes(estimate.peak_bytes)}</dd>
            <dt>{words("inspector.work")}</dt>
            <dd>{estimate.flops === null ? "?" : format.flops(estimate.flops)}</dd>
          </dl>
        </section>
      )}
      <section>
        <h3>{words("inspector.engines")}</h3>
        <dl className="facts">
          {engines.map((engine) => (
            <div key={engine.name}>
              <dt>{engine.name}</dt>
              <dd>{engine.available ? engine.version : tell(engine.why_not)}</dd>
            </div>
          ))}
        </dl>
      </section>
    </>
  );
}

/** Texts that belong to the page. Anything else among the notes is kept as it is. */
function Notes({ page, change }: { page: Page; change: (part: Partial<Page>) => void }) {
  const words = useWords();
  const notes = page.notes ?? [];
  const set = (index: number, text: string) => {
    const old = notes[index] as { readonly [key: string]: Json };
    change({ notes: text === "" ? notes.toSpliced(index, 1) : notes.with(index, { ...old, text }) });
  };
  return (
    <section>
      <h3>{words("inspector.notes")}</h3>
      {notes.map((note, index) => {
        const text = typeof note === "object" && note !== null && !Array.isArray(note) ? (note as { text?: Json }).text : undefined;
        if (typeof text !== "string") return null;
        return <textarea key={index} className="note" rows={3} aria-label={`${words("inspector.notes")} ${index + 1}`} value={text} onChange={(event) => set(index, event.target.value)} />;
      })}
      <button type="button" onClick={() => change({ notes: [...notes, { text: "…", position: [0, 0] }] })}>
        {words("inspector.addNote")}
      </button>
    </section>
  );
}

function BlockInspector({ tab, page, block }: { tab: Tab; page: Page; block: Block }) {
  const words = useWords();
  const tell = useTold();
  const op = useStudio((state) => (block.op === undefined ? undefined : state.catalogue.get(block.op)));
  const full = prefixOf(tab) + block.name;
  const run = tab.results[full];
  const cost = tab.analysis?.estimate?.blocks[full];
  return (
    <>
      <section>
        <NameField page={page} block={block} />
      </section>
      {run?.outputs.map((output) => (
        <section key={output.name}>
          <h3>
            {words("inspector.values")} · {output.name}
          </h3>
          <Statistics hash={output.hash} />
          <button type="button" onClick={() => openViewer(block.name, output.name)}>
            {words("action.viewer")}
          </button>
        </section>
      ))}
      {op && op.attrs.length > 0 && (
        <section>
          <h3>{words("inspector.attributes")}</h3>
          {op.attrs.map((attr) => (
            <AttrField key={attr.name} block={block.name} op={block.op} attr={attr} value={block.attrs?.[attr.name]} axes={axesOf(block, op)} dtype={String(block.attrs?.["dtype"] ?? "float32")} rule={block.typed?.[attr.name]} />
          ))}
        </section>
      )}
      {!op && block.attrs && (
        <section>
          <h3>{words("inspector.attributes")}</h3>
          <dl className="facts">
            {Object.entries(block.attrs).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{JSON.stringify(value).slice(0, 80)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {block.op === "Placeholder" && tab.trail.length === 0 && <FeedField tab={tab} block={block} />}
      <Inputs tab={tab} page={page} block={block} />
      <section>
        <h3>{words("inspector.cost")}</h3>
        <dl className="facts">
          <dt>{words("inspector.memory")}</dt>
          <dd>{cost?.bytes === null || cost === undefined ? "?" : format.bytes(cost.bytes)}</dd>
          <dt>{words("inspector.work")}</dt>
          <dd>{cost?.flops === null || cost === undefined ? "?" : format.flops(cost.flops)}</dd>
          {run && (run.state === "cached" || (run.seconds !== null && run.seconds !== undefined)) && (
            <>
              <dt>{words("inspector.time")}</dt>
              {/* Looking a kept result up is not the time of the block. */}
              <dd>{run.state === "cached" ? words("inspector.kept") : format.seconds(run.seconds ?? 0)}</dd>
            </>
          )}
          {run?.reason && (
            <>
              <dt>{words("inspector.why")}</dt>
              <dd>{tell(run.reason)}</dd>
            </>
          )}
        </dl>
      </section>
      {op && <OpHelp op={op} />}
    </>
  );
}

function NameField({ page, block }: { page: Page; block: Block }) {
  const words = useWords();
  const [name, setName] = useState(block.name);
  const fault = nameFault(page, block.name, name.trim());
  const finish = () => {
    const wanted = name.trim();
    if (fault === null && wanted !== block.name) void renameBlock(block.name, wanted);
  };
  return (
    <label className="stacked">
      <span>{words("inspector.name")}</span>
      <input
        value={name}
        aria-invalid={fault !== null}
        onChange={(event) => setName(event.target.value)}
        onBlur={finish}
        onKeyDown={(event) => {
          if (event.key === "Enter") finish();
        }}
      />
      {fault && <span className="fault">{words(fault)}</span>}
    </label>
  );
}

export function Statistics({ hash }: { hash: string | null }) {
  const words = useWords();
  const summary = useSummary(hash);
  if (!summary) return null;
  const number = (value: number | null) => (value === null ? "—" : format.number(value));
  return (
    <>
      <dl className="facts statistics">
        <dt>{summary.dtype}</dt>
        <dd>{format.brackets(summary.shape)}</dd>
        <dt>min</dt>
        <dd>{number(summary.min)}</dd>
        <dt>mean</dt>
        <dd>{number(summary.mean)}</dd>
        <dt>max</dt>
        <dd>{number(summary.max)}</dd>
        <dt>std</dt>
        <dd>{number(summary.std)}</dd>
        <dt>{words("viewer.zeros")}</dt>
        <dd>{format.count(summary.zeros)}</dd>
        <dt>NaN</dt>
        <dd className={summary.nan > 0 ? "bad" : ""}>{format.count(summary.nan)}</dd>
        <dt>±∞</dt>
        <dd className={summary.posinf + summary.neginf > 0 ? "bad" : ""}>{format.count(summary.posinf + summary.neginf)}</dd>
      </dl>
      {summary.histogram && <Histogram histogram={summary.histogram} height={56} />}
    </>
  );
}

function Inputs({ tab, page, block }: { tab: Tab; page: Page; block: Block }) {
  const words = useWords();
  const catalogue = useStudio((state) => state.catalogue);
  const inputs = inputPins(page, block, catalogue);
  const outputs = outputPins(page, block, catalogue);
  const pins = tab.analysis?.pins[prefixOf(tab) + block.name] ?? {};
  const wires = wiresOf(page).filter((wire) => wire.to === block.name);
  return (
    <>
      {inputs.length > 0 && (
        <section>
          <h3>{words("inspector.inputs")}</h3>
          {inputs.map((pin) => {
            const mine = wires.filter((wire) => wire.pin === pin.name);
            const typed = block.inputs?.[pin.name]?.find((source) => "value" in source);
            return (
              <div key={pin.name} className="attr-field" title={pin.doc}>
                <span className="attr-name">
                  {pin.name} <span className="hint">{pins[pin.name]?.text ?? pin.shape}</span>
                </span>
                {mine.map((wire) => (
                  <span key={wire.at} className="wired">
                    <button type="button" className="link" onClick={() => goToBlock(wire.from)}>
                      {words("inspector.from", { source: `${wire.from}.${wire.output}` })}
                    </button>
                    <button type="button" className="icon-only quiet" onClick={() => disconnectWire(wire)} aria-label={`${words("inspector.unwire")} ${pin.name}`}>
                      <Icon name="unlink" />
                    </button>
                  </span>
                ))}
                {mine.length === 0 && <PinField block={block} pin={pin} typed={typed} />}
              </div>
            );
          })}
        </section>
      )}
      <section>
        <h3>{words("inspector.outputs")}</h3>
        <dl className="facts">
          {outputs.map((pin) => (
            <div key={pin.name}>
              <dt>{pin.name}</dt>
              <dd>{pins[pin.name]?.text ?? pin.shape}</dd>
            </div>
          ))}
        </dl>
      </section>
    </>
  );
}
