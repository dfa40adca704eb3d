// SPDX-License-Identifier: Apache-2.0
/** The time since something was first shown, while it lasts; nothing for what is over at once. */

import { useEffect, useState } from "react";
import * as format from "../core/format";

const FIRST_SECONDS = 0.5;
const EVERY_MS = 250;

export function Elapsed() {
  const [begun] = useState(() => performance.now());
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => setSeconds((performance.now() - begun) / 1000), EVERY_MS);
    return () => window.clearInterval(timer);
  }, [begun]);
  return seconds < FIRST_SECONDS ? null : <span className="elapsed">{format.seconds(seconds)}</span>;
}
