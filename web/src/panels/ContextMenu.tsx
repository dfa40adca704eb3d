// SPDX-License-Identifier: Apache-2.0
/** The menus of the bar and of the right button: what the keyboard can do. */

import { useEffect, useRef } from "react";
import { ACTIONS, type Action, type ActionId } from "../core/actions";
import { isPossible, perform } from "../state/perform";
import { update, useStudio, type MenuPlace } from "../state/store";
import { useWords } from "../state/words";
import { Keys } from "../ui/Keys";
import { MENUS, openMenu } from "./MenuBar";

const ENTRIES: { readonly [on in "block" | "page"]: readonly ActionId[] } = {
  block: ["open", "viewer", "run-to", "gradient", "check", "wire", "rename", "display", "copy", "cut", "duplicate", "delete", "bypass", "mute", "page-from", "unfold", "keep", "group", "ungroup", "collapse", "fold-gradients", "tidy"],
  page: ["add", "display", "paste", "select-all", "run", "tidy", "fold-gradients", "fit", "panel", "find", "undo", "redo", "export-python", "export-svg", "export-png", "export-json", "keep", "compare", "help"],
};

function actionsOf(on: MenuPlace): readonly Action[] {
  if (on !== "block" && on !== "page") return ACTIONS.filter((action) => action.group === on && isPossible(action.id));
  return ENTRIES[on].flatMap((id) => ACTIONS.find((action) => action.id === id && isPossible(id)) ?? []);
}

/** The menu beside this one in the bar. */
function beside(on: MenuPlace, by: number): void {
  const at = MENUS.findIndex((one) => one === on);
  if (at >= 0) openMenu(MENUS[(at + by + MENUS.length) % MENUS.length]!);
}

export function ContextMenu() {
  const menu = useStudio((state) => state.menu);
  const words = useWords();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => list.current?.querySelector("button")?.focus(), [menu]);
  if (!menu) return null;
  const close = () => update({ menu: null });
  const actions = actionsOf(menu.on);
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
          if (event.key === "ArrowRight") beside(menu.on, 1);
          if (event.key === "ArrowLeft") beside(menu.on, -1);
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
