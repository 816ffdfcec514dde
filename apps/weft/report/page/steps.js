/* steps: a table of the plan's steps, by kind or each, with what was predicted and measured. */

const PAGE = 100; /* rows at once */
const list = {by: "kind", sort: "predicted", down: true, filter: "", shown: PAGE, rows: []};

function sumOf(column, indexes) {
  return column ? indexes.reduce((sum, i) => sum + column[i], 0) * 1e-9 : null;
}

/* In a trace without a plan an exchange is predicted by what it adds to the step. */
function predictedOf(indexes) {
  if (steps.total) return sumOf(steps.total, indexes);
  return steps.begin ? indexes.reduce((sum, i) => sum + steps.end[i] - steps.begin[i], 0) * 1e-9 : null;
}

function rowOf(indexes) {
  const kind = steps.kind[indexes[0]], predicted = predictedOf(indexes), measured = sumOf(steps.measured, indexes);
  return {kind, first: steps.index[indexes[0]], row: indexes[0], count: indexes.length, name: kind.name, phase: kind.phase, queue: kind.queue, place: kind.place,
    spec: kind.spec, reason: kind.reason, predicted, measured, times: kind.times, ratio: predicted && measured ? measured / predicted : null,
    exposed: sumOf(steps.exposed, indexes), measuredExposed: isExchange(kind) ? sumOf(steps.measuredExposed, indexes) : steps.measuredExposed && 0,
    flops: kind.flops * indexes.length * (kind.times || 1), bytes: kind.bytes * indexes.length * (kind.times || 1),
    source: steps.source && steps.source[indexes[0]]};
}

function makeRows() {
  const groups = new Map();
  steps.kind.forEach((kind, i) => {
    const id = list.by === "kind" ? kind : i;
    groups.has(id) ? groups.get(id).push(i) : groups.set(id, [i]);
  });
  list.rows = [...groups.values()].map(rowOf);
}

const columns = [
  {name: "first", title: () => list.by === "kind" ? "first step" : "step", text: r => wholeText(r.first), number: true},
  {name: "count", title: () => "steps", text: r => wholeText(r.count), number: true, is: () => list.by === "kind"},
  {name: "name", title: () => "what", text: r => r.name},
  {name: "phase", title: () => "phase", text: r => r.phase, is: () => steps.kind.some(kind => kind.phase)},
  {name: "queue", title: () => "queue", text: r => r.queue},
  {name: "predicted", title: () => "predicted", text: r => secondsText(r.predicted), number: true, is: () => steps.begin},
  {name: "measured", title: () => "measured", text: r => secondsText(r.measured), number: true, is: () => steps.measured},
  {name: "ratio", title: () => "measured / predicted", text: r => r.ratio == null ? "–" : digits(r.ratio), number: true, is: () => steps.begin && steps.measured},
  {name: "exposed", title: () => "exposed, predicted", text: r => secondsText(r.exposed), number: true, is: () => steps.exposed},
  {name: "measuredExposed", title: () => "exposed, measured", text: r => secondsText(r.measuredExposed), number: true, is: () => steps.measured},
  {name: "flops", title: () => "flops", text: r => countText(r.flops), number: true, is: () => data.plan},
  {name: "bytes", title: () => "bytes sent", text: r => bytesText(r.bytes), number: true},
  {name: "times", title: () => "times", text: r => wholeText(r.times), number: true, is: () => steps.kind.some(kind => kind.times > 1)},
  {name: "source", title: () => "known by", text: r => r.source, is: () => steps.source && list.by === "step"},
  {name: "place", title: () => "line of the program", text: r => r.place, wide: true},
  {name: "spec", title: () => "dims and spec", text: r => (r.kind.from && r.kind.from !== r.spec ? r.kind.from + " → " : "") + r.spec, wide: true},
  {name: "reason", title: () => "reason", text: r => r.reason, wide: true},
];

function shownColumns() {
  return columns.filter(column => !column.is || column.is());
}

function sortedRows() {
  const wanted = list.filter.toLowerCase(), by = list.sort, way = list.down ? -1 : 1;
  const rows = wanted ? list.rows.filter(r => [r.name, r.phase, r.queue, r.place, r.spec, r.reason].some(t => t && t.toLowerCase().includes(wanted))) : [...list.rows];
  return rows.sort((a, b) => {
    const x = a[by] ?? -Infinity, y = b[by] ?? -Infinity;
    return x === y ? a.first - b.first : (x < y ? -1 : 1) * way;
  });
}

function sortBy(column) {
  list.down = list.sort === column.name ? !list.down : Boolean(column.number && column.name !== "first");
  list.sort = column.name;
  drawSteps(column.name);
}

function headCell(column) {
  const is = list.sort === column.name, order = is ? (list.down ? "descending" : "ascending") : "none";
  return el("th", {scope: "col", "aria-sort": order, class: column.number ? "number" : false},
    el("button", {type: "button", "data-column": column.name, onclick: () => sortBy(column)}, column.title() + (is ? (list.down ? " ▼" : " ▲") : "")));
}

function chooseStep(r) {
  const lane = timeline.lanes.findIndex(one => one.bars.some(bar => bar.row === r.row));
  if (lane < 0) return;
  choose({bar: timeline.lanes[lane].bars.find(bar => bar.row === r.row), lane});
  document.getElementById("timeline").scrollIntoView({block: "start"});
}

function actions(r) {
  const name = "step " + r.first + ", " + r.name;
  const shown = parseSpec(r.spec) && axes.length ? el("button", {type: "button", "aria-label": "shards of the result of " + name,
    onclick: () => showShards("Result of " + name, r.spec, true)}, "shards") : null;
  const bar = timeline.lanes.length ? el("button", {type: "button", "aria-label": name + " in the timeline", onclick: () => chooseStep(r)}, "bar") : null;
  return el("td", {class: "only-screen"}, shown, " ", bar);
}

function drawSteps(focused) {
  const rows = sortedRows(), shown = rows.slice(0, list.shown), heads = shownColumns();
  list.table.replaceChildren(el("thead", {}, el("tr", {}, heads.map(headCell), el("th", {scope: "col", class: "only-screen"}, "show"))),
    el("tbody", {}, shown.map(r => el("tr", {}, heads.map(column =>
      el("td", {class: column.number ? "number" : column.wide ? "wide" : false}, column.text(r) ?? "–")), actions(r)))));
  list.told.textContent = shown.length + " of " + rows.length + (list.by === "kind" ? " kinds of steps" : " steps");
  list.more.hidden = rows.length <= shown.length;
  if (focused) list.table.querySelector("[data-column='" + focused + "']").focus();
}

function groupSteps(by) {
  list.by = by;
  list.shown = PAGE;
  list.buttons.forEach(button => button.setAttribute("aria-pressed", String(button.value === by)));
  makeRows();
  drawSteps();
}

function stepsSection() {
  if (!steps.kind.length) return;
  list.sort = steps.begin ? "predicted" : steps.measured ? "measured" : "flops";
  list.table = el("table", {id: "step-table"});
  list.told = el("span", {class: "quiet", role: "status"});
  list.more = el("button", {type: "button", onclick: () => { list.shown += 5 * PAGE; drawSteps(); }}, "show more");
  list.buttons = [["kind", "alike together"], ["step", "each"]].map(([by, name]) =>
    el("button", {type: "button", value: by, onclick: () => groupSteps(by)}, name));
  section("steps", "Steps", el("div", {class: "controls", role: "group", "aria-label": "Which steps"}, list.buttons,
    el("label", {for: "filter"}, "with"), el("input", {id: "filter", type: "search", placeholder: "einsum, model.c:208, …", oninput: event => {
      list.filter = event.target.value;
      list.shown = PAGE;
      drawSteps();
    }})), el("p", {class: "quiet"}, "Steps that differ in their times alone are one row; a head sorts. Of several runs the median was measured. " +
      "The measured time of an exchange goes from its start until all is there."),
    el("div", {class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Table of steps"}, list.table), el("div", {class: "controls"}, list.told, list.more));
  groupSteps("kind");
}
