// SPDX-License-Identifier: Apache-2.0
/** The page as a picture, made from what is drawn: the same places, wires, values and colours as on the screen. */

import { flow } from "../state/store";

const MARGIN = 32;
/** The most pixels of a PNG, and the longest side that browsers paint. */
const MOST_PIXELS = 48_000_000;
const LONGEST = 16_000;

interface Frame {
  readonly left: number;
  readonly top: number;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

function n(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function isClear(colour: string): boolean {
  return colour === "transparent" || /^rgba\(.*, 0\)$/.test(colour);
}

/** The ground and the frame of an element. */
function boxOf(element: Element, style: CSSStyleDeclaration, frame: Frame): string {
  const rect = element.getBoundingClientRect();
  const [x, y] = [rect.left - frame.left, rect.top - frame.top];
  const width = parseFloat(style.borderTopWidth);
  const framed = width > 0 && style.borderTopWidth === style.borderBottomWidth && style.borderLeftStyle !== "none";
  const ground = isClear(style.backgroundColor) ? "none" : style.backgroundColor;
  const dash = style.borderTopStyle === "dashed" ? ` stroke-dasharray="5 4"` : "";
  const stroke = framed && !isClear(style.borderTopColor) ? ` stroke="${style.borderTopColor}" stroke-width="${width}"${dash}` : "";
  const line = !framed && width > 0 ? `<path d="M${n(x)},${n(y)}h${n(rect.width)}" stroke="${style.borderTopColor}"/>` : "";
  if (ground === "none" && stroke === "") return line;
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, rect.height / 2);
  const inset = stroke ? width / 2 : 0;
  return `<rect x="${n(x + inset)}" y="${n(y + inset)}" width="${n(rect.width - 2 * inset)}" height="${n(rect.height - 2 * inset)}" rx="${n(radius)}" fill="${ground}"${stroke}/>${line}`;
}

/** A pin, by its form. */
function pinOf(element: Element, style: CSSStyleDeclaration, frame: Frame): string {
  const rect = element.getBoundingClientRect();
  const [x, y] = [rect.left - frame.left + rect.width / 2, rect.top - frame.top + rect.height / 2];
  const mark = getComputedStyle(element, "::before");
  const ring = parseFloat(mark.borderTopWidth) > 0 ? ` stroke="${style.color}" stroke-width="2.5"` : "";
  const round = mark.borderTopLeftRadius === "50%";
  const turn = element.classList.contains("shape") ? ` transform="rotate(45 ${n(x)} ${n(y)})"` : "";
  return `<rect x="${n(x - 5)}" y="${n(y - 5)}" width="10" height="10" rx="${round ? 5 : 1.5}" fill="${mark.backgroundColor}"${ring}${turn}/>`;
}

const measuring = document.createElement("canvas").getContext("2d")!;

/** The lines that a text node is broken into, each with its place; what does not fit is cut as on the screen. */
function linesOf(node: Text): { text: string; rect: DOMRect }[] {
  const range = document.createRange();
  const host = node.parentElement!;
  const cut = getComputedStyle(host).textOverflow === "ellipsis" && host.scrollWidth > host.clientWidth ? host.getBoundingClientRect().right : Infinity;
  const lines: { text: string; rect: DOMRect }[] = [];
  let start = 0;
  const flush = (end: number) => {
    range.setStart(node, start);
    range.setEnd(node, end);
    const text = node.data.slice(start, end).replaceAll(/\s+/g, " ");
    if (text.trim() !== "") lines.push({ text, rect: range.getBoundingClientRect() });
    start = end;
  };
  range.selectNodeContents(node);
  if (cut === Infinity && range.getClientRects().length === 1) {
    flush(node.length);
    return lines;
  }
  let top = NaN;
  for (let at = 0; at < node.length; at += 1) {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    const rect = range.getBoundingClientRect();
    if (rect.width === 0) continue;
    if (rect.right > cut - 8) {
      flush(at);
      const last = lines.at(-1);
      if (last) lines[lines.length - 1] = { ...last, text: `${last.text}…` };
      return lines;
    }
    if (rect.top > top + 4) flush(at);
    top = rect.top;
  }
  flush(node.length);
  return lines;
}

function textOf(node: Text, frame: Frame): string {
  const style = getComputedStyle(node.parentElement!);
  measuring.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const ascent = measuring.measureText("x").fontBoundingBoxAscent;
  const font = `font-family="${escaped(style.fontFamily)}" font-size="${parseFloat(style.fontSize)}" font-weight="${style.fontWeight}" fill="${style.color}"`;
  return linesOf(node)
    .map(({ text, rect }) => {
      const length = text.endsWith("…") ? "" : ` textLength="${n(rect.width)}" lengthAdjust="spacingAndGlyphs"`;
      return `<text xml:space="preserve" x="${n(rect.left - frame.left)}" y="${n(rect.top - frame.top + ascent)}" ${font}${length}>${escaped(text)}</text>`;
    })
    .join("");
}

/** What stands in a field, such as the edit box of a display. */
function typedOf(field: HTMLInputElement, style: CSSStyleDeclaration, frame: Frame): string {
  const rect = field.getBoundingClientRect();
  const size = parseFloat(style.fontSize);
  const [x, y] = [rect.left - frame.left + parseFloat(style.paddingLeft) + 1, rect.top - frame.top + rect.height / 2 + 0.35 * size];
  return `<text xml:space="preserve" x="${n(x)}" y="${n(y)}" font-family="${escaped(style.fontFamily)}" font-size="${size}" fill="${style.color}">${escaped(field.value)}</text>`;
}

function imageOf(canvas: HTMLCanvasElement, frame: Frame): string {
  const rect = canvas.getBoundingClientRect();
  if (canvas.width === 0 || canvas.height === 0) return "";
  return `<image x="${n(rect.left - frame.left)}" y="${n(rect.top - frame.top)}" width="${n(rect.width)}" height="${n(rect.height)}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"/>`;
}

const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "image-rendering"];

/** A drawing inside of a block, with the colours that it has here. */
function drawingOf(svg: SVGSVGElement, frame: Frame): string {
  const rect = svg.getBoundingClientRect();
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, index) => {
    const style = getComputedStyle(originals[index]!);
    element.removeAttribute("class");
    element.removeAttribute("style");
    // Attributes, not a style: the studio's own policy forbids texts that are styles.
    for (const name of DRAWN) element.setAttribute(name, style.getPropertyValue(name));
  });
  const place = { x: rect.left - frame.left, y: rect.top - frame.top, width: rect.width, height: rect.height };
  for (const [name, value] of Object.entries(place)) copy.setAttribute(name, n(value));
  return new XMLSerializer().serializeToString(copy);
}

/** Everything inside of an element that is seen. */
function drawn(element: Element, frame: Frame): string {
  const style = getComputedStyle(element);
  if (style.display === "none" || element.matches(".open-viewer, .sr")) return "";
  if (element instanceof HTMLCanvasElement) return imageOf(element, frame);
  if (element instanceof SVGSVGElement) return drawingOf(element, frame);
  const seen = style.visibility !== "hidden";
  const own = !seen ? "" : element.matches(".handle") ? pinOf(element, style, frame) : boxOf(element, style, frame);
  const inside = [...element.childNodes].map((child) => {
    if (child instanceof Text) return seen ? textOf(child, frame) : "";
    return child instanceof Element ? drawn(child, frame) : "";
  });
  const typed = seen && element instanceof HTMLInputElement ? typedOf(element, style, frame) : "";
  const all = own + typed + inside.join("");
  return style.opacity === "1" || all === "" ? all : `<g opacity="${style.opacity}">${all}</g>`;
}

/** A wire; its way is in the coordinates of the page. */
function wireOf(path: SVGPathElement, origin: Frame): string {
  const style = getComputedStyle(path);
  const dash = style.strokeDasharray === "none" ? "" : ` stroke-dasharray="${style.strokeDasharray}" stroke-linecap="${style.strokeLinecap}"`;
  return `<path d="${path.getAttribute("d")}" transform="translate(${n(origin.left)} ${n(origin.top)})" fill="none" stroke="${style.stroke}" stroke-width="${parseFloat(style.strokeWidth)}"${dash}/>`;
}

/** The page at its own size and with all detail, however far away it is shown; put back before anything is painted. */
function atFullSize<T>(view: HTMLElement, work: () => T): T {
  const canvas = view.closest<HTMLElement>(".canvas")!;
  const [transform, far] = [view.style.transform, canvas.dataset["far"] ?? "0"];
  view.style.transform = "none";
  canvas.dataset["far"] = "0";
  try {
    return work();
  } finally {
    view.style.transform = transform;
    canvas.dataset["far"] = far;
  }
}

/** The page as SVG text. */
export function svgOf(title: string): string {
  const view = document.querySelector<HTMLElement>(".react-flow__viewport");
  if (!view || !flow.current) return "";
  return atFullSize(view, () => {
    const bounds = flow.current!.getNodesBounds(flow.current!.getNodes());
    const origin = view.getBoundingClientRect();
    const wires = [...view.querySelectorAll<SVGPathElement>(".react-flow__edge .react-flow__edge-path, .react-flow__edge .break")];
    const points = wires.map((path) => path.getBBox());
    const left = Math.min(bounds.x, ...points.map((box) => box.x)) - MARGIN;
    const top = Math.min(bounds.y, ...points.map((box) => box.y)) - MARGIN;
    const width = Math.max(bounds.x + bounds.width, ...points.map((box) => box.x + box.width)) + MARGIN - left;
    const height = Math.max(bounds.y + bounds.height, ...points.map((box) => box.y + box.height)) + MARGIN - top;
    const frame = { left: origin.left + left, top: origin.top + top };
    const nodes = [...view.querySelectorAll<HTMLElement>(".react-flow__node")].map((node) => `<g data-block="${escaped(node.dataset["id"] ?? "")}">${drawn(node, frame)}</g>`);
    const ground = getComputedStyle(document.documentElement).getPropertyValue("--canvas").trim();
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${n(width)}" height="${n(height)}" viewBox="0 0 ${n(width)} ${n(height)}" role="img">`,
      `<title>${escaped(title)}</title><rect width="100%" height="100%" fill="${ground}"/>`,
      ...wires.map((path) => wireOf(path, { left: -left, top: -top })),
      ...[...view.querySelectorAll(".chip")].map((chip) => drawn(chip, frame)),
      ...nodes,
      "</svg>\n",
    ].join("\n");
  });
}

/** An SVG text painted: two pixels for one where that is not too many. */
export async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const { naturalWidth: width, naturalHeight: height } = image;
  const scale = Math.min(2, LONGEST / Math.max(width, height), Math.sqrt(MOST_PIXELS / (width * height)));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"));
}
