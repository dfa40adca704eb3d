// SPDX-License-Identifier: Apache-2.0
/** Tensors in the browser: safetensors framing, element types, indices, differences. */

export interface Tensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: Float64Array | Float32Array | Int32Array | Uint8Array | Int8Array | Int16Array | Uint16Array | Uint32Array;
}

type Reader = (buffer: ArrayBuffer, offset: number, count: number) => Tensor["data"];

const CODES: { readonly [code: string]: { readonly dtype: string; readonly size: number; readonly read: Reader } } = {
  F64: { dtype: "float64", size: 8, read: (b, o, n) => new Float64Array(b, o, n) },
  F32: { dtype: "float32", size: 4, read: (b, o, n) => new Float32Array(b, o, n) },
  F16: { dtype: "float16", size: 2, read: (b, o, n) => Float32Array.from(new Uint16Array(b, o, n), halfToNumber) },
  BF16: { dtype: "bfloat16", size: 2, read: readBfloat16 },
  I64: { dtype: "int64", size: 8, read: (b, o, n) => Float64Array.from(new BigInt64Array(b, o, n), Number) },
  U64: { dtype: "uint64", size: 8, read: (b, o, n) => Float64Array.from(new BigUint64Array(b, o, n), Number) },
  I32: { dtype: "int32", size: 4, read: (b, o, n) => new Int32Array(b, o, n) },
  U32: { dtype: "uint32", size: 4, read: (b, o, n) => new Uint32Array(b, o, n) },
  I16: { dtype: "int16", size: 2, read: (b, o, n) => new Int16Array(b, o, n) },
  U16: { dtype: "uint16", size: 2, read: (b, o, n) => new Uint16Array(b, o, n) },
  I8: { dtype: "int8", size: 1, read: (b, o, n) => new Int8Array(b, o, n) },
  U8: { dtype: "uint8", size: 1, read: (b, o, n) => new Uint8Array(b, o, n) },
  C64: { dtype: "|complex64|", size: 8, read: (b, o, n) => sizesOf(new Float32Array(b, o, 2 * n)) },
  C128: { dtype: "|complex128|", size: 16, read: (b, o, n) => sizesOf(new Float64Array(b, o, 2 * n)) },
  BOOL: { dtype: "bool", size: 1, read: (b, o, n) => new Uint8Array(b, o, n) },
};

/** Of complex numbers their size, as in the statistics. */
function sizesOf(parts: Float32Array | Float64Array): Float64Array {
  return Float64Array.from({ length: parts.length / 2 }, (_, index) => Math.hypot(parts[2 * index]!, parts[2 * index + 1]!));
}

function readBfloat16(buffer: ArrayBuffer, offset: number, count: number): Float32Array {
  const bits = new Uint16Array(buffer, offset, count);
  const wide = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) wide[i] = bits[i]! << 16;
  return new Float32Array(wide.buffer);
}

function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Read the first tensor of a safetensors message. A message that does not add up is an error. */
export function readSafetensors(buffer: ArrayBuffer): Tensor {
  const view = new DataView(buffer);
  const length = Number(view.getBigUint64(0, true));
  if (length > buffer.byteLength - 8) throw new Error("safetensors: the header is longer than the message");
  const header: unknown = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const entry = Object.entries(header as Record<string, unknown>).find(([name]) => name !== "__metadata__")?.[1];
  const { dtype, shape, data_offsets } = entry as { dtype: string; shape: number[]; data_offsets: [number, number] };
  const code = CODES[dtype];
  if (!code) throw new Error(`safetensors: element type ${dtype} is not known`);
  const count = sizeOf(shape);
  const start = 8 + length + data_offsets[0];
  if (data_offsets[1] - data_offsets[0] !== count * code.size) throw new Error("safetensors: sizes do not agree");
  // A view needs an address that is a multiple of the element size; writers align, but nothing says they must.
  const aligned = start % code.size === 0;
  const source = aligned ? buffer : buffer.slice(start);
  return { dtype: code.dtype, shape, data: code.read(source, aligned ? start : 0, count) };
}

export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** How far apart neighbours along each axis lie in a dense tensor. */
export function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis -= 1) strides[axis] = strides[axis + 1]! * shape[axis + 1]!;
  return strides;
}

export function flatIndex(shape: readonly number[], index: readonly number[]): number {
  return stridesOf(shape).reduce((sum, stride, axis) => sum + stride * (index[axis] ?? 0), 0);
}

/** The index of the element at a flat place. */
export function indexAt(shape: readonly number[], flat: number): number[] {
  return stridesOf(shape).map((stride, axis) => Math.floor(flat / stride) % Math.max(1, shape[axis]!));
}

/** Indices as the old tool wrote them: [n][d][h][w][c]. */
export function indexText(index: readonly number[]): string {
  return index.map((one) => `[${one}]`).join("");
}

export interface Plane {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float64Array;
  /** The flat place of the element in a row and column. */
  readonly flat: (row: number, column: number) => number;
}

/** A plane through a tensor: two axes vary, the others are fixed. Missing axes have one element. */
export function planeOf(tensor: Tensor, rowAxis: number, columnAxis: number, fixed: readonly number[]): Plane {
  const strides = stridesOf(tensor.shape);
  const rows = rowAxis < 0 ? 1 : tensor.shape[rowAxis]!;
  const columns = columnAxis < 0 ? 1 : tensor.shape[columnAxis]!;
  const base = strides.reduce(
    (sum, stride, axis) => (axis === rowAxis || axis === columnAxis ? sum : sum + stride * (fixed[axis] ?? 0)),
    0,
  );
  const down = rowAxis < 0 ? 0 : strides[rowAxis]!;
  const right = columnAxis < 0 ? 0 : strides[columnAxis]!;
  const values = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      values[row * columns + column] = tensor.data[base + row * down + column * right] ?? NaN;
    }
  }
  return { rows, columns, values, flat: (row, column) => base + row * down + column * right };
}

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The finite range of values; NaN and infinities have their own colours. */
export function rangeOf(values: ArrayLike<number>): Range {
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i]!;
    if (!Number.isFinite(value)) continue;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return min <= max ? { min, max } : { min: 0, max: 0 };
}

/** Axis letters for a tensor: from the layout where it is known, else by position. */
export function axisNames(rank: number, layout: string): string[] {
  if (layout && layout.length === rank) return [...layout];
  if (rank === 5) return ["N", "D", "H", "W", "C"];
  return Array.from({ length: rank }, (_, axis) => `axis ${axis}`);
}

export interface Difference {
  readonly maxAbs: number;
  readonly meanAbs: number;
  readonly maxUlp: number;
  readonly differing: number;
  readonly at: number;
  readonly values: Float64Array;
}

const SCRATCH = new DataView(new ArrayBuffer(4));

/** float32 numbers in their order on the line, so that neighbours differ by one. */
function float32Rank(value: number): number {
  SCRATCH.setFloat32(0, value);
  const bits = SCRATCH.getInt32(0);
  return bits < 0 ? -2147483648 - bits : bits;
}

/** How two tensors of one shape differ. Two NaN are equal; one NaN differs without bound. */
export function difference(left: Tensor, right: Tensor): Difference {
  const count = Math.min(left.data.length, right.data.length);
  const values = new Float64Array(count);
  let [maxAbs, sum, maxUlp, differing, at] = [0, 0, 0, 0, 0];
  for (let i = 0; i < count; i += 1) {
    const [a, b] = [left.data[i]!, right.data[i]!];
    if (a === b || (Number.isNaN(a) && Number.isNaN(b))) continue;
    differing += 1;
    const gap = Number.isNaN(a) || Number.isNaN(b) ? Infinity : Math.abs(a - b);
    values[i] = a - b;
    sum += gap;
    if (gap > maxAbs) [maxAbs, at] = [gap, i];
    maxUlp = Math.max(maxUlp, gap === Infinity ? Infinity : Math.abs(float32Rank(a) - float32Rank(b)));
  }
  return { maxAbs, meanAbs: count ? sum / count : 0, maxUlp, differing, at, values };
}
