// SPDX-License-Identifier: Apache-2.0
/** Texts in the chosen language. */

import { translate, type Key } from "../core/words";
import { studio, useStudio } from "./store";

export type Say = (key: Key, fill?: { readonly [name: string]: string | number }) => string;

export function useWords(): Say {
  const language = useStudio((state) => state.settings.language);
  return (key, fill) => translate(language, key, fill);
}

export const word: Say = (key, fill) => translate(studio().settings.language, key, fill);
