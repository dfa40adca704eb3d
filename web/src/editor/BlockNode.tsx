// SPDX-License-Identifier: Apache-2.0
/** A block on the page: title, values, pins, attributes, problems. */

import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import { memo, useEffect, useLayoutEffect, useRef } from "react";
import { nameFault, type PinShape } from "../core/document";
import * as format from "../core/format";
import type { Block, Op, PinInfo, Problem } from "../core/model";
import { formOf } from "../core/pins";
import { gradientOrder } from "../core/scopes";
import { brief } from "../core/values";
import { applyFix, renameBlock } from "../state/edits";
import { enterBlock } from "../state/pages";
import { openViewer } from "../state/perform";
import { activeTab, say, shownPage, update, useStudio } from "../state/store";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { Elapsed } from "../ui/Elapsed";
import { Icon } from "../ui/Icon";
import { wake } from "./rest";
import { layoutOfOutput, useBlockView, usePins, valuesOfConstant, valuesOfResult, valuesToCome, type BlockView } from "./useBlock";
import { ValueGrid } from "./ValueGrid";

export type BlockNodeType = Node<{ block: Block; mirrored: boolean }, "block">;

export const BlockNode = memo(function BlockNode({ data, selected }: NodeProps<BlockNodeType>) {
  const { block, mirrored } = data;
  const view = useBlockView(block.name);
  const op = block.op === undefined ? undefined : view.catalogue.get(block.op);
  const { inputs, outputs } = usePins(block, view);
  const words = useWords();
  const tell = useTold();
  const wrong = view.problems.length > 0;
  const state = view.run?.state;
  const order = gradientOrder(block.name);
  const frame = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => wake(frame.current!));
  const classes = [
    "block",
    selected ? "selected" : "",
    wrong || state === "failed" ? "wrong" : view.warnings.length > 0 ? "warned" : "",
    state === "started" || state === "progress" ? "running" : "",
    order > 0 ? "gradient" : "",
    mirrored ? "mirrored" : "",
    view.stale ? "stale" : "",
    block.mode ?? "",
  ];
  return (
    <div ref={frame} className={classes.filter(Boolean).join(" ")}>
      <Title block={block} order={order} view={view} unknown={op === undefined && block.page === undefined} />
      <Results block={block} outputs={outputs} view={view} />
      {inputs.length > 0 && (
        <div className="pins">
          {inputs.map((pin) => (
            <Pin key={pin.name} block={block} pin={pin} side="input" view={view} focusable={selected} mirrored={mirrored} />
          ))}
        </div>
      )}
      {op && <Attributes block={block} op={op} problems={view.problems} />}
      {block.page !== undefined && (
        <div className="attrs">
          <button type="button" className="link nodrag" onClick={() => enterBlock(block.name)}>
            {words("block.openPage")}
          </button>
        </div>
      )}
      {outputs.length > 0 && (
        <div className="pins out">
          {outputs.map((pin) => (
            <Pin key={pin.name} block={block} pin={pin} side="output" view={view} focusable={selected} mirrored={mirrored} />
          ))}
        </div>
      )}
      {(wrong || view.warnings.length > 0) && <Problems problems={wrong ? view.problems : view.warnings} />}
      {state === "failed" && view.run?.error && !wrong && <p className="block-problem">{tell(view.run.error.message)}</p>}
    </div>
  );
});

function Title({ block, order, view, unknown }: { block: Block; order: number; view: BlockView; unknown: boolean }) {
  const words = useWords();
  const renaming = useStudio((state) => state.renaming === block.name);
  const count = view.problems.length;
  const run = view.run;
  const short = block.name.split("/").at(-1)!;
  return (
    <header className="block-title" title={block.name}>
      {renaming ? <Rename name={block.name} /> : <strong>{short}</strong>}
      {order > 0 && <span className="order">{order === 1 ? "∂" : order === 2 ? "∂²" : `∂^${order}`}</span>}
      <span className="op">{block.op ?? `▸ ${block.page}`}</span>
      <span className="grow" />
      {block.mode && <span className="badge mode">{words(`block.${block.mode}`)}</span>}
      {unknown && <span className="badge bad">{words("block.unknown")}</span>}
      {count > 0 && <span className="badge bad">{words(count === 1 ? "block.problem" : "block.problems", { count })}</span>}
      {count === 0 && view.warnings.length > 0 && <span className="badge warn">{words("block.look")}</span>}
      {count === 0 && block.mode !== "muted" && (run ? <RunBadge run={run} stale={view.stale} /> : <NoBadge />)}
      {run && run.outputs.length > 0 ? (
        <button type="button" className="open-viewer quiet icon-only nodrag" onClick={() => openViewer(block.name)} aria-label={`${words("block.openViewer")}: ${block.name}`} title={words("block.openViewer")}>
          <Icon name="expand" />
        </button>
      ) : (
        <span className="open-viewer" />
      )}
    </header>
  );
}

/** The room that the badge of a run will take. */
function NoBadge() {
  return (
    <span className="badge to-come" aria-hidden="true">
      00.0 ms
    </span>
  );
}

function RunBadge({ run, stale }: { run: NonNullable<BlockView["run"]>; stale: boolean }) {
  const words = useWords();
  const tell = useTold();
  if (stale) return <NoBadge />;
  if (run.state === "started" || run.state === "progress") {
    return (
      <span className="badge run">
        {words("block.running")} <Elapsed />
      </span>
    );
  }
  if (run.state === "failed") return <span className="badge bad">{words("block.failed")}</span>;
  if (run.state === "queued") return <span className="badge">{words("block.queued")}</span>;
  const time = run.state === "cached" ? words("block.cached") : run.seconds === null || run.seconds === undefined ? words("block.done") : format.seconds(run.seconds);
  return (
    <span className="badge ok" title={run.reason && tell(run.reason)}>
      {time}
    </span>
  );
}

function Rename({ name }: { name: string }) {
  const field = useRef<HTMLInputElement>(null);
  const words = useWords();
  useEffect(() => field.current?.select(), []);
  const finish = () => {
    const tab = activeTab();
    const wanted = field.current?.value.trim() ?? name;
    update({ renaming: null });
    if (!tab || wanted === name) return;
    const fault = nameFault(shownPage(tab), name, wanted);
    if (fault) say(words(fault), "error");
    else void renameBlock(name, wanted);
  };
  return (
    <input
      ref={field}
      className="rename nodrag"
      aria-label={words("inspector.name")}
      defaultValue={name}
      autoFocus
      onBlur={finish}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Enter") field.current?.blur();
        if (event.key === "Escape") update({ renaming: null });
      }}
    />
  );
}

function Results({ block, outputs, view }: { block: Block; outputs: readonly PinShape[]; view: BlockView }) {
  const first = view.run?.outputs[0];
  const known = valuesOfConstant(block);
  // A constant in a file shows what the run has told of it.
  const constant = first && !known?.values ? null : known;
  const layout = useStudio((state) => layoutOfOutput(block, outputs[0], activeTab(state), state.catalogue));
  const output = constant || !first ? (outputs[0]?.name ?? "") : first.name;
  const data = constant ?? (first ? valuesOfResult(first) : valuesToCome(view.pins[output]));
  if (!data) return null;
  const pin = outputs.find((one) => one.name === output);
  const whole = formOf({ types: [], host: false }, view.pins[output]?.dtype) === "float";
  return (
    <div className="block-values">
      <ValueGrid
        block={block.name}
        output={output}
        layout={pin === outputs[0] ? layout : (pin?.layout ?? "")}
        scale={whole && gradientOrder(block.name) > 0 ? "signed" : "values"}
        data={data}
      />
    </div>
  );
}

interface PinProps {
  readonly block: Block;
  readonly pin: PinShape;
  readonly side: "input" | "output";
  readonly view: BlockView;
  readonly focusable: boolean;
  /** Inputs are on the right. */
  readonly mirrored: boolean;
}

function Pin({ block, pin, side, view, focusable, mirrored }: PinProps) {
  const words = useWords();
  const tell = useTold();
  const info: PinInfo | undefined = view.pins[pin.name];
  const problem = side === "input" ? view.problems.find((one) => one.pin === pin.name || one.pin.startsWith(`${pin.name}[`)) : undefined;
  const sources = side === "input" ? (block.inputs?.[pin.name] ?? []) : [];
  const typed = sources.find((source) => "value" in source);
  const form = formOf(pin, info?.dtype);
  const marked = useStudio((state) => markOf(state, block.name, pin.name, side));
  const label = [
    pin.name,
    words(side === "input" ? "pin.input" : "pin.output"),
    info?.dtype ?? "",
    format.shape(info?.shape),
    side === "input" && sources.length === 0 ? words("pin.empty") : "",
    problem ? words("pin.error", { text: tell(problem.message) }) : "",
  ];
  const shape = info?.shape ? format.brackets(info.shape) : pin.shape;
  return (
    <div className={`pin ${side} ${problem ? "wrong" : ""} ${marked}`} title={pin.doc}>
      <Handle
        type={side === "input" ? "target" : "source"}
        position={(side === "input") === mirrored ? Position.Right : Position.Left}
        id={pin.name}
        className={`handle ${form} ${sources.length === 0 && side === "input" ? "open" : ""}`}
        role="button"
        tabIndex={focusable ? 0 : -1}
        aria-label={label.filter(Boolean).join(", ")}
        data-pin={pin.name}
        data-block={block.name}
        data-side={side}
      />
      <span className="pin-name">{pin.name}</span>
      {typed && "value" in typed && <code className="pin-value">{brief(typed.value)}</code>}
      <code className="pin-type">
        {side === "output" && info?.dtype ? `${format.dtype(info.dtype)} ` : ""}
        {shape}
      </code>
    </div>
  );
}

/** How a pin takes part in the wire that is being drawn. */
function markOf(state: ReturnType<typeof useStudio.getState>, block: string, pin: string, side: string): string {
  const { wiring, fitting } = state;
  if (fitting) return fitting.has(`${side}:${block}.${pin}`) ? "wire-fits" : "wire-refused";
  if (!wiring) return "";
  if (wiring.start.block === block && wiring.start.pin === pin && wiring.start.side === side) return "wire-start";
  const at = wiring.candidates.findIndex((one) => one.block === block && one.pin === pin && one.side === side);
  return at < 0 ? "" : at === wiring.at ? "wire-here" : "wire-fits";
}

const HIDDEN_WHEN_LONG = 6;

function Attributes({ block, op, problems }: { block: Block; op: Op; problems: readonly Problem[] }) {
  const given = block.attrs ?? {};
  const shown = op.attrs
    .filter((attr) => op.name !== "Const" || !["value", "dtype"].includes(attr.name))
    .filter((attr) => attr.name in given || attr.required)
    .slice(0, HIDDEN_WHEN_LONG);
  if (shown.length === 0) return null;
  return (
    <dl className="attrs">
      {shown.map((attr) => (
        <div key={attr.name} className={problems.some((problem) => problem.pin === attr.name) ? "wrong" : ""} title={attr.doc}>
          <dt>{attr.name === "data_format" ? "layout" : attr.name}</dt>
          <dd>{brief(given[attr.name] ?? attr.default)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Problems({ problems }: { problems: readonly Problem[] }) {
  const words = useWords();
  const tell = useTold();
  const [problem] = problems;
  if (!problem) return null;
  return (
    <div className="block-problem" role="note">
      <p>
        <strong>{problem.pin || problem.op}</strong> {words("block.must", { wanted: tell.must(problem.code, problem.wanted) })}
      </p>
      <p className="expected">
        {words("block.got")} <code>{tell(problem.got)}</code>
        <span className="code">{problem.code}</span>
      </p>
      {problem.remedy && <p>{tell(problem.remedy)}</p>}
      <div className="fixes">
        {problem.fixes.map((fix, index) => (
          <button key={fix.title} type="button" className={`nodrag ${index === 0 ? "primary" : ""}`} onClick={() => void applyFix(fix)}>
            {tell(fix.title)}
          </button>
        ))}
      </div>
    </div>
  );
}
