// SPDX-License-Identifier: Apache-2.0
/** What the server says, in the chosen language. The Korean of it is loaded when somebody reads Korean. */

import { teller, type Tell } from "../core/told";
import { studio, update, useStudio } from "./store";

const asItIs: Tell = Object.assign((text: string) => text, { must: (_code: string, wanted: string) => wanted });

/** For components: they are drawn anew when the language is there. */
export function useTold(): Tell {
  const korean = useStudio((state) => state.settings.language === "ko");
  const tell = useStudio((state) => state.tell);
  return (korean && tell) || asItIs;
}

/** Fetch what the language needs. */
export async function loadTold(): Promise<void> {
  if (studio().tell) return;
  const { default: table } = await import("../core/told.ko.json");
  update({ tell: teller(table) });
}
