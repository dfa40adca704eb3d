// SPDX-License-Identifier: Apache-2.0
/** Keys as they are printed on the keyboard. */

const SIGNS: { readonly [key: string]: string } = { Enter: "↵", Up: "↑", Down: "↓", Left: "←", Right: "→", Backspace: "⌫", Delete: "Del" };

export function Keys({ keys }: { keys: string }) {
  const parts = keys.split(/[+ ]/).map((key) => SIGNS[key] ?? key);
  return (
    <span className="keys">
      {parts.map((part, index) => (
        <kbd key={index}>{part}</kbd>
      ))}
    </span>
  );
}
