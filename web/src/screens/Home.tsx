// SPDX-License-Identifier: Apache-2.0
/** The first screen: examples, pages, files. */

import { useEffect, useMemo, useState } from "react";
import { api, type Card, type PageEntry } from "../core/api";
import { attempt, newPage, openCard, openLearn, openPage } from "../state/pages";
import { openFileDialog, perform } from "../state/perform";
import { setSettings, useStudio } from "../state/store";
import { useTold } from "../state/told";
import { useWords } from "../state/words";
import { Icon } from "../ui/Icon";

export function Home() {
  const words = useWords();
  const online = useStudio((state) => state.online);
  const ops = useStudio((state) => state.ops);
  const toured = useStudio((state) => state.settings.toured);
  const [cards, setCards] = useState<readonly Card[] | null>(null);
  const [pages, setPages] = useState<readonly PageEntry[] | null>(null);
  const load = () => {
    void attempt(() => api.gallery()).then((found) => found && setCards(found.cards));
    void attempt(() => api.pages()).then((found) => found && setPages(found.pages));
  };
  useEffect(load, [online]);
  const remove = async (id: string) => {
    await attempt(() => api.deletePage(id));
    load();
  };
  return (
    <main className="home">
      <header className="home-head">
        <h1>{words("home.title")}</h1>
        <div className="home-actions">
          <button type="button" className="primary" onClick={() => void newPage()}>
            <Icon name="plus" /> {words("home.new")}
          </button>
          <button type="button" onClick={openFileDialog}>
            <Icon name="file" /> {words("home.open")}
          </button>
          {toured && (
            <button type="button" onClick={() => perform("tour")}>
              <Icon name="play" /> {words("action.tour")}
            </button>
          )}
          <span className="hint">{words("home.drop")}</span>
        </div>
      </header>
      {!toured && (
        <aside className="welcome" aria-label={words("tour.title")}>
          <p>{words("tour.welcome")}</p>
          <button type="button" className="primary" onClick={() => perform("tour")}>
            <Icon name="play" /> {words("action.tour")}
          </button>
          <button type="button" className="quiet" onClick={() => setSettings({ toured: true })}>
            {words("tour.later")}
          </button>
        </aside>
      )}
      <section aria-label={words("home.learn")}>
        <h2>{words("home.learn")}</h2>
        <ul className="lessons">
          {ops.filter((op) => op.family).map((op) => (
            <li key={op.name}>
              <button type="button" onClick={() => openLearn(op.name)}>
                {op.name}
              </button>
            </li>
          ))}
        </ul>
      </section>
      <section aria-label={words("home.gallery")}>
        <h2>{words("home.gallery")}</h2>
        {!cards && <p className="none">{words("home.loading")}</p>}
        <ul className="cards">{cards?.map((card) => <GalleryCard key={card.id} card={card} />)}</ul>
      </section>
      <section aria-label={words("home.recent")}>
        <h2>{words("home.recent")}</h2>
        {pages?.length === 0 && <p className="none">{words("home.none")}</p>}
        <ul className="recent">
          {pages?.map((page) => (
            <li key={page.id}>
              <button type="button" className="row-main" disabled={Boolean(page.error)} onClick={() => void openPage(page.id)}>
                <Icon name="file" />
                <strong>{page.name}</strong>
                {page.has_draft && <span className="badge">{words("home.draft")}</span>}
                {page.error && <span className="badge bad">{page.error}</span>}
                <span className="grow" />
                <time>{new Date(page.modified * 1000).toLocaleString()}</time>
              </button>
              <button type="button" className="icon-only quiet" onClick={() => void remove(page.id)} aria-label={`${words("home.delete")}: ${page.name}`} title={words("home.delete")}>
                <Icon name="trash" />
              </button>
            </li>
          ))}
        </ul>
      </section>
    </main>
  );
}

/** Pictures are shown as pictures, never as part of this page. */
function GalleryCard({ card }: { card: Card }) {
  const picture = useMemo(() => (card.picture_svg ? URL.createObjectURL(new Blob([card.picture_svg], { type: "image/svg+xml" })) : ""), [card]);
  useEffect(() => () => URL.revokeObjectURL(picture), [picture]);
  const tell = useTold();
  return (
    <li>
      <button type="button" className="card" onClick={() => void openCard(card.id)}>
        <span className="picture">{picture && <img src={picture} alt="" />}</span>
        <strong>{tell(card.title)}</strong>
        <span>{tell(card.summary)}</span>
      </button>
    </li>
  );
}
