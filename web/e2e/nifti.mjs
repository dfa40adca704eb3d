// SPDX-License-Identifier: Apache-2.0
// Small NIfTI files for tests: x fastest, an affine of three rows, float32 or uint8.

export function nifti([width, height, depth], affine, valueOf, kind = "float32") {
  const head = Buffer.alloc(352);
  const bytes = kind === "uint8";
  head.writeInt32LE(348, 0);
  [3, width, height, depth, 1, 1, 1, 1].forEach((size, at) => head.writeInt16LE(size, 40 + 2 * at));
  head.writeInt16LE(bytes ? 2 : 16, 70);
  head.writeInt16LE(bytes ? 8 : 32, 72);
  const sizes = [0, 1, 2].map((axis) => Math.hypot(...affine.map((row) => row[axis])));
  [1, ...sizes].forEach((size, at) => head.writeFloatLE(size, 76 + 4 * at));
  head.writeFloatLE(352, 108);
  head.writeFloatLE(1, 112);
  head.writeUInt8(2, 123);
  head.writeInt16LE(1, 254);
  affine.flat().forEach((one, at) => head.writeFloatLE(one, 280 + 4 * at));
  head.write("n+1\0", 344, "latin1");
  const values = (bytes ? Uint8Array : Float32Array).from({ length: width * height * depth }, (_, at) => valueOf(at % width, Math.floor(at / width) % height, Math.floor(at / width / height)));
  return Buffer.concat([head, Buffer.from(values.buffer)]);
}
