/* charts: lines over steps or time: loss, rates, times of the training, memory of a step. */

const CHART = {width: 480, height: 200, left: 62, right: 10, top: 8, bottom: 24};

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values)
    if (v != null && isFinite(v)) [low, high] = [Math.min(low, v), Math.max(high, v)];
  if (low > high) return null;
  return low === high ? [low - Math.abs(low) * 0.05 - 1e-12, high + Math.abs(high) * 0.05 + 1e-12] : [low, high];
}

function scaleOf([low, high], from, to) {
  return v => from + (v - low) / (high - low) * (to - from);
}

/* Bytes have round numbers of their own. */
function ticksOf([low, high], most, format) {
  const rough = (high - low) / most, step = format === bytesText && rough > 0 ? 2 ** Math.ceil(Math.log2(rough)) : niceStep(high - low, most), ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) ticks.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return ticks;
}

/* A line with gaps where there is no number; holds: a value lasts until the next. */
function linePath(xs, ys, x, y, holds) {
  let path = "", before = null;
  ys.forEach((v, i) => {
    if (v == null) return before = null;
    const at = x(xs[i]).toFixed(1), down = y(v).toFixed(1);
    path += before == null ? "M" + at + " " + down : holds ? "H" + at + "V" + down : "L" + at + " " + down;
    before = v;
  });
  return path;
}

function bandPath(xs, low, high, x, y) {
  const known = xs.map((_, i) => i).filter(i => low[i] != null);
  const there = known.map(i => x(xs[i]).toFixed(1) + " " + y(high[i]).toFixed(1));
  const back = known.reverse().map(i => x(xs[i]).toFixed(1) + " " + y(low[i]).toFixed(1));
  return known.length ? "M" + there.concat(back).join("L") + "Z" : "";
}

function chartFrame(picture, xRange, yRange, x, y, chart) {
  for (const t of ticksOf(yRange, 4, chart.format)) {
    picture.append(svg("line", {x1: CHART.left, x2: CHART.width - CHART.right, y1: y(t), y2: y(t), stroke: "var(--line)"}),
      svg("text", {x: CHART.left - 5, y: y(t) + 4, "text-anchor": "end"}, chart.format(t)));
  }
  for (const t of ticksOf(xRange, 5))
    picture.append(svg("text", {x: x(t), y: CHART.height - 7, "text-anchor": "middle"}, chart.formatX(t)));
}

/* The nearest point to a place, by arrow keys or the mouse. */
function cursorOf(picture, chart, x, said) {
  const line = svg("line", {y1: CHART.top, y2: CHART.height - CHART.bottom, stroke: "var(--focus)", visibility: "hidden"});
  const known = chart.x.map((_, i) => i).filter(i => chart.y[i] != null);
  let at = known.length - 1;
  const show = () => {
    const i = known[at];
    line.setAttribute("x1", x(chart.x[i]));
    line.setAttribute("x2", x(chart.x[i]));
    line.setAttribute("visibility", "visible");
    said.textContent = chart.tellX(i) + ": " + chart.format(chart.y[i]) +
      (chart.low ? ", from " + chart.format(chart.low[i]) + " to " + chart.format(chart.high[i]) : "");
  };
  picture.append(line);
  picture.addEventListener("keydown", event => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    at = Math.max(0, Math.min(known.length - 1, at + (event.key === "ArrowLeft" ? -1 : 1)));
    show();
  });
  picture.addEventListener("pointermove", event => {
    const box = picture.getBoundingClientRect(), wanted = (event.clientX - box.left) / box.width * CHART.width;
    at = known.reduce((best, i, k) => Math.abs(x(chart.x[i]) - wanted) < Math.abs(x(chart.x[known[best]]) - wanted) ? k : best, 0);
    show();
  });
}

/* chart: title, x [n], y [n], low and high [n] or null, format, formatX, tellX of an index; holds, from0. */
function lineChart(chart) {
  const yRange = extent(chart.y.concat(chart.low || [], chart.high || [], chart.from0 ? [0] : [])), xRange = extent(chart.x);
  if (!yRange || !xRange) return null;
  const x = scaleOf(xRange, CHART.left, CHART.width - CHART.right), y = scaleOf(yRange, CHART.height - CHART.bottom, CHART.top);
  const known = chart.y.filter(v => v != null), last = known[known.length - 1];
  const label = chart.title + ": " + known.length + " points, from " + chart.format(known[0]) + " to " + chart.format(last) + ", least " +
    chart.format(yRange[0]) + ", most " + chart.format(yRange[1]) + ". Arrow keys go along it.";
  const picture = svg("svg", {viewBox: "0 0 " + CHART.width + " " + CHART.height, role: "img", tabindex: 0, "aria-label": label, width: CHART.width});
  const said = el("div", {class: "quiet", role: "status"}, "last: " + chart.format(last));
  chartFrame(picture, xRange, yRange, x, y, chart);
  if (chart.low) picture.append(svg("path", {d: bandPath(chart.x, chart.low, chart.high, x, y), fill: "var(--band)"}));
  picture.append(svg("path", {d: linePath(chart.x, chart.y, x, y, chart.holds), fill: "none", stroke: "var(--link)", "stroke-width": 1.6}));
  if (known.length < 40) chart.y.forEach((v, i) => v != null &&
    picture.append(svg("circle", {cx: x(chart.x[i]), cy: y(v), r: 2, fill: "var(--link)"})));
  cursorOf(picture, chart, x, said);
  return el("figure", {"data-chart": chart.title}, el("figcaption", {}, chart.title), picture, said);
}

/* ---- the training ---- */

const curveNames = {loss: "loss", held_out: "loss of held-out data", held_out_accuracy: "accuracy on held-out data", rate: "rate of learning", ms: "time of a step", grad_norm: "norm of the gradient",
  tokens_per_s: "tokens a second", balance: "balance of experts", dropped: "tokens that no expert took"};
const curveFormats = {held_out_accuracy: partText, ms: ms => secondsText(ms * 1e-3), tokens_per_s: countText, dropped: partText};

function curveChart(series) {
  const {first, last} = data.curves, format = curveFormats[series.name] || digits;
  return lineChart({title: curveNames[series.name] || series.name, x: first.map((f, i) => (f + last[i]) / 2), y: series.mean, low: series.low,
    high: series.high, format, formatX: wholeText, tellX: i => "step " + first[i] + (last[i] > first[i] ? "…" + last[i] : "")});
}

function curvesSection() {
  if (!data.curves) return;
  const order = Object.keys(curveNames), place = series => (order.indexOf(series.name) + 1 || 99);
  const charts = [...data.curves.series].sort((a, b) => place(a) - place(b)).map(curveChart).filter(Boolean);
  section("curves", "Training", data.curves.per > 1 ? el("p", {class: "quiet"}, "A point is the mean of up to " + data.curves.per +
    " steps; the band goes from the least to the most of them.") : null, el("div", {class: "charts"}, charts));
}

/* ---- memory ---- */

/* Of many steps the highest of each few. */
function thinned(xs, ys, most) {
  const per = Math.ceil(ys.length / most), kept = [];
  for (let i = 0; i < ys.length; i += per) {
    let best = i;
    for (let k = i; k < Math.min(i + per, ys.length); k++) if (ys[k] > ys[best]) best = k;
    kept.push(best);
  }
  return {at: kept, x: kept.map(i => xs[i]), y: kept.map(i => ys[i])};
}

function memorySection() {
  const memory = (data.plan || {}).memory, byTime = Boolean(steps.begin);
  if (!memory && !steps.alive) return;
  const node = section("memory", "Memory of rank 0");
  if (memory) node.append(facts([["parameters", bytesText(memory.parameters)], ["slots of the optimizer", bytesText(memory.slots)],
    ["inputs", bytesText(memory.inputs)], ["temporaries", bytesText(memory.arena)], ["all together", bytesText(memory.peak)],
    ["kept from forward to backward", bytesText(memory.kept)],
    ["spared by computing again", memory.spared ? bytesText(memory.spared) : null]]));
  if (!steps.alive) {
    node.append(el("p", {class: "quiet"}, "Memory over time is known with a prediction or a trace: give --machine, as --machine laptop."));
    return;
  }
  const {at, x, y} = thinned(byTime ? steps.begin.map(t => t * 1e-9) : steps.index, steps.alive, 1500);
  node.append(lineChart({title: "Temporaries over " + (byTime ? "the predicted time" : "the steps of the plan"), x, y, format: bytesText,
    formatX: byTime ? secondsText : wholeText, holds: true, from0: true,
    tellX: i => "step " + steps.index[at[i]] + ", " + steps.kind[at[i]].name + (byTime ? " at " + secondsText(x[i]) : "")}) || "");
}
