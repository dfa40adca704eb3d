// SPDX-License-Identifier: Apache-2.0
/** The left panel: blocks to add, pages, and the page as an outline. */

import { useEffect, useMemo, useState } from "react";
import { api, type PageEntry } from "../core/api";
import { connect, disconnect } from "../core/commands";
import { findBlock, inputPins, wiresOf } from "../core/document";
import type { Op, Page } from "../core/model";
import { compatiblePins, readingOrder } from "../core/pins";
import { search } from "../core/search";
import { addOp, editPage, localAnalysis } from "../state/edits";
import { addKept, GROUP } from "../state/library";
import { attempt, goUp, openPage, enterBlock } from "../state/pages";
import { goToBlock } from "../state/perform";
import { activeTab, setSettings, shownPage, studio, update, useStudio, type Tab } from "../state/store";
import { LANGUAGES, type Key } from "../core/words";
import { useWords, type Say } from "../state/words";
import { Icon } from "../ui/Icon";

const KINDS = ["blocks", "pages", "outline"] as const;

export function Left({ tab }: { tab: Tab }) {
  const words = useWords();
  const kind = useStudio((state) => state.leftTab);
  return (
    <aside className="panel left" aria-label={words("action.toggleLeft")}>
      <div className="panel-tabs">
        <div className="tab-list" role="tablist">
          {KINDS.map((one) => (
            <button key={one} type="button" role="tab" aria-selected={kind === one} onClick={() => update({ leftTab: one })}>
              {words(`left.${one}`)}
            </button>
          ))}
        </div>
        <span className="grow" />
        <button type="button" className="icon-only quiet" onClick={() => setSettings({ left: false })} aria-label={words("action.toggleLeft")}>
          <Icon name="left" />
        </button>
      </div>
      {kind === "blocks" && <Palette />}
      {kind === "pages" && <Pages tab={tab} />}
      {kind === "outline" && <Outline tab={tab} />}
    </aside>
  );
}

/** The 3-D family comes first and stands alone; everything else as the catalogue groups it, or by its package. */
function groupOf(op: Op): string {
  if (op.package || op.group === GROUP) return op.package || GROUP;
  return op.family ? "volume" : op.group;
}

/** The 3-D family stands first, then the pages of the library and the packages of this installation. */
function rank(group: string): number {
  return group === "volume" ? 3 : group === GROUP ? 2 : group.includes(" ") ? 1 : 0;
}

function put(op: Op): void {
  if (op.group === GROUP) void addKept(op, null);
  else addOp(op, null);
}

function groupTitle(words: Say, group: string): string {
  const key = `ops.${group}`;
  return key in LANGUAGES.en ? words(key as Key) : group;
}

function Palette() {
  const words = useWords();
  const ops = useStudio((state) => state.ops);
  const [query, setQuery] = useState("");
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState("");
  const searching = query.trim() !== "";
  const library = useStudio((state) => state.library);
  const found = useMemo(() => search([...library, ...ops], query), [library, ops, query]);
  const groups = useMemo(() => {
    const all = new Map<string, Op[]>();
    for (const op of found) all.set(groupOf(op), [...(all.get(groupOf(op)) ?? []), op]);
    return [...all].sort(([a], [b]) => rank(b) - rank(a));
  }, [found]);
  const toggle = (group: string) => {
    const next = new Set(closed);
    if (!next.delete(group)) next.add(group);
    setClosed(next);
  };
  const isOpen = (group: string) => searching || !closed.has(group);
  const entries = groups.flatMap(([group, members]) => [`# ${group}`, ...(isOpen(group) ? members.map((op) => op.name) : [])]);
  const current = entries.includes(at) ? at : entries[0];
  /** One stop of Tab for all of them; arrows go on from there. */
  const stop = (id: string) => ({ tabIndex: id === current ? 0 : -1, onFocus: () => setAt(id) });
  return (
    <div className="palette">
      <div className="field">
        <input
          type="search"
          placeholder={words("palette.search")}
          aria-label={words("palette.search")}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && found[0]) put(found[0]);
          }}
        />
      </div>
      <div className="scroll" onKeyDown={stepThrough}>
        {found.length === 0 && <p className="none">{words("palette.none", { query })}</p>}
        {groups.map(([group, members]) => (
          <section key={group}>
            <h3>
              <button type="button" aria-expanded={isOpen(group)} onClick={() => toggle(group)} {...stop(`# ${group}`)}>
                <Icon name="chevron" /> {groupTitle(words, group)}
                <span className="count">{members.length}</span>
              </button>
            </h3>
            {isOpen(group) && (
              <ul>
                {members.map((op) => (
                  <li key={op.name}>
                    <button
                      type="button"
                      className="op-entry"
                      draggable
                      {...stop(op.name)}
                      title={op.summary}
                      onDragStart={(event) => event.dataTransfer.setData(`application/x-voxgrad-${op.group === GROUP ? "page" : "op"}`, op.name)}
                      onClick={() => put(op)}
                    >
                      {op.name}
                    </button>
                  </li>
                ))}
              </ul>
            )}
          </section>
        ))}
      </div>
    </div>
  );
}

const STEPS: { readonly [key: string]: (at: number, last: number) => number } = {
  ArrowDown: (at, last) => Math.min(at + 1, last),
  ArrowUp: (at) => Math.max(at - 1, 0),
  PageDown: (at, last) => Math.min(at + 12, last),
  PageUp: (at) => Math.max(at - 12, 0),
  Home: () => 0,
  End: (_at, last) => last,
};

/** Arrows go from entry to entry. */
function stepThrough(event: React.KeyboardEvent<HTMLElement>): void {
  const step = STEPS[event.key];
  if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
  const all = [...event.currentTarget.querySelectorAll("button")];
  all[step(all.indexOf(document.activeElement as HTMLButtonElement), all.length - 1)]?.focus();
  event.preventDefault();
  event.stopPropagation();
}

function Pages({ tab }: { tab: Tab }) {
  const words = useWords();
  const [pages, setPages] = useState<readonly PageEntry[]>([]);
  useEffect(() => {
    void attempt(() => api.pages()).then((found) => found && setPages(found.pages));
  }, [tab.id, tab.revision]);
  return (
    <div className="scroll tree">
      <h3>{words("inspector.page")}</h3>
      <PageTree name={tab.history.now.name} page={tab.history.now} depth={0} tab={tab} />
      <h3>{words("home.recent")}</h3>
      <ul>
        {pages.map((page) => (
          <li key={page.id}>
            <button type="button" className={`op-entry ${page.id === tab.id ? "current" : ""}`} onClick={() => void openPage(page.id)}>
              <Icon name="file" /> {page.name}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function PageTree({ name, page, depth, tab }: { name: string; page: Page; depth: number; tab: Tab }) {
  const current = tab.trail.length === depth && (depth === 0 || tab.trail[depth - 1]?.page === name);
  return (
    <ul>
      <li>
        <button
          type="button"
          className={`op-entry ${current ? "current" : ""}`}
          onClick={() => {
            if (tab.trail.length > depth) goUp(tab.trail.length - depth);
          }}
        >
          <Icon name="file" /> {name} <span className="count">{page.blocks.length}</span>
        </button>
        {page.blocks
          .filter((block) => block.page !== undefined && page.pages?.[block.page])
          .map((block) => (
            <ul key={block.name}>
              <li>
                {tab.trail[depth]?.block === block.name ? (
                  <PageTree name={block.page!} page={page.pages![block.page!]!} depth={depth + 1} tab={tab} />
                ) : (
                  <button type="button" className="op-entry" onClick={() => enterBlock(block.name)}>
                    <Icon name="chevron" /> {block.name}
                  </button>
                )}
              </li>
            </ul>
          ))}
      </li>
    </ul>
  );
}

/** The page as a tree that can be read and edited without the drawing: block, inputs, sources. */
function Outline({ tab }: { tab: Tab }) {
  const words = useWords();
  const page = shownPage(tab);
  const catalogue = useStudio((state) => state.catalogue);
  return (
    <ul className="scroll outline">
      {readingOrder(page).map((block) => (
        <li key={block.name}>
          <button type="button" className={`op-entry ${tab.selection.has(block.name) ? "current" : ""}`} onClick={() => goToBlock(block.name)}>
            {block.name} <span className="count">{block.op ?? block.page}</span>
          </button>
          <ul>
            {inputPins(page, block, catalogue).map((pin) => {
              const wires = wiresOf(page).filter((wire) => wire.to === block.name && wire.pin === pin.name);
              return (
                <li key={pin.name}>
                  <label>
                    <span>{pin.name}</span>
                    <select
                      value={wires[0] ? `${wires[0].from}.${wires[0].output}` : ""}
                      onChange={(event) => rewire(block.name, pin.name, pin.many, event.target.value)}
                    >
                      <option value="">{words("pin.empty")}</option>
                      {sourcesFor(tab, block.name, pin.name).map((path) => (
                        <option key={path} value={path}>
                          {path}
                        </option>
                      ))}
                    </select>
                  </label>
                </li>
              );
            })}
          </ul>
        </li>
      ))}
    </ul>
  );
}

function sourcesFor(tab: Tab, block: string, pin: string): string[] {
  const places = compatiblePins(shownPage(tab), studio().catalogue, localAnalysis(tab), { block, pin, side: "input" });
  const here = findBlock(shownPage(tab), block)?.inputs?.[pin] ?? [];
  const wired = here.flatMap((source) => ("from" in source ? [source.from] : []));
  return [...new Set([...wired, ...places.map((place) => `${place.block}.${place.pin}`)])];
}

function rewire(block: string, pin: string, many: boolean, path: string): void {
  const tab = activeTab();
  if (!tab) return;
  editPage("wire", (page) => {
    const old = wiresOf(page).filter((wire) => wire.to === block && wire.pin === pin);
    if (path === "") return disconnect(page, old.toReversed());
    return connect(page, path, block, pin, many);
  });
}
