// SPDX-License-Identifier: Apache-2.0
/** A tour of the real screen: one part after the other is pointed at and named. Nothing is blocked meanwhile. */

import { useEffect, useRef, useState } from "react";
import { openCard } from "../state/pages";
import { activeTab, setSettings, update, useStudio } from "../state/store";
import { useWords } from "../state/words";

const STOPS = [
  ["palette", ".panel.left"],
  ["page", ".canvas"],
  ["wrong", ".block.wrong .block-problem"],
  ["run", ".run-controls"],
  ["values", ".block-values"],
  ["inspector", ".panel.right"],
  ["below", ".panel.bottom"],
  ["menus", ".menu-bar"],
] as const;

const WIDTH = 320;
const CARD = "max_pool3d_grad_grad_mistake";

export async function startTour(): Promise<void> {
  if (activeTab() === null) await openCard(CARD);
  setSettings({ left: true, right: true, bottom: true, toured: true });
  update({ tour: 0, viewer: null });
}

/** The next stop, or the one before, whose part is on the screen now; null behind the last. */
function stopFrom(at: number, by: 1 | -1): number | null {
  for (let to = at + by; to >= 0 && to < STOPS.length; to += by) if (document.querySelector(STOPS[to]![1])) return to;
  return null;
}

/** Where the part of this stop is on the screen; null where it is not there now. */
function useSpot(selector: string): DOMRect | null {
  const [spot, setSpot] = useState<DOMRect | null>(null);
  useEffect(() => {
    const look = () => setSpot(document.querySelector(selector)?.getBoundingClientRect() ?? null);
    look();
    const timer = window.setInterval(look, 250);
    return () => window.clearInterval(timer);
  }, [selector]);
  return spot;
}

export function Tour() {
  const at = useStudio((state) => state.tour);
  return at === null ? null : <Stop at={at} />;
}

function Stop({ at }: { at: number }) {
  const words = useWords();
  const [name, selector] = STOPS[at]!;
  const spot = useSpot(selector);
  const next = useRef<HTMLButtonElement>(null);
  useEffect(() => next.current?.focus({ preventScroll: true }), [at]);
  const onward = stopFrom(at, 1);
  const back = stopFrom(at, -1);
  const go = (to: number | null) => update({ tour: to });
  const left = spot ? Math.min(Math.max(8, spot.right + 12 + WIDTH < window.innerWidth ? spot.right + 12 : spot.left - WIDTH - 12), window.innerWidth - WIDTH - 8) : 40;
  const top = spot ? Math.min(Math.max(60, spot.top), window.innerHeight - 190) : 80;
  return (
    <>
      {spot && <div className="tour-spot" style={{ left: spot.left, top: spot.top, width: spot.width, height: spot.height }} />}
      <section className="tour-card" role="dialog" aria-label={words("tour.title")} style={{ left, top, width: WIDTH }} onKeyDown={(event) => event.key === "Escape" && go(null)}>
        <h2>{words(`tour.${name}.title`)}</h2>
        <p>{words(`tour.${name}`)}</p>
        <footer>
          <span>
            {at + 1} / {STOPS.length}
          </span>
          <span className="grow" />
          {onward !== null && (
            <button type="button" className="quiet" onClick={() => go(null)}>
              {words("tour.end")}
            </button>
          )}
          {back !== null && (
            <button type="button" className="quiet" onClick={() => go(back)}>
              {words("tour.back")}
            </button>
          )}
          <button ref={next} type="button" className="primary" onClick={() => go(stopFrom(at, 1))}>
            {words(onward !== null ? "tour.next" : "tour.done")}
          </button>
        </footer>
      </section>
    </>
  );
}
