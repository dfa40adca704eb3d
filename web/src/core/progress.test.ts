// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { BlockRun } from "./api";
import { progressOf } from "./progress";

const block = (name: string, state: BlockRun["state"], seconds: number | null, run?: string): BlockRun & { run?: string } => ({
  block: name, cycle: 0, state, seconds, reason: "", outputs: [], error: null, times: null, ...(run ? { run } : {}),
});

test("kept results take no time, and blocks of an earlier run do not count", () => {
  const results = {
    a: block("a", "done", 0.25, "r"), b: block("b", "cached", 9, "r"), c: block("c", "started", null, "r"),
    d: block("d", "failed", 0.5, "r"), e: block("e", "done", 7, "before"), f: block("f", "done", 7),
  };
  expect(progressOf("r", results)).toEqual({ total: 4, ended: 3, ran: 1, kept: 1, seconds: 0.25 });
});
