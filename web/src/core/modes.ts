// SPDX-License-Identifier: Apache-2.0
/** Whether a block does its work: a bypassed one passes an input on, a muted one is not run. */

import type { Block } from "./model";

export type Mode = NonNullable<Block["mode"]>;

/** What an edit sets where a block is to work again. */
export const emptyMode = "";
