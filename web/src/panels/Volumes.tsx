// SPDX-License-Identifier: Apache-2.0
/** Pages over volumes that outgrow memory: what to read and write, and a live picture of the chunks. */

import { useEffect, useState } from "react";
import { api, type ChunkedRun, type VolumeFile } from "../core/api";
import * as format from "../core/format";
import type { Block, Page } from "../core/model";
import { attempt } from "../state/pages";
import { say, type Tab } from "../state/store";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { Icon } from "../ui/Icon";
import { ChunkGrid } from "./ChunkGrid";

const QUICK_MS = 400;
const CALM_MS = 3000;

export function Volumes({ tab }: { tab: Tab }) {
  const [files, setFiles] = useState<readonly VolumeFile[] | null>(null);
  const { runs, take } = useRuns();
  const [chosen, setChosen] = useState<string | null>(null);
  const ended = runs.filter((run) => run.phase !== "running").length;
  useEffect(() => {
    void attempt(() => api.volumes()).then((found) => found && setFiles(found.volumes));
  }, [ended]);
  const shown = runs.find((run) => run.id === chosen) ?? runs[0];
  return (
    <div className="volumes">
      <div className="asked">
        <Start
          page={tab.history.now}
          selection={tab.selection}
          files={files}
          onStart={(run) => {
            setChosen(run.id);
            take(run);
          }}
        />
        <RunList runs={runs} shown={shown} choose={setChosen} take={take} />
      </div>
      {shown && <Shown key={shown.id} run={shown} />}
    </div>
  );
}

/** All runs, asked for often while one goes on, and now and then otherwise. */
function useRuns() {
  const [runs, setRuns] = useState<readonly ChunkedRun[]>([]);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let timer = 0;
    let left = false;
    const ask = async () => {
      const found = await api.chunkedRuns().catch(() => null);
      if (left) return;
      if (found) setRuns(found.runs);
      timer = window.setTimeout(() => void ask(), found?.runs.some((run) => run.phase === "running") ? QUICK_MS : CALM_MS);
    };
    void ask();
    return () => {
      left = true;
      window.clearTimeout(timer);
    };
  }, [turn]);
  /** What an answer told of one run, before all are asked for again. */
  const take = (run: ChunkedRun) => {
    setRuns((now) => (now.some((one) => one.id === run.id) ? now.map((one) => (one.id === run.id ? run : one)) : [run, ...now]));
    setTurn((now) => now + 1);
  };
  return { runs, take };
}

const isSource = (block: Block) => block.op === "Volume" || block.op === "Placeholder";

interface StartProps {
  readonly page: Page;
  readonly selection: ReadonlySet<string>;
  readonly files: readonly VolumeFile[] | null;
  readonly onStart: (run: ChunkedRun) => void;
}

/** What to read, what to write, how to cut it. */
function Start({ page, selection, files, onStart }: StartProps) {
  const words = useWords();
  const sources = page.blocks.filter(isSource);
  const results = [...new Set([...Object.values(page.outputs ?? {}).map(blockOf), ...page.blocks.map((block) => block.name)])].filter(
    (name) => !sources.some((block) => block.name === name),
  );
  const [read, setRead] = useState<{ readonly [block: string]: string }>({});
  const [picked, setPicked] = useState<string | null>(null);
  const [typed, setTyped] = useState<string | null>(null);
  const [chunks, setChunks] = useState<readonly number[]>([64, 64, 64]);
  const [busy, setBusy] = useState(false);
  if (sources.length === 0) return <p className="none start">{words("volumes.noSource")}</p>;
  if (files?.length === 0) return <p className="none start">{words("volumes.noFiles")}</p>;
  const result = picked ?? results.find((name) => selection.has(name)) ?? results[0] ?? "";
  const target = typed ?? `${result.replaceAll(/[^\w.-]+/g, "-")}.zarr`;
  const fileOf = (block: Block) => read[block.name] ?? ownFile(block, files ?? []) ?? files?.[0]?.name ?? "";
  const start = async () => {
    setBusy(true);
    const volumes = Object.fromEntries(sources.map((block) => [block.name, fileOf(block)]));
    const run = await attempt(() => api.startChunkedRun({ document: page, volumes, outputs: { [result]: target }, chunks: [...chunks] }));
    setBusy(false);
    if (!run) return;
    say(words("volumes.started", { name: run.name }));
    onStart(run);
  };
  return (
    <form
      className="start"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      {sources.map((block) => (
        <Source key={block.name} block={block} files={files ?? []} value={fileOf(block)} onChange={(name) => setRead({ ...read, [block.name]: name })} />
      ))}
      <label className="pair">
        <span>{words("volumes.write")}</span>
        <select value={result} onChange={(event) => setPicked(event.target.value)}>
          {results.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <input value={target} onChange={(event) => setTyped(event.target.value)} aria-label={words("volumes.target")} spellCheck={false} />
      </label>
      <div className="pair" role="group" aria-label={words("volumes.chunks")}>
        <span>{words("volumes.chunks")}</span>
        <span className="sizes">
          {["D", "H", "W"].map((axis, index) => (
            <label key={axis} className="inline">
              <span>{axis}</span>
              <input
                type="number"
                min={1}
                max={4096}
                value={chunks[index]}
                onChange={(event) => setChunks(chunks.map((size, at) => (at === index ? Math.max(1, Number(event.target.value) || 1) : size)))}
              />
            </label>
          ))}
        </span>
      </div>
      <button type="submit" className="primary" disabled={busy || result === ""}>
        <Icon name="play" /> {words(busy ? "volumes.starting" : "volumes.start")}
      </button>
    </form>
  );
}

function blockOf(output: string): string {
  return output.slice(0, output.lastIndexOf("."));
}

/** The file that a block names itself, if it is there. */
function ownFile(block: Block, files: readonly VolumeFile[]): string | undefined {
  const path = block.attrs?.["path"];
  return files.find((file) => file.name === path)?.name;
}

function Source({ block, files, value, onChange }: { block: Block; files: readonly VolumeFile[]; value: string; onChange: (name: string) => void }) {
  const words = useWords();
  const file = files.find((one) => one.name === value);
  return (
    <>
      <label className="pair">
        <span>{words("volumes.read")}</span>
        <strong title={block.op}>{block.name}</strong>
        <select value={value} onChange={(event) => onChange(event.target.value)}>
          {files.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </select>
      </label>
      {file && <p className={file.error ? "fault" : "hint file-facts"}>{file.error || facts(file)}</p>}
    </>
  );
}

function facts(file: VolumeFile): string {
  const spacing = `${file.spacing.map((size) => format.number(size, 3)).join("×")}${file.unit ? ` ${file.unit}` : ""}`;
  return [file.format, `${format.dtype(file.dtype)} ${format.shape(file.shape)}`, spacing, format.bytes(file.bytes)].join(" · ");
}

interface RunListProps {
  readonly runs: readonly ChunkedRun[];
  readonly shown: ChunkedRun | undefined;
  readonly choose: (id: string) => void;
  readonly take: (run: ChunkedRun) => void;
}

function RunList({ runs, shown, choose, take }: RunListProps) {
  const words = useWords();
  if (runs.length === 0) return <p className="none">{words("volumes.none")}</p>;
  return (
    <ul className="chunked-runs" aria-label={words("volumes.runs")}>
      {runs.map((run) => (
        <li key={run.id} className={run.id === shown?.id ? "current" : ""}>
          <button type="button" className="row-main" aria-current={run.id === shown?.id} onClick={() => choose(run.id)}>
            <span className={`dot ${run.phase === "finished" ? "ok" : run.phase === "failed" ? "bad" : run.phase === "running" ? "going" : ""}`} />
            <strong>{run.name}</strong>
            <span className="hint">{words(`volumes.phase.${run.phase}`)}</span>
            <progress value={run.done} max={run.total} aria-label={`${run.name}: ${run.done} / ${run.total}`} />
          </button>
          {run.stoppable && (
            <button type="button" className="danger" onClick={() => void attempt(() => api.stopChunkedRun(run.id)).then((stopped) => stopped && take(stopped))}>
              <Icon name="stop" /> {words("run.stop")}
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

/** One run: its chunks, and what they add up to. */
function Shown({ run }: { run: ChunkedRun }) {
  const words = useWords();
  const tell = useTold();
  const left = run.seconds_left;
  return (
    <section className="chunked-run" aria-label={run.name}>
      <dl className="figures">
        <Figure name={words("volumes.done")} value={`${format.count(run.done)} / ${format.count(run.total)}`} />
        <Figure name={words("volumes.running")} value={format.count(run.running)} kind="run" />
        {run.failed.length > 0 && <Figure name={words("volumes.failed")} value={format.count(run.failed.length)} kind="bad" />}
        <Figure name={words("volumes.rate")} value={run.rate > 0 ? `${format.number(run.rate, 3)} /s` : "—"} />
        <Figure name={words(left === null ? "volumes.took" : "volumes.left")} value={format.seconds(left ?? run.seconds)} />
      </dl>
      <ChunkGrid run={run} />
      {(run.error ?? run.failed[0]?.message) && <p className="fault">{run.error ? tell(run.error) : `${run.failed[0]!.chunk}: ${tell(run.failed[0]!.message)}`}</p>}
      {run.phase === "stopped" && <p className="hint">{words("volumes.goOn")}</p>}
    </section>
  );
}

function Figure({ name, value, kind = "" }: { name: string; value: string; kind?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className={kind}>{value}</dd>
    </div>
  );
}
