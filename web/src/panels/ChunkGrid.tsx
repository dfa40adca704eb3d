// SPDX-License-Identifier: Apache-2.0
/** The chunks of a volume as squares, slab by slab: done, running, failed, to do. */

import { useEffect, useRef, useState } from "react";
import type { ChunkedRun } from "../core/api";
import { cellAt, cellState, corner, layOut, voxels, type CellState, type Grid } from "../core/chunkGrid";
import { useStudio } from "../state/store";
import { useWords } from "../state/words";

const LEGEND: readonly CellState[] = ["done", "running", "failed", "todo"];

export function ChunkGrid({ run }: { run: ChunkedRun }) {
  const words = useWords();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useStudio((state) => state.settings.theme);
  const [room, setRoom] = useState({ width: 480, height: 150 });
  const [over, setOver] = useState<number | null>(null);
  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(([entry]) => entry && setRoom({ width: entry.contentRect.width, height: entry.contentRect.height }));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const grid = layOut(run.shown, room.width, room.height);
  useEffect(() => {
    if (canvas.current) draw(canvas.current, grid, run.cells, words("volumes.slab"));
  });
  const told = words("volumes.picture", { done: run.done, total: run.total, running: run.running, failed: run.failed.length });
  return (
    <>
      <div className="chunk-grid" ref={box} tabIndex={0} role="group" aria-label={words("volumes.grid")}>
        <canvas
          ref={canvas}
          data-theme={theme}
          data-cells={run.cells}
          role="img"
          aria-label={told}
          onPointerMove={(event) => setOver(cellAt(grid, event.nativeEvent.offsetX, event.nativeEvent.offsetY))}
          onPointerLeave={() => setOver(null)}
        />
      </div>
      <p className="legend">
        {over !== null && over < run.cells.length ? (
          <Place run={run} cell={over} />
        ) : (
          LEGEND.map((state) => (
            <span key={state}>
              <i className={`square ${state}`} /> {words(`volumes.cell.${state}`)}
            </span>
          ))
        )}
      </p>
    </>
  );
}

/** Which voxels of the result the pointer is on. */
function Place({ run, cell }: { run: ChunkedRun; cell: number }) {
  const words = useWords();
  const state = cellState(run.cells[cell]);
  const ranges = voxels(run.grid, run.shown, run.chunks, cell).map(([first, end], axis) => `${"DHW"[axis]} ${first}–${end}`);
  return (
    <span>
      <i className={`square ${state}`} /> {ranges.join(", ")} · {words(`volumes.cell.${state}`)}
      {state === "part" && ` ${run.cells[cell]}0 %`}
    </span>
  );
}

function draw(canvas: HTMLCanvasElement, grid: Grid, cells: string, slab: string): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const sharp = window.devicePixelRatio || 1;
  canvas.width = Math.ceil(grid.width * sharp);
  canvas.height = Math.ceil(grid.height * sharp);
  canvas.style.width = `${grid.width}px`;
  canvas.style.height = `${grid.height}px`;
  context.scale(sharp, sharp);
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const [depth, rows, across] = grid.shown;
  const size = Math.max(grid.cell - (grid.cell > 8 ? 2 : 1), 2);
  context.font = `11px ${style.fontFamily}`;
  for (let at = 0; at < depth; at += 1) {
    const [left, top] = corner(grid, at);
    context.fillStyle = colour("muted");
    if (across * grid.cell > 24) context.fillText(at === 0 ? `${slab} ${at}` : String(at), left, top - 5);
    for (let cell = 0; cell < rows * across; cell += 1) {
      const [x, y] = [left + (cell % across) * grid.cell, top + Math.floor(cell / across) * grid.cell];
      drawCell(context, colour, x, y, size, cells[at * rows * across + cell]);
    }
  }
}

/** State shows by form as well as by colour: full, ringed, crossed, hollow. */
function drawCell(context: CanvasRenderingContext2D, colour: (name: string) => string, x: number, y: number, size: number, letter: string | undefined): void {
  const state = cellState(letter);
  context.fillStyle = state === "done" ? colour("ok") : state === "failed" ? colour("bad-ground") : state === "running" ? colour("hover") : colour("field");
  context.fillRect(x, y, size, size);
  if (state === "part") {
    const part = (size * Number(letter)) / 10;
    context.fillStyle = colour("ok");
    context.fillRect(x, y + size - part, size, part);
  }
  if (state === "done") return;
  context.strokeStyle = state === "failed" ? colour("bad") : state === "running" ? colour("run") : colour("line");
  context.lineWidth = state === "running" ? 2 : 1;
  const inset = context.lineWidth / 2;
  context.strokeRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
  if (state !== "failed" || size < 6) return;
  context.beginPath();
  context.moveTo(x + size * 0.3, y + size * 0.3);
  context.lineTo(x + size * 0.7, y + size * 0.7);
  context.moveTo(x + size * 0.7, y + size * 0.3);
  context.lineTo(x + size * 0.3, y + size * 0.7);
  context.stroke();
}
