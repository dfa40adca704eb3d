// SPDX-License-Identifier: Apache-2.0
/** What the server has drawn of a display, as SVG. */

import { memo } from "react";
import type { Mark } from "../../core/api";

export const Marks = memo(function Marks({ marks, width, height }: { marks: readonly Mark[]; width: number; height: number }) {
  return (
    <svg className="marks" viewBox={`0 0 ${width} ${height}`} width="100%" height="100%" aria-hidden="true" focusable="false">
      {marks.map((mark, index) => (
        <One key={index} mark={mark} />
      ))}
    </svg>
  );
});

function One({ mark: { form, points, style, size, text, anchor, image } }: { mark: Mark }) {
  const [x = 0, y = 0, right = 0, bottom = 0] = points;
  const own = (style.startsWith("#") ? { "--vd": style } : {}) as React.CSSProperties;
  const paint = { className: `vd-fill vd-${style}`, style: own };
  const stroke = { className: `vd-line vd-${style}`, style: own };
  if (form === "rect") return <rect {...paint} x={x} y={y} width={right - x} height={bottom - y} />;
  if (form === "line") return <polyline {...stroke} strokeWidth={size} points={points.join(" ")} />;
  if (form === "area") return <polygon {...paint} points={points.join(" ")} />;
  if (form === "circle") return <circle {...paint} cx={x} cy={y} r={size} />;
  if (form === "ring") return <circle {...stroke} cx={x} cy={y} r={size} />;
  if (form === "image") return <image x={x} y={y} width={right - x} height={bottom - y} href={image} preserveAspectRatio="none" style={{ imageRendering: "pixelated" }} />;
  return (
    <text {...paint} x={x} y={y} textAnchor={anchor as "start" | "middle" | "end"} fontSize={size} xmlSpace="preserve">
      {text}
    </text>
  );
}
