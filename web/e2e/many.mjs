// SPDX-License-Identifier: Apache-2.0
// Pages of many blocks.
import { constant } from "./studio.mjs";

/** Groups of five blocks in columns of so many that the page is about as wide as high. */
export function many(count) {
  const window = { ksize: [1, 2, 2, 2, 1], strides: [1, 2, 2, 2, 1], padding: "SAME" };
  const groups = count / 5;
  const high = Math.ceil(Math.sqrt(groups * 2.5));
  const blocks = Array.from({ length: groups }, (_, i) => {
    const [x, y] = [Math.floor(i / high) * 1900, (i % high) * 720];
    const from = (...names) => names.map((name) => ({ from: `${name}.output` }));
    return [
      constant(`x${i}`, [1, 4, 4, 4, 2], Array.from({ length: 128 }, (_value, k) => (k * 7 + i) % 13), [x, y]),
      { name: `max${i}`, op: "MaxPool3D", attrs: window, inputs: { input: from(`x${i}`) }, position: [x + 460, y] },
      { name: `avg${i}`, op: "AvgPool3D", attrs: window, inputs: { input: from(`x${i}`) }, position: [x + 460, y + 340] },
      { name: `grad${i}`, op: "MaxPool3DGrad", attrs: window, inputs: { orig_input: from(`x${i}`), orig_output: from(`max${i}`), grad: from(`avg${i}`) }, position: [x + 900, y] },
      { name: `relu${i}`, op: "Relu", inputs: { features: from(`grad${i}`) }, position: [x + 1360, y] },
    ];
  });
  return { name: `${count} blocks`, semantics: "documented", blocks: blocks.flat() };
}
