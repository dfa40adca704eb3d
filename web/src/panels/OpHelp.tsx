// SPDX-License-Identifier: Apache-2.0
/** What the reference says of an op: its formula, an example with what it gives, its gradient, its edges. */

import { useEffect, useMemo, useState } from "react";
import { api } from "../core/api";
import type { Op } from "../core/model";
import type { OpHelp as Help } from "../generated/api";
import { openExample, openLearn } from "../state/pages";
import { useStudio } from "../state/store";
import { useWords } from "../state/words";

const known = new Map<string, Help>();

export function OpHelp({ op }: { op: Op }) {
  const words = useWords();
  const help = useHelp(op.name);
  return (
    <details className="docs" open>
      <summary>{words("inspector.docs", { op: op.name })}</summary>
      <p>{op.summary}</p>
      {op.family && (
        <button type="button" onClick={() => openLearn(op.name)}>
          {words("inspector.learn")}
        </button>
      )}
      {help?.deprecated && <p className="prose">{words("inspector.deprecated", { why: help.deprecated })}</p>}
      {help?.formula && <pre tabIndex={0}>{help.formula.replaceAll("; ", "\n")}</pre>}
      {op.doc && <p className="prose">{op.doc}</p>}
      {op.laws.length > 0 && <Facts title={words("inspector.laws")} rows={op.laws.map((law) => [law.name, law.text])} />}
      {help && <Example op={op.name} help={help} />}
      {op.example && <pre tabIndex={0}>{op.example}</pre>}
      {help?.gradient_svg && (
        <>
          <h4>{words("inspector.gradient")}</h4>
          <Picture svg={help.gradient_svg} label={words("inspector.gradient")} />
          <p className="prose">{words("inspector.madeOf", { ops: help.slopes.join(", ") })}</p>
        </>
      )}
      {help && <Facts title={words("inspector.forms")} rows={Object.entries(help.forms).map(([name, forms]) => [name, forms.join("   ")])} />}
      {help && help.differences.length > 0 && (
        <>
          <h4>{words("inspector.original")}</h4>
          <ul>
            {help.differences.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </>
      )}
    </details>
  );
}

function Example({ op, help }: { op: string; help: Help }) {
  const words = useWords();
  if (!help.code) return <Picture svg={help.block_svg} label={op} />;
  return (
    <>
      <h4>{words("inspector.example")}</h4>
      <Picture svg={help.example_svg} label={words("inspector.example")} />
      <pre tabIndex={0}>{help.code}</pre>
      <dl className="laws">
        {help.results.map((result) => (
          <div key={result.path}>
            <dt>
              {result.path} {result.spec}
            </dt>
            <dd>{result.text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => void openExample(op)}>
        {words("inspector.openExample")}
      </button>
    </>
  );
}

function Facts({ title, rows }: { title: string; rows: readonly (readonly [string, string])[] }) {
  if (rows.length === 0) return null;
  return (
    <>
      <h4>{title}</h4>
      <dl className="laws">
        {rows.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

/** Pictures are shown as pictures, never as part of this page. */
function Picture({ svg, label }: { svg: string; label: string }) {
  const url = useMemo(() => URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })), [svg]);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  return <img className="op-picture" src={url} alt={label} />;
}

/** The help of an op; asked once for each theme, and kept. */
function useHelp(name: string): Help | null {
  const theme = useStudio((state) => state.settings.theme);
  const key = `${name} ${theme}`;
  const [help, setHelp] = useState<Help | null>(known.get(key) ?? null);
  useEffect(() => {
    let wanted = true;
    setHelp(known.get(key) ?? null);
    if (!known.has(key)) {
      api.opHelp(name, theme).then(
        (found) => {
          known.set(key, found);
          if (wanted) setHelp(found);
        },
        () => undefined, // The declaration alone is shown then.
      );
    }
    return () => {
      wanted = false;
    };
  }, [key, name, theme]);
  return help;
}
