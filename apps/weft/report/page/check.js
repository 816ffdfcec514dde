/* check: #check behind the page's address: whether what is drawn is what the data say, and keys and heads do what they should. */

function pixelAt(x, y) {
  const {canvas} = timeline, scale = canvas.width / timeline.width;
  return [...canvas.getContext("2d").getImageData(Math.floor(x * scale), Math.floor(y * scale), 1, 1).data].slice(0, 3).join();
}

function pixelOf(name) {
  const one = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  one.fillStyle = colour(name);
  one.fillRect(0, 0, 1, 1);
  return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3).join();
}

/* A bar alone in the middle of the view: its colour begins and ends within a pixel of its times. */
function checkBar(lane, index, bar, faults) {
  const near = lane.bars.filter(one => one !== bar && one.end > bar.begin - (bar.end - bar.begin) && one.begin < bar.end + (bar.end - bar.begin));
  if (near.length || bar.end - bar.begin < 200) return false;
  const length = bar.end - bar.begin;
  view(bar.begin - length, bar.end + length);
  drawTimeline();
  const begin = xOf(bar.begin), end = xOf(bar.end), y = TOP + index * LANE + 15 + BAR - 1, wanted = pixelOf(bar.colour);
  const seen = [begin - 1.01, begin + 1, end - 1.01, end + 1].map(x => pixelAt(x, y) === wanted);
  if (seen.join() !== "false,true,true,false") faults.push(lane.name + ", step " + steps.index[bar.row] + ": pixels are " + seen.join());
  return true;
}

/* The same edge where bars stand close: by the geometry that is drawn. */
function checkPlaces(faults) {
  let n = 0;
  timeline.lanes.forEach((one, index) => one.bars.forEach(bar => {
    const place = placeOf(bar, index), x = (bar.begin - timeline.from) * timeline.width / (timeline.to - timeline.from);
    const right = (bar.end - timeline.from) * timeline.width / (timeline.to - timeline.from);
    n++;
    if (Math.abs(place.x - x) > 1 || Math.abs(place.x + place.width - right) > 1) faults.push("bar of step " + steps.index[bar.row] + " is off");
  }));
  return n;
}

function checkTimeline(faults) {
  if (!timeline.canvas) return {bars: 0, looked: 0};
  fit();
  const bars = checkPlaces(faults);
  let looked = 0;
  timeline.lanes.forEach((one, index) => {
    let ofLane = 0;
    for (const bar of one.bars) if (ofLane < 5 && checkBar(one, index, bar, faults)) ofLane++;
    looked += ofLane;
  });
  fit();
  drawTimeline();
  return {bars, looked};
}

function checkBoxes(faults) {
  let n = 0;
  const check = (spec, wanted) => {
    const parsed = parseSpec(spec);
    if (!parsed || parsed.dims.some(dim => dim.window)) return;
    const sizes = parsed.dims.map((dim, d) => dim.name + ":" + (boxOf(parsed, 0)[d][1] - boxOf(parsed, 0)[d][0])).join(", ");
    n++;
    if ("[" + sizes + "]" !== wanted) faults.push("box of " + spec + " is [" + sizes + "], not " + wanted);
  };
  tensorClasses.forEach(one => check(one.storage, one.box));
  kinds.filter(kind => kind.box).forEach(kind => check(kind.spec, kind.box));
  return n;
}

/* Who is said to hold a block holds exactly that. */
function checkHolders(faults) {
  const spec = shards.parsed, dim = spec && spec.dims.find(one => one.axes.length && !one.window);
  if (!dim) return;
  for (const block of [...Array(Math.min(countOf(dim), 64)).keys()].map(b => blockAt(dim, b)))
    for (const rank of holdersOf(block.at).ranks)
      if (intervalOf(dim, coordinatesOf(rank)).join() !== block.interval.join()) faults.push("rank " + rank + " does not hold " + block.interval);
}

/* Boxes of all ranks of some specs, for whoever knows them too. */
function someBoxes() {
  const specs = [...new Set([...tensorClasses.map(one => one.storage), ...kinds.map(kind => kind.spec)])];
  return specs.filter(spec => parseSpec(spec) && !parseSpec(spec).dims.some(dim => dim.window)).slice(0, 40).map(spec =>
    ({spec, boxes: [...Array(Math.min(nRanks, 64)).keys()].map(rank => boxOf(parseSpec(spec), rank))}));
}

function press(key) {
  timeline.canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
}

function checkKeys(faults) {
  if (!timeline.canvas) return;
  const span = () => timeline.to - timeline.from, expect = (holds, what) => holds || faults.push(what);
  choose(null);
  fit();
  const whole = span(), bars = timeline.lanes[0].bars;
  press("+");
  expect(Math.abs(span() - whole / 2) < whole * 1e-6, "+ does not zoom");
  press("0");
  expect(span() === whole, "0 does not show all");
  press("n");
  press("n");
  const wanted = bars[Math.min(1, bars.length - 1)];
  expect(timeline.chosen.bar === wanted && timeline.told.textContent.includes("step " + steps.index[wanted.row]), "N does not go to the next bar");
  press("ArrowDown");
  expect(timeline.chosen.lane === Math.min(1, timeline.lanes.length - 1), "down does not go to the next lane");
  choose(null);
}

/* Every head sorts by its column, both ways; a word in the filter leaves the rows that have it. */
function checkTable(faults) {
  if (!list.table) return;
  for (const column of shownColumns()) for (const way of [1, 2]) {
    list.table.querySelector("[data-column='" + column.name + "']").click();
    const values = sortedRows().map(r => r[column.name] ?? -Infinity), sign = list.down ? -1 : 1;
    if (values.some((v, i) => i && v !== values[i - 1] && (v > values[i - 1] ? 1 : -1) !== sign)) faults.push(column.name + " is not sorted, " + way);
    if (list.table.querySelectorAll("[aria-sort=" + (list.down ? "descending" : "ascending") + "]").length !== 1) faults.push("no head says its order");
  }
  list.filter = list.rows[0].name;
  if (!sortedRows().length || sortedRows().some(r => !Object.values(r).some(v => String(v).includes(list.filter)))) faults.push("the filter");
  list.filter = "";
}

/* A row for each entry; commands stand there as they are typed, and the keyboard gets to what is scrolled. */
function checkAdvice(faults) {
  const rows = [...document.querySelectorAll("#advice-table tbody tr")], wanted = data.advice || [];
  if (rows.length !== wanted.length) faults.push(rows.length + " rows of advice, not " + wanted.length);
  rows.forEach((tr, i) => {
    const code = tr.querySelector("code");
    if ((code ? code.textContent : null) !== wanted[i].command) faults.push("the command of advice " + i);
    if (tr.querySelector("th").textContent !== (wanted[i].what || "")) faults.push("the change of advice " + i);
  });
  if (rows.length && document.querySelector("#advice .scroll").tabIndex !== 0) faults.push("no key gets to the advice");
  return rows.length;
}

/* Of the table with each step in it. */
function countRows() {
  if (!list.table) return 0;
  groupSteps("step");
  const rows = list.rows.length;
  groupSteps("kind");
  return rows;
}

function checkAll() {
  const faults = [];
  const {bars, looked} = checkTimeline(faults), boxes = checkBoxes(faults);
  checkHolders(faults);
  checkKeys(faults);
  checkTable(faults);
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) faults.push("the page is " + wide + " pixels wider than the window");
  const rows = countRows();
  const matrix = [...document.querySelectorAll("#traffic [data-bytes]")].reduce((sum, cell) => sum + Number(cell.dataset.bytes), 0);
  const advice = checkAdvice(faults);
  return {faults, advice, bars, looked, boxes, rows, matrix, charts: document.querySelectorAll("[data-chart]").length,
    sections: [...document.querySelectorAll("section")].map(node => node.id), some: someBoxes()};
}

