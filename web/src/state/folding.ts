// SPDX-License-Identifier: Apache-2.0
/** Blocks that do not do their work, and gradients that are drawn as one block: edits of the selection and of the page. */

import { foldedGradients } from "../core/folding";
import { emptyMode, type Mode } from "../core/modes";
import { findBlock } from "../core/document";
import { serverEdit } from "./edits";
import { activeTab, say, selectedBlocks, shownPage } from "./store";
import { word } from "./words";

/** Give the selected blocks a mode; where all of them have it, they work again. */
export async function setMode(mode: Mode): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const names = selectedBlocks(tab);
  const have = names.every((name) => findBlock(shownPage(tab), name)?.mode === mode);
  const value = have ? emptyMode : mode;
  if (names.length > 0) await serverEdit(word(mode === "muted" ? "action.mute" : "action.bypass"), names.map((block) => ({ do: "mode", block, value })));
}

/** Draw the gradients of each forward block as one; where they all are, as themselves again. */
export async function foldGradients(): Promise<void> {
  const tab = activeTab();
  if (!tab) return;
  const edits = foldedGradients(shownPage(tab));
  if (edits.length === 0) say(word("notice.noGradients"));
  else await serverEdit(word("action.foldGradients"), edits);
}
