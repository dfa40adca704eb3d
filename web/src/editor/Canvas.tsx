// SPDX-License-Identifier: Apache-2.0
/** The page as a drawing: blocks, wires, and everything that pointers do there. */

import {
  applyNodeChanges, Background, BackgroundVariant, MiniMap, ReactFlow, useNodesInitialized, useReactFlow, useStore,
  type Connection, type EdgeChange, type IsValidConnection, type NodeChange, type OnConnectEnd, type OnConnectStart, type ReactFlowInstance,
} from "@xyflow/react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { overlapping, placesFor } from "../core/arrange";
import { insertIntoWire, moveBlocks, type Point } from "../core/commands";
import { findBlock, inputPins, outputPins, wireId, wiresOf } from "../core/document";
import type { Page, Wire } from "../core/model";
import { compatiblePins, readingOrder, refusal, type PinPlace } from "../core/pins";
import { addOp, connectPins, editPage, localAnalysis, select } from "../state/edits";
import { boxes, guessHeight, keepByHand, settle } from "../state/layout";
import { dropBlocks, dropsBlocks, openDropped } from "../state/pages";
import { openBlock, openQuickAdd } from "../state/perform";
import { activeTab, flow, shownPage, studio, update, updateTab, useStudio, type Tab } from "../state/store";
import { useWords, word } from "../state/words";
import { BlockNode, gradientOrder, type BlockNodeType } from "./BlockNode";
import { problemsOf } from "./useBlock";
import { plansOf, type Ends, type Plan } from "./routes";
import { tidy } from "./tidy";
import { WireEdge, type WireEdgeType } from "./WireEdge";

const NODE_TYPES = { block: BlockNode };
const EDGE_TYPES = { wire: WireEdge };
const LOW_DETAIL = 0.36;
const SMALLEST_FIT = 0.25;
const START_ZOOM = 0.6;
/** From this many blocks on a page has a map. */
const MAPPED = 12;

function mapColour(node: BlockNodeType): string {
  const tab = activeTab();
  return problemsOf(tab, node.id).length > 0 ? "var(--bad)" : gradientOrder(node.id) > 0 ? "var(--shape)" : "var(--edge)";
}

/** Nodes for the blocks of a page; blocks that did not change keep their node, and with it their place in the drawing. */
function nodesOf(page: Page, selection: ReadonlySet<string>, old: readonly BlockNodeType[]): BlockNodeType[] {
  const known = new Map(old.map((node) => [node.id, node]));
  const places = placesFor(page, guessHeight);
  return readingOrder(page).map((block) => {
    const before = known.get(block.name);
    const [x, y] = block.position ?? places.get(block.name) ?? [0, 0];
    const selected = selection.has(block.name);
    if (before?.data.block === block && before.position.x === x && before.position.y === y && before.selected === selected) return before;
    return { ...before, id: block.name, type: "block", position: { x, y }, data: before?.data.block === block ? before.data : { block }, selected, ariaLabel: `${block.name}, ${block.op ?? block.page}` };
  });
}

const STRAIGHT: Plan = { lane: 0, via: "late" };

/** Edges for the wires of a page; those that did not change stay the same object and are not drawn again. */
function edgesOf(page: Page, wires: ReadonlySet<string>, plans: ReadonlyMap<string, Plan>, old: readonly WireEdgeType[]): WireEdgeType[] {
  const known = new Map(old.map((edge) => [edge.id, edge]));
  return wiresOf(page).map((wire) => {
    const id = wireId(wire);
    const before = known.get(id);
    const plan = plans.get(id) ?? STRAIGHT;
    const planned = before?.data?.plan;
    if (before && before.selected === wires.has(id) && planned?.lane === plan.lane && planned.via === plan.via) return before;
    return {
      id,
      type: "wire",
      source: wire.from,
      sourceHandle: wire.output,
      target: wire.to,
      targetHandle: wire.pin,
      data: { wire, plan },
      selected: wires.has(id),
      focusable: true,
      ariaLabel: `${wire.from}.${wire.output} → ${wire.to}.${wire.pin}`,
    };
  });
}

/** Where a wire starts and ends in the drawing; null before its blocks are measured. */
function endsOf(wire: Wire): Ends | null {
  const at = (name: string, side: "source" | "target", pin: string) => {
    const node = flow.current?.getInternalNode(name);
    const handle = node?.internals.handleBounds?.[side]?.find((one) => one.id === pin);
    if (!node || !handle) return null;
    const { x, y } = node.internals.positionAbsolute;
    return [x + handle.x + (side === "source" ? handle.width : 0), y + handle.y + handle.height / 2] as const;
  };
  const from = at(wire.from, "source", wire.output);
  const to = at(wire.to, "target", wire.pin);
  return from && to && { x0: from[0], y0: from[1], x1: to[0], y1: to[1] };
}

export function Canvas({ tab }: { tab: Tab }) {
  const page = shownPage(tab);
  const theme = useStudio((state) => state.settings.theme);
  const catalogue = useStudio((state) => state.catalogue);
  const words = useWords();
  const [nodes, setNodes] = useState<BlockNodeType[]>(() => nodesOf(page, tab.selection, []));
  useEffect(() => setNodes((old) => nodesOf(page, tab.selection, old)), [page, tab.selection]);
  const sizes = nodes.map((node) => `${node.measured?.width ?? 0}x${node.measured?.height ?? 0}`).join();
  const places = page.blocks.map((block) => `${block.name}@${block.position?.join()}`).join();
  const wiring = wiresOf(page).map(wireId).join();
  const plans = useMemo(() => plansOf(page, catalogue, boxes(), endsOf), [places, wiring, catalogue, sizes]);
  const drawn = useRef<WireEdgeType[]>([]);
  const edges = useMemo(() => (drawn.current = edgesOf(page, tab.wires, plans, drawn.current)), [wiring, tab.wires, plans]);
  const place = `${tab.id}/${tab.trail.map((step) => step.block).join("/")}`;

  const onNodesChange = useCallback((changes: NodeChange<BlockNodeType>[]) => {
    const chosen = changes.filter((change) => change.type === "select");
    if (chosen.length > 0) changeSelection("selection", chosen);
    // The document takes part when the drag ends; until then only the drawing moves.
    setNodes((old) => applyNodeChanges(changes.filter((change) => change.type !== "select" && change.type !== "remove"), old));
  }, []);
  const onEdgesChange = useCallback((changes: EdgeChange<WireEdgeType>[]) => {
    const chosen = changes.filter((change) => change.type === "select");
    if (chosen.length > 0) changeSelection("wires", chosen);
  }, []);

  return (
    <div
      className="canvas"
      role="region"
      aria-label={words("canvas.label")}
      onDoubleClick={onDoubleClick}
      onContextMenu={onContextMenu}
      onDragOver={(event) => event.preventDefault()}
      onDrop={onDrop}
    >
      <ReactFlow<BlockNodeType, WireEdgeType>
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        onNodeDragStop={(_event, _node, moved) => finishDrag(moved)}
        onSelectionDragStop={(_event, moved) => finishDrag(moved)}
        onNodeDoubleClick={(event, node) => {
          if (!(event.target instanceof Element && event.target.closest(".nodrag"))) openBlock(node.id);
        }}
        onConnect={onConnect}
        onConnectStart={onConnectStart}
        onConnectEnd={onConnectEnd}
        isValidConnection={isValid}
        colorMode={theme}
        disableKeyboardA11y
        deleteKeyCode={null}
        selectionKeyCode="Shift"
        multiSelectionKeyCode={["Shift", "Control", "Meta"]}
        minZoom={0.01}
        maxZoom={2.5}
        zoomOnDoubleClick={false}
        connectionRadius={26}
        elevateNodesOnSelect
        proOptions={{ hideAttribution: true }}
        nodeDragThreshold={2}
      >
        <Background variant={BackgroundVariant.Dots} gap={22} size={1.4} />
        <DetailLevel />
        {page.blocks.length >= MAPPED && <MiniMap pannable zoomable ariaLabel={words("canvas.map")} nodeColor={mapColour} style={{ width: 160, height: 110 }} />}
        <FirstLook place={place} drawing={`${sizes}|${places}`} />
      </ReactFlow>
      {page.blocks.length === 0 && (
        <div className="empty">
          <h2>{words("canvas.empty")}</h2>
          <p>{words("canvas.emptyHint")}</p>
        </div>
      )}
    </div>
  );
}

/** Below this zoom a block is its title and its badge; the class on the canvas hides the rest. */
function DetailLevel() {
  const low = useStore((state) => state.transform[2] < LOW_DETAIL);
  useEffect(() => {
    document.querySelector(".canvas")?.classList.toggle("low-detail", low);
  }, [low]);
  return null;
}

/** A page that is too wide to be read as a whole is shown from its beginning. */
function startAtLeft(instance: ReactFlowInstance): void {
  const all = boxes();
  if (instance.getZoom() >= SMALLEST_FIT || all.length === 0) return;
  const first = all.reduce((a, b) => (b.x < a.x ? b : a));
  const canvas = document.querySelector(".canvas")?.getBoundingClientRect();
  void instance.setViewport({ x: 40 - first.x * START_ZOOM, y: (canvas?.height ?? 500) / 2 - (first.y + first.height / 2) * START_ZOOM, zoom: START_ZOOM });
}

/** Once the blocks of a page are measured: part those that lie on each other, and show the whole page. */
function FirstLook({ place, drawing }: { place: string; drawing: string }) {
  const measured = useNodesInitialized();
  const instance = useReactFlow();
  const analysed = useStudio((state) => activeTab(state)?.analysis !== null);
  const looked = useRef("");
  useLayoutEffect(() => {
    flow.current = instance;
  }, [instance]);
  useEffect(() => {
    if (!measured || looked.current === place) return undefined;
    const fit = () => void instance.fitView({ padding: 0.08, maxZoom: 1 }).then(() => startAtLeft(instance));
    fit();
    if (!analysed) return undefined;
    // What the analysis tells changes the size of blocks; they are measured in the next frames.
    const timer = window.setTimeout(() => {
      looked.current = place;
      const tab = activeTab();
      if (tab && tab.history.past.length === 0 && overlapping(boxes())) void tidy({ quietly: true }).then(() => window.setTimeout(fit, 60));
      else fit();
    }, 120);
    return () => window.clearTimeout(timer);
  }, [measured, analysed, place, instance]);
  const dragging = useStore((state) => state.nodes.some((node) => node.dragging === true));
  useEffect(() => {
    // Before the first look tidy may still part everything; during a drag a person does.
    if (!measured || dragging || looked.current !== place) return undefined;
    const timer = window.setTimeout(settle, 40);
    return () => window.clearTimeout(timer);
  }, [measured, dragging, place, drawing]);
  return null;
}

function changeSelection(kind: "selection" | "wires", changes: readonly { id: string; selected: boolean }[]): void {
  const tab = activeTab();
  if (!tab) return;
  updateTab(tab.id, (now) => {
    const next = new Set(now[kind]);
    for (const change of changes) {
      if (change.selected) next.add(change.id);
      else next.delete(change.id);
    }
    return { [kind]: next };
  });
}

function finishDrag(moved: readonly { id: string; position: { x: number; y: number } }[]): void {
  const places = new Map<string, Point>(moved.map((node) => [node.id, [node.position.x, node.position.y]]));
  editPage("move", (page) => moveBlocks(page, places));
  keepByHand();
  const [only] = moved;
  if (moved.length === 1 && only) dropOntoWire(only.id);
}

/** A block without wires that is dropped on a wire is put into it. */
function dropOntoWire(name: string): void {
  const tab = activeTab();
  if (!tab) return;
  const page = shownPage(tab);
  const block = findBlock(page, name);
  if (!block || wiresOf(page).some((wire) => wire.to === name || wire.from === name)) return;
  const { catalogue } = studio();
  const input = inputPins(page, block, catalogue)[0];
  const output = outputPins(page, block, catalogue)[0];
  const box = document.querySelector(`.react-flow__node[data-id="${CSS.escape(name)}"]`)?.getBoundingClientRect();
  if (!input || !output || !box) return;
  const under = wiresOf(page).find((wire) => crosses(wireId(wire), box));
  if (!under) return;
  const analysis = localAnalysis(tab);
  const fits =
    refusal(page, catalogue, analysis, { from: under.from, output: under.output, to: name, pin: input.name }) === null &&
    refusal(page, catalogue, analysis, { from: name, output: output.name, to: under.to, pin: under.pin }) === null;
  if (fits) editPage(word("action.wire"), (now) => insertIntoWire(now, under, name, input.name, output.name));
}

function crosses(id: string, box: DOMRect): boolean {
  const path = document.querySelector<SVGPathElement>(`.react-flow__edge[data-id="${CSS.escape(id)}"] path.react-flow__edge-path`);
  const matrix = path?.getScreenCTM();
  if (!path || !matrix) return false;
  const length = path.getTotalLength();
  for (let at = 0; at <= length; at += 12) {
    const point = path.getPointAtLength(at).matrixTransform(matrix);
    if (point.x > box.left + 20 && point.x < box.right - 20 && point.y > box.top && point.y < box.bottom) return true;
  }
  return false;
}

const onConnectStart: OnConnectStart = (_event, { nodeId, handleId, handleType }) => {
  const tab = activeTab();
  if (!tab || !nodeId || !handleId) return;
  const dragging: PinPlace = { block: nodeId, pin: handleId, side: handleType === "source" ? "output" : "input" };
  const fits = compatiblePins(shownPage(tab), studio().catalogue, localAnalysis(tab), dragging);
  const own = `${dragging.side}:${nodeId}.${handleId}`;
  update({ dragging, fitting: new Set([own, ...fits.map((pin) => `${pin.side}:${pin.block}.${pin.pin}`)]) });
};

const onConnectEnd: OnConnectEnd = (event, state) => {
  const from = studio().dragging;
  update({ dragging: null, fitting: null });
  if (!from || state.isValid || state.toHandle) {
    if (from && state.toHandle && !state.isValid) connectPins(from, placeOf(state.toHandle));
    return;
  }
  const point = "changedTouches" in event ? event.changedTouches[0]! : event;
  const target = event.target;
  if (isBare(target)) openQuickAdd(from, { x: point.clientX, y: point.clientY });
};

function placeOf(handle: { nodeId: string; id?: string | null; type: string }): PinPlace {
  return { block: handle.nodeId, pin: handle.id ?? "", side: handle.type === "source" ? "output" : "input" };
}

function onConnect({ source, sourceHandle, target, targetHandle }: Connection): void {
  connectPins({ block: source, pin: sourceHandle ?? "", side: "output" }, { block: target, pin: targetHandle ?? "", side: "input" });
}

const isValid: IsValidConnection<WireEdgeType> = ({ source, sourceHandle, target, targetHandle }) => {
  const tab = activeTab();
  if (!tab) return false;
  const ends = { from: source, output: sourceHandle ?? "", to: target, pin: targetHandle ?? "" };
  return refusal(shownPage(tab), studio().catalogue, localAnalysis(tab), ends) === null;
};

/** The drawing lies inside of the pane, so being inside of the pane says nothing. */
function isBare(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(".react-flow__pane") !== null && target.closest(".react-flow__node, .react-flow__edge, .chip") === null;
}

function onContextMenu(event: React.MouseEvent): void {
  if (!(event.target instanceof Element) || event.target.closest("input, textarea")) return;
  event.preventDefault();
  const name = event.target.closest<HTMLElement>(".react-flow__node")?.dataset["id"];
  const tab = activeTab();
  if (name !== undefined && tab && !tab.selection.has(name)) select([name]);
  update({ menu: { at: [event.clientX, event.clientY], on: name === undefined ? "page" : "block" } });
}

function onDoubleClick(event: React.MouseEvent): void {
  if (isBare(event.target)) openQuickAdd(null, { x: event.clientX, y: event.clientY });
}

function onDrop(event: React.DragEvent): void {
  event.preventDefault();
  const op = studio().catalogue.get(event.dataTransfer.getData("application/x-voxgrad-op"));
  if (op) {
    const point = flow.current?.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    if (point) addOp(op, [point.x - 60, point.y - 16]);
    return;
  }
  event.stopPropagation();
  if (!dropsBlocks(event.dataTransfer)) return void openDropped(event.dataTransfer);
  const point = flow.current?.screenToFlowPosition({ x: event.clientX, y: event.clientY }) ?? { x: 0, y: 0 };
  const pin = event.target instanceof Element ? event.target.closest(".pin.input")?.querySelector<HTMLElement>("[data-pin]") : null;
  const { block, pin: name } = pin?.dataset ?? {};
  void dropBlocks([...event.dataTransfer.files], [point.x, point.y], block && name ? { block, pin: name, side: "input" } : null);
}
