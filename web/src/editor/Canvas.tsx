// SPDX-License-Identifier: Apache-2.0
/** The page as a drawing: blocks, wires, and everything that pointers do there. */

import {
  applyNodeChanges, Background, BackgroundVariant, MiniMap, Position, ReactFlow, useNodesInitialized, useReactFlow, useStore, useUpdateNodeInternals,
  type Connection, type EdgeChange, type IsValidConnection, type NodeChange, type OnConnectEnd, type OnConnectStart, type ReactFlowInstance,
} from "@xyflow/react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { overlapping, placesFor } from "../core/arrange";
import { insertIntoWire, type Point } from "../core/commands";
import { findBlock, inputPins, outputPins, wireId, wiresOf } from "../core/document";
import { displayOf, placeDisplays, type Place } from "../core/displays";
import { cornerOf, drawnWires, frameId, framedBlocks, groupId, hiddenIn, moveDrawn, pinsOfGroup } from "../core/groups";
import type { Page, Wire } from "../core/model";
import { compatiblePins, readingOrder, refusal, type PinPlace } from "../core/pins";
import type { Ends } from "../core/router";
import { facingLeft, gradientOrder } from "../core/scopes";
import { spreadOut, useDrawnDisplays } from "../state/displays";
import { addOp, changeGroup, connectPins, editPage, localAnalysis, select } from "../state/edits";
import { boxes, guessHeight, settle, unsettle } from "../state/layout";
import { addKept } from "../state/library";
import { dropBlocks, dropsBlocks, openDropped } from "../state/pages";
import { openBlock, openQuickAdd } from "../state/perform";
import type { Group } from "../generated/page";
import { activeTab, flow, shownPage, studio, update, updateTab, useStudio, type Tab } from "../state/store";
import { glide, isGliding, whenReleased } from "../state/view";
import { useWords, word } from "../state/words";
import { BlockNode, type BlockNodeType } from "./BlockNode";
import { DisplayNode, displayNodes, type DisplayNodeType } from "./displays/DisplayNode";
import { GroupNode, type GroupNodeType } from "./GroupNode";
import { problemsOf } from "./useBlock";
import { useLongPress } from "./longPress";
import { restSoon } from "./rest";
import { plansOf, type Plan } from "./routes";
import { tidy } from "./tidy";
import { PIN, WireEdge, type WireEdgeType } from "./WireEdge";

const NODE_TYPES = { block: BlockNode, display: DisplayNode, grouping: GroupNode };
type PageNode = BlockNodeType | DisplayNodeType;
type AnyNode = PageNode | GroupNodeType;
const EDGE_TYPES = { wire: WireEdge };
/** Below each of these zooms a page is drawn with less detail. */
const FAR = [0.4, 0.26, 0.17, 0.11];
const SMALLEST_FIT = 0.25;
const START_ZOOM = 0.6;
/** From this many blocks on a page has a map. */
const MAPPED = 12;

function mapColour(node: AnyNode): string {
  if (node.type === "display") return "var(--line)";
  const tab = activeTab();
  return problemsOf(tab, node.id).length > 0 ? "var(--bad)" : gradientOrder(node.id) > 0 ? "var(--shape)" : "var(--edge)";
}

/** Nodes for the blocks of a page; blocks that did not change keep their node, and with it their place in the drawing. */
function nodesOf(page: Page, selection: ReadonlySet<string>, old: readonly PageNode[]): PageNode[] {
  const known = new Map(old.flatMap((node) => (node.type === "block" ? [[node.id, node] as const] : [])));
  const places = placesFor(page, guessHeight);
  const mirrored = facingLeft(page);
  const hidden = hiddenIn(page);
  const blocks = readingOrder(page).filter((block) => !hidden.has(block.name)).map((block): BlockNodeType => {
    const before = known.get(block.name);
    const [x, y] = block.position ?? places.get(block.name) ?? [0, 0];
    const selected = selection.has(block.name);
    const same = before?.data.block === block && before.data.mirrored === mirrored.has(block.name);
    if (before && same && before.position.x === x && before.position.y === y && before.selected === selected) return before;
    return { ...before, id: block.name, type: "block", position: { x, y }, data: before && same ? before.data : { block, mirrored: mirrored.has(block.name) }, selected, ariaLabel: `${block.name}, ${block.op ?? block.page}` };
  });
  return [...blocks, ...displayNodes(page, selection, old)];
}

/** Nodes for collapsed groups, which stand among the blocks. */
function foldedOf(page: Page, old: readonly AnyNode[]): GroupNodeType[] {
  return (page.groups ?? []).filter((group) => group.collapsed).map((group) => {
    const id = groupId(group.title);
    const [x, y] = cornerOf(page, group);
    const before = old.find((node) => node.id === id);
    const measured = before?.measured === undefined ? {} : { measured: before.measured };
    return { id, type: "grouping", position: { x, y }, data: { group, ...pinsOfGroup(page, group) }, selectable: false, ariaLabel: group.title, ...measured };
  });
}

const ROUND = 22;
const HEAD = 44;

/** Frames around the blocks of the other groups, from where these are drawn. */
function framesOf(page: Page, nodes: readonly AnyNode[]): GroupNodeType[] {
  const known = new Map(nodes.map((node) => [node.id, node]));
  return (page.groups ?? []).filter((group) => !group.collapsed).flatMap((group): GroupNodeType[] => {
    const inside = group.blocks.flatMap((name) => known.get(name) ?? []);
    if (inside.length === 0) return [];
    const x = Math.min(...inside.map((node) => node.position.x)) - ROUND;
    const y = Math.min(...inside.map((node) => node.position.y)) - HEAD;
    const width = Math.max(...inside.map((node) => node.position.x + (node.measured?.width ?? 300))) + ROUND - x;
    const height = Math.max(...inside.map((node) => node.position.y + (node.measured?.height ?? 200))) + ROUND - y;
    return [{ id: frameId(group.title), type: "grouping", position: { x, y }, width, height, measured: { width, height }, data: { group, inputs: [], outputs: [] }, selectable: false, zIndex: -1, dragHandle: ".block-title" }];
  });
}

/** Edges for the wires of a page; those that did not change stay the same object and are not drawn again. */
function edgesOf(page: Page, wires: ReadonlySet<string>, plans: ReadonlyMap<string, Plan>, old: readonly WireEdgeType[]): WireEdgeType[] {
  const known = new Map(old.map((edge) => [edge.id, edge]));
  return drawnWires(page).map(({ id, wire, drawn }) => {
    const before = known.get(id);
    const plan = plans.get(id) ?? null;
    if (before && before.selected === wires.has(id) && before.data?.plan === plan && before.source === drawn.from && before.target === drawn.to) return before;
    return {
      id,
      type: "wire",
      source: drawn.from,
      sourceHandle: drawn.output,
      target: drawn.to,
      targetHandle: drawn.pin,
      data: { wire, plan },
      selected: wires.has(id),
      focusable: true,
      ariaLabel: `${wire.from}.${wire.output} → ${wire.to}.${wire.pin}`,
    };
  });
}

function allNodes(page: Page, selection: ReadonlySet<string>, old: readonly AnyNode[]): AnyNode[] {
  return [...nodesOf(page, selection, old.filter((node) => node.type !== "grouping")), ...foldedOf(page, old)];
}

/** With the frame of a group its blocks move: what the frame was moved by, they are. */
function withFrames(changes: readonly NodeChange<AnyNode>[], nodes: readonly AnyNode[]): NodeChange<AnyNode>[] {
  return changes.flatMap((change): NodeChange<AnyNode>[] => {
    if (!("id" in change) || nodes.some((node) => node.id === change.id)) return [change];
    const frame = flow.current?.getNode(change.id);
    if (change.type !== "position" || !frame) return [];
    const inside = new Set((frame.data["group"] as Group).blocks);
    const [dx, dy] = [(change.position?.x ?? frame.position.x) - frame.position.x, (change.position?.y ?? frame.position.y) - frame.position.y];
    return nodes.filter((node) => inside.has(node.id)).map((node) => ({
      id: node.id, type: "position", dragging: change.dragging ?? false, position: { x: node.position.x + dx, y: node.position.y + dy },
    }));
  });
}

/** Where a wire starts and ends in the drawing; null before its blocks are measured. */
function endsOf(wire: Wire): Ends | null {
  const at = (name: string, side: "source" | "target", pin: string) => {
    const node = flow.current?.getInternalNode(name);
    const handle = node?.internals.handleBounds?.[side]?.find((one) => one.id === pin);
    if (!node || !handle) return null;
    const { x, y } = node.internals.positionAbsolute;
    const toRight = handle.position === Position.Right;
    return { x: x + handle.x + (toRight ? handle.width - PIN : PIN), y: y + handle.y + handle.height / 2, toRight };
  };
  const from = at(wire.from, "source", wire.output);
  const to = at(wire.to, "target", wire.pin);
  return from && to && { x0: from.x, y0: from.y, x1: to.x, y1: to.y, out: from.toRight ? 1 : -1, into: to.toRight ? -1 : 1 };
}

/** Measure the pins of blocks that have turned around: their size stays, so that nobody else tells. All of them at once. */
function useTurned(nodes: readonly AnyNode[]): void {
  const measure = useUpdateNodeInternals();
  const before = useRef<ReadonlyMap<string, boolean>>(new Map());
  useEffect(() => {
    const now = new Map(nodes.flatMap((node) => (node.type === "block" ? [[node.id, node.data.mirrored] as const] : [])));
    const turned = [...now].flatMap(([id, mirrored]) => ((before.current.get(id) ?? mirrored) === mirrored ? [] : [id]));
    before.current = now;
    if (turned.length > 0) measure(turned);
  }, [nodes, measure]);
}

/**
 * Whether a person drags. The view follows a drag over the edge for no longer than that: the drawing's library can go on
 * with it behind the end of a drag, so that the block runs away.
 */
function useDrag() {
  const [on, setOn] = useState(false);
  const now = useRef(false);
  const turn = useCallback((to: boolean) => {
    now.current = to;
    setOn(to);
  }, []);
  const start = useCallback(() => turn(true), [turn]);
  const stop = useCallback((moved: readonly Moved[]) => {
    turn(false);
    finishDrag(moved);
  }, [turn]);
  const isOn = useCallback(() => now.current, []);
  return { on, start, stop, isOn };
}

/** How the wires go, once what is drawn is measured; while a block is moved they stay as they are. */
function usePlans(page: Page, drawing: string, wiring: string, dragging: boolean): ReadonlyMap<string, Plan> {
  const catalogue = useStudio((state) => state.catalogue);
  const [plans, setPlans] = useState<ReadonlyMap<string, Plan>>(new Map());
  useEffect(() => {
    if (dragging) return undefined;
    const plan = () => setPlans((old) => plansOf(page, catalogue, boxes(), endsOf, old));
    // Pins that change sides are measured in the frame after the next.
    let frame = requestAnimationFrame(() => (frame = requestAnimationFrame(() => (frame = requestAnimationFrame(plan)))));
    return () => cancelAnimationFrame(frame);
  }, [drawing, wiring, catalogue, dragging]);
  return plans;
}

export function Canvas({ tab }: { tab: Tab }) {
  const page = shownPage(tab);
  const theme = useStudio((state) => state.settings.theme);
  const isBesideViewer = useStudio((state) => state.viewer !== null);
  const words = useWords();
  useDrawnDisplays(tab);
  const [nodes, setNodes] = useState<AnyNode[]>(() => allNodes(page, tab.selection, []));
  useEffect(() => setNodes((old) => allNodes(page, tab.selection, old)), [page, tab.selection]);
  const frames = useMemo(() => framesOf(page, nodes), [page.groups, nodes]);
  const wiring = drawnWires(page).map(({ id, drawn }) => `${id} ${drawn.from} ${drawn.to}`).join();
  const drawing = nodes.map((node) => `${node.id}@${node.position.x},${node.position.y} ${node.measured?.width ?? 0}x${node.measured?.height ?? 0}${"mirrored" in node.data && node.data.mirrored ? "<" : ">"}`).join();
  useTurned(nodes);
  const plans = usePlans(page, drawing, wiring, nodes.some((node) => node.dragging));
  const drawn = useRef<WireEdgeType[]>([]);
  const edges = useMemo(() => (drawn.current = edgesOf(page, tab.wires, plans, drawn.current)), [wiring, tab.wires, plans]);
  const place = `${tab.id}/${tab.trail.map((step) => step.block).join("/")}`;

  const drag = useDrag();
  const onNodesChange = useCallback((all: NodeChange<AnyNode>[]) => {
    const changes = all.filter((change) => change.type !== "position" || !change.dragging || drag.isOn());
    const chosen = changes.filter((change) => change.type === "select");
    if (chosen.length > 0) changeSelection("selection", chosen);
    // The document takes part when the drag ends; until then only the drawing moves.
    setNodes((old) => applyNodeChanges(withFrames(changes, old).filter((change) => change.type !== "select" && change.type !== "remove"), old));
  }, []);
  const onEdgesChange = useCallback((changes: EdgeChange<WireEdgeType>[]) => {
    const chosen = changes.filter((change) => change.type === "select");
    if (chosen.length > 0) changeSelection("wires", chosen);
  }, []);

  const canvas = useRef<HTMLDivElement>(null);
  useLongPress(canvas, menuAt);
  return (
    <div
      ref={canvas}
      className={isBesideViewer ? "canvas beside-viewer" : "canvas"}
      tabIndex={-1}
      role="region"
      aria-label={words("canvas.label")}
      onDoubleClick={onDoubleClick}
      onContextMenu={onContextMenu}
      onDragOver={(event) => event.preventDefault()}
      onDrop={onDrop}
      onFocus={followFocus}
    >
      <ReactFlow<AnyNode, WireEdgeType>
        nodes={frames.length > 0 ? [...frames, ...nodes] : nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        onNodeDragStart={drag.start}
        onSelectionDragStart={drag.start}
        onNodeDragStop={(_event, _node, moved) => drag.stop(moved)}
        onSelectionDragStop={(_event, moved) => drag.stop(moved)}
        autoPanOnNodeDrag={drag.on}
        onNodeDoubleClick={(event, node) => {
          const { group } = node.data as { group?: Group };
          if (group?.collapsed && event.target instanceof Element && !event.target.closest("strong, button, input")) void changeGroup(group.title, { collapsed: false });
          if (node.type === "block" && !(event.target instanceof Element && event.target.closest(".nodrag"))) openBlock(node.id);
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
        {page.blocks.length >= MAPPED && <PageMap nodes={nodes} />}
        <FirstLook place={place} drawing={drawing} />
      </ReactFlow>
      {page.blocks.length === 0 && !page.displays?.length && (
        <div className="empty">
          <h2>{words("canvas.empty")}</h2>
          <p>{words("canvas.emptyHint")}</p>
        </div>
      )}
    </div>
  );
}

/** The whole page, small. Where all of it is seen anyway the map would only cover some of it. */
function PageMap({ nodes }: { nodes: readonly AnyNode[] }) {
  const words = useWords();
  const around = useMemo(() => boundsOf(nodes), [nodes]);
  const isWhole = useStore(({ transform: [x, y, zoom], width, height }) =>
    around.left * zoom + x >= 0 && around.top * zoom + y >= 0 && around.right * zoom + x <= width && around.bottom * zoom + y <= height);
  if (isWhole) return null;
  return <MiniMap pannable zoomable ariaLabel={words("canvas.map")} nodeColor={mapColour} style={{ width: 160, height: 110 }} />;
}

function boundsOf(nodes: readonly AnyNode[]): { left: number; top: number; right: number; bottom: number } {
  const around = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { position: { x, y }, measured } of nodes) {
    around.left = Math.min(around.left, x);
    around.top = Math.min(around.top, y);
    around.right = Math.max(around.right, x + (measured?.width ?? 0));
    around.bottom = Math.max(around.bottom, y + (measured?.height ?? 0));
  }
  return around;
}

/** How far away the page is: the further, the larger the titles, and the less else there is. */
function DetailLevel() {
  const level = useStore((state) => FAR.filter((zoom) => state.transform[2] < zoom).length);
  useEffect(() => {
    const canvas = document.querySelector<HTMLElement>(".canvas");
    if (canvas) canvas.dataset["far"] = String(level);
    if (level === 0) restSoon();
  }, [level]);
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
    const look = () => {
      const tab = activeTab();
      // Displays stand among blocks: what has them is spread, and keeps its order.
      if (tab && tab.history.past.length === 0 && overlapping(boxes()) && !spreadOut(tab)) tidy({ quietly: true });
      window.setTimeout(() => void instance.fitView({ padding: 0.08, maxZoom: 1 }).then(() => startAtLeft(instance)), 60);
    };
    look();
    if (!analysed) return undefined;
    // What the analysis tells changes the size of blocks; they are measured in the next frames.
    const timer = window.setTimeout(() => {
      looked.current = place;
      look();
    }, 120);
    return () => window.clearTimeout(timer);
  }, [measured, analysed, place, instance]);
  const dragging = useStore((state) => state.nodes.some((node) => node.dragging === true));
  useEffect(() => {
    // Before the first look tidy may still part everything; during a drag a person does.
    if (!measured || dragging || looked.current !== place) return undefined;
    const timer = window.setTimeout(() => whenReleased(settle), 40);
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

interface Moved {
  readonly id: string;
  readonly position: { readonly x: number; readonly y: number };
}

function finishDrag(moved: readonly Moved[]): void {
  const tab = activeTab();
  if (!tab) return;
  const names = moved.flatMap(({ id }) => framedBlocks(shownPage(tab), id) ?? [id]);
  const places = new Map(names.flatMap((name): [string, Point][] => {
    const node = flow.current?.getNode(name);
    return node ? [[name, [node.position.x, node.position.y]]] : [];
  }));
  const displays = moved.flatMap((node): [string, Place][] => {
    const name = displayOf(node.id);
    return name === null ? [] : [[name, { position: [node.position.x, node.position.y] }]];
  });
  unsettle(places.keys());
  editPage("move", (page) => placeDisplays(moveDrawn(page, places), new Map(displays)));
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
  menuAt(event.target, event.clientX, event.clientY);
}

/** The menu of what is under a point: of a block, which is selected then, or of the page. */
function menuAt(target: Element, x: number, y: number): void {
  if (target.closest("input, textarea")) return;
  const name = target.closest<HTMLElement>(".react-flow__node")?.dataset["id"];
  const tab = activeTab();
  if (name !== undefined && tab && !tab.selection.has(name)) select([name]);
  update({ menu: { at: [x, y], on: name === undefined ? "page" : "block" } });
}

/** What the keyboard comes to is brought into sight. */
function followFocus({ target, currentTarget }: React.FocusEvent): void {
  const node = target.closest(".react-flow__node");
  if (!node || isGliding() || !target.matches(":focus-visible")) return;
  const [box, canvas] = [target.getBoundingClientRect(), currentTarget.getBoundingClientRect()];
  if (box.left >= canvas.left && box.right <= canvas.right && box.top >= canvas.top && box.bottom <= canvas.bottom) return;
  const at = flow.current?.screenToFlowPosition({ x: box.x + box.width / 2, y: box.y + box.height / 2 });
  if (at) glide((view, duration) => view.setCenter(at.x, at.y, { zoom: view.getZoom(), duration }));
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
  const kept = studio().library.find((one) => one.name === event.dataTransfer.getData("application/x-voxgrad-page"));
  if (kept) {
    const at = flow.current?.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    return void addKept(kept, at ? [at.x - 60, at.y - 16] : null);
  }
  event.stopPropagation();
  if (!dropsBlocks(event.dataTransfer)) return void openDropped(event.dataTransfer);
  const point = flow.current?.screenToFlowPosition({ x: event.clientX, y: event.clientY }) ?? { x: 0, y: 0 };
  const pin = event.target instanceof Element ? event.target.closest(".pin.input")?.querySelector<HTMLElement>("[data-pin]") : null;
  const { block, pin: name } = pin?.dataset ?? {};
  void dropBlocks([...event.dataTransfer.files], [point.x, point.y], block && name ? { block, pin: name, side: "input" } : null);
}
