/* tensors: the mesh, rank by rank, and the shards of a tensor: which rank holds which box. */

const FOLD = 16; /* rows and columns of the mesh, blocks of a dim, and ranks in a sentence */

/* "[batch:8/data+pod, seq:32] sum over model": dims with the axes that split them, and the axes over which it is partial. */
function parseSpec(spec) {
  const match = /^\[(.*)\](?: (.+) over (.+))?$/.exec(spec || "");
  if (!match) return null;
  const dims = [...match[1].matchAll(/([^\s:,{}]+):(\d+)(?:\/([^,{}\s]+))?(\{[^}]*\})?/g)].map(m =>
    ({name: m[1], size: Number(m[2]), axes: m[3] ? m[3].split("+") : [], window: m[4] || ""}));
  const known = dims.every(dim => dim.axes.every(name => axes.some(axis => axis.name === name)));
  return known ? {dims, partial: match[2] ? match[2] + " over " + match[3] : ""} : null;
}

/* Nested blocks, outermost axis first: of n ranks each takes a n-th, rounded up. */
function cut([begin, end], index, n) {
  const length = end - begin, block = Math.ceil(length / n), first = Math.min(index * block, length);
  return [begin + first, begin + Math.min(first + block, length)];
}

function intervalOf(dim, at) {
  return dim.axes.reduce((interval, name) => {
    const a = axes.findIndex(axis => axis.name === name);
    return cut(interval, at[a], axes[a].size);
  }, [0, dim.size]);
}

function boxOf(parsed, rank) {
  const at = coordinatesOf(rank);
  return parsed.dims.map(dim => intervalOf(dim, at));
}

function boxText(parsed, box) {
  return parsed.dims.map((dim, d) => dim.name + " " + box[d][0] + "…" + box[d][1] + (dim.window ? " by window" : "")).join(", ") || "one number";
}

function countOf(dim) {
  return dim.axes.reduce((n, name) => n * axes.find(axis => axis.name === name).size, 1);
}

/* Block number b of a dim, in order: its interval, and the coordinates that it is of: by axis. */
function blockAt(dim, b) {
  const along = dim.axes.map(name => axes.find(axis => axis.name === name)), at = {};
  for (let k = along.length - 1; k >= 0; k--) {
    at[along[k].name] = b % along[k].size;
    b = Math.floor(b / along[k].size);
  }
  return {at, interval: along.reduce((interval, axis) => cut(interval, at[axis.name], axis.size), [0, dim.size])};
}

/* The ranks that have coordinates `at` on some axes, and any on the others: how many, and the first of them. */
function holdersOf(at) {
  const free = axes.filter(axis => at[axis.name] == null), n = free.reduce((product, axis) => product * axis.size, 1), ranks = [];
  for (let k = 0; k < Math.min(n, FOLD); k++) {
    let left = k, stride = 1, rank = 0;
    for (let a = axes.length - 1; a >= 0; a--) {
      const axis = axes[a], isFree = at[axis.name] == null, c = isFree ? left % axis.size : at[axis.name];
      if (isFree) left = Math.floor(left / axis.size);
      rank += c * stride;
      stride *= axis.size;
    }
    ranks.push(rank);
  }
  return {n, ranks, text: (n === 1 ? "rank " : n + " ranks: ") + ranks.join(", ") + (n > ranks.length ? ", …" : "")};
}

const shards = {name: "", parsed: null, spec: "", rank: 0, nodes: {}};

/* ---- the mesh ---- */

function folded(n) {
  if (n <= FOLD) return [...Array(n).keys()];
  return [...Array(FOLD - 2).keys(), -1, n - 1];
}

function sameBox(rank) {
  if (!shards.parsed) return false;
  return JSON.stringify(boxOf(shards.parsed, rank)) === JSON.stringify(boxOf(shards.parsed, shards.rank));
}

function rankCell(rank) {
  return el("td", {class: sameBox(rank) ? "same" : false}, el("button", {type: "button", "data-rank": rank, title: rankText(rank),
    "aria-pressed": String(rank === shards.rank), onclick: () => chooseRank(rank), onmouseenter: () => tellRank(rank),
    onfocus: () => tellRank(rank)}, String(rank)));
}

function meshTable() {
  const last = axes[axes.length - 1] || {name: "", size: 1}, rows = nRanks / last.size, columns = folded(last.size);
  const rowName = r => coordinatesOf(r * last.size).slice(0, -1).map((c, a) => axes[a].name + " " + c).join(", ");
  return el("table", {class: "mesh"},
    el("thead", {}, el("tr", {}, el("td", {}), columns.map(c => el("th", {scope: "col"}, c < 0 ? "…" : last.name + " " + c)))),
    el("tbody", {}, folded(rows).map(r => r < 0 ? el("tr", {}, el("th", {scope: "row"}, "…"), columns.map(() => el("td", {}, "…"))) :
      el("tr", {}, el("th", {scope: "row"}, rowName(r)), columns.map(c => c < 0 ? el("td", {}, "…") : rankCell(r * last.size + c))))));
}

function tellRank(rank) {
  const has = shards.parsed ? " holds " + boxText(shards.parsed, boxOf(shards.parsed, rank)) + " of " + shards.name : "";
  shards.nodes.told.textContent = "Rank " + rank + " (" + (rankText(rank) || "the only one") + ")" + has;
}

function chooseRank(rank) {
  shards.rank = Math.max(0, Math.min(nRanks - 1, Math.floor(rank) || 0));
  shards.nodes.number.value = shards.rank;
  drawShards();
  const button = shards.nodes.mesh.querySelector("[data-rank='" + shards.rank + "']");
  if (button && shards.nodes.mesh.contains(document.activeElement) === false && document.activeElement === document.body) button.focus();
}

/* ---- the picture ---- */

/* The two dims that are drawn: those that are split first, then the largest. */
function drawnDims(parsed) {
  const order = parsed.dims.map((_, d) => d).sort((a, b) =>
    (parsed.dims[b].axes.length > 0) - (parsed.dims[a].axes.length > 0) || parsed.dims[b].size - parsed.dims[a].size);
  return order.slice(0, 2).sort((a, b) => a - b);
}

function shadeOf(i, j) {
  return "rgba(" + colour("heat") + ", " + (0.18 + 0.22 * ((i + j) % 3)) + ")";
}

function shardCell(place, row, column, i, j, isMine) {
  const at = {...row.at, ...column.at}, holders = holdersOf(at);
  const title = place.names[0] + " " + row.interval.join("…") + (place.names[1] ? ", " + place.names[1] + " " + column.interval.join("…") : "") +
    ": " + holders.text;
  const tell = () => { shards.nodes.told.textContent = title; };
  const cell = svg("g", {onmouseenter: tell, onclick: tell}, svg("title", {}, title),
    svg("rect", {x: place.x, y: place.y, width: place.width, height: place.height, fill: isMine ? colour("chosen") : shadeOf(i, j),
      stroke: colour("ink"), "stroke-width": 0.75}));
  if (place.width > 44 && place.height > 13)
    cell.append(svg("text", {class: "name", x: place.x + 4, y: place.y + 12}, holders.ranks.join(", ").slice(0, Math.floor(place.width / 7))));
  return cell;
}

/* Blocks with the part of the picture that each has: as large as it is, or of many blocks some, all as large. */
function drawnBlocks(dim) {
  const n = countOf(dim);
  if (n <= 2 * FOLD) {
    const blocks = [...Array(n).keys()].map(b => blockAt(dim, b));
    return {n, shown: blocks.map(block => ({...block, from: block.interval[0] / dim.size, to: block.interval[1] / dim.size}))};
  }
  const shown = folded(n).map((b, i, all) => b < 0 ? null : {...blockAt(dim, b), from: i / all.length, to: (i + 1) / all.length});
  return {n, shown: shown.filter(Boolean)};
}

function shardPicture(parsed) {
  const [a, b] = drawnDims(parsed), one = {name: "", size: 1, axes: []};
  const rowDim = b == null ? one : parsed.dims[a], columnDim = parsed.dims[b == null ? a : b] || one;
  const rows = drawnBlocks(rowDim), columns = drawnBlocks(columnDim), width = 640, height = rowDim === one ? 60 : 240;
  const mine = coordinatesOf(shards.rank), picture = svg("svg", {viewBox: "0 0 " + (width + 2) + " " + (height + 36), role: "img",
    width: width + 2, "aria-label": "Shards of " + shards.name + ", " + shards.spec + ". The table beneath has the same."});
  rows.shown.forEach((row, i) => columns.shown.forEach((column, j) => {
    const place = {x: 1 + width * column.from, y: 18 + height * row.from, width: width * (column.to - column.from),
      height: height * (row.to - row.from), names: rowDim === one ? [columnDim.name || "all"] : [rowDim.name, columnDim.name]};
    const isMine = axes.every((axis, k) => [row.at[axis.name], column.at[axis.name]].every(c => c == null || c === mine[k]));
    if (rowDim === one) Object.assign(row, {interval: column.interval});
    if (place.width > 0 && place.height > 0) picture.append(shardCell(place, row, column, i, j, isMine));
  }));
  picture.append(svg("text", {x: 2, y: 12}, "across: " + (columnDim.name ? columnDim.name + ":" + columnDim.size : "one number") +
    (rowDim === one ? "" : "; down: " + rowDim.name + ":" + rowDim.size)));
  const more = rows.n * columns.n - rows.shown.length * columns.shown.length;
  if (more > 0) picture.append(svg("text", {x: 2, y: height + 32}, wholeText(more) + " of " + wholeText(rows.n * columns.n) +
    " blocks are not drawn: the gap before the last"));
  return picture;
}

function boxTable(parsed) {
  const n = Math.min(nRanks, 64);
  return smallTable("The first " + n + " of " + wholeText(nRanks) + " ranks", ["rank", "box", "numbers"],
    [...Array(n).keys()].map(rank => {
      const box = boxOf(parsed, rank);
      return row("rank " + rank, boxText(parsed, box), wholeText(box.reduce((product, [begin, end]) => product * (end - begin), 1)));
    }));
}

function drawShards() {
  const {nodes, parsed} = shards, opened = nodes.boxes.querySelector("details[open]") !== null;
  nodes.mesh.replaceChildren(meshTable());
  nodes.name.textContent = parsed ? shards.name + " " + shards.spec : shards.spec ? shards.name + ": " + shards.spec + " is not understood" : "";
  nodes.partial.textContent = parsed && parsed.partial ? "Every rank holds a part of a " + parsed.partial + "." : "";
  nodes.picture.replaceChildren(...(parsed ? [shardPicture(parsed)] : []));
  nodes.boxes.replaceChildren(...(parsed ? [el("details", {open: opened}, el("summary", {}, "Boxes as a table"), boxTable(parsed))] : []));
  tellRank(shards.rank);
}

function showShards(name, spec, scrolls) {
  Object.assign(shards, {name, spec, parsed: parseSpec(spec)});
  drawShards();
  if (scrolls) document.getElementById("mesh").scrollIntoView({block: "start"});
}

/* ---- the choice of a tensor ---- */

const tensorClasses = data.tensors ? data.tensors.classes.map(([kind, dtype, spec, storage, box, bytes]) =>
  ({kind: texts[kind], dtype: texts[dtype], spec: texts[spec], storage: texts[storage], box: texts[box], bytes})) : [];

function showTensor() {
  const {nodes} = shards, wanted = nodes.choice.value;
  const index = data.tensors.name.indexOf(wanted);
  if (index < 0) {
    nodes.told.textContent = wanted ? "There is no variable or input " + wanted + "." : "";
    return;
  }
  const one = tensorClasses[data.tensors.class[index]], stored = nodes.form.value === "stored";
  showShards(wanted + " (" + one.kind + ", " + one.dtype + ", " + bytesText(one.bytes) + " of rank 0)", stored ? one.storage : one.spec, false);
}

function tensorChoice() {
  const {nodes} = shards;
  nodes.choice = el("input", {list: "tensor-names", id: "tensor", onchange: showTensor, size: 32, autocomplete: "off"});
  nodes.form = el("select", {id: "form", onchange: showTensor}, el("option", {value: "computed"}, "where it is computed with"),
    el("option", {value: "stored"}, "where it is stored"));
  return [el("label", {for: "tensor"}, "Tensor"), nodes.choice, el("datalist", {id: "tensor-names"},
    data.tensors.name.map(name => el("option", {value: name}))), el("label", {for: "form"}, "as"), nodes.form];
}

function meshSection() {
  if (!axes.length) return;
  const nodes = shards.nodes = {mesh: el("div", {class: "scroll"}), told: el("p", {class: "detail", role: "status"}), name: el("h3"),
    partial: el("p", {class: "quiet"}), picture: el("div"), boxes: el("div")};
  nodes.number = el("input", {type: "number", id: "rank", min: 0, max: nRanks - 1, value: 0, oninput: () => chooseRank(Number(nodes.number.value))});
  section("mesh", "Mesh and shards",
    el("p", {class: "quiet"}, "Choose a tensor, or a step in the table of steps; point at a rank, or at a block, to see who holds what."),
    el("div", {class: "controls"}, data.tensors ? tensorChoice() : [], el("label", {for: "rank"}, "Rank"), nodes.number),
    nodes.mesh, nodes.told, nodes.name, nodes.partial, nodes.picture, nodes.boxes);
  const first = data.tensors && data.tensors.class.findIndex(c => tensorClasses[c].kind === "parameter" && /\//.test(tensorClasses[c].spec));
  if (data.tensors && data.tensors.name.length) {
    nodes.choice.value = data.tensors.name[Math.max(0, first)];
    showTensor();
  } else drawShards();
  redraws.push(drawShards);
}
