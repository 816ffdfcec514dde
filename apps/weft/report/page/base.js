/* base: the data as the page reads them, elements, numbers as text. */

const data = JSON.parse(document.getElementById("data").textContent);

/* ---- elements: texts are always text, never HTML ---- */

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter(child => child != null));
  return node;
}

function el(name, attributes, ...children) {
  return put(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return put(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/* What is drawn by hand is drawn again when the window, the colours or the paper change. */
const redraws = [];
let redrawing = 0;

function redrawAll() {
  redrawing = 0;
  redraws.forEach(redraw => redraw());
}

function redrawSoon() {
  if (!redrawing) redrawing = requestAnimationFrame(redrawAll);
}

/* One of them alone. */
function redrawOne(redraw) {
  if (!redrawing) requestAnimationFrame(redraw);
}

/* A section with its place in the navigation. */
function section(id, title, ...children) {
  document.getElementById("nav").append(el("a", {href: "#" + id}, title));
  const node = el("section", {id, "aria-labelledby": id + "-title"}, el("h2", {id: id + "-title"}, title), ...children);
  document.getElementById("main").append(node);
  return node;
}

/* ---- numbers as text ---- */

function digits(x) {
  return Number(x.toPrecision(3)).toLocaleString("en", {maximumSignificantDigits: 3, useGrouping: Math.abs(x) >= 10000});
}

function scaled(x, steps, unit) {
  const step = steps.find(s => Math.abs(x) >= s[0]) || steps[steps.length - 1];
  return digits(x / step[0]) + " " + step[1] + unit;
}

function secondsText(s) {
  if (s == null || !isFinite(s)) return "–";
  if (s === 0) return "0 s";
  return Math.abs(s) >= 60 ? digits(s / 60) + " min" : scaled(s, [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]], "s");
}

function bytesText(b) {
  if (b == null) return "–";
  return b === 0 ? "0 B" : scaled(b, [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [1024, "Ki"], [1, ""]], "B");
}

function countText(n) {
  if (n == null) return "–";
  return n === 0 ? "0" : scaled(n, [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]], "").trim();
}

function wholeText(n) {
  return n == null ? "–" : n.toLocaleString("en");
}

function partText(part) {
  return part == null || !isFinite(part) ? "–" : digits(100 * part) + " %";
}

/* ---- steps, as the data have them: kinds once, times as whole ns ---- */

const texts = data.texts;
const kinds = data.kinds.map(row => {
  const [phase, name, place, from, spec, box, reason, queue] = row.slice(0, 8).map(i => texts[i]);
  return {phase, name, place, from, spec, box, reason, queue, flops: row[8], bytes: row[9], times: row[10]};
});

function sums(differences) {
  let at = 0;
  return differences && differences.map(d => at += d);
}

const table = data.steps || {n: 0, kind: []};
const steps = {
  n: table.n,
  index: table.index || table.kind.map((_, i) => i),
  kind: table.kind.map(k => kinds[k]),
  begin: sums(table.begin), end: sums(table.end), alive: sums(table.alive),
  total: table.total, exposed: table.exposed, measured: table.measured, measuredExposed: table.measured_exposed,
  source: table.source && table.source.map(t => texts[t]),
};

function isExchange(kind) {
  return kind.queue !== "compute";
}

/* ---- the mesh ---- */

const meshText = (data.plan || data.run || data.measured || {}).mesh || "";
const axes = meshText.split(",").filter(Boolean).map(part => {
  const [name, size] = part.split(":");
  return {name, size: Number(size)};
});
const nRanks = axes.reduce((n, axis) => n * axis.size, 1);

/* Of the last axis ranks follow each other. */
function coordinatesOf(rank) {
  const at = [];
  for (let a = axes.length - 1; a >= 0; a--) {
    at[a] = rank % axes[a].size;
    rank = Math.floor(rank / axes[a].size);
  }
  return at;
}

function rankText(rank) {
  return coordinatesOf(rank).map((c, a) => axes[a].name + " " + c).join(", ");
}
