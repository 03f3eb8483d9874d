// Texts: long lists of lines of which only those in sight are in the document, each tied to its place in the source.

const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) made.setAttribute(name, String(value));
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
};

const hue = (place) => Math.round((place * 137.508) % 360);

const WORDS = {
  python: /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|class|for|in|with|as|if|else|elif|while|return|import|from|pass|break|continue|and|or|not|is|lambda|assert|True|False|None|yield)\b|(@?\bpl(?:\.\w+)+|@\w[\w.]*)|\b(0x[\da-f]+|\d[\d_]*\.?\d*(?:e[-+]?\d+)?)\b/g,
  code: /(;.*$|\/\/.*$)|("(?:[^"\\]|\\.)*")|\b(define|declare|call|br|ret|phi|load|store|select|getelementptr|label|internal|void|module|tt\.\w+|arith\.\w+|scf\.\w+)\b|([%@$][\w.$]+|^\.?[\w$.]+:)|(?<![\w.])(-?(?:0x[\da-fA-F]+|\d+\.?\d*(?:e[-+]?\d+)?))\b/g,
};
const KINDS = ["c", "s", "k", "n", "d"];

function tinted(text, language) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(WORDS[language])) {
    if (found.index > end) parts.push(text.slice(end, found.index));
    const kind = KINDS[found.slice(1).findIndex((group) => group !== undefined)];
    parts.push(element("span", { class: kind }, found[0]));
    end = found.index + found[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}

class TextView {
  // rows: {text, place, number, mark}; the view asks `links` which place is hot or pinned
  constructor(links, language) {
    this.links = links;
    this.language = language;
    this.window = element("div", { class: "window" });
    this.text = element("div", { class: "text" }, this.window);
    this.ticks = element("div", { class: "ticks" });
    this.node = element("div", { class: "scroll", tabindex: 0 }, this.ticks, this.text);
    this.node.addEventListener("scroll", () => this.draw());
    this.node.addEventListener("mouseover", (event) => links.hover(placeOf(event)));
    this.node.addEventListener("mouseleave", () => links.hover(0));
    this.node.addEventListener("click", (event) => { const place = placeOf(event); if (place) links.pin(place, this); });
    new ResizeObserver(() => this.draw()).observe(this.node);
    this.rows = this.all = [];
    links.views.add(this);
  }
  show(rows) {
    this.all = rows;
    this.filter(this.wanted || "", this.only || false);
  }
  filter(wanted, only) {
    [this.wanted, this.only] = [wanted, only];
    const text = wanted.toLowerCase(), pinned = this.links.pinned;
    this.rows = this.all.filter((row) => (!text || row.text.toLowerCase().includes(text)) && (!only || !pinned || row.place === pinned));
    const longest = this.rows.reduce((most, row) => Math.max(most, row.text.length), 0);
    this.text.style.width = `calc(${longest + 2}ch + 70px)`;
    this.drawn = null;
    this.draw();
  }
  get height() { return parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 20; }
  draw() {
    const height = this.height, top = this.node.scrollTop, shown = this.node.clientHeight || 600;
    const first = Math.max(0, Math.floor(top / height) - 20), last = Math.min(this.rows.length, Math.ceil((top + shown) / height) + 20);
    this.text.style.height = `${this.rows.length * height}px`;
    if (this.drawn && this.drawn[0] === first && this.drawn[1] === last) return;
    this.drawn = [first, last];
    this.window.style.top = `${first * height}px`;
    this.window.replaceChildren(...this.rows.slice(first, last).map((row) => this.line(row)));
    this.mark();
  }
  line(row) {
    const code = element("code", {}, ...tinted(row.text, this.language));
    const line = element("div", { class: `ln ${row.mark || ""}` }, element("i", {}, row.number ? String(row.number) : ""), code);
    if (row.place) {
      line.dataset.place = row.place;
      line.style.setProperty("--hue", hue(row.place));
    }
    return line;
  }
  mark() {
    for (const line of this.window.children) {
      const place = Number(line.dataset.place || 0);
      line.classList.toggle("hot", place !== 0 && place === this.links.hot);
      line.classList.toggle("pin", place !== 0 && place === this.links.pinned);
    }
    const place = this.links.hot || this.links.pinned, height = this.node.clientHeight;
    const found = place && this.text.offsetHeight > height ? this.rows.flatMap((row, index) => (row.place === place ? [index] : [])) : [];
    const rooms = new Set(found.map((index) => Math.round((index / Math.max(this.rows.length, 1)) * height)));
    this.ticks.replaceChildren(...[...rooms].slice(0, 400).map((at) => element("b", { style: `top:${at}px` })));
  }
  reveal(place) {
    const index = this.rows.findIndex((row) => row.place === place);
    if (index < 0) return;
    const height = this.height, at = index * height;
    if (at < this.node.scrollTop || at + height > this.node.scrollTop + this.node.clientHeight)
      this.node.scrollTop = Math.max(0, at - this.node.clientHeight / 3);
    this.draw();
  }
  close() { this.links.views.delete(this); }
}

const placeOf = (event) => Number(event.target.closest("[data-place]")?.dataset.place || 0);

class Links {
  // the place that the reader points at, and the one that was clicked
  constructor(changed) {
    [this.hot, this.pinned, this.views, this.changed] = [0, 0, new Set(), changed];
  }
  hover(place) {
    if (place === this.hot) return;
    this.hot = place;
    this.mark();
  }
  pin(place, from) {
    this.pinned = place === this.pinned && from ? 0 : place;
    for (const view of this.views) {
      if (view.only) view.filter(view.wanted, true);
      if (view !== from && this.pinned) view.reveal(this.pinned);
    }
    this.mark();
    this.changed();
  }
  mark() {
    for (const view of this.views) view.mark();
    for (const shape of document.querySelectorAll("svg [data-place], tr[data-place], .finding[data-place]"))
      shape.classList.toggle("hot", Number(shape.dataset.place) === (this.hot || this.pinned));
  }
}
