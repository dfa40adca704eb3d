// SPDX-License-Identifier: Apache-2.0
/** What can be found on a page besides its blocks: pins, values, and the pages inside. */

import type { BlockRun } from "./api";
import { inputPins, outputPins, type Catalogue } from "./document";
import type { Block, Page, PinInfo } from "./model";
import { brief, literalOf } from "./values";

/** Something with a place on the page: `block` is where it is. */
export interface Place {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  /** What else it is found by. */
  readonly summary: string;
  readonly block: string;
}

/** So many numbers of a constant or of a result can be searched for. */
const MOST_VALUES = 256;

function numbersIn(values: readonly unknown[] | null | undefined): string {
  return (values ?? []).slice(0, MOST_VALUES).join(" ");
}

function pinsOf(page: Page, block: Block, catalogue: Catalogue, known: { readonly [pin: string]: PinInfo }): Place[] {
  return [...inputPins(page, block, catalogue), ...outputPins(page, block, catalogue)].map((pin) => ({
    id: `pin ${block.name}.${pin.name}`, name: `${block.name}.${pin.name}`, note: known[pin.name]?.text ?? pin.shape, summary: "", block: block.name,
  }));
}

/** Attributes, values that are typed on pins, and results, each under the name that it has. */
function valuesOf(block: Block, run: BlockRun | undefined): Place[] {
  const typed = Object.entries(block.inputs ?? {}).flatMap(([pin, sources]) => sources.flatMap((one) => ("value" in one ? [[pin, one.value] as const] : [])));
  const given = [...Object.entries(block.attrs ?? {}), ...typed].map(([name, value]): Place => {
    const text = brief(value);
    return { id: `value ${block.name}.${name}`, name: `${block.name}.${name} = ${text}`, note: block.op ?? block.page ?? "", summary: `${text} ${numbersIn(literalOf(value)?.values)}`, block: block.name };
  });
  const results = (run?.outputs ?? []).map((output): Place => ({
    id: `result ${block.name}.${output.name}`, name: `${block.name}.${output.name}`, note: `[${output.shape.join(",")}]`, summary: numbersIn(output.summary.values), block: block.name,
  }));
  return [...given, ...results];
}

/** Everything of a page that has a name or a value. `run` and `pins` are by the names of blocks. */
export function placesOf(
  page: Page, catalogue: Catalogue, run: (block: string) => BlockRun | undefined, pins: (block: string) => { readonly [pin: string]: PinInfo },
): Place[] {
  return page.blocks.flatMap((block) => [...pinsOf(page, block, catalogue, pins(block.name)), ...valuesOf(block, run(block.name))]);
}
