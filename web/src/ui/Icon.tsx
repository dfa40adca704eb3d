// SPDX-License-Identifier: Apache-2.0
/** Small drawings, all on a grid of 16. */

const PATHS = {
  play: "M4 2.5v11l9-5.5z",
  stop: "M4 4h8v8H4z",
  step: "M3 3v10l6-5zM11 3h2v10h-2z",
  loop: "M3 8a5 5 0 0 1 8.6-3.5L13 3v4H9l1.5-1.4A3.2 3.2 0 1 0 11 9.6l1.6 1A5 5 0 0 1 3 8z",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  home: "M2.5 8L8 3l5.5 5M4.5 7v6h7V7",
  left: "M3 3h10v10H3zM6.5 3v10",
  right: "M3 3h10v10H3zM9.5 3v10",
  bottom: "M3 3h10v10H3zM3 9.5h10",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M12.6 3.4l-1.1 1.1M4.5 11.5l-1.1 1.1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  undo: "M5 3L2.5 5.5 5 8M2.5 5.5H10a3.5 3.5 0 0 1 0 7H6",
  redo: "M11 3l2.5 2.5L11 8M13.5 5.5H6a3.5 3.5 0 0 0 0 7h4",
  expand: "M9 3h4v4M13 3L9 7M7 13H3V9M3 13l4-4",
  warn: "M8 2.5l6 11H2zM8 6.5v3.5M8 11.6v.2",
  tick: "M3 8.5l3.2 3.2L13 5",
  chevron: "M6 4l4 4-4 4",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5",
  unlink: "M3 3l10 10M6.5 6.5L4.6 8.4a2.5 2.5 0 0 0 3.5 3.5l1-1M9.5 9.5l1.9-1.9a2.5 2.5 0 0 0-3.5-3.5l-1 1",
  tidy: "M2 3h4v4H2zM10 2h4v4h-4zM10 10h4v4h-4zM6 5h2v7h2M8 5h2",
} as const;

export type IconName = keyof typeof PATHS;

const FILLED = new Set<IconName>(["play", "stop", "step", "loop"]);

export function Icon({ name }: { name: IconName }) {
  const filled = FILLED.has(name);
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill={filled ? "currentColor" : "none"}
        stroke={filled ? "none" : "currentColor"}
        strokeWidth="1.5"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
