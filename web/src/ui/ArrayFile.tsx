// SPDX-License-Identifier: Apache-2.0
/** A button that asks for a file with an array in it. */

import { useRef } from "react";
import { ARRAYS } from "../core/files";

export function ArrayFile({ label, name = label, take }: { label: string; name?: string; take: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" onClick={() => input.current?.click()}>
        {label}
      </button>
      <input
        ref={input}
        type="file"
        className="sr"
        tabIndex={-1}
        accept={ARRAYS.join(",")}
        aria-label={name}
        onChange={(event) => {
          const [chosen] = event.target.files ?? [];
          event.target.value = "";
          if (chosen) take(chosen);
        }}
      />
    </>
  );
}
