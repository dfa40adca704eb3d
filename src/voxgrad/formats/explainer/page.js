// SPDX-License-Identifier: Apache-2.0
// A page of its own: the language and the theme are the reader's until a button changes them.
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const pack = read("lessons");
const words = read("words");
const root = document.documentElement;
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let language = navigator.language.startsWith("ko") ? "ko" : "en";
const shownView = explain(document.getElementById("explain"), { source: fromPack(pack), words, language });

function dress() {
  root.lang = language;
  const say = (key) => words[language][key].replace("{op}", pack.op);
  document.title = say("title");
  document.getElementById("title").textContent = say("title");
  document.getElementById("note").textContent = say("page.note");
  document.getElementById("language").textContent = say("page.language");
  document.getElementById("language").lang = language === "ko" ? "en" : "ko";
  document.getElementById("theme").textContent = say("page.theme");
}
root.dataset.theme = dark.matches ? "dark" : "light";
document.getElementById("theme").addEventListener("click", () => (root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"));
document.getElementById("language").addEventListener("click", () => {
  language = language === "ko" ? "en" : "ko";
  shownView.language(language);
  dress();
});
dress();
