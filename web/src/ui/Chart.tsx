// SPDX-License-Identifier: Apache-2.0
/** Curves in one frame. Each has a colour, a dash and a mark of its own form, so that colour alone tells nothing. */

import { placeOn, scaleOf, shows, thinned, ticksOf, type Point } from "../core/chart";
import * as format from "../core/format";

export interface Series {
  readonly name: string;
  readonly points: readonly Point[];
}

interface Props {
  readonly label: string;
  readonly series: readonly Series[];
  readonly x: string;
  readonly y: string;
  readonly logX?: boolean;
  readonly logY?: boolean;
  /** What stands at 0, 1, 2, ... where x has no numbers. */
  readonly names?: readonly string[];
  readonly ticks?: (value: number) => string;
  /** Its size on the screen, where there is room for it. */
  readonly size?: readonly [number, number];
}

const [LEFT, RIGHT, TOP, FOOT] = [76, 14, 10, 40];
const STRETCHES = 400;
const MOST_MARKS = 60;
const FORMS = 6;

export function Chart({ label, series, x, y, logX = false, logY = false, names, ticks = format.number, size = [620, 230] }: Props) {
  const [width, height] = size;
  const drawn = series.map((one) => ({ ...one, points: thinned(one.points.filter((point) => shows(logX && !names, point.x) && shows(logY, point.y)), STRETCHES) }));
  const all = drawn.flatMap((one) => one.points);
  const across = names ? { low: -0.5, high: names.length - 0.5, log: false } : scaleOf(all.map((point) => point.x), logX);
  const up = scaleOf(all.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]), logY);
  if (!across || !up) return null;
  const toX = (value: number) => LEFT + 8 + placeOn(across, value) * (width - LEFT - RIGHT - 16);
  const toY = (value: number) => height - FOOT - 6 - placeOn(up, value) * (height - TOP - FOOT - 12);
  const at = (point: Point) => [toX(point.x), toY(point.y)] as const;
  return (
    <figure className="chart">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
        {ticksOf(up).map((value) => (
          <g key={value} transform={`translate(0 ${toY(value)})`}>
            <line className="rule" x1={LEFT} x2={width - RIGHT} />
            <text x={LEFT - 6} y="4" textAnchor="end">{ticks(value)}</text>
          </g>
        ))}
        {(names ? names.map((_, index) => index) : ticksOf(across, width / 90)).map((value) => (
          <g key={value} transform={`translate(${toX(value)} ${height - FOOT})`}>
            <line className="rule" y2="4" />
            <text y="16" textAnchor="middle">{names ? cut(names[value]!, names.length) : format.number(value)}</text>
          </g>
        ))}
        <text className="axis" x={(LEFT + width - RIGHT) / 2} y={height - 6} textAnchor="middle">{x}</text>
        <text className="axis" transform={`translate(12 ${(TOP + height - FOOT) / 2}) rotate(-90)`} textAnchor="middle">{y}</text>
        <path className="frame" d={`M${LEFT} ${TOP}V${height - FOOT}H${width - RIGHT}`} />
        {drawn.map((one, index) => (
          <g key={one.name} className={`series form-${index % FORMS}`}>
            {one.points.length > 1 && <polyline points={one.points.map((point) => at(point).map((place) => place.toFixed(1)).join(",")).join(" ")} />}
            {one.points.map((point, place) => <Bar key={place} point={point} x={toX(point.x)} foot={up.low} toY={toY} log={logY} />)}
            {one.points.length <= MOST_MARKS && one.points.map((point, place) => (
              <Mark key={place} form={index % FORMS} at={at(point)} title={`${one.name}: ${names ? names[point.x] : format.number(point.x)}, ${ticks(point.y)}`} />
            ))}
          </g>
        ))}
      </svg>
      {series.length > 1 && (
        <figcaption>
          {series.map((one, index) => (
            <span key={one.name} className={`series form-${index % FORMS}`}>
              <svg viewBox="0 0 28 12" width="28" height="12" aria-hidden="true">
                <polyline points="0,6 28,6" />
                <Mark form={index % FORMS} at={[14, 6]} title="" />
              </svg>
              {one.name}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

function cut(name: string, count: number): string {
  const most = Math.max(4, Math.floor(88 / count));
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

/** The spread of a value; one that reaches below a logarithmic scale ends at its foot. */
function Bar({ point, x, foot, toY, log }: { point: Point; x: number; foot: number; toY: (value: number) => number; log: boolean }) {
  if (point.low === undefined || point.high === undefined || point.low === point.high) return null;
  const [low, high] = [toY(log && point.low <= 0 ? foot : point.low), toY(point.high)];
  return <path className="error-bar" d={`M${x} ${low}V${high}M${x - 4} ${low}h8M${x - 4} ${high}h8`} />;
}

const PATHS = ["M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", "M-3 -3h6v6h-6z", "M0 -4L4 3H-4z", "M0 -4.5L4.5 0L0 4.5L-4.5 0z", "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5", "M0 4L4 -3H-4z"];

function Mark({ form, at: [x, y], title }: { form: number; at: readonly [number, number]; title: string }) {
  return (
    <path className="mark" d={PATHS[form]!} transform={`translate(${x.toFixed(1)} ${y.toFixed(1)})`}>
      {title && <title>{title}</title>}
    </path>
  );
}
