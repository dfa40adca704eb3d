// SPDX-License-Identifier: Apache-2.0
/** The regions of the screen, between which a key goes: everything else in a region is a few stops of Tab away. */

import { activeTab } from "./store";

const REGIONS = ".top-bar, .panel.left, .canvas, .status-bar, .bottom, .panel.viewer, .panel.right";
const STOPS = 'a[href], button, input, select, textarea, [tabindex="0"]';

function isStop(element: HTMLElement): boolean {
  return element.tabIndex >= 0 && !element.matches(":disabled") && element.offsetParent !== null;
}

function entryOf(region: HTMLElement): HTMLElement {
  if (!region.matches(".canvas")) return [...region.querySelectorAll<HTMLElement>(STOPS)].find(isStop) ?? region;
  const [chosen] = activeTab()?.selection ?? [];
  return (chosen === undefined ? null : region.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(chosen)}"]`)) ?? region;
}

/** Put the focus on the first stop of the next region, or of the one before; on the canvas, on what is selected. */
export function goToRegion(by: 1 | -1): void {
  const regions = [...document.querySelectorAll<HTMLElement>(REGIONS)].filter((region) => region.offsetParent !== null || region.matches(".top-bar"));
  const here = regions.findIndex((region) => region.contains(document.activeElement));
  const next = regions.at((here < 0 ? (by > 0 ? 0 : -1) : here + by + regions.length) % regions.length);
  if (next) entryOf(next).focus();
}
