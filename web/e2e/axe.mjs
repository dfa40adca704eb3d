// SPDX-License-Identifier: Apache-2.0
// What axe finds on a screen, or on a part of it. It runs in the page itself, which has no frames: else every look opens
// a page more, a process into which axe is read anew; and it describes only what is wrong: a third of the time in all.
import { AxeBuilder } from "@axe-core/playwright";

const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Violations of WCAG 2.2 AA, or of all that axe knows where `tags` is null. */
export async function violations(page, part = null, tags = WCAG) {
  const axe = new AxeBuilder({ page }).options({ resultTypes: ["violations"] }).setLegacyMode(true);
  if (tags) axe.withTags(tags);
  if (part) axe.include(part);
  return (await axe.analyze()).violations;
}
