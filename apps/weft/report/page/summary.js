/* summary: what it is, how long it takes, how much memory; where the time goes. */

function facts(pairs) {
  const shown = pairs.filter(pair => pair && pair[1] != null && pair[1] !== "");
  return el("dl", {class: "facts"}, shown.map(([name, value, big]) =>
    el("div", {}, el("dt", {}, name), el("dd", {class: big ? "big" : false}, value))));
}

function commandText(run) {
  const words = run.said.map(([name, value]) => value === "yes" ? "--" + name : value === "no" ? "--no-" + name :
    "--" + name + " " + (/^[\w.,:/+=-]+$/.test(value) ? value : "'" + String(value).replaceAll("'", "'\\''") + "'"));
  return [run.program + (run.program === "gpt" ? " train" : ""), ...words].join(" ");
}

function lastOf(name) {
  const series = data.curves && data.curves.series.find(s => s.name === name);
  const values = series ? series.mean.filter(v => v != null) : [];
  return values.length ? values[values.length - 1] : null;
}

function lossText(loss) {
  return loss == null ? null : loss.toFixed(4);
}

function machineText() {
  const machine = data.run && data.run.machine;
  return machine ? machine.processor + ", " + machine.cores + " cores, " + machine.blas + " " + machine.blas_kernel : null;
}

function memoryText(plan) {
  if (plan && plan.memory) return bytesText(plan.memory.peak) + " a rank";
  return data.run && data.run.plan ? bytesText(data.run.plan.total_bytes) + " a rank" : null;
}

/* To the end of the last rank; where a trace alone has a prediction, to the end of the last step of rank 0. */
function predictedSeconds() {
  if (data.prediction) return data.prediction.seconds;
  return steps.end && steps.end.reduce((most, end) => Math.max(most, end), 0) * 1e-9;
}

function summarySection() {
  const {run, plan, prediction, measured, curves} = data;
  const layout = (plan || run || {}).layout;
  const predictedFor = prediction && prediction.machine;
  section("summary", "Summary",
    data.is_going ? el("p", {role: "status"}, "The run is still going: this is as of step " +
      wholeText(curves ? curves.last[curves.last.length - 1] : 0) + ".") : null,
    facts([
      ["a step, predicted", predictedSeconds() && secondsText(predictedSeconds()), true],
      ["a step of rank 0, measured", measured && secondsText(measured.seconds), true],
      ["memory", memoryText(plan), true],
      ["loss", lossText(lastOf("loss")), true],
      ["loss of held-out data", lossText(lastOf("held_out"))],
      ["steps of training", curves && wholeText(curves.last[curves.last.length - 1])],
      ["mesh", meshText && meshText + " – " + wholeText(nRanks) + (nRanks === 1 ? " rank" : " ranks")],
      ["layout", layout === "" ? "none" : layout],
      ["stage of ZeRO", plan || run ? String((plan || run).zero) : null],
      ["predicted for", predictedFor && predictedFor.name + " (" + predictedFor.processor + ")"],
      ["machine of the run", machineText()],
      ["parameters", run && countText(run.parameters)],
      ["work of rank 0 in a step", (plan || (run && run.plan)) && countText((plan || run.plan).flops) + "flop"],
      ["steps of the plan", (plan || (run && run.plan)) && wholeText((plan || run.plan).steps)],
      ["data", run && run.data && run.data.path],
    ]),
    run ? el("h3", {}, "Command") : null, run ? el("p", {class: "code"}, commandText(run)) : null,
    data.notes.length ? el("h3", {}, "Left out") : null,
    data.notes.length ? el("ul", {}, data.notes.map(note => el("li", {}, note))) : null);
}

function row(...cells) {
  return el("tr", {}, cells.map((cell, i) => el(i ? "td" : "th", i ? {class: "number"} : {scope: "row"}, cell)));
}

function smallTable(caption, heads, rows) {
  return el("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": caption}, el("table", {},
    el("caption", {class: "quiet"}, caption),
    el("thead", {}, el("tr", {}, heads.map((head, i) => el("th", {scope: "col", class: i ? "number" : false}, head)))),
    el("tbody", {}, rows)));
}

function queueName(queue) {
  const named = data.plan && data.plan.queues && data.plan.queues[queue];
  return named ? named.name : "queue " + queue;
}

/* Where the predicted time goes, and where that of each rank went. */
function timeSection() {
  const {prediction, measured} = data;
  if (!prediction && !measured) return;
  const node = section("time", "Where the time goes");
  if (prediction) {
    node.append(facts([
      ["computing", secondsText(prediction.work_seconds)],
      ["exchanges", secondsText(prediction.exchange_seconds)],
      ["exposed: exchanges make the step longer by", secondsText(prediction.exposed_seconds)],
      ["of that, waiting for late ranks", secondsText(prediction.late_seconds)],
      ["bubbles of the pipeline", prediction.bubble_seconds ? secondsText(prediction.bubble_seconds) : null],
      ["half of the steps take at most", prediction.draws ? secondsText(prediction.median_seconds) : null],
      ["95 of 100 take at most", prediction.draws ? secondsText(prediction.slow_seconds) : null],
      ...Object.entries(prediction.phases || {}).map(([phase, s]) => [phase, secondsText(s)]),
      ...Object.entries(prediction.sources || {}).map(([source, s]) => ["known by " + source, secondsText(s)]),
    ]));
    node.append(smallTable("Queues of rank 0, predicted", ["queue", "busy", "waiting", "exposed"],
      (prediction.queues || []).map(q => row(queueName(q.queue), secondsText(q.busy), secondsText(q.waiting), secondsText(q.exposed)))));
    node.append(smallTable("Calls of the program that take longest, predicted", ["place", "steps", "seconds", "known by"],
      (prediction.costliest || []).map(c => row(c.place, wholeText(c.steps), secondsText(c.seconds), c.source))));
    if (prediction.prices && prediction.prices.length) node.append(smallTable("What exchanges really cost, predicted",
      ["place", "exchange", "seconds", "without it the step is shorter by"],
      prediction.prices.slice(0, 20).map(p => row(p.place, p.collective + " over " + p.axes, secondsText(p.seconds), secondsText(p.shorter)))));
  }
  if (measured) {
    const more = measured.of_ranks > measured.ranks.length ? ": " + measured.ranks.length + " of " + measured.of_ranks : "";
    node.append(smallTable("Ranks, measured, medians of their runs" + more, ["rank", "a run", "computing", "in exchanges"],
      measured.ranks.map(r => row("rank " + r.rank, secondsText(r.seconds), secondsText(r.compute), secondsText(r.waiting)))));
  }
}
