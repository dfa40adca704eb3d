// SPDX-License-Identifier: Apache-2.0
/** A volume in three dimensions: cubes up to 32 a side, light through a block of glass above. Loaded when first wanted. */

import { useEffect, useRef, useState } from "react";
import {
  BackSide, BoxGeometry, Color, Data3DTexture, DirectionalLight, AmbientLight, EdgesGeometry, GLSL3, InstancedMesh, LinearFilter, LineBasicMaterial, Box3,
  LineSegments, Matrix4, Mesh, MeshLambertMaterial, PerspectiveCamera, Raycaster, RedFormat, Scene, ShaderMaterial, UnsignedByteType, Vector2, Vector3, WebGLRenderer, type Ray,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { colourOf, placeOf, type Scale } from "../core/colour";
import { flatIndex, indexText, rangeOf, stridesOf, type Range, type Tensor } from "../core/tensor";
import { marksOf, type Mark } from "../editor/TraceMarks";
import { endTrace, pinTrace, traceAt, withVoxel, type Voxel } from "../state/runs";
import { useStudio } from "../state/store";
import { useWords } from "../state/words";

interface Props {
  readonly tensor: Tensor;
  readonly names: readonly string[];
  readonly scale: Scale;
  readonly of: { readonly block: string; readonly output: string };
  /** The tensor that this one is a likeness of, in bricks of so many cells along each axis. */
  readonly whole?: { readonly hash: string; readonly shape: readonly number[]; readonly held: readonly number[]; readonly bricks: readonly number[] };
}

const MOST_CUBES = 32;

interface Box {
  readonly size: readonly [number, number, number];
  readonly at: (d: number, h: number, w: number) => number;
  readonly index: (d: number, h: number, w: number) => number[];
  /** Depth, height and width of an index. */
  readonly place: (index: readonly number[]) => Place;
}

/** Depth, height and width of a tensor at a batch and a channel; the last three axes where nothing is named so. */
function boxOf(tensor: Tensor, names: readonly string[], held: readonly number[]): Box {
  const rank = tensor.shape.length;
  const named = ["D", "H", "W"].map((letter) => names.indexOf(letter));
  const axes = named.every((axis) => axis >= 0) ? named : [rank - 3, rank - 2, rank - 1];
  const strides = stridesOf(tensor.shape);
  const size = axes.map((axis) => (axis >= 0 ? tensor.shape[axis]! : 1)) as [number, number, number];
  const base = held.reduce((sum, one, axis) => (axes.includes(axis) ? sum : sum + one * strides[axis]!), 0);
  const step = axes.map((axis) => (axis >= 0 ? strides[axis]! : 0)) as [number, number, number];
  return {
    size,
    at: (d, h, w) => base + d * step[0] + h * step[1] + w * step[2],
    index: (d, h, w) => {
      const index = [...held];
      axes.forEach((axis, i) => {
        if (axis >= 0) index[axis] = [d, h, w][i]!;
      });
      return index;
    },
    place: (index) => axes.map((axis) => (axis >= 0 ? index[axis]! : 0)) as unknown as Place,
  };
}

export default function Volume({ tensor, names, scale, of, whole }: Props) {
  const words = useWords();
  const frame = useRef<HTMLDivElement>(null);
  const [threshold, setThreshold] = useState(0);
  const [held, setHeld] = useState<readonly number[]>(() => tensor.shape.map(() => 0));
  const [readout, setReadout] = useState("");
  const [failed, setFailed] = useState(false);
  const [shown, setShown] = useState<Shown | null>(null);
  const trace = useStudio((state) => state.trace);
  useEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    try {
      const view = show(element, tensor, boxOf(tensor, names, held), rangeOf(tensor.data), scale, threshold);
      setShown(view);
      return () => {
        view.close();
        setShown(null);
      };
    } catch {
      setFailed(true);
      return undefined;
    }
  }, [tensor, names, held, scale, threshold]);
  useEffect(() => shown?.mark((trace ? marksOf(trace, of) : []).map((mark) => (whole ? inBricks(mark, whole.bricks) : mark))), [shown, trace, of, whole]);
  const under = (event: React.PointerEvent): Voxel | null => {
    const index = shown?.pick(event.clientX, event.clientY) ?? null;
    if (index && whole) return { ...of, index: inWhole(index, whole), value: { hash: whole.hash } };
    return index && { ...of, index, value: tensor.data[flatIndex(tensor.shape, index)] ?? NaN };
  };
  const onMove = (event: React.PointerEvent) => {
    if (event.buttons !== 0) return;
    const voxel = under(event);
    setReadout(voxel ? `${indexText(voxel.index)}${typeof voxel.value === "number" ? ` = ${voxel.value}` : ""}` : "");
    withVoxel(voxel, traceAt);
  };
  // A turn of the volume is no click.
  const pressed = useRef<readonly [number, number]>([0, 0]);
  const onUp = (event: React.PointerEvent) => {
    if (Math.hypot(event.clientX - pressed.current[0], event.clientY - pressed.current[1]) < 4) withVoxel(under(event), pinTrace);
  };
  const free = names.flatMap((name, axis) => (!["D", "H", "W"].includes(name) && tensor.shape[axis]! > 1 && names.includes("D") ? [axis] : []));
  return (
    <div className="slices">
      <label className="slider">
        <span>{words("viewer.threshold")}</span>
        <input type="range" min={0} max={1} step={0.02} value={threshold} onChange={(event) => setThreshold(Number(event.target.value))} />
        <output>{threshold.toFixed(2)}</output>
      </label>
      {free.map((axis) => (
        <label key={axis} className="slider">
          <span>{names[axis]}</span>
          <input type="range" min={0} max={tensor.shape[axis]! - 1} value={held[axis]} onChange={(event) => setHeld(held.with(axis, Number(event.target.value)))} />
          <output>{held[axis]}</output>
        </label>
      ))}
      {failed ? <p className="none">{words("viewer.noWebgl")}</p> : (
        <div
          ref={frame}
          className="volume"
          role="img"
          aria-label={words("viewer.volume")}
          onPointerMove={onMove}
          onPointerLeave={endTrace}
          onPointerDownCapture={(event) => (pressed.current = [event.clientX, event.clientY])}
          onPointerUp={onUp}
        />
      )}
      <p className="readout">{readout || "\u00a0"}</p>
    </div>
  );
}

/** The middle cell of a brick. */
function inWhole(index: readonly number[], { shape, held, bricks }: NonNullable<Props["whole"]>): number[] {
  return index.map((at, axis) => (bricks[axis] === 1 ? Math.max(at, held[axis]!) : Math.min(shape[axis]! - 1, at * bricks[axis]! + Math.floor(bricks[axis]! / 2))));
}

function inBricks({ kind, lo, hi }: Mark, bricks: readonly number[]): Mark {
  return { kind, lo: lo.map((at, axis) => at / bricks[axis]!), hi: hi.map((at, axis) => at / bricks[axis]!) };
}

interface Shown {
  /** The index of the voxel that is seen at a point of the window. */
  readonly pick: (x: number, y: number) => number[] | null;
  readonly mark: (marks: readonly Mark[]) => void;
  readonly close: () => void;
}

function show(element: HTMLElement, tensor: Tensor, box: Box, range: Range, scale: Scale, threshold: number): Shown {
  const renderer = new WebGLRenderer({ antialias: true, alpha: true, preserveDrawingBuffer: true });
  const width = element.clientWidth;
  const height = Math.max(320, element.clientHeight);
  renderer.setPixelRatio(Math.min(2, devicePixelRatio));
  renderer.setSize(width, height);
  element.append(renderer.domElement);
  const scene = new Scene();
  const camera = new PerspectiveCamera(40, width / height, 0.01, 100);
  camera.position.set(1.5, 1.2, 1.9);
  const controls = new OrbitControls(camera, renderer.domElement);
  scene.add(new AmbientLight(0xffffff, 1.6));
  const lamp = new DirectionalLight(0xffffff, 1.6);
  lamp.position.set(2, 3, 4);
  scene.add(lamp);
  const longest = Math.max(...box.size);
  const frame = new LineSegments(
    new EdgesGeometry(new BoxGeometry(box.size[2] / longest, box.size[1] / longest, box.size[0] / longest)),
    new LineBasicMaterial({ color: getComputedStyle(element).getPropertyValue("--muted").trim() || "#888" }),
  );
  scene.add(frame);
  const small = longest <= MOST_CUBES;
  const cubes = small ? addCubes(scene, tensor, box, range, scale, threshold) : null;
  if (!small) addGlass(scene, tensor, box, range, scale, threshold, camera);
  const render = () => renderer.render(scene, camera);
  controls.addEventListener("change", render);
  render();
  const isSeen = (d: number, h: number, w: number) => placeOf(tensor.data[box.at(d, h, w)] ?? NaN, range, scale) >= threshold;
  const pick = (x: number, y: number) => {
    const area = renderer.domElement.getBoundingClientRect();
    const caster = new Raycaster();
    caster.setFromCamera(new Vector2(((x - area.left) / area.width) * 2 - 1, 1 - ((y - area.top) / area.height) * 2), camera);
    const hit = cubes ? caster.intersectObject(cubes.mesh)[0]?.instanceId : undefined;
    const place = cubes ? (hit === undefined ? null : cubes.places[hit]!) : firstAlong(caster.ray, box, isSeen);
    return place && box.index(...place);
  };
  let marked: LineSegments[] = [];
  const mark = (marks: readonly Mark[]) => {
    for (const one of marked) {
      scene.remove(one);
      one.geometry.dispose();
    }
    marked = marks.map((one) => outlineOf(one, box, element));
    if (marked.length > 0) scene.add(...marked);
    render();
  };
  const close = () => {
    controls.dispose();
    renderer.dispose();
    renderer.domElement.remove();
  };
  return { pick, mark, close };
}

type Place = readonly [number, number, number];

/** The first voxel along a ray through a block of glass that is not clear; of a clear one the first that it enters. */
function firstAlong(ray: Ray, box: Box, isSeen: (...place: Place) => boolean): Place | null {
  const [depth, height, width] = box.size;
  const longest = Math.max(...box.size);
  const size = new Vector3(width, height, depth).divideScalar(longest);
  const start = ray.intersectBox(new Box3(size.clone().multiplyScalar(-0.5), size.clone().multiplyScalar(0.5)), new Vector3());
  if (!start) return null;
  let first: Place | null = null;
  const inside = (at: number, count: number) => at >= 0 && at < count;
  for (let step = 0; step < 4 * longest; step += 1) {
    const point = start.clone().addScaledVector(ray.direction, (step + 0.5) / (2 * longest));
    const place: Place = [Math.floor(depth / 2 - point.z * longest), Math.floor(height / 2 - point.y * longest), Math.floor(point.x * longest + width / 2)];
    if (!place.every((at, axis) => inside(at, box.size[axis]!))) continue;
    if (isSeen(...place)) return place;
    first ??= place;
  }
  return first;
}

const MARK_COLOURS: { readonly [kind: string]: string } = { winner: "--accent", traced: "--focus" };

/** The edges of a window, or of a voxel. */
function outlineOf({ kind, lo, hi }: Mark, box: Box, element: HTMLElement): LineSegments {
  const longest = Math.max(...box.size);
  const [from, to] = [box.place(lo), box.place(hi)];
  const [depth, height, width] = from.map((low, axis) => to[axis]! - low || 1) as [number, number, number];
  const colour = getComputedStyle(element).getPropertyValue(MARK_COLOURS[kind] ?? "--text").trim() || "#fff";
  const lines = new LineSegments(new EdgesGeometry(new BoxGeometry(width / longest, height / longest, depth / longest)), new LineBasicMaterial({ color: colour, depthTest: false }));
  lines.position.set(
    (from[2] + width / 2 - box.size[2] / 2) / longest,
    (box.size[1] / 2 - from[1] - height / 2) / longest,
    (box.size[0] / 2 - from[0] - depth / 2) / longest,
  );
  lines.renderOrder = 1;
  return lines;
}

function addCubes(scene: Scene, tensor: Tensor, box: Box, range: Range, scale: Scale, threshold: number): { mesh: InstancedMesh; places: Place[] } {
  const [depth, height, width] = box.size;
  const longest = Math.max(...box.size);
  const places: Place[] = [];
  for (let d = 0; d < depth; d += 1) {
    for (let h = 0; h < height; h += 1) {
      for (let w = 0; w < width; w += 1) {
        const value = tensor.data[box.at(d, h, w)] ?? NaN;
        if (!Number.isFinite(value) || placeOf(value, range, scale) >= threshold) places.push([d, h, w]);
      }
    }
  }
  const side = 0.82 / longest;
  const mesh = new InstancedMesh(new BoxGeometry(side, side, side), new MeshLambertMaterial(), places.length);
  places.forEach(([d, h, w], i) => {
    const x = (w + 0.5 - width / 2) / longest;
    const y = (height / 2 - h - 0.5) / longest;
    const z = (depth / 2 - d - 0.5) / longest;
    mesh.setMatrixAt(i, new Matrix4().makeTranslation(x, y, z));
    const [red, green, blue] = colourOf(tensor.data[box.at(d, h, w)] ?? NaN, range, scale);
    mesh.setColorAt(i, new Color().setRGB(red / 255, green / 255, blue / 255, "srgb"));
  });
  scene.add(mesh);
  return { mesh, places };
}

const VERTEX = `
out vec3 ray; out vec3 origin; uniform vec3 eye;
void main() {
  origin = eye; ray = position - eye;
  gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
}`;

/** March through the volume along each ray and add up what lies above the threshold. */
const FRAGMENT = `
precision highp float; precision highp sampler3D;
in vec3 ray; in vec3 origin; out vec4 colour;
uniform sampler3D volume; uniform sampler3D scale; uniform vec3 size; uniform float threshold;
void main() {
  vec3 way = normalize(ray);
  vec3 a = (-0.5 * size - origin) / way, b = (0.5 * size - origin) / way;
  vec3 near = min(a, b), far = max(a, b);
  float t = max(0.0, max(near.x, max(near.y, near.z))), end = min(far.x, min(far.y, far.z));
  vec4 sum = vec4(0.0); float step = 1.0 / 160.0;
  for (int i = 0; i < 320; i++) {
    if (t > end || sum.a > 0.97) break;
    vec3 p = (origin + t * way) / size + 0.5;
    float value = texture(volume, vec3(p.x, 1.0 - p.y, 1.0 - p.z)).r;
    if (value >= threshold) {
      float dense = 0.02 + 0.25 * value * value;
      sum += (1.0 - sum.a) * dense * vec4(texture(scale, vec3(value, 0.5, 0.5)).rgb, 1.0);
    }
    t += step;
  }
  colour = sum;
}`;

function addGlass(scene: Scene, tensor: Tensor, box: Box, range: Range, scale: Scale, threshold: number, camera: PerspectiveCamera): void {
  const [depth, height, width] = box.size;
  const levels = new Uint8Array(depth * height * width);
  for (let d = 0; d < depth; d += 1) {
    for (let h = 0; h < height; h += 1) {
      for (let w = 0; w < width; w += 1) {
        levels[(d * height + h) * width + w] = Math.round(placeOf(tensor.data[box.at(d, h, w)] ?? NaN, range, scale) * 255);
      }
    }
  }
  const texture = texture3d(levels, width, height, depth, RedFormat);
  const ramp = new Uint8Array(256 * 4);
  for (let i = 0; i < 256; i += 1) ramp.set([...colourOf(range.min + ((range.max - range.min) * i) / 255, range, "values"), 255], i * 4);
  const longest = Math.max(...box.size);
  const size = new Vector3(width / longest, height / longest, depth / longest);
  const material = new ShaderMaterial({
    glslVersion: GLSL3,
    vertexShader: VERTEX,
    fragmentShader: FRAGMENT,
    side: BackSide,
    transparent: true,
    uniforms: {
      volume: { value: texture },
      scale: { value: texture3d(ramp, 256, 1, 1) },
      size: { value: size },
      threshold: { value: threshold },
      eye: { value: camera.position },
    },
  });
  scene.add(new Mesh(new BoxGeometry(size.x, size.y, size.z), material));
}

function texture3d(data: Uint8Array<ArrayBuffer>, width: number, height: number, depth: number, format?: typeof RedFormat): Data3DTexture {
  const texture = new Data3DTexture(data, width, height, depth);
  if (format !== undefined) texture.format = format;
  texture.type = UnsignedByteType;
  texture.minFilter = LinearFilter;
  texture.magFilter = LinearFilter;
  texture.unpackAlignment = 1;
  texture.needsUpdate = true;
  return texture;
}
