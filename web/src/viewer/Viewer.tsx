// SPDX-License-Identifier: Apache-2.0
/** The inspector enlarged: one result as table, slices, volume, histogram or difference. */

import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { api, ApiError, type BlockOutput } from "../core/api";
import * as format from "../core/format";
import { findBlock, outputPins } from "../core/document";
import { axisNames, sizeOf, type Tensor } from "../core/tensor";
import { gradientOrder } from "../core/scopes";
import { layoutOfOutput } from "../editor/useBlock";
import { useSummary } from "../editor/ValueGrid";
import { Statistics } from "../panels/Inspector";
import { prefixOf, shownPage, update, useStudio, type Tab, type ViewerState, type ViewerTab } from "../state/store";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { Icon } from "../ui/Icon";
import { Diff } from "./Diff";
import { Histogram } from "./Histogram";
import { Slices } from "./Slices";
import type { Source } from "./planeValues";
import { Table } from "./Table";

const Volume = lazy(() => import("./Volume"));
const LargeVolume = lazy(() => import("./LargeVolume"));
const Planes = lazy(() => import("./Planes"));
const KINDS: readonly ViewerTab[] = ["slices", "planes", "table", "volume", "histogram", "diff"];
/** A tensor of more elements stays on the server, which sends what is shown of it. */
const MOST_HERE = 2 ** 21;
/** A table and a difference need all of it. */
const MOST_WHOLE = 2 ** 25;

const tensors = new Map<string, Promise<Tensor>>();
const MOST_KEPT = 8;

/** The values of a tensor; the last few are kept, for a name never changes its content. */
export function useTensor(hash: string | null): Tensor | ApiError | null {
  const [found, setFound] = useState<Tensor | ApiError | null>(null);
  useEffect(() => {
    setFound(null);
    if (hash === null) return undefined;
    let wanted = true;
    let asked = tensors.get(hash);
    if (!asked) {
      asked = api.tensor(hash);
      tensors.set(hash, asked);
      const oldest = tensors.keys().next().value;
      if (tensors.size > MOST_KEPT && oldest !== undefined) tensors.delete(oldest);
    }
    asked.then(
      (tensor) => wanted && setFound(tensor),
      (error: unknown) => {
        tensors.delete(hash);
        if (wanted) setFound(error instanceof ApiError ? error : new ApiError(0, String(error)));
      },
    );
    return () => {
      wanted = false;
    };
  }, [hash]);
  return found;
}

export function layoutLetters(tab: Tab, block: string, output: string, rank: number): string[] {
  const page = shownPage(tab);
  const found = findBlock(page, block);
  const { catalogue } = useStudio.getState();
  const pin = found && outputPins(page, found, catalogue).find((one) => one.name === output);
  const layout = found ? layoutOfOutput(found, pin, tab, catalogue) : "";
  return layout === "filter" && rank === 5 ? ["D", "H", "W", "I", "O"] : axisNames(rank, layout);
}

/** A result of the run on the page, or of another. */
export type ShownOutput = Pick<BlockOutput, "name" | "hash" | "dtype" | "shape">;

export default function Viewer({ tab, viewer }: { tab: Tab; viewer: ViewerState }) {
  const words = useWords();
  const results = tab.results[prefixOf(tab) + viewer.block]?.outputs ?? [];
  const output: ShownOutput | undefined = viewer.kept ? { ...viewer.kept, name: viewer.output } : (results.find((one) => one.name === viewer.output) ?? results[0]);
  const set = (change: Partial<ViewerState>) => update({ viewer: { ...viewer, ...change } });
  // Pictures follow the cursor as long as there is one to see.
  useEffect(() => () => update({ cursor: null }), []);
  const blocks = Object.keys(tab.results).filter((name) => name.startsWith(prefixOf(tab)) && tab.results[name]!.outputs.length > 0);
  return (
    <aside className="panel viewer" aria-label={words("viewer.title")}>
      <div className="panel-tabs">
        <select value={viewer.block} aria-label={words("check.block")} onChange={(event) => set({ block: event.target.value, output: "", kept: undefined })}>
          {!blocks.includes(prefixOf(tab) + viewer.block) && <option>{viewer.block}</option>}
          {blocks.map((name) => (
            <option key={name}>{name.slice(prefixOf(tab).length)}</option>
          ))}
        </select>
        {viewer.kept && <span className="badge">{viewer.kept.of}</span>}
        {results.length > 1 && !viewer.kept && (
          <select value={output?.name} aria-label={words("viewer.output")} onChange={(event) => set({ output: event.target.value })}>
            {results.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        )}
        {output && (
          <code className="hint">
            {output.dtype} {format.brackets(output.shape)}
          </code>
        )}
        <span className="grow" />
        {output?.hash && (
          <a className="button" href={api.npyUrl(output.hash)} download>
            {words("viewer.exportNpy")}
          </a>
        )}
        <button type="button" className="icon-only quiet" onClick={() => update({ viewer: null })} aria-label={words("viewer.close")}>
          <Icon name="close" />
        </button>
      </div>
      <div className="viewer-kinds" role="tablist" aria-label={words("viewer.title")}>
        {KINDS.map((kind) => (
          <button key={kind} type="button" role="tab" aria-selected={viewer.tab === kind} onClick={() => set({ tab: kind })}>
            {words(`viewer.${kind}`)}
          </button>
        ))}
      </div>
      {output ? <Content key={output.hash} tab={tab} viewer={viewer} output={output} /> : <p className="none">{words("viewer.none")}</p>}
    </aside>
  );
}

function Content({ tab, viewer, output }: { tab: Tab; viewer: ViewerState; output: ShownOutput }) {
  const words = useWords();
  const tell = useTold();
  const count = sizeOf(output.shape);
  const asks = (viewer.tab === "table" || viewer.tab === "diff") && count <= MOST_WHOLE;
  const large = count > MOST_HERE && !asks;
  const tensor = useTensor(large ? null : output.hash);
  const summary = useSummary(output.hash);
  // The page is told of anew all the time; what is shown of it begins anew only where it is something else.
  const letters = layoutLetters(tab, viewer.block, output.name, output.shape.length).join();
  const names = useMemo(() => (letters ? letters.split(",") : []), [letters]);
  const of = useMemo(() => ({ block: viewer.block, output: output.name }), [viewer.block, output.name]);
  const whole = tensor instanceof ApiError ? null : tensor;
  const source = useMemo<Source>(() => ({ hash: output.hash ?? "", dtype: output.dtype, shape: output.shape, tensor: whole }), [output.hash, whole]);
  const scale = gradientOrder(viewer.block) > 0 ? "signed" : "values";
  if (tensor instanceof ApiError) return <p className="none fault">{tell(tensor.message)}</p>;
  if (!large && !tensor) return <p className="none">{words("viewer.loading")}</p>;
  const loading = <p className="none">{words("viewer.loading")}</p>;
  const asPlanes = viewer.tab === "planes" || (large && viewer.tab === "slices");
  return (
    <div className="viewer-body">
      {asPlanes && summary && (
        <Suspense fallback={loading}>
          <Planes tab={tab} source={source} brief={summary} histogram={summary.histogram} names={names} scale={scale} of={of} />
        </Suspense>
      )}
      {viewer.tab === "volume" && (
        <Suspense fallback={loading}>{whole ? <Volume tensor={whole} names={names} scale={scale} of={of} /> : <LargeVolume source={source} names={names} scale={scale} of={of} />}</Suspense>
      )}
      {viewer.tab === "histogram" && (
        <div className="scroll padded">
          {summary?.histogram && <Histogram histogram={summary.histogram} height={260} />}
          <Statistics hash={output.hash} />
        </div>
      )}
      {whole ? (
        <>
          {viewer.tab === "table" && <Table tensor={whole} names={names} />}
          {viewer.tab === "slices" && <Slices tensor={whole} names={names} scale={scale} title={viewer.block} of={of} />}
          {viewer.tab === "diff" && <Diff tab={tab} viewer={viewer} output={output} tensor={whole} names={names} />}
        </>
      ) : (
        (viewer.tab === "table" || viewer.tab === "diff") && <p className="none">{words("viewer.large")}</p>
      )}
    </div>
  );
}
