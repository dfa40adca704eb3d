// SPDX-License-Identifier: Apache-2.0
/** The menu under the right button: what the keyboard can do with a block or with the page. */

import { useEffect, useRef } from "react";
import { ACTIONS, type ActionId } from "../core/actions";
import { isPossible, perform } from "../state/perform";
import { update, useStudio } from "../state/store";
import { useWords } from "../state/words";
import { Keys } from "../ui/Keys";

const ENTRIES: { readonly [on in "block" | "page"]: readonly ActionId[] } = {
  block: ["open", "viewer", "run-to", "gradient", "check", "wire", "rename", "copy", "cut", "duplicate", "delete", "page-from", "unfold", "tidy"],
  page: ["add", "paste", "select-all", "run", "tidy", "fit", "find", "undo", "redo", "export-python", "export-svg", "export-png", "export-json", "compare", "help"],
};

export function ContextMenu() {
  const menu = useStudio((state) => state.menu);
  const words = useWords();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => list.current?.querySelector("button")?.focus(), [menu]);
  if (!menu) return null;
  const close = () => update({ menu: null });
  const actions = ENTRIES[menu.on].flatMap((id) => ACTIONS.find((action) => action.id === id && isPossible(id)) ?? []);
  const step = (by: number) => {
    const all = [...(list.current?.querySelectorAll("button") ?? [])];
    all[(all.indexOf(document.activeElement as HTMLButtonElement) + by + all.length) % all.length]?.focus();
  };
  return (
    <>
      <div className="shade" onMouseDown={close} onContextMenu={(event) => event.preventDefault()} />
      <div
        ref={list}
        className="context-menu"
        role="menu"
        aria-label={words("menu.title")}
        style={{ left: Math.min(menu.at[0], window.innerWidth - 270), top: Math.max(4, Math.min(menu.at[1], window.innerHeight - 30 * actions.length - 16)) }}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Escape" || event.key === "Tab") close();
          if (event.key === "ArrowDown") step(1);
          if (event.key === "ArrowUp") step(-1);
        }}
      >
        {actions.map((action) => (
          <button
            key={action.id}
            type="button"
            role="menuitem"
            className="quiet"
            onClick={() => {
              close();
              window.setTimeout(() => perform(action.id), 0);
            }}
          >
            {words(action.title)} <span className="grow" /> {action.keys[0] && <Keys keys={action.keys[0]} />}
          </button>
        ))}
      </div>
    </>
  );
}
