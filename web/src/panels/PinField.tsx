// SPDX-License-Identifier: Apache-2.0
/** What is typed on an input that has no wire: a text, and the cells of a tensor. */

import { withBlock, withSources } from "../core/document";
import type { Block, Json } from "../core/model";
import { literalOf } from "../core/values";
import { editPage } from "../state/edits";
import { sendText, TextField } from "./AttrField";
import { TensorField } from "./TensorField";

type Source = NonNullable<NonNullable<Block["inputs"]>[string]>[number];

export function PinField({ block, pin, typed }: { block: Block; pin: { readonly name: string }; typed: Source | undefined }) {
  const value = typed && "value" in typed ? typed.value : undefined;
  const label = `${block.name} ${pin.name}`;
  const send = (text: string) => sendText(block.name, pin.name, text);
  // Lists of sizes and single numbers are texts; a tensor has cells.
  const literal = literalOf(value);
  if (!literal || literal.dtype === "" || literal.shape.length === 0) return <TextField label={label} value={value} rule={block.typed?.[pin.name]} send={send} />;
  const set = (next: Json) =>
    editPage(label, (page) => withBlock(page, block.name, (now) => withSources(now, pin.name, [{ ...typed, value: next }])));
  return <TensorField label={label} value={value} dtype={literal.dtype} axes="" rule={block.typed?.[pin.name]} set={set} send={send} />;
}
