// The page: tabs, the source beside them, links between lines, keys, and the address that says where the reader is.

const FILE = 1 << 20;
const BAD = ["race", "undefined"];
const $ = (id) => document.getElementById(id);

class PageView {
  constructor(page) {
    this.page = page;
    this.links = new Links(() => this.remember());
    this.strings = page.strings;
    this.state = { tab: "", stage: 0, code: 0, changes: true };
    this.opened = [];
    $("title").textContent = page.title;
    $("platform").textContent = [page.platform, page.version && `Tilewright ${page.version}`].filter(Boolean).join(" · ");
    this.tabs = TABS.filter((tab) => tab.there(page));
    $("tabs").append(...this.tabs.map((tab, number) => element("button", { role: "tab", id: `tab-${tab.id}`, onclick: () => this.open(tab.id) }, tab.name, element("kbd", {}, String(number + 1)))));
    this.drawSource();
    this.follow();
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (event) => this.key(event));
    $("help").onclick = () => this.help();
    $("theme").onclick = () => this.theme();
    this.divide();
  }
  named(place) {
    const source = this.page.sources[Math.floor(place / FILE)], line = place % FILE;
    const text = source && this.strings[source.lines[line - source.first]];
    return source ? `${source.name}:${line}  ${(text || "").trim()}` : "";
  }
  rows(text) {
    return text.lines.map((string, index) => ({ text: this.strings[string], place: text.places[index], number: index + 1 }));
  }

  // the source

  drawSource() {
    const sources = this.page.sources, bar = element("div", { class: "bar" });
    this.source = new TextView(this.links, "python");
    this.sourceBar = bar;
    $("source").append(bar, this.source.node);
    this.showSource(0);
    if (!sources.length) $("source").append(element("p", { class: "pad soft" }, "The text that this program was written in is not there."));
  }
  showSource(number) {
    const sources = this.page.sources, source = sources[number];
    this.shownSource = number;
    if (!source) return;
    this.source.language = source.name.endsWith(".pto") ? "code" : "python";
    const linked = new Set([...this.places()]), bad = new Set([this.page.refusal?.place, ...(this.page.access?.findings ?? []).filter((each) => BAD.includes(each.kind)).map((each) => each.place)]);
    const pick = sources.length > 1
      ? element("select", { "aria-label": "File", onchange: (event) => this.showSource(Number(event.target.value)) }, ...sources.map((each, index) => element("option", { value: index, selected: index === number }, each.name)))
      : element("strong", {}, source.name);
    this.sourceBar.replaceChildren(pick, element("span", { class: "note", title: source.path }, this.page.signature));
    this.source.show(source.lines.map((string, index) => {
      const place = number * FILE + source.first + index;
      return { text: this.strings[string], place: linked.has(place) ? place : 0, number: source.first + index, mark: bad.has(place) ? "bad" : "" };
    }));
  }
  *places() {
    for (const pass of this.page.passes) if (pass.text) yield* pass.text.places;
    for (const text of this.page.code) yield* text.places;
    if (this.page.refusal) yield this.page.refusal.place;
  }

  // where the reader is

  follow() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const stage = this.page.passes.findIndex((pass) => pass.name === wanted.get("stage")), code = this.page.code.findIndex((text) => text.name === wanted.get("code"));
    if (stage >= 0) this.state.stage = stage;
    else if (!this.state.tab) this.state.stage = Math.max(0, this.page.passes.findLastIndex((pass) => pass.text));
    if (code >= 0) this.state.code = code;
    const tab = this.tabs.find((each) => each.id === wanted.get("tab")) || this.tabs.find((each) => each.id === this.state.tab) || this.tabs[0];
    if (tab) this.open(tab.id);
    const line = Number(wanted.get("line") || 0), file = Number(wanted.get("file") || 0);
    if (line && this.links.pinned !== file * FILE + line) this.links.pin(file * FILE + line);
  }
  remember() {
    const { tab, stage, code } = this.state, pinned = this.links.pinned, hash = new URLSearchParams({ tab });
    if (tab === "passes") hash.set("stage", this.page.passes[stage]?.name ?? "");
    if (tab === "code") hash.set("code", this.page.code[code]?.name ?? "");
    if (pinned >= FILE) hash.set("file", Math.floor(pinned / FILE));
    if (pinned) hash.set("line", pinned % FILE);
    try { history.replaceState(null, "", `#${hash}`); } catch { /* a frame of a notebook has no address */ }
    const file = Math.floor(pinned / FILE);
    if (pinned && file !== this.shownSource) { this.showSource(file); this.source.reveal(pinned); }
  }
  open(id) {
    const tab = this.tabs.find((each) => each.id === id);
    for (const view of this.opened.splice(0)) view.close();
    this.state.tab = document.body.dataset.tab = id;
    for (const each of this.tabs) $(`tab-${each.id}`).setAttribute("aria-selected", each.id === id);
    $(`tab-${id}`).scrollIntoView({ block: "nearest", inline: "center" });
    $("content").replaceChildren(...tab.draw(this));
    for (const view of this.opened) view.draw?.();
    if (this.links.pinned) for (const view of this.opened) view.reveal?.(this.links.pinned);
    this.links.mark();
    this.remember();
  }
  view(language) {
    const made = new TextView(this.links, language);
    this.opened.push(made);
    return made;
  }
  filters(view) {
    const search = element("input", { type: "search", placeholder: "Filter ( / )", "aria-label": "Filter lines" });
    const only = element("input", { type: "checkbox", id: "only" });
    const change = () => view.filter(search.value, only.checked);
    search.addEventListener("input", change);
    only.addEventListener("change", change);
    return [search, element("label", { title: "Only what the clicked line became" }, only, "clicked line only")];
  }

  // keys

  key(event) {
    if (event.target.matches("input[type=search], select") && event.key !== "Escape") return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const digit = Number(event.key);
    if (digit >= 1 && digit <= this.tabs.length) this.open(this.tabs[digit - 1].id);
    else if (event.key === "j" || event.key === "k") this.step(event.key === "j" ? 1 : -1);
    else if (event.key === "[" || event.key === "]") this.stage(event.key === "]" ? 1 : -1);
    else if (event.key === "/") { event.preventDefault(); document.querySelector("#content input[type=search]")?.focus(); }
    else if (event.key === "t") this.theme();
    else if (event.key === "?") this.help();
    else if (event.key === "Escape") { document.activeElement.blur(); if (this.links.pinned) this.links.pin(0); }
    else if (event.key === " " && this.state.tab === "access" && !event.target.matches("button")) { event.preventDefault(); this.opened[0].toggle(); }
  }
  step(by) {
    const linked = this.source.all.filter((row) => row.place).map((row) => row.place), at = linked.indexOf(this.links.pinned);
    const next = linked[at < 0 ? (by > 0 ? 0 : linked.length - 1) : Math.max(0, Math.min(linked.length - 1, at + by))];
    if (next && next !== this.links.pinned) this.links.pin(next);
  }
  stage(by) {
    if (this.state.tab === "code") this.state.code = Math.max(0, Math.min(this.page.code.length - 1, this.state.code + by));
    else {
      const changed = this.page.passes.flatMap((pass, index) => (pass.text ? [index] : []));
      const following = by > 0 ? changed.find((index) => index > this.state.stage) : changed.findLast((index) => index < this.state.stage);
      if (following === undefined) return;
      this.state.stage = following;
    }
    this.open(this.state.tab === "code" ? "code" : "passes");
  }
  help() {
    const keys = { "1 – 9": "open a tab", "j  k": "next, previous source line", "[  ]": "previous, next stage", "/": "filter the lines", t: "light or dark", space: "play the access picture", Esc: "let go of the line" };
    const list = Object.entries(keys).flatMap(([key, text]) => [element("dt", {}, key), element("dd", {}, text)]);
    $("keys").replaceChildren(element("h2", {}, "Keys"), element("dl", {}, ...list), element("p", { class: "soft", style: "margin-top:14px" }, "Point at a line to see what it became; click to hold on to it. The address remembers where you are."));
    $("keys").onclick = () => $("keys").close();
    if (!$("keys").open) $("keys").showModal();
  }
  theme() {
    const dark = document.documentElement.dataset.theme !== "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    try { localStorage.setItem("tilewright-theme", dark ? "dark" : "light"); } catch { /* a page from a file may have no storage */ }
    this.open(this.state.tab);
  }
  divide() {
    const divider = $("divider");
    divider.onpointerdown = (event) => { divider.setPointerCapture(event.pointerId); event.preventDefault(); };
    divider.onpointermove = (event) => {
      if (!divider.hasPointerCapture(event.pointerId)) return;
      const box = document.querySelector("main").getBoundingClientRect(), root = document.documentElement.style;
      root.setProperty("--source", `${Math.max(10, Math.min(80, (100 * (event.clientX - box.left)) / box.width))}%`);
      root.setProperty("--source-height", `${Math.max(10, Math.min(80, (100 * (event.clientY - box.top)) / box.height))}%`);
    };
  }
}

const padded = (...children) => [element("div", { class: "scroll" }, element("div", { class: "pad" }, ...children))];

function drawPasses(view) {
  const { page, state } = view, chosen = page.passes[state.stage];
  const textAt = (index) => page.passes.slice(0, index + 1).findLast((pass) => pass.text);
  const list = element("ol", { class: "stages" }, ...page.passes.map((pass, index) => {
    const added = pass.changes.reduce((sum, [, , from, to]) => sum + to - from, 0), gone = pass.changes.reduce((sum, [from, to]) => sum + to - from, 0);
    const count = pass.changes.length ? element("small", {}, `+${added} `, element("u", {}, `−${gone}`)) : "";
    return element("li", { class: pass.text ? "" : "idle" }, element("button", { title: pass.note, "aria-current": index === state.stage, onclick: () => { state.stage = index; view.open("passes"); } }, element("span", {}, pass.name), count));
  }));
  const text = view.view("python"), now = textAt(state.stage).text, rows = view.rows(now);
  const show = () => text.show(state.changes && chosen.text ? changed(rows, chosen.changes, () => view.rows(textAt(state.stage - 1).text)) : rows);
  const box = element("input", { type: "checkbox", onchange: (event) => { state.changes = event.target.checked; show(); } });
  box.checked = state.changes;
  show();
  const bar = element("div", { class: "bar" }, element("strong", {}, chosen.name), element("span", { class: "note", title: chosen.note }, chosen.text ? chosen.note : `Nothing to do here. ${chosen.note}`), element("label", {}, box, "changes"), ...view.filters(text));
  requestAnimationFrame(() => list.children[state.stage].scrollIntoView({ block: "nearest", inline: "center" }));
  return [element("div", { class: "split" }, list, element("div", { class: "column" }, bar, text.node))];
}

function changed(rows, changes, before) {
  if (!changes.length) return rows;
  const old = before(), shown = [];
  let at = 0;
  for (const [from, to, first, last] of changes) {
    shown.push(...rows.slice(at, first));
    shown.push(...old.slice(from, to).map((row) => ({ ...row, number: 0, mark: "del" })));
    shown.push(...rows.slice(first, last).map((row) => ({ ...row, mark: "add" })));
    at = last;
  }
  return [...shown, ...rows.slice(at)];
}

function drawCode(view) {
  const { page, state } = view, chosen = page.code[state.code], text = view.view("code");
  text.show(view.rows(chosen));
  const pick = element("div", { class: "group" }, ...page.code.map((each, index) => element("button", { "aria-pressed": index === state.code, onclick: () => { state.code = index; view.open("code"); } }, each.name)));
  const linked = chosen.places.filter(Boolean).length;
  return [element("div", { class: "bar" }, pick, element("span", { class: "note" }, `${chosen.lines.length} lines, ${linked} of them made for a line of yours`), ...view.filters(text)), text.node];
}

function drawRefusal(view) {
  const { stage, kind, message } = view.page.refusal;
  const before = stage === "the call" ? "" : "The passes before it are under Passes: the last one is what it was given.";
  return padded(element("div", { class: "card refusal" }, element("h2", {}, before ? `Refused by ${stage}` : "The call failed"), element("strong", {}, kind), messageOf(message)),
    before && view.page.passes.length ? element("p", { class: "soft" }, before) : "");
}

function drawLaunches(view) {
  const { page } = view, parts = [];
  if (page.launches.length) parts.push(element("h2", {}, "What it starts, in order"), launchTable(page.launches, view.links));
  const nodes = padded(...parts);
  if (page.fusion.length) {
    nodes[0].style.flex = "0 1 auto";
    const text = view.view("python");
    text.show(view.rows(page.fusion[0]));
    nodes.push(element("div", { class: "bar" }, element("strong", {}, "Fusion"), element("span", { class: "note" }, "Which ops share a loop over rows, and why it ends"), ...view.filters(text)), text.node);
  }
  return nodes;
}

function drawFacts(view) {
  const groups = Map.groupBy ? Map.groupBy(view.page.facts, (fact) => fact.group) : view.page.facts.reduce((map, fact) => map.set(fact.group, [...(map.get(fact.group) || []), fact]), new Map());
  return padded(...[...groups].flatMap(([name, facts]) => [element("h2", {}, name[0].toUpperCase() + name.slice(1)), table([], facts.map((fact) => element("tr", {}, element("td", { class: "mono", style: "width:34%" }, fact.name), element("td", { class: "mono" }, fact.value))))]));
}

function drawAccess(view) {
  const made = new AccessView(view.page.access, view.links, view.page);
  view.opened.unshift(made);
  return [element("div", { class: "scroll" }, made.node)];
}

const TABS = [
  { id: "refusal", name: "Error", there: (page) => page.refusal, draw: drawRefusal },
  { id: "passes", name: "Passes", there: (page) => page.passes.length, draw: drawPasses },
  { id: "code", name: "Code", there: (page) => page.code.length, draw: drawCode },
  { id: "launches", name: "Launches", there: (page) => page.launches.length || page.fusion.length, draw: drawLaunches },
  { id: "memory", name: "Memory", there: (page) => page.memory.length, draw: (view) => padded(...view.page.memory.map((plan) => memoryChart(plan, view.links, (place) => view.named(place)))) },
  { id: "access", name: "Access", there: (page) => page.access, draw: drawAccess },
  { id: "speed", name: "Speed", there: (page) => page.speed, draw: (view) => padded(...speedParts(view.page.speed, view.page.remarks, view.links, (place) => view.named(place))) },
  { id: "profile", name: "Compile time", there: (page) => page.profile.length || (page.code.length && page.platform !== "interpret"), draw: (view) => padded(...(view.page.profile.length ? flameChart(view.page.profile) : [element("p", {}, "Nothing was compiled: this program was found in the cache. With TILEWRIGHT_CACHE_DIR=off it is compiled anew, and its time is here.")])) },
  { id: "facts", name: "Specialization", there: (page) => page.facts.length, draw: drawFacts },
];

async function boot() {
  let theme = null;
  try { theme = localStorage.getItem("tilewright-theme"); } catch { /* a page from a file may have no storage */ }
  document.documentElement.dataset.theme = theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const packed = Uint8Array.from(atob($("data").textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  window.explorer = new PageView(await new Response(stream).json());
  document.body.dataset.ready = "";
}
boot();
