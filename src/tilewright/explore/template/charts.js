// Charts: memory over time, launches, the time that compiling took, the roofline.

const svg = (tag, attributes = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
const bytes = (count) => (count < 1024 ? `${count} B` : count < 1048576 ? `${+(count / 1024).toFixed(1)} KiB` : `${+(count / 1048576).toFixed(1)} MiB`);
const milliseconds = (time) => (time < 1 ? `${(1000 * time).toFixed(time < 0.1 ? 1 : 0)} us` : `${time.toFixed(time < 10 ? 2 : 1)} ms`);
const scaled = (value, unit) => { for (const [size, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (value >= size) return `${+(value / size).toPrecision(3)} ${name}${unit}`; return `${+value.toPrecision(3)} ${unit}`; };

function tipped(shape, text) {
  shape.addEventListener("mousemove", (event) => tip(text, event));
  shape.addEventListener("mouseleave", () => tip(""));
  shape.append(svg("title", {}, text));
  return shape;
}
function tip(text, event) {
  let box = document.getElementById("tip");
  if (!text) return box?.remove();
  if (!box) document.body.append((box = element("div", { id: "tip" })));
  box.textContent = text;
  box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(event.clientY + 16, innerHeight - box.offsetHeight - 8)}px`;
}

function memoryChart(plan, links, named) {
  const width = 860, left = 74, height = Math.min(340, Math.max(90, 26 * new Set(plan.held.map((h) => h[1])).size + 60));
  const start = Math.min(...plan.held.map((h) => h[3])), steps = Math.max(1, plan.steps - start);
  const x = (step) => left + ((step - start) / steps) * (width - left - 12), y = (address) => 12 + (address / plan.size) * (height - 44);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `memory of ${plan.function}` });
  for (const part of height < 140 ? [0, 1] : [0, 0.25, 0.5, 0.75, 1]) {
    const address = Math.round(plan.size * part);
    picture.append(svg("line", { class: "axis", x1: left, x2: width - 12, y1: y(address), y2: y(address) }));
    picture.append(svg("text", { class: "label", x: left - 8, y: y(address) + 4, "text-anchor": "end" }, bytes(address)));
  }
  for (const [name, offset, size, since, until, place] of plan.held) {
    const box = svg("rect", {
      x: x(since), y: y(offset), width: Math.max(3, x(until) - x(since) - 1), height: Math.max(2, y(offset + size) - y(offset) - 1), rx: 3,
      fill: `hsl(${hue(place || 7 * offset)} 55% 58% / 0.8)`, "data-place": place || "",
    });
    if (!place) box.removeAttribute("data-place");
    tipped(box, `${name}: ${bytes(size)} at ${offset}, statements ${since} to ${until}${place ? `\n${named(place)}` : ""}`);
    box.addEventListener("mouseenter", () => links.hover(place));
    box.addEventListener("click", () => place && links.pin(place));
    picture.append(box);
    if (x(until) - x(since) > 7 * name.length + 8 && y(offset + size) - y(offset) > 13)
      picture.append(svg("text", { x: x(since) + 6, y: (y(offset) + y(offset + size)) / 2 + 4, "pointer-events": "none" }, name));
  }
  picture.append(svg("text", { class: "label", x: left, y: height - 8 }, "statements of the function, in order"));
  return element("div", { class: "card" }, element("h2", {}, `${plan.function}: ${bytes(plan.size)}`), picture);
}

function flameChart(steps) {
  const total = Math.max(steps[0].took, 1e-6), width = 1000, row = 26, depth = Math.max(...steps.map((s) => s.depth)) + 1;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${depth * row + 22}`, role: "img", "aria-label": "time that compiling took" });
  for (const step of steps) {
    const x = (step.start / total) * width, wide = Math.max(1, (step.took / total) * width - 1);
    const shade = step.depth === 0 ? "var(--accent-soft)" : `hsl(${(hue(step.name.length * 31 + step.name.charCodeAt(0)) % 70) + 12} 78% 62%)`;
    picture.append(tipped(svg("rect", { x, y: step.depth * row, width: wide, height: row - 2, rx: 3, fill: shade }), `${step.name}: ${milliseconds(step.took)}, ${((100 * step.took) / total).toFixed(1)} %`));
    if (wide > 7 * step.name.length + 8)
      picture.append(svg("text", { x: x + 6, y: step.depth * row + 16, "pointer-events": "none", style: step.depth ? "fill:#1c1f24" : "" }, step.name));
  }
  picture.append(svg("text", { class: "label", x: 0, y: depth * row + 16 }, "0"), svg("text", { class: "label", x: width, y: depth * row + 16, "text-anchor": "end" }, milliseconds(total)));
  const rows = steps.filter((s) => s.depth).sort((a, b) => b.took - a.took).map((step) =>
    element("tr", {}, element("td", { class: "mono" }, step.name), element("td", { class: "mono" }, milliseconds(step.took)), element("td", { class: "mono" }, `${((100 * step.took) / total).toFixed(1)} %`)));
  return [element("div", { class: "card" }, picture), table(["Step", "Time", "Part"], rows)];
}

function rooflineChart(roof) {
  const width = 760, height = 380, left = 88, bottom = 46;
  const ridge = roof.flops_peak / roof.bytes_peak, at = roof.bytes ? roof.flops / roof.bytes : ridge;
  const low = Math.min(0.05, at / 4, ridge / 8), high = Math.max(100, at * 4, ridge * 8), top = roof.flops_peak * 2, base = Math.min(roof.flops / roof.seconds || top, low * roof.bytes_peak) / 3;
  const log = (value, from, to) => Math.log(value / from) / Math.log(to / from);
  const x = (intensity) => left + log(intensity, low, high) * (width - left - 20), y = (rate) => height - bottom - log(rate, base, top) * (height - bottom - 16);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "roofline" });
  for (let power = Math.ceil(Math.log10(base)); power <= Math.log10(top); power++)
    picture.append(svg("line", { class: "axis", x1: left, x2: width - 20, y1: y(10 ** power), y2: y(10 ** power) }), svg("text", { class: "label", x: left - 8, y: y(10 ** power) + 4, "text-anchor": "end" }, scaled(10 ** power, "FLOP/s")));
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power++)
    picture.append(svg("line", { class: "axis", x1: x(10 ** power), x2: x(10 ** power), y1: 16, y2: height - bottom }), svg("text", { class: "label", x: x(10 ** power), y: height - bottom + 16, "text-anchor": "middle" }, String(10 ** power)));
  const roofAt = (intensity) => Math.min(roof.flops_peak, intensity * roof.bytes_peak);
  picture.append(svg("path", { d: `M${x(low)} ${y(roofAt(low))} L${x(ridge)} ${y(roof.flops_peak)} L${x(high)} ${y(roof.flops_peak)}`, fill: "none", stroke: "var(--accent)", "stroke-width": 2.5 }));
  picture.append(svg("text", { class: "label", x: width - 20, y: y(roof.flops_peak) - 8, "text-anchor": "end" }, scaled(roof.flops_peak, "FLOP/s")));
  picture.append(svg("text", { class: "label", x: left + (width - left) / 2, y: height - 8, "text-anchor": "middle" }, "floating-point operations per byte of memory"));
  const rate = roof.flops / roof.seconds, part = rate / roofAt(at);
  picture.append(svg("line", { x1: x(at), x2: x(at), y1: y(roofAt(at)), y2: y(rate), stroke: "var(--write)", "stroke-dasharray": "4 3" }));
  picture.append(tipped(svg("circle", { cx: x(at), cy: y(rate), r: 7, fill: "var(--write)" }), `${scaled(rate, "FLOP/s")}, ${scaled(roof.bytes / roof.seconds, "B/s")}, ${(1e6 * roof.seconds).toFixed(1)} us`));
  const share = part > 1.1 ? "More than memory alone allows" : `${(100 * part).toFixed(0)} % of what the machine allows`;
  const said = `${share} at ${at.toPrecision(2)} operations a byte: ${scaled(rate, "FLOP/s")} and ${scaled(roof.bytes / roof.seconds, "B/s")} in ${milliseconds(1e3 * roof.seconds)}.`;
  return [element("div", { class: "card" }, picture), element("p", {}, said)];
}

function linkedRow(place, links, ...cells) {
  return element("tr", place ? { "data-place": place, onclick: () => links.pin(place), onmouseenter: () => links.hover(place), onmouseleave: () => links.hover(0) } : {}, ...cells);
}

function speedParts(speed, remarks, links, named) {
  const time = (seconds) => milliseconds(1e3 * seconds);
  const cell = (text, name = "") => element("td", { class: name }, text);
  return [
    element("h2", {}, "How fast"), element("p", {}, element("strong", {}, time(speed.seconds)), ` by itself, ${time(speed.call_seconds)} called from Python. Bound by ${speed.bound_by}.`),
    ...(speed.roofline ? rooflineChart(speed.roofline) : []),
    ...(speed.advice.length ? [element("h2", {}, "Worth trying"), element("ol", {}, ...speed.advice.map(([text]) => element("li", {}, text)))] : []),
    ...(remarks.length ? [element("h2", {}, "Line by line"), table(["Line", "What was made of it"], remarks.map((remark, index) => linkedRow(remark.place, links, cell(index && remarks[index - 1].place === remark.place ? "" : named(remark.place), "mono"), cell(remark.text))))] : []),
    ...(speed.facts.length ? [element("h2", {}, "The whole"), element("ul", {}, ...speed.facts.map((fact) => element("li", {}, fact)))] : []),
  ];
}

function table(heads, rows) {
  return element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))), element("tbody", {}, ...rows));
}

function launchTable(rows, links) {
  const mono = (text) => element("td", { class: "mono" }, text);
  return table(["", "Starts", "Touches", "Waits for"], rows.map((row, index) =>
    linkedRow(row.place, links, mono(String(index + 1)), mono(row.what), mono(row.does), mono(row.after.map((n) => n + 1).join(", ")))));
}
