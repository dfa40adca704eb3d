// SPDX-License-Identifier: Apache-2.0
/** A field and a list under it: type, arrows, Enter. */

import { useEffect, useId, useRef, useState, type ReactNode } from "react";

export interface FinderProps<T> {
  readonly label: string;
  readonly placeholder: string;
  readonly find: (query: string) => readonly T[];
  readonly keyOf: (entry: T) => string;
  readonly render: (entry: T) => ReactNode;
  readonly onPick: (entry: T) => void;
  readonly onClose: () => void;
  readonly none: (query: string) => string;
}

export function Finder<T>({ label, placeholder, find, keyOf, render, onPick, onClose, none }: FinderProps<T>) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  const entries = find(query);
  const current = Math.min(at, entries.length - 1);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [current, query]);
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(current + 1, entries.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(current - 1, 0));
    else if (event.key === "Enter" && entries[current] !== undefined) onPick(entries[current]);
    else if (event.key === "Escape") onClose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="finder">
      <input
        autoFocus
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={entries[current] === undefined ? undefined : `${id}-${current}`}
        placeholder={placeholder}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul ref={list} id={`${id}-list`} role="listbox" aria-label={label}>
        {entries.map((entry, index) => (
          <li
            key={keyOf(entry)}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === current}
            onMouseMove={() => setAt(index)}
            onClick={() => onPick(entry)}
          >
            {render(entry)}
          </li>
        ))}
      </ul>
      {entries.length === 0 && <p className="none">{none(query)}</p>}
    </div>
  );
}
