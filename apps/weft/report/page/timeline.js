/* timeline: bars of steps over time, predicted and measured beneath each other, a lane for each queue. */

const LANE = 38, BAR = 20, TOP = 24; /* pixels */
const checks = location.hash === "#check"; /* the page looks at its own pixels */
const timeline = {lanes: [], from: 0, to: 1, end: 1, chosen: null, canvas: null, told: null, rank: 0};

/* ---- bars ---- */

function phaseColour(kind) {
  if (isExchange(kind)) return "exchange";
  return ["forward", "backward", "update"].includes(kind.phase) ? kind.phase : "other";
}

function lane(name) {
  return {name, bars: []};
}

function lanesOf(name, queues) {
  return new Map(queues.map(queue => [queue, lane(name + " · " + queue)]));
}

function predictedLanes(queues) {
  if (!steps.begin) return [];
  const lanes = lanesOf("predicted", queues);
  steps.kind.forEach((kind, i) => {
    if (steps.end[i] > steps.begin[i])
      lanes.get(kind.queue).bars.push({begin: steps.begin[i], end: steps.end[i], row: i, colour: phaseColour(kind), what: "predicted"});
  });
  return [...lanes.values()];
}

/* A wait stands where its rank waits: among what it computes. */
function measuredLanes(queues) {
  const shown = data.measured && data.measured.shown[timeline.rank];
  if (!shown) return [];
  const lanes = lanesOf("rank " + shown.rank + ", measured", queues);
  let at = 0;
  shown.row.forEach((row, i) => {
    at += shown.begin[i];
    const kind = steps.kind[row], waits = shown.waits[i] === 1;
    lanes.get(waits ? "compute" : kind.queue).bars.push({begin: at, end: at + shown.length[i], row,
      colour: waits ? "wait" : phaseColour(kind), what: waits ? "waiting for" : "measured"});
  });
  return [...lanes.values()];
}

function makeLanes() {
  const queues = [...new Set(["compute", ...steps.kind.map(kind => kind.queue)])];
  timeline.lanes = [...predictedLanes(queues), ...measuredLanes(queues)].filter(one => one.bars.length);
  timeline.lanes.forEach(one => one.bars.sort((a, b) => a.begin - b.begin));
  const bars = timeline.lanes.flatMap(one => one.bars);
  timeline.end = bars.reduce((most, bar) => Math.max(most, bar.end), 1);
  timeline.zero = bars.reduce((least, bar) => Math.min(least, bar.begin), 0);
}

/* ---- drawing ---- */

function xOf(time) {
  return (time - timeline.from) / (timeline.to - timeline.from) * timeline.width;
}

/* Where a bar is drawn, in pixels: never thinner than one. */
function placeOf(bar, laneIndex) {
  const x = xOf(bar.begin);
  return {x, width: Math.max(1, xOf(bar.end) - x), y: TOP + laneIndex * LANE + 15, height: BAR};
}

function isVisible(bar) {
  return bar.end >= timeline.from && bar.begin <= timeline.to;
}

function niceStep(span, most) {
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find(k => k * power >= rough);
}

function drawTicks(pen, ink) {
  const step = niceStep(timeline.to - timeline.from, Math.max(2, timeline.width / 110));
  pen.textAlign = "left";
  for (let t = Math.ceil(timeline.from / step) * step; t <= timeline.to; t += step) {
    pen.fillStyle = ink.line;
    pen.fillRect(xOf(t), 0, 1, TOP + timeline.lanes.length * LANE);
    pen.fillStyle = ink.quiet;
    pen.fillText(Math.abs(t) < step / 2 ? "0" : secondsText(t * 1e-9), xOf(t) + 3, 11);
  }
}

function drawLane(pen, ink, one, index) {
  for (const bar of one.bars) {
    if (!isVisible(bar)) continue;
    const place = placeOf(bar, index), x = Math.max(-2, place.x), right = Math.min(timeline.width + 2, place.x + place.width);
    pen.fillStyle = ink[bar.colour];
    pen.fillRect(x, place.y, right - x, place.height);
    if (place.width > 60) {
      pen.fillStyle = ink.page;
      pen.fillText(steps.kind[bar.row].name.slice(0, Math.floor((right - Math.max(0, x)) / 7)), Math.max(0, x) + 3, place.y + 14);
    }
  }
  pen.fillStyle = ink.ink;
  pen.fillText(one.name, 3, TOP + index * LANE + 11);
}

function drawChosen(pen, ink) {
  const {chosen} = timeline;
  if (!chosen) return;
  const place = placeOf(chosen.bar, chosen.lane);
  pen.strokeStyle = ink.focus;
  pen.lineWidth = 3;
  pen.strokeRect(place.x - 1.5, place.y - 1.5, place.width + 3, place.height + 3);
}

function drawTimeline() {
  const {canvas, lanes} = timeline, density = window.devicePixelRatio || 1;
  timeline.width = canvas.clientWidth || 600;
  const height = TOP + lanes.length * LANE + 4;
  canvas.width = Math.round(timeline.width * density);
  canvas.height = Math.round(height * density);
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d", {willReadFrequently: checks});
  pen.setTransform(canvas.width / timeline.width, 0, 0, canvas.height / height, 0, 0);
  pen.font = "11px system-ui, sans-serif";
  const ink = Object.fromEntries(["page", "ink", "quiet", "line", "focus", "forward", "backward", "update", "exchange", "wait", "other"]
    .map(name => [name, colour(name)]));
  pen.fillStyle = ink.page;
  pen.fillRect(0, 0, timeline.width, height);
  drawTicks(pen, ink);
  lanes.forEach((one, index) => drawLane(pen, ink, one, index));
  drawChosen(pen, ink);
}

/* ---- moving about ---- */

function view(from, to) {
  const least = Math.min(100, timeline.end), whole = timeline.end - timeline.zero;
  const span = Math.min(Math.max(to - from, least), whole * 1.02);
  timeline.from = Math.max(timeline.zero - whole * 0.01, Math.min(from, timeline.end + whole * 0.01 - span));
  timeline.to = timeline.from + span;
  redrawOne(drawTimeline);
}

function fit() {
  view(timeline.zero - timeline.end, 2 * timeline.end);
}

function zoom(factor, x) {
  const span = timeline.to - timeline.from, part = x == null ? 0.5 : x / timeline.width, at = timeline.from + part * span;
  view(at - part * span * factor, at + (1 - part) * span * factor);
}

function pan(part) {
  const span = timeline.to - timeline.from;
  view(timeline.from + part * span, timeline.to + part * span);
}

/* ---- choosing ---- */

function tellBar({bar, lane: index}) {
  const kind = steps.kind[bar.row], took = bar.end - bar.begin;
  timeline.told.replaceChildren(el("strong", {}, timeline.lanes[index].name + ": " + (bar.what === "waiting for" ? "waiting for " : "") + kind.name),
    el("div", {}, "step " + steps.index[bar.row] + ", from " + secondsText(bar.begin * 1e-9) + ", takes " + secondsText(took * 1e-9) +
      (kind.times > 1 ? ", done " + wholeText(kind.times) + " times" : "")),
    el("div", {}, kind.place), el("div", {class: "code"}, (kind.from && kind.from !== kind.spec ? kind.from + " → " : "") + kind.spec),
    el("div", {}, kind.reason));
}

function choose(chosen) {
  timeline.chosen = chosen;
  if (chosen) {
    tellBar(chosen);
    if (chosen.bar.end < timeline.from || chosen.bar.begin > timeline.to) {
      const span = timeline.to - timeline.from;
      view(chosen.bar.begin - span / 2, chosen.bar.begin + span / 2);
    }
  }
  redrawOne(drawTimeline);
}

function barAt(x, y) {
  const index = Math.floor((y - TOP) / LANE), one = timeline.lanes[index];
  if (!one) return null;
  let best = null, least = 4;
  for (const bar of one.bars) {
    const place = placeOf(bar, index), off = Math.max(place.x - x, x - place.x - place.width, 0);
    if (off < least) [best, least] = [bar, off];
  }
  return best && {bar: best, lane: index};
}

function neighbour(step) {
  const {chosen, lanes} = timeline;
  if (!chosen) return lanes.length ? {bar: lanes[0].bars.find(isVisible) || lanes[0].bars[0], lane: 0} : null;
  const bars = lanes[chosen.lane].bars, at = bars.indexOf(chosen.bar) + step;
  return bars[at] ? {bar: bars[at], lane: chosen.lane} : chosen;
}

function otherLane(step) {
  const {chosen, lanes} = timeline;
  if (!chosen) return neighbour(0);
  const index = Math.max(0, Math.min(lanes.length - 1, chosen.lane + step)), bars = lanes[index].bars;
  return {bar: bars.reduce((best, bar) => Math.abs(bar.begin - chosen.bar.begin) < Math.abs(best.begin - chosen.bar.begin) ? bar : best), lane: index};
}

const timelineKeys = {
  ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
  Home: fit, "0": fit, n: () => choose(neighbour(1)), p: () => choose(neighbour(-1)),
  ArrowDown: () => choose(otherLane(1)), ArrowUp: () => choose(otherLane(-1)),
};

function onTimelineKey(event) {
  const act = timelineKeys[event.key];
  if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  act();
}

function listen(canvas) {
  let drag = null;
  const placeOfEvent = event => [event.clientX - canvas.getBoundingClientRect().left, event.clientY - canvas.getBoundingClientRect().top];
  canvas.addEventListener("keydown", onTimelineKey);
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.shiftKey) return; /* the page scrolls */
    event.preventDefault();
    zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, placeOfEvent(event)[0]);
  }, {passive: false});
  canvas.addEventListener("dblclick", event => zoom(0.4, placeOfEvent(event)[0]));
  canvas.addEventListener("pointerdown", event => {
    drag = {x: event.clientX, from: timeline.from, to: timeline.to};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (!drag) return choose(barAt(...placeOfEvent(event)) || timeline.chosen);
    const shift = (drag.x - event.clientX) / timeline.width * (drag.to - drag.from);
    view(drag.from + shift, drag.to + shift);
  });
  canvas.addEventListener("pointerup", event => {
    if (drag && Math.abs(event.clientX - drag.x) < 3) choose(barAt(...placeOfEvent(event)));
    drag = null;
  });
}

/* ---- the section ---- */

function rankChoice() {
  const shown = data.measured ? data.measured.shown : [];
  if (shown.length < 2) return [];
  return [el("label", {for: "shown-rank"}, "Measured"), el("select", {id: "shown-rank", onchange: event => {
    timeline.rank = Number(event.target.value);
    timeline.chosen = null;
    makeLanes();
    redrawOne(drawTimeline);
  }}, shown.map((one, i) => el("option", {value: i}, "rank " + one.rank)))];
}

/* Of the colours that there are. */
function keys() {
  const used = new Set(timeline.lanes.flatMap(one => one.bars.map(bar => bar.colour)));
  const names = {forward: "forward", backward: "backward", update: "update", other: "computing, of no known phase", exchange: "exchange",
    wait: "waiting for an exchange"};
  return Object.keys(names).filter(name => used.has(name)).map(name => {
    const dot = el("i");
    dot.style.background = "var(--" + name + ")";
    return el("span", {class: "key"}, dot, names[name]);
  });
}

function timelineSection() {
  makeLanes();
  if (!timeline.lanes.length) return;
  const n = timeline.lanes.reduce((sum, one) => sum + one.bars.length, 0);
  const button = (name, act, says) => el("button", {type: "button", onclick: act, "aria-label": says}, name);
  timeline.canvas = el("canvas", {id: "bars", tabindex: 0, role: "application", "aria-describedby": "timeline-help",
    "aria-label": "Timeline of " + n + " bars in " + timeline.lanes.length + " lanes: " + timeline.lanes.map(one => one.name).join(", ")});
  timeline.told = el("div", {class: "detail", role: "status", "aria-live": "polite"}, "Point at a bar, or move to one by N and P.");
  const repeated = steps.kind.some(kind => kind.times > 1);
  section("timeline", "Timeline", el("div", {class: "controls"}, button("+", () => zoom(0.5), "zoom in"), button("−", () => zoom(2), "zoom out"),
    button("◀", () => pan(-0.3), "earlier"), button("▶", () => pan(0.3), "later"), button("all", fit, "show all of it"), rankChoice()),
    el("div", {}, keys()), timeline.canvas, timeline.told,
    el("p", {class: "quiet only-screen", id: "timeline-help"}, "Keys: + and − zoom, ← and → move, 0 shows all, N and P go from bar to bar, " +
      "↑ and ↓ from lane to lane. Mouse: drag to move, Ctrl or Shift with the wheel to zoom, double click to zoom in."),
    repeated && steps.begin ? el("p", {class: "quiet"}, "Predicted steps that are done several times are drawn once, the first time.") : null);
  listen(timeline.canvas);
  timeline.width = timeline.canvas.clientWidth || 600;
  fit();
  redraws.push(drawTimeline);
}
