/* traffic: what ranks send in a step: by axes, and of small meshes from each rank to each. */

const MATRIX = 64; /* ranks */

/* Of plans as they say it; without one, of the steps of the trace. */
function trafficRows() {
  if (data.plan && data.plan.traffic) return data.plan.traffic;
  const rows = new Map();
  steps.kind.filter(kind => isExchange(kind) && kind.bytes > 0).forEach(kind => {
    const name = kind.name.split(" ")[0], id = kind.queue + " " + name;
    const one = rows.get(id) || {axes: kind.queue, collective: name, count: 0, bytes: 0};
    rows.set(id, Object.assign(one, {count: one.count + 1, bytes: one.bytes + kind.bytes}));
  });
  return [...rows.values()];
}

function groupOf(names) {
  const along = names.split("+").map(name => axes.findIndex(axis => axis.name === name));
  return along.every(a => a >= 0) ? {along, size: along.reduce((n, a) => n * axes[a].size, 1)} : {along: [], size: 1};
}

/* Bytes from each rank to each: what a rank sends goes to the others of its group in equal parts. */
function trafficMatrix(rows) {
  const matrix = Array.from({length: nRanks}, () => new Float64Array(nRanks)), at = [...Array(nRanks).keys()].map(coordinatesOf);
  for (const one of rows) {
    const {along, size} = groupOf(one.axes);
    if (size < 2) continue;
    for (let from = 0; from < nRanks; from++)
      for (let to = 0; to < nRanks; to++)
        if (from !== to && at[from].every((c, a) => along.includes(a) || at[to][a] === c)) matrix[from][to] += one.bytes / (size - 1);
  }
  return matrix;
}

function matrixPicture(matrix, told) {
  const n = nRanks, size = 416, cell = (size - 26) / n, most = Math.max(...matrix.map(row => Math.max(...row)), 1);
  const picture = svg("svg", {viewBox: "0 0 " + size + " " + size, width: size, role: "img",
    "aria-label": "Traffic from each of " + n + " ranks, down, to each, across; at most " + bytesText(most) + ". The table has it by axes."});
  const label = n <= 16 ? 1 : Math.ceil(n / 8);
  for (let from = 0; from < n; from++) {
    if (from % label === 0) picture.append(svg("text", {x: 22, y: 26 + (from + 0.5) * cell + 4, "text-anchor": "end"}, from),
      svg("text", {x: 26 + (from + 0.5) * cell, y: 18, "text-anchor": "middle"}, from));
    for (let to = 0; to < n; to++) {
      const bytes = matrix[from][to], title = "rank " + from + " to rank " + to + ": " + bytesText(bytes);
      const tell = () => { told.textContent = title; };
      picture.append(svg("rect", {x: 26 + to * cell, y: 26 + from * cell, width: cell, height: cell, stroke: "var(--line)", "stroke-width": 0.4,
        "data-bytes": bytes, style: "fill: rgba(var(--heat), " + (bytes / most).toFixed(3) + ")", onmouseenter: tell, onclick: tell}, svg("title", {}, title)));
    }
  }
  return picture;
}

function trafficSection() {
  const rows = trafficRows();
  if (!rows.length) return;
  const predicted = new Map(((data.prediction || {}).axes || []).map(one => [one.axis, one]));
  const node = section("traffic", "Traffic of a step",
    smallTable("Exchanges, by the axes that they go over; bytes as a rank counts them", ["over", "kind", "how many", "a rank sends", "group", "to each other of it", "all ranks"],
      rows.map(one => {
        const {size} = groupOf(one.axes);
        return row(one.axes, one.collective, wholeText(one.count), bytesText(one.bytes), wholeText(size) + " ranks",
          size > 1 ? bytesText(one.bytes / (size - 1)) : "–", bytesText(one.bytes * nRanks));
      })));
  if (predicted.size) node.append(smallTable("Along each axis, predicted", ["axis", "bytes", "seconds", "exposed", "hidden"],
    [...predicted.values()].map(one => row(one.axis, bytesText(one.bytes), secondsText(one.seconds), secondsText(one.exposed), partText(one.hidden)))));
  if (nRanks < 2 || nRanks > MATRIX) {
    if (nRanks > MATRIX) node.append(el("p", {class: "quiet"}, "From each rank to each it is drawn for meshes of at most " + MATRIX + " ranks."));
    return;
  }
  const told = el("p", {class: "detail", role: "status"}, "Point at a field: from the rank of its row to that of its column.");
  node.append(el("h3", {}, "Who sends how much to whom"), el("p", {class: "quiet"}, "What a rank sends is spread evenly over the others of its group. " +
    "An engine may send along a ring instead: then neighbours have all of it."), matrixPicture(trafficMatrix(rows), told), told);
}
