// SPDX-License-Identifier: Apache-2.0
/** The menu bar: every action of the table, with its keys. */

import { update, useStudio, type MenuPlace } from "../state/store";
import { useWords } from "../state/words";

export const MENUS = ["file", "edit", "view", "run", "see"] as const satisfies readonly MenuPlace[];

/** Open a menu under its button. */
export function openMenu(on: (typeof MENUS)[number]): void {
  const box = document.querySelector(`.menu-bar [data-menu="${on}"]`)?.getBoundingClientRect();
  if (box) update({ menu: { at: [box.left, box.bottom + 2], on } });
}

export function MenuBar() {
  const words = useWords();
  const open = useStudio((state) => state.menu?.on);
  return (
    <nav className="menu-bar" aria-label={words("menu.bar")}>
      {MENUS.map((on) => (
        <button key={on} type="button" className="quiet" data-menu={on} aria-haspopup="menu" aria-expanded={open === on} onClick={() => openMenu(on)}>
          {words(`group.${on}`)}
        </button>
      ))}
    </nav>
  );
}
