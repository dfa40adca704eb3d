// SPDX-License-Identifier: Apache-2.0
/** An op on a small grid. What is shown, and its words, are those of the pages that `voxgrad ops OP --explain` writes. */

import { useEffect, useRef } from "react";
import { explain, FIRST, unpack, type Pack, type Source, type View } from "../../../src/voxgrad/formats/explainer/view.js";
import "../../../src/voxgrad/formats/explainer/view.css";
import texts from "../../../src/voxgrad/formats/explainer/words.json";
import { api } from "../core/api";
import { attempt, openLearn, show } from "../state/pages";
import { studio, useStudio } from "../state/store";
import { useWords } from "../state/words";

type Asked = readonly [places: readonly number[], typed: { readonly [tensor: string]: readonly string[] }];

export default function Learn({ op }: { op: string }) {
  const words = useWords();
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<View | null>(null);
  const asked = useRef<Asked>([FIRST, {}]);
  const language = useStudio((state) => state.settings.language);
  const ops = useStudio((state) => state.ops);
  useEffect(() => {
    let open = true;
    asked.current = [FIRST, {}];
    void attempt(async () => {
      const { pack } = await api.lesson(op, FIRST, {});
      if (open && place.current) view.current = explain(place.current, { source: sourceOf(pack as unknown as Pack, op, asked), words: texts, language: studio().settings.language, editable: true });
    });
    return () => {
      open = false;
      view.current?.close();
      view.current = null;
    };
  }, [op]);
  useEffect(() => view.current?.language(language), [language]);
  const openPage = async () => {
    const page = await attempt(() => api.openLesson(op, ...asked.current));
    if (page) show(page);
  };
  return (
    <main className="learn">
      <header className="learn-head">
        <h1>{words("learn.title", { op })}</h1>
        <button type="button" onClick={() => void openPage()}>
          {words("learn.open")}
        </button>
        <nav className="lessons" aria-label={words("home.learn")}>
          {ops.filter((one) => one.family).map((one) => (
            <button key={one.name} type="button" className="quiet" aria-current={one.name === op ? "page" : undefined} onClick={() => openLearn(one.name)}>
              {one.name}
            </button>
          ))}
        </nav>
      </header>
      <div ref={place} />
    </main>
  );
}

/** Lessons that the server computes when they are asked for. */
function sourceOf(pack: Pack, op: string, asked: { current: Asked }): Source {
  return {
    ...pack,
    op,
    lesson: async (places, typed) => {
      const { pack: found } = await api.lesson(op, places, typed);
      asked.current = [places, typed];
      return unpack(found as unknown as Pack, (found as unknown as Pack).states[0]);
    },
  };
}
