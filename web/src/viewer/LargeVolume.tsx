// SPDX-License-Identifier: Apache-2.0
/** The view in three dimensions of a volume that stays on the server: a likeness of it, made of means over bricks. */

import { useEffect, useMemo, useState } from "react";
import { api, ApiError } from "../core/api";
import type { Scale } from "../core/colour";
import { spatialAxes } from "../core/space";
import type { Tensor } from "../core/tensor";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import type { Source } from "./planeValues";
import Volume from "./Volume";

interface Props {
  readonly source: Source;
  readonly names: readonly string[];
  readonly scale: Scale;
  readonly of: { readonly block: string; readonly output: string };
}

/** Cells a side that are sent. */
const MOST = 96;

export default function LargeVolume({ source, names, scale, of }: Props) {
  const tell = useTold();
  const words = useWords();
  const { hash, shape } = source;
  const axes = useMemo(() => spatialAxes(shape, names, null), [shape, names]);
  const [held, setHeld] = useState<readonly number[]>(() => shape.map(() => 0));
  const [found, setFound] = useState<Tensor | ApiError | null>(null);
  useEffect(() => {
    let wanted = true;
    setFound(null);
    const at = held.map((one, axis) => (axes.includes(axis) ? 0 : one));
    api.likeness(hash, axes, at, MOST).then(
      (tensor) => wanted && setFound({ ...tensor, shape: shape.map((_, axis) => (axes.includes(axis) ? tensor.shape[axes.indexOf(axis)]! : 1)) }),
      (error: unknown) => wanted && setFound(error instanceof ApiError ? error : new ApiError(0, String(error))),
    );
    return () => {
      wanted = false;
    };
  }, [hash, shape, axes, held]);
  const whole = useMemo(() => ({ hash, shape, held, bricks: shape.map((size, axis) => (axes.includes(axis) ? Math.ceil(size / MOST) : 1)) }), [hash, shape, held, axes]);
  const free = shape.flatMap((size, axis) => (size > 1 && !axes.includes(axis) ? [axis] : []));
  if (found instanceof ApiError) return <p className="none fault">{tell(found.message)}</p>;
  return (
    <>
      {free.map((axis) => (
        <label key={axis} className="slider padded">
          <span>{names[axis]}</span>
          <input type="range" min={0} max={shape[axis]! - 1} value={held[axis]} onChange={(event) => setHeld(held.with(axis, Number(event.target.value)))} />
          <output>{held[axis]}</output>
        </label>
      ))}
      <p className="hint padded">{words("viewer.likeness", { bricks: axes.map((axis) => whole.bricks[axis]).join("×") })}</p>
      {found ? <Volume tensor={found} names={names} scale={scale} of={of} whole={whole} /> : <p className="none">{words("viewer.loading")}</p>}
    </>
  );
}
