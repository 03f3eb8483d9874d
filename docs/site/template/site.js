// The site: search, the list of pages on a phone, light and dark, copying code.
"use strict";
const $ = (id) => document.getElementById(id), up = document.body.dataset.up;

const index = (window.searchIndex || []).map(([title, url, group, text]) => ({ title, url, group, text, low: `${title}\n${text}`.toLowerCase() }));
let chosen = 0;

function found(words) {
  const scored = [];
  for (const entry of index) {
    let score = 0;
    for (const word of words) {
      const at = entry.low.indexOf(word), title = entry.title.toLowerCase();
      if (at < 0) { score = -1; break; }
      score += title === word || title === `pl.${word}` ? 100 : title.startsWith(word) || title.startsWith(`pl.${word}`) ? 40 : at <= title.length ? 20 : 1;
    }
    if (score > 0) scored.push([score, entry]);
  }
  return scored.sort((a, b) => b[0] - a[0] || a[1].title.length - b[1].title.length).slice(0, 14).map(([, entry]) => entry);
}

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean), list = $("results");
  const entries = words.length ? found(words) : [];
  chosen = 0;
  list.hidden = !words.length;
  list.replaceChildren(...entries.map((entry, number) => {
    const link = Object.assign(document.createElement("a"), { href: up + entry.url });
    link.append(Object.assign(document.createElement("i"), { textContent: entry.group }), entry.title, Object.assign(document.createElement("small"), { textContent: entry.text.trim().slice(0, 140) }));
    const row = document.createElement("li");
    row.setAttribute("aria-selected", String(number === 0));
    row.append(link);
    return row;
  }));
  if (words.length && !entries.length) list.append(Object.assign(document.createElement("li"), { textContent: "Nothing is called so, or about it." }));
}

$("search").addEventListener("input", search);
$("search").addEventListener("keydown", (event) => {
  const rows = [...$("results").children];
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    chosen = (chosen + (event.key === "ArrowDown" ? 1 : rows.length - 1)) % Math.max(1, rows.length);
    rows.forEach((row, number) => row.setAttribute("aria-selected", String(number === chosen)));
    rows[chosen]?.scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter") rows[chosen]?.querySelector("a")?.click();
  else if (event.key === "Escape") { $("search").value = ""; search(); $("search").blur(); }
});
addEventListener("keydown", (event) => { if (event.key === "/" && event.target === document.body) { event.preventDefault(); $("search").focus(); } });
addEventListener("click", (event) => { if (!event.target.closest(".search")) $("results").hidden = true; });
$("menu").onclick = () => $("menu").setAttribute("aria-expanded", String($("pages").classList.toggle("open")));
$("theme").onclick = () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("tilewright-theme", theme); } catch { /* a page from a file may have no storage */ }
};
for (const button of document.querySelectorAll(".copy")) button.onclick = async () => {
  await navigator.clipboard.writeText(button.nextElementSibling.textContent);
  button.textContent = "copied";
  setTimeout(() => (button.textContent = "copy"), 1200);
};
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "center" });
