// Access pictures: the arguments of a call as grids, and what each turn touches of them.

// An error's text: lines of code and their carets stay whole, sentences are wrapped.
function messageOf(text) {
  return element("div", { class: "message mono" }, ...text.split("\n").map((line) => element("div", { class: /^ *\d* *\|/.test(line) ? "whole" : "" }, line)));
}

function finding(found) {
  const text = found.text.includes("\n") ? messageOf(found.text) : element("span", {}, ` ${found.text}`);
  return element("div", { class: `finding ${found.kind}`, "data-place": found.place || null }, element("b", {}, found.kind), element("div", {}, found.argument ? element("code", { class: "mono" }, found.argument) : "", text));
}

class AccessView {
  constructor(access, links, page) {
    Object.assign(this, { access, links, page, turn: -1, timer: 0 });
    this.slider = element("input", { type: "range", min: -1, max: access.turns.length - 1, value: -1, "aria-label": "Turn", oninput: () => this.go(Number(this.slider.value)) });
    this.play = element("button", { onclick: () => this.toggle(), "aria-label": "Play" }, "▶");
    this.label = element("span", { class: "mono", id: "turn" });
    this.figures = access.arguments.map((argument) => this.figure(argument));
    this.node = element("div", { class: "pad" },
      element("div", { class: "player" }, this.play, this.slider, this.label),
      element("div", { class: "legend" }, ...[["read", "read"], ["write", "written"], ["both", "read and written"], ["add-color", "added to"], ["del-ink", "raced for, or written by several turns"], ["line", "untouched"]].map(([color, text]) => element("span", { style: `--color:var(--${color})` }, text))),
      element("div", { class: "arguments" }, ...this.figures.map((figure) => figure.node)),
      element("h2", {}, access.findings.length ? "What there is to know" : "Nothing remarkable: no gaps, overlaps, repeated or strided reads, races"), ...access.findings.map(finding));
    this.node.addEventListener("click", (event) => { const place = placeOf(event); if (place) links.pin(place); });
    this.go(-1);
  }
  figure(argument) {
    const columns = Math.max(1, argument.shape.at(-1) ?? 1), rows = Math.max(1, argument.shape.slice(0, -1).reduce((a, b) => a * b, 1));
    const cell = Math.max(1, Math.min(18, Math.floor(440 / Math.max(columns, rows))));
    const canvas = element("canvas", { width: columns * cell, height: rows * cell, "aria-label": argument.name });
    canvas.addEventListener("mousemove", (event) => {
      const column = Math.floor(event.offsetX / cell), row = Math.floor(event.offsetY / cell);
      tip(`${argument.name}[${this.index(argument, row, column)}]\n${this.who(argument, row * columns + column)}`, event);
    });
    canvas.addEventListener("mouseleave", () => tip(""));
    const caption = element("figcaption", {}, `${argument.name}  `, element("span", { class: "soft" }, `[${argument.shape.join(", ")}] ${argument.dtype}`));
    return { argument, columns, rows, cell, canvas, node: element("figure", {}, caption, canvas) };
  }
  index(argument, row, column) {
    const leading = [];
    for (const extent of argument.shape.slice(0, -1).reverse()) { leading.unshift(row % extent); row = Math.floor(row / extent); }
    return [...leading, ...(argument.shape.length ? [column] : [])].join(", ");
  }
  who(argument, flat) {
    const number = this.access.arguments.indexOf(argument), found = [];
    for (const turn of this.access.turns)
      for (const touch of turn.touches)
        if (touch.argument === number && touch.runs.some(([from, to]) => flat >= from && flat < to)) found.push(`${turn.name || "outside"} ${touch.access} it`);
    const said = [...new Set(found)];
    return said.slice(0, 6).join("\n") + (said.length > 6 ? `\n... ${said.length - 6} more` : "") || "nobody touches it";
  }
  toggle() {
    if (this.timer) return this.stop();
    this.play.textContent = "❚❚";
    this.timer = setInterval(() => this.go(this.turn + 1 >= this.access.turns.length ? 0 : this.turn + 1), Math.max(60, Math.min(600, 8000 / this.access.turns.length)));
  }
  stop() { clearInterval(this.timer); this.timer = 0; this.play.textContent = "▶"; }
  go(turn) {
    this.turn = Math.max(-1, Math.min(turn, this.access.turns.length - 1));
    this.slider.value = this.turn;
    const shown = this.turn < 0 ? this.access.turns : [this.access.turns[this.turn]];
    this.label.textContent = this.turn < 0 ? (this.access.turns.length === 1 ? "1 turn" : `all ${this.access.turns.length} turns`) : `${this.turn + 1}/${this.access.turns.length}  ${shown[0].name || "outside of turns"}`;
    this.figures.forEach((figure, number) => this.paint(figure, number, shown));
    if (this.turn >= 0 && shown[0].touches.length) this.links.hover(shown[0].touches[0].place);
  }
  paint(figure, number, turns) {
    const context = figure.canvas.getContext("2d"), style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue(`--${name}`).trim();
    const marks = new Uint8Array(figure.columns * figure.rows), bits = { reads: 1, writes: 2, "adds to": 4 };
    const writers = new Int32Array(marks.length);
    turns.forEach((turn, index) => turn.touches.forEach((touch) => {
      if (touch.argument !== number) return;
      for (const [from, to] of touch.runs)
        for (let at = from; at < to; at++) {
          marks[at] |= bits[touch.access];
          if (touch.access !== "writes") continue;
          if (writers[at] && writers[at] !== index + 1) marks[at] |= 8;
          writers[at] = index + 1;
        }
    }));
    for (const [from, to] of this.access.racing[number] ?? []) for (let at = from; at < to; at++) if (marks[at]) marks[at] |= 8;
    context.fillStyle = color("panel");
    context.fillRect(0, 0, figure.canvas.width, figure.canvas.height);
    const shades = [color("line"), color("read"), color("write"), color("both"), color("add-color"), color("both"), color("both"), color("both")];
    const gap = figure.cell > 5 ? 1 : 0;
    for (let at = 0; at < marks.length; at++) {
      context.fillStyle = marks[at] & 8 ? color("del-ink") : shades[marks[at]];
      context.fillRect((at % figure.columns) * figure.cell, Math.floor(at / figure.columns) * figure.cell, figure.cell - gap, figure.cell - gap);
    }
  }
  close() { this.stop(); }
}
