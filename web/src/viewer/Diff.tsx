// SPDX-License-Identifier: Apache-2.0
/** A result against another block, an earlier run or another engine. */

import { useEffect, useMemo, useState } from "react";
import { api, ApiError, type Comparison, type Run } from "../core/api";
import * as format from "../core/format";
import { difference, indexText, type Tensor } from "../core/tensor";
import { prefixOf, update, type Tab, type ViewerState } from "../state/store";
import { attempt } from "../state/pages";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { ArrayFile } from "../ui/ArrayFile";
import { Slices } from "./Slices";
import { useTensor, type ShownOutput } from "./Viewer";

interface Props {
  readonly tab: Tab;
  readonly viewer: ViewerState;
  readonly output: ShownOutput;
  readonly tensor: Tensor;
  readonly names: readonly string[];
}

export function Diff({ tab, viewer, output, tensor, names }: Props) {
  const words = useWords();
  const tell = useTold();
  const [files, setFiles] = useState<readonly Choice[]>([]);
  const choices = [...useChoices(tab, viewer, output), ...files];
  const compareWith = async (file: File) => {
    const kept = await attempt(() => api.importTensor(file.name, file, tensor.shape));
    if (!kept) return;
    setFiles((known) => [...known.filter((one) => one.hash !== kept.hash), { name: file.name, hash: kept.hash }]);
    update({ viewer: { ...viewer, against: `hash:${kept.hash}` } });
  };
  const hash = viewer.against.startsWith("hash:") ? viewer.against.slice(5) : null;
  const other = useTensor(hash);
  const comparison = useComparison(output.hash, hash);
  const differs = useMemo(() => {
    if (!other || other instanceof ApiError || other.shape.join() !== tensor.shape.join()) return null;
    const found = difference(tensor, other);
    return { found, tensor: { dtype: "float64", shape: tensor.shape, data: found.values } satisfies Tensor };
  }, [tensor, other]);
  const mismatch = other && !(other instanceof ApiError) && other.shape.join() !== tensor.shape.join();
  return (
    <div className="scroll padded">
      <label className="inline">
        <span>{words("viewer.against")}</span>
        <select value={viewer.against} onChange={(event) => update({ viewer: { ...viewer, against: event.target.value } })}>
          <option value="">{words("viewer.choose")}</option>
          {hash !== null && !choices.some((choice) => choice.hash === hash) && <option value={`hash:${hash}`}>{viewer.kept?.against ?? hash.slice(0, 12)}</option>}
          {choices.map((choice) => (
            <option key={choice.name} value={`hash:${choice.hash}`}>
              {choice.name}
            </option>
          ))}
        </select>
        <ArrayFile label={words("viewer.againstFile")} take={(file) => void compareWith(file)} />
      </label>
      {mismatch && <p className="fault">{words("viewer.shapesDiffer", { left: format.brackets(tensor.shape), right: format.brackets(other.shape) })}</p>}
      {other instanceof ApiError && <p className="fault">{tell(other.message)}</p>}
      {differs && (
        <>
          <dl className="facts statistics">
            <dt>{words("compare.maxAbs")}</dt>
            <dd>{format.number(comparison?.max_abs ?? differs.found.maxAbs)}</dd>
            <dt>{words("compare.ulp")}</dt>
            <dd>{format.number(comparison ? (comparison.max_ulp ?? NaN) : differs.found.maxUlp)}</dd>
            <dt>mean |Δ|</dt>
            <dd>{format.number(comparison?.mean_abs ?? differs.found.meanAbs)}</dd>
          </dl>
          <p>
            {differs.found.differing === 0 ? (
              <span className="badge ok">{words("viewer.equal")}</span>
            ) : (
              words("viewer.differing", { count: format.count(differs.found.differing), all: format.count(tensor.data.length) })
            )}
          </p>
          {comparison && comparison.where.length > 0 && (
            <table className="table where">
              <tbody>
                {comparison.where.slice(0, 6).map((place) => (
                  <tr key={place.index.join()}>
                    <td>
                      <code>{indexText(place.index)}</code>
                    </td>
                    <td className="number">{place.left}</td>
                    <td className="number">{place.right}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          {differs.found.differing > 0 && <Slices tensor={differs.tensor} names={names} scale="signed" title={`${viewer.block}_difference`} />}
        </>
      )}
    </div>
  );
}

function useComparison(left: string | null, right: string | null): Comparison | null {
  const [found, setFound] = useState<Comparison | null>(null);
  useEffect(() => {
    setFound(null);
    if (left === null || right === null) return undefined;
    let wanted = true;
    api.compare({ hash: left }, { hash: right }).then((result) => wanted && setFound(result), () => undefined);
    return () => {
      wanted = false;
    };
  }, [left, right]);
  return found;
}

interface Choice {
  readonly name: string;
  readonly hash: string;
}

/** Every other result of this page, and the same output in earlier runs. */
function useChoices(tab: Tab, viewer: ViewerState, output: ShownOutput): Choice[] {
  const [runs, setRuns] = useState<readonly Run[]>([]);
  useEffect(() => {
    let wanted = true;
    const past = tab.runs.filter((run) => run.state === "done" && run.id !== tab.run?.id).slice(0, 10);
    Promise.all(past.map((run) => api.runDetails(run.id))).then((found) => wanted && setRuns(found), () => undefined);
    return () => {
      wanted = false;
    };
  }, [tab.runs, tab.run?.id]);
  const full = prefixOf(tab) + viewer.block;
  const here = Object.values(tab.results).flatMap((block) =>
    block.outputs.flatMap((one) =>
      one.hash && (block.block !== full || one.name !== output.name) ? [{ name: `${block.block}.${one.name} ${format.brackets(one.shape)}`, hash: one.hash }] : [],
    ),
  );
  const before = runs.flatMap((run) =>
    run.blocks.flatMap((block) =>
      block.block === full
        ? block.outputs.flatMap((one) => (one.name === output.name && one.hash ? [{ name: `${run.engine} ${new Date(run.started * 1000).toLocaleTimeString()} #${run.id.slice(0, 6)}`, hash: one.hash }] : []))
        : [],
    ),
  );
  return [...here, ...before];
}
