// SPDX-License-Identifier: Apache-2.0
/**
 * The explainer of an op on a small grid: in the studio, and in pages that need no server.
 *
 * It draws what `packing.py` tells: values, the boxes that elements read, how much of each arrives, which are multiplied.
 * It knows no windows, pools or convolutions. Everything on the screen is made as text, never as markup.
 */

/** @typedef {{name: string, side: string, sizes: number[], given: boolean, values: (number|string)[], short: string[]}} Tensor */

const SIDES = ["cells", "taps", "windows"];
const KINDS = ["window", "stride", "padding", "case", "semantics"];
const PAUSE = 1400;
/** The choice at first, by its places: a window of 2 cells on every axis, and a stride as large. */
export const FIRST = [1, 1, 0, 0, 0];

/** A lesson of packed data, with its tables looked up. */
export function unpack(pack, state) {
  if (!state.steps) return state;
  const tensors = {};
  for (let at = 0; at < state.tensors.length; at += 2) {
    const kind = pack.tensors[state.tensors[at]];
    const values = pack.values[state.tensors[at + 1]];
    tensors[kind.name] = { ...kind, values, short: shortened(values) };
  }
  const rowsOf = (list) => list === undefined ? null : pack.lists[list].map((row) => pack.rows[row]);
  const steps = state.steps.map(([at, rows, ties]) => {
    const step = pack.steps[at];
    const reads = Object.fromEntries(Object.entries(step.reads).map(([pin, axes]) => [pin, axes.map((axis) => pack.spans[axis])]));
    return { ...step, reads, rows: rowsOf(rows), ties: rowsOf(ties) };
  });
  return { tensors, steps };
}

/** Lessons that were all computed beforehand. */
export function fromPack(pack) {
  const sizes = KINDS.map((kind) => pack.choices[kind].length);
  return {
    ...pack,
    lesson: async (places) => unpack(pack, pack.states[pack.at[places.reduce((sum, place, axis) => sum * sizes[axis] + place, 0)]]),
  };
}

const finite = (value) => (typeof value === "number" ? value : Number({ nan: NaN, inf: Infinity, "-inf": -Infinity }[value]));

/** A number as people read it: at most seven digits. */
export function shown(value) {
  const number = finite(value);
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  return String(Number(number.toPrecision(7))).replace("-", "−");
}

/** Four digits, where these still tell the numbers of a tensor apart; else as many as it takes. */
function shortened(values) {
  const short = values.map((value) => (Number.isFinite(finite(value)) ? shown(Number(finite(value).toPrecision(4))) : shown(value)));
  return new Set(short).size === new Set(values.map(shown)).size ? short : values.map(shown);
}

/** A share as a fraction, where it is one. */
function fraction(share) {
  const parts = 1 / share;
  return Math.abs(parts - Math.round(parts)) < 1e-4 ? `1/${Math.round(parts)}` : shown(share);
}

const places = (flat, sizes) => [Math.floor(flat / (sizes[1] * sizes[2])), Math.floor(flat / sizes[2]) % sizes[1], flat % sizes[2]];
const flatOf = ([d, h, w], sizes) => (d * sizes[1] + h) * sizes[2] + w;

function range([lo, hi, step]) {
  const found = [];
  for (let at = lo; at < hi; at += step) found.push(at);
  return found;
}

/** Padding that a box reaches on an axis, as places outside of the tensor. */
function outside([lo, hi, step, before, after], size) {
  const last = hi > lo ? hi - 1 : lo - step;
  return [...Array(before).keys()].map((at) => (hi > lo ? lo : 0) - (at + 1) * step).concat([...Array(after).keys()].map((at) => Math.max(last, size - 1 - (size - 1 - last) % step) + (at + 1) * step));
}

/** What an element of a step reads through a pin: elements of the operand, and the padding on every axis. */
function boxOf(lesson, step, pin, at) {
  const sizes = lesson.tensors[step.operands[pin]].sizes;
  const spans = step.reads[pin].map((axis, which) => axis[at[which]]);
  const [depths, heights, widths] = spans.map(range);
  const cells = depths.flatMap((d) => heights.flatMap((h) => widths.map((w) => flatOf([d, h, w], sizes))));
  return { pin, name: step.operands[pin], cells, spans, ghosts: spans.map((span, axis) => outside(span, sizes[axis])) };
}

/** All that meets in an element: `terms` of what arrives, with a factor or a second element. */
function readsOf(lesson, step, flat) {
  const at = places(flat, lesson.tensors[step.output].sizes);
  const boxes = Object.fromEntries(Object.keys(step.reads).map((pin) => [pin, boxOf(lesson, step, pin, at)]));
  const terms = [];
  if (step.pairs) {
    const [one, other] = step.pairs.map((pin) => boxes[pin]);
    const partners = step.flipped ? [...other.cells].reverse() : other.cells;
    one.cells.forEach((cell, index) => terms.push({ name: one.name, cell, with: { name: other.name, cell: partners[index] } }));
  } else {
    const box = boxes[step.part];
    const row = step.rows[flat];
    box.cells.forEach((cell, index) => terms.push({ name: box.name, cell, share: Array.isArray(row) ? row[index] : row }));
  }
  const pooled = step.ties && Object.values(boxes)[0];
  const ties = pooled ? pooled.cells.filter((_, index) => mark(step.ties[flat], index)) : [];
  return { at, boxes, terms, ties, pooled };
}

const mark = (row, index) => (Array.isArray(row) ? row[index] : row) !== 0;

/** An element with attributes, listeners and children; texts are texts. */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-") && value !== undefined) made.setAttribute(name, String(value));
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/**
 * Show lessons in an element.
 * `source`: what `fromPack` gives, or an object with its `op`, `choices`, `about` and `lesson(places, typed)`.
 * Returns `language(name)` and `close()`.
 */
export function explain(root, { source, words, language, editable = false }) {
  const view = new View(root, source, words, language, editable);
  void view.choose({});
  return {
    language: (name) => view.speak(name),
    close: () => view.close(),
  };
}

class View {
  constructor(root, source, words, language, editable) {
    Object.assign(this, { root, source, words, spoken: language, editable });
    this.places = FIRST;
    this.typed = {};
    this.step = null;
    this.flat = 0;
    this.pinned = false;
    this.predicting = false;
    /** Elements that were revealed, each with how the guess was. */
    this.revealed = new Map();
    this.score = [0, 0];
    this.timer = 0;
    this.asked = 0;
    this.redraw = new ResizeObserver(() => this.lesson?.steps && this.light());
    this.redraw.observe(root);
  }

  /** A text in the language, with its blanks filled in. */
  say(key, fill = {}) {
    return (this.words[this.spoken][key] ?? key).replace(/\{(\w+)\}/g, (blank, name) => String(fill[name] ?? blank));
  }

  /** What a declaration says, in the language. */
  told(text) {
    return this.words.texts[this.spoken]?.[text] ?? text;
  }

  speak(language) {
    this.spoken = language;
    if (this.lesson) this.draw();
  }

  close() {
    this.stop();
    this.redraw.disconnect();
    this.root.replaceChildren();
  }

  /** Another choice: ask for its lesson, and show it. */
  async choose(changes) {
    this.stop();
    const order = ++this.asked;
    const places = KINDS.map((kind, at) => changes[kind] ?? this.places[at]);
    if (KINDS.slice(0, 3).some((kind) => changes[kind] !== undefined)) this.typed = this.typed.x ? { x: this.typed.x } : {};
    if (changes.case !== undefined) delete this.typed.x;
    let lesson;
    try {
      lesson = await this.source.lesson(places, this.typed);
    } catch (error) {
      this.problem = error.message;
      if (this.lesson) this.draw();
      return;
    }
    if (order !== this.asked) return;
    this.problem = "";
    Object.assign(this, { lesson, places });
    this.revealed.clear();
    this.draw();
  }

  /** The step that is shown: that of the op at first, later the one of the same output. */
  current() {
    const { steps } = this.lesson;
    return steps.find((step) => step.output === this.step) ?? steps.find((step) => step.op === this.source.op) ?? steps[0];
  }

  draw() {
    const focused = this.root.querySelector(":focus")?.dataset.key;
    const main = make("div", { class: "vx", lang: this.spoken }, this.controls());
    if (this.lesson.steps) {
      const step = this.current();
      this.step = step.output;
      this.flat = Math.min(this.flat, this.lesson.tensors[step.output].values.length - 1);
      const beside = make("div", { class: "vx-beside" }, this.guess(step), this.telling(), this.rules(step));
      main.append(this.tabs(), this.heading(step), this.walk(), make("div", { class: "vx-body" }, this.stage(step), beside));
    } else main.append(make("p", { class: "vx-refused", role: "status" }, this.lesson.fault ? this.lesson.fault.text : this.say("empty")));
    this.root.replaceChildren(main);
    if (this.lesson.steps) this.light();
    if (focused) this.root.querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
  }

  controls() {
    const bar = make("form", { class: "vx-controls", "aria-label": this.say("choose"), onsubmit: (event) => event.preventDefault() });
    KINDS.forEach((kind, axis) => {
      const options = this.source.choices[kind];
      if (kind === "case") {
        const buttons = options.map((option, at) => make("button", {
          type: "button", "data-key": `case-${option}`, "aria-pressed": this.places[axis] === at && !this.typed.x, onclick: () => void this.choose({ case: at }),
        }, this.say(`case.${option}`)));
        bar.append(make("fieldset", { class: "vx-cases" }, make("legend", {}, this.say("choice.case")), ...buttons));
        return;
      }
      const list = make("select", { "data-key": kind, onchange: (event) => void this.choose({ [kind]: event.target.selectedIndex }) },
        ...options.map((option, at) => make("option", { selected: this.places[axis] === at }, this.option(kind, option))));
      bar.append(make("label", {}, make("span", {}, this.say(`choice.${kind}`)), list));
    });
    bar.append(make("p", { class: "vx-problem", role: "alert" }, this.problem || ""));
    return bar;
  }

  option(kind, option) {
    if (kind === "window" && option.length === 6) return `${option.slice(0, 3).join("×")} ${this.say("dilated", { by: option.slice(3).join("×") })}`;
    if (kind === "padding" && /\d/.test(option)) return this.say("padding.numbers", { cells: option });
    return Array.isArray(option) ? option.join("×") : option;
  }

  tabs() {
    const list = make("nav", { class: "vx-steps", "aria-label": this.say("steps") });
    for (const order of [0, 1, 2]) {
      const buttons = this.lesson.steps.filter((step) => step.order === order).map((step) => make("button", {
        type: "button", "data-key": `step-${step.output}`, "aria-current": step.output === this.step ? "step" : undefined,
        onclick: () => { this.stop(); this.step = step.output; this.pinned = false; this.draw(); },
      }, this.equationOf(step)));
      list.append(make("div", {}, make("span", { class: "vx-order" }, this.say(`order.${order}`)), ...buttons));
    }
    return list;
  }

  equationOf(step) {
    return `${step.output} = ${step.op}(${Object.values(step.operands).join(", ")})`;
  }

  heading(step) {
    const about = this.source.about[step.op];
    return make("header", { class: "vx-heading" }, make("h2", {}, step.op), make("p", {}, `${this.told(about.summary)} ${this.say(`kind.${step.kind}`)}`),
      make("p", { class: "vx-print" }, KINDS.map((kind, axis) => `${this.say(`choice.${kind}`)}: ${kind === "case" ? this.say(`case.${this.source.choices.case[this.places[axis]]}`) : this.option(kind, this.source.choices[kind][this.places[axis]])}`).join(" · ")));
  }

  // The stage: tensors by the side on which they lie, cells left, windows right

  stage(step) {
    const names = [...new Set([...Object.values(step.operands), step.output])];
    const columns = SIDES.map((side) => {
      const here = names.filter((name) => this.lesson.tensors[name].side === side);
      return here.length === 0 ? null : make("section", { class: "vx-side", "data-side": side, "aria-label": this.say(`side.${side}`) }, make("h3", {}, this.say(`side.${side}`)),
        make("div", { class: "vx-tensors" }, ...here.map((name) => this.tensor(step, name))));
    });
    this.arrows = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.arrows.setAttribute("class", "vx-arrows");
    this.arrows.setAttribute("aria-hidden", "true");
    this.field = make("div", { class: `vx-stage ${names.length > 3 ? "many" : ""}`, onpointerleave: () => this.leave() }, ...columns, this.arrows);
    return this.field;
  }

  tensor(step, name) {
    const tensor = this.lesson.tensors[name];
    const pin = Object.keys(step.operands).find((one) => step.operands[one] === name);
    const margins = this.margins(step, pin, tensor);
    const slices = [...Array(tensor.sizes[0]).keys()].flatMap((depth) => [make("span", { class: "vx-depth", "aria-hidden": true }, this.say("depth", { depth })), this.slice(step, name, depth, margins)]);
    const beyond = (from, count) => [...Array(count).keys()].map((at) => make("div", { class: "vx-ghost vx-beyond", "data-ghost": `${name}:d${from + at}`, "aria-hidden": true }));
    const what = name === step.output ? "result" : tensor.given ? "given" : "computed";
    return make("figure", { class: `vx-tensor ${what}`, "data-tensor": name },
      make("figcaption", {}, make("strong", {}, name), ` ${this.say(`tensor.${what}`)}`),
      ...beyond(-margins[0][0], margins[0][0]), ...slices, ...beyond(tensor.sizes[0], margins[0][1]));
  }

  /** How far windows reach outside of a tensor on every axis. */
  margins(step, pin, tensor) {
    if (!pin || !step.reads[pin]) return [[0, 0], [0, 0], [0, 0]];
    return step.reads[pin].map((axis, which) => {
      const all = axis.flatMap((span) => outside(span, tensor.sizes[which]));
      return [Math.max(0, ...all.map((at) => -at)), Math.max(0, ...all.map((at) => at - tensor.sizes[which] + 1))];
    });
  }

  slice(step, name, depth, [, tall, wide]) {
    const tensor = this.lesson.tensors[name];
    const [, height, width] = tensor.sizes;
    const grid = make("div", { class: "vx-slice", role: "grid", "aria-label": this.say("slice", { name, depth }) });
    grid.style.gridTemplateColumns = `repeat(${wide[0]}, var(--vx-ghost)) repeat(${width}, var(--vx-cell)) repeat(${wide[1]}, var(--vx-ghost))`;
    if (wide[0] === 0) grid.style.gridTemplateColumns = `repeat(${width}, var(--vx-cell))${wide[1] ? ` repeat(${wide[1]}, var(--vx-ghost))` : ""}`;
    else if (wide[1] === 0) grid.style.gridTemplateColumns = `repeat(${wide[0]}, var(--vx-ghost)) repeat(${width}, var(--vx-cell))`;
    for (let h = -tall[0]; h < height + tall[1]; h += 1) {
      const inside = h >= 0 && h < height;
      const row = make("div", { class: "vx-row", ...(inside ? { role: "row" } : { role: "presentation", "aria-hidden": true }) });
      for (let w = -wide[0]; w < width + wide[1]; w += 1) {
        row.append(inside && w >= 0 && w < width ? this.cell(step, name, flatOf([depth, h, w], tensor.sizes)) : make("div", { class: "vx-ghost", "data-ghost": `${name}:${depth}:${h}:${w}`, "aria-hidden": true }));
      }
      grid.append(row);
    }
    return grid;
  }

  cell(step, name, flat) {
    const tensor = this.lesson.tensors[name];
    const result = name === step.output;
    const hidden = result && this.hides(flat);
    const text = hidden ? "?" : shown(tensor.values[flat]);
    const short = hidden ? "?" : tensor.short[flat];
    return make("div", {
      class: `vx-cell ${short.length > 5 ? "long" : ""}`, role: "gridcell", "data-key": `${name}-${flat}`, "data-name": name, "data-flat": flat,
      tabindex: flat === (result ? this.flat : 0) ? 0 : -1,
      "aria-label": `${this.indexed(name, flat)} ${hidden ? this.say("hidden") : `= ${text}`}`,
      onpointerenter: () => this.over(name, flat), onfocus: () => this.enter(name, flat), onclick: () => this.press(name, flat),
      onkeydown: (event) => this.key(event, name, flat), ondblclick: () => this.edit(name, flat),
    }, make("span", { class: "vx-number" }, short));
  }

  hides(flat) {
    return this.predicting && !this.revealed.has(`${this.step}:${flat}`);
  }

  indexed(name, flat) {
    return `${name}[${places(flat, this.lesson.tensors[name].sizes).join(",")}]`;
  }

  find(name, flat) {
    return this.field.querySelector(`[data-key="${name}-${flat}"]`);
  }

  // Pointing

  over(name, flat) {
    if (this.pinned || this.predicting || this.timer || this.editing) return;
    if (name === this.step) this.go(flat);
    else this.light({ name, flat });
  }

  enter(name, flat) {
    if (name === this.step) this.go(flat);
    else if (!this.predicting) this.light({ name, flat });
  }

  leave() {
    if (!this.pinned && this.lesson.steps && !this.editing) this.light();
  }

  press(name, flat) {
    this.stop();
    if (name === this.step) {
      this.pinned = !(this.pinned && this.flat === flat);
      this.go(flat);
    } else if (this.hides(this.flat) && this.current().kind === "maximum") this.answerCell(name, flat);
  }

  /** Another element of the result. */
  go(flat) {
    this.flat = flat;
    for (const cell of this.field.querySelectorAll(`[data-name="${CSS.escape(this.step)}"]`)) cell.tabIndex = Number(cell.dataset.flat) === flat ? 0 : -1;
    this.root.querySelector(".vx-guess")?.replaceWith(this.guess(this.current()));
    this.light();
  }

  move(by) {
    const count = this.lesson.tensors[this.step].values.length;
    this.pinned = true;
    this.go((this.flat + by + count) % count);
  }

  key(event, name, flat) {
    const sizes = this.lesson.tensors[name].sizes;
    const steps = { ArrowLeft: [0, 0, -1], ArrowRight: [0, 0, 1], ArrowUp: [0, -1, 0], ArrowDown: [0, 1, 0], PageUp: [-1, 0, 0], PageDown: [1, 0, 0] };
    const by = steps[event.key];
    if (event.target.closest("input")) return;
    if (by) {
      event.preventDefault();
      const to = places(flat, sizes).map((at, axis) => Math.min(Math.max(at + by[axis], 0), sizes[axis] - 1));
      this.find(name, flatOf(to, sizes))?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (name === this.step || (this.predicting && this.current().kind === "maximum")) this.press(name, flat);
      else this.edit(name, flat);
    } else if (event.key === "Escape") {
      this.pinned = false;
      this.stop();
      this.light();
    }
  }

  /** Type another number into a tensor that is not computed. */
  edit(name, flat) {
    const tensor = this.lesson.tensors[name];
    if (!this.editable || !tensor.given || this.predicting) return;
    const cell = this.find(name, flat);
    const field = make("input", { type: "text", "aria-label": this.indexed(name, flat), value: String(tensor.values[flat]) });
    const end = (keep) => {
      if (!this.editing) return;
      this.editing = false;
      field.remove();
      const text = field.value.trim();
      if (!keep || text === String(tensor.values[flat])) return;
      this.typed = { ...this.typed, [name]: tensor.values.map((value, at) => (at === flat ? text : String(value))) };
      void this.choose({});
    };
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") end(false);
    });
    field.addEventListener("blur", () => end(true));
    this.editing = true;
    cell.append(field);
    field.select();
    field.focus();
  }

  // Stepping through

  walk() {
    const button = (key, name, act, pressed) => make("button", { type: "button", "data-key": key, onclick: act, "aria-pressed": pressed }, this.say(name));
    const playing = Boolean(this.timer);
    return make("div", { class: "vx-walk", role: "group", "aria-label": this.say("walk") },
      button("back", "walk.back", () => { this.stop(); this.move(-1); }),
      button("play", playing ? "walk.pause" : "walk.play", () => (this.timer ? this.stop() : this.play())),
      button("next", "walk.next", () => { this.stop(); this.move(1); }),
      button("predict", "predict", () => { this.stop(); this.predicting = !this.predicting; this.pinned = false; this.revealed.clear(); this.score = [0, 0]; this.draw(); }, String(this.predicting)),
      button("print", "print", () => window.print()),
      make("span", { class: "vx-hint" }, this.say(this.editable ? "hint.edit" : "hint")));
  }

  play() {
    this.timer = window.setInterval(() => this.move(1), PAUSE);
    this.draw();
  }

  stop() {
    if (!this.timer) return;
    window.clearInterval(this.timer);
    this.timer = 0;
    const button = this.root.querySelector('[data-key="play"]');
    if (button) button.textContent = this.say("walk.play");
  }

  // Predict, then reveal

  guess(step) {
    const place = this.indexed(step.output, this.flat);
    if (!this.predicting) return make("div", { class: "vx-guess", hidden: true });
    const score = make("span", { class: "vx-score" }, this.say("score", { right: this.score[0], all: this.score[1] }));
    if (!this.hides(this.flat)) return make("div", { class: "vx-guess" }, make("span", {}, this.say("guess.next")), score);
    const field = make("input", { type: "text", inputmode: "decimal", "data-key": "guess", autocomplete: "off" });
    return make("form", { class: "vx-guess", onsubmit: (event) => { event.preventDefault(); this.answer(field.value); } },
      make("label", {}, make("span", {}, this.say(step.kind === "maximum" ? "guess.maximum" : "guess.number", { place })), field),
      make("button", { type: "submit" }, this.say("guess.check")), make("button", { type: "button", onclick: () => this.reveal(null) }, this.say("guess.reveal")), score);
  }

  answer(text) {
    const wanted = finite(this.lesson.tensors[this.step].values[this.flat]);
    const clean = text.trim().replace("−", "-").replace(",", ".").toLowerCase().replace("∞", "inf");
    if (!clean) return;
    const parts = clean.split("/");
    const given = parts.length === 2 ? Number(parts[0]) / Number(parts[1]) : /^[+-]?(nan|inf|infinity)$/.test(clean) ? finite(clean.replace("+", "").replace("infinity", "inf")) : Number(clean);
    if (Number.isNaN(given) && clean !== "nan") return void this.reveal(false);
    const same = Object.is(given, wanted) || given === wanted || Math.abs(given - wanted) <= 0.005 * Math.max(1, Math.abs(wanted));
    this.reveal(Number.isNaN(wanted) ? Number.isNaN(given) : same);
  }

  answerCell(name, flat) {
    const { terms } = readsOf(this.lesson, this.current(), this.flat);
    if (!terms.some((term) => term.name === name && term.cell === flat)) return;
    this.reveal(terms.some((term) => term.name === name && term.cell === flat && term.share !== 0));
  }

  /** Show the element; `right` is null where nobody guessed. */
  reveal(right) {
    this.revealed.set(`${this.step}:${this.flat}`, right === null ? "" : right ? "guess.right" : "guess.wrong");
    if (right !== null) this.score = [this.score[0] + (right ? 1 : 0), this.score[1] + 1];
    this.draw();
    this.find(this.step, this.flat)?.focus({ preventScroll: true });
  }

  // What lights up

  light(source = null) {
    for (const cell of this.field.querySelectorAll(".vx-cell, .vx-ghost")) cell.classList.remove("in", "part", "winner", "tie", "here", "goes");
    for (const label of this.field.querySelectorAll(".vx-weight")) label.remove();
    this.arrows.replaceChildren();
    const step = this.current();
    if (source) return this.lightFrom(step, source);
    const reads = readsOf(this.lesson, step, this.flat);
    const here = this.find(step.output, this.flat);
    here.classList.add("here");
    const hidden = this.hides(this.flat);
    for (const box of Object.values(reads.boxes)) this.lightBox(box);
    const selects = Boolean(step.rows) && ["maximum", "gather", "scatter"].includes(step.kind);
    if (!hidden) for (const cell of reads.ties) this.find(reads.pooled.name, cell)?.classList.add("tie");
    for (const term of reads.terms) if (!(selects && (hidden || term.share === 0))) this.lightTerm(term, here, selects);
    if (!hidden && step.kind === "gather") for (const term of reads.terms) if (term.share !== 0) this.find(reads.pooled.name, term.cell)?.classList.add("winner");
    this.tell(step, reads, hidden);
  }

  lightBox(box) {
    for (const cell of box.cells) this.find(box.name, cell)?.classList.add("in");
    const [depths, heights, widths] = box.spans.map((span, axis) => range(span).concat(box.ghosts[axis]));
    for (const d of box.ghosts[0]) this.field.querySelector(`[data-ghost="${CSS.escape(`${box.name}:d${d}`)}"]`)?.classList.add("in");
    for (const d of depths) for (const h of heights) for (const w of widths) this.field.querySelector(`[data-ghost="${CSS.escape(`${box.name}:${d}:${h}:${w}`)}"]`)?.classList.add("in");
  }

  lightTerm(term, here, selects) {
    const cell = this.find(term.name, term.cell);
    if (!cell) return;
    cell.classList.add(selects ? "winner" : "part");
    const label = term.with ? `×${shown(this.lesson.tensors[term.with.name].values[term.with.cell])}` : selects ? "" : `×${fraction(term.share)}`;
    if (label && this.lesson.tensors[term.name].side !== "taps") cell.append(make("span", { class: "vx-weight" }, label));
    const other = term.with && this.find(term.with.name, term.with.cell);
    other?.classList.add("part");
    if (this.lesson.tensors[term.name].side !== "taps") this.arrow(cell, here, selects);
    if (other && this.lesson.tensors[term.with.name].side !== "taps") this.arrow(other, here, false);
  }

  /** Where an element of an operand goes: all results that it arrives in. */
  lightFrom(step, { name, flat }) {
    const cell = this.find(name, flat);
    cell?.classList.add("here");
    if (this.predicting) return;
    let count = 0;
    this.lesson.tensors[step.output].values.forEach((_, to) => {
      const { terms } = readsOf(this.lesson, step, to);
      const used = terms.some((term) => term.share !== 0 && ((term.name === name && term.cell === flat) || (term.with?.name === name && term.with.cell === flat)));
      if (!used) return;
      count += 1;
      const there = this.find(step.output, to);
      there.classList.add("goes");
      this.arrow(cell, there, false);
    });
    const place = this.indexed(name, flat);
    this.write([this.say(count === 0 ? "goes.nowhere" : count === 1 ? "goes.one" : "goes", { place, count, output: step.output })], `${place} = ${shown(this.lesson.tensors[name].values[flat])}`);
  }

  arrow(from, to, strong) {
    const frame = this.field.getBoundingClientRect();
    const [a, b] = [from, to].map((one) => one.getBoundingClientRect());
    const [x1, y1, x2, y2] = [a.left + a.width / 2 - frame.left, a.top + a.height / 2 - frame.top, b.left + b.width / 2 - frame.left, b.top + b.height / 2 - frame.top];
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
    const [sx, sy] = [x1 + ux * a.width * 0.45, y1 + uy * a.height * 0.45];
    const [ex, ey] = [x2 - ux * b.width * 0.62, y2 - uy * b.height * 0.62];
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M${sx} ${sy}L${ex} ${ey}M${ex - ux * 7 - uy * 4} ${ey - uy * 7 + ux * 4}L${ex} ${ey}L${ex - ux * 7 + uy * 4} ${ey - uy * 7 - ux * 4}`);
    path.setAttribute("class", strong ? "strong" : "");
    this.arrows.append(path);
  }

  // What is said

  telling() {
    this.equation = make("p", { class: "vx-equation" });
    this.sentences = make("p", { class: "vx-sentences" });
    return make("section", { class: "vx-telling", "aria-live": "polite", "aria-label": this.say("telling") }, this.equation, this.sentences);
  }

  write(sentences, equation) {
    this.equation.textContent = equation;
    this.sentences.textContent = sentences.filter(Boolean).join(" ");
  }

  tell(step, reads, hidden) {
    const place = this.indexed(step.output, this.flat);
    const value = shown(this.lesson.tensors[step.output].values[this.flat]);
    const verdict = this.revealed.get(`${this.step}:${this.flat}`);
    if (hidden) return this.write([this.say("hidden.telling", { place })], `${place} = ?`);
    const counts = { place, count: reads.terms.length, value };
    this.write([verdict && this.say(verdict), this.sentence(step, reads, counts), this.paddingSentence(step, reads), this.tieSentence(reads)], `${place} = ${this.arithmetic(step, reads, value)}`);
  }

  /** Of what the value is made, as it is computed by hand. */
  arithmetic(step, { terms }, value) {
    const of = (term) => shown(this.lesson.tensors[term.name].values[term.cell]);
    const around = (text) => (text.startsWith("−") ? `(${text})` : text);
    if (step.kind === "maximum") return `max(${terms.map(of).join(", ")}) = ${value}`;
    const arriving = terms.filter((term) => term.share !== 0);
    if (arriving.length === 0) return value;
    if (step.kind === "gather") return `${this.indexed(arriving[0].name, arriving[0].cell)} = ${value}`;
    if (step.pairs) return `${terms.map((term) => `${around(of(term))}·${around(shown(this.lesson.tensors[term.with.name].values[term.with.cell]))}`).join(" + ")} = ${value}`;
    if (step.kind === "mean") return `(${arriving.map((term) => around(of(term))).join(" + ")}) ÷ ${shown(1 / arriving[0].share)} = ${value}`;
    if (step.kind === "spread") return `${arriving.map((term) => `${around(of(term))} ÷ ${shown(1 / term.share)}`).join(" + ")} = ${value}`;
    const names = arriving.map((term) => this.indexed(term.name, term.cell)).join(" + ");
    return [names, ...(arriving.length > 1 ? [arriving.map((term) => around(of(term))).join(" + ")] : []), value].join(" = ");
  }

  sentence(step, { terms, pooled }, fill) {
    const arriving = terms.filter((term) => term.share !== 0);
    if (terms.length === 0) return this.say("tell.none", fill);
    if (step.rows && ["maximum", "gather", "scatter"].includes(step.kind) && arriving.length === 0) return this.say(`tell.${step.kind}.none`, fill);
    const winner = step.kind === "maximum" || step.kind === "gather" ? this.indexed(pooled.name, arriving[0].cell) : "";
    return this.say(`tell.${step.kind}`, { ...fill, count: arriving.length, winner });
  }

  paddingSentence(step, { boxes }) {
    const box = Object.values(boxes).find((one) => this.lesson.tensors[one.name].side === "cells" && one.ghosts.some((axis) => axis.length > 0));
    if (!box || step.kind === "scatter") return "";
    const all = box.spans.reduce((count, span, axis) => count * (range(span).length + box.ghosts[axis].length), 1);
    return this.say("tell.padding", { count: all - box.cells.length });
  }

  tieSentence({ ties, pooled }) {
    return ties.length > 1 ? this.say("tell.ties", { count: ties.length, first: this.indexed(pooled.name, ties[0]) }) : "";
  }

  rules(step) {
    const { laws } = this.source.about[step.op];
    return make("section", { class: "vx-rules" }, make("h3", {}, this.say("rules")), make("ul", {}, ...laws.map((law) => make("li", {}, this.told(law)))),
      make("p", { class: "vx-legend" }, ...["in", "part", "winner", "tie", "ghost"].map((name) => make("span", { class: `vx-key ${name}` }, this.say(`legend.${name}`)))));
  }
}
