// SPDX-License-Identifier: Apache-2.0
/** Curves in one frame. Each has a colour, a dash and a mark of its own form, so that colour alone tells nothing. */

import { placeOn, scaleOf, shows, thinned, ticksOf, type Point, type Scale } from "../core/chart";
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
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, FOOT] = [620, 230, 76, 14, 10, 40];
const STRETCHES = 400;
const MOST_MARKS = 60;
const FORMS = 6;

export function Chart({ label, series, x, y, logX = false, logY = false, names, ticks = format.number }: Props) {
  const drawn = series.map((one) => ({ ...one, points: thinned(one.points.filter((point) => shows(logX && !names, point.x) && shows(logY, point.y)), STRETCHES) }));
  const all = drawn.flatMap((one) => one.points);
  const across = names ? { low: -0.5, high: names.length - 0.5, log: false } : scaleOf(all.map((point) => point.x), logX);
  const up = scaleOf(all.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]), logY);
  if (!across || !up) return null;
  const at = (point: Point) => [placeX(across, point.x), placeY(up, point.y)] as const;
  return (
    <figure className="chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
        {ticksOf(up).map((value) => (
          <g key={value} transform={`translate(0 ${placeY(up, value)})`}>
            <line className="rule" x1={LEFT} x2={WIDTH - RIGHT} />
            <text x={LEFT - 6} y="4" textAnchor="end">{ticks(value)}</text>
          </g>
        ))}
        {(names ? names.map((_, index) => index) : ticksOf(across, 7)).map((value) => (
          <g key={value} transform={`translate(${placeX(across, value)} ${HEIGHT - FOOT})`}>
            <line className="rule" y2="4" />
            <text y="16" textAnchor="middle">{names ? cut(names[value]!, names.length) : format.number(value)}</text>
          </g>
        ))}
        <text className="axis" x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 6} textAnchor="middle">{x}</text>
        <text className="axis" transform={`translate(12 ${(TOP + HEIGHT - FOOT) / 2}) rotate(-90)`} textAnchor="middle">{y}</text>
        <path className="frame" d={`M${LEFT} ${TOP}V${HEIGHT - FOOT}H${WIDTH - RIGHT}`} />
        {drawn.map((one, index) => (
          <g key={one.name} className={`series form-${index % FORMS}`}>
            {one.points.length > 1 && <polyline points={one.points.map((point) => at(point).map((place) => place.toFixed(1)).join(",")).join(" ")} />}
            {one.points.map((point, place) => <Bar key={place} point={point} across={across} up={up} log={logY} />)}
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

function placeX(scale: Scale, value: number): number {
  return LEFT + 8 + placeOn(scale, value) * (WIDTH - LEFT - RIGHT - 16);
}

function placeY(scale: Scale, value: number): number {
  return HEIGHT - FOOT - 6 - placeOn(scale, value) * (HEIGHT - TOP - FOOT - 12);
}

function cut(name: string, count: number): string {
  const most = Math.max(4, Math.floor(88 / count));
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

/** The spread of a value; one that reaches below a logarithmic scale ends at its foot. */
function Bar({ point, across, up, log }: { point: Point; across: Scale; up: Scale; log: boolean }) {
  if (point.low === undefined || point.high === undefined || point.low === point.high) return null;
  const x = placeX(across, point.x);
  const [low, high] = [placeY(up, log && point.low <= 0 ? up.low : point.low), placeY(up, point.high)];
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
